"""The scores of cuts from the sums on their left, as integers that compare as the scores do.

`key_of` maps floats to integers in the same order. Compilers vectorise the maximum of integers, but
not that of floats, because of NaN. Until then an array of scores holds the bits of floats; those of
discrete votes are integers anyway. Keys tell both zeros apart, which is right: by the formula of a
kind of votes all scores of 0 have the same sign. Cuts that a monotone constraint forbids get a
score below all others.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.batched_rounds import DISCRETE, NEWTON, REAL
from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.split.monotone_bounds import are_in_order, newton_step, odds
from gpustump.engines.cpu.split.split_scores import gain, minus_root

KINDS = {"discrete": DISCRETE, "real": REAL, "newton": NEWTON}

_TOP = 2**63 - 1
NO_KEY = -_TOP
"""Below the keys of all scores."""


@inner("int64(int64)")
def key_of(bits):  # type: ignore[no-untyped-def]
    """The key of a float with these bits, which compares as the float does; also the inverse."""
    return bits ^ ((bits >> 63) & _TOP)


def key_of_score(score: float, kind: int) -> int:
    """The key of a score."""
    if kind == DISCRETE:
        return int(score)
    bits = int(np.array(float(score)).view(np.int64))
    return bits if bits >= 0 else bits ^ _TOP


def score_of(key: int, kind: int) -> float:
    """The score that has this key."""
    if kind == DISCRETE:
        return key
    return float(np.array(key if key >= 0 else key ^ _TOP, dtype=np.int64).view(np.float64))


@inner("void(int64[::1], int64, int64, boolean, int64[::1])")
def _add_agreements(left, present, missing, is_first, scores):  # type: ignore[no-untyped-def]
    """Discrete votes."""
    extra = abs(missing)
    for i in range(len(scores)):
        own = abs(2 * left[i] - present) + extra
        scores[i] = own if is_first else scores[i] + own


@inner(
    "void(int64[::1], int64[::1], UniTuple(int64, 2), UniTuple(int64, 2), boolean, float64[::1])"
)
def _add_roots(gradient, hessian, present, missing, is_first, scores):  # type: ignore[no-untyped-def]
    """Real votes."""
    extra = minus_root(missing[0], missing[1])
    for i in range(len(scores)):
        a, b = gradient[i], hessian[i]
        own = (minus_root(a, b) + minus_root(present[0] - a, present[1] - b)) + extra
        scores[i] = own if is_first else scores[i] + own


@inner(
    "void(int64[::1], int64[::1], UniTuple(int64, 2), UniTuple(int64, 2), float64, boolean,"
    " float64[::1])"
)
def _add_gains(gradient, hessian, present, missing, l2, is_first, scores):  # type: ignore[no-untyped-def]
    """Newton votes."""
    extra = gain(missing[0], missing[1], l2)
    for i in range(len(scores)):
        a, b = gradient[i], hessian[i]
        own = (gain(a, b, l2) + gain(present[0] - a, present[1] - b, l2)) + extra
        scores[i] = own if is_first else scores[i] + own


@inner(
    "void(int64[::1], int64[::1], UniTuple(int64, 2), UniTuple(int64, 2), int64, float64, boolean,"
    " int64[::1])"
)
def add_scores(gradient, hessian, present, missing, kind, l2, is_first, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of some cuts; the first output's part replaces them.

    `gradient` and `hessian` are the sums left of the cuts; for discrete votes only gradients
    count. `present` and `missing` are both sums over the samples that have a value, and over the
    others.
    """
    if kind == DISCRETE:
        _add_agreements(gradient, present[0], missing[0], is_first, scores)
    elif kind == REAL:
        _add_roots(gradient, hessian, present, missing, is_first, scores.view(np.float64))
    else:
        _add_gains(gradient, hessian, present, missing, l2, is_first, scores.view(np.float64))


@inner(
    "void(int64[::1], int64[::1], UniTuple(int64, 2), int64, int64, float64, float64, int64[::1])"
)
def forbid(gradient, hessian, present, direction, kind, l2, smoothing, scores):  # type: ignore[no-untyped-def]
    """Give the cuts that a constraint forbids a score below all others; there is one output."""
    lowest = NO_KEY if kind == DISCRETE else key_of(NO_KEY)
    for i in range(len(scores)):
        a, b = gradient[i], hessian[i]
        rest_a, rest_b = present[0] - a, present[1] - b
        if kind == DISCRETE:
            is_allowed = direction * (a - rest_a) <= 0
        elif kind == REAL:
            one = odds((b + a) >> 1, (b - a) >> 1, smoothing)
            two = odds((rest_b + rest_a) >> 1, (rest_b - rest_a) >> 1, smoothing)
            is_allowed = are_in_order(direction, one, two)
        else:
            one, two = newton_step(a, b, l2), newton_step(rest_a, rest_b, l2)
            is_allowed = are_in_order(direction, one, two)
        if not is_allowed:
            scores[i] = lowest


@inner("int64(int64[::1], int64, int64)")
def most_agreement(left, present, missing):  # type: ignore[no-untyped-def]
    """The largest score of discrete votes for one output: that of the highest or lowest sum."""
    highest, lowest = left[0], left[0]
    for i in range(len(left)):
        highest = max(highest, left[i])
        lowest = min(lowest, left[i])
    return max(2 * highest - present, present - 2 * lowest) + abs(missing)


@inner("int64(int64[::1], int64, int64)")
def largest_key(scores, n, kind):  # type: ignore[no-untyped-def]
    """The largest key of the first `n` scores; `NO_KEY` if no cut is allowed."""
    largest = NO_KEY
    if kind == DISCRETE:
        for i in range(n):
            largest = max(largest, scores[i])
    else:
        for i in range(n):
            largest = max(largest, key_of(scores[i]))
    return largest


@inner("int64(int64[::1], int64, int64)")
def first_with(scores, key, kind):  # type: ignore[no-untyped-def]
    """The first of the scores that has this key."""
    wanted = key if kind == DISCRETE else key_of(key)
    number = 0
    while scores[number] != wanted:
        number += 1
    return number


@kernel("int64(int64[:, ::1], int64, float64)")
def constant_key(totals, kind, l2):  # type: ignore[no-untyped-def]
    """The key of the score of all samples together, from their sums (n_outputs, 2)."""
    score, left = np.empty(1, dtype=np.int64), np.empty((2, 1), dtype=np.int64)
    for output in range(len(totals)):
        a, b = totals[output]
        left[0, 0], left[1, 0] = a, b
        add_scores(left[0], left[1], (a, b), (0, 0), kind, l2, output == 0, score)
    return largest_key(score, 1, kind)
