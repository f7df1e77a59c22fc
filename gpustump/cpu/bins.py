"""Bins that had to be looked into: their samples in sorted order, found when first asked for.

Most bins are never looked into, so nothing is sorted ahead. A bin's positions stand in its
feature's array just where they would stand if the whole feature were sorted, four bytes each
(eight for 2**31 samples and more). The sign bit says that the next sample has the same value, so
that there is no cut between them. Memory that has not been written to costs nothing.

Where memory is limited, the features that were not used for longest are forgotten first; what is
needed again is sorted again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpustump import arrays
from gpustump.cpu.jit import kernel

if TYPE_CHECKING:
    from gpustump.cpu.codes import CodedColumns


@dataclass
class _Held:
    """One feature's positions, and which of its bins they are known for."""

    order: np.ndarray
    known: np.ndarray
    n_bytes: int = 0


class Bins:
    """Sorted positions of some of the bins. Each feature is for one thread at a time.

    Parameters
    ----------
    n_samples : int
    budget : int or None
        Bytes that positions may take; those of the features in use are kept whatever it is.
    """

    def __init__(self, n_samples: int, budget: int | None) -> None:
        self._dtype = np.dtype("int32" if n_samples < 2**31 else "int64")
        self._mark = self._dtype.type(np.iinfo(self._dtype).min)  # the sign bit
        self._n_samples = n_samples
        self._budget = budget
        self._by_feature: dict[int, _Held] = {}  # what was used last comes last
        self._n_bytes = 0
        self._lock = threading.Lock()

    def order(self, columns: CodedColumns, feature: int, wanted: np.ndarray) -> np.ndarray:
        """The feature's sorted positions, (n_samples,), right within all `wanted` bins.

        Without the sign bit they are samples; with it, the next sample has the same value.
        """
        with self._lock:
            held = self._by_feature.pop(feature, None)
            if held is None:
                known = np.zeros(columns.n_bins[feature], dtype=bool)
                held = _Held(np.empty(self._n_samples, dtype=self._dtype), known)
            self._by_feature[feature] = held
        new = wanted[~held.known[wanted]]
        if len(new):
            self._fill(columns, feature, held, np.unique(new))
        return held.order

    def known(self, columns: CodedColumns, feature: int) -> np.ndarray:
        """Which of a feature's bins are sorted, (n_bins,) of bool."""
        held = self._by_feature.get(feature)
        if held is None:
            return np.zeros(columns.n_bins[feature], dtype=bool)
        return held.known

    def sorted_bin(self, columns: CodedColumns, feature: int, bin_: int) -> np.ndarray:
        """The samples of one bin by increasing value."""
        slot = columns.first[feature] + bin_
        order = self.order(columns, feature, np.asarray([bin_]))
        start, end = columns.offset[slot], columns.offset[slot + 1]
        found: np.ndarray = order[start:end] & ~self._mark
        return found

    def _fill(self, columns: CodedColumns, feature: int, held: _Held, new: np.ndarray) -> None:
        first = columns.first[feature]
        starts, ends = columns.offset[first + new], columns.offset[first + new + 1]
        self._make_room(feature, held, int(np.sum(ends - starts)) * self._dtype.itemsize)
        place = np.full(256, -1)
        place[new] = starts
        _members(columns.codes[columns.bundles.column[feature]], place, held.order)
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        bits = _bits(columns.X)
        if bits.dtype == np.int32:  # key and place in one integer: sorting those is quickest
            both = np.empty(int(np.sum(ends - starts)), dtype=np.int64)
            _keys_and_places(bits, feature, columns.rows_or_none, starts, ends, held.order, both)
            done = 0
            for start, end in spans:
                both[done : done + end - start].sort()
                done += end - start
            _put_in_order(both, starts, ends, held.order)
        else:
            for start, end in spans:
                self._sort(columns, feature, held.order[start:end])
        held.known[new] = True

    def _sort(self, columns: CodedColumns, feature: int, samples: np.ndarray) -> None:
        """Bring a bin's samples in order of their values; mark those like the next one."""
        rows = samples if columns.rows is None else columns.rows[samples]
        keys = arrays.order_keys(arrays.as_working(columns.X[rows, feature]))
        at = np.argsort(keys)
        samples[:], keys = samples[at], keys[at]
        samples[:-1][keys[1:] == keys[:-1]] |= self._mark

    def _make_room(self, feature: int, held: _Held, n_bytes: int) -> None:
        """Count what will be held; forget other features while it is too much."""
        with self._lock:
            held.n_bytes += n_bytes
            self._n_bytes += n_bytes
            if self._budget is None:
                return
            for other in list(self._by_feature):
                if self._n_bytes <= self._budget:
                    return
                if other != feature:
                    self._n_bytes -= self._by_feature.pop(other).n_bytes


@kernel("void(uint8[::1], int64[::1], int32[::1])", "void(uint8[::1], int64[::1], int64[::1])")
def _members(codes, place, order):  # type: ignore[no-untyped-def]
    """Write the samples of some bins, in their own order, to where `place` says (-1: not wanted).

    Mostly few codes are wanted, and near to each other: then 64 of them are passed in one step.
    """
    low, high = 255, 0
    for code in range(256):
        if place[code] >= 0:
            low = min(low, code)
            high = max(high, code)
    least, span = np.uint8(low), np.uint8(high - low)
    n_samples = len(codes)
    for start in range(0, n_samples, 64):
        end = min(start + 64, n_samples)
        near = np.uint8(0)
        for i in range(start, end):
            near |= np.uint8(np.uint8(codes[i] - least) <= span)
        if near:
            for i in range(start, end):
                at = place[codes[i]]
                if at >= 0:
                    order[at] = i
                    place[codes[i]] = at + 1


@kernel(
    "void(Array(int32, 2, 'A', readonly=True), int64, int64[::1], int64[::1], int64[::1],"
    " int32[::1], int64[::1])",
    "void(Array(int32, 2, 'A', readonly=True), int64, int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1])",
)
def _keys_and_places(bits, feature, rows, starts, ends, order, both):  # type: ignore[no-untyped-def]
    """Keys of some bins' samples, in the upper half, and their places in the bin in the lower.

    Keys are those of `arrays.order_keys`, from a table's bit patterns. Samples are rows of it, or
    indices into `rows` unless that is empty.
    """
    done = 0
    for start, end in zip(starts, ends):  # noqa: B905
        for k in range(end - start):
            row = np.int64(order[start + k])
            if len(rows):
                row = rows[row]
            bit = np.int64(bits[np.uint64(row), feature])
            both[done + k] = ((bit if bit >= 0 else -(1 << 31) - bit) << 32) | k
        done += end - start


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int32[::1])",
    "void(int64[::1], int64[::1], int64[::1], int64[::1])",
)
def _put_in_order(both, starts, ends, order):  # type: ignore[no-untyped-def]
    """Samples of some bins in the order of their sorted keys, marked where the next is the same."""
    done = 0
    for start, end in zip(starts, ends):  # noqa: B905
        unsorted = order[start:end].copy()
        last = end - start - 1
        for k in range(last + 1):
            key = both[done + k]
            sample = np.int64(unsorted[np.uint64(key & 0xFFFFFFFF)])
            if k < last and key >> 32 == both[done + k + 1] >> 32:
                sample |= -(1 << 31) if order.itemsize == 4 else -(1 << 63)
            order[start + k] = sample
        done += end - start


def _bits(X: np.ndarray) -> np.ndarray:
    """The bit patterns of a table of float32; an empty table of another type for all others."""
    if X.dtype == np.float32 and X.flags.aligned:
        return X.view(np.int32)
    return np.empty((0, 0), dtype=np.int64)
