"""The sums over held-out samples that early stopping needs after a round, in one pass over scores.

They are the same integers as those of the array operations in `boosting.held_out.losses` and
`held_out_shares`: scores are converted to whole multiples of `VOTE_UNIT`, losses are interpolated
in a table by integer arithmetic, and sums are int64. The only product of floats, of a weight and a
loss, is rounded to an integer before it is added.

With several outputs, a tile of samples is taken through one output after the other. Loops run over
whole slices, without branches, so that the compiler can use vectors: the loss of a sample takes 0.9
nanoseconds, and 1.8 in a loop from `low` to `high`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import (
    LARGEST_EXPONENT,
    LARGEST_SCORE,
    LARGEST_SQUARE,
    LOW_BITS,
    PLACE_BITS,
)
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.threads import Team, threads_of
from gpustump.learners.step_table import UNIT_BITS, VOTE_UNIT

_PIECE = 2**14
"""Fewer samples than this are not worth another thread."""

_LOSS_BITS = 32
"""Losses are multiples of 2**-32, those of the table and those that are added up."""

_TILE = 256
"""Samples whose intermediate numbers stay in the nearest cache."""


_UPPER, _OF_UPPER = 2.0**LOW_BITS, 2.0**-LOW_BITS
"""The unit of the upper parts of weighted squares, and one over it."""


@group
class LossTable(NamedTuple):
    """An `engines.held_out.LossTable` with names."""

    nodes: Integers
    drops: Integers
    node_bits: int


_Table = tuple[np.ndarray, np.ndarray, int]


class HeldOutSums:
    """The sums over some held-out samples, from their scores; see `engines.held_out`."""

    def __init__(
        self, classes: np.ndarray, units: np.ndarray, n_classes: int, n_jobs: int | None = None
    ) -> None:
        self._classes, self._units = np.ascontiguousarray(classes), np.ascontiguousarray(units)
        self._n_classes = n_classes
        self._team = Team(threads_of(n_jobs) if len(units) > _PIECE else 1)

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
        return self._added_up(add_shares, scores, 1, weights, LossTable(*table), bits, False)

    def logistic_shares(
        self, scores: np.ndarray, weights: np.ndarray, table: _Table, bits: int
    ) -> list[int]:
        """The same with the class's share of the logistic probabilities of all classes."""
        return self._added_up(add_shares, scores, 1, weights, LossTable(*table), bits, True)

    def _added_up(
        self, kernel: Callable[..., None], scores: np.ndarray, n_sums: int, *rest: Any
    ) -> list[int]:
        columns = np.ascontiguousarray(scores).reshape(len(scores), _n_outputs(scores))
        n_pieces, size = self._team.pieces(len(scores), _PIECE)
        sums = np.zeros((n_pieces, n_sums), dtype=np.int64)
        self._team.run(kernel, n_pieces, columns, self._classes, *rest, size, sums)
        totals: list[int] = sums.sum(axis=0).tolist()
        return totals


def _n_outputs(scores: np.ndarray) -> int:
    """How many columns scores have, (n_samples,) or (n_samples, n_outputs), even without rows."""
    return 1 if scores.ndim == 1 else int(scores.shape[1])


@parallel("void(int64, float64[:, ::1], int64[::1], int64[::1], int64, int64[:, ::1])")
def add_right(piece, scores, classes, units, size, all_sums):  # type: ignore[no-untyped-def]
    """Add up, by class, the units of a piece of the samples that are classified right."""
    here, sums = slice(piece * size, (piece + 1) * size), all_sums[piece]
    tile, labels, own = scores[here], classes[here], units[here]
    if scores.shape[1] == 1:
        right, positive = 0, 0
        for i in range(len(tile)):
            added = own[i] & -np.int64((tile[i, 0] > 0.0) == (labels[i] == 1))
            right += added
            positive += added & -labels[i]
        sums[0] += right - positive
        sums[1] += positive
        return
    for i in range(len(tile)):
        best, largest = 0, tile[i, 0]
        for output in range(1, scores.shape[1]):
            is_larger = tile[i, output] > largest
            best = output if is_larger else best
            largest = max(largest, tile[i, output])
        sums[labels[i]] += own[i] & -np.int64(best == labels[i])


@inner("int64(float64)")
def _in_units(score):  # type: ignore[no-untyped-def]
    """A score as a whole number of `VOTE_UNIT`; exact."""
    return np.int64(score * (1.0 / VOTE_UNIT))


@inner("int64(int64, int64[::1], int64[::1], uint64)")
def _added(size, nodes, drops, step_bits):  # type: ignore[no-untyped-def]
    """ln(1 + exp(-x)), where x = size / 2**step_bits is the place in the table; not negative."""
    # Unsigned, as Numba would ask whether a signed index is negative.
    place = min(np.uint64(size) >> step_bits, np.uint64(len(nodes) - 1))
    rest = np.uint64(size) & ((np.uint64(1) << step_bits) - np.uint64(1))
    return nodes[place] - ((drops[place] * np.int64(rest)) >> np.int64(step_bits))


@inner("int64(int64, int64[::1], int64[::1], uint64, int64)")
def _loss(margin, nodes, drops, step_bits, bits):  # type: ignore[no-untyped-def]
    """ln(1 + exp(-x)) for x = margin * 2**-bits."""
    size = abs(margin)
    return _added(size, nodes, drops, step_bits) + ((size - margin) >> (bits - _LOSS_BITS + 1))


@inner("int64(float64, int64)")
def _weighted(weight, loss):  # type: ignore[no-untyped-def]
    return np.int64(np.rint(weight * np.float64(loss)))


@inner("int64(int64, int64, int64[::1], int64[::1], uint64, int64)")
def _log_of_sum(log, term, nodes, drops, step_bits, bits):  # type: ignore[no-untyped-def]
    """ln(exp(log) + exp(term)), all in units of 2**-bits."""
    added = _added(abs(log - term), nodes, drops, step_bits)
    return max(log, term) + (added << (bits - _LOSS_BITS))


@inner("void(float64[:, ::1], float64[::1], float64[::1], float64, int64[::1])")
def add_errors(scores, targets, weights, level, sums):  # type: ignore[no-untyped-def]
    """Add the upper and the lower parts of the weighted errors of a quantity: of squares, or with a
    level of pinball losses."""
    upper_total, lower_total = 0, 0
    for i in range(len(scores)):
        residual = targets[i] - scores[i, 0]
        error = residual * residual
        if level > 0.0:
            error = max(residual * level, residual * (level - 1.0))
        weighted = (error if error < LARGEST_SQUARE else LARGEST_SQUARE) * weights[i]
        upper = np.floor(weighted * _OF_UPPER)
        upper_total += np.int64(upper)
        lower_total += np.int64(np.rint(weighted - upper * _UPPER))
    sums[0] += upper_total
    sums[1] += lower_total


@inner("float64(int64, float64[::1])")
def _exponential(falling, table):  # type: ignore[no-untyped-def]
    """exp(-x) for x = falling * VOTE_UNIT, as `boosting.held_out.losses` defines it."""
    limit = LARGEST_EXPONENT << UNIT_BITS
    place = np.uint64(max(-limit, min(limit, falling)) + limit)
    found = table[place >> np.uint64(UNIT_BITS)]
    mask, start = np.uint64((1 << PLACE_BITS) - 1), np.uint64(2 * LARGEST_EXPONENT + 1)
    for number in range(1, 4):
        found *= table[start + ((place >> np.uint64(UNIT_BITS - number * PLACE_BITS)) & mask)]
        start += np.uint64(1 << PLACE_BITS)
    return found


@inner(
    "void(float64[:, ::1], float64[::1], float64[::1], float64[::1], float64, int64, int64[::1])"
)
def add_ratio(scores, moving, fixed, table, most, sign, sums):  # type: ignore[no-untyped-def]
    """Add the amounts that move, and the others times the scores: `boosting.held_out.losses`."""
    amounts, products = 0, 0
    for i in range(len(scores)):
        score = scores[i, 0]
        by = _exponential(-sign * _in_units(score), table)
        amounts += np.int64(np.rint(min(moving[i] * by, most)))
        product = fixed[i] * max(-LARGEST_SCORE, min(LARGEST_SCORE, score))
        products += np.int64(np.rint(max(-most, min(most, product))))
    sums[0] += amounts
    sums[1] += sign * products


_ADD_LOSSES = (
    "void(int64, float64[:, ::1], int64[::1], float64[::1], LossTable, int64, int64, int64[:, ::1])"
)


@parallel(_ADD_LOSSES)
def add_logistic(piece, scores, classes, weights, table, bits, size, sums):  # type: ignore[no-untyped-def]
    """Add up, by output, the weighted logistic losses of a piece of the samples."""
    nodes, drops, node_bits = table
    step_bits, n_outputs = np.uint64(bits - node_bits), scores.shape[1]
    here = slice(piece * size, (piece + 1) * size)
    tile, labels, by = scores[here], classes[here], weights[here]
    for output in range(n_outputs):
        positive = 1 if n_outputs == 1 else output
        total = 0
        for i in range(len(tile)):
            units = _in_units(tile[i, output])
            margin = units if labels[i] == positive else -units
            total += _weighted(by[i], _loss(margin, nodes, drops, step_bits, bits))
        sums[piece, output] += total


@parallel(_ADD_LOSSES.replace("LossTable, int64,", "LossTable, int64, boolean,"))
def add_shares(piece, scores, classes, weights, table, bits, of_logistic, size, sums):  # type: ignore[no-untyped-def]
    """Add -ln of the class's share of exp(x) over all outputs: x is the score, or the logarithm of
    its logistic function."""
    nodes, drops, node_bits = table
    log_bits = _LOSS_BITS if of_logistic else bits
    step_bits, step_bits_of_logs = np.uint64(bits - node_bits), np.uint64(log_bits - node_bits)
    of_tile = np.zeros((2, _TILE), dtype=np.int64)
    high = min((piece + 1) * size, len(scores))
    for start in range(piece * size, high, _TILE):
        end = min(start + _TILE, high)
        tile, labels, by = scores[start:end], classes[start:end], weights[start:end]
        logs, own = of_tile[0, : end - start], of_tile[1, : end - start]
        for output in range(scores.shape[1]):
            for i in range(len(tile)):
                term = _in_units(tile[i, output])
                if of_logistic:
                    term = -_loss(term, nodes, drops, step_bits, bits)
                log = _log_of_sum(logs[i], term, nodes, drops, step_bits_of_logs, log_bits)
                logs[i] = log if output > 0 else term
                own[i] = term if labels[i] == output else own[i]
        total = 0
        for i in range(len(tile)):
            total += _weighted(by[i], (logs[i] - own[i]) >> (log_bits - _LOSS_BITS))
        sums[piece, 0] += total
