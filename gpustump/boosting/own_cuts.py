"""The cuts that a table's own values make: how a search would write a cut that a model claims.

Two thresholds between the same two values separate the training samples in the same way, and give
the same votes. But a search takes the midpoint of the two values. So a threshold that is no such
midpoint was not found by a search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories
from gpustump.learners.stump import Stump
from gpustump.learners.thresholds import midpoint, rounded_down


@dataclass(frozen=True)
class OwnCuts:
    """Writes claimed cuts as a search of a table would.

    Attributes
    ----------
    X : array (n_rows, n_features)
    rows : array (n_samples,) of int, or None
        The rows that take part; None for all.
    """

    X: Array
    rows: Array | None
    _midpoints: dict[tuple[int, float], float | None] = field(default_factory=dict, init=False)
    _present: dict[int, frozenset[int]] = field(default_factory=dict, init=False)

    def written(self, hypothesis: AnyStump | AnySplit) -> AnyStump | AnySplit:
        """The hypothesis that separates the samples alike, with the thresholds that a search
        takes."""
        feature = hypothesis.feature
        if isinstance(hypothesis, OfCategories):
            return _among(self._categories(feature), hypothesis)
        own = [self._threshold(feature, threshold) for threshold in hypothesis.thresholds]
        if not isinstance(hypothesis, Interval):
            return replace(hypothesis, threshold=math.inf if own[0] is None else own[0])
        return _of_interval(hypothesis, *own)

    def _threshold(self, feature: int, threshold: float) -> float | None:
        """The midpoint of the values around a threshold.

        Infinite if all values are on the left, None if all are on the right.
        """
        place = feature, threshold
        if place not in self._midpoints:  # many rounds make the same cuts
            with arrays.computing_on(self.X):
                self._midpoints[place] = _midpoint_at(threshold, self._values(feature))
        return self._midpoints[place]

    def _categories(self, feature: int) -> frozenset[int]:
        """The numbers of the categories that samples have."""
        if feature not in self._present:
            with arrays.computing_on(self.X):
                values = arrays.to_host(self._values(feature))
            present = np.unique(values[~np.isnan(values)])
            self._present[feature] = frozenset(map(int, present))
        return self._present[feature]

    def _values(self, feature: int) -> Array:
        return arrays.picked(arrays.as_working(self.X[:, feature]), self.rows)


def _midpoint_at(threshold: float, values: Array) -> float | None:
    """The midpoint of the two values of a column around a threshold; see `OwnCuts._threshold`."""
    xp, dtype = arrays.namespace_of(values), arrays.dtype_name(values)
    comparable = float(rounded_down(np.asarray([threshold]), dtype)[0])
    end = arrays.scalar(comparable, values)
    left, right = values <= end, values > end  # neither holds a missing value
    if not bool(xp.any(right)):
        return math.inf
    if not bool(xp.any(left)):
        return None
    infinite = arrays.scalar(math.inf, values)
    low = xp.max(xp.where(left, values, -infinite))
    high = xp.min(xp.where(right, values, infinite))
    return midpoint(*(np.dtype(dtype).type(float(own)) for own in (low, high)))


def _of_interval(claimed: Interval, low: float | None, high: float | None) -> AnyStump:
    """An interval between midpoints; the stump that does the same if there is one, as in a
    search."""
    feature, sign, others = claimed.feature, claimed.polarity, (claimed.missing, claimed.error)
    if high is None or low == high:  # no value lies inside
        return Stump(feature, math.inf, -sign, *others)
    if low is None:
        return Stump(feature, high, sign, *others)
    if high == math.inf:
        return Stump(feature, low, -sign, *others)
    return replace(claimed, low=low, high=high)


def _among(present: frozenset[int], hypothesis: OfCategories) -> AnyStump | AnySplit:
    """A hypothesis with only the categories that samples have; the lowest number goes left."""
    left, right = (
        tuple(number for number in own if number in present)
        for own in (hypothesis.left, hypothesis.right)
    )
    if not left or (right and right < left):
        left, right = right, left
    return replace(hypothesis, left=left, right=right) if left else hypothesis
