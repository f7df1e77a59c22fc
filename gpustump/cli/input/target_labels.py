"""The labels in a target column: which values can be classes, and which are refused."""

from __future__ import annotations

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.data.columns import LARGEST_WHOLE, Column
from gpustump.data.readable import quoted

MOST_CLASSES_OF_FRACTIONS = 20
"""Up to this many distinct numbers with fractions may be codes of classes, such as scaled ones."""


def target_labels(column: Column, source: str) -> np.ndarray:
    """The labels (n_rows,) in a column without missing values: text, bool or int64.

    Whole floats become integers, so that a model does not depend on how a file writes its labels.

    Raises
    ------
    InputError
        If the values cannot be labels, or are all the same.
    """
    labels = plain_labels(column, source)
    where = _where(column, source)
    distinct = np.unique(labels)
    if len(distinct) < 2:
        raise InputError(
            f"{where} is {quoted(distinct[0].item())} in every row; two classes or more are needed."
        )
    if len(distinct) > max(2, len(labels) / 2):
        raise InputError(
            f"{where} has {len(distinct)} distinct values in {len(labels)} rows; is it a column of "
            "labels?"
        )
    return labels


def plain_labels(column: Column, source: str) -> np.ndarray:
    """The labels as `target_labels` has them, but of any number of classes: for some of the rows.

    Raises
    ------
    InputError
        If the values cannot be labels.
    """
    where = _where(column, source)
    if column.kind not in ("text", "boolean", "number"):
        kind = "dates or times" if column.kind in ("date", "datetime", "time") else column.kind
        raise InputError(f"{where} holds {kind}; labels are text, booleans or whole numbers.")
    with as_input_error(f"{source}: "):
        labels = column.labels()
    if column.kind == "number":
        labels = _whole_numbers(labels, where)
    return labels


def _where(column: Column, source: str) -> str:
    return f"{source}: the target {quoted(column.name)}"


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
        n_distinct = len(np.unique(values))
        if n_distinct <= MOST_CLASSES_OF_FRACTIONS:
            raise InputError(
                f"{where} holds {n_distinct} distinct numbers that are not all whole, such as "
                f"{example}. If they stand for classes, write whole numbers or text in their place "
                f"(--categorical makes text of a table's column); if not, cut the target into "
                "classes first."
            )
        raise InputError(
            f"{where} is a number that varies continuously: {n_distinct} distinct "
            f"values, such as {example}. This is a classifier; cut the target into classes first."
        )
    return values.astype(np.int64)
