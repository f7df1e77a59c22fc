"""Votes of the quantile loss: a region votes the quantile of its residuals, shrunk.

The vote is learning_rate * r, where r is the region's quantile: see
`engines.reference.quantile_loss`. The cut itself is found by the slopes of the loss, as in gradient
boosting [Friedman 2001, section 4.4: LAD_TreeBoost]. There lambda counts as so much weight of
samples with no slope, so that a cut is not made for the few samples at the end of a feature.
Boosting starts from the quantile of the targets.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import cast

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import newton_vote
from gpustump.boosting.votes.newton import SquaredVotes, exact_totals
from gpustump.boosting.votes.splits import together
from gpustump.data.parameters import QuantityLoss
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import QuantileState, RegionSums, RegionVotes, State
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.engines.quantiles import rank_of, region_quantiles
from gpustump.learners.hypothesis import FIRST, N_REGIONS
from gpustump.learners.kinds import AnySplit
from gpustump.learners.step_table import VOTE_UNIT


@dataclass(frozen=True)
class QuantileVotes(SquaredVotes):
    """Votes of the quantile loss.

    Attributes
    ----------
    level : float
        Which quantile, between 0 and 1.
    """

    quantity: QuantityLoss | None = "quantile"
    level: float = 0.5

    @functools.cached_property
    def _objective(self) -> Objective:
        return Objective.of(self.kind, 1, self.quantity, l2=self._lambda, level=self.level)

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The weighted quantile of the targets."""
        with arrays.computing_on(labels):
            xp = arrays.namespace_of(labels)
            units = in_units(sample_weight, self.objective().n_copies)
            weights = xp.astype(units, xp.int64)
            rank = rank_of(self.level, int(xp.sum(weights)))
            (own,) = region_quantiles(labels, weights, xp.zeros_like(weights), [rank])
        return (own,)

    def error_of_constant(self, targets: Array, sample_weight: Array) -> float:
        """The mean loss if the quantile of all targets is predicted, the same everywhere."""
        (constant,) = self.constant(targets, sample_weight)
        with arrays.computing_on(targets):
            losses = pinball(targets - constant, self.level)
            total, weight = exact_totals(sample_weight, self.objective().n_copies, losses)
        return total / weight

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds in batches."""
        return super().plain._replace(scale=self._rate, level=self.level)

    def _votes_of(self, split: AnySplit | None, sums: RegionSums, state: State) -> RegionVotes:
        """The votes that the residuals of the regions ask for."""
        own = together(sums) if split is None else sums
        ranks = [rank_of(self.level, weight) for ((_, weight),) in own]
        quantiles = cast(QuantileState, state).region_quantiles(split, ranks)
        votes: RegionVotes = tuple((self._shrunk(one),) for one in quantiles)
        return votes if split is not None else (votes[FIRST],) * N_REGIONS

    def _shrunk(self, quantile: float) -> float:
        """The multiple of `VOTE_UNIT` nearest to the learning rate times a quantile."""
        return newton_vote(round(quantile / VOTE_UNIT), 1, 0.0, self._rate * VOTE_UNIT)


def pinball(residuals: Array, level: float) -> Array:
    """The loss of each residual, (n_samples,) of float64."""
    xp = arrays.namespace_of(residuals)
    return xp.maximum(residuals * level, residuals * (level - 1.0))
