"""The columns of a table, of whatever origin: a frame, a data file, an array.

A column is of some kind (numbers, booleans, dates, text, ...) and gives its values as numbers if
possible. `model.encoding` turns columns into features; this file does not know about features.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from gpustump.arrays import Array, SparseTable
from gpustump.arrays.order_keys import working_dtype
from gpustump.data.readable import quoted

NUMERIC = ("number", "boolean")
TEMPORAL = ("date", "datetime", "time", "duration")
USABLE = (*NUMERIC, *TEMPORAL, "text", "empty")

LARGEST_WHOLE = 2**53
"""Above it, float64 does not hold every whole number, so a float may not be the number written."""

UNITS = {
    "date": "days since 1970-01-01",
    "datetime": "seconds since 1970-01-01",
    "time": "seconds since midnight",
    "duration": "seconds",
}
"""What the numbers of temporal columns count."""


_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z?)?")


class Column(Protocol):
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : str
        One of `USABLE`, where "empty" means without any value. Any other kind is the name that the
        column's library gives a type that cannot be used.
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
    """A column that is a NumPy array (n_rows,): numbers, booleans, text, or times (datetime64)."""

    name: str
    values: np.ndarray

    @property
    def kind(self) -> str:
        if self.values.dtype.kind == "b":
            return "boolean"
        if self.values.dtype.kind == "U":
            return "text"
        if self.values.dtype.kind == "M":
            return "datetime"
        return "number" if working_dtype(str(self.values.dtype)) else str(self.values.dtype)

    @property
    def dtype(self) -> str:
        is_time = self.values.dtype.kind == "M"
        return "float64" if is_time else working_dtype(str(self.values.dtype)) or ""

    def numbers(self) -> np.ndarray:
        if self.values.dtype.kind == "M":
            microseconds = self.values.astype("datetime64[us]").astype(np.int64)
            return np.where(self.missing(), np.nan, microseconds / 10**6)
        return self.values.astype(self.dtype, copy=False)

    def missing(self) -> np.ndarray:
        if self.values.dtype.kind == "f":
            return np.asarray(np.isnan(self.values))
        if self.values.dtype.kind == "M":
            return np.asarray(np.isnat(self.values))
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
class SparseColumn:
    """A column of numbers in a sparse table, dense while its values are used."""

    name: str
    table: SparseTable
    position: int
    kind: ClassVar[str] = "number"

    @property
    def dtype(self) -> str:
        return str(self.table.dtype)

    @property
    def dense(self) -> ArrayColumn:
        return ArrayColumn(self.name, self.numbers())

    def numbers(self) -> np.ndarray:
        return np.asarray(self.table[:, self.position])

    def missing(self) -> np.ndarray:
        return self.dense.missing()

    def equals(self, value: str) -> np.ndarray:
        return self.dense.equals(value)

    def distinct(self) -> list[Any]:
        return self.dense.distinct()

    def labels(self) -> np.ndarray:
        return self.numbers()

    def with_rows(self, mask: np.ndarray) -> ArrayColumn:
        return self.dense.with_rows(mask)


@dataclass(frozen=True)
class ColumnTable:
    """A table as columns.

    Attributes
    ----------
    source : str
        Where it comes from, for messages: the name of an argument or of a file.
    columns : sequence of Column
    n_rows : int
    named : bool
        Whether the columns have names; if not, they are named by their index.
    matrix : ndarray or SparseTable (n_rows, n_columns), or None
        All columns as one array, if there is one.
    """

    source: str
    columns: Sequence[Column]
    n_rows: int
    named: bool = True
    matrix: Array | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def numeric_types(self) -> Sequence[str | None]:
        """For each column "number" or "boolean" if its type says that it holds nothing else; None
        if it does not, or if nobody knows without looking at the values."""
        if self.matrix is not None:
            return ["boolean" if self.matrix.dtype.kind == "b" else "number"] * len(self.columns)
        kinds = (own.kind if isinstance(own, ArrayColumn) else None for own in self.columns)
        return [kind if kind in NUMERIC else None for kind in kinds]

    def numbers(self, positions: Sequence[int]) -> np.ndarray:
        """Some columns (n_rows, n_positions), at least one; all have one of the `numeric_types`.

        A view of the table's own array where possible.
        """
        if self.matrix is not None:
            return picked_columns(self.matrix, positions)
        columns = [self.columns[position] for position in positions]
        together = side_by_side(columns)
        if together is None:
            together = np.empty((self.n_rows, len(columns)), dtype=common_dtype(columns), order="F")
            for j, column in enumerate(columns):
                together[:, j] = column.numbers()
        return together

    def numbers_with_room(
        self, positions: Sequence[int], at: Sequence[int], others: Sequence[Column], n_features: int
    ) -> np.ndarray:
        """An array (n_rows, n_features) in which some features are `numbers`.

        Parameters
        ----------
        positions : sequence of int
            The columns that are filled in; all have one of the `numeric_types`.
        at : sequence of int
            The features that they become.
        others : sequence of Column
            The columns of the other features, which the caller fills in; the dtype holds them, too.
        n_features : int
        """
        found = [self.numbers(positions)] if positions else []
        if found and len(positions) == n_features:
            return found[0]
        dtype = np.result_type(common_dtype(others), *found)
        X = np.empty((self.n_rows, n_features), dtype=dtype, order="F")
        for block in found:
            X[:, at] = block
        return X


@dataclass(frozen=True)
class WithoutWords:
    """A column in which some words, or the numbers that they are, stand for missing values."""

    column: Column
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def kind(self) -> str:
        return "empty" if self.missing().all() else self.column.kind

    @property
    def dtype(self) -> str:
        return self.column.dtype

    def numbers(self) -> np.ndarray:
        if self.column.kind != "number":
            return self.column.numbers()
        return without_numbers(self.column.numbers(), numbers_of(self.words))

    def missing(self) -> np.ndarray:
        missing = self.column.missing()
        if self.column.kind == "text":
            for word in self.words:
                missing = missing | self.column.equals(word)
        elif self.column.kind == "number":
            missing = missing | are_among(self.column.numbers(), numbers_of(self.words))
        return missing

    def equals(self, value: str) -> np.ndarray:
        return self.column.equals(value) & (value not in self.words)

    def distinct(self) -> list[Any]:
        values = self.column.distinct()
        if self.column.kind == "text":
            return [value for value in values if value not in self.words]
        if self.column.kind != "number":
            return values
        gone = are_among(np.asarray(values, dtype=self.dtype), numbers_of(self.words))
        return list(itertools.compress(values, ~gone))

    def labels(self) -> np.ndarray:
        return self.column.labels()

    def with_rows(self, mask: np.ndarray) -> Column:
        return WithoutWords(self.column.with_rows(mask), self.words)


@dataclass(frozen=True)
class AsText:
    """A column of numbers or booleans as text: 5 and 5.0 are "5", true is "true"."""

    column: Column

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def kind(self) -> str:
        return "text"

    @property
    def dtype(self) -> str:
        return ""

    def numbers(self) -> np.ndarray:
        raise TypeError(f"the column {self.name!r} is text")

    def missing(self) -> np.ndarray:
        return self.column.missing()

    def equals(self, value: str) -> np.ndarray:
        is_present, present = self._present
        text = value.lower() if self.column.kind == "boolean" else value
        wanted: bool | int | float = text == "true"
        if self.column.kind != "boolean" and is_plain_number(text):
            wanted = int(text) if present.dtype.kind in "iu" else float(text)
        found = is_present.copy()
        found[found] = present == wanted if self._text(wanted) == text else False
        return found

    @functools.cached_property
    def _present(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows have a value, and the values of these."""
        is_present = ~self.missing()
        return is_present, self.column.with_rows(is_present).labels()

    def distinct(self) -> list[Any]:
        present = [value for value in self.column.distinct() if value == value]  # no NaN
        return sorted(map(self._text, present))

    def labels(self) -> np.ndarray:
        return np.asarray([self._text(value) for value in self.column.labels().tolist()])

    def with_rows(self, mask: np.ndarray) -> Column:
        return AsText(self.column.with_rows(mask))

    def _text(self, value: object) -> str:
        return str(value).lower() if self.column.kind == "boolean" else _number_text(value)


def _number_text(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def is_number(text: str) -> bool:
    """Whether text is a number, as Python reads it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_plain_number(text: str) -> bool:
    """Whether text is a number as `AsText` writes it: 5, but not 05 or 5.0."""
    is_whole = re.fullmatch("-?[0-9]+", text) is not None
    return is_number(text) and _number_text(int(text) if is_whole else text) == text


def times_of_text(column: Column) -> ArrayColumn | None:
    """Text as times, if all of it is dates, or dates with times, in ISO 8601; otherwise None.

    A Z at the end, for UTC, is allowed; other zones are not.
    """
    present = ~column.missing()
    texts = column.with_rows(present).labels().tolist()
    if not all(map(_ISO_TIME.fullmatch, texts)):
        return None
    times = np.full(len(present), np.datetime64("NaT", "us"))
    try:
        times[present] = np.asarray([text.removesuffix("Z") for text in texts], dtype=str)
    except ValueError:  # there is no such day
        return None
    return ArrayColumn(column.name, times)


def numbers_of(words: Iterable[str]) -> tuple[float, ...]:
    """Those words that are numbers, as numbers."""
    return tuple(float(word) for word in words if is_number(word))


def are_among(values: np.ndarray, numbers: Sequence[float]) -> np.ndarray:
    """Where values are some numbers, rounded as the dtype of the values does; booleans are none."""
    wanted = np.asarray(numbers, dtype=np.float64)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            rounded = wanted.astype(values.dtype)
        wanted = rounded[np.isfinite(rounded) == np.isfinite(wanted)]
    return np.isin(values, wanted) & (values.dtype.kind != "b")


def without_numbers(values: np.ndarray, gone: Sequence[float]) -> np.ndarray:
    """The numbers with NaN in place of some of them; the array itself if it holds none of them."""
    hits = are_among(values, gone) if gone else np.zeros(1, dtype=bool)
    if not hits.any():
        return values
    values = np.array(values, dtype=np.result_type(values, np.float32), order="K")
    values[hits] = np.nan
    return values


def picked_columns(matrix: np.ndarray, positions: Sequence[int]) -> np.ndarray:
    """Columns of an array, without a copy if they are neighbours."""
    first, last = positions[0], positions[-1] + 1
    if list(positions) == list(range(first, last)):
        return matrix[:, first:last]
    return matrix[:, positions]


def without_words(table: ColumnTable, words: tuple[str, ...]) -> ColumnTable:
    """The table with missing values in place of some words, and of the numbers that they are."""
    if not words:
        return table
    columns = tuple(WithoutWords(column, words) for column in table.columns)
    matrix = table.matrix
    if matrix is not None:
        matrix = without_numbers(matrix, numbers_of(words))
    return replace(table, columns=columns, matrix=matrix)


def side_by_side(columns: Sequence[Column]) -> np.ndarray | None:
    """The part (n_rows, n_columns) of an array if these are its neighbouring columns; else None."""
    arrays = [column.values for column in columns if isinstance(column, ArrayColumn)]
    base = arrays[0].base if len(arrays) == len(columns) > 0 else None
    if base is None or base.ndim != 2 or not base.flags.f_contiguous or not len(base):
        return None
    places = [array.__array_interface__ for array in arrays]  # address, dtype, shape and strides
    start = places[0]["data"][0] - base.__array_interface__["data"][0]
    found = base[:, start // base.strides[1] :][:, : len(arrays)]
    return found if [own.__array_interface__ for own in found.T] == places else None


def refuse_repeated_names(names: Collection[Any], source: str) -> None:
    """Refuse two columns of one name; `source` is what has them.

    Raises
    ------
    ValueError
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if "" in repeated:
        raise ValueError(
            f"{source} has {list(names).count('')} columns without a name; name them. If there is "
            "a title above the names of the columns, remove it."
        )
    if repeated:
        raise ValueError(
            f"{source} has two columns named {quoted(repeated[0])}; rename one of them."
        )


def common_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    """The narrowest dtype, float32 or wider, that holds the numbers of all columns but text."""
    numeric = [column.dtype for column in columns if column.kind != "text"]
    return np.result_type(np.float32, *numeric)


def values_of_kind(kind: str) -> str:
    """The values of a kind of column, in words."""
    if kind in (*NUMERIC, *TEMPORAL):
        return f"{kind}s"
    if kind == "object":
        return "Python objects"
    return "text" if kind in ("category", "numbered", "text") else f"values of type {kind}"
