"""The logistic loss of two classes: odds, and the integers of Newton votes.

The odds of the wrong label are u = exp(-2 y F), so the model gives that label the probability
w = u / (1 + u). `gradient` is weight * w with the sign of the label, and `hessian`
is weight * w * (1 - w). They are minus half of the gradient, and a quarter of the Hessian, of
weight * ln(1 + exp(-2 y F)) [Friedman, Hastie and Tibshirani 2000, section 4.3]. Each step
multiplies the odds by a factor from the host, so no exponential is computed on a device.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import FLOOR
from gpustump.engines.reference.integers import Integers, factor_of


class LogisticLoss:
    """The odds of a run; see `integers.Loss`.

    Parameters
    ----------
    labels : array (n_samples,) of float64
        -1.0 or 1.0.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    odds : array (1, n_samples) of float64, optional
        Those from which the run starts; by default 1.
    """

    def __init__(self, labels: Array, units: Array, odds: Array | None = None) -> None:
        self._xp = arrays.namespace_of(units)
        self._labels = labels
        self._units = units
        self._odds = self._xp.ones_like(self._units) if odds is None else odds[0, :]

    @property
    def weights(self) -> Array:
        """weight * w * (1 - w), (n_samples,)."""
        return self._terms()[1]

    def integers(self) -> Integers:
        """Both terms, rounded up."""
        xp = self._xp
        gradient, hessian = map(xp.ceil, self._terms())
        return Integers.of(
            [Sums(*(xp.astype(x, xp.int64) for x in (gradient * self._labels, hessian)))]
        )

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Multiply the odds, and keep them between `FLOOR` and 1 / `FLOOR`.

        XLA flushes subnormal numbers to zero, so smaller odds would differ between libraries.
        """
        xp = self._xp
        odds = self._odds * factor_of(factors, 0, region, self._labels > 0)
        odds = xp.minimum(odds, arrays.scalar(1.0 / FLOOR, odds))
        self._odds = xp.maximum(odds, arrays.scalar(FLOOR, odds))

    def _terms(self) -> tuple[Array, Array]:
        # The odds, which are a product, have been stored: no compiler can contract the product and
        # this addition into one operation.
        below = self._odds + 1.0
        gradient = self._units * (self._odds / below)
        return gradient, gradient * (1.0 / below)
