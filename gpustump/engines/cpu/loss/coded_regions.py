"""The region of each sample of a coded table under a hypothesis.

A threshold lies between two bins or inside one, so the codes tell the regions of all samples but
those of one bin. That saves time, because the values of a feature are far apart in memory: they lie
in as many lines of the cache as there are samples. The regions of sets of categories, and those of
intervals, follow from the values (`regions`).
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.loss.regions import SAMPLES_AT_ONCE, mark_by_value
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition


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
            self._mark_by_code(hypothesis.feature, np.float64(hypothesis.thresholds[0]))
        self._hypothesis = hypothesis

    def _mark_by_code(self, feature: int, threshold: np.float64) -> None:
        """Find the regions on both sides of a threshold."""
        table, found, slots = self._table, self.found, self._table.layout.slots(feature)
        n_bins = slots.stop - slots.start
        by_bin = np.full(n_bins + 1, SECOND, dtype=np.uint8)
        if table.n_missing[feature]:
            by_bin[n_bins] = MISSING
        n_left = int(np.searchsorted(table.high[slots], threshold, side="right"))  # NaN comes last
        by_bin[:n_left] = FIRST
        codes, by_code = table.codes_of(feature), table.bundles.by_code(feature, by_bin)
        shift = PART_BITS if table.bundles.is_wide[feature] else 0
        n_pieces, size = table.team.pieces(table.n_samples, SAMPLES_AT_ONCE)
        table.team.run(_give_by_code, n_pieces, codes, shift, by_code, found, size)
        if n_left < n_bins and table.layout.has_inner_split[slots.start + n_left]:
            found[table.below(feature, n_left, float(threshold))] = FIRST


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
