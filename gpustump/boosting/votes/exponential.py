"""Votes under the exponential loss: real votes, and discrete votes that several outputs share.

Both are confidence-rated AdaBoost [Schapire and Singer 1999]: a region r votes v_rl for output l,
weights change by exp(-y v), and the product of the normalisers Z bounds the training error. With
several outputs it is AdaBoost.MH (their section 7): a stump votes for every class. The discrete
form has a sign for each region and class, and one common alpha [Kegl 2013].
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from gpustump.boosting.votes.exact_numbers import (
    BITS,
    EXACT,
    LARGEST,
    DoubtError,
    Growth,
    certain_power,
    certain_quotient,
    certain_rescale,
    exponential,
    exponentials,
    vote_of,
)
from gpustump.boosting.votes.splits import SplitVotes, weighed
from gpustump.boosting.votes.votes import Change, Taken
from gpustump.engines.batched_rounds import DISCRETE, LOG_DOUBT, REAL, VoteRule
from gpustump.engines.contract import RegionSums, RegionVotes, Step, Totals, sign_of
from gpustump.engines.integer_weights import rescale_exponent_of
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.step_table import VOTE_UNIT


@dataclass(frozen=True)
class ExponentialVotes(SplitVotes):
    """What both kinds share."""

    number: ClassVar[int]

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds in batches."""
        return VoteRule(self.number, self.learning_rate / (2 * VOTE_UNIT), LOG_DOUBT)

    @property
    def largest_size(self) -> float:
        """With larger votes no round is made in batches."""
        return 2.0 * LARGEST

    def change(self, taken: Taken) -> Change:
        """Multiply weights by exp(-y v): a region's factors are exp(v) and exp(-v)."""
        factors, rescale_exponent, normaliser = growth_of(taken)
        step = Step(taken.hypothesis, taken.region_votes, factors, rescale_exponent, taken.cut)
        return Change(step, normaliser)

    def recorded(self, score: float, weight: int) -> float:
        """The score as a share of the weight."""
        return score * (1.0 / weight)

    def bound(self, product: float) -> float:
        """See `RegionRound.training_bound`."""
        return product if self.n_outputs == 1 else self.n_outputs / 2 * product


@dataclass(frozen=True)
class RealVotes(ExponentialVotes):
    """learning_rate / 2 * ln((P + s) / (N + s)) with s = total / (2 n K).

    P and N are the weights of a region's labels +1 and -1 for an output; s is the smoothing that
    keeps votes finite [Schapire and Singer 1999, sections 4.1 and 4.2], with the total weight of
    the n samples and K outputs.
    """

    kind, number = "real", REAL

    def votes_of(self, sums: RegionSums, totals: Totals) -> RegionVotes:
        """The votes of each region, for each output."""
        return tuple(
            tuple(self._vote(gradient, hessian, totals) for gradient, hessian in own)
            for own in sums
        )

    def is_perfect(self, taken: Taken) -> bool:
        """Whether every region holds one label only, for every output."""
        return all(abs(gradient) == hessian for own in weighed(taken) for gradient, hessian in own)

    def _vote(self, gradient: int, hessian: int, totals: Totals) -> float:
        if hessian == 0:  # an empty region
            return 0.0
        # Both sides times 2 n K: twice P is hessian + gradient.
        scale, smoothing = totals.n_samples * self.n_outputs, totals.weight
        positive = (hessian + gradient) * scale + smoothing
        negative = (hessian - gradient) * scale + smoothing
        return vote_of(negative, positive + negative, self.learning_rate)


@dataclass(frozen=True)
class SharedDiscreteVotes(ExponentialVotes):
    """+alpha or -alpha for each region and output, with one alpha a round."""

    kind, number = "discrete", DISCRETE

    def votes_of(self, sums: RegionSums, totals: Totals) -> RegionVotes:
        """The same alpha everywhere; the left and the right region have opposite signs."""
        wrong = totals.wrong(_agreed(sums))
        # Without an error, the same smoothing as that of real votes keeps alpha finite.
        share = (wrong, totals.weight) if wrong else (1, 2 * totals.n_samples * self.n_outputs)
        alpha = vote_of(*share, self.learning_rate)
        left = tuple(
            alpha * sign_of(first[0] - second[0])
            for first, second in zip(sums[FIRST], sums[SECOND], strict=True)
        )
        missing = tuple(
            alpha * sign_of(own[0] or sum(region[output][0] for region in sums))
            for output, own in enumerate(sums[MISSING])
        )
        return left, tuple(-vote for vote in left), missing

    def is_perfect(self, taken: Taken) -> bool:
        """Whether the signs get everything right.

        Pure regions do not suffice: left and right have opposite signs for every output, also for
        a class that neither of them holds.
        """
        sums = weighed(taken)
        return _agreed(sums) == sum(hessian for own in sums for _, hessian in own)


def _agreed(sums: RegionSums) -> int:
    """The weight that the best signs get right less the weight that they get wrong."""
    return sum(
        abs(first[0] - second[0]) + abs(missing[0])
        for first, second, missing in zip(*sums, strict=True)
    )


def growth_of(taken: Taken) -> Growth:
    """What votes do to the weights, by whole numbers if they decide the rounding.

    A region's factors are exp(v) and exp(-v) over 2**rescale_exponent, for each output. The
    normaliser is the sum over regions and outputs of P exp(-v) + N exp(v), over the total weight.
    """
    votes, totals = taken.region_votes, taken.totals
    try:
        growth, total = [[exponentials(vote) for vote in own] for own in votes], 0
        for own, pairs in zip(taken.sums, growth, strict=True):
            for (gradient, hessian), (grown, shrunk) in zip(own, pairs, strict=True):
                total += (hessian - gradient) // 2 * grown + (hessian + gradient) // 2 * shrunk
        rescale_exponent = certain_rescale(total, totals.n_samples * len(votes[FIRST]))
        normaliser = certain_quotient(total, totals.weight << BITS)
        factors = tuple(
            tuple(tuple(certain_power(x, rescale_exponent) for x in pair) for pair in own)
            for own in growth
        )
        return Growth(factors, rescale_exponent, normaliser)
    except DoubtError:
        return exact_growth_of(taken)


def exact_growth_of(taken: Taken) -> Growth:
    """What `growth_of` returns, computed with 50 digits."""
    with decimal.localcontext(EXACT):
        growth = [[exponential(vote) for vote in own] for own in taken.region_votes]
        total = Decimal(0)
        for own, grown in zip(taken.sums, growth, strict=True):
            for (gradient, hessian), by in zip(own, grown, strict=True):
                total += (hessian - gradient) // 2 * by + (hessian + gradient) // 2 / by
        n_integers = taken.totals.n_samples * len(growth[0])
        rescale_exponent = rescale_exponent_of(Fraction(total), n_integers)
        kept = Decimal(2) ** -rescale_exponent
        factors = tuple(tuple((float(by * kept), float(kept / by)) for by in own) for own in growth)
        return Growth(factors, rescale_exponent, float(total / taken.totals.weight))
