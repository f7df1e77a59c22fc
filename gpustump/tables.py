"""A sum of stumps as one step function per feature: what prediction reads, and what a plot shows.

All stumps on one feature add up to a step function of that feature, and so do intervals. So the
decision value of a sample is one table look-up per feature, whatever the number of rounds. Votes
are whole multiples of one unit (see `votes`), so the running sums in a table are exact, and so is
their sum over the features, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.hypothesis import Hypothesis, rounded_down


@dataclass(frozen=True)
class StepTable:
    """A step function of one feature.

    Attributes
    ----------
    feature : int
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite.
    values : ndarray (k,) of float64
        values[i] holds where thresholds[i - 1] < x <= thresholds[i].
    missing : float
        Holds where x is NaN.
    """

    feature: int
    thresholds: np.ndarray
    values: np.ndarray
    missing: float

    def look_up(self, column: Array) -> Array:
        """The function's values, float64 (n_samples,), for a feature's values (n_samples,)."""
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        values = xp.asarray(np.append(self.values, self.missing), device=device)
        return xp.take(values, self.steps_of(column), axis=0)

    def steps_of(self, column: Array) -> Array:
        """Which of the values a feature's values (n_samples,) find; k where they are missing."""
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        column = arrays.as_working(column)
        thresholds = rounded_down(self.thresholds, arrays.dtype_name(column))
        keys = xp.asarray(arrays.order_keys(thresholds), device=device)
        # The key of NaN is above that of infinity, so NaN finds what is behind the last step.
        return xp.searchsorted(keys, arrays.order_keys(column))


def step_tables(
    stumps: Iterable[Hypothesis], votes: Iterable[float]
) -> tuple[float, tuple[StepTable, ...]]:
    """The constant stumps' sum of votes, and a table for every feature that the others use."""
    constant = 0.0
    by_feature: dict[int, list[tuple[Hypothesis, float]]] = {}
    for stump, vote in zip(stumps, votes, strict=True):
        if stump.is_constant:
            constant += stump.polarity * vote
        else:
            by_feature.setdefault(stump.feature, []).append((stump, vote))
    return constant, tuple(_step_table(j, members) for j, members in sorted(by_feature.items()))


def _step_table(feature: int, members: list[tuple[Hypothesis, float]]) -> StepTable:
    falls = [(at, by * vote) for stump, vote in members for at, by in stump.falls]
    learnt = np.asarray([at for at, _ in falls])
    thresholds, at = np.unique(np.append(learnt, np.inf), return_inverse=True)
    drops = np.zeros(len(thresholds))  # by how much the function falls behind each threshold
    np.add.at(drops, at[:-1], [by for _, by in falls])
    # Behind its last threshold, each has the opposite of its polarity.
    values = np.cumsum(drops[::-1])[::-1] - sum(stump.polarity * vote for stump, vote in members)
    missing = float(sum(stump.missing * vote for stump, vote in members))
    return StepTable(feature, thresholds, values, missing)
