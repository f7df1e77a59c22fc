"""Every feature of a table sorted whole.

The order of a feature has four bytes for each sample; the sign bit is set if the next sample has
the same value, so that there is no cut between the two.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpustump import arrays
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.source_table import Source, plain
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import Partition
from gpustump.learners.thresholds import midpoint

_ELEMENTS_AT_ONCE = 2**17
"""Fewer elements than this are not worth another thread."""

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


@dataclass(frozen=True)
class SortedTable:
    """A feature table, sorted.

    Attributes
    ----------
    source : Source
        The caller's own table.
    order : ndarray (n_features, n_samples) of int32
        Samples by increasing value, missing ones last, with the sign bit as said above.
    n_present : ndarray (n_features,) of int64
    team : Team
    """

    source: Source
    order: np.ndarray
    n_present: np.ndarray
    team: Team
    note: ClassVar[str | None] = None

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """All results of `threshold`, (n_features, n_samples) of float64; not for float16."""
        return _thresholds_of(self.source, self.order, self.n_present)

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

    def parts(self, n_outputs: int) -> list[tuple[int, int]]:
        """Ranges of features, each large enough to be worth another thread."""
        return ranges(self.n_features, max(1, _ELEMENTS_AT_ONCE // (self.n_samples * n_outputs)))

    def has_cut(self, cut: Cut, hypothesis: Partition) -> bool:
        """Whether a stump or split has the same regions as a cut."""
        if cut.after is not None or hypothesis.feature != cut.feature:
            return False
        if cut.position is None or cut.position + 1 >= self.n_present[cut.feature]:
            return hypothesis.thresholds == (math.inf,)
        low, high = (float(self._value(cut.feature, cut.position + step)) for step in (0, 1))
        return len(hypothesis.thresholds) == 1 and low <= hypothesis.thresholds[0] < high

    def _value(self, feature: int, position: int) -> Any:
        sample = int(self.order[feature, position] & _SAMPLE)
        row = sample if self.source.rows is None else int(self.source.rows[sample])
        return self._working(self.X[row, feature])


def prepare(
    X: np.ndarray, rows: np.ndarray | None, team: Team, categorical: tuple[int, ...] = ()
) -> SortedTable:
    """Sort a table (n_samples, n_features); for `categorical` see `contract.Task`."""
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
            samples, keys = (both & _SAMPLE).astype(np.int32), both >> 32
        else:
            samples = np.argsort(keys, axis=1).astype(np.int32)
            keys = np.take_along_axis(keys, samples, axis=1)
        lacks = keys == arrays.missing_key(arrays.dtype_name(values))
        samples[:, :-1][keys[:, 1:] == keys[:, :-1]] |= ~_SAMPLE
        order[here], n_present[here] = samples, n_samples - np.count_nonzero(lacks, axis=1)

    team.each(sort, ranges(n_features, max(1, _ELEMENTS_AT_ONCE // n_samples)))
    return SortedTable(source, order, n_present, team)


def _thresholds_of(source: Source, order: np.ndarray, n_present: np.ndarray) -> np.ndarray:
    """The thresholds after all sorted positions, (n_features, n_samples) of float64."""
    found = np.empty(order.shape)
    values, rows = plain(source.X, source.rows)
    _set_thresholds(values, rows, order, n_present, values.dtype.type(2.0), found)
    return found


@kernel(
    "void(Array(FLOAT, 2, 'A', readonly=True), int64[::1], int32[:, ::1], int64[::1], FLOAT,"
    " float64[:, ::1])",
    FLOAT=("float32", "float64"),
)
def _set_thresholds(values, rows, order, n_present, two, thresholds):  # type: ignore[no-untyped-def]
    """Compute `learners.thresholds.midpoint` after each sorted position, in the values' type."""
    for j in range(len(order)):
        thresholds[j, :] = np.inf
        for k in range(n_present[j] - 1):
            one, next_one = order[j, k] & _SAMPLE, order[j, k + 1] & _SAMPLE
            low = values[rows[one] if len(rows) > 0 else one, j]
            high = values[rows[next_one] if len(rows) > 0 else next_one, j]
            middle = (low + high) / two
            is_between = low <= middle and middle < high
            thresholds[j, k] = np.float64(middle if is_between else low) + 0.0
