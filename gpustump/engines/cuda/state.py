"""A run of boosting on the device.

It implements `engines.contract.State`, and has the same integers as the reference in every round.
`advance` queues everything that follows from a step, including the search for the next cut, and
returns at once; the methods that need a result wait for it. One copy a round brings the best cut to
the host, with the sums that decide the votes, unless a sorted order is missing on the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import Beginning, Cut, Step, Totals
from gpustump.engines.cuda.interval_search import IntervalSearch
from gpustump.engines.cuda.losses import LossPass
from gpustump.engines.cuda.split_search import SplitSearch
from gpustump.engines.cuda.stump_search import StumpSearch
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import UpdatePass
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS, Partition, regions


class CudaState:
    """The state of one run.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64. For a
        quantity the targets.
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
        self._table, self._device = table, table.device

        def made() -> tuple[UpdatePass | LossPass, StumpSearch | IntervalSearch | SplitSearch]:
            units = in_units(self._device.array(sample_weight), objective.n_copies)
            update = pass_of(table, labels, units, objective, beginning)
            del units  # before the search takes memory
            if isinstance(update, LossPass):
                return update, SplitSearch(table, update, objective)
            search = IntervalSearch if objective.learner == "interval" else StumpSearch
            return update, search(table, update, objective)

        with self._device.active():
            self._update, self._search = table.orders.making_room(made)
            self._update.queue_beginning()
            self._search.queue()
            self._search.expect()
            self._queue_round = table.recorded(self._queue)

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        found = self._search.found()
        return Totals(
            found.signed_weight, found.weight, found.error, self._update.first_weight,
            self._table.n_samples,
        )  # fmt: skip

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        with self._device.active():
            return self._update.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._search.found().smallest

    def best_cut(self) -> Cut:
        """The largest cut, in the order of `Cut`."""
        return self._search.best_cut()

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        found: np.ndarray = self.sums_over_each([hypothesis])[0]
        return found

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        known = self._search.sums_over_each(hypotheses)
        return np.asarray(
            [
                added_up(self._table, self._update, hypothesis) if sums is None else sums
                for hypothesis, sums in zip(hypotheses, known, strict=True)
            ]
        )

    def advance(self, step: Step) -> None:
        """Queue everything that a step changes, and the search for the next cut."""
        self._search.found()  # the last step must be done
        with self._device.active():
            write_step(self._table, self._update, step)
            self._queue_round()
            self._search.expect()

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return self._search.category_sums(columns.n_numbers)

    def _queue(self) -> None:
        self._update.queue()
        self._search.queue()


def pass_of(
    table: CudaTable,
    labels: Array,
    units: Array,
    objective: Objective,
    beginning: Beginning | None = None,
) -> UpdatePass | LossPass:
    """The pass over the samples for an objective; see `LossPass` for the arguments."""
    if objective.has_signs:
        return UpdatePass(table, labels, units)
    return LossPass(table, labels, units, objective, beginning)


def write_step(table: CudaTable, update: UpdatePass | LossPass, step: Step) -> None:
    """Write a step for a pass to queue. The device must have finished the last one."""
    cut = table.parting_of(step)
    given = None
    if cut is None:
        given = _regions(table, step.hypothesis).astype(np.uint8)
    update.write(step, cut, given)


def added_up(table: CudaTable, update: UpdatePass | LossPass, hypothesis: Partition) -> np.ndarray:
    """The sums over a hypothesis's regions, from the integers of all samples."""
    with table.device.active():
        xp, region = table.device.xp, _regions(table, hypothesis)
        sums = [
            xp.sum(xp.where(region == number, part, 0))
            for integers in update.integers()
            for part in integers
            for number in range(N_REGIONS)
        ]
        found = np.asarray(arrays.integers(xp.stack(sums)))
    return np.moveaxis(found.reshape(-1, 2, N_REGIONS), 2, 0)


def _regions(table: CudaTable, hypothesis: Partition) -> Array:
    values = table.source.values(hypothesis.feature)
    return table.device.array(regions(hypothesis, values))
