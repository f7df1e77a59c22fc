"""An interval as a weak hypothesis: one vote inside (low, high] of a feature, the other outside.

A stump asks on which side of a threshold a value lies; an interval asks whether it lies between
two. Both are step functions of one feature, so whatever adds up stumps adds up intervals as well:
predicting, drawing, explaining and saving do not tell them apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.hypothesis import check_signs_of, predicted, rounded_down, set_plain_numbers

_FIELDS = {
    "feature": int,
    "low": float,
    "high": float,
    "polarity": int,
    "missing": int,
    "error": float,
}


@dataclass(frozen=True)
class Interval:
    """h(x) = polarity if low < x[feature] <= high else -polarity; `missing` where it is NaN.

    These are the 3-piece classifiers that decision stumps learn weakly [Shalev-Shwartz and
    Ben-David, Understanding Machine Learning, 10.1, example 10.1].

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    low, high : float
        Exact in the dtype of the data they were learnt from; low < high < infinity.
    polarity : int
        +1: predicts +1 inside; -1: predicts -1 there.
    missing : int
        What it predicts for NaN, +1 or -1; as for `Stump`.
    error : float
        Weighted share of the training samples that it gets wrong.
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
        set_plain_numbers(self, _FIELDS)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample; an interval never does."""
        return False

    @property
    def falls(self) -> tuple[tuple[float, int], ...]:
        """Its steps: at which value it falls, and by how much; less than 0 where it rises."""
        return (self.low, -2 * self.polarity), (self.high, 2 * self.polarity)

    def predict(self, X: Array) -> Array:
        """Predict -1 or +1 for each row of X; parameters, result and errors as `Stump.predict`."""
        return predicted(self, X)

    def on_values(self, values: Array) -> Array:
        """Predict -1.0 or 1.0, float64 (n_samples,), from the feature's values, a float array."""
        xp = arrays.namespace_of(values)
        dtype = arrays.dtype_name(values)
        low, high = arrays.order_keys(rounded_down(np.asarray([self.low, self.high]), dtype))
        keys = arrays.order_keys(values)
        inside, outside, missing = xp.asarray(
            [self.polarity, -self.polarity, self.missing],
            dtype=xp.float64,
            device=arrays.device_of(values),
        )
        votes = xp.where((keys > int(low)) & (keys <= int(high)), inside, outside)
        return xp.where(keys == arrays.missing_key(dtype), missing, votes)
