"""The exponential loss: AdaBoost's weights, and the integers of discrete and of real votes.

For each output a sample's weight is its sample weight times exp(-y * F), up to a common factor. The
gradient is the weight, rounded up, with the sign of the label; the Hessian is the same
without the sign.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import reweighted
from gpustump.engines.reference.integers import Integers, factor_of


class ExponentialLoss:
    """The weights of a run; see `integers.Loss`.

    Parameters
    ----------
    labels : array (n_samples,)
        -1.0 or 1.0; with more outputs than one the number of the class.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int
    """

    def __init__(self, labels: Array, units: Array, n_outputs: int) -> None:
        xp = self._xp = arrays.namespace_of(units)
        self._signs = [labels]  # of each output
        if n_outputs > 1:
            self._signs = [
                2.0 * xp.astype(labels == number, xp.float64) - 1.0 for number in range(n_outputs)
            ]
        self._weights = [units] * n_outputs

    @property
    def weights(self) -> Array:
        """(n_samples,), or (n_samples, n_outputs) for more outputs than one."""
        one = len(self._weights) == 1
        return self._weights[0] if one else self._xp.stack(self._weights, axis=1)

    def integers(self) -> Integers:
        """The weights, rounded up, with the signs of the labels."""
        return Integers.of(
            [
                Sums(self._xp.astype(self._xp.ceil(own) * signs, self._xp.int64), None)
                for own, signs in zip(self._weights, self._signs, strict=True)
            ]
        )

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Multiply each weight by the factor of its region, output and label."""
        self._weights = [
            reweighted(own, factor_of(factors, output, region, signs > 0))
            for output, (own, signs) in enumerate(zip(self._weights, self._signs, strict=True))
        ]
