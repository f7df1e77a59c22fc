"""A decision stump as a weak hypothesis: one sign up to a threshold, the other above it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpustump.arrays import Array
from gpustump.learners.hypothesis import (
    FIRST,
    SECOND,
    check_signs_of,
    predict,
    set_plain_numbers,
)


@dataclass(frozen=True)
class Stump:
    """h(x) = polarity if x[feature] <= threshold else -polarity; `missing` where x[feature] is NaN.

    This is sign(threshold - x[feature]) * polarity [Shalev-Shwartz and Ben-David 2014,
    Understanding Machine Learning, 10.1.1]. In the notation of MATLAB's build_stump,
    ind = feature + 1, x0 = threshold, s = -polarity and werr = error.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    threshold : float
        Exact in the dtype of the training data. Infinite if every value is on the left.
    polarity : int
        +1: predicts +1 where x <= threshold; -1: predicts -1 there.
    missing : int
        What it predicts for NaN, +1 or -1. If no training sample lacked the feature, this is the
        label with the larger total weight.
    error : float
        The share of the training weight that it gets wrong.

    Raises
    ------
    ValueError
        If the threshold is NaN, or polarity or missing is neither +1 nor -1.

    Examples
    --------
    >>> from gpustump import Stump
    >>> stump = Stump(0, threshold=37.5, polarity=-1, missing=-1, error=0.0)
    >>> stump.predict([[36.6], [37.5], [39.1]]).tolist()
    [-1, -1, 1]
    >>> stump.is_constant
    False
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
        set_plain_numbers(self)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample."""
        return self.threshold == np.inf and self.polarity == self.missing

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The one threshold."""
        return (self.threshold,)

    @property
    def slices(self) -> tuple[int, ...]:
        """The region of each slice: left, right."""
        return FIRST, SECOND

    def predict(self, X: Array) -> Array:
        """Predict -1 or +1 for each row of X.

        Parameters
        ----------
        X : array (n_samples, n_features)
            Of any array library, or anything that NumPy converts to an array.

        Returns
        -------
        array (n_samples,) of int64
            In the library and on the device of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a two-dimensional table of real numbers with this feature.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import Stump
        >>> stump = Stump(1, threshold=2.5, polarity=1, missing=-1, error=0.0)
        >>> stump.predict([[0.0, 2.0], [0.0, 3.0], [0.0, np.nan]]).tolist()
        [1, -1, -1]
        """
        return predict(self, X)
