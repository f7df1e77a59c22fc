"""The table in a data file as named columns, and what a command asks of such a file.

Text files are read in `text`, the others in `binary`. All later stages see an `InputTable`: columns
in order, each of some kind. Where the file holds one array, the table keeps it, so that a
memory-mapped array is not copied.

A reader looks at the names of the columns first and asks which of them to read (`Request.choose`).
So a wrong option is refused before the rows are read, and columns that nobody needs are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gpustump.arrays import Array, is_sparse
from gpustump.arrays.order_keys import working_dtype
from gpustump.cli.errors import InputError, as_input_error
from gpustump.data.columns import (
    ArrayColumn,
    Column,
    ColumnTable,
    SparseColumn,
    refuse_repeated_names,
)
from gpustump.data.readable import counted, listed, quoted, suggestion

TEXT, NUMBER = "text", "number"
"""Kinds in `Wanted`: a column to read as text, and one that is known to hold numbers or times."""

MOST_EMPTY_COLUMNS = 2**20
"""An array without rows takes no bytes, so the size of its file does not limit its columns."""


@dataclass(frozen=True)
class UnreadColumn(ArrayColumn):
    """A column that a file has but nobody needs: a name without values."""

    values: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def with_rows(self, mask: np.ndarray) -> UnreadColumn:
        return self


@dataclass(frozen=True)
class InputTable(ColumnTable):
    """What a data file holds.

    Attributes
    ----------
    source, columns, n_rows, named, matrix
        As `ColumnTable` has them; the source is the file's name.
    vectors : mapping of str to ArrayColumn
        Vectors that the file holds beside the table (.npz, svmlight), such as labels.
    unread : mapping of str to InputError
        What is wrong with vectors that cannot be read.
    renamed : mapping of str to str
        The columns with a name of their own because others in the file have the same: theirs, and
        the name in the file.
    notes : tuple of str
        What the reader found out about the file that a user may want to know.
    warnings : tuple of str
        What may have been misread, or was left out.
    date_orders : mapping of int to str
        How the dates of columns begin, by the columns' positions, where that is a question.
    decimals : str or None
        The decimal mark, where the other one is between thousands.
    first_index : int or None
        The number of the first feature, in a file that lists features by their numbers.
    """

    vectors: Mapping[str, ArrayColumn] = field(default_factory=dict)
    unread: Mapping[str, InputError] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    date_orders: Mapping[int, str] = field(default_factory=dict)
    decimals: str | None = None
    first_index: int | None = None

    def position(self, name: str, option: str) -> int:
        """The index of the column that an option names, by its name or, in arrays, its index.

        Raises
        ------
        InputError
            If there is no such column; the message lists the columns.
        """
        names = self.names
        if self.named and name in names:
            return names.index(name)
        if self.matrix is None or not re.fullmatch(r"-?\d+", name):
            found = f"it has {listed(names)}" if self.named else self._indices()
            hint = suggestion(name, [*names, *self.vectors])
            raise InputError(
                f"{option}: {self.source} has no column {quoted(name)}; {found}.{hint}"
            )
        index = int(name)
        if not -len(names) <= index < len(names):
            raise InputError(f"{option}: {self.source} has no column {name}; {self._indices()}.")
        return index % len(names)

    def column_or_vector(self, name: str, option: str) -> tuple[Column, int | None]:
        """What an option names, and its position among the columns; None for a vector.

        Raises
        ------
        InputError
            If there is nothing of that name, or a vector does not fit the table.
        """
        if name in self.unread:
            raise self.unread[name]
        if name in self.vectors:
            vector = self.vectors[name]
            if len(vector.values) != self.n_rows:
                raise InputError(
                    f"{option}: the array {quoted(name)} of {self.source} has "
                    f"{len(vector.values)} values, but the table has {counted(self.n_rows, 'row')}."
                )
            return vector, None
        if self.vectors and not (self.named and name in self.names):
            hint = suggestion(name, list(self.vectors))
            raise InputError(
                f"{option}: {self.source} has no array {quoted(name)} beside its table; it has "
                f"{listed(self.vectors)}.{hint}"
            )
        position = self.position(name, option)
        return self.columns[position], position

    def with_rows(self, mask: np.ndarray) -> InputTable:
        """The table with those rows where a mask is true."""
        vectors = {
            name: vector.with_rows(mask)
            for name, vector in self.vectors.items()
            if len(vector.values) == len(mask)
        }
        if self.matrix is not None:
            names = self.names if self.named else None
            own = table_of(self.source, self.matrix[mask], names, first=self.first_index or 0)
            return replace(
                self, columns=own.columns, n_rows=own.n_rows, matrix=own.matrix, vectors=vectors
            )
        columns = tuple(column.with_rows(mask) for column in self.columns)
        n_rows = int(np.count_nonzero(mask))
        return replace(self, columns=columns, n_rows=n_rows, vectors=vectors)

    def _indices(self) -> str:
        last = len(self.columns) - 1
        return f"its {last + 1} columns are named by their index, 0 to {last} or -1 to -{last + 1}"


def check_column_names(source: str, names: Collection[str]) -> None:
    """Refuse two columns of one name: an option could not tell them apart.

    Raises
    ------
    InputError
    """
    with as_input_error():
        refuse_repeated_names(names, source)


def table_of(
    source: str,
    matrix: Array,
    names: Collection[str] | None,
    vectors: Mapping[str, ArrayColumn] | None = None,
    first: int = 0,
) -> InputTable:
    """A table from one array (n_rows, n_columns); without names columns are counted from `first`.

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
            f"{source}: the array's dtype is {matrix.dtype}; it must be boolean, integer, float16, "
            "float32 or float64."
        )
    if not len(matrix) and matrix.shape[1] > MOST_EMPTY_COLUMNS:
        raise InputError(f"{source}: the array's shape is {matrix.shape}.")
    own = [str(first + j) for j in range(matrix.shape[1])] if names is None else list(names)
    columns: tuple[Column, ...]
    if is_sparse(matrix):
        columns = tuple(SparseColumn(name, matrix, j) for j, name in enumerate(own))
    else:
        columns = tuple(ArrayColumn(name, matrix[:, j]) for j, name in enumerate(own))
    return InputTable(source, columns, len(matrix), names is not None, matrix, vectors or {})


@dataclass(frozen=True)
class Wanted:
    """The columns to read.

    Attributes
    ----------
    skipped : frozenset of int
        Positions of columns that are not needed.
    kinds : mapping of int to str or None
        Columns that are known to be `TEXT` or `NUMBER`. The reader finds out what the others are.
    date_orders : mapping of int to str
        How the dates of columns begin, where that is known; see `fields`.
    """

    skipped: frozenset[int] = frozenset()
    kinds: Mapping[int, str | None] = field(default_factory=dict)
    date_orders: Mapping[int, str] = field(default_factory=dict)


def everything(header: InputTable) -> Wanted:
    """All columns, of whatever kind."""
    return Wanted()


@dataclass(frozen=True)
class Request:
    """What to read.

    Attributes
    ----------
    choose : callable
        Says which columns are wanted, given a table that has their names but no rows. It raises
        an InputError if the file lacks what is needed.
    encoding : str or None
        Of a text file's characters; None for UTF-8.
    fallback : str or None
        The encoding of a text file that turns out not to be UTF-8; None to refuse it.
    decimals : str or None
        The decimal marks of a text file: ".", ",", ".," or ",.", the likely one first. None for a
        point and, if the file is not separated by commas, a comma.
    missing : tuple of str
        Words in a text file that stand for missing values, beside the known ones.
    n_features, first_index : int or None
        How many features a file in svmlight's format has, and the number of the first; the file
        tells if these are None.
    feature_names : tuple of str, or None
        Their names.
    """

    choose: Callable[[InputTable], Wanted] = everything
    encoding: str | None = None
    fallback: str | None = None
    decimals: str | None = None
    missing: tuple[str, ...] = ()
    n_features: int | None = None
    first_index: int | None = None
    feature_names: tuple[str, ...] | None = None
