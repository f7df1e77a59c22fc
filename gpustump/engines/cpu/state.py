"""A boosting run with discrete votes of one output, on a coded table.

It implements `gpustump.engines.contract.State`, and has the same integers as the reference in every
round; a round takes one pass over the samples. Runs with other votes are in `split_state`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import Cut, RegionSums, Search, Step, Totals
from gpustump.engines.cpu.histogram.category_sums import category_sums
from gpustump.engines.cpu.histogram.signed_run import SignedRun
from gpustump.engines.cpu.loss.known_regions import KnownRegions
from gpustump.engines.cpu.loss.regions import give_by_cut
from gpustump.engines.cpu.loss.samples import Update
from gpustump.engines.cpu.loss.terms import Terms, region_sums
from gpustump.engines.cpu.split.intervals import Weighted, best_pair
from gpustump.engines.cpu.split.places import CodedPlace
from gpustump.engines.cpu.split.signed_search import SignedSearch
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.integer_weights import in_units
from gpustump.learners.hypothesis import Partition, signs


class CodedState:
    """The state of one run.

    Parameters
    ----------
    table : CodedTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    search : Search
    """

    def __init__(
        self, table: CodedTable, y: np.ndarray, sample_weight: np.ndarray, search: Search
    ) -> None:
        self._search, self._table = search, table
        self._run = SignedRun(table, y, in_units(sample_weight))
        self._place = CodedPlace.of_signed(table, self._run.samples.signed)
        self._finder = SignedSearch(table.layout, search, table.team)
        self._regions = np.zeros(table.n_samples, dtype=np.uint8)  # of a hypothesis from elsewhere
        self._known = KnownRegions(table, self._regions)

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        return Totals(*self._run.sums, self._run.first_weight, self._table.n_samples)

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        return self._run.weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return self._run.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut."""
        run, finder = self._run, self._finder
        best = finder.best(self._place, run.bin_sums(), run.sums.signed)
        if self._search.learner == "interval":
            now = Weighted(self._table, run.samples.signed, finder.profile)
            return best_pair(now, finder.edges, best)
        return best

    def region_sums(self, hypothesis: Partition) -> RegionSums:
        """For each region the sum of its signed weights, and the sum of its weights."""
        self._known.mark(hypothesis)
        terms = Terms(self._run.units[np.newaxis], np.empty((0, 0), dtype=np.int64))
        found = region_sums(terms, self._regions, 0, self._table.n_samples).tolist()
        return [[(first, second) for first, second in own] for own in found]

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        none = np.empty((0, 0), dtype=np.int64)
        return category_sums(columns, Terms(self._run.units[np.newaxis], none), self._table.team)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> list[RegionSums]:
        """`region_sums` of each of several hypotheses."""
        return [self.region_sums(hypothesis) for hypothesis in hypotheses]

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        hypothesis, votes = step.discrete_hypothesis, self._run.samples.votes
        if step.cut is None:
            self._known.mark(hypothesis)
            np.take(np.asarray(signs(hypothesis), dtype=np.int8), self._regions, out=votes)
        else:
            sign = step.cut.polarity
            give_by_cut(self._table, step.cut, (sign, -sign, step.cut.missing), votes)
        self._finder.follow(step)
        if step.is_known:  # the sums over bins are not needed before the next search
            self._run.advance_only(Update.of(step))
        else:
            self._run.advance(Update.of(step))
