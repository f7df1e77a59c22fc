"""The terms of a bound: how far sums may be from those at an edge, and the most a region may add.

For exact sums, what a region adds to the score is what `split_scores` defines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner

NO_SCORE = -np.inf
"""Less than every score of real and Newton votes."""

OUTWARDS = 2.0**-40
"""By what share a bound is widened. Its computation has fewer than 100 roundings of 2**-53 for each
output."""


@inner("int64(float64, int64)")
def rounded_up(share, whole):  # type: ignore[no-untyped-def]
    """A whole number not below share * whole, and not above `whole`; share is at most 1."""
    return min(whole, np.int64(share * float(whole) * (1.0 + OUTWARDS)) + 1)


@inner("UniTuple(int64, 2)(float64, float64, int64, int64)")
def reach(by_positive, by_negative, positive, negative):  # type: ignore[no-untyped-def]
    """How far the signed sum inside a cell may be above its value at the left edge, and below it.

    The corners of the band, by how much the positive and the negative sum have grown, are (p, 0)
    and (positive, n) where the positive share is ahead, (0, n) and (p, negative) where the negative
    one is.
    """
    up = max(
        rounded_up(by_positive, positive),
        positive - negative + rounded_up(by_positive, negative),
    )
    down = max(
        rounded_up(by_negative, negative),
        negative - positive + rounded_up(by_negative, positive),
    )
    return up, down


@inner("float64(int64, int64, float64, float64)")
def least_root(positive, negative, positive_error, negative_error):  # type: ignore[no-untyped-def]
    """The least that sqrt(P * N) may be; for exact sums the result of `split_scores.root`."""
    p, n = float(positive) - positive_error, float(negative) - negative_error
    return math.sqrt((p if p > 0.0 else 0.0) * (n if n > 0.0 else 0.0))


@inner("float64(int64, int64, float64, float64, float64)")
def most_gain(a, b, a_error, b_error, l2):  # type: ignore[no-untyped-def]
    """The most that a region may gain; for exact sums the result of `split_scores.gain`."""
    x = float(abs(a)) + a_error
    return (x * x) / max(float(b) - b_error + l2, 1.0)


@group
class EdgeSums(NamedTuple):
    """An output's sums at the edges of the cells of a segment.

    Attributes
    ----------
    x, y : ndarray (n_cells + 1,) of int64
        Left of each edge: the sums of positive and of negative samples, or for Newton votes those
        of the gradients and of the Hessians.
    all_x, all_y : int
        The same over all samples that have a value.
    left_x, left_y, right_x, right_y : ndarray (n_cells + 1,) of float64
        The largest errors of the sums left and right of each edge.
    """

    x: Integers
    y: Integers
    all_x: int
    all_y: int
    left_x: Floats
    left_y: Floats
    right_x: Floats
    right_y: Floats


@inner("float64(EdgeSums, int64, int64, int64)")
def roots_inside(edges, i, p, n):  # type: ignore[no-untyped-def]
    """Real votes: the least that a cut inside cell `i` adds to Z / 2, without missing values."""
    left = least_root(p, n, edges.left_x[i + 1], edges.left_y[i + 1])
    return left + least_root(edges.all_x - p, edges.all_y - n, edges.right_x[i], edges.right_y[i])


@inner("float64(EdgeSums, int64, int64, int64, float64)")
def gains_inside(edges, i, a, b, l2):  # type: ignore[no-untyped-def]
    """Newton votes: the most that a cut inside cell `i` gains, without missing values.

    What is left for the other side is computed from integers: as floats, large sums would cancel.
    """
    left = most_gain(a, b, edges.left_x[i + 1], edges.left_y[i + 1], l2)
    return left + most_gain(
        edges.all_x - a, edges.all_y - b, edges.right_x[i], edges.right_y[i], l2
    )
