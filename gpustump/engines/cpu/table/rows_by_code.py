"""The samples of each feature in the order of its codes, so that a bin's samples are together.

A feature's samples are sorted by code (a counting sort) after its bins have been searched several
times. The order takes four bytes for each sample (eight for 2**30 samples and more); the system
provides memory only for the features that are sorted. The sign bit of a sample is set if the next
one is in the same part of the bin. In shards, which ask for whole bins, samples are sorted by bins
alone, which takes half the time.

When the samples of a part are asked for by their values (`sums_source`), they are put in order
here, too. Then the bit below the sign bit is set for each sample whose next one has another value,
and for the last one of the part, so this one tells whether a part is sorted.
"""

from __future__ import annotations

import threading

import numpy as np

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import PART_BITS, WIDE_BINS
from gpustump.engines.threads import Team

PATIENCE = 6
"""See `PartedSamples`."""

POSITIONS = ("int32", "int64")
"""The types of the sample numbers in an order."""


def positions_of(n_samples: int) -> np.dtype:
    """The smaller type of `POSITIONS` that is large enough, with two bits to spare."""
    return np.dtype("int32" if n_samples < 2**30 else "int64")


class PartedSamples:
    """The samples of the features with codes of two bytes, by their codes.

    Parameters
    ----------
    codes : ndarray (n_wide, n_samples) of uint16
    bundles : Bundles
    layout : BinLayout
    dtype : str, optional
        The type of sample numbers; by default int32 if that is enough for their number.
    patience : int
        After how many requests a feature's samples are sorted. Before, it takes less time to find
        the samples of a few bins among all codes.
    by_parts : bool
        Whether samples are sorted by parts within bins, too.
    """

    def __init__(
        self,
        codes: np.ndarray,
        bundles: Bundles,
        layout: BinLayout,
        *,
        dtype: str | None = None,
        patience: int = PATIENCE,
        by_parts: bool = True,
    ) -> None:
        self._codes, self._bundles, self._layout = codes, bundles, layout
        self._dtype = np.dtype(dtype or positions_of(codes.shape[1]))
        self._order: np.ndarray | None = None
        self._is_ready = np.zeros(len(codes), dtype=bool)
        self._n_asked = np.zeros(len(codes), dtype=np.int64)
        self._guard = threading.Lock()
        self._patience, self._by_parts = patience, by_parts
        self._free: list[np.ndarray] = []
        self._locks = [threading.Lock() for _ in codes]

    @property
    def order(self) -> np.ndarray:
        """The samples of all columns, one after the other, (n_wide * n_samples,).

        Those of a column are undefined until it is prepared.
        """
        with self._guard:
            if self._order is None:
                self._order = np.empty(self._codes.size, dtype=self._dtype)
            return self._order

    def prepare(self, features: np.ndarray, team: Team) -> np.ndarray:
        """Sort the samples of those features that have been asked for often, in parallel.

        Returns
        -------
        ndarray (n,) of bool
            Which of the features, (n,), are in order.
        """
        columns = np.unique(self._bundles.column[features])
        waiting = columns[~self._is_ready[columns]]
        self._n_asked[waiting] += 1
        new = waiting[self._n_asked[waiting] > self._patience]
        if len(new):
            team.each(self._put_in_order, new.tolist())
        is_ready: np.ndarray = self._is_ready[self._bundles.column[features]]
        return is_ready

    def is_ready(self, feature: int) -> bool:
        """Whether a feature's samples are in order."""
        return bool(self._is_ready[self._bundles.column[feature]])

    def _put_in_order(self, column: int) -> None:
        n_samples = self._codes.shape[1]
        with self._locks[column]:
            if not self._is_ready[column]:
                own = self.order[column * n_samples : (column + 1) * n_samples]
                if not self._by_parts:
                    _put_in_bins(self._codes[column], own)
                    self._is_ready[column] = True
                    return
                with self._guard:
                    by_bin = self._free.pop() if self._free else None
                if by_bin is None:
                    by_bin = np.empty(n_samples, dtype=np.int64)
                _put_in_order(self._codes[column], by_bin, own)
                self._is_ready[column] = True
                with self._guard:  # memory that was used before is faster than new memory
                    self._free = [] if self._is_ready.all() else [*self._free, by_bin]

    def bin(self, feature: int, bin_: int) -> np.ndarray:
        """The samples of a bin, part after part."""
        layout = self._layout
        slot, column = int(layout.first[feature]) + bin_, int(self._bundles.column[feature])
        self._put_in_order(column)
        own = self.order[column * self._codes.shape[1] :]
        found: np.ndarray = own[layout.offset[slot] : layout.offset[slot + 1]] & without_marks(own)
        return found


@kernel("int64(POSITION[::1])", POSITION=POSITIONS)
def without_marks(order):  # type: ignore[no-untyped-def]
    """What masks both marks of the samples of an order out; plus 1, it is the lower mark."""
    return 0x3FFFFFFF if order.itemsize == 4 else 0x3FFFFFFFFFFFFFFF


@kernel("void(uint16[::1], POSITION[::1])", POSITION=POSITIONS)
def _put_in_bins(codes, order):  # type: ignore[no-untyped-def]
    """Sort samples by their bins; no sign bit is set."""
    end = np.zeros(WIDE_BINS + 1, dtype=np.int64)
    for i in range(len(codes)):
        end[np.uint64(codes[i] >> np.uint16(PART_BITS)) + np.uint64(1)] += 1
    for b in range(WIDE_BINS):
        end[b + 1] += end[b]
    for i in range(len(codes)):
        b = np.uint64(codes[i] >> np.uint16(PART_BITS))
        order[np.uint64(end[b])] = i
        end[b] += 1


@kernel("void(uint16[::1], int64[::1], POSITION[::1])", POSITION=POSITIONS)
def _put_in_order(codes, by_bin, order):  # type: ignore[no-untyped-def]
    """Sort samples by their codes; set the sign bit if the next one has the same code.

    They are sorted by bins first, into `by_bin`, and then by parts within each bin, which fits into
    the nearest cache.
    """
    n_parts = 1 << PART_BITS
    end = np.zeros(WIDE_BINS + 1, dtype=np.int64)  # where each bin ends, once it is filled
    for i in range(len(codes)):
        end[np.uint64(codes[i] >> np.uint16(PART_BITS)) + np.uint64(1)] += 1
    for b in range(WIDE_BINS):
        end[b + 1] += end[b]
    for i in range(len(codes)):
        b, part = codes[i] >> np.uint16(PART_BITS), codes[i] & np.uint16(n_parts - 1)
        by_bin[end[b]] = (i << PART_BITS) | part
        end[b] += 1
    place = np.empty(n_parts + 1, dtype=np.int64)
    start = 0
    for b in range(WIDE_BINS):
        own, found = by_bin[start : end[b]], order[start : end[b]]
        start = end[b]
        place[:] = 0
        for k in range(len(own)):
            place[(own[k] & (n_parts - 1)) + 1] += 1
        for part in range(n_parts):
            place[part + 1] += place[part]
        for k in range(len(own)):
            part = own[k] & (n_parts - 1)
            found[place[part]] = own[k] >> PART_BITS
            place[part] += 1
        first = 0  # `place` now tells where each part ends
        for part in range(n_parts):
            for k in range(first, place[part] - 1):
                found[k] |= -(1 << 31) if order.itemsize == 4 else -(1 << 63)
            first = place[part]
