"""A feature sorted and cut into bins, on the device, with the array library's own operations.

Bins hold about the same number of samples, and end between two values. A value with enough samples
to fill a bin gets one of its own. Towards both ends of the order bins become smaller, as where one
side of a cut has little weight, the score depends most on the few samples there. The search returns
the same integers wherever the bins end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.cuda.layout import SPLIT_PIECE

MOST_BINS = 255
"""The most bins of a feature; one more code stands for missing values."""

_OF_BEYOND = 4
"""Towards the ends, a bin has a quarter of the samples beyond it, but at least a piece's."""

MARK = -(2**31)
"""The sign bit of a sample in a sorted order: it is set if the next sample has the same value."""


class Cuts(NamedTuple):
    """A feature's bins.

    Attributes
    ----------
    ends : ndarray (n_bins,) of int64
        The sorted position after each bin's last sample; [0] if all values are missing.
    has_cuts : ndarray (n_bins,) of bool
        Whether a bin holds two values or more.
    low, high : ndarray (n_bins,) of float64
        The smallest and the largest value of each bin.
    counts : ndarray (layout.N_CODES,) of int64, or None
        How many samples have each category number; for a categorical feature, which has no bins.
    """

    ends: np.ndarray
    has_cuts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray | None = None


NO_CUTS = Cuts(np.zeros(1, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
"""For a feature without values, and for a categorical one."""


def sorted_feature(column: Array) -> tuple[Array, Array]:
    """A feature's sorted order, as `Orders` holds it, and its sorted keys.

    `column` (n_samples,) holds floats; the order is int32, the keys are `arrays.order_keys`.
    """
    xp = arrays.namespace_of(column)
    keys = arrays.order_keys(column)
    order = xp.argsort(keys, stable=False)
    keys = xp.take(keys, order, axis=0)
    order = xp.astype(order, xp.int32)
    order[:-1] = xp.where(keys[1:] == keys[:-1], order[:-1] | MARK, order[:-1])
    return order, keys


def cuts_of(keys: Array, dtype: str) -> Cuts:
    """Cut a feature's sorted keys, made from floats of this dtype, into bins."""
    xp, present = arrays.namespace_of(keys), _present(keys, dtype)
    if present.shape[0] == 0:
        return NO_CUTS
    is_last = present[1:] != present[:-1]
    n_values = 1 + int(xp.sum(xp.astype(is_last, xp.int64)))
    if n_values <= MOST_BINS:
        return _cut(present, arrays.to_host(xp.nonzero(is_last)[0]) + 1)
    return _cut(present, _spread(present))


def cuts_after(keys: Array, largest: np.ndarray, dtype: str) -> Cuts:
    """Cut a feature's sorted keys after these ones, (n_cuts,), into n_cuts + 1 bins.

    Some may be empty: their values are those of the bin before, or minus infinity.
    """
    xp, present = arrays.namespace_of(keys), _present(keys, dtype)
    sides = xp.asarray(largest, dtype=keys.dtype, device=arrays.device_of(keys))
    return _cut(present, arrays.to_host(xp.searchsorted(present, sides, side="right")))


def _present(keys: Array, dtype: str) -> Array:
    """The sorted keys without those of missing values."""
    xp = arrays.namespace_of(keys)
    return keys[: int(xp.sum(xp.astype(keys != arrays.missing_key(dtype), xp.int64)))]


def _cut(present: Array, inner: np.ndarray) -> Cuts:
    """The bins between these sorted positions, which do not fall."""
    n_present = present.shape[0]
    ends = np.append(inner, n_present).astype(np.int64)
    begins = np.append(0, ends[:-1])
    low = high = np.full(len(ends), -np.inf)
    if n_present:
        places = np.concatenate([np.minimum(begins, n_present - 1), np.maximum(ends, 1) - 1])
        xp, device = arrays.namespace_of(present), arrays.device_of(present)
        found = arrays.to_host(xp.take(present, xp.asarray(places, device=device), axis=0))
        low, high = np.split(arrays.floats_of(found).astype(np.float64), 2)
        high = np.where(ends > 0, high, -np.inf)
        low = np.where(ends > begins, low, high)
    return Cuts(ends, low != high, low, high)


def _spread(keys: Array) -> np.ndarray:
    """Where to cut sorted keys into at most `MOST_BINS` bins.

    A value that fills a bin is also separated from the values below it, while there are bins left.
    """
    xp, n_keys = arrays.namespace_of(keys), keys.shape[0]
    fair = n_keys / MOST_BINS
    last = _places(n_keys) - 1
    last = last[last >= 0]
    values = xp.take(keys, xp.asarray(last, device=arrays.device_of(keys)), axis=0)
    begins, ends = (
        arrays.to_host(xp.searchsorted(keys, values, side=side)).astype(np.int64)
        for side in ("left", "right")
    )
    is_heavy = ends - begins >= fair
    nearer_begin = (last + 1 - begins < ends - last - 1) & ~is_heavy
    chosen = set(np.where(nearer_begin, begins, ends).tolist()) - {0, n_keys}
    heaviest = np.argsort(begins - ends, kind="stable")
    for begin in begins[heaviest][is_heavy[heaviest]].tolist():
        if len(chosen) < MOST_BINS - 1:
            chosen |= {begin} - {0}
    return np.asarray(sorted(chosen), dtype=np.int64)


def _places(n_keys: int) -> np.ndarray:
    """Where bins would end if all keys were different, without the last one."""
    fair, size, ends = n_keys / MOST_BINS, float(SPLIT_PIECE), [0.0]
    while size < fair and len(ends) <= MOST_BINS // 5:
        ends.append(ends[-1] + size)
        size = max(size, ends[-1] / _OF_BEYOND)
    n_small = len(ends) - 1
    middle = np.linspace(ends[-1], n_keys - ends[-1], MOST_BINS - 2 * n_small + 1)
    outer = np.asarray(ends[:-1])
    return np.concatenate([outer, middle, n_keys - outer[::-1]])[1:-1].astype(np.int64)
