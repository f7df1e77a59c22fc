"""Newton votes under the squared loss of a quantity: L2Boost.

A region votes learning_rate * A / (B + lambda), where A is the sum of the weighted residuals in the
region and B that of the weights: the mean residual, shrunk [Friedman 2001, section 4.1; Buehlmann
and Yu 2003]. Boosting starts from the mean of the targets. Lambda is on the scale of the sample
weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import newton_vote
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.engines.ahead import NEWTON, NEWTON_DOUBT, SQUARED, VoteRule
from gpustump.engines.contract import RegionFactors, RegionVotes, Search
from gpustump.engines.integer_weights import in_units
from gpustump.learners.step_table import VOTE_UNIT

_SEARCH = Search("stump", "newton", quantity="squared")

_LARGEST_RESIDUAL = 2.0
"""More than the absolute mean residual of a region: targets lie between -1 and 1."""


@dataclass(frozen=True)
class SquaredVotes(NewtonVotes):
    """Newton votes of the squared loss; see `split_votes.Rule`."""

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds ahead."""
        scale = self.learning_rate / VOTE_UNIT
        return VoteRule(NEWTON, scale, NEWTON_DOUBT, self.l2, math.inf, target=SQUARED)

    @property
    def largest_size(self) -> float:
        """See `split_votes.Rule`."""
        return 2 * _LARGEST_RESIDUAL * self.learning_rate + VOTE_UNIT

    @functools.cached_property
    def search(self) -> Search:
        """The split of the largest gain."""
        return Search("stump", "newton", 1, self.l2, quantity="squared")

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The weighted mean of the targets."""
        with arrays.computing_on(labels):
            xp = arrays.namespace_of(labels)
            units = in_units(sample_weight, _SEARCH.n_copies)
            first = xp.sum(xp.astype(xp.round(units * labels), xp.int64))
            second = xp.sum(xp.astype(units, xp.int64))
            total, weight = arrays.integers(xp.stack([first, second]))
            return (newton_vote(total, weight, 0.0, 1.0),)

    @staticmethod
    def variance(targets: Array, sample_weight: Array) -> float:
        """The weighted mean squared distance of targets from their mean, the same everywhere."""
        with arrays.computing_on(targets):
            xp = arrays.namespace_of(targets)
            units = in_units(sample_weight, _SEARCH.n_copies)
            parts = (units * targets, units * (targets * targets), units)
            sums = [xp.sum(xp.astype(xp.round(part), xp.int64)) for part in parts]
            first, squares, weight = arrays.integers(xp.stack(sums))
            return max(0.0, float((squares - Fraction(first * first, weight)) / weight))

    def constant_of(self, class_weights: Sequence[int]) -> tuple[float, ...]:
        """There are no classes.

        Raises
        ------
        TypeError
        """
        raise TypeError("a quantity has no classes, so its mean does not follow from their weights")

    def factors(self, votes: RegionVotes) -> RegionFactors:
        """None: residuals lose the votes."""
        return ()

    def _vote(self, first: int, second: int) -> float:
        return newton_vote(first, second, self.l2, self.learning_rate)
