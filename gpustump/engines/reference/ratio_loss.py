"""Poisson and gamma loss of a quantity that is not negative, such as a count or a cost.

The prediction is exp(F). Each sample has two amounts, of which one stays as it is, and the other is
multiplied by a factor from the host in each step:

    Poisson    stays: weight * target        moves: weight * exp(F)
    gamma      stays: weight                 moves: weight * target / exp(F)

`gradient` is the gradient, negated: what is observed less what is expected, so the amount
that stays less the one that moves, and for gamma the other way round. The loss's own Hessian is the
amount that moves. Once a step has balanced a region's amounts, it is the one that stays. The
Hessian is the sum of the amounts, twice the mean of these Hessians. So a Newton step, twice the
first sum over the second, lies between -2 and 2, and never beyond the minimum of the loss: there
the step is ln(observed / expected) = 2 artanh(gradient / hessian).

A sample's loss is weight * (exp(F) - target * F) for Poisson and weight * (target / exp(F) + F) for
gamma: half of the deviance, but for what does not depend on F [McCullagh and Nelder 1989].
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes
from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import reweighted
from gpustump.engines.reference.integers import Integers, factor_of, picked_numbers


class RatioLoss:
    """The amounts of a run; see `integers.Loss`.

    Parameters
    ----------
    targets : array (n_samples,) of float64
        Not negative; above 0 for gamma loss.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    is_poisson : bool
        Otherwise the loss is gamma loss.
    beginning : Beginning, optional
        By default scores start from 0; otherwise its numbers are the exponentials by which the
        amounts that move are multiplied.
    """

    def __init__(
        self,
        targets: Array,
        units: Array,
        *,
        is_poisson: bool,
        beginning: Beginning | None = None,
    ) -> None:
        xp = self._xp = arrays.namespace_of(units)
        self._sign = 1 if is_poisson else -1
        weighted = units * targets
        self._fixed = xp.round(weighted) if is_poisson else units
        self._moving = units if is_poisson else reweighted(weighted, xp.ones_like(units))
        self._scores = xp.zeros_like(units)
        if beginning is not None:
            self._moving = reweighted(self._moving, beginning.numbers[0, :])
            self._scores = beginning.scores[0, :]

    @property
    def weights(self) -> Array:
        """The sum of both amounts, (n_samples,)."""
        return self._fixed + self._moving

    def integers(self) -> Integers:
        """The signed difference and the sum of the amounts; the one that moves is rounded up."""
        fixed, moving = self._whole()
        return Integers.of([Sums(self._sign * (fixed - moving), fixed + moving)])

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Multiply the amounts that move, and add the votes to the scores."""
        is_of_gamma = self._sign < 0
        factor = factor_of(factors, 0, region, (region >= 0) == is_of_gamma)
        self._moving = reweighted(self._moving, factor)
        of_regions = tuple(own for (own,) in votes)
        self._scores = self._scores + picked_numbers(of_regions, region)

    def error(self) -> int:
        """The sum of the losses, in which each product with a score is rounded."""
        xp = self._xp
        _, moving = self._whole()
        of_score = xp.astype(xp.round(self._fixed * self._scores), xp.int64)
        return int(xp.sum(moving - self._sign * of_score))

    def _whole(self) -> tuple[Array, Array]:
        """Both amounts as integers."""
        xp = self._xp
        return xp.astype(self._fixed, xp.int64), xp.astype(xp.ceil(self._moving), xp.int64)
