"""Monotone constraints as `gpustump train --monotone` takes them: NAME=1,NAME=-1.

Names are those of columns. A column of text is refused: it becomes a feature for each of its
values, and these have no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpustump.cli.columns.training import TrainingData
from gpustump.cli.errors import InputError
from gpustump.data.readable import quoted, shortened, suggestion
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn

_NUMBERS = {"1": 1, "+1": 1, "-1": -1, "0": 0}


def constraints_of(data: TrainingData, options: Sequence[str]) -> dict[str, int]:
    """The constraints that options name, by column; without those that are 0.

    Raises
    ------
    InputError
        If an option is not of the form NAME=NUMBER, names a column that is not one of the features
        or names it twice, or if the target has more than two classes.
    """
    columns = {column.name: column for column in data.encoding.columns}
    found: dict[str, int] = {}
    for option in options:
        for name, number in _pairs(option, columns):
            _check_column(name, columns, data)
            if name in found:
                raise InputError(f"--monotone names {quoted(name)} twice.")
            found[name] = number
    constraints = {name: number for name, number in found.items() if number}
    n_classes = 0 if data.is_quantity else len(np.unique(data.y))
    if constraints and n_classes > 2:
        raise InputError(
            f"--monotone is for two classes; the target {quoted(data.target)} has {n_classes}."
        )
    return constraints


def by_feature(encoding: Encoding, constraints: Mapping[str, int]) -> list[int] | None:
    """The constraint of each feature, as the estimators take them; None if there is none."""
    if not constraints:
        return None
    return [constraints.get(column.name, 0) for column in encoding.columns for _ in column.features]


def _pairs(option: str, columns: Mapping[str, InputColumn]) -> Iterator[tuple[str, int]]:
    """Names and numbers; a name may hold commas and equals signs itself."""
    is_one = option.rpartition("=")[0] in columns
    for text in [option] if is_one else option.split(","):
        if not text.strip():
            continue
        name, sign, number = text.rpartition("=")
        if not sign or number.strip() not in _NUMBERS:
            raise InputError(
                f"--monotone {quoted(option)} is not of the form COL=1 or COL=-1, with commas "
                "between several. 1: the score must not fall as the column rises; -1: it must not "
                "rise."
            )
        yield name if name in columns else name.strip(), _NUMBERS[number.strip()]


def _check_column(name: str, columns: Mapping[str, InputColumn], data: TrainingData) -> None:
    column = columns.get(name)
    if column is None:
        raise InputError(
            f"--monotone names {quoted(name)}, which is not a feature of {data.source}."
            f"{suggestion(name, [*columns])}"
        )
    if column.kind == NUMBERED:
        raise InputError(
            f"--monotone names {quoted(name)}, a column of text, whose values have no order. Take "
            "a column of numbers."
        )
    if column.kind == "category":
        raise InputError(
            f"--monotone names {quoted(name)}, a column of text: each of its values is a feature "
            "of its own, and they have no order. Take a column of numbers."
        )


def as_text(constraints: Mapping[str, int]) -> str:
    """Constraints as options name them, for the summary and the report."""
    return ", ".join(f"{shortened(name)}={number}" for name, number in constraints.items())
