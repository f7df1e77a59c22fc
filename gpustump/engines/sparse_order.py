"""The sorted columns of a sparse table: the rows that each of them lists, by increasing value.

A column's sorted samples are those below 0, all that are not listed, whose value is 0, those above
0, and the missing ones. The sums over the zeros are what the others leave of the sums over all
samples. Sums are integers, so that is exact.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import SparseTable
from gpustump.engines.threads import Team, ranges
from gpustump.learners.thresholds import midpoint

_MANY = 64
"""A column that lists more rows is sorted by itself; all others are sorted together."""

_AT_ONCE = 2**17
"""Fewer entries than this are not worth another thread."""


@dataclass(frozen=True)
class SparseOrder:
    """A sparse table, sorted; see `engines.contract.PreparedTable`.

    Attributes
    ----------
    X : SparseTable
        The caller's.
    rows : ndarray (n_samples,) of int64, or None
        The rows of X that take part; None for all of them.
    samples : SparseTable
        These rows: X itself if all take part.
    order : ndarray (n_listed,) of int32 or int64
        For each feature the samples that it lists, by increasing value, missing ones last. The sign
        bit is set if the next sample has the same value, so that there is no cut between the two.
    n_below, n_present : ndarray (n_features,) of int64
        How many of them are below 0, and how many have a value.
    """

    X: SparseTable
    rows: np.ndarray | None
    samples: SparseTable
    order: np.ndarray
    n_below: np.ndarray
    n_present: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return self.samples.starts

    @property
    def n_samples(self) -> int:
        return self.samples.n_samples

    @property
    def n_features(self) -> int:
        return self.samples.shape[1]

    @functools.cached_property
    def n_listed(self) -> np.ndarray:
        """How many samples each feature lists."""
        found: np.ndarray = np.diff(self.starts)
        return found

    @functools.cached_property
    def n_zeros(self) -> np.ndarray:
        found: np.ndarray = self.n_samples - self.n_listed
        return found

    @property
    def n_missing(self) -> np.ndarray:
        found: np.ndarray = self.n_listed - self.n_present
        return found

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,)."""
        found: np.ndarray = self.samples.dense([feature])[:, 0]
        return found

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_present[feature] + self.n_zeros[feature]:
            return np.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def _value(self, feature: int, position: int) -> Any:
        at, n_zeros = position - int(self.n_below[feature]), int(self.n_zeros[feature])
        if 0 <= at < n_zeros:
            return self.samples.dtype.type(0)
        place = int(self.starts[feature]) + position - (n_zeros if at >= 0 else 0)
        sample = int(self.order[place] & np.iinfo(self.order.dtype).max)
        return self.samples.value(sample, feature)


def sorted_columns(X: SparseTable, rows: np.ndarray | None, team: Team) -> SparseOrder:
    """Sort the columns of a table, or of some of its rows."""
    samples = X if rows is None else X.with_rows(rows)
    keys = arrays.order_keys(samples.values)
    n_listed = np.diff(samples.starts)
    order = samples.rows.copy()
    of_entry = np.repeat(np.arange(len(n_listed), dtype=np.int32), n_listed)
    is_next = of_entry[1:] == of_entry[:-1]
    if ((keys[1:] < keys[:-1]) & is_next).any():  # not where all values are 1, for example
        few = np.flatnonzero((n_listed <= _MANY)[of_entry])
        at = few[_order_of(keys[few], of_entry[few])]
        order[few], keys[few] = order[at], keys[at]
        many = np.flatnonzero(n_listed > _MANY)

        def sort(part: tuple[int, int]) -> None:
            for feature in many[slice(*part)].tolist():
                own = slice(samples.starts[feature], samples.starts[feature + 1])
                _sort_together(keys[own], order[own])

        mean = 1 + len(keys) // max(1, len(many))
        team.each(sort, ranges(len(many), max(1, _AT_ONCE // mean)))

    def counted(condition: np.ndarray) -> np.ndarray:
        return np.bincount(of_entry[condition], minlength=len(n_listed))

    n_below = counted(keys < 0)
    n_missing = counted(keys == arrays.missing_key(arrays.dtype_name(samples.values)))
    order[:-1][(keys[1:] == keys[:-1]) & is_next] |= np.iinfo(order.dtype).min
    return SparseOrder(X, rows, samples, order, n_below, n_listed - n_missing)


def _order_of(keys: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The order by feature and key; NumPy sorts single integers the fastest."""
    if keys.dtype.itemsize > 4 or not len(keys):
        return np.lexsort((keys, features))
    return np.argsort((features.astype(np.int64) << 32) | (keys.astype(np.int64) + 2**31))


def _sort_together(keys: np.ndarray, rows: np.ndarray) -> None:
    """Sort both by the keys, where they are."""
    if keys.dtype.itemsize > 4 or rows.dtype.itemsize > 4:
        at = np.argsort(keys)
        keys[:], rows[:] = keys[at], rows[at]
        return
    both = (keys.astype(np.int64) << 32) | rows
    both.sort()
    keys[:], rows[:] = both >> 32, both & (2**32 - 1)
