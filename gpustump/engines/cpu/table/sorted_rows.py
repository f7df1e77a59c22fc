"""The samples of bins in sorted order, sorted when they are first needed.

Most bins are never searched, so nothing is sorted in advance. A sample takes four bytes. Its sign
bit is set if the next sample has the same value, so that there is no cut between them.

If memory is limited, the features that have not been used for longest are dropped first; bins that
are needed again are sorted again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import PART_BITS, WIDE_BINS, Columns
from gpustump.engines.cpu.table.source_table import Source

_MARK = np.int32(-(2**31))
"""The sign bit."""


@dataclass(frozen=True)
class _Held:
    """One feature's sorted bins, one after the other, and where each begins; -1 if not sorted."""

    order: np.ndarray
    starts: np.ndarray


class SortedRows:
    """The sorted bins of all features. Only one thread at a time may ask for a feature.

    Parameters
    ----------
    source : Source
    layout : BinLayout
    columns : Columns
    bundles : Bundles
        They tell the column of a feature. Features of a bundle have no bins of several values.
    budget : int or None
        The most bytes that sorted bins may take; those of a feature in use are always kept.
    """

    def __init__(
        self,
        source: Source,
        layout: BinLayout,
        columns: Columns,
        bundles: Bundles,
        budget: int | None,
    ) -> None:
        self._source, self._layout = source, layout
        self._columns, self._bundles = columns, bundles
        self._budget = budget
        self._by_feature: dict[int, _Held] = {}  # what was used last comes last
        self._n_bytes = 0
        self._lock = threading.Lock()

    def sorted_bins(self, feature: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The samples of the wanted bins, sorted now unless they have been before.

        Returns
        -------
        ndarray of int32
            Samples of these bins by increasing value, and of others. If the sign bit is set, the
            next sample of the bin has the same value.
        ndarray (n,) of int64
            Where each bin begins among them.
        """
        held = self._of(feature)
        new = np.unique(wanted[held.starts[wanted] < 0])
        if len(new):
            held = self._with(feature, held, new)
        self._keep(feature, held)
        return held.order, held.starts[wanted]

    def sorted_bin(self, feature: int, bin_: int) -> np.ndarray:
        """The samples of one bin by increasing value."""
        bins = np.asarray([bin_])
        order, (start,) = self.sorted_bins(feature, bins)
        (n_inside,) = self._layout.n_inside(self._layout.first[feature] + bins)
        found: np.ndarray = order[start : start + n_inside] & ~_MARK
        return found

    def _of(self, feature: int) -> _Held:
        with self._lock:
            held = self._by_feature.get(feature)
        if held is not None:
            return held
        return _Held(np.empty(0, dtype=np.int32), np.full(self._layout.n_bins[feature], -1))

    def _keep(self, feature: int, held: _Held) -> None:
        """Note a feature as used last; drop others while they take too much memory."""
        with self._lock:
            before = self._by_feature.pop(feature, None)
            self._by_feature[feature] = held
            self._n_bytes += held.order.nbytes - (before.order.nbytes if before else 0)
            while self._budget is not None and self._n_bytes > self._budget:
                oldest = next(iter(self._by_feature))
                if oldest == feature:
                    return
                self._n_bytes -= self._by_feature.pop(oldest).order.nbytes

    def _with(self, feature: int, held: _Held, new: np.ndarray) -> _Held:
        """The held bins of a feature, followed by new ones."""
        lengths = self._layout.n_inside(self._layout.first[feature] + new)
        ends = np.cumsum(lengths) + len(held.order)
        starts = ends - lengths
        order = np.empty(ends[-1], dtype=np.int32)
        order[: len(held.order)] = held.order
        place = np.full(WIDE_BINS, -1)
        place[new] = starts
        column, is_wide = self._bundles.column[feature], self._bundles.is_wide[feature]
        codes = (self._columns.wide if is_wide else self._columns.narrow)[column]
        _members(codes, PART_BITS if is_wide else 0, place, order)
        if self._source.X.dtype == np.float32 and self._source.X.flags.aligned:
            self._sort_float32(feature, starts, ends, order)
        else:
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                self._sort(feature, order[start:end])
        all_starts = held.starts.copy()
        all_starts[new] = starts
        return _Held(order, all_starts)

    def _sort(self, feature: int, samples: np.ndarray) -> None:
        """Sort a bin's samples by value; mark those whose next one has the same value."""
        keys = arrays.order_keys(self._source.picked(samples, feature))
        at = np.argsort(keys)
        samples[:], keys = samples[at], keys[at]
        samples[:-1][keys[1:] == keys[:-1]] |= _MARK

    def _sort_float32(
        self, feature: int, starts: np.ndarray, ends: np.ndarray, order: np.ndarray
    ) -> None:
        """The same for some bins of a table of float32: key and place fit into one integer.

        NumPy sorts integers with the widest instructions that the processor has.
        """
        both = np.empty(int(ends[-1] - starts[0]), dtype=np.int64)
        rows = self._source.rows_for_kernels
        _keys_and_places(self._source.X.view(np.int32), feature, rows, starts, ends, order, both)
        counted = zip((starts - starts[0]).tolist(), (ends - starts[0]).tolist(), strict=True)
        for start, end in counted:
            both[start:end].sort()
        _put_in_order(both, starts, ends, order)


@kernel("void(CODE[::1], int64, int64[::1], int32[::1])", CODE=("uint8", "uint16"))
def _members(codes, shift, place, order):  # type: ignore[no-untyped-def]
    """Write the samples of some bins, in their own order, to where `place` says (-1: not wanted).

    Bins are codes without their `shift` lowest bits. Usually a few neighbouring bins are wanted.
    Then most steps skip 64 samples.
    """
    low, high = len(place) - 1, 0
    for b in range(len(place)):
        if place[b] >= 0:
            low = min(low, b)
            high = max(high, b)
    least, span = np.uint16(low << shift), np.uint16(((high + 1 - low) << shift) - 1)
    n_samples = len(codes)
    for start in range(0, n_samples, 64):
        end = min(start + 64, n_samples)
        near = np.uint16(0)
        for i in range(start, end):
            near |= np.uint16(np.uint16(codes[i] - least) <= span)
        if near:
            for i in range(start, end):
                b = np.uint64(codes[i]) >> np.uint64(shift)
                at = place[b]
                if at >= 0:
                    order[at] = i
                    place[b] = at + 1


@kernel(
    "void(Array(int32, 2, 'A', readonly=True), int64, int64[::1], int64[::1], int64[::1],"
    " int32[::1], int64[::1])"
)
def _keys_and_places(bits, feature, rows, starts, ends, order, both):  # type: ignore[no-untyped-def]
    """Pack the keys of some bins' samples (upper half) with their places in the bin (lower half).

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


@kernel("void(int64[::1], int64[::1], int64[::1], int32[::1])")
def _put_in_order(both, starts, ends, order):  # type: ignore[no-untyped-def]
    """Write the samples of some bins in the order of their keys; mark those with an equal next."""
    done = 0
    for start, end in zip(starts, ends):  # noqa: B905
        unsorted = order[start:end].copy()
        last = end - start - 1
        for k in range(last + 1):
            key = both[done + k]
            sample = np.int64(unsorted[np.uint64(key & 0xFFFFFFFF)])
            if k < last and key >> 32 == both[done + k + 1] >> 32:
                sample |= -(1 << 31)
            order[start + k] = sample
        done += end - start
