"""A run of boosting classic stumps, or intervals, on the device.

It implements `engines.contract.State`, and has the same integers as the reference in every round;
`split_state` is for other votes. One copy a round brings the integers, and the two values beside
the cut, to the host, unless a sorted order is missing on the device. `advance` queues everything
that follows from a step, including the search for the next cut, and returns at once; the methods
that need a result wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import Cut, Step, Totals, constant_cut, sign_of
from gpustump.engines.cuda.interval_search import IntervalSearch
from gpustump.engines.cuda.search import NO_SCORE, Found
from gpustump.engines.cuda.stump_search import StumpSearch
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import FIRST, Change, Discrete, UpdatePass
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS, Partition, by_region, regions


class StumpState:
    """The state of one run.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.
    objective : Objective
        With signs.
    """

    def __init__(
        self, table: CudaTable, labels: Array, sample_weight: Array, objective: Objective
    ) -> None:
        self._table, self._device = table, table.device

        def made() -> tuple[UpdatePass, StumpSearch | IntervalSearch]:
            update = UpdatePass(table, labels, sample_weight)
            if objective.learner == "interval":
                return update, IntervalSearch(table, update)
            return update, StumpSearch(table, update, objective)

        with self._device.active():
            self._update, self._search = table.orders.making_room(made)
            self._update.write(FIRST)
            self._queue()
            self._search.expect()
            self._queue_round = self._table.recorded(self._queue)
            self._first_weight = self._found().sums.weight

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        return self._found().sums.totals(self._first_weight, self._table.n_samples)

    @property
    def weights(self) -> Array:
        """Float64 weights, (n_samples,); see `State.weights`."""
        with self._device.active():
            return self._device.xp.abs(self._update.signed)

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return self._found().sums.smallest

    def best_cut(self) -> Cut:
        """The largest cut, in the order of `Cut`, under the integer weights."""
        found = self._found()
        best, total = found.best, found.sums.signed_weight
        constant = constant_cut(total)
        if best.score == NO_SCORE:
            return constant
        missing = sign_of(found.missing or total)
        cut = Cut(best.feature, best.position, best.detail, missing, best.score, best.after)
        return max(cut, constant)

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        if self._table.has_categories_of(hypothesis):
            return self._search.sums_in_regions(hypothesis)
        with self._device.active():
            values, signed = self._table.values(hypothesis.feature), self._update.signed
            xp = self._device.xp
            region = self._device.array(by_region(hypothesis, values, range(N_REGIONS)))
            units = xp.ceil(xp.abs(signed)).astype(np.int64)
            sums = [
                xp.sum(xp.where((region == r) & ((signed > 0) == is_positive), units, 0))
                for r in range(N_REGIONS)
                for is_positive in (False, True)
            ]
            found = np.asarray(arrays.integers(xp.stack(sums))).reshape(N_REGIONS, 1, 2)
        negative, positive = found[..., 0], found[..., 1]
        return np.stack([positive - negative, positive + negative], axis=2)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        return np.asarray([self.region_sums(hypothesis) for hypothesis in hypotheses])

    def advance(self, step: Step) -> None:
        """Queue everything that a step changes, and the search for the next cut."""
        self._found()  # the last step must be done
        with self._device.active():
            given, cut = None, self._table.parting_of(step)
            if cut is None:
                values = self._table.values(step.hypothesis.feature)
                given = self._device.array(regions(step.hypothesis, values)).astype(np.uint8)
            self._update.write(Change(cut, given, Discrete.of(step), step.rescale_exponent))
            self._queue_round()
            self._search.expect()

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return self._search.category_sums(columns.n_numbers)

    def _queue(self) -> None:
        self._update.queue()
        self._search.queue()

    def _found(self) -> Found:
        return self._search.found()
