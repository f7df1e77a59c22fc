"""How targets under Poisson and gamma loss are learnt: rates whose mean is between 1/2 and 1.

Targets are divided by a power of two, whose logarithm is added to the scores of the model. An
*exposure* is a factor of the prediction that is known beforehand: targets are divided by it, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.integer_weights import in_units
from gpustump.learners.step_table import VOTE_UNIT

_LN_2 = 0.6931471805599453
_LEAST_TARGET = 2.0**-900
"""The largest target is above this: XLA flushes small numbers to zero."""


@dataclass(frozen=True)
class RatioScale:
    """By which power of two targets under Poisson and gamma loss are divided.

    Attributes
    ----------
    shift : int
        Targets are divided by 2**shift.
    is_poisson : bool
        Otherwise the loss is gamma loss.
    """

    shift: int
    is_poisson: bool

    size: ClassVar[float] = 1.0
    """What a score of 1 is in the scores of the model."""

    @classmethod
    def of(cls, targets: Array, weights: Array, *, is_poisson: bool) -> RatioScale:
        """The scale for some targets with positive weights, both (n_samples,) of float64.

        Raises
        ------
        ValueError
            If all targets are 0, or nearly.
        """
        with arrays.computing_on(targets):
            xp = arrays.namespace_of(targets)
            largest = float(xp.max(targets))
            if largest < _LEAST_TARGET:
                found = "0 for every sample" if largest == 0.0 else f"at most {largest!r}"
                raise ValueError(
                    f"y is {found}, so it says nothing of what predictions must be for this loss. "
                    "Multiply y by a constant, or give samples with larger targets."
                )
            of_largest, units = math.frexp(largest)[1], in_units(weights)
            parts = (units * (targets * math.ldexp(1.0, -of_largest)), units)
            sums = [xp.sum(xp.astype(xp.round(part), xp.int64)) for part in parts]
            total, weight = arrays.integers(xp.stack(sums))
        return cls(of_largest + math.frexp(max(total, 1) / weight)[1], is_poisson)

    @property
    def of_errors(self) -> float:
        """What a deviance of 1 is in the targets' unit."""
        return math.ldexp(1.0, self.shift) if self.is_poisson else 1.0

    def scaled(self, targets: Array) -> Array:
        """Targets (n_samples,) of float64 as boosting learns them."""
        with arrays.computing_on(targets):
            return targets * math.ldexp(1.0, -self.shift)

    def votes(self, learnt: np.ndarray) -> np.ndarray:
        """Votes of the learnt model, which the scale does not change."""
        return learnt

    def constant(self, learnt: np.ndarray) -> np.ndarray:
        """Scores from which the learnt model starts, for the targets as they are."""
        units = round(self.shift * _LN_2 / VOTE_UNIT)
        found: np.ndarray = learnt + units * VOTE_UNIT
        return found
