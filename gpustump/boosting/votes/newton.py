"""Newton votes under the logistic loss: LogitBoost, for two classes and for several.

A region votes learning_rate / 2 * A / (B + lambda), where A and B are the sums of the two terms of
`engines.reference.logistic_loss` or `softmax_loss`: a Newton step of the loss, halved because the
log-odds are twice the score [Friedman, Hastie and Tibshirani 2000, sections 4.3 and 5]. Lambda
shrinks the votes of regions with little weight, as in XGBoost [Chen and Guestrin 2016]. It is on
the scale of the sample weights: a sample of weight 1 and probability 1/2 adds 1/4 to B.

Under the squared loss of a quantity (L2Boost) it votes learning_rate * A / (B + lambda), where A is
the sum of the weighted residuals in the region and B that of the weights: the mean residual, shrunk
[Friedman 2001, section 4.1; Buehlmann and Yu 2003]. Boosting then starts from the mean of the
targets.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import (
    EXACT,
    DoubtError,
    certain_power,
    exponential,
    exponentials,
    newton_vote,
    vote_of,
)
from gpustump.boosting.votes.splits import SplitVotes, together
from gpustump.boosting.votes.votes import Change, Taken
from gpustump.data.parameters import QuantityLoss
from gpustump.engines.batched_rounds import (
    CLASSES,
    GAMMA,
    NEWTON,
    NEWTON_DOUBT,
    POISSON,
    QUANTILE,
    SQUARED,
    VoteRule,
)
from gpustump.engines.contract import RegionFactors, RegionSums, RegionVotes, Step, Totals
from gpustump.engines.integer_weights import IntegerWeights, in_units
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import FIRST
from gpustump.learners.step_table import VOTE_UNIT

LARGEST_STEP = 4
"""Bound on A / (B + lambda). If all samples of a region are far on the wrong side, B is close to 0,
and a Newton step would leave the range in which the loss is nearly quadratic [Friedman, Hastie and
Tibshirani 2000, section 4.4, bound the same quantity by 2 to 4]."""

_LARGEST_EXPONENT = 690.0
"""Bound of the exponent of a factor, so that the factor is a float64 number: exp(690) is about
2**995. (Odds stay within 2**-900 and 2**900 in any case.)"""

_LARGEST_L2 = 2.0**1000

_TARGETS = {
    None: CLASSES, "squared_error": SQUARED, "quantile": QUANTILE, "poisson": POISSON,
    "gamma": GAMMA,
}  # fmt: skip


@dataclass(frozen=True)
class NewtonVotes(SplitVotes):
    """Newton votes for classes.

    Attributes
    ----------
    l2 : float
        Lambda, in units of the integers.
    exponent : int
        Integers are sample weights times 2**exponent; see `unit_exponent`.
    quantity : str or None
        The loss of a quantity; None for classes.
    """

    l2: float = 0.0
    exponent: int = 0
    quantity: QuantityLoss | None = None

    kind = "newton"
    largest_step: ClassVar[float] = LARGEST_STEP
    step: ClassVar[float] = 0.5
    """A region votes the learning rate times this times A / (B + lambda)."""
    n_hessians: ClassVar[int] = 1
    """How many times the Hessian B is; lambda counts as often."""

    @property
    def _rate(self) -> float:
        return self.step * self.learning_rate

    @property
    def _lambda(self) -> float:
        return self.n_hessians * self.l2

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds in batches."""
        scale, target = self._rate / VOTE_UNIT, _TARGETS[self.quantity]
        return VoteRule(NEWTON, scale, NEWTON_DOUBT, self._lambda, float(self.largest_step), target)

    @property
    def largest_size(self) -> float:
        """A vote is at most 2 learning rates: half of `LARGEST_STEP`, a residual (targets lie
        between -1 and 1), or a vote under Poisson and gamma loss. Left and right are apart by
        twice as much."""
        return 4 * self.learning_rate + VOTE_UNIT

    @functools.cached_property
    def _objective(self) -> Objective:
        return Objective.of(
            self.kind, self.n_outputs, self.quantity, l2=self._lambda, monotone=self.monotone
        )

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The scores that give every sample the classes' shares of the weight."""
        with arrays.computing_on(labels):
            weights = IntegerWeights.of(sample_weight)
            if self.n_outputs == 1:
                positive = weights.weight_of(labels > 0)
                return self.constant_of([weights.total - positive, positive])
            return self.constant_of([weights.weight_of(labels == n) for n in range(self.n_outputs)])

    def constant_of(self, class_weights: Sequence[int]) -> tuple[float, ...]:
        """The same from the integer weight of each class; with one output of the labels -1, +1."""
        total = sum(class_weights)
        if self.n_outputs == 1:
            return (vote_of(max(class_weights[0], 1), total, 1.0),)
        # vote_of(total, total + own, 1.0) is ln(own / total) / 2.
        return tuple(vote_of(total, total + max(own, 1), 1.0) for own in class_weights)

    def votes_of(self, sums: RegionSums, totals: Totals) -> RegionVotes:
        """The votes of each region, for each output."""
        return tuple(tuple(self._vote(*one) for one in own) for own in sums)

    def whole(self) -> Self:
        """These votes at a learning rate of 1, and not regularized."""
        return replace(self, learning_rate=1.0, l2=0.0)

    def constant_beside(self, sums: RegionSums) -> tuple[float, ...]:
        """What is added to known scores before the first round, from the sums of all samples."""
        whole = self.whole()
        return tuple(whole._vote(*own) for own in together(sums)[FIRST])

    def change(self, taken: Taken) -> Change:
        """What the votes do to the samples."""
        votes = taken.region_votes
        return Change(Step(taken.hypothesis, votes, self.factors(votes), cut=taken.cut), 1.0)

    def factors(self, votes: RegionVotes) -> RegionFactors:
        """With one output of the odds: exp(2 v) for the label -1 and exp(-2 v) for the label +1.
        Otherwise of the probabilities: exp(2 v) over the largest one of its region, as a common
        factor cancels in them."""
        if self.n_outputs == 1:
            return tuple((factors_of(2.0 * vote),) for (vote,) in votes)
        found = []
        for own in votes:
            largest = max(own)
            factors = (factors_of(2.0 * (vote - largest))[0] for vote in own)
            found.append(tuple((factor, factor) for factor in factors))
        return tuple(found)

    def recorded(self, score: float, weight: int) -> float:
        """The score in units of the sample weights; infinite if it is beyond float64.

        `ldexp` is used because the power of two alone may be beyond float64.
        """
        try:
            return math.ldexp(score, -self.exponent)
        except OverflowError:
            return math.inf

    def _vote(self, gradient: int, hessian: int) -> float:
        """The multiple of `VOTE_UNIT` nearest to what a region votes."""
        return newton_vote(gradient, hessian, self._lambda, self._rate, self.largest_step)


def factors_of(exponent: float) -> tuple[float, float]:
    """exp(exponent) and exp(-exponent), bounded so that both are float64 numbers."""
    try:
        grown, shrunk = exponentials(exponent)
        return certain_power(grown, 0), certain_power(shrunk, 0)
    except DoubtError:
        return exact_factors_of(exponent)


def exact_factors_of(exponent: float) -> tuple[float, float]:
    """What `factors_of` returns, computed with 50 digits."""
    bounded = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, exponent))
    with decimal.localcontext(EXACT):
        return float(exponential(bounded)), float(exponential(-bounded))


def l2_in_units(l2_regularization: float, exponent: int) -> float:
    """Lambda on the scale of sample weights in units of the integers, which are sample weights
    times 2**exponent."""
    try:
        return min(math.ldexp(l2_regularization, exponent), _LARGEST_L2)
    except OverflowError:
        return _LARGEST_L2


def exact_totals(sample_weight: Array, n_copies: int, *factors: Array) -> list[int]:
    """The sums of the weights times each of some factors, and that of the weights, all (n_samples,)
    of float64: in units of `in_units`, each product rounded."""
    with arrays.computing_on(sample_weight):
        xp, units = arrays.namespace_of(sample_weight), in_units(sample_weight, n_copies)
        parts = [*(xp.round(units * own) for own in factors), units]
        return arrays.integers(xp.stack([xp.sum(xp.astype(part, xp.int64)) for part in parts]))


@dataclass(frozen=True)
class SquaredVotes(NewtonVotes):
    """Newton votes of the squared loss."""

    quantity: QuantityLoss | None = "squared_error"

    largest_step, step = math.inf, 1.0

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The weighted mean of the targets."""
        total, weight = exact_totals(sample_weight, self.objective().n_copies, labels)
        return (newton_vote(total, weight, 0.0, 1.0),)

    @staticmethod
    def variance(targets: Array, sample_weight: Array) -> float:
        """The weighted mean squared distance of targets from their mean, the same everywhere."""
        n_copies = SquaredVotes().objective().n_copies
        with arrays.computing_on(targets):
            given = targets, targets * targets
            total, squares, weight = exact_totals(sample_weight, n_copies, *given)
        return max(0.0, float((squares - Fraction(total * total, weight)) / weight))

    def factors(self, votes: RegionVotes) -> RegionFactors:
        """None: residuals lose the votes."""
        return ()
