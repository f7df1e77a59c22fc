"""The terms of a bound: how far sums may be from those at an edge, and the most a region may add.

For exact sums, what a region adds to the score is what `split_scores` defines.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner

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
