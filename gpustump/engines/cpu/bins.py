"""Bins that had to be looked into: their samples in sorted order, found when first asked for.

Most bins are never looked into, so nothing is sorted ahead. A sorted position takes four bytes
(eight for 2**31 samples and more). The sign bit says that the next sample has the same value, so
that there is no cut between them.

Where memory is limited, the features that were not used for longest are forgotten first; what is
needed again is sorted again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.compiling import kernel

if TYPE_CHECKING:
    from gpustump.engines.cpu.codes import CodedTable


@dataclass(frozen=True)
class _Held:
    """One feature's sorted bins, one after the other, and where each begins; -1: not sorted."""

    order: np.ndarray
    starts: np.ndarray


class Bins:
    """The sorted bins of all features. Each feature is for one thread at a time.

    Parameters
    ----------
    n_samples : int
    budget : int or None
        Bytes that they may take; those of the features in use are kept whatever it is.
    """

    def __init__(self, n_samples: int, budget: int | None) -> None:
        self._dtype = np.dtype("int32" if n_samples < 2**31 else "int64")
        self._mark = self._dtype.type(np.iinfo(self._dtype).min)  # the sign bit
        self._budget = budget
        self._by_feature: dict[int, _Held] = {}  # what was used last comes last
        self._n_bytes = 0
        self._lock = threading.Lock()

    def sorted_bins(
        self, columns: CodedTable, feature: int, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """An array with the sorted samples of the wanted bins, and where in it each bin begins.

        Without the sign bit they are samples; with it, the next sample has the same value.
        """
        held = self._of(columns, feature)
        new = np.unique(wanted[held.starts[wanted] < 0])
        if len(new):
            held = self._with(columns, feature, held, new)
        self._keep(feature, held)
        return held.order, held.starts[wanted]

    def known(self, columns: CodedTable, feature: int) -> np.ndarray:
        """Which of a feature's bins are sorted, (n_bins,) of bool."""
        known: np.ndarray = self._of(columns, feature).starts >= 0
        return known

    def sorted_bin(self, columns: CodedTable, feature: int, bin_: int) -> np.ndarray:
        """The samples of one bin by increasing value."""
        slot = columns.first[feature] + bin_
        order, (start,) = self.sorted_bins(columns, feature, np.asarray([bin_]))
        n_inside = columns.offset[slot + 1] - columns.offset[slot]
        found: np.ndarray = order[start : start + n_inside] & ~self._mark
        return found

    def _of(self, columns: CodedTable, feature: int) -> _Held:
        with self._lock:
            held = self._by_feature.get(feature)
        if held is not None:
            return held
        return _Held(np.empty(0, dtype=self._dtype), np.full(columns.n_bins[feature], -1))

    def _keep(self, feature: int, held: _Held) -> None:
        """Note a feature as used last; forget others while they are too many."""
        with self._lock:
            before = self._by_feature.pop(feature, None)
            self._by_feature[feature] = held
            self._n_bytes += held.order.nbytes - (before.order.nbytes if before else 0)
            while self._budget is not None and self._n_bytes > self._budget:
                oldest = next(iter(self._by_feature))
                if oldest == feature:
                    return
                self._n_bytes -= self._by_feature.pop(oldest).order.nbytes

    def _with(self, columns: CodedTable, feature: int, held: _Held, new: np.ndarray) -> _Held:
        """What is held of a feature, and new bins behind it."""
        slots = columns.first[feature] + new
        lengths = columns.offset[slots + 1] - columns.offset[slots]
        ends = np.cumsum(lengths) + len(held.order)
        starts = ends - lengths
        order = np.empty(ends[-1], dtype=self._dtype)
        order[: len(held.order)] = held.order
        place = np.full(256, -1)
        place[new] = starts
        _members(columns.codes[columns.bundles.column[feature]], place, order)
        if columns.X.dtype == np.float32 and columns.X.flags.aligned:
            _sort_float32(columns, feature, starts, ends, order)
        else:
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                self._sort(columns, feature, order[start:end])
        all_starts = held.starts.copy()
        all_starts[new] = starts
        return _Held(order, all_starts)

    def _sort(self, columns: CodedTable, feature: int, samples: np.ndarray) -> None:
        """Bring a bin's samples in order of their values; mark those like the next one."""
        rows = samples if columns.rows is None else columns.rows[samples]
        keys = arrays.order_keys(arrays.as_working(columns.X[rows, feature]))
        at = np.argsort(keys)
        samples[:], keys = samples[at], keys[at]
        samples[:-1][keys[1:] == keys[:-1]] |= self._mark


def _sort_float32(
    columns: CodedTable, feature: int, starts: np.ndarray, ends: np.ndarray, order: np.ndarray
) -> None:
    """The same for some bins of a table of float32, whose key and place fit into one integer.

    NumPy sorts integers with the widest instructions that the processor has.
    """
    both = np.empty(int(ends[-1] - starts[0]), dtype=np.int64)
    _keys_and_places(
        columns.X.view(np.int32), feature, columns.rows_for_kernels, starts, ends, order, both
    )
    for start, end in zip((starts - starts[0]).tolist(), (ends - starts[0]).tolist(), strict=True):
        both[start:end].sort()
    _put_in_order(both, starts, ends, order)


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
