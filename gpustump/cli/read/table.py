"""The table in a data file as named columns, whatever the file's format.

Each family of formats has a file of its own: `csv_files`, `polars_files` (Parquet, Feather, JSON
lines) and `numpy_files` (NPY, NPZ). All later stages see an `InputTable`: columns in order, each of
some kind. Where the file holds one array, the table keeps it, so that a memory-mapped array is not
copied without need.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gpustump.arrays.order_keys import working_dtype
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.dates import FIRST, DateOrder
from gpustump.cli.read.vectors import vectors_in_rows
from gpustump.data.columns import ArrayColumn, Column, ColumnTable, refuse_repeated_names
from gpustump.data.readable import counted, listed, quoted, suggestion


@dataclass(frozen=True)
class UnreadColumn(ArrayColumn):
    """A column that a file has but nobody needs: a name without values."""

    values: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def missing(self) -> np.ndarray:
        raise AssertionError(f"the column {quoted(self.name)} was not read")

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
        Vectors that the file holds beside the table (.npz), such as labels.
    notes : tuple of str
        What the reader found out about the file that a user may want to know.
    date_orders : mapping of int to DateOrder
        How the dates of columns begin, by the columns' positions, where that is a question.
    decimals : str or None
        The decimal mark, where the other one is between thousands.
    repeated : mapping of str to str
        Names that several columns had, and what the last of them is called now.
    """

    vectors: Mapping[str, ArrayColumn] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    date_orders: Mapping[int, DateOrder] = field(default_factory=dict)
    decimals: str | None = None
    repeated: Mapping[str, str] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may have been misread."""
        return tuple(
            f"{self.source}: the dates of {quoted(self.names[j])}, such as {quoted(own.example)}, "
            f"may begin with the day or the month; they were read with the {FIRST[own.order]} "
            "first. Train with --date-order to say which it is."
            for j, own in self.date_orders.items()
            if not own.is_sure
        )

    def position(self, name: str, option: str) -> int:
        """The index of the column that an option names, by its name or, in arrays, its index.

        Raises
        ------
        InputError
            If there is no such column; the message lists the columns.
        """
        names = self.names
        if name in self.repeated:
            raise InputError(
                f"{option}: {self.source} has several columns named {quoted(name)}; rename all but "
                "one of them."
            )
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
        vectors = vectors_in_rows(self.vectors, mask)
        if self.matrix is not None:
            names = self.names if self.named else None
            return table_of(self.source, self.matrix[mask], names, vectors)
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
    matrix: np.ndarray,
    names: Collection[str] | None,
    vectors: Mapping[str, ArrayColumn] | None = None,
) -> InputTable:
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
            f"{source}: the array's dtype is {matrix.dtype}; it must be boolean, integer, float16, "
            "float32 or float64."
        )
    own = [str(j) for j in range(matrix.shape[1])] if names is None else list(names)
    columns = tuple(ArrayColumn(name, matrix[:, j]) for j, name in enumerate(own))
    return InputTable(source, columns, len(matrix), names is not None, matrix, vectors or {})
