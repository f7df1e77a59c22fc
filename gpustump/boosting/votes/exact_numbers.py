"""Logarithms and exponentials of votes: the same digits everywhere.

A vote is a whole multiple of `VOTE_UNIT`. So sums of votes are exact in float64, whatever their
order: the score summed round by round, or feature by feature from tables, on any device, is the
same number. What follows from a vote (the next weights, the normaliser, the bound on the training
error) follows from the rounded one, so the theorems hold for the model as it is.

C libraries give exponentials and logarithms with different last digits; decimal arithmetic gives
the same digits everywhere. So exponentials are computed in decimal arithmetic, or in whole numbers
of fewer digits if these decide the result (`quick_exponentials`). Logarithms are computed by the C
library, and in decimal arithmetic if the last digits could decide the vote.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

from gpustump.engines.ahead import NEWTON_DOUBT
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


def nearest_vote(exactly: Fraction) -> float:
    """The nearest multiple of `VOTE_UNIT`; infinite if it is beyond `VOTES_LIMIT`."""
    if abs(exactly) > VOTES_LIMIT:
        return math.inf if exactly > 0 else -math.inf
    return round(exactly / Fraction(VOTE_UNIT)) * VOTE_UNIT


def newton_vote(first: int, second: int, l2: float, rate: float, most: float = math.inf) -> float:
    """The multiple of `VOTE_UNIT` nearest to rate * A / (B + lambda); 0 in an empty region.

    The quotient is bounded by -most and most. It is computed in float64, with five roundings, and
    with fractions if that leaves a doubt which multiple is nearest.

    Parameters
    ----------
    first, second : int
        A and B, a region's sums of first and of second integers.
    l2 : float
        Lambda, in units of the integers.
    rate, most : float
    """
    if second == 0:
        return 0.0
    units = max(-most, min(most, first / (second + l2))) * (rate / VOTE_UNIT)
    if abs(units) < 2.0**40:
        nearest = round(units)
        if abs(units - nearest) + abs(units) * NEWTON_DOUBT < 0.5:
            return nearest * VOTE_UNIT
    return exact_newton_vote(first, second, l2, rate, most)


def exact_newton_vote(first: int, second: int, l2: float, rate: float, most: float) -> float:
    """The vote of `newton_vote` in a region that is not empty, computed with fractions."""
    step = first / (second + Fraction(l2))
    if math.isfinite(most):
        step = max(Fraction(-most), min(Fraction(most), step))
    return nearest_vote(Fraction(rate) * step)


def exponential(x: float) -> Decimal:
    """exp(x) to 50 digits, within a `decimal.localcontext(EXACT)`."""
    return Decimal(x).exp()
