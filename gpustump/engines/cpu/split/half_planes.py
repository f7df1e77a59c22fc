"""Bounds for the cuts inside a unit if a monotone constraint allows only some of them.

With real votes and the constraint 1, a cut is allowed if the level (p + s) / (n + s) of the left
side is not above that of the right side. Multiply this inequality out: the products of left and
right sums cancel, and what remains is linear in the sums (p, n) on the left. With P and N over all
samples that have a value,

    (p + s) - r (n + s) <= 0,    r = (P + 2s) / (N + 2s)

for the constraint 1, and >= 0 for -1. With Newton votes and lambda l it is

    a - r (b + l) <= 0,          r = A / (B + 2l).

So the allowed cuts lie on one side of a line, and those inside a unit in the allowed part of its
rectangle or band (see `unit_scores`). A convex function is largest at a corner of that part: at a
corner of the band that is allowed, or where the line crosses an edge of the band. There it is at
most the value interpolated between the edge's ends.

Levels are rounded, and sums may be estimates. So the line is moved outwards, by far more than the
roundings and by the largest error of the estimates. Where sums are estimates, the values at both
ends of an edge count if the line crosses it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import group, kernel
from gpustump.engines.cpu.split.part_bounds import NO_SCORE, OUTWARDS

_ROUNDINGS = 2.0**-44
"""By what share the line is moved: levels and distances have fewer than 20 roundings of 2**-53."""


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


@kernel("HalfPlane(int64, int64, int64, float64)")
def half_plane_of_odds(sign, positive, negative, smoothing):  # type: ignore[no-untyped-def]
    """For real votes, from the sums over all samples that have a value."""
    # If an estimate is below 0, no cut is ruled out.
    size = float(positive) + 2.0 * smoothing if min(positive, negative) >= 0 else np.inf
    height = float(max(negative, 0)) + 2.0 * smoothing
    slope = (float(positive) + 2.0 * smoothing) / height
    return HalfPlane(sign, smoothing, smoothing, slope, size, height)


@kernel("HalfPlane(int64, int64, int64, int64, float64)")
def half_plane_of_steps(sign, first, sizes, second, l2):  # type: ignore[no-untyped-def]
    """For Newton votes; `sizes` is the sum of the absolute values of the first integers."""
    size = float(sizes) if min(sizes, second) >= 0 else np.inf
    height = max(float(second) + 2.0 * l2, 1.0)
    return HalfPlane(sign, 0.0, l2, float(first) / height, size, height)


@kernel("float64(HalfPlane, float64, float64)")
def distance(half, x, y):  # type: ignore[no-untyped-def]
    """The distance of a cut with sums x and y on the left; 0 or less if it is allowed."""
    return half.sign * ((x + half.shift_x) - half.slope * (y + half.shift_y))


@kernel("float64(HalfPlane, Sizes, Sizes)")
def slack_of(half, sums, off):  # type: ignore[no-untyped-def]
    """Up to which distance a cut may be allowed, given the sizes and the errors of its sums.

    The levels are in the order of the products x_left * y_right and x_right * y_left, shifts
    included. The error of a product is at most each factor times the error of the other one, plus
    the product of both errors.
    """
    by_rounding = half.size * _ROUNDINGS
    if off.left_x + off.left_y + off.right_x + off.right_y == 0.0:
        return by_rounding
    if 2.0 * (off.left_y + off.right_y) >= half.height:
        return np.inf
    shift_x, shift_y = half.shift_x, half.shift_y
    one = (sums.left_x + shift_x) * off.right_y + (sums.right_y + shift_y) * off.left_x
    two = (sums.right_x + shift_x) * off.left_y + (sums.left_y + shift_y) * off.right_x
    both = off.left_x * off.right_y + off.right_x * off.left_y
    return by_rounding + ((one + two) + both) * (1.0 + OUTWARDS) / half.height


@kernel("float64(float64[::1], float64[::1], float64, boolean)")
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
