"""AdaBoost's discrete votes: one number a round, from two Python integers.

A region votes +alpha or -alpha, and alpha follows from the weight that the hypothesis gets right
and the weight that it gets wrong [Freund and Schapire 1997; COS 511, lecture 11]. A vote is a whole
multiple of `VOTE_UNIT`. So sums of votes are exact in float64, whatever their order: the score
summed round by round, or feature by feature from tables, on any device, is the same number. What
follows from a vote (the next weights, the normaliser, the bound on the training error) follows from
the rounded one, so AdaBoost's theorems hold for the model as it is.

Exponentials are taken in decimal arithmetic, which gives the same digits everywhere; the C
library's would not. So are logarithms, where the last digits of the C library's could decide the
vote.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal

from gpustump.boosting.votes import Change, Round, SoFar, Taken
from gpustump.engines.contract import State, discrete_step
from gpustump.engines.integer_weights import grown_factor
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

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


@dataclass(frozen=True)
class DiscreteVotes:
    """Discrete votes; see `boosting.votes.Votes`.

    Attributes
    ----------
    learning_rate : float
        Shrinks every vote; above 0.
    """

    learning_rate: float = 1.0

    def vote(self, agreement: int, state: State) -> float:
        """alpha of a hypothesis with this agreement; 0 if it is not better than chance."""
        totals = state.totals
        wrong = totals.wrong(agreement)
        if wrong:
            return vote_of(wrong, totals.weight, self.learning_rate)
        return vote_of(state.smallest_weight(), 2 * totals.weight, self.learning_rate)

    def why_no_vote(self, agreement: int, state: State) -> str:
        """Whether there is no edge at all, or only one whose vote rounds to 0."""
        totals = state.totals
        wrong = totals.wrong(agreement)
        has_edge = wrong == 0 or vote_of(wrong, totals.weight, 1.0) != 0.0
        return "small vote" if has_edge else "no edge"

    def change(self, taken: Taken) -> Change:
        """The factors of right and wrong samples, and the normaliser."""
        totals = taken.totals
        wrong = totals.wrong(taken.agreement)
        odds, normaliser = odds_and_normaliser(wrong, totals.weight, taken.vote)
        grown, halvings = grown_factor(odds, totals.weight - wrong, wrong, totals.n_samples)
        step = discrete_step(taken.hypothesis, taken.vote, grown, halvings, taken.cut)
        return Change(step, normaliser)

    def record(self, taken: Taken, change: Change, so_far: SoFar) -> Round:
        """Error, edge and vote, and the bound on the training error."""
        totals = taken.totals
        return Round(
            number=so_far.number,
            stump=taken.hypothesis,
            error=totals.wrong(taken.agreement) / totals.weight,
            edge=taken.agreement / (2 * totals.weight),
            vote=taken.vote,
            normaliser=change.normaliser,
            training_error=so_far.totals.training_error,
            training_bound=so_far.bound,
        )


def vote_of(wrong: int, total: int, learning_rate: float) -> float:
    """The vote of a stump that gets `wrong` of `total` wrong, and not 0: see `Round`.

    A multiple of `VOTE_UNIT`; infinite if it is beyond `VOTES_LIMIT`. The C library's logarithm
    will do where it leaves no doubt which multiple is nearest; else decimal arithmetic decides.
    """
    scale = learning_rate / (2 * VOTE_UNIT)
    log_odds = math.log((total - wrong) / wrong) if total > wrong else -math.inf
    units = log_odds * scale
    if abs(units) < 2.0**40:
        doubt = (1.0 + abs(log_odds)) * scale * _LOG_ERROR
        nearest = round(units)
        if abs(units - nearest) + doubt < 0.5:
            return nearest * VOTE_UNIT
    with decimal.localcontext(_EXACT):
        exactly = (Decimal(total - wrong) / Decimal(wrong)).ln() / 2
        exactly = exactly * Decimal(learning_rate) / Decimal(VOTE_UNIT)
        if abs(exactly) > VOTES_LIMIT / VOTE_UNIT:
            return math.inf
        return int(exactly.to_integral_value()) * VOTE_UNIT


def odds_and_normaliser(wrong: int, total: int, vote: float) -> tuple[Decimal, float]:
    """exp(2 * vote), and Z_t, the reweighted distribution's sum before it is normalised.

    See `Round` for Z_t.
    """
    with decimal.localcontext(_EXACT):
        growth = Decimal(vote).exp()
        normaliser = (wrong * growth + (total - wrong) / growth) / total
        return growth * growth, float(normaliser)
