"""An interval as a weak hypothesis: one sign for values in (low, high], the other outside.

A stump has one threshold, an interval has two. Both are step functions of one feature, so models
predict, explain, draw and save them in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpustump.arrays import Array
from gpustump.learners.hypothesis import (
    FIRST,
    SECOND,
    check_signs_of,
    predict,
    set_plain_numbers,
)


@dataclass(frozen=True)
class Interval:
    """h(x) = polarity if low < x[feature] <= high else -polarity; `missing` where it is NaN.

    Intervals are the 3-piece classifiers that decision stumps learn weakly [Shalev-Shwartz and
    Ben-David 2014, Understanding Machine Learning, example 10.1].

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    low, high : float
        Exact in the dtype of the training data; low < high < infinity.
    polarity : int
        +1: predicts +1 inside; -1: predicts -1 there.
    missing : int
        What it predicts for NaN, +1 or -1; as for `Stump`.
    error : float
        The share of the training weight that it gets wrong.

    Raises
    ------
    ValueError
        If low, high, polarity or missing is not as described.

    Examples
    --------
    >>> from gpustump import Interval
    >>> mild = Interval(0, low=15.0, high=25.0, polarity=1, missing=-1, error=0.0)
    >>> mild.predict([[15], [20], [25], [30]]).tolist()
    [-1, 1, 1, -1]
    >>> mild.thresholds
    (15.0, 25.0)
    """

    feature: int
    low: float
    high: float
    polarity: int
    missing: int
    error: float

    def __post_init__(self) -> None:
        if not self.low < self.high < math.inf:
            raise ValueError(
                f"low must be below high, and high finite; got {self.low!r} and {self.high!r}."
            )
        check_signs_of(self)
        set_plain_numbers(self)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample; an interval never does."""
        return False

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Both ends of the interval."""
        return self.low, self.high

    @property
    def slices(self) -> tuple[int, ...]:
        """The region of each slice: below, inside and above the interval."""
        return SECOND, FIRST, SECOND

    def predict(self, X: Array) -> Array:
        """Predict -1 or +1 for each row of X; parameters, result and errors as `Stump.predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import Interval
        >>> outside = Interval(0, low=1.0, high=2.0, polarity=-1, missing=1, error=0.0)
        >>> outside.predict([[1.0], [1.5], [2.5], [np.nan]]).tolist()
        [1, -1, 1, 1]
        """
        return predict(self, X)
