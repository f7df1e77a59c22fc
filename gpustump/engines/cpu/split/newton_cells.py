"""Newton votes: the best cut between cells, and bounds for those inside; see `cell_scores`.

Corners are computed in many short loops, each of which reads and writes few arrays. So the compiler
takes several cells at a time. It does not do so with ten arrays: it must check before the loop that
none that is written overlaps another one, and makes few such checks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cell_scores import (
    EVALUATED,
    Scored,
    add_error,
    add_output,
    best_of_segment,
    error_of_missing,
    largest,
    most_cells,
    outwards,
    set_skew,
    to_keys,
    write_key,
)
from gpustump.engines.cpu.split.monotone_bounds import (
    GradientSums,
    Limits,
    direction_of,
    limit_newton,
)
from gpustump.engines.cpu.split.part_bounds import (
    NO_SCORE,
    OUTWARDS,
    EdgeSums,
    gains_inside,
    most_gain,
    reach,
    rounded_up,
)
from gpustump.engines.integer_weights import TOP

_MOST_REACH = float(TOP // 2)
"""A bin's sums are below this, and sums of it and of others do not overflow."""


@inner("int64(int64[:, ::1], int64, int64)")
def _gradient(sums, plane, t):  # type: ignore[no-untyped-def]
    """The sum of an output's gradients, from its planes."""
    return sums[plane, t] - sums[plane + 1, t]


@inner("int64(int64[:, ::1], int64, int64)")
def _hessian(sums, plane, t):  # type: ignore[no-untyped-def]
    """The sum of its Hessians."""
    return sums[plane + 2, t] + sums[plane + 3, t]


@inner("void(int64[::1], int64[::1], int64, int64, int64[::1])")
def _running_both(one, other, sign, left, total):  # type: ignore[no-untyped-def]
    """Write the sums of one + sign * other at the edges of cells to `total`."""
    total[0] = left
    for i in range(len(one)):
        total[i + 1] = total[i] + one[i] + sign * other[i]


@inner("void(float64[::1], float64[::1], int64[::1], int64[::1], int64[::1])")
def _set_reach(by_first, by_second, gradient, hessian, found):  # type: ignore[no-untyped-def]
    """Write how far the signed sum inside each cell may be above its value at the left edge.

    With the numbers of both labels exchanged, how far it may be below. See `part_bounds.reach`.
    """
    for i in range(len(found)):
        # An estimate may be a little below 0, although the sum is not.
        found[i] = reach(by_first[i], by_second[i], max(gradient[i], 0), max(hessian[i], 0))[0]


@inner("void(int64, int64[::1], int64[::1], int64, float64[::1], float64[::1])")
def _set_squares(total, left, by, sign, error, found):  # type: ignore[no-untyped-def]
    """Write the square of the most that abs(total - (left + sign * by)) may be."""
    for i in range(len(found)):
        most = float(abs(total - (left[i] + sign * by[i]))) + error[i]
        found[i] = most * most


@inner("void(int64, int64, int64[::1], int64, float64[::1], float64, float64[::1])")
def _set_inverses(total, sign, left, more, error, l2, found):  # type: ignore[no-untyped-def]
    """Write one over the least that total + sign * (left + more) + l2 may be, but at least 1."""
    for i in range(len(found)):
        least = float(total + sign * (left[i] + more)) - error[i] + l2
        found[i] = 1.0 / max(least, 1.0)


@inner("void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def _keep_larger(left, right, few, rest, many, others):  # type: ignore[no-untyped-def]
    """Replace squares on the left by the larger gain of the two corners that have these squares."""
    for i in range(len(left)):
        one = left[i] * few[i] + right[i] * rest[i]
        left[i] = max(one, left[i] * many[i] + right[i] * others[i])


@group
class _Corners(NamedTuple):
    """Room for the numbers of each cell, (n_cells,).

    Attributes
    ----------
    above, below : ndarray of int64
        How far the gradient inside may be above its value at the left edge, and below it.
    highest, rest_highest, lowest, rest_lowest : ndarray of float64
        The squares of the gradients on the left and on the right of a cut: where the one on the
        left is highest, and where it is lowest.
    few, rest, many, others : ndarray of float64
        One over the Hessians on the left and on the right of a cut: next to the left edge, and
        next to the right one.
    """

    above: Integers
    below: Integers
    highest: Floats
    rest_highest: Floats
    lowest: Floats
    rest_lowest: Floats
    few: Floats
    rest: Floats
    many: Floats
    others: Floats


@inner("void(EdgeSums, float64, float64, float64[::1])")
def _set_gains(edges, missing, l2, at_edge):  # type: ignore[no-untyped-def]
    """Write an output's part of the score at each edge, or the most that it may be."""
    a, b, all_a, all_b, a_error, b_error, rest_a_error, rest_b_error = edges
    for i in range(len(at_edge)):
        left = most_gain(a[i], b[i], a_error[i], b_error[i], l2)
        right = most_gain(all_a - a[i], all_b - b[i], rest_a_error[i], rest_b_error[i], l2)
        at_edge[i] = left + right + missing


@inner("void(EdgeSums, _Corners, Rules)")
def _set_corners(edges, corners, rules):  # type: ignore[no-untyped-def]
    """Write the larger gains of the corners of each cell to `highest` and `lowest`.

    A cut inside leaves a sample on either side.
    """
    l2, least = rules.l2, rules.least
    a, b, all_a, all_b, a_error, b_error, rest_a_error, rest_b_error = edges
    above, below, highest, rest_highest, lowest, rest_lowest, few, rest, many, others = corners
    n = len(highest)
    al, bl, ar, br = a_error[1 : n + 1], b_error[1 : n + 1], rest_a_error[:n], rest_b_error[:n]
    _set_squares(0, a[:n], above, 1, al, highest)
    _set_squares(all_a, a[:n], above, 1, ar, rest_highest)
    _set_squares(0, a[:n], below, -1, al, lowest)
    _set_squares(all_a, a[:n], below, -1, ar, rest_lowest)
    _set_inverses(0, 1, b[:n], least, bl, l2, few)
    _set_inverses(all_b, -1, b[:n], least, br, l2, rest)
    _set_inverses(0, 1, b[1 : n + 1], -least, bl, l2, many)
    _set_inverses(all_b, -1, b[1 : n + 1], -least, br, l2, others)
    _keep_larger(highest, rest_highest, few, rest, many, others)
    _keep_larger(lowest, rest_lowest, few, rest, many, others)


@inner("void(EdgeSums, float64[::1], Rules, float64[::1], float64[::1])")
def _keep_within_bands(edges, spread, rules, highest, lowest):  # type: ignore[no-untyped-def]
    """Lower the gains of corners to those in the band around each cell's diagonal.

    The sum at a cut is at most its cell's `spread` away from the line between the edges. A cut
    leaves a sample on either side, so the band begins and ends at the smallest Hessian.
    """
    a, b, least, l2 = edges.x, edges.y, rules.least, rules.l2
    for i in range(len(highest)):
        y0, y9 = b[i] + least, b[i + 1] - least
        slope = abs(float(a[i + 1] - a[i])) / max(float(b[i + 1] - b[i]), 1.0)
        by = np.int64(min(spread[i] + slope * float(least), _MOST_REACH)) + 1
        above = max(
            gains_inside(edges, i, a[i] + by, y0, l2),
            gains_inside(edges, i, a[i + 1] + by, y9, l2),
        )
        below = max(
            gains_inside(edges, i, a[i] - by, y0, l2),
            gains_inside(edges, i, a[i + 1] - by, y9, l2),
        )
        most = max(above, below) * (1.0 + OUTWARDS)
        highest[i], lowest[i] = min(highest[i], most), min(lowest[i], most)


@inner("float64(EdgeSums, int64, int64, int64, float64)")
def _gains_of_amounts(edges, i, p, n, l2):  # type: ignore[no-untyped-def]
    """The most that a cut inside cell `i` gains with the amounts p and n on its left."""
    return gains_inside(edges, i, p - n, p + n, l2)


@inner("float64(int64, float64, float64, float64)")
def _near_nothing(hessian, a_error, b_error, l2):  # type: ignore[no-untyped-def]
    """What the gain of amounts may be above its values at the corners of a band.

    It is convex but for its least divisor, 1. There abs(a) is at most the sum of both amounts, that
    is 1 and the error of the divisor; an estimate of an amount may be below 0 by that error.
    """
    if float(hessian) - b_error + l2 >= 1.0:
        return 0.0
    most = 1.0 + a_error + 3.0 * b_error
    return most * most


@inner(
    "void(EdgeSums, int64[::1], int64[::1], float64[::1], float64[::1], float64, float64[::1],"
    " float64[::1])"
)
def _keep_within_shares(edges, up, down, by_positive, by_negative, l2, highest, lowest):  # type: ignore[no-untyped-def]
    """Lower the gains of corners to those in the band around the diagonal of both amounts.

    `up` and `down` are the amounts of each cell; see `part_bounds.reach` for the corners.
    """
    for i in range(len(highest)):
        p0, n0 = (edges.y[i] + edges.x[i]) >> 1, (edges.y[i] - edges.x[i]) >> 1
        more_p, more_n = max(up[i], 0), max(down[i], 0)
        ahead_p, ahead_n = rounded_up(by_positive[i], more_p), rounded_up(by_negative[i], more_n)
        behind_p, behind_n = rounded_up(by_negative[i], more_p), rounded_up(by_positive[i], more_n)
        one = _gains_of_amounts(edges, i, p0 + ahead_p, n0, l2)
        two = _gains_of_amounts(edges, i, p0 + more_p, n0 + more_n - behind_n, l2)
        three = _gains_of_amounts(edges, i, p0, n0 + ahead_n, l2)
        four = _gains_of_amounts(edges, i, p0 + more_p - behind_p, n0 + more_n, l2)
        # The other two corners of the band are the edges.
        five = _gains_of_amounts(edges, i, p0, n0, l2)
        six = _gains_of_amounts(edges, i, p0 + more_p, n0 + more_n, l2)
        most = max(max(max(one, two), max(three, four)), max(five, six))
        most += _near_nothing(edges.y[i], edges.left_x[i + 1], edges.left_y[i + 1], l2)
        rest = edges.all_y - edges.y[i + 1]
        most += _near_nothing(rest, edges.right_x[i], edges.right_y[i], l2)
        most *= 1.0 + OUTWARDS
        highest[i], lowest[i] = min(highest[i], most), min(lowest[i], most)


@parallel(EVALUATED)
def evaluate(piece, slices, outside, rules, size, bound, most, scores, places):  # type: ignore[no-untyped-def]
    """See `cell_scores.EVALUATED`."""
    low = piece * size
    high = min(low + size, len(slices.first))
    best, bounds = Scored(NO_SCORE, 0, -1), bound.view(np.float64)
    n_outputs = len(slices.sums) // 4
    is_exact = len(outside.left_error) == 0
    room = most_cells(slices, low, high)
    score, by_positive, by_negative = np.empty(room), np.empty(room), np.empty(room)
    all_integers, all_floats = np.empty((2, room), dtype=np.int64), np.empty((8, room))
    both, at_edges = np.empty((2, room + 1), dtype=np.int64), np.empty(room + 1)
    offs = np.zeros((4, room + 1))
    l2 = rules.l2
    for t in range(low, high):
        start, count = slices.first[t], slices.n_cells[t]
        own = bounds[start : start + count]
        own[:] = 0.0
        a, b, at_edge = both[0, : count + 1], both[1, : count + 1], at_edges[: count + 1]
        a_error, b_error = offs[0, : count + 1], offs[1, : count + 1]
        rest_a_error, rest_b_error = offs[2, : count + 1], offs[3, : count + 1]
        corners = _Corners(
            all_integers[0, :count], all_integers[1, :count], all_floats[0, :count],
            all_floats[1, :count], all_floats[2, :count], all_floats[3, :count],
            all_floats[4, :count], all_floats[5, :count], all_floats[6, :count],
            all_floats[7, :count],
        )  # fmt: skip
        for k in range(n_outputs):
            plane = 4 * k
            set_skew(slices, k, start, count, by_positive, by_negative)
            up = slices.sums[plane, start : start + count]
            down = slices.sums[plane + 1, start : start + count]
            curve = slices.sums[plane + 2, start : start + count]
            other_curve = slices.sums[plane + 3, start : start + count]
            _running_both(up, down, -1, _gradient(outside.left, plane, t), a)
            _running_both(curve, other_curve, 1, _hessian(outside.left, plane, t), b)
            missing_a_error, missing_b_error = 0.0, 0.0
            if not is_exact:
                offs[:] = 0.0
                for q in (plane, plane + 1):
                    add_error(slices, outside, q, t, a_error, rest_a_error)
                    add_error(slices, outside, q + 2, t, b_error, rest_b_error)
                    missing_a_error += error_of_missing(outside, q, t)
                    missing_b_error += error_of_missing(outside, q + 2, t)
            all_a, all_b = _gradient(outside.present, plane, t), _hessian(outside.present, plane, t)
            missing = most_gain(
                _gradient(outside.missing, plane, t), _hessian(outside.missing, plane, t),
                missing_a_error, missing_b_error, l2,
            )  # fmt: skip
            edges = EdgeSums(a, b, all_a, all_b, a_error, b_error, rest_a_error, rest_b_error)
            _set_gains(edges, missing, l2, at_edge)
            _set_reach(by_positive, by_negative, up, down, corners.above)
            _set_reach(by_negative, by_positive, down, up, corners.below)
            _set_corners(edges, corners, rules)
            highest, lowest = corners.highest, corners.lowest
            if len(slices.spread) > 0:
                spread = slices.spread[start : start + count]
                _keep_within_bands(edges, spread, rules, highest, lowest)
            if rules.are_amounts and len(slices.skew) > 0:
                _keep_within_shares(edges, up, down, by_positive, by_negative, l2, highest, lowest)
            for i in range(count):
                corner = max(highest[i], lowest[i]) + missing
                own[i] += corner if is_exact else max(corner, at_edge[i + 1])
            direction = direction_of(rules, slices.feature[t])
            if direction != 0:
                limits = Limits(direction, by_positive, by_negative, missing, is_exact)
                sizes = outside.present[plane, t] + outside.present[plane + 1, t]
                limit_newton(limits, edges, GradientSums(up, down, sizes), rules, at_edge, own)
            add_output(score[:count], at_edge, k == 0)
        best = best_of_segment(slices, is_exact, score, t, bounds, best)
        if most.shape[1] > 0:
            write_key(most[0], t, outwards(largest(score[:count])))
            write_key(most[1], t, largest(own))
        to_keys(bound[start : start + count])
    write_key(scores, piece, best.score)
    places[piece, 0], places[piece, 1] = best.segment, best.cell
