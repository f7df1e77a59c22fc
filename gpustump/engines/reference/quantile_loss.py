"""The quantile loss of a quantity: residuals, and the integers whose sums tell where to cut.

Let the level be q, a number between 0 and 1. A sample with the residual r = t - F and the weight w
has the loss w q r if r is positive, and w (q - 1) r otherwise, the pinball loss, which the
q-quantile of the targets makes smallest [Koenker and Bassett 1978]. `gradient` is minus its slope:
w q above the score, w (q - 1) below it, both rounded, and 0 where r is 0. The loss has no
curvature, so `hessian` is the weight, as under squared loss: a cut is worth what it explains of the
gradients [Friedman 2001, section 4.4].

Such a step is no step of the loss. So a region votes the quantile of its own residuals, the
smallest residual r for which the samples up to r have at least the share q of the region's weight.
It is a residual of some sample, hence a whole multiple of `VOTE_UNIT`, and the same in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpustump.arrays import Array
from gpustump.engines.gain import Sums
from gpustump.engines.quantiles import region_quantiles
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.squared_loss import SquaredLoss


class QuantileLoss(SquaredLoss):
    """The residuals of a run; see `integers.Loss`.

    Parameters
    ----------
    targets : array (n_samples,) of float64
        Whole multiples of `VOTE_UNIT` from -1 to 1.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    level : float
    """

    def __init__(self, targets: Array, units: Array, level: float) -> None:
        super().__init__(targets, units)
        self._level = level

    def integers(self) -> Integers:
        """The rounded slopes of the loss, and the weights."""
        xp = self._xp
        parts = (xp.astype(x, xp.int64) for x in (self._gradient(), self.weights))
        return Integers.of([Sums(*parts)])

    def error(self) -> int:
        """The sum of the weighted losses, each rounded."""
        xp = self._xp
        losses = xp.abs(self._residuals * self._gradient())
        return int(xp.sum(xp.astype(xp.round(losses), xp.int64)))

    def quantiles(self, region: Array, ranks: Sequence[int]) -> list[float]:
        """That of the residuals in each region; see `region_quantiles`."""
        weights = self._xp.astype(self.weights, self._xp.int64)
        return region_quantiles(self._residuals, weights, region, ranks)

    def _gradient(self) -> Array:
        xp, residuals = self._xp, self._residuals
        above = xp.round(self.weights * self._level)
        below, none = above - self.weights, xp.zeros_like(above)
        return xp.where(residuals > 0.0, above, xp.where(residuals < 0.0, below, none))
