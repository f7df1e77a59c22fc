"""The run on a sorted table whose features are scanned whole in every round.

This needs few kernels, so it trains while those of other engines are compiled. A run on a table
with bins (`sorted`), or on sparse columns (`sparse`), is one with another search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

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
from gpustump.engines.cpu.loss.regions import mark_by_value
from gpustump.engines.cpu.loss.terms import SampleSums, region_sums
from gpustump.engines.cpu.split.scan import ScanSearch
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

if TYPE_CHECKING:
    from gpustump.engines.cpu.loss.quantile_loss import QuantileLoss


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
        self._marked: tuple[Any, ...] | None = None  # whose regions these are
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
        cut: Cut = self._finder.best_cut(self.loss.terms, self.sums.by_output)
        if not self.objective.has_signs or self.objective.learner == "interval":
            return cut
        if cut.position is None:
            return constant_cut(self.totals.signed)
        return with_signs(cut, self.region_sums(split_at(self.table, cut)), self.objective)

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        self._mark(hypothesis)
        return region_sums(self.loss.terms, self.regions, self.table.team)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        return np.asarray([self.region_sums(own) for own in hypotheses])

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """See `engines.contract.QuantileState`."""
        if hypothesis is None:
            regions = np.zeros_like(self.regions)
        else:
            self._mark(hypothesis)
            regions = self.regions
        return cast("QuantileLoss", self.loss).quantiles(regions, ranks, self.table.team)

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return category_sums(columns, self.loss.terms, self.table.team)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the samples' numbers by its factors."""
        self._mark(step.hypothesis)
        self._total(self.loss.advance(step, self.regions, self.table.team))

    def _mark(self, hypothesis: Partition) -> None:
        """Find the region of each sample, unless it is known."""
        key = hypothesis.feature, tuple(hypothesis.thresholds), tuple(hypothesis.slices)
        if self._marked == key:
            return
        self._marked = None
        values = self.table.values(hypothesis.feature)
        mark_by_value(values, hypothesis, self.regions, self.table.team)
        self._marked = key

    def _total(self, sums: SampleSums) -> None:
        """Set the sums over all samples."""
        self.sums = sums
        self.totals = sums.totals(self.loss.first_weight, self.table.n_samples)
