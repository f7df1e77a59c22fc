"""Which cuts a monotone constraint allows, defined operation by operation.

A feature's constraint is 1, -1 or 0: the score must not fall as the feature rises, must not rise,
or may do either. A model is a sum of step functions of single features, so it obeys if every cut
does: the vote of the right region must not be below that of the left one, or not above. The vote
for missing values is not constrained. Nor are cuts with an empty right region: a constant, and the
threshold above all values.

With signs, the left region of a cut must have the sign -1 where the constraint is 1, and +1 where
it is -1; where signs follow from sums, the sums of the gradients are in order. Other votes
grow with a *level* of the region, a float64 number computed from its sums:

    real      (P + s) / (N + s), with the smoothing s = weight / (2 n_samples)
    newton    gradient / (hessian + l2)

where every operation is one of IEEE arithmetic, in this order: convert to float64, add, divide. So
all engines allow the same cuts. A cut is allowed if the levels of left and right are in order, or
equal. Levels are rounded, but votes follow from exact integers: where two levels are equal only
because of rounding, the votes may be out of order by one unit of votes, 2**-36. Then both regions
get the vote that they would have as one region; see `boosting.votes.splits`.

Constraints are for one output. With several, a class's softmax probability may fall although its
own score rises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionSums, Totals
from gpustump.engines.gain import Sums, as_float, weights_of_labels
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import FIRST, SECOND

Level = Callable[[Sums], Array]
"""Computes the level of regions from their sums."""


class Limit(NamedTuple):
    """Which cuts of some features are allowed.

    Attributes
    ----------
    level : callable
        See `Level`.
    directions : ndarray (n_features,) of int8
        The features' constraints.
    """

    level: Level
    directions: np.ndarray

    def of_features(self, features: slice | np.ndarray) -> Limit:
        """The same for some of the features."""
        return self._replace(directions=self.directions[features])

    def allows(self, left: Sums, right: Sums) -> Array:
        """Which cuts are allowed: bool (n_features, n), from sums of that shape on both sides."""
        one, two = self.level(left), self.level(right)
        xp, device = arrays.namespace_of(one), arrays.device_of(one)
        directions = self.directions[:, np.newaxis]
        may_rise = xp.asarray(directions >= 0, device=device)
        may_fall = xp.asarray(directions <= 0, device=device)
        return (may_rise & (one <= two)) | (may_fall & (one >= two))


def limit_of(objective: Objective, weight: int, n_samples: int) -> Limit | None:
    """What a search's constraints allow in a round; None if there are none.

    Parameters
    ----------
    objective : Objective
    weight : int
        The sum of all Hessians.
    n_samples : int
    """
    if objective.monotone is None:
        return None
    directions = np.asarray(objective.monotone, dtype=np.int8)
    if objective.gain == "discrete":
        return Limit(lambda sums: sums.gradient, directions)
    if objective.gain == "real":
        return Limit(functools.partial(_odds, smoothing_of(weight, n_samples)), directions)
    return Limit(functools.partial(_newton_step, objective.l2), directions)


def smoothing_of(weight: int, n_samples: int) -> float:
    """The smoothing s of real votes."""
    return float(weight) / float(2 * n_samples)


def is_allowed(feature: int, sums: RegionSums, totals: Totals, objective: Objective) -> bool:
    """Whether a monotone constraint allows a split with these sums over its regions.

    The votes are real or Newton; with constraints there is one output.
    """
    limit = limit_of(objective, totals.weight, totals.n_samples)
    if limit is None or not sums[SECOND][0][1]:  # there is nothing on the right
        return True
    sides = np.asarray([sums[FIRST][0], sums[SECOND][0]], dtype=np.int64).reshape(2, 2, 1, 1)
    left, right = (Sums(*side) for side in sides)
    return bool(limit.of_features(np.asarray([feature])).allows(left, right))


def _odds(smoothing: float, sums: Sums) -> Array:
    """The level of real votes."""
    positive, negative = weights_of_labels(sums)
    below = negative + smoothing
    # Sums below 0 occur after a feature's last value only, where there is no cut.
    below = arrays.namespace_of(below).maximum(below, arrays.scalar(smoothing, below))
    return (positive + smoothing) / below


def _newton_step(l2: float, sums: Sums) -> Array:
    """The level of Newton votes; `l2` is lambda in units of the integers."""
    xp, below = arrays.namespace_of(sums.gradient), as_float(sums.hessian) + l2
    # Only an empty region has a Hessian below 1; its gradient is 0.
    return as_float(sums.gradient) / xp.maximum(below, arrays.scalar(1.0, below))
