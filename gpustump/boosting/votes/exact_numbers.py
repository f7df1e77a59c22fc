"""Logarithms and exponentials of votes: the same digits everywhere.

A vote is a whole multiple of `VOTE_UNIT`. So sums of votes are exact in float64, whatever their
order: the score summed round by round, or feature by feature from tables, on any device, is the
same number. What follows from a vote (the next weights, the normaliser, the bound on the training
error) follows from the rounded one, so the theorems hold for the model as it is.

C libraries give exponentials and logarithms with different last digits; decimal arithmetic gives
the same digits everywhere. So exponentials are computed in decimal arithmetic, or in whole numbers
of fewer digits if these decide the result (`exponentials`). Logarithms are computed by the C
library, and in decimal arithmetic if the last digits could decide the vote.

What follows from the exponentials of a round's votes, the factors of the weights and the normaliser
Z, is defined as the float64 nearest to a number that is computed with 50 digits (`exponential`).
One such exponential takes about as long as the search of a small table. Here it is an integer in
units of 2**-112, with a relative error below 2**-75. If all numbers within such an error have the
same nearest float64, that one is the result. If they have two, which happens about once in 300 000
numbers, and for very large votes, `DoubtError` is raised, and the caller computes with 50 digits.

exp(x) is the product of exp(i) and exp(k/256), which are in tables, and of exp(t) with t below
1/256. 1 + t + t**2 / 2 is computed in whole numbers, the rest of exp(t) by a short series in
float64.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from gpustump.engines.batched_rounds import NEWTON_DOUBT
from gpustump.engines.integer_weights import rescale_if_certain
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

_LOG_ERROR = 2.0**-46
"""A bound on the relative error of a C library's logarithm of a quotient that was rounded once.
2**-52 is usual."""

EXACT = decimal.Context(
    prec=50,
    rounding=decimal.ROUND_HALF_EVEN,
    Emax=10**9,
    Emin=-(10**9),
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""The arithmetic of votes, whatever the caller's own decimal context allows."""


def vote_of(wrong: int, total: int, learning_rate: float) -> float:
    """learning_rate / 2 * ln((total - wrong) / wrong), for `wrong` above 0.

    A multiple of `VOTE_UNIT`; infinite if it is beyond `VOTES_LIMIT`. The C library's logarithm is
    used if it leaves no doubt which multiple is nearest; otherwise decimal arithmetic decides.
    """
    scale = learning_rate / (2 * VOTE_UNIT)
    log_odds = math.log((total - wrong) / wrong) if total > wrong else -math.inf
    units = log_odds * scale
    if abs(units) < 2.0**40:
        doubt = (1.0 + abs(log_odds)) * scale * _LOG_ERROR
        nearest = round(units)
        if abs(units - nearest) + doubt < 0.5:
            return nearest * VOTE_UNIT
    with decimal.localcontext(EXACT):
        exactly = (Decimal(total - wrong) / Decimal(wrong)).ln() / 2
        exactly = exactly * Decimal(learning_rate) / Decimal(VOTE_UNIT)
        if abs(exactly) > VOTES_LIMIT / VOTE_UNIT:
            return math.copysign(math.inf, exactly)
        return int(exactly.to_integral_value()) * VOTE_UNIT


def newton_vote(
    gradient: int, hessian: int, l2: float, rate: float, most: float = math.inf
) -> float:
    """The multiple of `VOTE_UNIT` nearest to rate * A / (B + lambda); 0 in an empty region.

    The quotient is bounded by -most and most. It is computed in float64, with five roundings, and
    with fractions if that leaves a doubt which multiple is nearest.

    Parameters
    ----------
    gradient, hessian : int
        A and B, a region's sums of gradients and of Hessians.
    l2 : float
        Lambda, in units of the integers.
    rate, most : float
    """
    if hessian == 0:
        return 0.0
    units = max(-most, min(most, gradient / (hessian + l2))) * (rate / VOTE_UNIT)
    if abs(units) < 2.0**40:
        nearest = round(units)
        if abs(units - nearest) + abs(units) * NEWTON_DOUBT < 0.5:
            return nearest * VOTE_UNIT
    return exact_newton_vote(gradient, hessian, l2, rate, most)


def exact_newton_vote(gradient: int, hessian: int, l2: float, rate: float, most: float) -> float:
    """The vote of `newton_vote` in a region that is not empty, computed with fractions."""
    step = gradient / (hessian + Fraction(l2))
    if math.isfinite(most):
        step = max(Fraction(-most), min(Fraction(most), step))
    exactly = Fraction(rate) * step
    if abs(exactly) > VOTES_LIMIT:
        return math.inf if exactly > 0 else -math.inf
    return round(exactly / Fraction(VOTE_UNIT)) * VOTE_UNIT


def exponential(x: float) -> Decimal:
    """exp(x) to 50 digits, within a `decimal.localcontext(EXACT)`."""
    return Decimal(x).exp()


BITS = 112
ONE = 1 << BITS
"""1.0 in the units of all integers here."""

LARGEST = 16
"""Bound of the numbers whose exponentials are computed here."""

_STEP_BITS = 28
"""1/256 is 2**28 units of votes."""

_DOUBT_BITS = 72
"""The relative error of all results here (exponentials, their squares, and sums of their products
with positive integers) is below 2**-72."""


class Growth(NamedTuple):
    """What votes do to the weights, which are then divided by 2**rescale_exponent; and the sum of
    the new weights before that, over the sum of the old ones."""

    factors: Any
    rescale_exponent: int
    normaliser: float


class DoubtError(ArithmeticError):
    """A result's last bit depends on digits that are not known here."""


def _powers(factor: Decimal, n: int) -> tuple[int, ...]:
    """1, the factor, its square, ...: n numbers, with relative errors below 2 * n * 2**-BITS."""
    first = int(factor * ONE)
    found = [ONE]
    for _ in range(n - 1):
        found.append(found[-1] * first >> BITS)
    return tuple(found)


with decimal.localcontext(EXACT):
    _WHOLE = _powers(Decimal(1).exp(), LARGEST + 1)
    _PARTS = _powers((Decimal(1) / 256).exp(), 256)

_ONE = float(ONE)
_SQUARE = ONE * ONE
_STEP = (1 << _STEP_BITS) - 1
_VOTE_UNIT = int(VOTE_UNIT * ONE)
_HALF_SQUARE = int(VOTE_UNIT**2 / 2 * ONE)


def exponentials(x: float) -> tuple[int, int]:
    """exp(x) and exp(-x) in units of 2**-BITS, each with a relative error below 2**-75.

    Raises
    ------
    DoubtError
        If x is beyond `LARGEST`, or no whole multiple of `VOTE_UNIT`.
    """
    if x == 0.0:
        return ONE, ONE
    if not -LARGEST <= x <= LARGEST:
        raise DoubtError
    in_units = abs(x) / VOTE_UNIT
    units = int(in_units)
    if units != in_units:
        raise DoubtError
    step, rest = units >> _STEP_BITS, units & _STEP
    t = rest * VOTE_UNIT
    # Below 2**-26, so its error is below 2**-77; the next term would be below 2**-79.
    series = (t * t * t) * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720 + t / 5040))))
    last = ONE + rest * (_VOTE_UNIT + rest * _HALF_SQUARE) + int(series * _ONE)
    grown = _WHOLE[step // len(_PARTS)] * _PARTS[step % len(_PARTS)] * last >> (2 * BITS)
    shrunk = _SQUARE // grown
    return (grown, shrunk) if x > 0.0 else (shrunk, grown)


def certain_power(exponential: int, rescale_exponent: int) -> float:
    """The float64 nearest to an exponential, in units of 2**-BITS, over 2**rescale_exponent.

    Raises
    ------
    DoubtError
        If two floats may be the nearest one.
    """
    found = certain_quotient(exponential, 1)
    return math.ldexp(found, -BITS - rescale_exponent)  # exact: far from the ends of float64


def certain_quotient(numerator: int, denominator: int) -> float:
    """The float64 nearest to a quotient whose numerator has a relative error below 2**-72.

    Raises
    ------
    DoubtError
        If two floats may be the nearest one.
    """
    doubt = numerator >> _DOUBT_BITS
    found = (numerator - doubt) / denominator  # dividing ints rounds once
    if found != (numerator + doubt) / denominator:
        raise DoubtError
    return found


def certain_rescale(total: int, n_integers: int) -> int:
    """`rescale_exponent_of` a sum in units of 2**-BITS with a relative error below 2**-72.

    Raises
    ------
    DoubtError
        If the error may decide the result.
    """
    rescale_exponent = rescale_if_certain(total / ONE, n_integers)
    if rescale_exponent is None:
        raise DoubtError
    return rescale_exponent
