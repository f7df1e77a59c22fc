"""The sums over held-out samples that early stopping needs after a round, in one pass over scores.

They are the same integers as those of the array operations in `boosting.held_out_losses` and
`held_out_shares`: scores are converted to whole multiples of `VOTE_UNIT`, losses are interpolated
in a table by integer arithmetic, and sums are int64. The only product of floats, of a weight and a
loss, is rounded to an integer before it is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import Integers, group, kernel
from gpustump.engines.threads import Team, ranges, threads_of
from gpustump.learners.step_table import VOTE_UNIT

_PIECE = 2**15
"""Samples that a thread takes at a time; fewer are done before another thread has begun."""

_LOSS_BITS = 32
"""Losses are multiples of 2**-32, those of the table and those that are added up."""


@group
class LossTable(NamedTuple):
    """An `engines.held_out.LossTable` with names."""

    nodes: Integers
    drops: Integers
    node_bits: int


_Table = tuple[np.ndarray, np.ndarray, int]


class HeldOutSums:
    """The sums over some held-out samples; see `engines.held_out.HeldOutSums`."""

    def __init__(
        self, classes: np.ndarray, units: np.ndarray, n_classes: int, n_jobs: int | None = None
    ) -> None:
        self._classes, self._units = np.ascontiguousarray(classes), np.ascontiguousarray(units)
        self._n_classes = n_classes
        self._pieces = ranges(len(units), _PIECE)
        self._team = Team(threads_of(n_jobs) if len(self._pieces) > 1 else 1)

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Classes, units, and how many classes there are."""
        return self._classes, self._units, self._n_classes

    def right_weights(self, scores: np.ndarray) -> list[int]:
        """For each class the integer weight of its samples that are classified right."""
        return self._added_up(add_right, scores, self._n_classes, self._units)

    def logistic(
        self, scores: np.ndarray, weights: np.ndarray, table: _Table, bits: int
    ) -> list[int]:
        """For each output the sum of the weighted logistic losses."""
        rest = weights, LossTable(*table), bits
        return self._added_up(add_logistic, scores, _n_outputs(scores), *rest)

    def softmax(
        self, scores: np.ndarray, weights: np.ndarray, table: _Table, bits: int
    ) -> list[int]:
        """The sum of the weighted losses of the softmax, as its only item."""
        return self._added_up(add_softmax, scores, 1, weights, LossTable(*table), bits)

    def logistic_shares(
        self, scores: np.ndarray, weights: np.ndarray, table: _Table, bits: int
    ) -> list[int]:
        """The same with the class's share of the logistic probabilities of all classes."""
        return self._added_up(_add_logistic_shares, scores, 1, weights, LossTable(*table), bits)

    def _added_up(
        self, add: Callable[..., None], scores: np.ndarray, n_sums: int, *rest: Any
    ) -> list[int]:
        columns = np.ascontiguousarray(scores).reshape(len(scores), _n_outputs(scores))
        sums = np.zeros((len(self._pieces), n_sums), dtype=np.int64)

        def work(number: int) -> None:
            add(columns, self._classes, *rest, sums[number], *self._pieces[number])

        self._team.each(work, range(len(self._pieces)))
        totals: list[int] = sums.sum(axis=0).tolist()
        return totals


def _n_outputs(scores: np.ndarray) -> int:
    """How many columns scores have, (n_samples,) or (n_samples, n_outputs), even without rows."""
    return 1 if scores.ndim == 1 else int(scores.shape[1])


@kernel("void(float64[:, ::1], int64[::1], int64[::1], int64[::1], int64, int64)")
def add_right(scores, classes, units, sums, low, high):  # type: ignore[no-untyped-def]
    if scores.shape[1] == 1:
        right, positive = 0, 0
        for i in range(low, high):  # without branches and stores: several samples at once
            own = units[i] & -np.int64((scores[i, 0] > 0.0) == (classes[i] == 1))
            right += own
            positive += own & -classes[i]
        sums[0] += right - positive
        sums[1] += positive
        return
    for i in range(low, high):
        best, largest = 0, scores[i, 0]
        for output in range(1, scores.shape[1]):
            is_larger = scores[i, output] > largest
            best = output if is_larger else best
            largest = max(largest, scores[i, output])
        sums[classes[i]] += units[i] & -np.int64(best == classes[i])


@kernel("int64(float64)")
def _in_units(score):  # type: ignore[no-untyped-def]
    """A score as a whole number of `VOTE_UNIT`; exact."""
    return np.int64(score * (1.0 / VOTE_UNIT))


@kernel("int64(int64, LossTable, int64)")
def _added(size, table, bits):  # type: ignore[no-untyped-def]
    """ln(1 + exp(-x)) for x = size * 2**-bits, not negative."""
    step_bits = bits - table.node_bits
    place = min(size >> step_bits, len(table.nodes) - 1)
    rest = size & ((1 << step_bits) - 1)
    return table.nodes[place] - ((table.drops[place] * rest) >> step_bits)


@kernel("int64(int64, LossTable, int64)")
def _loss(margin, table, bits):  # type: ignore[no-untyped-def]
    """ln(1 + exp(-x)) for x = margin * 2**-bits."""
    size = abs(margin)
    return _added(size, table, bits) + ((size - margin) >> (bits - _LOSS_BITS + 1))


@kernel("int64(float64, int64)")
def _weighted(weight, loss):  # type: ignore[no-untyped-def]
    return np.int64(np.rint(weight * np.float64(loss)))


_ADD_LOSSES = (
    "void(float64[:, ::1], int64[::1], float64[::1], LossTable, int64, int64[::1], int64, int64)"
)


@kernel(_ADD_LOSSES)
def add_logistic(scores, classes, weights, table, bits, sums, low, high):  # type: ignore[no-untyped-def]
    n_outputs = scores.shape[1]
    for output in range(n_outputs):
        positive = 1 if n_outputs == 1 else output
        total = 0
        for i in range(low, high):
            units = _in_units(scores[i, output])
            margin = units if classes[i] == positive else -units
            total += _weighted(weights[i], _loss(margin, table, bits))
        sums[output] += total


@kernel("int64(int64, int64, LossTable, int64)")
def _log_of_sum(total, term, table, bits):  # type: ignore[no-untyped-def]
    """ln(exp(total) + exp(term)), all in units of 2**-bits."""
    return max(total, term) + (_added(abs(total - term), table, bits) << (bits - _LOSS_BITS))


@kernel(_ADD_LOSSES)
def add_softmax(scores, classes, weights, table, bits, sums, low, high):  # type: ignore[no-untyped-def]
    for i in range(low, high):
        total = _in_units(scores[i, 0])
        for output in range(1, scores.shape[1]):
            total = _log_of_sum(total, _in_units(scores[i, output]), table, bits)
        own = _in_units(scores[i, classes[i]])
        sums[0] += _weighted(weights[i], (total - own) >> (bits - _LOSS_BITS))


@kernel(_ADD_LOSSES)
def _add_logistic_shares(scores, classes, weights, table, bits, sums, low, high):  # type: ignore[no-untyped-def]
    for i in range(low, high):
        total = -_loss(_in_units(scores[i, 0]), table, bits)
        own = total
        for output in range(1, scores.shape[1]):
            log = -_loss(_in_units(scores[i, output]), table, bits)
            total = _log_of_sum(total, log, table, _LOSS_BITS)
            own = log if classes[i] == output else own
        sums[0] += _weighted(weights[i], total - own)
