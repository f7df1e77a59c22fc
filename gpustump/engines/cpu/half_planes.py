"""Bounds for the cuts inside a unit where a monotone constraint allows only some of them.

With real votes the levels of left and right are in order where (P + s) / (N + s) of the left side
is not above that of the right side. Multiplied out, the products of left and right sums cancel, and
what remains is linear in the sums (p, n) on the left: with P and N over all that is present,

    (p + s) - r (n + s) <= 0,    r = (P + 2s) / (N + 2s)

for the constraint 1, and >= 0 for -1. With Newton votes and lambda l it is likewise

    a - r (b + l) <= 0,          r = A / (B + 2l).

So the allowed cuts lie on one side of a line, and those inside a unit in the part of its rectangle,
or band, that lies there. A convex function is largest at a corner of that part: at a corner of the
band that is allowed, or where the line crosses an edge. There it is at most what lies between the
values at the edge's ends, in the same proportion.

Levels are rounded, and sums may be estimates. So the line is moved outwards: by far more than the
roundings, and by what the estimates may be off. Where sums are estimates, an edge that the line
crosses counts with both its ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import group, kernel
from gpustump.engines.cpu.part_bounds import NO_SCORE, OUTWARDS

_ROUNDINGS = 2.0**-44
"""By what share the line is moved: levels and distances take fewer than 20 roundings of 2**-53."""


@group
class HalfPlane(NamedTuple):
    """The allowed side of a line, in the plane of two sums x and y left of a cut.

    A cut at a distance of sign * ((x + shift_x) - slope * (y + shift_y)) is forbidden if that is
    above the slack.

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
    """Numbers for the two sums on either side of a cut: how large they are, or how far off."""

    left_x: float
    left_y: float
    right_x: float
    right_y: float


@kernel("HalfPlane(int64, int64, int64, float64)")
def half_plane_of_odds(sign, positive, negative, smoothing):  # type: ignore[no-untyped-def]
    """For real votes, by the sums over what is present."""
    # An estimate below 0 tells nothing: then nothing is ruled out.
    size = float(positive) + 2.0 * smoothing if min(positive, negative) >= 0 else np.inf
    height = float(max(negative, 0)) + 2.0 * smoothing
    slope = (float(positive) + 2.0 * smoothing) / height
    return HalfPlane(sign, smoothing, smoothing, slope, size, height)


@kernel("HalfPlane(int64, int64, int64, int64, float64)")
def half_plane_of_steps(sign, first, sizes, second, l2):  # type: ignore[no-untyped-def]
    """For Newton votes; `sizes` is the sum of the first integers without their signs."""
    size = float(sizes) if min(sizes, second) >= 0 else np.inf
    height = max(float(second) + 2.0 * l2, 1.0)
    return HalfPlane(sign, 0.0, l2, float(first) / height, size, height)


@kernel("float64(HalfPlane, float64, float64)")
def distance(half, x, y):  # type: ignore[no-untyped-def]
    """How far beyond the line a cut with these sums on the left lies; below 0 it is allowed."""
    return half.sign * ((x + half.shift_x) - half.slope * (y + half.shift_y))


@kernel("float64(HalfPlane, Sizes, Sizes)")
def slack_of(half, sums, off):  # type: ignore[no-untyped-def]
    """Up to which distance a cut may be allowed, by how large and how far off its sums may be.

    The order of the levels is that of the products x_left * y_right and x_right * y_left, shifts
    included. Each product changes by its factors times what the other one is off, and by both offs.
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
    """The most that a convex function may be in the allowed part of a polygon.

    Parameters
    ----------
    value, beyond : ndarray of float64
        At the polygon's corners, one after the other: the function, and the distance.
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
