"""The samples of bins: found among the codes of a feature, or kept in the order of the codes.

If its bins are searched often, the samples of a feature with codes of two bytes are sorted by code
(a counting sort), so that a bin's samples are together. The order takes four bytes for each sample;
the system provides memory only for the features that are sorted. The sign bit of a sample is set if
the next one is in the same part of the bin.

When the samples of a part are asked for by their values (`sums_source`), they are put in order
here, too. Then the bit below the sign bit is set for each sample whose next one has another value,
and for the last one of the part, so this one tells whether a part is sorted.
"""

from __future__ import annotations

import threading

import numpy as np

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import PART_BITS, WIDE_BINS
from gpustump.engines.threads import Team

_PARTS = 1 << PART_BITS

_SAMPLES_AT_ONCE, _BINS_AT_ONCE = 2**14, 2**7
"""Sorting fewer samples, or those of fewer bins, is not worth another thread."""

SAMPLE = 2**30 - 1
"""Masks both marks of a sample in an order out; plus 1, it is the lower mark."""


class PartedSamples:
    """The samples of the features with codes of two bytes, by their codes.

    Parameters
    ----------
    codes : ndarray (n_wide, n_samples) of uint16
    bundles : Bundles
    layout : BinLayout
    team : Team
    patience : int
        After how many requests a feature's samples are sorted. Before, it takes less time to find
        the samples of a few bins among all codes.

    Attributes
    ----------
    order : ndarray (n_wide * n_samples,) of int32
        The samples of all columns, one after the other. Those of a column are undefined until it is
        in order; empty until one is.
    is_ready : ndarray (n_wide,) of uint8
        Which columns are in order.
    """

    def __init__(
        self,
        codes: np.ndarray,
        bundles: Bundles,
        layout: BinLayout,
        team: Team,
        patience: int,
    ) -> None:
        self._codes, self._bundles, self._layout, self._team = codes, bundles, layout, team
        self.order, self._room = np.empty((2, 0), dtype=np.int32)  # until they are needed
        self.is_ready = np.zeros(len(codes), dtype=np.uint8)
        self._n_asked = np.zeros(len(codes), dtype=np.int64)
        self._patience, self._lock = patience, threading.Lock()

    def prepare(self, features: np.ndarray) -> np.ndarray:
        """Sort the samples of those features that have been asked for often.

        Returns
        -------
        ndarray (n,) of bool
            Which of the features, (n,), are in order; none without codes of two bytes is.
        """
        is_wide = self._bundles.is_wide[features] > 0
        columns = self._bundles.column[features[is_wide]]
        if not self.is_ready[columns].all():
            waiting = np.unique(columns[self.is_ready[columns] == 0])
            self._n_asked[waiting] += 1
            for column in waiting[self._n_asked[waiting] > self._patience].tolist():
                self._put_in_order(column)
        found: np.ndarray = is_wide
        found[is_wide] = self.is_ready[columns] > 0
        return found

    def _put_in_order(self, column: int) -> None:
        codes, team = self._codes[column], self._team
        n_samples = len(codes)
        with self._lock:
            if self.is_ready[column]:
                return
            if not len(self.order):
                self.order = np.empty(self._codes.size, dtype=np.int32)
            if not len(self._room):
                self._room = np.empty(n_samples, dtype=np.int64)
            by_bin, order = self._room, self.order[column * n_samples : (column + 1) * n_samples]
            n_pieces, size = team.pieces(n_samples, _SAMPLES_AT_ONCE)
            counts = np.empty((n_pieces, WIDE_BINS), dtype=np.int64)
            team.run(_count, n_pieces, codes, counts, size)
            ends = np.cumsum(counts.T).reshape(WIDE_BINS, n_pieces)
            begin = np.ascontiguousarray(ends.T) - counts
            team.run(_put_in_bins, n_pieces, codes, begin, by_bin, size)
            n_pieces, size = team.pieces(WIDE_BINS, _BINS_AT_ONCE)
            ends = np.ascontiguousarray(ends[:, -1])
            team.run(_put_in_parts, n_pieces, by_bin, ends, order, size)
            self.is_ready[column] = 1
            if self.is_ready.all():
                self._room = np.empty(0, dtype=np.int64)

    def sample_at(self, feature: int, position: int) -> int:
        """The sample at a sorted position; -1 if its part of the bin is not sorted."""
        column, n_samples = int(self._bundles.column[feature]), self._codes.shape[1]
        if not self._bundles.is_wide[feature] or not self.is_ready[column]:
            return -1
        own, last = self.order[column * n_samples : (column + 1) * n_samples], position
        while own[last] < 0:
            last += 1
        return int(own[position]) & SAMPLE if own[last] & (SAMPLE + 1) else -1

    def bin(self, feature: int, bin_: int) -> np.ndarray:
        """The samples of a bin of a feature that is in order, part after part."""
        layout = self._layout
        slot, column = int(layout.first[feature]) + bin_, int(self._bundles.column[feature])
        own = self.order[column * self._codes.shape[1] :]
        found: np.ndarray = own[layout.offset[slot] : layout.offset[slot + 1]] & SAMPLE
        return found


@kernel("void(CODE[::1], int64, int64[::1], int64[::1], int32[::1])", CODE=("uint8", "uint16"))
def list_bins(codes, shift, by_code, begin, found):  # type: ignore[no-untyped-def]
    """List the samples of some bins, in their own order: those of bin t from `begin[t]` on.

    `by_code` has the t of codes without their `shift` lowest bits, -1 for other bins. Usually a few
    neighbouring bins are wanted. Then most steps skip 64 samples.
    """
    place, low, high = begin.copy(), len(by_code) - 1, 0
    for code in range(len(by_code)):
        if by_code[code] >= 0:
            low = min(low, code)
            high = max(high, code)
    least, span = np.uint16(low << shift), np.uint16(((high + 1 - low) << shift) - 1)
    n_samples = len(codes)
    for start in range(0, n_samples, 64):
        end = min(start + 64, n_samples)
        near = np.uint16(0)
        for i in range(start, end):
            near |= np.uint16(np.uint16(codes[i] - least) <= span)
        if near:
            for i in range(start, end):
                t = by_code[np.uint64(codes[i]) >> np.uint64(shift)]
                if t >= 0:
                    found[place[t]] = i
                    place[t] += 1


@parallel("void(int64, uint16[::1], int64[:, ::1], int64)")
def _count(piece, codes, counts, size):  # type: ignore[no-untyped-def]
    """Count the samples of a piece in each bin."""
    own, found = codes[piece * size : (piece + 1) * size], counts[piece]
    found[:] = 0
    for i in range(len(own)):
        found[np.uint64(own[i] >> np.uint16(PART_BITS))] += 1


@parallel("void(int64, uint16[::1], int64[:, ::1], int64[::1], int64)")
def _put_in_bins(piece, codes, begin, by_bin, size):  # type: ignore[no-untyped-def]
    """Sort samples by bins: their numbers, and below them the numbers of their parts.

    `begin` says where those of each piece begin in each bin, and is overwritten.
    """
    low, next_ = piece * size, begin[piece]
    own = codes[low : low + size]
    for i in range(len(own)):
        b, part = np.uint64(own[i] >> np.uint16(PART_BITS)), own[i] & np.uint16(_PARTS - 1)
        by_bin[np.uint64(next_[b])] = ((low + i) << PART_BITS) | part
        next_[b] += 1


@parallel("void(int64, int64[::1], int64[::1], int32[::1], int64)")
def _put_in_parts(piece, by_bin, ends, order, size):  # type: ignore[no-untyped-def]
    """Sort the samples of a piece of the bins by parts, in each bin, which fits into the nearest
    cache; set the sign bit if the next one is of the same part."""
    place = np.empty(_PARTS + 1, dtype=np.int64)
    for b in range(piece * size, min((piece + 1) * size, len(ends))):
        start, end = ends[b - 1] if b > 0 else 0, ends[b]
        own, found = by_bin[start:end], order[start:end]
        place[:] = 0
        for k in range(len(own)):
            place[np.uint64(own[k] & (_PARTS - 1)) + np.uint64(1)] += 1
        for part in range(_PARTS):
            place[part + 1] += place[part]
        for k in range(len(own)):
            part = np.uint64(own[k] & (_PARTS - 1))
            found[np.uint64(place[part])] = own[k] >> PART_BITS
            place[part] += 1
        first = 0  # `place` now tells where each part ends
        for part in range(_PARTS):
            for k in range(first, place[part] - 1):
                found[k] |= -2 * (SAMPLE + 1)
            first = place[part]
