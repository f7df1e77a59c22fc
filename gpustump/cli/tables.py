"""A data file as named columns, whatever its format.

The formats have a file each, `frames` (CSV, Parquet) and `numpy_files` (NPY, NPZ). The stages that
follow see a `Table`: columns in order, each of some kind, and the whole as one array where the
file holds it as one, so that a memory-mapped table is never copied without need.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from gpustump.arrays.order_keys import working_dtype
from gpustump.cli.errors import InputError, counted, listed, quoted, suggestion

NUMERIC = ("number", "boolean")
TEMPORAL = ("date", "datetime", "time", "duration")
USABLE = (*NUMERIC, *TEMPORAL, "text", "empty")


class Column(Protocol):
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : str
        One of `USABLE`, where "empty" has no value at all; otherwise the file's own word for a
        type that is of no use here.
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

    def kept(self, rows: np.ndarray) -> Column:
        """The column with only those rows where a mask is true."""


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

    def kept(self, rows: np.ndarray) -> ArrayColumn:
        return ArrayColumn(self.name, self.values[rows])


@dataclass(frozen=True)
class Table:
    """What a data file holds.

    Attributes
    ----------
    source : str
        The file's name, for messages.
    columns : tuple of Column
    n_rows : int
    named : bool
        Whether the columns have names of their own; if not, their index serves.
    matrix : ndarray (n_rows, n_columns), or None
        The columns side by side, if the file holds them so.
    beside : mapping of str to ArrayColumn
        Vectors that the file holds beside the table (.npz).
    """

    source: str
    columns: tuple[Column, ...]
    n_rows: int
    named: bool = True
    matrix: np.ndarray | None = None
    beside: Mapping[str, ArrayColumn] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def position(self, name: str, option: str) -> int:
        """The index of the column that an option names, by its name or, in arrays, its index.

        Raises
        ------
        InputError
            If there is none; the message lists those there are.
        """
        names = self.names
        if self.named and name in names:
            return names.index(name)
        if self.matrix is None or not re.fullmatch(r"-?\d+", name):
            there = f"it has {listed(names)}" if self.named else self._indices()
            close = suggestion(name, [*names, *self.beside])
            raise InputError(
                f"{option}: {self.source} has no column {quoted(name)}; {there}.{close}"
            )
        index = int(name)
        if not -len(names) <= index < len(names):
            raise InputError(f"{option}: {self.source} has no column {name}; {self._indices()}.")
        return index % len(names)

    def taken(self, name: str, option: str) -> tuple[Column, int | None]:
        """The column that an option names, and its position in the table, None if beside it."""
        if name in self.beside:
            column = self.beside[name]
            if len(column.values) != self.n_rows:
                raise InputError(
                    f"{option}: the array {quoted(name)} of {self.source} has "
                    f"{len(column.values)} values, but the table has {counted(self.n_rows, 'row')}."
                )
            return column, None
        if self.beside and not (self.named and name in self.names):
            close = suggestion(name, list(self.beside))
            raise InputError(
                f"{option}: {self.source} has no array {quoted(name)} beside its table; it has "
                f"{listed(self.beside)}.{close}"
            )
        position = self.position(name, option)
        return self.columns[position], position

    def kept(self, rows: np.ndarray) -> Table:
        """The table with only those rows where a mask is true."""
        n_rows = int(np.count_nonzero(rows))
        beside = {
            name: column.kept(rows)
            for name, column in self.beside.items()
            if len(column.values) == self.n_rows
        }
        if self.matrix is not None:
            kept = of_matrix(self.source, self.matrix[rows], self.names if self.named else None)
            return replace(kept, beside=beside)
        columns = tuple(column.kept(rows) for column in self.columns)
        return replace(self, columns=columns, n_rows=n_rows, beside=beside)

    def _indices(self) -> str:
        last = len(self.columns) - 1
        return f"its {last + 1} columns are named by their index, 0 to {last} or -1 to -{last + 1}"


def check_distinct(path: str, names: Collection[str]) -> None:
    """Refuse a name given to two columns: which of them is meant?"""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path} has two columns named {quoted(twice[0])}; rename one of them.")


def of_matrix(
    source: str,
    matrix: np.ndarray,
    names: Collection[str] | None,
    beside: Mapping[str, ArrayColumn] | None = None,
) -> Table:
    """A table from one array (n_rows, n_columns).

    Raises
    ------
    InputError
        If it is not a table of numbers.
    """
    if matrix.ndim != 2:
        raise InputError(
            f"{source}: the array's shape is {matrix.shape}; a table has two dimensions, "
            "(rows, columns)."
        )
    if working_dtype(str(matrix.dtype)) is None:
        raise InputError(
            f"{source}: the array's dtype is {matrix.dtype}; booleans, integers and float16, "
            "float32 or float64 are wanted."
        )
    own = [str(j) for j in range(matrix.shape[1])] if names is None else list(names)
    columns = tuple(ArrayColumn(name, matrix[:, j]) for j, name in enumerate(own))
    return Table(source, columns, len(matrix), names is not None, matrix, beside or {})
