"""Frames of pandas, polars, pyarrow and others as columns; narwhals gives them one interface.

A call of narwhals takes some microseconds, and a column needs many of them. So the columns whose
type says that they hold numbers become an array at once, by their library's own means; narwhals
reads the others. A frame that is a plan rather than data (polars' LazyFrame, Dask) is refused: the
caller decides when it is computed.

The type of a column decides whether float32 holds it (`_NARROW`), and so whether a table is one of
float32 or of float64. A column without any value has no type. Python objects have the type that
their values have: bool is Boolean, int, float and Decimal are numbers of 64 bits, and NumPy's
scalars are of their own dtype.
"""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.order_keys import working_dtype
from gpustump.data.columns import (
    NUMERIC,
    ArrayColumn,
    Column,
    ColumnTable,
    picked_columns,
    refuse_repeated_names,
    values_of_kind,
)
from gpustump.data.input_arrays import is_missing, refuse_plan
from gpustump.data.readable import (
    MOST_LISTED,
    counted,
    quoted,
    readable_bytes,
    shortened,
    thousands,
)

_NARROW = {"Boolean", "Int8", "UInt8", "Int16", "UInt16", "Float16", "Float32"}
"""Types whose values float32 holds."""

_WIDE = {"Int32", "UInt32", "Int64", "UInt64", "Float64"}
"""Other types of numbers that become an array at once."""

_TYPES = {name.lower(): name for name in (*_NARROW, *_WIDE)} | {
    "bool": "Boolean",
    "halffloat": "Float16",
    "float": "Float32",
    "double": "Float64",
}
"""These types by their names in pandas, polars and pyarrow, in lower case."""

LONG_TEXT, MOST_CHARACTERS = 1000, 2**28
"""NumPy's arrays of text give every row the room of the longest text, 4 bytes a character. A text
of more than `LONG_TEXT` characters is refused if the array would have room for more than
`MOST_CHARACTERS` (1 GiB): one such value in a small file could fill any memory."""


def columns_of(X: Any, name: str = "X") -> ColumnTable | None:
    """A frame as columns; None for an object that is not a frame.

    If no name of a column is text, columns are named by their index, as in scikit-learn. If only
    some names are text, the other columns could not be found by name, and the frame is refused.

    Parameters
    ----------
    X : object
    name : str
        What the argument is called in messages.

    Raises
    ------
    TypeError
        If it is a plan of how to compute a frame, without data; or if some names of columns are
        text and others are not.
    ValueError
        If two columns have one name.
    """
    of_arrow = hasattr(type(X), "column_names")
    if not (of_arrow or hasattr(type(X), "columns")) or arrays.is_array(X):
        return None
    refuse_plan(X, name)
    names = X.column_names if of_arrow else X.columns
    names = names.tolist() if hasattr(names, "tolist") else list(names)
    refuse_repeated_names(names, name)
    named = _are_text(names, name)
    shown = [str(one) if named else str(j) for j, one in enumerate(names)]
    for library, kind in _LIBRARIES.items():
        if isinstance(X, getattr(sys.modules.get(library), kind, ())):
            frame: Any = X  # what isinstance says of it is of no use to mypy
            return FrameTable(name, FrameColumns(X, shown), len(frame), named, library=library)
    try:
        columns = FrameColumns(X, shown)
        return FrameTable(name, columns, len(columns.frame), named)
    except TypeError:  # some other object with an attribute of this name
        return None


def with_columns(X: Any, names: Sequence[str]) -> Any:
    """A frame with these columns only, in this order; X itself if it does not have all of them."""
    table = columns_of(X)
    if table is None or not table.named or not {*names} <= {*table.names}:
        return X
    import narwhals.stable.v2 as nw

    return nw.from_native(X, eager_only=True).select(list(names)).to_native()


_LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
"""Libraries whose columns of numbers become an array at once, and their types of frames."""


class FrameColumns(Sequence[Column]):
    """The columns of a frame, each of which narwhals reads once it is asked for.

    Parameters
    ----------
    native : frame
    names : list of str
    """

    def __init__(self, native: Any, names: list[str]) -> None:
        self.native, self.names = native, names
        self._found: dict[int, Column] = {}

    @cached_property
    def frame(self) -> Any:
        """The frame as narwhals has it."""
        import narwhals.stable.v2 as nw

        return nw.from_native(self.native, eager_only=True)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, at: Any) -> Any:
        if at not in self._found:
            self._found[at] = _column(self.frame[:, range(len(self))[at]], self.names[at])
        return self._found[at]


@dataclass(frozen=True)
class FrameTable(ColumnTable):
    """A frame as columns.

    Attributes
    ----------
    source, columns, n_rows, named, matrix
        As `ColumnTable` has them; there is no matrix.
    library : str or None
        The library of the frame, if its columns of numbers become an array at once.
    """

    columns: FrameColumns
    library: str | None = None

    @property
    def names(self) -> list[str]:
        return self.columns.names

    @cached_property
    def _types(self) -> list[str | None]:
        """For each column the name of its type, if it is one of `_TYPES`."""
        native = self.columns.native
        if self.library is None:
            return [None] * len(self.columns)
        of_arrow = self.library == "pyarrow"
        dtypes = native.schema.types if of_arrow else list(native.dtypes)
        known = {
            dtype: _TYPES.get(str(dtype).removesuffix("[pyarrow]").lower()) for dtype in {*dtypes}
        }
        return [known[dtype] for dtype in dtypes]

    @cached_property
    def numeric_types(self) -> Sequence[str | None]:
        kinds = {None: None, "Boolean": "boolean"}
        return [kinds.get(own, "number") for own in self._types]

    def numbers(self, positions: Sequence[int]) -> np.ndarray:
        native, types = self.columns.native, [self._types[position] for position in positions]
        wide = [j for j, own in enumerate(types) if own not in _NARROW]
        dtype = np.dtype(np.float64 if wide else np.float32)
        is_whole = len({*positions}) == len(self.columns)  # NumPy puts columns in order much faster
        if self.library == "pandas":
            part = native if is_whole else native.iloc[:, list(positions)]
            found = _array_of_pandas(part, dtype)
        elif self.library == "polars":
            part = native if is_whole else native[:, list(positions)]
            found = _array_of_polars(part, dtype)
        else:
            columns = native.columns if is_whole else [native.column(j) for j in positions]
            found = _array_of_arrow(columns, len(native), dtype)
        if is_whole:
            found = picked_columns(found, positions)
        if wide and all(np.isnan(found[:1, j]).all() and np.isnan(found[:, j]).all() for j in wide):
            return found.astype(np.float32)  # columns without any value have no type
        return found


def _array_of_pandas(X: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """A frame of pandas as an array; a view if its columns have one dtype of NumPy's."""
    dtypes = {*X.dtypes}
    if all(isinstance(own, np.dtype) for own in dtypes):
        return np.asarray(X.to_numpy() if len(dtypes) == 1 else X.to_numpy(dtype=dtype))
    return np.asarray(X.to_numpy(dtype=dtype, na_value=np.nan))


def _array_of_polars(X: Any, dtype: np.dtype[Any]) -> np.ndarray:
    import polars as pl

    return np.asarray(X.cast(pl.Float64 if dtype == np.float64 else pl.Float32).to_numpy())


def _array_of_arrow(columns: Sequence[Any], n_rows: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Columns of pyarrow side by side; a cast is made only where there are missing values."""
    found = np.empty((n_rows, len(columns)), dtype=dtype, order="F")
    for j, column in enumerate(columns):
        whole = column.cast(str(dtype), safe=False) if column.null_count else column
        found[:, j] = whole.to_numpy()
    return found


def numbers_of(table: ColumnTable) -> np.ndarray:
    """All columns as one array (n_rows, n_columns) of numbers.

    Raises
    ------
    ValueError
        If columns hold something other than numbers; the message names them.
    """
    types = table.numeric_types
    others = {j: table.columns[j] for j, own in enumerate(types) if own is None}
    refuse_all_but_numbers(list(others.values()), table.source)
    plain = [j for j in range(len(types)) if j not in others]
    X = table.numbers_with_room(plain, plain, list(others.values()), len(types))
    for j, column in others.items():
        X[:, j] = column.numbers()
    return X


def refuse_all_but_numbers(columns: Sequence[Column], source: str) -> None:
    """Refuse columns that hold something other than numbers, by name.

    Raises
    ------
    ValueError
    """
    refused = [column for column in columns if column.kind not in (*NUMERIC, "empty")]
    if refused:
        shown = ", ".join(_shown(column) for column in refused[:MOST_LISTED])
        more = f" and {len(refused) - MOST_LISTED} more" if len(refused) > MOST_LISTED else ""
        raise ValueError(
            f"{source} has columns that do not hold numbers: {shown}{more}. Encode text, for "
            "example with sklearn.preprocessing.OneHotEncoder, turn dates and times into numbers, "
            "or drop these columns."
        )


def number_categories(table: ColumnTable) -> list[str]:
    """The names of columns whose categories are numbers; they count as columns of numbers."""
    columns = [table.columns[j] for j, own in enumerate(table.numeric_types) if own is None]
    return [
        column.name
        for column in columns
        if isinstance(column, FrameColumn) and column.has_number_categories
    ]


def _shown(column: Column) -> str:
    """A column's name, its kind and its first value."""
    first = column.series.drop_nulls().head(1).to_list() if isinstance(column, FrameColumn) else []
    example = f", such as {shortened(str(first[0]))}" if first else ""
    return f"{quoted(column.name)} ({values_of_kind(column.kind)}{example})"


def _are_text(names: list[Any], argument: str) -> bool:
    """Whether the names of a frame's columns are text; False if none of them is."""
    other = [name for name in names if not isinstance(name, str)]
    if other and len(other) < len(names):
        raise TypeError(
            f"{argument} has columns whose names are text, and others whose names are not, such as "
            f"{quoted(other[0])}; make all of them text: X.columns = X.columns.astype(str)."
        )
    return bool(names) and not other


def _column(series: Any, name: str) -> Column:
    """A column. Python objects that are all numbers, or all dates, become a column of these."""
    known = _with_known_categories(_with_known_type(series))
    column = FrameColumn(name, known)
    if column.kind != "object":
        return column
    import narwhals.stable.v2 as nw

    values, is_pandas = series.to_list(), series.implementation.is_pandas()
    kinds = {type(value) for value in values if not is_missing(value)}
    if is_pandas and all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        nullable = series.to_native().astype("boolean")
        return FrameColumn(name, nw.from_native(nullable, series_only=True))
    if all(issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_)) for kind in kinds):
        floats = [np.nan if is_missing(value) else float(value) for value in values]
        return ArrayColumn(name, np.asarray(floats, dtype=np.result_type(*map(_dtype_of, kinds))))
    if is_pandas and all(issubclass(kind, dt.date) for kind in kinds):
        return _column_of_dates(column)
    return column


def _dtype_of(kind: type) -> Any:
    """The dtype of numbers of a Python type."""
    if issubclass(kind, (bool, np.generic)):
        return working_dtype(np.dtype(kind).name) or np.float64
    return np.float64


def _with_known_categories(series: Any) -> Any:
    """The series with categories that narwhals knows: not pyarrow's dictionaries within pandas."""
    is_pandas = series.implementation.is_pandas()
    if not is_pandas or not str(series.to_native().dtype).startswith("dictionary<"):
        return series
    import narwhals.stable.v2 as nw

    return nw.from_native(series.to_frame().to_arrow(), eager_only=True)[:, 0]


def _with_known_type(series: Any) -> Any:
    """Values of pandas in a type that narwhals knows: times in UTC if it does not know their zone,
    as it knows only named zones; float16, which it knows from 2.23 on, as float32; sparse values as
    dense ones."""
    if str(series.dtype) != "Unknown":
        return series
    import narwhals.stable.v2 as nw

    native = series.to_native()
    dtype = getattr(native, "dtype", None)
    if getattr(dtype, "tz", None) is not None:
        return nw.from_native(native.dt.tz_convert("UTC"), series_only=True)
    if str(dtype) == "float16":
        return nw.from_native(native.astype("float32"), series_only=True)
    if str(dtype).startswith("Sparse["):  # beside dense columns
        return _with_known_type(nw.from_native(native.sparse.to_dense(), series_only=True))
    return series


def _column_of_dates(column: FrameColumn) -> FrameColumn:
    """Python's dates and datetimes in pandas' own type; the column itself if that fails."""
    import narwhals.stable.v2 as nw
    import pandas as pd

    try:
        times = pd.to_datetime(column.series.to_native())
    except (ValueError, TypeError):  # some have a zone and some have none, or the year 9999
        return column
    return FrameColumn(column.name, nw.from_native(times, series_only=True))


@dataclass(frozen=True)
class FrameColumn:
    """A column that is a series of narwhals; see `Column`."""

    name: str
    series: Any

    @cached_property
    def _dtype(self) -> Any:
        """Its type, for which narwhals looks at values."""
        return self.series.dtype

    @property
    def _type(self) -> str:
        """The name of its type, without units and categories."""
        return str(self._dtype).partition("(")[0]

    @property
    def is_category(self) -> bool:
        """Whether it has the frame's own type for categories."""
        return self._type in ("Categorical", "Enum")

    @property
    def has_number_categories(self) -> bool:
        """Whether the values are categories that are numbers, as pandas has them."""
        return self.is_category and bool(self._category_type.is_numeric())

    @property
    def _category_type(self) -> Any:
        return self.series.cat.get_categories().dtype

    @cached_property
    def kind(self) -> str:
        if self._is_empty:
            return "empty"
        if self._dtype.is_numeric():
            return "number"
        if self._type == "Unknown":
            return str(getattr(self.series.to_native(), "dtype", "unknown"))
        if self._type in ("String", "Categorical", "Enum"):
            return "number" if self.has_number_categories else "text"
        return self._type.lower()

    @property
    def dtype(self) -> str:
        own = str(self._category_type) if self.has_number_categories else self._type
        return "float32" if own in _NARROW or self._is_empty else "float64"

    @cached_property
    def _is_empty(self) -> bool:
        first = self.series.head(1)  # mostly, this decides it
        return bool(_missing_in(first).all()) and bool(_missing_in(self.series).all())

    def numbers(self) -> np.ndarray:
        import narwhals.stable.v2 as nw

        series, kind = self.series, self.kind
        if kind == "empty":
            return np.full(len(series), np.nan, dtype=np.float32)
        a_unit = 1  # the series' numbers in one of our units; NumPy divides with correct rounding
        if kind == "date":
            series, a_unit = series.dt.timestamp("ms"), 86_400_000
        elif kind == "datetime":
            series, a_unit = series.dt.timestamp("us"), 10**6
        elif kind == "duration":
            series, a_unit = series.dt.total_microseconds(), 10**6
        elif kind == "time":
            parts = (series.dt.hour(), series.dt.minute(), series.dt.second())
            hours, minutes, seconds = (part.cast(nw.Int64) for part in parts)
            seconds = hours * 3600 + minutes * 60 + seconds
            series = seconds * 10**9 + series.dt.nanosecond().cast(nw.Int64)
            a_unit = 10**9
        wanted = nw.Float32 if self.dtype == "float32" else nw.Float64
        numbers = np.asarray(
            _without_decimals(series).cast(wanted).fill_null(float("nan")).to_numpy()
        )
        return numbers / a_unit if a_unit != 1 else numbers

    def missing(self) -> np.ndarray:
        return np.asarray(_missing_in(self.series).to_numpy(), dtype=bool)

    def equals(self, value: str) -> np.ndarray:
        return np.asarray((self._text() == value).fill_null(False).to_numpy(), dtype=bool)

    def distinct(self) -> list[Any]:
        series = self._text() if self.kind == "text" else self.series
        return sorted(series.drop_nulls().unique().to_list())

    def labels(self) -> np.ndarray:
        import narwhals.stable.v2 as nw

        if self.kind == "text":
            return self._text_array()
        if self._dtype.is_decimal():
            return np.asarray(_without_decimals(self.series).cast(nw.Float64).to_numpy())
        if self._type in ("Int128", "UInt128"):
            values = self.series.to_list()
            if any(abs(value) >= 2**63 for value in values):
                raise ValueError(
                    f"the column {quoted(self.name)} holds integers of more than 64 bits; as "
                    "labels, write them as text."
                )
            return np.asarray(values, dtype=np.int64)
        return np.asarray(self.series.to_numpy())

    def with_rows(self, mask: np.ndarray) -> FrameColumn:
        return FrameColumn(self.name, self.series.filter(mask.tolist()))

    def _text_array(self) -> np.ndarray:
        """The text as an array (n_rows,), in which each row takes the room of the longest text.

        Raises
        ------
        ValueError
            If one long text would take a gigabyte, or more, in all rows.
        """
        texts = self._text().to_list()
        longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
        if longest > LONG_TEXT and longest * len(texts) > MOST_CHARACTERS:
            raise ValueError(
                f"the column {quoted(self.name)} holds a text of {thousands(longest)} characters, "
                f"for which an array of {counted(len(texts), 'row')} would take "
                f"{readable_bytes(4 * longest * len(texts))}; shorten it."
            )
        return np.asarray(texts)

    def _text(self) -> Any:
        import narwhals.stable.v2 as nw

        if self._dtype == nw.String:  # in pandas 2, a cast makes the text "None" of None
            return self.series
        text = self.series.cast(nw.String)
        is_truth = self.is_category and self._category_type == nw.Boolean
        return text.str.to_lowercase() if is_truth else text  # as a column of booleans has it


def _without_decimals(series: Any) -> Any:
    """Decimals as text, which all libraries read with correct rounding; pyarrow's own conversion
    to floats is off by a digit for some."""
    import narwhals.stable.v2 as nw

    return series.cast(nw.String) if series.dtype.is_decimal() else series


def _missing_in(series: Any) -> Any:
    """Where a series has no value, or NaN."""
    missing = series.is_null()
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(True)
    return missing
