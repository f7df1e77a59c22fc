"""A step function of one feature: the sum of all votes on that feature.

Votes are whole multiples of `VOTE_UNIT`, so sums of votes are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.learners.thresholds import rounded_down

VOTE_UNIT = 2.0**-36
"""Votes of stumps are whole multiples of this, about 1.5e-11."""

VOTES_LIMIT = 2.0**17
"""Bound on the sum of absolute votes: below it, float64 holds every sum of votes exactly."""


@dataclass(frozen=True, repr=False)
class StepTable:
    """A step function of one feature.

    Attributes
    ----------
    feature : int
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite.
    values : ndarray (k,) or (k, n_outputs) of float64
        values[i] is the function's value where thresholds[i - 1] < x <= thresholds[i].
    missing : float, or ndarray (n_outputs,)
        The function's value where x is NaN.
    """

    feature: int
    thresholds: np.ndarray
    values: np.ndarray
    missing: Any

    def __repr__(self) -> str:
        return f"StepTable of feature {self.feature} with {len(self.thresholds)} steps"

    @property
    def outcomes(self) -> np.ndarray:
        """The values of all steps, followed by the one for NaN: (k + 1,) or (k + 1, n_outputs)."""
        return np.concatenate([self.values, np.asarray(self.missing)[np.newaxis]])

    def output(self, number: int) -> StepTable:
        """The step function of one output, with values (k,)."""
        missing = float(self.missing[number])
        return StepTable(self.feature, self.thresholds, self.values[:, number], missing)

    def look_up(self, column: Array) -> Array:
        """The function's values for a feature's values (n_samples,).

        Returns
        -------
        array (n_samples,) or (n_samples, n_outputs) of float64
        """
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        return xp.take(xp.asarray(self.outcomes, device=device), self.steps_of(column), axis=0)

    def steps_of(self, column: Array) -> Array:
        """The step that each of a feature's values (n_samples,) lies on; k for NaN."""
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        column = arrays.as_working(column)
        thresholds = rounded_down(self.thresholds, arrays.dtype_name(column))
        keys = xp.asarray(arrays.order_keys(thresholds), device=device)
        # The key of NaN is above that of infinity, so searching for it returns k.
        return xp.searchsorted(keys, arrays.order_keys(column))
