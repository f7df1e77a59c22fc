"""The caller's table and the rows of it that take part. It is never copied whole."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.category_table import hidden
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.intrinsics import int32_at, int64_at

ALL_ROWS = np.empty(0, dtype=np.int64)
"""Instead of row numbers: all rows."""


@group
class Values(NamedTuple):
    """Where the values of a table are, whose keys kernels compute as `arrays.order_keys` does.

    Attributes
    ----------
    address : int
        Of the first value; the table must stay alive. 0 if kernels cannot read the values.
    by_row, by_column : int
        Bytes from a value to that in the next row, and in the next column.
    is_double : bool
        Whether they are of float64, else of float32.
    rows : ndarray (n_samples,) of int64
        The rows that are samples; empty if all are.
    lowest : int
        A negative bit pattern is subtracted from this.
    """

    address: int
    by_row: int
    by_column: int
    is_double: bool
    rows: Integers
    lowest: int


def values_in(X: np.ndarray, rows: np.ndarray) -> Values:
    """The values of a table of float32 or float64, aligned; `rows` as in `Values`."""
    by_row, by_column = X.strides
    dtype, address = arrays.dtype_name(X), X.__array_interface__["data"][0]
    lowest = -arrays.missing_key(dtype) - 1
    return Values(address, by_row, by_column, dtype == "float64", rows, lowest)


@inner("int64(Values, int64, int64)")
def key_at(values, sample, feature):  # type: ignore[no-untyped-def]
    """The key of a sample's value."""
    row = values.rows[sample] if len(values.rows) > 0 else sample
    address = values.address + row * values.by_row + feature * values.by_column
    bits = int64_at(address) if values.is_double else int32_at(address)
    return bits if bits >= 0 else values.lowest - bits


@dataclass(frozen=True)
class Source:
    """A table, and which rows of it are samples.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
        The caller's own table.
    rows : ndarray (n_samples,) of int64, or None
        The rows that are samples; None if all are.
    categorical : tuple of int
        `block`, and `picked` for a slice, return NaN for all values of these features; `values`
        returns the true ones.
    """

    X: np.ndarray
    rows: np.ndarray | None
    categorical: tuple[int, ...] = ()

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0] if self.rows is None else self.rows.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def working_dtype(self) -> np.dtype:
        """The dtype in which values are compared."""
        return np.dtype(arrays.working_dtype(arrays.dtype_name(self.X)))

    @property
    def is_half(self) -> bool:
        """Whether values are compared in float16, a type that kernels do not have."""
        return self.working_dtype == np.float16

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether kernels can read the values where they are: float32 or float64, aligned."""
        return self.X.dtype in (np.float32, np.float64) and self.X.flags.aligned

    @property
    def rows_for_kernels(self) -> np.ndarray:
        """`rows`; empty if all of them take part."""
        return ALL_ROWS if self.rows is None else self.rows

    @property  # not kept: a copy of the table is elsewhere
    def in_memory(self) -> Values:
        """Where kernels find the values; the address is 0 if they cannot read them."""
        if not self.is_plain:
            return Values(0, 0, 0, False, self.rows_for_kernels, 0)
        return values_in(self.X, self.rows_for_kernels)

    def block(self, samples: slice, features: slice) -> np.ndarray:
        """Values as given, of some samples and features."""
        rows = samples if self.rows is None else self.rows[samples]
        found: np.ndarray = hidden(self.X[rows, features], features.start, self.categorical)
        return found

    def picked(self, samples: np.ndarray, features: slice | int | np.ndarray) -> np.ndarray:
        """Values of some samples, in the dtype in which they are compared.

        If `features` is an array, it has one feature for each sample.
        """
        rows = samples if self.rows is None else self.rows[samples]
        found: np.ndarray = arrays.as_working(self.X[rows, features])
        if isinstance(features, slice):
            found = hidden(found, features.start, self.categorical)
        return found

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        column = self.X[:, feature] if self.rows is None else self.X[self.rows, feature]
        found: np.ndarray = arrays.as_working(column)
        return found


def plain(X: np.ndarray, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Values as float32 or float64, and the rows to use (empty for all).

    A table of one of these types is not copied.
    """
    if X.dtype in (np.float32, np.float64) and X.flags.aligned:
        return X, ALL_ROWS if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
    return codable(X if rows is None else X[rows]), ALL_ROWS


def codable(values: np.ndarray) -> np.ndarray:
    """Values as float32 or float64, without loss."""
    values = arrays.as_working(values)
    return values.astype(np.float32) if values.dtype == np.float16 else values
