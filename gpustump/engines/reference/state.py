"""One boosting run on arrays of any library: the loss, the scores, and the best cut.

It takes any hypothesis, any votes and any number of outputs. The compiled engines are tested
against it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.contract import (
    Beginning,
    Cut,
    Step,
    Totals,
    split_at,
    with_signs,
)
from gpustump.engines.objective import Objective
from gpustump.engines.reference import sparse_scan
from gpustump.engines.reference.exponential_loss import ExponentialLoss
from gpustump.engines.reference.integers import (
    Integers,
    Loss,
    hessian_of,
    parts_of,
    picked_numbers,
    sums_in_order,
)
from gpustump.engines.reference.interval_scan import best_interval
from gpustump.engines.reference.logistic_loss import LogisticLoss
from gpustump.engines.reference.quantile_loss import QuantileLoss
from gpustump.engines.reference.ratio_loss import RatioLoss
from gpustump.engines.reference.softmax_loss import SoftmaxLoss
from gpustump.engines.reference.sparse_scan import SparseCells
from gpustump.engines.reference.split_scan import best_split
from gpustump.engines.reference.squared_loss import SquaredLoss
from gpustump.engines.reference.stump_scan import best_stump
from gpustump.engines.reference.table import ArrayTable
from gpustump.engines.sparse_order import SparseOrder
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, Partition, regions

_ELEMENTS_AT_ONCE = 2**20
"""The regions of so many samples are looked at together, or of all for one hypothesis."""


class ArrayState:
    """The state of one run; see `engines.contract.State`.

    Parameters
    ----------
    table : ArrayTable or SparseOrder
    labels : array (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64. For a
        quantity the targets.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    objective : Objective
    beginning : Beginning, optional
    """

    def __init__(
        self,
        table: ArrayTable | SparseOrder,
        labels: Array,
        units: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> None:
        self._table, self._labels, self._objective = table, labels, objective
        self._xp = arrays.namespace_of(labels)
        self._loss = loss_of(labels, units, objective, beginning)
        self._integers: Integers | None = None  # computed when first needed in a round
        zeros = self._xp.zeros_like(units)
        self._scores = [
            zeros if beginning is None else beginning.scores[output, :]
            for output in range(objective.n_outputs)
        ]
        self._first_weights = self._xp.astype(units, self._xp.int64)
        self._first_weight = int(self._xp.sum(self._first_weights))
        self._totals: Totals | None = None
        self._by_category: list[tuple[Array, Array]] = []  # made when first needed
        self._cells: SparseCells | None = None

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        if self._totals is None:
            gradient, hessian = map(sum, zip(*self.integers().totals, strict=True))
            self._totals = Totals(
                signed=gradient,
                weight=hessian,
                error=self._error(),
                first_weight=self._first_weight,
                n_samples=self._table.n_samples,
            )
        return self._totals

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        return self._loss.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return min(int(self._xp.min(hessian_of(own))) for own in self.integers().outputs)

    def best_cut(self) -> Cut:
        """The largest cut; see `best_stump`, `best_interval` and `best_split`."""
        integers = self.integers()
        if isinstance(self._table, SparseOrder):
            return self._best_of_sparse(self._table, integers)
        if self._objective.has_signs:
            if self._objective.learner == "interval":
                return best_interval(self._table, integers)
            return best_stump(self._table, integers, self._objective)
        return best_split(self._table, integers, self._objective)

    def _best_of_sparse(self, table: SparseOrder, integers: Integers) -> Cut:
        if self._cells is None:
            self._cells = SparseCells.of_table(table, integers.outputs[0].gradient)
        cut = sparse_scan.best_split(self._cells, integers, self._objective)
        if not self._objective.has_signs or cut.position is None:
            return cut
        return with_signs(cut, self.region_sums(split_at(table, cut)), self._objective)

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        found: np.ndarray = self.sums_over_each([hypothesis])[0]
        return found

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        xp, n_at_once = self._xp, max(1, _ELEMENTS_AT_ONCE // self._table.n_samples)
        outputs, totals = self.integers().outputs, np.asarray(self.integers().totals)
        found = np.zeros((len(hypotheses), N_REGIONS, *totals.shape), dtype=np.int64)
        for begin in range(0, len(hypotheses), n_at_once):
            own = slice(begin, begin + n_at_once)
            region = xp.stack([self._regions(hypothesis) for hypothesis in hypotheses[own]])
            sums = [
                xp.sum(xp.where(region == number, part, 0), axis=1)
                for number in (FIRST, MISSING)
                for part in parts_of(outputs)
            ]
            on_host = arrays.to_host(xp.stack(sums, axis=1))  # one transfer from the device
            found[own][:, [FIRST, MISSING]] = on_host.reshape(-1, 2, *totals.shape)
        found[:, SECOND] = totals - found[:, FIRST] - found[:, MISSING]
        return found

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """See `engines.contract.QuantileState`."""
        assert isinstance(self._loss, QuantileLoss)
        if hypothesis is None:
            return self._loss.quantiles(self._xp.zeros_like(self._first_weights), ranks)
        return self._loss.quantiles(self._regions(hypothesis), ranks)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        region = self._regions(step.hypothesis)
        by_output = zip(*step.votes, strict=True)
        self._scores = [
            scores + picked_numbers(votes, region)
            for scores, votes in zip(self._scores, by_output, strict=True)
        ]
        self._loss.advance(region, step.votes, step.factors)
        self._integers = self._totals = None

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        if not self._by_category:  # of each feature the samples by category, and where each ends
            xp, device = self._xp, arrays.device_of(self._labels)
            orders = np.argsort(columns.numbers, axis=1, kind="stable")
            ends = np.cumsum(columns.counts, axis=1)
            self._by_category = [
                (xp.asarray(order, device=device), xp.asarray(end, device=device))
                for order, end in zip(orders, ends, strict=True)
            ]
        return np.stack([sums_in_order(self.integers(), *own) for own in self._by_category])

    def integers(self) -> Integers:
        """This round's integers."""
        if self._integers is None:
            self._integers = self._loss.integers()
        return self._integers

    def _regions(self, hypothesis: Partition) -> Array:
        return regions(hypothesis, self._table.values(hypothesis.feature))

    def _error(self) -> int:
        """The weight of the samples that the scores get wrong, or the losses of a quantity."""
        if isinstance(self._loss, SquaredLoss | RatioLoss):
            return self._loss.error()
        return int(self._xp.sum(self._xp.where(self._is_wrong(), self._first_weights, 0)))

    def _is_wrong(self) -> Array:
        """Whether the scores misclassify each sample; of equal scores the first class wins."""
        if len(self._scores) == 1:
            return (self._scores[0] > 0) != (self._labels > 0)
        best = self._scores[0]
        predicted = self._xp.zeros_like(self._labels)
        for number, scores in enumerate(self._scores[1:], start=1):
            predicted = self._xp.where(scores > best, number, predicted)
            best = self._xp.maximum(scores, best)
        return predicted != self._labels


def loss_of(
    labels: Array, units: Array, objective: Objective, beginning: Beginning | None = None
) -> Loss:
    """The loss that a search's votes lower, for weights (n_samples,) in units of the integers."""
    numbers = None if beginning is None else beginning.numbers
    if objective.loss == "exponential":
        return ExponentialLoss(labels, units, objective.n_outputs)
    if objective.loss == "logistic":
        return LogisticLoss(labels, units, numbers)
    if objective.loss == "squared_error":
        return SquaredLoss(labels, units, None if beginning is None else beginning.scores)
    if objective.loss == "quantile":
        return QuantileLoss(labels, units, objective.level)
    if objective.loss in ("poisson", "gamma"):
        is_poisson = objective.loss == "poisson"
        return RatioLoss(labels, units, is_poisson=is_poisson, beginning=beginning)
    return SoftmaxLoss(labels, units, objective.n_outputs, numbers)
