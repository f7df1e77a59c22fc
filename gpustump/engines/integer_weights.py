"""Sample weights, and the signed integers that the scan adds up instead of them.

A floating-point sum depends on the order of its terms, an integer sum does not. So every round's
weights are rounded up to integers, and every sum in the search is a sum of those: the same on any
library, device, block size and number of threads. They are rounded up so that every sample counts
at least 1: however far apart the weights are, only a stump that gets every sample right has an
integer error of 0.

The weights themselves are float64, in units of these integers, so rounding is the whole conversion.
Between rounds each weight is multiplied once, by a factor that the host computes from the integers
of the round before. A power of two in all factors keeps the sum of the integers just under 2**62.
Nothing depends on the order of a floating-point sum, because there is none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gpustump import arrays
from gpustump.arrays import Array

TOP = 2**62
"""Bound of the sum of the integers' absolute values: twice a partial sum still fits into int64."""

FLOOR = 2.0**-900
"""The smallest weight, in units of the integers; its integer is 1 in any case. XLA flushes
subnormal numbers to zero, so a smaller weight would vanish there and nowhere else."""

LEAST_PRODUCT = 2.0**-1000
"""The smallest product of a probability and a factor, before all of a sample are divided by their
sum: a normal number, far below `FLOOR`. The largest product of a sample is at least `FLOOR`, since
the largest factor of its region is 1."""

NEAR_A_POWER = 2.0**-48
"""More than the relative error of `rescale_if_certain`, with that of the bound it is given."""

LEAST_RESCALE = 1 - TOP.bit_length()
"""Weights that small all count as one unit."""


def in_units(sample_weight: Array, n_copies: int = 1) -> Array:
    """Positive float64 weights (n_samples,) as whole numbers whose sum is just below 2**62.

    If each weight counts `n_copies` times, the sum of all copies is.
    """
    return scaled(sample_weight, unit_exponent(sample_weight, n_copies))


def scaled(sample_weight: Array, exponent: int) -> Array:
    """Weights times 2**exponent, rounded up to whole numbers of at least 1, still in float64."""
    xp = arrays.namespace_of(sample_weight)
    half = exponent // 2  # in two steps, since 2**exponent alone may not be a float
    found = xp.ceil(sample_weight * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half))
    return xp.maximum(found, xp.ones_like(found))  # a subnormal product may be flushed to zero


def unit_exponent(sample_weight: Array, n_copies: int = 1) -> int:
    """The e of `in_units`, whose results are the weights times 2**e, rounded up.

    The unit is a power of two, found in two steps. The largest weight and the number of samples
    give a safe unit; the exact sum of the integers in that unit tells how many bits are still free.
    (With the first step alone, one heavy sample among 10**8 would leave 15 bits to the others.)
    Boosting starts from the rounded weights, so the bound on the training error holds for the error
    that is counted in them.
    """
    n_integers = sample_weight.shape[0] * n_copies
    safe = safe_exponent(float(arrays.namespace_of(sample_weight).max(sample_weight)), n_integers)
    return fitting_exponent(safe, scaled_total(sample_weight, safe) * n_copies, n_integers)


def safe_exponent(largest: float, n_integers: int) -> int:
    """The first step of `unit_exponent`, from the largest of `n_integers` weights."""
    return TOP.bit_length() - 2 - math.frexp(largest)[1] - n_integers.bit_length()


def scaled_total(sample_weight: Array, exponent: int) -> int:
    """The sum of the results of `scaled`; the sums of several pieces of a table may be added."""
    xp = arrays.namespace_of(sample_weight)
    return int(xp.sum(xp.astype(scaled(sample_weight, exponent), xp.int64)))


def fitting_exponent(safe: int, total: int, n_integers: int) -> int:
    """The second step of `unit_exponent`, from the sum of all integers with a safe exponent."""
    return safe - _rescale_exponent(total, 1, n_integers)


@dataclass(frozen=True)
class IntegerWeights:
    """Sample weights as integers and their sum, for weighted errors and other shares of the weight.

    Attributes
    ----------
    values : array (n_samples,) of int64
        Not negative.
    total : int
        The sum of the values.
    """

    values: Array
    total: int

    @classmethod
    def of(cls, sample_weight: Array) -> IntegerWeights:
        """From positive float64 weights (n_samples,), which `in_units` rounds."""
        with arrays.computing_on(sample_weight):
            xp = arrays.namespace_of(sample_weight)
            values = xp.astype(in_units(sample_weight), xp.int64)
            return cls(values, int(xp.sum(values)))

    def share(self, selected: Array) -> float:
        """The share of the total weight that the selected samples have.

        The weighted error of a model is this share for the samples that it misclassifies.

        Parameters
        ----------
        selected : array (n_samples,) of bool
            In the library and on the device of the values.

        Returns
        -------
        float
            In [0, 1]: a ratio of two integers, rounded once, so the same number on every device.
        """
        return self.weight_of(selected) / self.total

    def weight_of(self, selected: Array) -> int:
        """The integer weight of the selected samples; see `share`."""
        with arrays.computing_on(self.values):
            xp = arrays.namespace_of(self.values)
            return int(xp.sum(xp.where(selected, self.values, xp.zeros_like(self.values))))


def grown_factor(
    odds: Decimal, right_weight: int, wrong_weight: int, n_samples: int
) -> tuple[float, int]:
    """The factor by which a discrete vote multiplies the weights of misclassified samples.

    D_{t+1}(i) is proportional to D_t(i) * exp(-alpha_t * y_i * h_t(x_i)) [Freund and Schapire
    1997; COS 511, lecture 11]. Up to a common factor, that leaves the weights of correctly
    classified samples as they are and multiplies the others by exp(2 * alpha_t). The common factor
    is 2**-rescale_exponent.

    Parameters
    ----------
    odds : Decimal
        exp(2 * alpha_t), any positive number.
    right_weight, wrong_weight : int
        The integer weights that the round classified right and wrong.
    n_samples : int

    Returns
    -------
    factor : float
        exp(2 * alpha_t) * 2**-rescale_exponent; 1.0 if no weight is wrong.
    rescale_exponent : int
        0 if no weight is wrong.
    """
    if wrong_weight == 0:  # only a common factor would change
        return 1.0, 0
    growth, scale = odds.as_integer_ratio()
    # No weight is above its integer, and each product is within a factor 1 + 2**-52.
    bound = (right_weight * scale + growth * wrong_weight) * (2**52 + 1)
    rescale_exponent = _rescale_exponent(bound, scale << 52, n_samples)
    if rescale_exponent < 0:
        growth <<= -rescale_exponent
    else:
        scale <<= rescale_exponent
    return growth / scale, rescale_exponent  # dividing ints rounds once


def reweighted(weights: Array, factor: Array) -> Array:
    """The next round's weights (n_samples,): weight times factor, but at least `FLOOR`."""
    return arrays.namespace_of(weights).maximum(weights * factor, arrays.scalar(FLOOR, weights))


def rescale_exponent_of(bound: Fraction, n_integers: int) -> int:
    """The least k for which numbers that sum to `bound`, over 2**k, round up to a sum below 2**62.

    Parameters
    ----------
    bound : Fraction
        At least the exact sum of the numbers. The numbers may each be one rounding above it.
    n_integers : int
        How many there are.
    """
    return _rescale_exponent(bound.numerator * (2**52 + 1), bound.denominator << 52, n_integers)


def rescale_if_certain(bound: float, n_integers: int) -> int | None:
    """What `rescale_exponent_of` returns for every bound within 2**-50 of this one, relatively.

    None if the results for these bounds may differ.
    """
    fraction, rescale_exponent = math.frexp(bound / (TOP - 2 * n_integers))
    if not 0.5 + NEAR_A_POWER < fraction < 1.0 - NEAR_A_POWER:
        return None
    return max(rescale_exponent, LEAST_RESCALE)


def _rescale_exponent(bound: int, scale: int, n_samples: int) -> int:
    """The least k for which weights of sum bound / scale, over 2**k, round up to a sum below 2**62.

    It is never below `LEAST_RESCALE`.
    """
    limit = (TOP - 2 * n_samples) * scale  # rounding adds less than 1 to each, the floor far less
    rescale_exponent = max(bound.bit_length() - limit.bit_length() - 1, LEAST_RESCALE)
    while bound << max(0, -rescale_exponent) > limit << max(0, rescale_exponent):
        rescale_exponent += 1
    return rescale_exponent
