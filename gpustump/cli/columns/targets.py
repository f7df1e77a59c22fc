"""What a target column holds: labels of classes, or a quantity; and what is refused."""

from __future__ import annotations

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.data.columns import LARGEST_WHOLE, Column
from gpustump.data.parameters import MOST_CODES
from gpustump.data.readable import counted, quoted

_OF_QUANTITY = ("number", "boolean", "duration")
"""The kinds of columns that can be a quantity; durations are seconds."""


def is_quantity(column: Column, source: str) -> bool:
    """Whether a target without missing values is a quantity, if no option says what it is.

    Numbers are, unless there are two values only. Text and booleans are labels.

    Raises
    ------
    InputError
        If it holds a few whole numbers, which may be either.
    """
    if column.kind not in ("number", "duration"):
        return False
    numbers = np.asarray(column.numbers())
    distinct = np.unique(numbers)
    if len(distinct) <= 2 or len(distinct) > MOST_CODES or (np.trunc(distinct) != distinct).any():
        return len(distinct) > 2 or bool((np.trunc(distinct) != distinct).any())
    low, high = (f"{end:.0f}" for end in (distinct[0], distinct[-1]))
    raise InputError(
        f"{_where(column, source)} holds {len(distinct)} distinct whole numbers, {low} to {high}. "
        "Say what they are: classes (--loss exponential or logistic), a quantity (--loss "
        "squared_error), or counts (--loss poisson)."
    )


def target_numbers(column: Column, source: str) -> np.ndarray:
    """The quantity (n_rows,) in a column without missing values, float64.

    Raises
    ------
    InputError
        If the values are not finite numbers.
    """
    where = _where(column, source)
    if column.kind not in _OF_QUANTITY:
        raise InputError(
            f"{where} holds {_plural(column.kind)}; a quantity, which options ask for, is numbers."
        )
    numbers = np.asarray(column.numbers()).astype(np.float64)
    is_wrong = ~np.isfinite(numbers)
    if is_wrong.any():
        raise InputError(
            f"{where} must be finite; it is not in "
            f"{counted(int(np.count_nonzero(is_wrong)), 'row')}, such as "
            f"{numbers[np.argmax(is_wrong)]}."
        )
    return numbers


def target_labels(column: Column, source: str) -> np.ndarray:
    """The labels (n_rows,) in a column without missing values: text, bool or int64.

    Whole floats become integers, so that a model does not depend on how a file writes its labels.

    Raises
    ------
    InputError
        If the values cannot be labels, or are all the same.
    """
    where = _where(column, source)
    if column.kind not in ("text", "boolean", "number"):
        raise InputError(
            f"{where} holds {_plural(column.kind)}; labels are text, booleans or whole numbers."
        )
    with as_input_error(f"{source}: "):
        labels = column.labels()
    if column.kind == "number":
        labels = _whole_numbers(labels, where)
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise InputError(
            f"{where} is {quoted(distinct[0].item())} in every row; two classes or more are needed."
        )
    if len(distinct) > max(2, len(labels) / 2):
        raise InputError(
            f"{where} has {len(distinct)} distinct values in {len(labels)} rows; is it a column of "
            "labels? If it is a quantity, choose --loss squared_error."
        )
    return labels


def _where(column: Column, source: str) -> str:
    return f"{source}: the target {quoted(column.name)}"


def _plural(kind: str) -> str:
    return "dates or times" if kind in ("date", "datetime", "time") else kind


def _whole_numbers(values: np.ndarray, where: str) -> np.ndarray:
    if values.dtype.kind == "u" and np.max(values) < 2**63:
        return values.astype(np.int64)
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    values = values.astype(np.float64)  # float16 has no numbers as large as the bound
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) <= LARGEST_WHOLE) & (np.trunc(values) == values)
    if not whole.all():
        example = values[np.argmin(whole)].item()
        raise InputError(
            f"{where} holds {len(np.unique(values))} distinct numbers that are not all whole, such "
            f"as {example}. To predict a quantity, choose --loss squared_error. If they stand for "
            "classes, write whole numbers or text in their place (--categorical makes text of a "
            "table's column)."
        )
    return values.astype(np.int64)
