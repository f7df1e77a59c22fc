"""One decision stump as a value, and predicting with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array

if TYPE_CHECKING:
    from gpustump.interval import Hypothesis

VOTE_UNIT = 2.0**-36
"""Votes of stumps are whole multiples of this, about 1.5e-11."""

VOTES_LIMIT = 2.0**17
"""Bound on the sum of absolute votes: below it, float64 holds every sum of votes exactly."""

_FIELDS = {"feature": int, "threshold": float, "polarity": int, "missing": int, "error": float}


@dataclass(frozen=True)
class Stump:
    """h(x) = polarity if x[feature] <= threshold else -polarity; `missing` where x[feature] is NaN.

    This is sign(threshold - x[feature]) * polarity [Shalev-Shwartz and Ben-David, Understanding
    Machine Learning, 10.1.1]. In the notation of MATLAB's build_stump: ind = feature + 1,
    x0 = threshold, s = -polarity, werr = error.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    threshold : float
        Exact in the dtype of the data it was learnt from. Infinite where every value goes left.
    polarity : int
        +1: predicts +1 where x <= threshold; -1: predicts -1 there.
    missing : int
        What it predicts for NaN, +1 or -1. If no training sample lacked the feature, that is the
        label that was heavier overall, the best constant answer.
    error : float
        Weighted share of the training samples that it gets wrong.
    """

    feature: int
    threshold: float
    polarity: int
    missing: int
    error: float

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise ValueError("threshold must be a number or infinite; got NaN.")
        check_signs_of(self)
        set_plain_numbers(self, _FIELDS)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample."""
        return self.threshold == np.inf and self.polarity == self.missing

    @property
    def falls(self) -> tuple[tuple[float, int], ...]:
        """Its one step: at which value it falls, and by how much; less than 0 where it rises."""
        return ((self.threshold, 2 * self.polarity),)

    def predict(self, X: Array) -> Array:
        """Predict -1 or +1 for each row of X.

        Parameters
        ----------
        X : array (n_samples, n_features)
            Of any array library; anything else is taken as NumPy takes it.

        Returns
        -------
        array (n_samples,) of int64
            In the library and on the device of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a two-dimensional table of numbers that holds the feature.
        """
        return predicted(self, X)

    def on_values(self, values: Array) -> Array:
        """Predict -1.0 or 1.0, float64 (n_samples,), from the feature's values, a float array."""
        xp = arrays.namespace_of(values)
        dtype = arrays.dtype_name(values)
        threshold = arrays.order_keys(rounded_down(np.asarray([self.threshold]), dtype))
        keys = arrays.order_keys(values)
        device = arrays.device_of(values)
        left, right, missing = xp.asarray(
            [self.polarity, -self.polarity, self.missing], dtype=xp.float64, device=device
        )
        votes = xp.where(keys <= int(threshold[0]), left, right)
        return xp.where(keys == arrays.missing_key(dtype), missing, votes)


def predicted(hypothesis: Hypothesis, X: Array) -> Array:
    """-1 or +1, int64, for each row of X; see `Stump.predict`."""
    from gpustump.validation import check_table

    X = check_table(X, min_features=hypothesis.feature + 1)
    xp = arrays.namespace_of(X)
    with arrays.computing_on(X):
        return xp.astype(
            hypothesis.on_values(arrays.as_working(X[:, hypothesis.feature])), xp.int64
        )


def check_signs_of(hypothesis: Hypothesis) -> None:
    """Refuse votes other than -1 and +1."""
    for name in ("polarity", "missing"):
        if getattr(hypothesis, name) not in (-1, 1):
            raise ValueError(f"{name} must be +1 or -1; got {getattr(hypothesis, name)!r}.")


def set_plain_numbers(hypothesis: Hypothesis, fields: Mapping[str, Callable[[Any], Any]]) -> None:
    """Make its fields Python's own numbers: others would be written to a file in another way."""
    for name, kind in fields.items():
        object.__setattr__(hypothesis, name, kind(getattr(hypothesis, name)))


def rounded_down(thresholds: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 thresholds as the largest values of a dtype that are not above them.

    A value of that dtype is at most the rounded threshold exactly if it is at most the original,
    so data need not be widened to be compared.
    """
    with np.errstate(all="ignore"):
        nearest = thresholds.astype(dtype)
        below = np.nextafter(nearest, np.asarray(-np.inf, dtype=dtype))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest)
