"""The best of a few cuts that a round is offered, by sums over their own samples only.

Each cut is a feature and a sorted position, as in `direct_splits`; a feature of -1 stands for none.
The search of all cuts gives each of them the same score, and forbids the same ones.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.allowed import are_in_order, newton_step
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.split_scores import gain

_SAMPLE = np.uint32(2**31 - 1)
"""Masks the sign bit out."""


@kernel("UniTuple(int64, 2)(int32[::1], int64, int64, int64[::1], int64[::1])")
def _sums(order, low, high, first, second):  # type: ignore[no-untyped-def]
    """The sums of both integers over the sorted positions `low` to `high`."""
    a, b = 0, 0
    for k in range(low, high):
        sample = np.uint32(order[k]) & _SAMPLE
        a += first[sample]
        b += second[sample]
    return a, b


@kernel("UniTuple(int64, 6)(int32[::1], int64, int64, int64[::1], int64[::1], UniTuple(int64, 2))")
def _region_sums(order, n_present, position, first, second, totals):  # type: ignore[no-untyped-def]
    """The sums of both integers over left, right and missing, from the shorter of two sides."""
    missing = _sums(order, n_present, len(order), first, second)
    present = (totals[0] - missing[0], totals[1] - missing[1])
    end = position + 1
    if end <= n_present - end:
        left = _sums(order, 0, end, first, second)
        right = (present[0] - left[0], present[1] - left[1])
    else:
        right = _sums(order, end, n_present, first, second)
        left = (present[0] - right[0], present[1] - right[1])
    return left[0], left[1], right[0], right[1], missing[0], missing[1]


@kernel(
    "float64(int32[::1], int64, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], float64, int64)"
)
def _score(order, n_present, position, first, second, totals, l2, direction):  # type: ignore[no-untyped-def]
    """What a cut is worth, as `direct_splits` computes it; -1 if a constraint forbids it."""
    score = 0.0  # gains are not negative, so adding to 0 changes none
    for output in range(len(first)):
        a, b, c, d, e, f = _region_sums(
            order, n_present, position, first[output], second[output],
            (totals[output, 0], totals[output, 1]),
        )  # fmt: skip
        score += (gain(a, b, l2) + gain(c, d, l2)) + gain(e, f, l2)
        is_bound = position + 1 < n_present and direction != 0
        if is_bound and not are_in_order(direction, newton_step(a, b, l2), newton_step(c, d, l2)):
            return -1.0
    return score


@kernel(
    "Tuple((int64, int64, float64))(int32[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1], float64, int64[::1], int64[:, ::1])"
)
def best_offered(order, n_present, first, second, totals, l2, directions, cuts):  # type: ignore[no-untyped-def]
    """The best of some cuts (k, 2): feature, position and score.

    Of equal scores the lowest feature, then the lowest position. Feature -1 if there is none, and
    score -1 if none is allowed.
    """
    feature, position, best = -1, -1, -1.0
    for number in range(len(cuts)):
        j, k = cuts[number, 0], cuts[number, 1]
        if j < 0 or k < 0:
            continue
        direction = directions[j] if len(directions) > 0 else 0
        score = _score(order[j], n_present[j], k, first, second, totals, l2, direction)
        is_earlier = j < feature or (j == feature and k < position)
        if feature < 0 or score > best or (score == best and is_earlier):
            feature, position, best = j, k, score
    return feature, position, best
