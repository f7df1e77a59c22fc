"""The quantile of the residuals in each region: the smallest one up to which is enough weight.

How much is enough is its *rank*, a share of the region's weight. The share, the *level*, is a
multiple of 2**-30, rounded down, so that 0.9 of ten equal samples is the ninth. The quantile is a
whole multiple of `VOTE_UNIT`, and does not depend on the order of the samples.

Arrays of any library are sorted. Compiled kernels need not sort: the residuals of a region are
divided into slices of equal width, and the slice that holds the quantile is divided again, until it
is one unit wide. The weights of the slices are sums, so the samples may be on many machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpustump import arrays
from gpustump.arrays import Array

LEVEL_BITS = 30

SLICE_BITS = 10
"""Residuals are divided into 2**10 slices at a time."""


def level_of(quantile: float) -> float:
    """The level for a number between 0 and 1."""
    return max(1, int(quantile * 2.0**LEVEL_BITS)) * 2.0**-LEVEL_BITS


def rank_of(level: float, weight: int) -> int:
    """The least whole number that is the share `level` of a weight, or more."""
    return -(-int(level * 2.0**LEVEL_BITS) * weight >> LEVEL_BITS)


def region_quantiles(
    values: Array, weights: Array, region: Array, ranks: Sequence[int]
) -> list[float]:
    """The quantile of the values in each region; 0.0 where the rank is 0.

    Parameters
    ----------
    values : array (n_samples,) of float64
    weights : array (n_samples,) of int64
        Positive.
    region : array (n_samples,) of int64
    ranks : sequence (n_regions,) of int
        At most the weight of the region.
    """
    xp, found = arrays.namespace_of(values), []
    order = xp.argsort(values)
    values, weights, region = (xp.take(own, order, axis=0) for own in (values, weights, region))
    for number, rank in enumerate(ranks):
        upto = xp.cumulative_sum(xp.where(region == number, weights, xp.zeros_like(weights)))
        place = int(xp.sum(xp.astype(upto < rank, xp.int64)))
        found.append(float(values[place]) if rank else 0.0)
    return found
