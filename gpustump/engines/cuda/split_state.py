"""A run of boosting on the device with real, Newton or shared votes.

It implements `engines.contract.State`, like `stump_state`: `advance` queues everything that follows
from a step, including the search for the next cut. One copy a round brings the best cut to the
host, with the sums over its regions, which decide the votes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import Beginning, Cut, Step, Totals, split_at
from gpustump.engines.cuda.losses import LossPass
from gpustump.engines.cuda.search import NO_SCORE, Best, Found
from gpustump.engines.cuda.split_search import SplitSearch
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.gain import exact_score_of
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS, Partition, regions


class SplitState:
    """The state of one run.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    sample_weight : array (n_samples,) of float64
        Positive.
    objective : Objective
    beginning : Beginning, optional
    """

    def __init__(
        self,
        table: CudaTable,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> None:
        self._table, self._device, self._objective = table, table.device, objective

        def made() -> tuple[LossPass, SplitSearch]:
            update = LossPass(table, labels, sample_weight, objective, beginning)
            return update, SplitSearch(table, update, objective)

        self._best: Cut | None = None
        with self._device.active():
            self._update, self._search = table.orders.making_room(made)
            self._update.queue_beginning()
            self._search.queue()
            self._search.expect()
        self._queue_round: Callable[[], None] | None = None

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        return self._found().sums.totals(self._update.first_weight, self._table.n_samples)

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        with self._device.active():
            return self._update.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._found().sums.smallest

    def best_cut(self) -> Cut:
        """The largest cut, in the order of `Cut`."""
        if self._best is None:
            self._best = self._larger(self._found().best, self._search.region_sums())
        return self._best

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        if self._table.has_categories_of(hypothesis):
            return self._search.sums_in_regions(hypothesis)
        cut = self.best_cut()
        if cut.position is not None and split_at(self._table, cut) == hypothesis:
            return self._search.region_sums()
        cut_of_it = self._table.cut_of(hypothesis)
        if cut_of_it is not None:
            return self._search.sums_at([cut_of_it])[0]
        with self._device.active():
            return self._sums_over(self._regions(hypothesis))

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses; cuts are added up by one launch."""
        cuts = [self._table.cut_of(hypothesis) for hypothesis in hypotheses]
        found = iter(self._search.sums_at([cut for cut in cuts if cut is not None]))
        return np.asarray(
            [
                self.region_sums(hypothesis) if cut is None else next(found)
                for hypothesis, cut in zip(hypotheses, cuts, strict=True)
            ]
        )

    def advance(self, step: Step) -> None:
        """Queue everything that a step changes, and the search for the next cut."""
        self._found()  # the last step must be done
        self._best = None
        with self._device.active():
            cut = self._table.parting_of(step)
            given = self._regions(step.hypothesis) if cut is None else None
            self._update.write(step, cut, given)
            if self._queue_round is None:
                self._queue_round = self._table.recorded(self._queue)
            self._queue_round()
            self._search.expect()

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return self._search.category_sums(columns.n_numbers)

    def _queue(self) -> None:
        self._update.queue()
        self._search.queue()

    def _larger(self, best: Best, sums: np.ndarray) -> Cut:
        """The best split, or the constant if that is better."""
        together = np.zeros_like(sums)
        together[0] = sums.sum(axis=0)
        at_once = exact_score_of(together.tolist(), self._objective)
        constant = Cut(0, None, 0, 0, at_once)
        if best.score == NO_SCORE:
            return constant
        score = exact_score_of(sums.tolist(), self._objective)
        return max(Cut(best.feature, best.position, 0, 0, score), constant)

    def _regions(self, hypothesis: Partition) -> Array:
        values = self._table.values(hypothesis.feature)
        return self._device.array(regions(hypothesis, values)).astype(np.uint8)

    def _sums_over(self, region: Array) -> np.ndarray:
        terms = self._update.histograms.terms[:, : self._table.n_samples]
        xp, n_outputs = self._device.xp, self._objective.n_outputs
        sizes, is_positive = terms & (2**63 - 1), terms < 0
        gradient, hessian = sizes, sizes
        if self._objective.has_hessians:
            gradient, hessian, is_positive = sizes[::2], sizes[1::2], is_positive[::2]
        signed = xp.where(is_positive, gradient, -gradient)
        sums = [
            xp.sum(xp.where(region == number, part[k], 0))
            for number in range(N_REGIONS)
            for k in range(n_outputs)
            for part in (signed, hessian)
        ]
        found = np.asarray(arrays.integers(xp.stack(sums)))
        return found.reshape(N_REGIONS, n_outputs, 2)

    def _found(self) -> Found:
        return self._search.found()
