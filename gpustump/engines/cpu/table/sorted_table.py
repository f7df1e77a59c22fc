"""Every feature of a table sorted whole.

The order of a feature has four bytes for each sample; the sign bit is set if the next sample has
the same value, so that there is no cut between the two. Tables of medium size are divided into bins
as well (`small_bins`).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group
from gpustump.engines.cpu.table.source_table import Source
from gpustump.engines.threads import Team, ranges
from gpustump.learners.thresholds import midpoint

ELEMENTS_AT_ONCE = 2**17
"""Fewer elements than this are not worth another thread."""

SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


@group
class SortedColumns(NamedTuple):
    """The features of a sorted table, as kernels take them.

    Attributes
    ----------
    order : ndarray (n_features, n_samples) of int32
        Samples by increasing value, missing ones last, with the sign bit as said above.
    n_present : ndarray (n_features,) of int64
    begin : ndarray (n_columns + 1,) of int64
        The first feature of each column; last, n_features. Without bins every feature is a column.
    codes : ndarray (n_features, n_samples) of uint8
        The columns of codes; each is in the row of its first feature. Of no rows without bins; then
        the fields below mean nothing.
    n_codes : ndarray (n_features,) of int64
        All codes of a column are below this, in the row of its first feature.
    n_bins : ndarray (n_features,) of int64
    offset : ndarray (n_features, most_bins + 1) of int64
        The sorted position where each bin begins; after the last one, `n_present`.
    is_open : ndarray (n_features, most_bins) of uint8
        Whether a bin has several values, so that there are cuts inside.
    majority : ndarray (n_features,) of int64
        The bin, or `n_bins` for missing values, that holds most samples; -1 if none does. It has no
        code of its own.
    first_code : ndarray (n_features,) of int64
        The code of the first bin that has one; those of the others, and that of missing values,
        follow.
    has_open : ndarray (n_features,) of uint8
        Whether one of a feature's bins has.
    most_open : int
        The largest number of samples in such a bin.
    """

    order: Annotated[np.ndarray, "int32[:, ::1]"]
    n_present: Integers
    begin: Integers
    codes: Annotated[np.ndarray, "uint8[:, ::1]"]
    n_codes: Integers
    n_bins: Integers
    offset: Annotated[np.ndarray, "int64[:, ::1]"]
    is_open: Annotated[np.ndarray, "uint8[:, ::1]"]
    majority: Integers
    first_code: Integers
    has_open: Bytes
    most_open: int

    @classmethod
    def without_bins(cls, order: np.ndarray, n_present: np.ndarray) -> SortedColumns:
        """Of a table that is scanned whole."""
        n_features, n_samples = order.shape
        nothing = np.zeros(n_features, dtype=np.int64)
        return cls(
            order, n_present, np.arange(n_features + 1),
            np.empty((0, n_samples), dtype=np.uint8), nothing, nothing,
            np.zeros((n_features, 2), dtype=np.int64), np.zeros((n_features, 1), dtype=np.uint8),
            nothing, nothing, np.zeros(n_features, dtype=np.uint8), 0,
        )  # fmt: skip


@dataclass(frozen=True)
class SortedTable:
    """A feature table, sorted.

    Attributes
    ----------
    source : Source
        The caller's own table.
    columns : SortedColumns
    team : Team
    """

    source: Source
    columns: SortedColumns
    team: Team

    @property
    def order(self) -> np.ndarray:
        return self.columns.order

    @property
    def n_present(self) -> np.ndarray:
        return self.columns.n_present

    @property
    def has_bins(self) -> bool:
        """Whether features are divided into bins."""
        return len(self.columns.codes) > 0

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """All results of `threshold`, (n_features, n_samples) of float64; not for float16."""
        from gpustump.engines.cpu.table.thresholds import thresholds_of  # a scan needs no kernel

        return thresholds_of(self.source, self.order, self.n_present)

    @functools.cached_property
    def _working(self) -> type[np.generic]:
        """The type in which values are compared."""
        return self.source.working_dtype.type

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.source.X

    @property
    def n_samples(self) -> int:
        return int(self.order.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.order.shape[0])

    @property
    def n_missing(self) -> np.ndarray:
        return self.n_samples - self.n_present

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.source.values(feature)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_present[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def _value(self, feature: int, position: int) -> Any:
        sample = int(self.order[feature, position] & SAMPLE)
        row = sample if self.source.rows is None else int(self.source.rows[sample])
        return self._working(self.X[row, feature])


def prepare(
    X: np.ndarray, rows: np.ndarray | None, team: Team, categorical: tuple[int, ...] = ()
) -> SortedTable:
    """Sort a table (n_samples, n_features).

    Parameters
    ----------
    X : ndarray
    rows : ndarray of int64 or None
    team : Team
    categorical : tuple of int
        See `contract.Task`.
    """
    source = Source(X, rows, categorical)
    n_samples, n_features = source.n_samples, source.n_features
    order = np.empty((n_features, n_samples), dtype=np.int32)
    n_present = np.empty(n_features, dtype=np.int64)

    def sort(part: tuple[int, int]) -> None:
        here = slice(*part)
        block = source.block(slice(None), here)
        values = np.ascontiguousarray(arrays.as_working(block).T)
        keys = arrays.order_keys(values)
        if keys.dtype.itemsize <= 4:  # key and sample in one integer: sorting those is quickest
            both = (keys.astype(np.int64) << 32) | np.arange(n_samples)
            both.sort(axis=1)
            samples, keys = (both & SAMPLE).astype(np.int32), both >> 32
        else:
            samples = np.argsort(keys, axis=1).astype(np.int32)
            keys = np.take_along_axis(keys, samples, axis=1)
        lacks = keys == arrays.missing_key(arrays.dtype_name(values))
        samples[:, :-1][keys[:, 1:] == keys[:, :-1]] |= ~SAMPLE
        order[here] = samples
        n_present[here] = n_samples - np.count_nonzero(lacks, axis=1)

    team.each(sort, ranges(n_features, max(1, ELEMENTS_AT_ONCE // n_samples)))
    return SortedTable(source, SortedColumns.without_bins(order, n_present), team)
