"""The run on a sorted table whose features are scanned whole in every round.

This needs few kernels, so it trains while those of other engines are compiled. A run on a table
with bins (`sorted`), or on sparse columns (`sparse`), is one with another search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import (
    Beginning,
    Cut,
    Step,
    Totals,
    constant_cut,
    split_at,
    with_signs,
)
from gpustump.engines.cpu.histogram.category_sums import category_sums
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.loss.regions import mark_by_position, mark_by_value
from gpustump.engines.cpu.loss.terms import SampleSums, region_sums
from gpustump.engines.cpu.split.scan import ScanSearch
from gpustump.engines.cpu.table.sorted_table import STUMP
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

Place = tuple[int, int | None, int | None]
"""The feature, `after` and `position` of a cut."""


class ScannedState:
    """The state of one run.

    Parameters
    ----------
    table : SortedTable
        Or one that does what is asked of it here, as a `SparseSorted`.
    labels, sample_weight : ndarray
        See `engines.contract.Engine`.
    objective : Objective
    beginning : Beginning, optional
        In NumPy arrays.

    Attributes
    ----------
    totals : Totals
        Sums over all samples.
    sums : SampleSums
        The same, for each output.
    regions : ndarray (n_samples,) of uint8
        The regions of the last hypothesis.
    """

    totals: Totals
    sums: SampleSums

    def __init__(
        self,
        table: Any,
        labels: np.ndarray,
        sample_weight: np.ndarray,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> None:
        self.table, self.objective = table, objective
        self.loss = loss_of(labels, in_units(sample_weight, objective.n_copies), objective)
        if beginning is not None:
            self.loss.start_from(beginning)
        self.regions = np.zeros(table.n_samples, dtype=np.uint8)
        self._parted: Partition | Place | None = None  # whose regions these are
        self._found: Cut | None = None
        self._total(self.loss.begin(table.team))
        self._finder = self._new_finder()

    def _new_finder(self) -> Any:
        """What finds the best cut of the table."""
        return ScanSearch(self.table, self.objective)

    @property
    def weights(self) -> np.ndarray:
        """See `engines.contract.State.weights`."""
        return self.loss.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self.loss.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut."""
        cut = self._finder.best_cut(self.loss.terms, self.sums.by_output)
        self._found = cut
        if self.objective.has_signs and self.objective.learner == "stump":
            if cut.position is None:
                return constant_cut(self.totals.signed)
            self._found = with_signs(
                cut, self.region_sums(split_at(self.table, cut)), self.objective
            )
        return self._found

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        found = self._found
        is_found = found is not None and self.table.has_cut(found, hypothesis)
        self._part(hypothesis, found if is_found else None)
        return region_sums(self.loss.terms, self.regions, self.table.team)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        return np.asarray([self.region_sums(own) for own in hypotheses])

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return category_sums(columns, self.loss.terms, self.table.team)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the samples' numbers by its factors."""
        self._part(step.hypothesis, step.cut)
        self._total(self.loss.advance(step, self.regions, self.table.team))

    def _part(self, hypothesis: Partition, cut: Cut | None) -> None:
        """Find the region of each sample; `cut` is the hypothesis's cut, if known."""
        key = hypothesis if cut is None else (cut.feature, cut.after, cut.position)
        if self._parted == key:
            return
        self._parted = None
        if cut is None:
            values = self.table.values(hypothesis.feature)
            mark_by_value(values, hypothesis, self.regions, self.table.team)
        else:
            self._mark(cut)
        self._parted = key

    def _mark(self, cut: Cut) -> None:
        """Write the region of each sample."""
        own, n_present = self.table.order[cut.feature], int(self.table.n_present[cut.feature])
        position = n_present - 1 if cut.position is None else cut.position
        after = STUMP if cut.after is None else cut.after
        mark_by_position(own, n_present, after, position, self.regions)

    def _total(self, sums: SampleSums) -> None:
        """Set the sums over all samples."""
        self.sums = sums
        self.totals = sums.totals(self.loss.first_weight, self.table.n_samples)
