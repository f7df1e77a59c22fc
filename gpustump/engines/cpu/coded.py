"""A boosting run on a coded table.

It implements `gpustump.engines.contract.State`. In every round the integers of samples change, and
the sums over bins with them (`bin_sums`); a search of these finds the best split (`split_search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import Beginning, Cut, Step, split_at
from gpustump.engines.cpu.histogram.bin_sums import BinSums, HistogramSums
from gpustump.engines.cpu.histogram.category_sums import category_sums
from gpustump.engines.cpu.histogram.estimates import Move, is_worth_following
from gpustump.engines.cpu.loss.coded_regions import CodedRegions
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.loss.terms import SampleSums, region_sums
from gpustump.engines.cpu.split.split_search import Counts, SplitSearch
from gpustump.engines.cpu.split.sums_source import CodedSums
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

if TYPE_CHECKING:
    from gpustump.engines.cpu.histogram.amount_sums import AmountSums
    from gpustump.engines.cpu.loss.quantile_loss import QuantileLoss
    from gpustump.engines.cpu.loss.ratio_loss import RatioLoss


class CodedState:
    """The state of one run.

    Parameters
    ----------
    table : CodedTable
    labels : ndarray (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    objective : Objective
    beginning : Beginning, optional
        In NumPy arrays.

    Attributes
    ----------
    totals : Totals
        Sums over all samples.
    """

    def __init__(
        self,
        table: CodedTable,
        labels: np.ndarray,
        sample_weight: np.ndarray,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> None:
        self._table, self._objective = table, objective
        units = in_units(sample_weight, objective.n_copies)
        self._loss, self._source, self._bins = _samples_and_sums(table, labels, units, objective)
        if beginning is not None:
            self._loss.start_from(beginning)
        self._regions = CodedRegions(table)
        least = int(units.min()) if objective.loss in ("squared_error", "quantile") else 1
        are_amounts = objective.loss in ("poisson", "gamma")
        counts = Counts(table.n_samples, table.n_missing, least, are_amounts=are_amounts)
        self._finder = SplitSearch(table.layout, counts, objective, table.team)
        self._found: tuple[Partition, Cut] | None = None
        self._is_behind = False  # whether the sums over bins wait for the next search
        self._total(self._loss.begin(table.team))
        self._bins.add_up()

    @property
    def weights(self) -> np.ndarray:
        """See `engines.contract.State.weights`."""
        return self._loss.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._loss.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut."""
        if self._is_behind:
            self._bins.add_up()
            self._is_behind = False
        cut = self._finder.best(self._source, self._bins, self._sums.by_output)
        self._found = (split_at(self._table, cut), cut)
        return cut

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        if self._found is not None and self._found[0] == hypothesis:
            known = self._finder.sums_of(self._found[1])
            if known is not None:
                return known
        self._regions.mark(hypothesis)
        return region_sums(self._loss.terms, self._regions.found, self._table.team)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        return np.asarray([self.region_sums(own) for own in hypotheses])

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """See `engines.contract.QuantileState`."""
        if hypothesis is None:
            regions = np.zeros(self._table.n_samples, dtype=np.uint8)
        else:
            self._regions.mark(hypothesis)
            regions = self._regions.found
        return cast("QuantileLoss", self._loss).quantiles(regions, ranks, self._table.team)

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return category_sums(columns, self._loss.terms, self._table.team)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        self._regions.mark(step.hypothesis)
        regions, known = self._regions.found, self._finder.follow(step)
        was_behind, self._is_behind = self._is_behind, step.is_known

        def advance_samples() -> None:
            self._total(self._loss.advance(step, regions, self._table.team))

        if step.is_known:  # the sums over bins are not needed before the next search
            advance_samples()
            return
        sums = None if was_behind else self._bins.take_step(self._loss, step, regions)
        if sums is not None:
            self._total(sums)
        elif known is not None and self._is_followed(*known):
            cast("BinSums | AmountSums", self._bins).follow(advance_samples, regions, known[1])
        else:
            advance_samples()
            self._bins.add_up()

    def _is_followed(self, counts: Sequence[int], move: Move) -> bool:
        """Whether the sums over bins are to be estimated after a step."""
        follows = is_worth_following(counts)
        sums = cast("BinSums | AmountSums", self._bins)  # under a softmax no move is known
        sums.expect(move, follows=follows)
        return follows

    def _total(self, sums: SampleSums) -> None:
        """Set the sums over all samples."""
        self._sums = sums
        self.totals = sums.totals(self._loss.first_weight, self._table.n_samples)


def _samples_and_sums(
    table: CodedTable, labels: np.ndarray, units: np.ndarray, objective: Objective
) -> tuple[Loss, CodedSums, HistogramSums | AmountSums]:
    """What a run keeps of its samples, the source of its sums, and the sums over bins.

    Only the files that the objective needs are imported; see `engine.stages_of`.
    """
    if objective.loss == "softmax":
        from gpustump.engines.cpu.histogram.row_sums import RowSums
        from gpustump.engines.cpu.loss.softmax_rows import SoftmaxRowsLoss
        from gpustump.engines.cpu.split.sums_of_rows import source_of_rows

        of_classes = SoftmaxRowsLoss(labels, units, objective.n_outputs)
        source = source_of_rows(table, of_classes.rows)
        return of_classes, source, RowSums(table, of_classes.rows, objective)
    loss = loss_of(labels, units, objective)
    source = CodedSums.of_terms(table, loss.terms)
    if objective.loss in ("poisson", "gamma"):
        from gpustump.engines.cpu.histogram.amount_sums import AmountSums

        return loss, source, AmountSums(table, cast("RatioLoss", loss))
    if objective.loss == "squared_error":
        from gpustump.engines.cpu.histogram.residual_sums import ResidualSums

        return loss, source, ResidualSums(table, loss, objective)
    if objective.loss == "quantile":
        from gpustump.engines.cpu.histogram.quantile_sums import QuantileSums

        return loss, source, QuantileSums(table, loss, objective)
    return loss, source, BinSums(table, loss.terms, objective)
