"""Monotone constraints in kernels: which cuts are allowed, and bounds for those inside a cell.

`gpustump.engines.monotone` defines which cuts a constraint allows. Here each operation is one of
IEEE arithmetic, in the order that is defined there.

With real votes and the constraint 1, a cut is allowed if the level (p + s) / (n + s) of the left
side is not above that of the right side. Multiply this inequality out: the products of left and
right sums cancel, and what remains is linear in the sums (p, n) on the left. With P and N over all
samples that have a value,

    (p + s) - r (n + s) <= 0,    r = (P + 2s) / (N + 2s)

for the constraint 1, and >= 0 for -1. With Newton votes and lambda l it is

    a - r (b + l) <= 0,          r = A / (B + 2l).

So the allowed cuts lie on one side of a line, and those inside a cell in the allowed part of its
rectangle or band (see `cell_scores`). A convex function is largest at a corner of that part: at a
corner of the band that is allowed, or where the line crosses an edge of the band. There it is at
most the value interpolated between the edge's ends.

Levels are rounded, and sums may be estimates. So the line is moved outwards, by far more than the
roundings and by the largest error of the estimates. Where sums are estimates, the values at both
ends of an edge count if the line crosses it.

A segment whose feature is constrained is evaluated like any other (see `cell_scores`), and then
limited: the scores of forbidden cuts at edges are replaced by `NO_SCORE`, and each cell's bound by
a bound for its allowed cuts. There is one output. Where sums are estimates, an edge counts if it
may be allowed, and a cell's bound also holds for the cut at its right edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner
from gpustump.engines.cpu.split.part_bounds import (
    NO_SCORE,
    OUTWARDS,
    EdgeSums,  # noqa: F401  # named by signatures
    gains_inside,
    reach,
    roots_inside,
    rounded_up,
)

_ROUNDINGS = 2.0**-44
"""By what share the line is moved: levels and distances have fewer than 20 roundings of 2**-53."""


@group
class Rules(NamedTuple):
    """What a search's scores and constraints depend on besides the sums.

    Attributes
    ----------
    l2 : float
        For Newton votes: lambda, in units of the integers.
    smoothing : float
        For real votes: the smoothing of their levels; see `monotone.smoothing_of`.
    directions : ndarray (n_features,) of int64
        The features' constraints; empty if there are none.
    least : int
        The smallest Hessian that a sample may have.
    are_amounts : bool
        Whether the first two planes of sums over bins are those of amounts, whose sum is that of
        the Hessians.
    """

    l2: float
    smoothing: float
    directions: Integers
    least: int
    are_amounts: bool = False


@inner("int64(Rules, int64)")
def direction_of(rules, feature):  # type: ignore[no-untyped-def]
    """A feature's constraint: 1, -1, or 0 for none."""
    return rules.directions[feature] if len(rules.directions) > 0 else 0


@inner("float64(int64, int64, float64)")
def odds(positive, negative, smoothing):  # type: ignore[no-untyped-def]
    """The level of real votes: (P + s) / (N + s)."""
    return (float(positive) + smoothing) / (float(negative) + smoothing)


@inner("float64(int64, int64, float64)")
def newton_step(gradient, hessian, l2):  # type: ignore[no-untyped-def]
    """The level of Newton votes: gradient / (hessian + l2)."""
    return float(gradient) / max(float(hessian) + l2, 1.0)


@inner("boolean(int64, float64, float64)")
def are_in_order(direction, left, right):  # type: ignore[no-untyped-def]
    """Whether a constraint allows these levels on the left and on the right."""
    return left <= right if direction > 0 else (left >= right if direction < 0 else True)


@group
class HalfPlane(NamedTuple):
    """The allowed side of a line, in the plane of two sums x and y left of a cut.

    The distance of a cut is sign * ((x + shift_x) - slope * (y + shift_y)). The cut is forbidden if
    that is above the slack.

    Attributes
    ----------
    sign : int
        The constraint.
    shift_x, shift_y, slope : float
    size, height : float
        The largest that x may be, and the sum of y over both sides, with both shifts.
    """

    sign: int
    shift_x: float
    shift_y: float
    slope: float
    size: float
    height: float


@group
class Sizes(NamedTuple):
    """Numbers for the two sums on both sides of a cut: their sizes, or their largest errors."""

    left_x: float
    left_y: float
    right_x: float
    right_y: float


@inner("HalfPlane(int64, int64, int64, float64)")
def half_plane_of_odds(sign, positive, negative, smoothing):  # type: ignore[no-untyped-def]
    """For real votes, from the sums over all samples that have a value."""
    # If an estimate is below 0, no cut is ruled out.
    size = float(positive) + 2.0 * smoothing if min(positive, negative) >= 0 else np.inf
    height = float(max(negative, 0)) + 2.0 * smoothing
    slope = (float(positive) + 2.0 * smoothing) / height
    return HalfPlane(sign, smoothing, smoothing, slope, size, height)


@inner("HalfPlane(int64, int64, int64, int64, float64)")
def half_plane_of_steps(sign, gradient, sizes, hessian, l2):  # type: ignore[no-untyped-def]
    """For Newton votes; `sizes` is the sum of the absolute values of the gradients."""
    size = float(sizes) if min(sizes, hessian) >= 0 else np.inf
    height = max(float(hessian) + 2.0 * l2, 1.0)
    return HalfPlane(sign, 0.0, l2, float(gradient) / height, size, height)


@inner("float64(HalfPlane, float64, float64)")
def distance(half, x, y):  # type: ignore[no-untyped-def]
    """The distance of a cut with sums x and y on the left; 0 or less if it is allowed."""
    return half.sign * ((x + half.shift_x) - half.slope * (y + half.shift_y))


@inner("float64(HalfPlane, Sizes, Sizes)")
def slack_of(half, sums, error):  # type: ignore[no-untyped-def]
    """Up to which distance a cut may be allowed, given the sizes and the errors of its sums.

    The levels are in the order of the products x_left * y_right and x_right * y_left, shifts
    included. The error of a product is at most each factor times the error of the other one, plus
    the product of both errors.
    """
    by_rounding = half.size * _ROUNDINGS
    if error.left_x + error.left_y + error.right_x + error.right_y == 0.0:
        return by_rounding
    if 2.0 * (error.left_y + error.right_y) >= half.height:
        return np.inf
    shift_x, shift_y = half.shift_x, half.shift_y
    one = (sums.left_x + shift_x) * error.right_y + (sums.right_y + shift_y) * error.left_x
    two = (sums.right_x + shift_x) * error.left_y + (sums.left_y + shift_y) * error.right_x
    both = error.left_x * error.right_y + error.right_x * error.left_y
    return by_rounding + ((one + two) + both) * (1.0 + OUTWARDS) / half.height


@inner("float64(float64[::1], float64[::1], float64, boolean)")
def most_allowed(value, beyond, slack, is_exact):  # type: ignore[no-untyped-def]
    """The largest value that a convex function may have in the allowed part of a polygon.

    Parameters
    ----------
    value, beyond : ndarray of float64
        The function and the distance at the polygon's corners, in their order along its edge.
    slack : float
    is_exact : bool
        Whether values and distances are those of exact sums.
    """
    most, count = NO_SCORE, len(value)
    for k in range(count):
        j = k + 1 if k + 1 < count else 0
        if beyond[k] <= slack:
            most = max(most, value[k])
        if (beyond[k] <= slack) == (beyond[j] <= slack):
            continue
        inner, outer = (k, j) if beyond[k] <= slack else (j, k)
        if value[outer] <= value[inner]:
            continue
        share = 1.0
        if is_exact:
            share = (slack - beyond[inner]) / (beyond[outer] - beyond[inner])
            share = min(1.0, share * (1.0 + OUTWARDS) + OUTWARDS)
        most = max(most, value[inner] * (1.0 - share) + value[outer] * share)
    return most


@group
class Limits(NamedTuple):
    """What is known of a segment whose feature is constrained besides its sums and scores.

    Attributes
    ----------
    direction : int
        The constraint.
    by_positive, by_negative : ndarray of float64
        How far one share may be ahead of the other in each cell; see `Slices.skew`.
    missing : float
        What missing values add to each score.
    is_exact : bool
        Whether all sums are exact.
    """

    direction: int
    by_positive: Floats
    by_negative: Floats
    missing: float
    is_exact: bool


@inner("float64(EdgeSums, int64, int64, int64, HalfPlane)")
def _slack_inside(sums, i, low, high, half):  # type: ignore[no-untyped-def]
    """The slack of the cuts inside cell `i`, where the sum x lies between `low` and `high`."""
    left = float(max(abs(low), abs(high)))
    right = float(max(abs(sums.all_x - low), abs(sums.all_x - high)))
    most = Sizes(left, abs(float(sums.y[i + 1])), right, abs(float(sums.all_y - sums.y[i])))
    error = Sizes(sums.left_x[i + 1], sums.left_y[i + 1], sums.right_x[i], sums.right_y[i])
    return slack_of(half, most, error)


@inner("boolean(EdgeSums, int64, HalfPlane)")
def _may_be_allowed(sums, i, half):  # type: ignore[no-untyped-def]
    """Whether the cut at edge `i` may be allowed, given estimates.

    A cut with an empty side is always allowed.
    """
    x, y = sums.x[i], sums.y[i]
    if (x == 0 and y == 0) or (x == sums.all_x and y == sums.all_y):
        return True
    left_x, left_y = abs(float(x)), abs(float(y))
    right_x, right_y = abs(float(sums.all_x - x)), abs(float(sums.all_y - y))
    error = Sizes(sums.left_x[i], sums.left_y[i], sums.right_x[i], sums.right_y[i])
    slack = slack_of(half, Sizes(left_x, left_y, right_x, right_y), error)
    return distance(half, float(x), float(y)) <= slack


@inner("void(EdgeSums, HalfPlane, float64[::1], float64[::1])")
def _limit_estimates(sums, half, at_edge, bound):  # type: ignore[no-untyped-def]
    """Limit the scores at edges, given estimates, and raise the bounds to those that remain."""
    for i in range(1, len(bound) + 1):
        if not _may_be_allowed(sums, i, half):
            at_edge[i] = NO_SCORE
        bound[i - 1] = max(bound[i - 1], at_edge[i])


@inner("void(Limits, EdgeSums, float64, float64[::1], float64[::1])")
def limit_real(limits, sums, smoothing, at_edge, bound):  # type: ignore[no-untyped-def]
    """Limit a segment of real votes.

    Parameters
    ----------
    limits : Limits
    sums : EdgeSums
    smoothing : float
        See `Rules`.
    at_edge : ndarray of float64
        The score at each edge; replaced.
    bound : ndarray of float64
        For each cell; replaced.
    """
    half = half_plane_of_odds(limits.direction, sums.all_x, sums.all_y, smoothing)
    value, beyond = np.empty(6), np.empty(6)
    corner_p, corner_n = np.empty(6, dtype=np.int64), np.empty(6, dtype=np.int64)
    for i in range(len(bound)):
        p0, p9, n0, n9 = sums.x[i], sums.x[i + 1], sums.y[i], sums.y[i + 1]
        more_p, more_n = max(p9 - p0, 0), max(n9 - n0, 0)
        # The corners of the band in turn; the first and the fourth are the cell's edges.
        corner_p[0], corner_n[0] = p0, n0
        corner_p[1], corner_n[1] = p0 + rounded_up(limits.by_positive[i], more_p), n0
        corner_p[2], corner_n[2] = p9, n9 - rounded_up(limits.by_positive[i], more_n)
        corner_p[3], corner_n[3] = p9, n9
        corner_p[4], corner_n[4] = p9 - rounded_up(limits.by_negative[i], more_p), n9
        corner_p[5], corner_n[5] = p0, n0 + rounded_up(limits.by_negative[i], more_n)
        for k in range(6):
            value[k] = limits.missing - roots_inside(sums, i, corner_p[k], corner_n[k])
            beyond[k] = distance(half, float(corner_p[k]), float(corner_n[k]))
        slack = _slack_inside(sums, i, p0, p9, half)
        bound[i] = most_allowed(value, beyond, slack, limits.is_exact)
    if not limits.is_exact:
        _limit_estimates(sums, half, at_edge, bound)
        return
    for i in range(1, len(bound) + 1):
        left = odds(sums.x[i], sums.y[i], smoothing)
        right = odds(sums.all_x - sums.x[i], sums.all_y - sums.y[i], smoothing)
        if not are_in_order(limits.direction, left, right):
            at_edge[i] = NO_SCORE


@group
class GradientSums(NamedTuple):
    """Newton votes: sums of the absolute values of a segment's gradients.

    Attributes
    ----------
    up, down : ndarray of int64
        Over each cell's samples with the label +1, and over the others.
    present : int
        Over all samples that have a value.
    """

    up: Integers
    down: Integers
    present: int


@inner("void(Limits, EdgeSums, GradientSums, Rules, float64[::1], float64[::1])")
def limit_newton(limits, sums, first, rules, at_edge, bound):  # type: ignore[no-untyped-def]
    """Limit a segment of Newton votes; see `limit_real`."""
    l2, least = rules.l2, rules.least
    half = half_plane_of_steps(limits.direction, sums.all_x, first.present, sums.all_y, l2)
    value, beyond = np.empty(4), np.empty(4)
    for i in range(len(bound)):
        above, below = reach(
            limits.by_positive[i], limits.by_negative[i], max(first.up[i], 0), max(first.down[i], 0)
        )
        # A cut inside leaves a sample on either side.
        few, many = sums.y[i] + least, sums.y[i + 1] - least
        for k in range(4):
            a = sums.x[i] + above if k == 0 or k == 1 else sums.x[i] - below
            b = few if k == 0 or k == 3 else many
            value[k] = gains_inside(sums, i, a, b, l2) + limits.missing
            beyond[k] = distance(half, float(a), float(b))
        slack = _slack_inside(sums, i, sums.x[i] - below, sums.x[i] + above, half)
        bound[i] = most_allowed(value, beyond, slack, limits.is_exact)
    if not limits.is_exact:
        _limit_estimates(sums, half, at_edge, bound)
        return
    for i in range(1, len(bound) + 1):
        left = newton_step(sums.x[i], sums.y[i], l2)
        right = newton_step(sums.all_x - sums.x[i], sums.all_y - sums.y[i], l2)
        if not are_in_order(limits.direction, left, right):
            at_edge[i] = NO_SCORE
