"""Few samples, votes without signs: the best split, found by the scores of all cuts.

For one output after the other, a feature's sorted samples are added up, and the sums left of its
cuts are written to an array. Then the output's part of the score is computed, several cuts at a
time, and added to those of the outputs before. The threshold above all values, which separates all
values from the missing ones, is one more cut. Cuts that a monotone constraint forbids get a score
below all others.

Scores are compared as integers: `key_of` maps floats to integers in the same order. Compilers
vectorise the maximum of integers, but not that of floats, because of NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.ahead import DISCRETE, NEWTON, REAL
from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import group, kernel
from gpustump.engines.cpu.split.cut_sums import (
    both_left_of_cuts,
    left_of_cuts,
    missing_sums,
    position_of,
    with_sizes_left_of_cuts,
)
from gpustump.engines.cpu.split.monotone_bounds import are_in_order, newton_step, odds
from gpustump.engines.cpu.split.split_scores import gain, minus_root
from gpustump.engines.cpu.table.sorted_table import SortedTable

_KINDS = {"discrete": DISCRETE, "real": REAL, "newton": NEWTON}

_TOP = 2**63 - 1
_NO_KEY = -_TOP
"""Below the keys of all scores."""


@group
class _Best(NamedTuple):
    """The best split of some features.

    Attributes
    ----------
    key : int
        The key of its score; `_NO_KEY` if there is no split.
    feature, position : int
    constant : int
        The key of the score of all samples together.
    """

    key: int
    feature: int
    position: int
    constant: int


class SplitScan:
    """The search of a run of real or Newton votes, or of votes for several outputs.

    Parameters
    ----------
    table : SortedTable
    search : Search
    """

    def __init__(self, table: SortedTable, search: Search) -> None:
        self._table = table
        self._kind = _KINDS[search.votes]
        self._l2, self._directions = float(search.l2), search.directions
        self._parts = table.parts(search.n_outputs)

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (n_outputs, 2)."""
        table, how = self._table, (totals, self._kind, self._l2, self._directions)
        found: list[_Best] = []

        def search(part: tuple[int, int]) -> None:
            own = best_split(table.order, table.n_present, *terms, *how, *part)
            found.append(_Best(*own))

        table.team.each(search, self._parts)
        best = max(found, key=lambda one: (one.key, -one.feature))
        if best.constant > best.key:
            return Cut(0, None, 0, 0, self._score_of(best.constant))
        return Cut(best.feature, best.position, 0, 0, self._score_of(best.key))

    def _score_of(self, key: int) -> float:
        """The score that has this key."""
        if self._kind == DISCRETE:
            return key
        return float(np.array(key if key >= 0 else key ^ _TOP, dtype=np.int64).view(np.float64))


@kernel("int64(int64)")
def key_of(bits):  # type: ignore[no-untyped-def]
    """The key of a float with these bits, which compares as the float does; also the inverse."""
    return bits ^ ((bits >> 63) & _TOP)


@kernel("float64(int64)")
def score_of_key(key):  # type: ignore[no-untyped-def]
    """The score of real or Newton votes that has this key; the least if there is no split."""
    if key == _NO_KEY:
        return -np.inf
    bits = np.empty(1, dtype=np.int64)
    bits[0] = key_of(key)
    return bits.view(np.float64)[0]


@kernel("void(int64[::1], int64, int64, int64[::1])")
def _add_agreements(left, present, missing, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of discrete votes."""
    extra = abs(missing)
    for i in range(len(left)):
        scores[i] += abs(left[i] - (present - left[i])) + extra


@kernel("void(int64[::1], int64[::1], UniTuple(int64, 2), UniTuple(int64, 2), float64[::1])")
def _add_roots(first, second, present, missing, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of real votes."""
    extra = minus_root(missing[0], missing[1])
    for i in range(len(first)):
        a, b = first[i], second[i]
        scores[i] += (minus_root(a, b) + minus_root(present[0] - a, present[1] - b)) + extra


@kernel(
    "void(int64[::1], int64[::1], UniTuple(int64, 2), UniTuple(int64, 2), float64, float64[::1])"
)
def _add_gains(first, second, present, missing, l2, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of Newton votes."""
    extra = gain(missing[0], missing[1], l2)
    for i in range(len(first)):
        a, b = first[i], second[i]
        scores[i] += (gain(a, b, l2) + gain(present[0] - a, present[1] - b, l2)) + extra


@kernel("void(int64[:, ::1], UniTuple(int64, 2), UniTuple(int64, 2), int64, float64, int64[::1])")
def _add_scores(left, present, missing, kind, l2, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of some cuts; `scores` holds the bits of floats."""
    n = len(scores)
    first, second = left[0][:n], left[1][:n]
    if kind == DISCRETE:
        _add_agreements(first, present[0], missing[0], scores)
    elif kind == REAL:
        _add_roots(first, second, present, missing, scores.view(np.float64))
    else:
        _add_gains(first, second, present, missing, l2, scores.view(np.float64))


@kernel("void(int64[::1], int64)")
def _clear(scores, kind):  # type: ignore[no-untyped-def]
    """Set the scores to 0; floats to minus zero, as adding a float to it keeps the float's bits."""
    scores[:] = 0 if kind == DISCRETE else -_TOP - 1


@kernel("int64(int64[::1])")
def _largest(scores):  # type: ignore[no-untyped-def]
    """The largest key."""
    largest = _NO_KEY
    for i in range(len(scores)):
        largest = max(largest, key_of(scores[i]))
    return largest


@kernel("int64(int64[::1], int64)")
def _first_with(scores, key):  # type: ignore[no-untyped-def]
    """The first of the scores that has this key."""
    number = 0
    while key_of(scores[number]) != key:
        number += 1
    return number


@kernel("int64(int64[:, ::1], int64, float64)")
def _constant_key(totals, kind, l2):  # type: ignore[no-untyped-def]
    """The key of the score of all samples together."""
    score, left = np.empty(1, dtype=np.int64), np.empty((2, 1), dtype=np.int64)
    _clear(score, kind)
    for output in range(len(totals)):
        left[0, 0], left[1, 0] = totals[output, 0], totals[output, 1]
        _add_scores(left, (totals[output, 0], totals[output, 1]), (0, 0), kind, l2, score)
    return key_of(score[0])


@kernel(
    "int64(int32[::1], int64, int64[::1], int64[::1], int64[::1], int64, float64, int64[:, ::1],"
    " int64[::1])"
)
def _score_output(  # type: ignore[no-untyped-def]
    order, n_present, first, second, totals, kind, l2, left, scores
):
    """Add an output's part to the scores of a feature's cuts; returns how many there are.

    `second` may be empty, as in `Terms`. After the cuts comes the threshold above all values, which
    is not counted.
    """
    missing_first, missing_second = missing_sums(order, n_present, first)
    if len(second) > 0:
        missing_second, _ = missing_sums(order, n_present, second)
        n_cuts = both_left_of_cuts(order, n_present, first, second, left[0], left[1])
    elif kind == DISCRETE:
        n_cuts = left_of_cuts(order, n_present, first, left[0])
    else:
        n_cuts = with_sizes_left_of_cuts(order, n_present, first, left[0], left[1])
    present = (totals[0] - missing_first, totals[1] - missing_second)
    left[0, n_cuts], left[1, n_cuts] = present
    missing = (missing_first, missing_second)
    _add_scores(left, present, missing, kind, l2, scores[: n_cuts + 1])
    return n_cuts


@kernel("void(int64[:, ::1], UniTuple(int64, 2), int64, int64, float64, float64, int64[::1])")
def _forbid(left, present, direction, kind, l2, smoothing, scores):  # type: ignore[no-untyped-def]
    """Give the cuts that a constraint forbids a score below all others; there is one output."""
    of_floats = scores.view(np.float64)
    for i in range(len(scores)):
        a, b = left[0, i], left[1, i]
        rest_a, rest_b = present[0] - a, present[1] - b
        if kind == REAL:
            one = odds((b + a) >> 1, (b - a) >> 1, smoothing)
            two = odds((rest_b + rest_a) >> 1, (rest_b - rest_a) >> 1, smoothing)
        else:
            one, two = newton_step(a, b, l2), newton_step(rest_a, rest_b, l2)
        if not are_in_order(direction, one, two):
            of_floats[i] = -np.inf


@kernel(
    "UniTuple(int64, 4)(int32[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64, float64, int64[::1], int64, int64)"
)
def best_split(  # type: ignore[no-untyped-def]
    order, n_present, first, second, totals, kind, l2, directions, low, high
):
    """The best split of features `low` to `high`.

    The arguments are plain arrays, as Numba takes microseconds to find the type of a group.
    """
    constant = _constant_key(totals, kind, l2)
    best = _Best(_NO_KEY, low, 0, constant)
    left = np.empty((2, order.shape[1] + 1), dtype=np.int64)
    scores = np.empty(order.shape[1] + 1, dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    smoothing = float(totals[0, 1]) / float(2 * order.shape[1])
    for j in range(low, high):
        own, n = order[j], n_present[j]
        if n == 0:  # there is no cut, and the constant is worth as much as all values missing
            continue
        _clear(scores[: max(n, 1)], kind)
        n_cuts = 0
        for output in range(len(first)):
            of_second = second[output] if len(second) > 0 else none
            n_cuts = _score_output(
                own, n, first[output], of_second, totals[output], kind, l2, left, scores
            )
        if len(directions) > 0 and directions[j] != 0:
            present = (left[0, n_cuts], left[1, n_cuts])
            _forbid(left, present, directions[j], kind, l2, smoothing, scores[:n_cuts])
        key = _largest(scores[:n_cuts])
        apart = key_of(scores[n_cuts])
        # The threshold above all values counts only if it is better than a constant, which it is
        # not if all values are present, or all are missing.
        if apart > constant and apart > key and apart > best.key:
            best = _Best(apart, j, n - 1, constant)
        elif key > best.key:
            position = position_of(own, _first_with(scores, key))
            best = _Best(key, j, position, constant)
    return best.key, best.feature, best.position, best.constant
