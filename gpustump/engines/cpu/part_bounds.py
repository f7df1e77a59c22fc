"""What a bound is made of: how far sums may be from an edge, and the most that a region may add.

If no sum is off, what a region adds is what `split_scores` defines.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.cpu.compiling import kernel

NO_SCORE = -np.inf
"""Less than every score of real and Newton votes."""

OUTWARDS = 2.0**-40
"""By what share a bound is widened. It takes fewer than 100 roundings of 2**-53 for each output."""


@kernel("int64(float64, int64)")
def rounded_up(share, whole):  # type: ignore[no-untyped-def]
    """At least a share, up to 1, of a whole number; at most the number."""
    return min(whole, np.int64(share * float(whole) * (1.0 + OUTWARDS)) + 1)


@kernel("UniTuple(int64, 2)(float64, float64, int64, int64)")
def reach(by_positive, by_negative, positive, negative):  # type: ignore[no-untyped-def]
    """How far above its value at a unit's left edge the signed sum may be, and how far below.

    The corners of the band are, with the share of the positive sum ahead, (p, 0) and (positive, n),
    and with that of the negative sum ahead (0, n) and (p, negative).
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


@kernel("float64(int64, int64, float64, float64)")
def least_root(positive, negative, positive_off, negative_off):  # type: ignore[no-untyped-def]
    """The least that sqrt(P * N) may be; if no sum is off, what `split_scores.root` says."""
    p, n = float(positive) - positive_off, float(negative) - negative_off
    return math.sqrt((p if p > 0.0 else 0.0) * (n if n > 0.0 else 0.0))


@kernel("float64(int64, int64, float64, float64, float64)")
def most_gain(a, b, a_off, b_off, l2):  # type: ignore[no-untyped-def]
    """The most that a region's part may be; if no sum is off, what `split_scores.gain` says."""
    x = float(abs(a)) + a_off
    return (x * x) / max(float(b) - b_off + l2, 1.0)
