"""The columns of a table, of whatever origin: a frame, a data file, an array.

A column is of some kind (numbers, booleans, dates, text, ...) and gives its values as numbers where
that is possible. `model.encoding` makes features of columns; here nothing is known of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpustump.arrays.order_keys import working_dtype

NUMERIC = ("number", "boolean")
TEMPORAL = ("date", "datetime", "time", "duration")
USABLE = (*NUMERIC, *TEMPORAL, "text", "empty")

UNITS = {
    "date": "days since 1970-01-01",
    "datetime": "seconds since 1970-01-01",
    "time": "seconds since midnight",
    "duration": "seconds",
}
"""What the numbers of temporal columns count."""


class Column(Protocol):
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : str
        One of `USABLE`, where "empty" means without any value; otherwise the word that its origin
        has for a type that cannot be used here.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def dtype(self) -> str:
        """The dtype of `numbers`."""

    def numbers(self) -> np.ndarray:
        """Float values (n_rows,), NaN where missing; not for text."""

    def missing(self) -> np.ndarray:
        """Where there is no value, bool (n_rows,)."""

    def equals(self, value: str) -> np.ndarray:
        """Where a text column has this value, bool (n_rows,)."""

    def distinct(self) -> list[Any]:
        """The distinct values, sorted, without missing ones."""

    def labels(self) -> np.ndarray:
        """The values as they are (n_rows,): text, bool, int or float; none may be missing."""

    def with_rows(self, mask: np.ndarray) -> Column:
        """The column in those rows where a mask is true."""


@dataclass(frozen=True)
class ArrayColumn:
    """A column that is a NumPy array (n_rows,)."""

    name: str
    values: np.ndarray

    @property
    def kind(self) -> str:
        if self.values.dtype.kind == "b":
            return "boolean"
        if self.values.dtype.kind == "U":
            return "text"
        return "number" if working_dtype(str(self.values.dtype)) else str(self.values.dtype)

    @property
    def dtype(self) -> str:
        return working_dtype(str(self.values.dtype)) or ""

    def numbers(self) -> np.ndarray:
        return self.values.astype(self.dtype, copy=False)

    def missing(self) -> np.ndarray:
        if self.values.dtype.kind == "f":
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), dtype=bool)

    def equals(self, value: str) -> np.ndarray:
        return np.asarray(self.values == value)

    def distinct(self) -> list[Any]:
        return list(np.unique(self.values[~self.missing()]).tolist())

    def labels(self) -> np.ndarray:
        return self.values

    def with_rows(self, mask: np.ndarray) -> ArrayColumn:
        return ArrayColumn(self.name, self.values[mask])


@dataclass(frozen=True)
class ColumnTable:
    """A table as columns.

    Attributes
    ----------
    source : str
        Where it comes from, for messages: the name of an argument or of a file.
    columns : tuple of Column
    n_rows : int
    named : bool
        Whether the columns have names; if not, they are named by their index.
    matrix : ndarray (n_rows, n_columns), or None
        All columns as one array, if there is one.
    """

    source: str
    columns: tuple[Column, ...]
    n_rows: int
    named: bool = True
    matrix: np.ndarray | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def common_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    """The narrowest dtype that holds the numbers of all columns that are not text."""
    numeric = [column.dtype for column in columns if column.kind != "text"]
    return np.result_type(np.float32, *numeric)


def values_of_kind(kind: str) -> str:
    """The values of a kind of column, in words."""
    if kind in (*NUMERIC, *TEMPORAL):
        return f"{kind}s"
    return "text" if kind in ("category", "text") else f"values of type {kind}"
