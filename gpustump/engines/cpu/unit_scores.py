"""The best cut between units, and bounds for the cuts inside of them, for each kind of votes.

A cut's left sums are those before the stretch and those of the units up to it. Inside a unit they
lie between those at its edges: the positive sum has grown by a share of the unit's, from 0 to 1,
and the negative one by another share. If it is known how far one share may be ahead of the other,
the two lie in a band around the diagonal of a rectangle, else in the whole rectangle. Agreements
are linear in the sums; the scores of real and of Newton votes are convex (sqrt is concave, x**2 / y
convex for y > 0), and a convex function is largest at a corner [Boyd and Vandenberghe 2004, section
3.1]. So the corners of the band bound every cut inside, output by output. What is computed in
floating point is rounded outwards by far more than its error.

The end of a stretch is no cut here: it is the edge of a larger unit, or the end of what is present.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import group, kernel
from gpustump.engines.cpu.split_scores import gain

NO_AGREEMENT, NO_SCORE = -1, -np.inf
"""Less than every agreement, and every other score."""

_OUTWARDS = 2.0**-40
"""By what share a bound is widened. It takes fewer than 100 roundings of 2**-53 for each output."""


@group
class Agreed(NamedTuple):
    """The best cut between units, by agreement; `unit` is -1 if there is none.

    Attributes
    ----------
    score : int
    stretch, unit : int
        The cut is behind this unit.
    sign : int
        +1 or -1: what discrete votes of one output give to the left side.
    """

    score: int
    stretch: int
    unit: int
    sign: int


@group
class Scored(NamedTuple):
    """The same by another score."""

    score: float
    stretch: int
    unit: int
    sign: int


@kernel("boolean(Slices, int64, int64, int64, int64)")
def _is_earlier(slices, stretch, unit, other, other_unit):  # type: ignore[no-untyped-def]
    """Of two cuts of equal scores, whether the first one comes before: `contract.Cut`'s order."""
    one, two = slices.feature[stretch], slices.feature[other]
    return one < two or (one == two and slices.last[unit] < slices.last[other_unit])


@kernel("Agreed(Slices, Ground, float64, int64, int64, int64[::1])")
def weigh_signs(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Discrete votes of one output, for stretches `low` to `high`; `l2` is not used."""
    best, best_stretch, best_unit, best_sign = NO_AGREEMENT, 0, -1, 1
    sums, up, down, is_open = slices.sums, slices.up, slices.down, slices.is_open
    for t in range(low, high):
        present = ground.present[0, t] - ground.present[1, t]
        extra = abs(ground.missing[0, t] - ground.missing[1, t])
        left = ground.left[0, t] - ground.left[1, t]
        end = slices.first[t] + slices.n_units[t]
        for u in range(slices.first[t], end):
            bound[u] = NO_AGREEMENT
            if is_open[u]:
                highest, lowest = 2 * (left + up[u]) - present, present - 2 * (left - down[u])
                bound[u] = max(highest, lowest) + extra
            left += sums[0, u] - sums[1, u]
            score = 2 * left - present
            agreed = abs(score) + extra
            if agreed < best or u + 1 == end:
                continue
            if agreed == best and not _is_earlier(slices, t, u, best_stretch, best_unit):
                continue
            best, best_stretch, best_unit, best_sign = agreed, t, u, 1 if score >= 0 else -1
    return Agreed(best, best_stretch, best_unit, best_sign)


@kernel("int64(float64, int64)")
def _rounded_up(share, whole):  # type: ignore[no-untyped-def]
    """At least a share, up to 1, of a whole number; at most the number."""
    return min(whole, np.int64(share * float(whole) * (1.0 + _OUTWARDS)) + 1)


@kernel("UniTuple(int64, 4)(Slices, int64, int64, int64, int64)")
def _band(slices, output, u, positive, negative):  # type: ignore[no-untyped-def]
    """The corners of the band of a unit with these sums, in whole numbers, rounded outwards.

    With the share of the positive sum ahead, the sums are (p, 0) and (positive, n); with that of
    the negative sum ahead they are (0, n) and (p, negative). Returns p, n, n, p in this order.
    """
    if len(slices.ahead) == 0:
        return positive, negative, negative, positive
    by_positive = min(1.0, slices.ahead[2 * output, u])
    by_negative = min(1.0, slices.ahead[2 * output + 1, u])
    return (
        _rounded_up(by_positive, positive),
        negative - _rounded_up(by_positive, negative),
        _rounded_up(by_negative, negative),
        positive - _rounded_up(by_negative, positive),
    )


@kernel("UniTuple(int64, 2)(Slices, int64, int64, int64, int64)")
def _reach(slices, output, u, positive, negative):  # type: ignore[no-untyped-def]
    """How far above its value at a unit's left edge the signed sum may be, and how far below."""
    p, n_left, n, p_left = _band(slices, output, u, positive, negative)
    return max(p, positive - n_left), max(n, negative - p_left)


@kernel("Agreed(Slices, Ground, float64, int64, int64, int64[::1])")
def weigh_shared(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Discrete votes that several outputs share."""
    best, best_stretch, best_unit = NO_AGREEMENT, 0, -1
    n_outputs = len(slices.sums) // 2
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        score = np.zeros(count, dtype=np.int64)
        bound[start : start + count] = 0
        for k in range(n_outputs):
            positive, negative = slices.sums[2 * k], slices.sums[2 * k + 1]
            present = ground.present[2 * k, t] - ground.present[2 * k + 1, t]
            extra = abs(ground.missing[2 * k, t] - ground.missing[2 * k + 1, t])
            left = ground.left[2 * k, t] - ground.left[2 * k + 1, t]
            for i in range(count):
                u = start + i
                if slices.is_open[u]:
                    up, down = _reach(slices, k, u, positive[u], negative[u])
                    bound[u] += max(2 * (left + up) - present, present - 2 * (left - down)) + extra
                left += positive[u] - negative[u]
                score[i] += abs(2 * left - present) + extra
        for i in range(count):
            u = start + i
            if not slices.is_open[u]:
                bound[u] = NO_AGREEMENT
            if score[i] < best or i + 1 == count:
                continue
            if score[i] == best and not _is_earlier(slices, t, u, best_stretch, best_unit):
                continue
            best, best_stretch, best_unit = score[i], t, u
    return Agreed(best, best_stretch, best_unit, 0)


@kernel("Scored(Slices, float64[::1], int64, float64[::1], Scored)")
def _best_of_stretch(slices, score, t, bound, best):  # type: ignore[no-untyped-def]
    """The better of the best cut so far and those of stretch `t`; widens the bounds."""
    start, count = slices.first[t], slices.n_units[t]
    for i in range(count):
        u = start + i
        bound[u] = bound[u] + abs(bound[u]) * _OUTWARDS if slices.is_open[u] else NO_SCORE
        if score[i] < best.score or i + 1 == count:
            continue
        is_tie = score[i] == best.score
        if is_tie and not _is_earlier(slices, t, u, best.stretch, best.unit):
            continue
        best = Scored(score[i], t, u, 0)
    return best


@kernel("float64(int64, int64)")
def _root(positive, negative):  # type: ignore[no-untyped-def]
    return np.sqrt(float(positive) * float(negative))


@kernel("Scored(Slices, Ground, float64, int64, int64, float64[::1])")
def weigh_real(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Real votes; `l2` is not used."""
    best = Scored(NO_SCORE, 0, -1, 0)
    n_outputs = len(slices.sums) // 2
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        score = np.zeros(count)
        bound[start : start + count] = 0.0
        for k in range(n_outputs):
            p, n = ground.left[2 * k, t], ground.left[2 * k + 1, t]
            rest_p, rest_n = ground.present[2 * k, t] - p, ground.present[2 * k + 1, t] - n
            missing = -_root(ground.missing[2 * k, t], ground.missing[2 * k + 1, t])
            before = (-_root(p, n) - _root(rest_p, rest_n)) + missing
            for i in range(count):
                more_p, more_n = slices.sums[2 * k, start + i], slices.sums[2 * k + 1, start + i]
                next_p, next_n = p + more_p, n + more_n
                less_p, less_n = rest_p - more_p, rest_n - more_n
                after = (-_root(next_p, next_n) - _root(less_p, less_n)) + missing
                if slices.is_open[start + i]:
                    p1, n2, n3, p4 = _band(slices, k, start + i, more_p, more_n)
                    corner = max(
                        max(
                            -_root(p + p1, n) - _root(rest_p - p1, rest_n),
                            -_root(next_p, n + n2) - _root(less_p, rest_n - n2),
                        ),
                        max(
                            -_root(p, n + n3) - _root(rest_p, rest_n - n3),
                            -_root(p + p4, next_n) - _root(rest_p - p4, less_n),
                        ),
                    )
                    corner += missing
                    bound[start + i] += max(corner, max(before, after))
                score[i] = score[i] + after if k else after
                p, n, rest_p, rest_n, before = next_p, next_n, less_p, less_n, after
        best = _best_of_stretch(slices, score, t, bound, best)
    return best


@kernel("Scored(Slices, Ground, float64, int64, int64, float64[::1])")
def weigh_newton(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Newton votes."""
    best = Scored(NO_SCORE, 0, -1, 0)
    n_outputs = len(slices.sums) // 3
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        score = np.zeros(count)
        bound[start : start + count] = 0.0
        for k in range(n_outputs):
            up, down, second = slices.sums[3 * k], slices.sums[3 * k + 1], slices.sums[3 * k + 2]
            a = ground.left[3 * k, t] - ground.left[3 * k + 1, t]
            b = ground.left[3 * k + 2, t]
            rest = ground.present[3 * k, t] - ground.present[3 * k + 1, t] - a
            rest_b = ground.present[3 * k + 2, t] - b
            lacking = ground.missing[3 * k, t] - ground.missing[3 * k + 1, t]
            missing = gain(lacking, ground.missing[3 * k + 2, t], l2)
            for i in range(count):
                u = start + i
                next_a, next_b = a + up[u] - down[u], b + second[u]
                less, less_b = rest - up[u] + down[u], rest_b - second[u]
                after = (gain(next_a, next_b, l2) + gain(less, less_b, l2)) + missing
                if slices.is_open[u]:
                    # A cut inside leaves a sample on either side, whose second integer is above 0.
                    above, below = _reach(slices, k, u, up[u], down[u])
                    high_a, low_a = a + above, a - below
                    high_rest, low_rest = rest + below, rest - above
                    few_right = gain(high_a, next_b - 1, l2) + gain(low_rest, less_b + 1, l2)
                    few_left = gain(high_a, b + 1, l2) + gain(low_rest, rest_b - 1, l2)
                    corner = max(few_right, few_left)
                    few_right = gain(low_a, next_b - 1, l2) + gain(high_rest, less_b + 1, l2)
                    few_left = gain(low_a, b + 1, l2) + gain(high_rest, rest_b - 1, l2)
                    bound[u] += max(corner, max(few_right, few_left)) + missing
                score[i] = score[i] + after if k else after
                a, b, rest, rest_b = next_a, next_b, less, less_b
        best = _best_of_stretch(slices, score, t, bound, best)
    return best
