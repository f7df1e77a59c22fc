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
from gpustump.engines.cpu.split_scores import gain, root

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


@kernel("UniTuple(int64, 2)(float64, float64, int64, int64)")
def _reach(by_positive, by_negative, positive, negative):  # type: ignore[no-untyped-def]
    """How far above its value at a unit's left edge the signed sum may be, and how far below.

    The corners of the band are, with the share of the positive sum ahead, (p, 0) and (positive, n),
    and with that of the negative sum ahead (0, n) and (p, negative).
    """
    up = max(
        _rounded_up(by_positive, positive),
        positive - negative + _rounded_up(by_positive, negative),
    )
    down = max(
        _rounded_up(by_negative, negative),
        negative - positive + _rounded_up(by_negative, positive),
    )
    return up, down


@kernel("void(Slices, int64, int64, int64, float64[::1], float64[::1])")
def _ahead_of(slices, output, start, count, by_positive, by_negative):  # type: ignore[no-untyped-def]
    """How far one share may be ahead of the other, unit by unit: by 1 if nothing is known."""
    for i in range(count):
        by_positive[i], by_negative[i] = 1.0, 1.0
    if len(slices.ahead) > 0:
        for i in range(count):
            by_positive[i] = slices.ahead[2 * output, start + i]
            by_negative[i] = slices.ahead[2 * output + 1, start + i]


@kernel("int64(Slices, int64, int64)")
def _room(slices, low, high):  # type: ignore[no-untyped-def]
    """The most units of a stretch."""
    most = 0
    for t in range(low, high):
        most = max(most, slices.n_units[t])
    return most


@kernel("void(int64[::1], int64, int64, int64[::1])")
def _running(sums, start, left, total):  # type: ignore[no-untyped-def]
    """The sums at the edges of units: `left` before the first one."""
    total[0] = left
    for i in range(len(total) - 1):
        total[i + 1] = total[i] + sums[start + i]


@kernel("Agreed(Slices, Ground, float64, int64, int64, int64[::1])")
def weigh_shared(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Discrete votes that several outputs share."""
    best, best_stretch, best_unit = NO_AGREEMENT, 0, -1
    n_outputs = len(slices.sums) // 2
    room = _room(slices, low, high)
    by_positive, by_negative = np.empty(room), np.empty(room)
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        score = np.zeros(count, dtype=np.int64)
        bound[start : start + count] = 0
        for k in range(n_outputs):
            _ahead_of(slices, k, start, count, by_positive, by_negative)
            positive, negative = slices.sums[2 * k], slices.sums[2 * k + 1]
            present = ground.present[2 * k, t] - ground.present[2 * k + 1, t]
            extra = abs(ground.missing[2 * k, t] - ground.missing[2 * k + 1, t])
            left = ground.left[2 * k, t] - ground.left[2 * k + 1, t]
            for i in range(count):
                u = start + i
                if slices.is_open[u]:
                    up, down = _reach(by_positive[i], by_negative[i], positive[u], negative[u])
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


@kernel("float64(int64, int64, int64, int64)")
def _roots(p, n, present_p, present_n):  # type: ignore[no-untyped-def]
    """Left and right of a cut with these sums on the left."""
    return -root(p, n) - root(present_p - p, present_n - n)


@kernel("Scored(Slices, Ground, float64, int64, int64, float64[::1])")
def weigh_real(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Real votes; `l2` is not used."""
    best = Scored(NO_SCORE, 0, -1, 0)
    n_outputs = len(slices.sums) // 2
    room = _room(slices, low, high)
    score, by_positive, by_negative = np.empty(room), np.empty(room), np.empty(room)
    p, n = np.empty(room + 1, dtype=np.int64), np.empty(room + 1, dtype=np.int64)
    at_edge = np.empty(room + 1)
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        own = bound[start : start + count]
        own[:] = 0.0
        for k in range(n_outputs):
            _ahead_of(slices, k, start, count, by_positive, by_negative)
            _running(slices.sums[2 * k], start, ground.left[2 * k, t], p[: count + 1])
            _running(slices.sums[2 * k + 1], start, ground.left[2 * k + 1, t], n[: count + 1])
            all_p, all_n = ground.present[2 * k, t], ground.present[2 * k + 1, t]
            missing = -root(ground.missing[2 * k, t], ground.missing[2 * k + 1, t])
            # Without branches, the compiler takes several units at a time.
            for i in range(count + 1):
                at_edge[i] = _roots(p[i], n[i], all_p, all_n) + missing
            for i in range(count):
                more_p, more_n = p[i + 1] - p[i], n[i + 1] - n[i]
                p1, n2 = _rounded_up(by_positive[i], more_p), _rounded_up(by_positive[i], more_n)
                n3, p4 = _rounded_up(by_negative[i], more_n), _rounded_up(by_negative[i], more_p)
                one = _roots(p[i] + p1, n[i], all_p, all_n)
                two = _roots(p[i + 1], n[i + 1] - n2, all_p, all_n)
                three = _roots(p[i], n[i] + n3, all_p, all_n)
                four = _roots(p[i + 1] - p4, n[i + 1], all_p, all_n)
                corner = max(max(one, two), max(three, four)) + missing
                own[i] += max(corner, max(at_edge[i], at_edge[i + 1]))
            if k == 0:
                score[:count] = at_edge[1 : count + 1]
            else:
                score[:count] += at_edge[1 : count + 1]
        best = _best_of_stretch(slices, score, t, bound, best)
    return best


@kernel("float64(int64, int64, int64, int64, float64)")
def _gains(a, b, present_a, present_b, l2):  # type: ignore[no-untyped-def]
    """Left and right of a cut with these sums on the left."""
    return gain(a, b, l2) + gain(present_a - a, present_b - b, l2)


@kernel("Scored(Slices, Ground, float64, int64, int64, float64[::1])")
def weigh_newton(slices, ground, l2, low, high, bound):  # type: ignore[no-untyped-def]
    """Newton votes."""
    best = Scored(NO_SCORE, 0, -1, 0)
    n_outputs = len(slices.sums) // 3
    room = _room(slices, low, high)
    score, by_positive, by_negative = np.empty(room), np.empty(room), np.empty(room)
    a, b = np.empty(room + 1, dtype=np.int64), np.empty(room + 1, dtype=np.int64)
    for t in range(low, high):
        start, count = slices.first[t], slices.n_units[t]
        own = bound[start : start + count]
        own[:] = 0.0
        for k in range(n_outputs):
            _ahead_of(slices, k, start, count, by_positive, by_negative)
            up = slices.sums[3 * k, start : start + count]
            down = slices.sums[3 * k + 1, start : start + count]
            _running(
                up - down, 0, ground.left[3 * k, t] - ground.left[3 * k + 1, t], a[: count + 1]
            )
            _running(slices.sums[3 * k + 2], start, ground.left[3 * k + 2, t], b[: count + 1])
            all_a = ground.present[3 * k, t] - ground.present[3 * k + 1, t]
            all_b = ground.present[3 * k + 2, t]
            lacking = ground.missing[3 * k, t] - ground.missing[3 * k + 1, t]
            missing = gain(lacking, ground.missing[3 * k + 2, t], l2)
            for i in range(count):
                at_edge = _gains(a[i + 1], b[i + 1], all_a, all_b, l2) + missing
                score[i] = score[i] + at_edge if k else at_edge
            for i in range(count):
                above, below = _reach(by_positive[i], by_negative[i], up[i], down[i])
                high_a, low_a = a[i] + above, a[i] - below
                # A cut inside leaves a sample on either side, whose second integer is above 0.
                few, many = b[i] + 1, b[i + 1] - 1
                corners = max(
                    max(
                        _gains(high_a, few, all_a, all_b, l2),
                        _gains(high_a, many, all_a, all_b, l2),
                    ),
                    max(
                        _gains(low_a, few, all_a, all_b, l2), _gains(low_a, many, all_a, all_b, l2)
                    ),
                )
                own[i] += corners + missing
        best = _best_of_stretch(slices, score, t, bound, best)
    return best
