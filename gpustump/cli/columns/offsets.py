"""What is known of each row beforehand: the columns of --init-score and --exposure.

A model names the columns that it was trained with. So `predict` finds them without options; a table
that has none of them is predicted for scores from 0 and exposures of 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.table import InputTable
from gpustump.cli.wording import one_line
from gpustump.data.columns import Column
from gpustump.data.readable import quoted, shown
from gpustump.model.ensemble import StumpEnsemble


class Offsets(NamedTuple):
    """The values for each row, (n_rows,) of float64; None where there are none."""

    init_score: np.ndarray | None = None
    exposure: np.ndarray | None = None

    def in_rows(self, rows: np.ndarray) -> Offsets:
        """Those of some rows."""
        return Offsets(*(None if own is None else own[rows] for own in self))

    def added(self, scores: np.ndarray, model: StumpEnsemble) -> np.ndarray:
        """Scores of two classes with what is known of the rows; of a quantity as they are.

        Raises
        ------
        InputError
            If a value is not finite, or very large.
        """
        if model.is_regression or self.init_score is None:
            return scores
        from gpustump.estimators.targets import Offset  # it needs scikit-learn

        with as_input_error():
            known = Offset(self.init_score).of_classes(scores[:, np.newaxis], len(model.classes))
        found: np.ndarray = scores + known
        return found

    def applied(self, predictions: np.ndarray, model: StumpEnsemble) -> np.ndarray:
        """Predictions of a quantity with what is known of the rows.

        Raises
        ------
        InputError
            If a value is not finite, or an exposure is not above 0.
        """
        from gpustump.estimators.targets import Offset

        is_log = model.link == "log"
        with as_input_error():
            rows = predictions[:, np.newaxis]
            known = Offset(*self).of_quantity(rows, "poisson" if is_log else "squared_error")
        if known is None:
            return predictions
        found: np.ndarray = predictions * known if is_log else predictions + known
        return found


class OffsetColumns(NamedTuple):
    """The names of the columns; None where there are none."""

    init_score: str | None = None
    exposure: str | None = None

    @classmethod
    def of_options(cls, arguments: argparse.Namespace) -> OffsetColumns:
        """Those that options name."""
        return cls(arguments.init_score, arguments.exposure)

    @classmethod
    def of_model(cls, model: StumpEnsemble, arguments: argparse.Namespace) -> OffsetColumns:
        """Those that options name, or else the model.

        Raises
        ------
        InputError
            If an option is not for this model, or a name in the model is not text.
        """
        names: dict[str, Any] = {}
        for name, given in cls.of_options(arguments)._asdict().items():
            held = model.details.get(name)
            if given is not None:
                _refuse_for_others(name, model)
            if held is not None and not isinstance(held, str):
                raise InputError(
                    f"the model's details hold {shown(held)} as its {name}; it must be text."
                )
            names[name] = held if given is None else given
        return cls(**names)

    @property
    def given(self) -> list[tuple[str, str]]:
        """Options and names."""
        return [(_option(k), v) for k, v in self._asdict().items() if v is not None]

    def those_in(self, table: InputTable, arguments: argparse.Namespace) -> OffsetColumns:
        """Without the columns that only the model names, and the table lacks; stderr tells."""
        found = self._asdict()
        for name, own in self._asdict().items():
            if own is None or getattr(arguments, name) is not None:
                continue
            if own not in table.vectors and not (table.named and own in table.names):
                found[name] = None
                usual = "1" if name == "exposure" else "0"
                text = f"there is no {quoted(own)}; it is {usual} for every row"
                print(one_line(f"gpustump: {table.source}: {text}"), file=sys.stderr)
        return OffsetColumns(**found)

    def columns(self, table: InputTable) -> Iterator[tuple[Column, int | None]]:
        """The columns, and where they are; None for a vector beside the table."""
        for option, name in self.given:
            yield table.column_or_vector(name, option)

    def read(self, table: InputTable) -> Offsets:
        """The values.

        Raises
        ------
        InputError
            If a column does not hold numbers.
        """
        found: dict[str, np.ndarray | None] = {}
        for name, own in self._asdict().items():
            found[name] = None
            if own is not None:
                column, _ = table.column_or_vector(own, _option(name))
                if column.kind not in ("number", "boolean"):
                    raise InputError(
                        f"{table.source}: {_option(name)} names {quoted(own)}, which is not "
                        f"numbers, but of type {column.kind}."
                    )
                found[name] = np.asarray(column.numbers()).astype(np.float64)
        return Offsets(**found)


def _refuse_for_others(name: str, model: StumpEnsemble) -> None:
    """Refuse an option that is not for a model."""
    if name == "exposure" and not model.is_regression:
        raise InputError("--exposure is for models of counts; this one predicts classes.")
    if name == "exposure" and model.link != "log":
        raise InputError("--exposure is for models of counts; this one has squared loss.")
    if name == "init_score":
        refuse_for_classes(len(model.classes))


def refuse_for_classes(n_classes: int) -> None:
    """Refuse --init-score for more than two classes, which have a score each."""
    if n_classes > 2:
        raise InputError(
            f"--init-score is one column, for two classes or a quantity; here are {n_classes} "
            "classes. In Python, fit(X, y, init_score=...) takes a column for each of them."
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
