"""The squared loss of a quantity: residuals, and the integers of Newton votes.

A sample's residual is r = t - F, where the target t and the score F are whole multiples of
`VOTE_UNIT`; so a step, which subtracts a vote, is exact. The first integer is weight * r, rounded,
and the second one is the weight. They are minus the gradient, and the Hessian, of
weight * r**2 / 2 [Buehlmann and Yu 2003: L2Boost]. If all weights are one power of two, large
enough, the first integers are exact, too.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Step
from gpustump.engines.reference.integers import Integers, picked_numbers
from gpustump.engines.worth import Sums


class SquaredLoss:
    """The residuals of a run; see `integers.Loss`.

    Parameters
    ----------
    targets : array (n_samples,) of float64
        Whole multiples of `VOTE_UNIT` from -1 to 1.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    """

    def __init__(self, targets: Array, units: Array) -> None:
        self._xp = arrays.namespace_of(units)
        self._residuals = targets
        self.weights = units
        self.first_weights = self._xp.astype(units, self._xp.int64)

    def integers(self) -> Integers:
        """The rounded products of weights and residuals, and the weights."""
        xp = self._xp
        first = xp.astype(xp.round(self.weights * self._residuals), xp.int64)
        return Integers.of([Sums(first, self.first_weights)])

    def advance(self, region: Array, step: Step) -> None:
        """Subtract the vote of each sample's region."""
        votes = tuple(own for (own,) in step.votes)
        self._residuals = self._residuals - picked_numbers(votes, region)

    def error(self) -> int:
        """The sum of the weighted squares, each rounded."""
        xp = self._xp
        squares = self._residuals * self._residuals  # stored: nothing is added to a product
        return int(xp.sum(xp.astype(xp.round(self.weights * squares), xp.int64)))
