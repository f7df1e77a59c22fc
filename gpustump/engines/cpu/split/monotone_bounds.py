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

So the allowed cuts lie on one side of a line. The sums inside a cell lie in a rectangle. If all of
it is on the other side, the cell holds no allowed cut; otherwise its bound is that of all its cuts.

Levels are rounded, and sums may be estimates. So the line is moved outwards, by far more than the
roundings and by the largest error of the estimates.

A segment whose feature is constrained is evaluated like any other (see `cell_scores`), and then
limited: the scores of forbidden cuts at edges, and the bounds of cells without an allowed cut, are
replaced by `NO_SCORE`. There is one output. Where sums are estimates, an edge counts if it may be
allowed, and a cell's bound also holds for the cut at its right edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner
from gpustump.engines.cpu.split.part_bounds import NO_SCORE, OUTWARDS

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


@group
class LimitedSegment(NamedTuple):
    """A segment whose feature is constrained: what is known of it, except its scores.

    Attributes
    ----------
    direction : int
        The constraint.
    x, y : ndarray of int64
        P and N, or the sums of the gradients and of the Hessians, left of each edge of cells.
    all_x, all_y : int
        The same over all samples that have a value.
    above, below : ndarray of int64
        How far x inside each cell may be above its value at the left edge, and below it.
    left_x, left_y, right_x, right_y : ndarray of float64
        The largest errors of the sums left and right of each edge.
    is_exact : bool
        Whether all sums are exact.
    """

    direction: int
    x: Integers
    y: Integers
    all_x: int
    all_y: int
    above: Integers
    below: Integers
    left_x: Floats
    left_y: Floats
    right_x: Floats
    right_y: Floats
    is_exact: bool


@inner("boolean(LimitedSegment, int64, HalfPlane)")
def _may_be_allowed_inside(sums, i, half):  # type: ignore[no-untyped-def]
    """Whether a cut inside cell `i` may be allowed: the corner nearest to the line tells."""
    low, high = sums.x[i] - sums.below[i], sums.x[i] + sums.above[i]
    few, many = sums.y[i], max(sums.y[i], sums.y[i + 1])
    x, y = low if half.sign > 0 else high, many if half.sign * half.slope > 0.0 else few
    left = float(max(abs(low), abs(high)))
    right = float(max(abs(sums.all_x - low), abs(sums.all_x - high)))
    most = Sizes(left, abs(float(many)), right, abs(float(sums.all_y - few)))
    error = Sizes(sums.left_x[i + 1], sums.left_y[i + 1], sums.right_x[i], sums.right_y[i])
    return distance(half, float(x), float(y)) <= slack_of(half, most, error)


@inner("boolean(LimitedSegment, int64, HalfPlane)")
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


@inner("boolean(LimitedSegment, int64, Rules, boolean)")
def _is_allowed(sums, i, rules, is_newton):  # type: ignore[no-untyped-def]
    """Whether the cut at edge `i` is allowed, given exact sums."""
    x, y = sums.x[i], sums.y[i]
    rest_x, rest_y = sums.all_x - x, sums.all_y - y
    if is_newton:
        left, right = newton_step(x, y, rules.l2), newton_step(rest_x, rest_y, rules.l2)
    else:
        left, right = odds(x, y, rules.smoothing), odds(rest_x, rest_y, rules.smoothing)
    return are_in_order(sums.direction, left, right)


@inner("void(LimitedSegment, HalfPlane, Rules, boolean, float64[::1], float64[::1])")
def limit(sums, half, rules, is_newton, at_edge, bound):  # type: ignore[no-untyped-def]
    """Limit a segment to the cuts that are allowed.

    Parameters
    ----------
    sums : LimitedSegment
    half : HalfPlane
    rules : Rules
    is_newton : bool
        Whether votes are Newton's, or real ones.
    at_edge : ndarray of float64
        The score at each edge; replaced.
    bound : ndarray of float64
        For each cell; replaced.
    """
    for i in range(len(bound)):
        if not _may_be_allowed_inside(sums, i, half):
            bound[i] = NO_SCORE
        if sums.is_exact:
            if not _is_allowed(sums, i + 1, rules, is_newton):
                at_edge[i + 1] = NO_SCORE
        else:
            if not _may_be_allowed(sums, i + 1, half):
                at_edge[i + 1] = NO_SCORE
            bound[i] = max(bound[i], at_edge[i + 1])
