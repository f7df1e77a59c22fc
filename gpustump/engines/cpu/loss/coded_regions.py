"""The region of each sample of a coded table under a hypothesis.

A cut, or a threshold, lies between two bins or inside one, so the codes tell the regions of all
samples but those of one bin. That saves time, because the values of a feature are far apart in
memory: they lie in as many lines of the cache as there are samples. The regions of sets of
categories, and those of intervals, follow from the values (`regions`).
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.contract import Cut
from gpustump.engines.cpu.loss.regions import SAMPLES_AT_ONCE, mark_by_value
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition
from gpustump.learners.thresholds import rounded_down

ASK = 3
"""Instead of a region: it depends on the value."""


class CodedRegions:
    """The region of each sample of a coded table under the partition that was marked last.

    Parameters
    ----------
    table : CodedTable

    Attributes
    ----------
    found : ndarray (n_samples,) of uint8
    """

    def __init__(self, table: CodedTable) -> None:
        self._table, self.found = table, np.zeros(table.n_samples, dtype=np.uint8)
        self._hypothesis: Partition | None = None

    def mark(self, hypothesis: Partition) -> None:
        """Find the regions of a hypothesis, unless they are known."""
        if self._hypothesis is hypothesis:
            return
        self._hypothesis = None
        table = self._table
        if len(hypothesis.thresholds) > 1 or hypothesis.feature in table.source.categorical:
            mark_by_value(table.values(hypothesis.feature), hypothesis, self.found, table.team)
        else:
            self._mark_threshold(hypothesis)
        self._hypothesis = hypothesis

    def mark_cut(self, cut: Cut) -> None:
        """Find the regions of a cut that the search has just found."""
        self._hypothesis = None
        table, feature = self._table, cut.feature
        n_bins = int(table.layout.n_bins[feature])
        by_bin = np.full(n_bins + 1, SECOND, dtype=np.uint8)
        if table.n_missing[feature]:
            by_bin[n_bins] = MISSING
        n_left, others = n_bins, np.empty(0, dtype=np.int64)
        if cut.position is not None:
            n_left, others = _left_of(table, feature, cut.position)
        by_bin[:n_left] = FIRST
        self._mark_codes(feature, table.bundles.by_code(feature, by_bin))
        self.found[others] = FIRST

    def _mark_threshold(self, split: Partition) -> None:
        """Find the regions of a hypothesis with one threshold, mostly from codes."""
        table, found = self._table, self.found
        by_code = regions_by_code(table, split)
        self._mark_codes(split.feature, by_code)
        if ASK in by_code:
            asked = np.flatnonzero(found == ASK)
            is_left = table.source.picked(asked, split.feature) <= largest_on_left(table, split)
            found[asked] = np.where(is_left, FIRST, SECOND)

    def _mark_codes(self, feature: int, by_code: np.ndarray) -> None:
        table = self._table
        codes, shift = table.codes_of(feature), PART_BITS if table.bundles.is_wide[feature] else 0
        n_pieces, size = table.team.pieces(table.n_samples, SAMPLES_AT_ONCE)
        table.team.run(_give_by_code, n_pieces, codes, shift, by_code, self.found, size)


def largest_on_left(table: CodedTable, split: Partition) -> np.generic:
    """The largest value of the table's type that is not above the threshold."""
    dtype = str(table.source.working_dtype)
    largest: np.generic = rounded_down(np.asarray(split.thresholds), dtype)[0]
    return largest


def regions_by_code(table: CodedTable, split: Partition) -> np.ndarray:
    """The region of each bin of a wide column, or code of another one, of uint8; see `ASK`."""
    feature, threshold = split.feature, split.thresholds[0]
    slots = table.layout.slots(feature)
    n_bins = slots.stop - slots.start
    by_slot = np.full(n_bins + 1, SECOND, dtype=np.uint8)
    if table.n_missing[feature]:
        by_slot[n_bins] = MISSING
    if threshold == math.inf:
        by_slot[:n_bins] = FIRST
    else:
        high = table.high[slots]
        n_known = n_bins - int(np.isnan(high).sum())  # the largest value of the last one is not
        n_left = int(np.searchsorted(high[:n_known], threshold, side="right"))
        by_slot[:n_left] = FIRST
        has_several = n_left < n_bins and table.layout.has_inner_split[slots.start + n_left]
        if has_several or n_known <= n_left < n_bins:
            by_slot[n_left] = ASK
    return table.bundles.by_code(feature, by_slot)


def _left_of(table: CodedTable, feature: int, position: int) -> tuple[int, np.ndarray]:
    """What lies left of a cut: the number of whole bins, and the samples of the next bin."""
    layout = table.layout
    bin_ = layout.bin_at(feature, position)
    slot = layout.first[feature] + bin_
    if position == layout.last[slot]:
        return bin_ + 1, np.empty(0, dtype=np.int64)
    n_left = position + 1 - int(layout.offset[slot])
    return bin_, table.first_of_bin(feature, bin_, n_left)


@parallel("void(int64, CODE[::1], int64, uint8[::1], uint8[::1], int64)", CODE=("uint8", "uint16"))
def _give_by_code(piece, codes, shift, by_code, regions, size):  # type: ignore[no-untyped-def]
    """Set the regions of a piece of the samples, by their codes without the `shift` lowest bits.

    Usually there are two regions, one for codes up to some number and one for those above. Then a
    comparison is enough, which is made for many samples at once.
    """
    low = piece * size
    own, found = codes[low : low + size], regions[low : low + size]
    n_codes = len(by_code)
    last = 0
    while last < n_codes - 1 and by_code[last + 1] == by_code[0]:
        last += 1
    left, right = by_code[0], by_code[n_codes - 1]
    is_step = True
    for code in range(last + 1, n_codes):
        is_step &= by_code[code] == right
    if is_step:
        highest = np.uint16(((last + 1) << shift) - 1)
        for i in range(len(own)):
            found[i] = left if own[i] <= highest else right
    else:
        for i in range(len(own)):
            found[i] = by_code[own[i] >> shift]
