"""The run on a sorted table: every feature is scanned whole, or searched in small bins.

If all weights fit into the nearest cache, reading a weight in sorted order takes no more time than
reading the sum of a bin, so bins would save nothing. A table of medium size is divided into small
bins, so that most of the scan is not needed (see `split.small_bins`). A larger one is only coded
(see `coded`): that takes less memory, and its sums are updated instead of added up anew. But each
of its rounds makes many calls of kernels, which take a millisecond however small the table is.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.batched_rounds import NEWTON, ValidationSamples, VoteRule
from gpustump.engines.category_search import Categories
from gpustump.engines.cpu.loss.terms import SampleSums
from gpustump.engines.cpu.rounds.batched_rounds import BatchedRounds
from gpustump.engines.cpu.scanned import ScannedState
from gpustump.engines.cpu.split.scan import ScanSearch
from gpustump.engines.cpu.split.small_bins import BinSearch
from gpustump.engines.cpu.split.sorted_intervals import SortedIntervals
from gpustump.engines.cpu.table import small_bins, thresholds  # noqa: F401  # with their kernels

_MOST_AHEAD, _MOST_AHEAD_IN_BINS = 2**20, 2**24
"""Rounds of more elements, times outputs, are made one by one: a scan of so many takes a
millisecond, beside which a batch saves almost nothing. The second number is for tables with bins,
of which few are larger; see `route.SORTED_ELEMENTS`."""


class SortedState(ScannedState):
    """The state of one run; see `ScannedState`. Rounds on small tables are made in batches."""

    _finder: ScanSearch | BinSearch | SortedIntervals

    def _new_finder(self) -> ScanSearch | BinSearch | SortedIntervals:
        if self.objective.learner == "interval":
            return SortedIntervals(self.table)
        if self.table.has_bins:
            return BinSearch(self.table, self.objective, self.loss.terms.gradient)
        return ScanSearch(self.table, self.objective)

    def batch_maker(
        self,
        rule: VoteRule,
        validation: ValidationSamples | None,
        categories: Categories | None = None,
    ) -> BatchedRounds | None:
        """The object that makes rounds in batches; see `engines.batched_rounds`.

        None if a scan is large enough for several threads, if a round takes too long for batches
        to save time, for intervals, for values of float16, and for sets of categories unless votes
        are Newton's.
        """
        if categories is not None and rule.kind != NEWTON:
            return None
        table, finder, n_outputs = self.table, self._finder, self.objective.n_outputs
        most = _MOST_AHEAD_IN_BINS if table.has_bins else _MOST_AHEAD
        if table.source.is_half or table.order.size * n_outputs > most:
            return None
        if isinstance(finder, SortedIntervals):
            return None
        if isinstance(finder, ScanSearch) and not finder.is_alone:
            return None
        return BatchedRounds(self, rule, validation, categories, finder)

    def take_made(self, sums: np.ndarray) -> None:
        """Set the sums over all samples after rounds that were made in batches."""
        self._marked = None
        self._total(SampleSums(sums))
