"""Targets that are quantities, and the unit in which they are learnt.

Boosting learns targets from -1 to 1 that are whole multiples of `VOTE_UNIT`. A
`TargetScale` turns targets into these, and what was learnt back into the targets' own unit. Both
directions multiply by a power of two and add a whole multiple of it. So the only rounding is that
of each target to the nearest whole multiple of one *step*, a power of two: 2**-36 of the spread of
the targets or less, unless their own last digits are coarser than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.learners.step_table import UNIT_BITS, VOTE_UNIT

_SUM_BITS = 51
"""A step is at least 2**-51 of the largest target, so that sums of votes stay below 2**53 steps."""

_LEAST_STEP = -1020
"""The exponent of the smallest step: its multiples are normal float64 numbers. XLA flushes others
to zero, and targets that are no normal numbers are rounded to zero in any case."""


@dataclass(frozen=True)
class TargetScale:
    """How targets are turned into multiples of `VOTE_UNIT` from -1 to 1, and back.

    Attributes
    ----------
    step : int
        Targets are rounded to multiples of 2**step.
    centre : float
        What is subtracted from the rounded targets, in these steps: a whole number.
    power : int
        An error is a residual to this power: 2 for squares, 1 for absolute values.
    """

    step: int
    centre: float
    power: int = 2

    @classmethod
    def of(cls, targets: Array, power: int = 2) -> TargetScale:
        """The scale for some targets (n_samples,) of float64."""
        with arrays.computing_on(targets):
            xp = arrays.namespace_of(targets)
            low, high = float(xp.min(targets)), float(xp.max(targets))
        half = high / 2 - low / 2
        _, of_size = math.frexp(max(abs(low), abs(high)))
        step = max(of_size - _SUM_BITS, _LEAST_STEP)
        if half > 0.0:
            step = max(step, math.frexp(half * (1 + 2.0**-20))[1] - UNIT_BITS)
        return cls(step, float(round(math.ldexp(low / 2 + high / 2, -step))), power)

    @property
    def size(self) -> float:
        """What a score of 1 is in the targets' unit."""
        return math.ldexp(1.0, self.step + UNIT_BITS)

    @property
    def of_errors(self) -> float:
        """What an error of 1 is in the targets' unit; 0 or infinite beyond float64."""
        return self.size * self.size if self.power == 2 else self.size

    @property
    def of_gains(self) -> float:
        """The same of a gain: gradients are residuals, or have no unit."""
        return self.of_errors if self.power == 2 else 1.0

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest target that can be learnt."""
        steps = 2.0**UNIT_BITS
        return (
            math.ldexp(self.centre - steps, self.step),
            math.ldexp(self.centre + steps, self.step),
        )

    def scaled(self, targets: Array) -> Array:
        """Targets (n_samples,) of float64 as boosting learns them."""
        with arrays.computing_on(targets):
            xp = arrays.namespace_of(targets)
            steps = xp.round(targets * math.ldexp(1.0, -self.step))
            return (steps - self.centre) * VOTE_UNIT

    def votes(self, learnt: np.ndarray) -> np.ndarray:
        """Votes of the learnt model in the targets' unit."""
        found: np.ndarray = learnt * self.size
        return found

    def constant(self, learnt: np.ndarray) -> np.ndarray:
        """Scores from which the learnt model starts, in the targets' unit."""
        found: np.ndarray = learnt * self.size + math.ldexp(self.centre, self.step)
        return found
