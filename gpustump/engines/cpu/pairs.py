"""Boosting by pairs of features in kernels; see `engines.quadrants`.

A turn of many pairs needs one pass over the samples for each: the pass changes what the loss keeps
of a sample by the step of the pair before, computes both integers anew, and adds them to the cells
of the next pair. Then the best cut is found, its votes and factors follow (`rounds`), and the next
pass begins. All numbers are those of `reference.pairs`, bit for bit. If a vote or a factor is in
doubt, the caller makes that step.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes
from gpustump.engines.cpu.rounds.certain_factors import set_factors
from gpustump.engines.cpu.rounds.certain_votes import Whole, vote_of_region
from gpustump.engines.cpu.rounds.exact_powers import powers
from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner, kernel
from gpustump.engines.integer_weights import FLOOR, LEAST_PRODUCT
from gpustump.engines.objective import LossName
from gpustump.engines.quadrants import N_QUADRANTS, Pair, Place, Turn
from gpustump.engines.threads import Team, ranges

_CEILING = 1.0 / FLOOR
"""The largest odds."""

_PAIRS_AT_ONCE = 16
"""How many pairs a thread scores at a time."""

_LOGISTIC, _SOFTMAX, _SQUARED, _POISSON, _GAMMA = range(5)
_KINDS: dict[LossName, int] = {
    "logistic": _LOGISTIC, "softmax": _SOFTMAX, "squared": _SQUARED, "poisson": _POISSON,
    "gamma": _GAMMA,
}  # fmt: skip
"""Losses, as the kernels take them."""


@group
class PairSamples(NamedTuple):
    """The samples of a run.

    Attributes
    ----------
    kind : int
        Of the loss.
    bins : ndarray (n_features, n_samples) of uint8
    n_bins : ndarray (n_features,) of int64
    numbers : ndarray (n_numbers, n_samples) of float64
        What the loss keeps: odds, a probability for each class, residuals; or the amounts that
        move, and in a second row those that stay.
    labels : ndarray (n_samples,) of int64
        -1 or 1, or the number of the class; not used for a quantity.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers.
    """

    kind: int
    bins: Annotated[np.ndarray, "uint8[:, ::1]"]
    n_bins: Integers
    numbers: Annotated[np.ndarray, "float64[:, ::1]"]
    labels: Integers
    units: Floats


@group
class Motion(NamedTuple):
    """The step of a pair, and what it does to the samples.

    Attributes
    ----------
    numbers : ndarray (4,) of int64
        The places of both features, and the cut; a cut of 0 moves nothing.
    votes : ndarray (n_quadrants, n_outputs) of float64
    factors : ndarray (n_quadrants, n_outputs, 2) of float64
    """

    numbers: Integers
    votes: Annotated[np.ndarray, "float64[:, ::1]"]
    factors: Annotated[np.ndarray, "float64[:, :, ::1]"]


@inner("void(PairSamples, Motion, boolean, int64, int64, int64[:, :, ::1])")
def _pass_over_odds(samples, motion, moves, j, k, cells):  # type: ignore[no-untyped-def]
    """The logistic loss; see `engines.reference.logistic_loss`."""
    first, second = samples.bins[motion.numbers[0]], samples.bins[motion.numbers[1]]
    a, b = motion.numbers[2], motion.numbers[3]
    odds, units, labels, factors = samples.numbers[0], samples.units, samples.labels, motion.factors
    own, other, adds = samples.bins[max(j, 0)], samples.bins[max(k, 0)], j >= 0
    for i in range(len(odds)):
        now = odds[i]
        if moves:
            region = 2 * np.int64(first[i] >= a) + np.int64(second[i] >= b)
            now *= factors[region, 0, np.int64(labels[i] > 0)]
            now = now if now < _CEILING else _CEILING
            now = now if now > FLOOR else FLOOR
            odds[i] = now
        if adds:
            below = now + 1.0
            slope = units[i] * (now / below)
            cell = cells[own[i], other[i]]
            cell[0] += labels[i] * np.int64(np.ceil(slope))
            cell[1] += np.int64(np.ceil(slope * (1.0 / below)))


@inner("void(PairSamples, Motion, boolean, int64, int64, int64[:, :, ::1])")
def _pass_over_probabilities(samples, motion, moves, j, k, cells):  # type: ignore[no-untyped-def]
    """The softmax loss; see `engines.reference.softmax_loss`."""
    first, second = samples.bins[motion.numbers[0]], samples.bins[motion.numbers[1]]
    a, b = motion.numbers[2], motion.numbers[3]
    numbers, units, labels, factors = samples.numbers, samples.units, samples.labels, motion.factors
    own, other, adds = samples.bins[max(j, 0)], samples.bins[max(k, 0)], j >= 0
    n_outputs = len(numbers)
    for i in range(len(units)):
        if moves:
            region = 2 * np.int64(first[i] >= a) + np.int64(second[i] >= b)
            total = 0.0  # adding to 0 changes no product
            for output in range(n_outputs):
                grown = numbers[output, i] * factors[region, output, 1]
                grown = grown if grown > LEAST_PRODUCT else LEAST_PRODUCT
                numbers[output, i] = grown
                total += grown
            for output in range(n_outputs):
                now = numbers[output, i] / total
                numbers[output, i] = now if now > FLOOR else FLOOR
        if adds:
            cell = cells[own[i], other[i]]
            for output in range(n_outputs):
                now = numbers[output, i]
                rest, positive = 1.0 - now, labels[i] == output
                slope = np.ceil(units[i] * (rest if positive else now))
                curve = np.ceil((units[i] * now) * rest)
                whole = np.int64(slope if slope > 1.0 else 1.0)
                cell[2 * output] += whole if positive else -whole
                cell[2 * output + 1] += np.int64(curve if curve > 1.0 else 1.0)


@inner("void(PairSamples, Motion, boolean, int64, int64, int64[:, :, ::1])")
def _pass_over_residuals(samples, motion, moves, j, k, cells):  # type: ignore[no-untyped-def]
    """Squared loss; see `engines.reference.squared_loss`."""
    first, second = samples.bins[motion.numbers[0]], samples.bins[motion.numbers[1]]
    a, b = motion.numbers[2], motion.numbers[3]
    residuals, units, votes = samples.numbers[0], samples.units, motion.votes
    own, other, adds = samples.bins[max(j, 0)], samples.bins[max(k, 0)], j >= 0
    for i in range(len(residuals)):
        if moves:
            residuals[i] -= votes[2 * np.int64(first[i] >= a) + np.int64(second[i] >= b), 0]
        if adds:
            cell = cells[own[i], other[i]]
            cell[0] += np.int64(np.rint(units[i] * residuals[i]))
            cell[1] += np.int64(units[i])


@inner("void(PairSamples, Motion, boolean, int64, int64, int64[:, :, ::1])")
def _pass_over_amounts(samples, motion, moves, j, k, cells):  # type: ignore[no-untyped-def]
    """Poisson and gamma loss; see `engines.reference.ratio_loss`."""
    first, second = samples.bins[motion.numbers[0]], samples.bins[motion.numbers[1]]
    a, b = motion.numbers[2], motion.numbers[3]
    moving, fixed, factors = samples.numbers[0], samples.numbers[1], motion.factors
    own, other, adds = samples.bins[max(j, 0)], samples.bins[max(k, 0)], j >= 0
    sign, which = (1, 0) if samples.kind == _POISSON else (-1, 1)
    for i in range(len(moving)):
        if moves:
            region = 2 * np.int64(first[i] >= a) + np.int64(second[i] >= b)
            now = moving[i] * factors[region, 0, which]
            moving[i] = now if now > FLOOR else FLOOR
        if adds:
            whole, stays = np.int64(np.ceil(moving[i])), np.int64(fixed[i])
            cell = cells[own[i], other[i]]
            cell[0] += sign * (stays - whole)
            cell[1] += stays + whole


@inner("void(PairSamples, Motion, int64, int64, int64[:, :, ::1])")
def _pass_over(samples, motion, j, k, cells):  # type: ignore[no-untyped-def]
    """Change all samples by a step, and add their integers to the cells of a pair; for j = -1 the
    step is all."""
    moves = motion.numbers[2] > 0
    cells[:] = 0
    if samples.kind == _LOGISTIC:
        _pass_over_odds(samples, motion, moves, j, k, cells)
    elif samples.kind == _SOFTMAX:
        _pass_over_probabilities(samples, motion, moves, j, k, cells)
    elif samples.kind == _SQUARED:
        _pass_over_residuals(samples, motion, moves, j, k, cells)
    else:
        _pass_over_amounts(samples, motion, moves, j, k, cells)


@inner("int64(int64[::1])")
def _side(n_bins):  # type: ignore[no-untyped-def]
    """The most bins of a feature."""
    most = 2
    for own in n_bins:
        most = max(most, own)
    return most


@inner("void(int64[:, :, ::1], int64, int64)")
def _run_up(cells, n_rows, n_columns):  # type: ignore[no-untyped-def]
    """Add up along both axes, so that cell (a, b) has the sums over all cells up to it."""
    n_numbers = cells.shape[2]
    for a in range(n_rows):
        for number in range(n_numbers):
            row = 0
            for b in range(n_columns):
                row += cells[a, b, number]
                cells[a, b, number] = row + (cells[a - 1, b, number] if a > 0 else 0)


@inner("float64(int64, int64, float64)")
def _gain(gradient, hessian, l2):  # type: ignore[no-untyped-def]
    """A region's part of a score."""
    divisor = np.float64(hessian) + l2
    gradient = np.float64(gradient)
    return (gradient * gradient) / (divisor if divisor > 1.0 else 1.0)


@inner("float64(int64[:, :, ::1], int64, int64, int64, int64, float64)")
def _score(below, n_rows, n_columns, a, b, l2):  # type: ignore[no-untyped-def]
    """The score of a cut, from running sums; see `quadrants.best_quadrants`."""
    both, one = below[a - 1, b - 1], below[a - 1, n_columns - 1]
    other, total = below[n_rows - 1, b - 1], below[n_rows - 1, n_columns - 1]
    score = 0.0
    for at in range(0, below.shape[2], 2):
        g, h = both[at], both[at + 1]
        g_one, h_one = one[at] - g, one[at + 1] - h
        g_other, h_other = other[at] - g, other[at + 1] - h
        g_rest = total[at] - g - g_one - g_other
        h_rest = total[at + 1] - h - h_one - h_other
        across = _gain(g, h, l2) + _gain(g_rest, h_rest, l2)
        own = across + (_gain(g_one, h_one, l2) + _gain(g_other, h_other, l2))
        score = own if at == 0 else score + own
    return score


@inner("Tuple((int64, int64, float64))(int64[:, :, ::1], int64, int64, float64, int64[:, :])")
def _best(below, n_rows, n_columns, l2, candidates):  # type: ignore[no-untyped-def]
    """The best cut and its score, from running sums; of those offered, if there are any."""
    best, best_a, best_b = -1.0, 1, 1
    for at in range(len(candidates)):
        score = _score(below, n_rows, n_columns, candidates[at, 0], candidates[at, 1], l2)
        if score > best:
            best, best_a, best_b = score, candidates[at, 0], candidates[at, 1]
    if len(candidates) > 0:
        return best_a, best_b, best
    for a in range(1, n_rows):
        for b in range(1, n_columns):
            score = _score(below, n_rows, n_columns, a, b, l2)
            if score > best:
                best, best_a, best_b = score, a, b
    return best_a, best_b, best


@inner("void(int64[:, :, ::1], int64, int64, int64, int64, int64[:, :, ::1])")
def _sum_quadrants(below, n_rows, n_columns, a, b, sums):  # type: ignore[no-untyped-def]
    """The sums over the regions of a cut, (n_quadrants, n_outputs, 2)."""
    for output in range(sums.shape[1]):
        for which in range(2):
            at = 2 * output + which
            both, one = below[a - 1, b - 1, at], below[a - 1, n_columns - 1, at]
            other, total = below[n_rows - 1, b - 1, at], below[n_rows - 1, n_columns - 1, at]
            sums[0, output, which] = both
            sums[1, output, which] = one - both
            sums[2, output, which] = other - both
            sums[3, output, which] = total - one - other + both


@inner("int64(int64[:, :, ::1], VoteRule, Powers, float64[:, ::1], float64[:, :, ::1])")
def _decide(sums, rule, tables, votes, factors):  # type: ignore[no-untyped-def]
    """Set votes and factors; returns -1 if one is in doubt, 0 if all votes are 0, otherwise 1."""
    whole, is_any = Whole(0, 0), 0
    for region in range(len(votes)):
        for output in range(votes.shape[1]):
            vote = vote_of_region(sums[region, output, 0], sums[region, output, 1], rule, whole)
            if math.isnan(vote):
                return -1
            votes[region, output] = vote
            is_any = 1 if vote != 0.0 else is_any
    if is_any and math.isnan(set_factors(sums, votes, rule, whole, tables, factors)):
        return -1
    return is_any


@kernel(
    "int64(PairSamples, int64[:, ::1], int64[:, :, ::1], int64, VoteRule, Powers, int64[:, ::1],"
    " float64[:, :, ::1])"
)
def _take_turns(samples, pairs, candidates, at, rule, tables, places, all_votes):  # type: ignore[no-untyped-def]
    """Make the steps of pairs from number `at` on; returns the first that is not made."""
    n_outputs = all_votes.shape[2]
    cells = np.zeros((_side(samples.n_bins), _side(samples.n_bins), 2 * n_outputs), dtype=np.int64)
    sums = np.empty((4, n_outputs, 2), dtype=np.int64)
    motion = Motion(np.zeros(4, np.int64), np.empty((4, n_outputs)), np.ones((4, n_outputs, 2)))
    while at < len(pairs):
        j, k = pairs[at, 0], pairs[at, 1]
        n_rows, n_columns = samples.n_bins[j], samples.n_bins[k]
        _pass_over(samples, motion, j, k, cells)
        motion.numbers[2] = 0  # nothing is left to change
        _run_up(cells, n_rows, n_columns)
        a, b, _ = _best(cells, n_rows, n_columns, rule.l2, candidates[at])
        _sum_quadrants(cells, n_rows, n_columns, a, b, sums)
        found = _decide(sums, rule, tables, motion.votes, motion.factors)
        if found < 0:
            return at
        if found > 0:
            motion.numbers[0], motion.numbers[1] = j, k
            motion.numbers[2], motion.numbers[3] = a, b
            places[at, 0], places[at, 1] = a, b
            all_votes[at] = motion.votes
        at += 1
    _pass_over(samples, motion, -1, -1, cells)
    return at


@kernel("void(PairSamples, int64[:, ::1], float64, int64, float64[::1])")
def _set_scores(samples, pairs, l2, n_outputs, scores):  # type: ignore[no-untyped-def]
    """Set the score of each pair's best cut."""
    side = _side(samples.n_bins)
    cells = np.zeros((side, side, 2 * n_outputs), dtype=np.int64)
    motion = Motion(np.zeros(4, np.int64), np.empty((4, n_outputs)), np.ones((4, n_outputs, 2)))
    for at in range(len(pairs)):
        j, k = pairs[at, 0], pairs[at, 1]
        _pass_over(samples, motion, j, k, cells)
        _run_up(cells, samples.n_bins[j], samples.n_bins[k])
        _, _, scores[at] = _best(cells, samples.n_bins[j], samples.n_bins[k], l2, pairs[:0])


@kernel("void(PairSamples, Motion, int64, int64, int64[:, :, ::1])")
def _pass(samples, motion, j, k, cells):  # type: ignore[no-untyped-def]
    _pass_over(samples, motion, j, k, cells)


@kernel("void(uint8[:, ::1], int64[:, ::1], int64[:, ::1], float64[:, :, ::1], float64[:, ::1])")
def _add_steps(bins, pairs, places, votes, scores):  # type: ignore[no-untyped-def]
    """Add what the regions of each pair's step vote to the scores (n_samples, n_outputs)."""
    for at in range(len(pairs)):
        a, b = places[at, 0], places[at, 1]
        if a == 0:
            continue
        first, second, own = bins[pairs[at, 0]], bins[pairs[at, 1]], votes[at]
        for i in range(len(scores)):
            region = 2 * np.int64(first[i] >= a) + np.int64(second[i] >= b)
            for output in range(scores.shape[1]):
                scores[i, output] += own[region, output]


class KernelPairRun:
    """The samples of one run; see `engines.quadrants.PairRun`.

    Parameters
    ----------
    bins : ndarray (n_features, n_samples) of uint8
    n_bins : tuple of int
    labels : ndarray (n_samples,)
        As `Engine.start` takes them.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    loss : str
        As `Objective.loss` names it.
    beginning : Beginning
        As `reference.state.loss_of` takes it.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_bins: tuple[int, ...],
        labels: np.ndarray,
        units: np.ndarray,
        loss: LossName,
        beginning: Beginning,
    ) -> None:
        kind, numbers, signs = _KINDS[loss], beginning.numbers, np.zeros(0, dtype=np.int64)
        if kind in (_LOGISTIC, _SOFTMAX):
            signs = labels.astype(np.int64)
        elif kind == _SQUARED:
            numbers = (labels - beginning.scores[0])[np.newaxis]
        elif kind == _POISSON:
            numbers = np.stack([units * numbers[0], np.rint(units * labels)])
        else:
            numbers = np.stack([units * labels * numbers[0], units])
        if kind in (_POISSON, _GAMMA):
            np.maximum(numbers[0], FLOOR, out=numbers[0])
        self._n_outputs = len(numbers) if kind == _SOFTMAX else 1
        self._samples = PairSamples(
            kind, np.ascontiguousarray(bins), np.asarray(n_bins, dtype=np.int64),
            np.array(numbers, dtype=np.float64, order="C"), signs, units,
        )  # fmt: skip

    def cells(self, pair: Pair) -> np.ndarray:
        """The sums over a pair's cells."""
        n_bins = self._samples.n_bins
        shape = (int(n_bins[pair[0]]), int(n_bins[pair[1]]), 2 * self._n_outputs)
        found = np.zeros(shape, dtype=np.int64)
        _pass(self._samples, self._motion((0, 0), (0, 0)), *pair, found)
        return np.ascontiguousarray(found.transpose(2, 0, 1)).reshape(-1, 2, *shape[:2])

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        """The score of each pair's best cut; see `PairRun`."""
        found = np.empty(len(pairs))

        def score(part: tuple[int, int]) -> None:
            own = slice(*part)
            _set_scores(self._samples, pairs[own], l2, self._n_outputs, found[own])

        team.each(score, ranges(len(pairs), _PAIRS_AT_ONCE))
        return found

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what the regions of a cut vote."""
        motion = self._motion(pair, place)
        motion.votes[:] = votes
        if len(factors):
            motion.factors[:] = factors
        _pass(self._samples, motion, -1, -1, np.zeros((1, 1, 1), dtype=np.int64))

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """Make the steps of the pairs from number `at` on; see `PairRun`."""
        return int(_take_turns(self._samples, pairs, candidates, at, rule, powers(), *steps))

    def added(
        self, scores: np.ndarray, bins: np.ndarray, pairs: np.ndarray, steps: Turn
    ) -> np.ndarray:
        """The scores of other samples, after the steps of a turn."""
        _add_steps(bins, pairs, *steps, scores)
        return scores

    def _motion(self, pair: Pair, place: Place) -> Motion:
        n_outputs = self._n_outputs
        numbers = np.asarray([*pair, *place], dtype=np.int64)
        return Motion(
            numbers, np.zeros((N_QUADRANTS, n_outputs)), np.ones((N_QUADRANTS, n_outputs, 2))
        )
