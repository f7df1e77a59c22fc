"""What a round's stump is worth: its vote, and what follows from it, from two Python integers.

A vote is a whole multiple of `VOTE_UNIT`. So sums of votes are exact in float64, whatever their
order: the decision value summed round by round, or feature by feature from tables, on any device,
is the same number. What follows from a vote (the next weights, the normaliser, the bound on the
training error) follows from the rounded one, so AdaBoost's theorems hold for the model as it is.

Exponentials are taken in decimal arithmetic, which gives the same digits everywhere; the C
library's would not. So are logarithms, where the last digits of the C library's could decide the
vote.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

VOTE_UNIT = 2.0**-36
"""Votes of stumps are whole multiples of this, about 1.5e-11."""

VOTES_LIMIT = 2.0**17
"""Bound on the sum of absolute votes: below it, float64 holds every sum of votes exactly."""

_LOG_ERROR = 2.0**-46
"""More than a C library's logarithm, of a quotient rounded once, is ever off, relatively: 2**-52
is usual."""

_EXACT = decimal.Context(
    prec=50,
    rounding=decimal.ROUND_HALF_EVEN,
    Emax=10**9,
    Emin=-(10**9),
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""The arithmetic of votes, whatever the caller's own decimal context allows."""


def vote_of(wrong: int, mass: int, learning_rate: float) -> float:
    """The vote of a stump that gets `wrong` of `mass` wrong, and not 0: see `Round`.

    A multiple of `VOTE_UNIT`; infinite if it is beyond `VOTES_LIMIT`. The C library's logarithm
    will do where it leaves no doubt which multiple is nearest; else decimal arithmetic decides.
    """
    scale = learning_rate / (2 * VOTE_UNIT)
    log_odds = math.log((mass - wrong) / wrong) if mass > wrong else -math.inf
    units = log_odds * scale
    if abs(units) < 2.0**40:
        doubt = (1.0 + abs(log_odds)) * scale * _LOG_ERROR
        nearest = round(units)
        if abs(units - nearest) + doubt < 0.5:
            return nearest * VOTE_UNIT
    with decimal.localcontext(_EXACT):
        exactly = (Decimal(mass - wrong) / Decimal(wrong)).ln() / 2
        exactly = exactly * Decimal(learning_rate) / Decimal(VOTE_UNIT)
        if abs(exactly) > VOTES_LIMIT / VOTE_UNIT:
            return math.inf
        return int(exactly.to_integral_value()) * VOTE_UNIT


def odds_and_normaliser(wrong: int, mass: int, vote: float) -> tuple[Decimal, float]:
    """exp(2 * vote), and Z_t, the reweighted distribution's sum before it is normalised.

    See `Round` for Z_t.
    """
    with decimal.localcontext(_EXACT):
        growth = Decimal(vote).exp()
        normaliser = (wrong * growth + (mass - wrong) / growth) / mass
        return growth * growth, float(normaliser)
