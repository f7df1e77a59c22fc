"""The squared loss of a quantity: residuals, and the integers of Newton votes.

A sample's residual is r = t - F, where the target t and the score F are whole multiples of
`VOTE_UNIT`; so a step, which subtracts a vote, is exact. `gradient` is weight * r, rounded,
and `hessian` is the weight. They are minus the gradient, and the Hessian, of
weight * r**2 / 2 [Buehlmann and Yu 2003: L2Boost]. If all weights are one power of two, large
enough, the gradients are exact, too.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.gain import Sums
from gpustump.engines.reference.integers import Integers, picked_numbers


class SquaredLoss:
    """The residuals of a run; see `integers.Loss`.

    Parameters
    ----------
    targets : array (n_samples,) of float64
        Whole multiples of `VOTE_UNIT` from -1 to 1.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    scores : array (1, n_samples) of float64, optional
        Those from which the run starts; by default 0.
    """

    def __init__(self, targets: Array, units: Array, scores: Array | None = None) -> None:
        self._xp = arrays.namespace_of(units)
        self._residuals = targets if scores is None else targets - scores[0, :]
        self.weights = units

    def integers(self) -> Integers:
        """The rounded products of weights and residuals, and the weights."""
        xp = self._xp
        weighted = xp.round(self.weights * self._residuals)
        return Integers.of([Sums(*(xp.astype(x, xp.int64) for x in (weighted, self.weights)))])

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Subtract the vote of each sample's region."""
        of_regions = tuple(own for (own,) in votes)
        self._residuals = self._residuals - picked_numbers(of_regions, region)

    def error(self) -> int:
        """The sum of the weighted squares, each rounded."""
        xp = self._xp
        squares = self._residuals * self._residuals  # stored: nothing is added to a product
        return int(xp.sum(xp.astype(xp.round(self.weights * squares), xp.int64)))
