"""Frames of pandas, polars, pyarrow and others as columns; narwhals knows how each is asked.

Only an object that looks like a frame makes this file import narwhals, which scikit-learn needs
anyway. A frame that is a plan rather than data (polars' LazyFrame, Dask) is refused: computing it
is a decision of the caller's.
"""

from __future__ import annotations

import decimal
import numbers
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.data.columns import ArrayColumn, Column, ColumnTable
from gpustump.data.input_arrays import is_missing
from gpustump.data.readable import quoted

_PLANS = {"LazyFrame": "collect()", "dask": "compute()"}
"""How users make data of a plan, by the name of its type or of its library."""

_NARROW = {"Boolean", "Int8", "UInt8", "Int16", "UInt16", "Float16", "Float32"}
"""Types whose values float32 holds."""


def is_frame(X: Any) -> bool:
    """Whether an object has named columns, as the frames of all libraries do."""
    looks_so = hasattr(type(X), "columns") or hasattr(type(X), "column_names")
    return looks_so and not arrays.is_array(X)


def columns_of(X: Any, name: str = "X") -> ColumnTable | None:
    """A frame as columns; None for an object that is no frame.

    Columns whose names are not all text are named by their index, as scikit-learn has it.

    Parameters
    ----------
    X : object
    name : str
        What the argument is called in messages.

    Raises
    ------
    TypeError
        If it is a frame without data: a plan of how to compute it.
    ValueError
        If two columns have one name.
    """
    if not is_frame(X):
        return None
    refuse_plan(X, name)
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:  # some other object with an attribute of this name
        return None
    names = _names_of(X, frame)
    _refuse_repeated(names, name)
    named = bool(names) and all(isinstance(one, str) for one in names)
    shown = [str(one) if named else str(j) for j, one in enumerate(names)]
    columns = tuple(_column(frame[:, j], shown[j]) for j in range(len(shown)))
    return ColumnTable(name, columns, len(frame), named)


def refuse_plan(X: Any, name: str) -> None:
    """Refuse a frame or array that is a plan of how to compute its rows.

    Raises
    ------
    TypeError
    """
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    how = _PLANS.get(kind) or _PLANS.get(library)
    if how is not None:
        raise TypeError(
            f"{name} is a {kind} of {library}, which holds no rows yet; pass {name}.{how}."
        )


def _names_of(X: Any, frame: Any) -> list[Any]:
    """The columns' names as their library has them: numbers and tuples, too, in pandas."""
    return list(X.columns) if frame.implementation.is_pandas_like() else list(frame.columns)


def _refuse_repeated(names: list[Any], argument: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{argument} has two columns named {quoted(repeated[0])}; rename one of them."
        )


def _column(series: Any, name: str) -> Column:
    """A column; Python objects that are all numbers are taken as numbers."""
    column = FrameColumn(name, series)
    if column.kind != "object":
        return column
    values = series.to_list()
    kinds = {type(value) for value in values if not is_missing(value)}
    if all(issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_)) for kind in kinds):
        floats = [np.nan if is_missing(value) else float(value) for value in values]
        return ArrayColumn(name, np.asarray(floats))
    return column


@dataclass(frozen=True)
class FrameColumn:
    """A column that is a series of narwhals; see `Column`."""

    name: str
    series: Any

    @property
    def _type(self) -> str:
        """The name of its type, without units and categories."""
        return str(self.series.dtype).partition("(")[0]

    @cached_property
    def kind(self) -> str:
        if self.series.null_count() == len(self.series):
            return "empty"
        if self.series.dtype.is_numeric():
            return "number"
        words = {"String": "text", "Categorical": "text", "Enum": "text"}
        return words.get(self._type, self._type.lower())

    @property
    def dtype(self) -> str:
        return "float32" if self.kind == "empty" or self._type in _NARROW else "float64"

    def numbers(self) -> np.ndarray:
        import narwhals.stable.v2 as nw

        series, kind, per_unit = self.series, self.kind, 1.0
        if kind == "empty":
            return np.full(len(series), np.nan, dtype=np.float32)
        if kind == "date":
            series, per_unit = series.dt.timestamp("ms"), 86_400_000.0
        elif kind == "datetime":
            series, per_unit = series.dt.timestamp("us"), 1e6
        elif kind == "duration":
            series, per_unit = series.dt.total_microseconds(), 1e6
        elif kind == "time":
            parts = (series.dt.hour(), series.dt.minute(), series.dt.second())
            hours, minutes, seconds = (part.cast(nw.Int64) for part in parts)
            whole = hours * 3600 + minutes * 60 + seconds
            series, per_unit = whole * 10**9 + series.dt.nanosecond().cast(nw.Int64), 1e9
        wanted = nw.Float32 if self.dtype == "float32" else nw.Float64
        values = np.asarray(series.cast(wanted).fill_null(float("nan")).to_numpy())
        # NumPy divides; polars multiplies by the reciprocal, which may differ in the last digit.
        return values if per_unit == 1.0 else values / per_unit

    def missing(self) -> np.ndarray:
        missing = self.series.is_null()
        if self.series.dtype.is_float():
            missing = missing | self.series.is_nan().fill_null(True)
        return np.asarray(missing.to_numpy(), dtype=bool)

    def equals(self, value: str) -> np.ndarray:
        return np.asarray((self._text() == value).fill_null(False).to_numpy(), dtype=bool)

    def distinct(self) -> list[Any]:
        series = self._text() if self.kind == "text" else self.series
        return sorted(series.drop_nulls().unique().to_list())

    def labels(self) -> np.ndarray:
        import narwhals.stable.v2 as nw

        if self.kind == "text":
            return np.asarray(self._text().to_list())
        if self.series.dtype.is_decimal():
            return np.asarray(self.series.cast(nw.Float64).to_numpy())
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

    def _text(self) -> Any:
        import narwhals.stable.v2 as nw

        return self.series.cast(nw.String)
