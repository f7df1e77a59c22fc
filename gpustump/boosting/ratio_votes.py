"""Newton votes under Poisson and gamma loss of a quantity that is not negative.

A region votes learning_rate * A / (B + lambda), where A is what is observed in it less what is
expected, and B the mean of both: see `engines.reference.ratio_loss`, whose second integers are
twice as large. Boosting starts from the logarithm of the mean target. Lambda is on the scale of the
sample weights, for Poisson loss times the targets.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.deviances import saturated
from gpustump.boosting.exact_numbers import newton_vote, vote_of
from gpustump.boosting.newton_votes import NewtonVotes, factors_of
from gpustump.boosting.votes import Change, Taken
from gpustump.engines.ahead import GAMMA, NEWTON, NEWTON_DOUBT, POISSON, VoteRule
from gpustump.engines.contract import QuantityLoss, RegionFactors, RegionVotes, Search
from gpustump.engines.integer_weights import TOP, in_units
from gpustump.learners.step_table import VOTE_UNIT


@dataclass(frozen=True)
class RatioVotes(NewtonVotes):
    """Newton votes of Poisson or gamma loss; see `split_votes.Rule`.

    Attributes
    ----------
    loss : "poisson" or "gamma"
    saturated : int
        Twice the least loss that the run's samples allow, negated, in units of the integers.
    """

    loss: QuantityLoss = "poisson"
    saturated: int = 0

    def on(self, labels: Array, sample_weight: Array) -> RatioVotes:
        """The votes of a run on these samples."""
        with arrays.computing_on(labels):
            xp = arrays.namespace_of(labels)
            units = in_units(sample_weight, self.search.n_copies)
            if not float(xp.sum(units * labels)) < TOP / 2**7:
                raise ValueError(
                    "y, with these weights or exposures, cannot be learnt exactly: of the samples "
                    "that are trained on, the mean of y is more than eight times that of all (of "
                    "the first fit, with warm_start=True). Make weights or exposures more alike."
                )
            return replace(self, saturated=saturated(labels, units, self.loss))

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds ahead."""
        target = POISSON if self.loss == "poisson" else GAMMA
        scale = 2 * self.learning_rate / VOTE_UNIT
        return VoteRule(NEWTON, scale, NEWTON_DOUBT, 2 * self.l2, math.inf, target)

    @property
    def largest_size(self) -> float:
        """See `split_votes.Rule`."""
        return 4 * self.learning_rate + VOTE_UNIT

    @functools.cached_property
    def search(self) -> Search:
        """The split of the largest gain."""
        return Search("stump", "newton", 1, 2 * self.l2, quantity=self.loss)

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The logarithm of the weighted mean target."""
        with arrays.computing_on(labels):
            xp = arrays.namespace_of(labels)
            units = in_units(sample_weight, self.search.n_copies)
            of_targets = xp.sum(xp.astype(xp.round(units * labels), xp.int64))
            of_weights = xp.sum(xp.astype(units, xp.int64))
            total, weight = arrays.integers(xp.stack([of_targets, of_weights]))
            return (vote_of(weight, weight + max(total, 1), 2.0),)  # ln(total / weight)

    def constant_of(self, class_weights: Sequence[int]) -> tuple[float, ...]:
        """There are no classes.

        Raises
        ------
        TypeError
        """
        raise TypeError("a quantity has no classes, so its mean does not follow from their weights")

    def change(self, taken: Taken) -> Change:
        """What the votes do to the samples.

        Raises
        ------
        ValueError
            If the amounts would become too large, which only known votes of other data can do.
        """
        found = super().change(taken)
        sign, which = (1, 0) if self.loss == "poisson" else (-1, 1)
        moving = [(second - sign * first) // 2 for ((first, second),) in taken.sums]
        factors = [own[which] for (own,) in found.step.factors]
        if sum(own * by for own, by in zip(moving, factors, strict=True)) > TOP / 4:
            raise ValueError(
                "these rounds do not fit the targets: they make the mean prediction hundreds of "
                "times as large as the targets are. Start from data like those of the rounds."
            )
        return found

    def factors(self, votes: RegionVotes) -> RegionFactors:
        """The factors of the amounts that move; 1 at the other place."""
        if self.loss == "poisson":
            return tuple(((factors_of(vote)[0], 1.0),) for (vote,) in votes)
        return tuple(((1.0, factors_of(vote)[1]),) for (vote,) in votes)

    def recorded(self, score: float, weight: int) -> float:
        """Twice the score in units of the sample weights: what a full step takes off the deviance,
        about."""
        return 2 * super().recorded(score, weight)

    def training_error(self, error: int, first_weight: int) -> float:
        """The mean deviance."""
        return (2 * error + self.saturated) / first_weight

    def _vote(self, first: int, second: int) -> float:
        return newton_vote(first, second, 2 * self.l2, 2 * self.learning_rate)
