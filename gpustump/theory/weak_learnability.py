"""Interval functions, which decision stumps learn weakly, and samples of them.

A function that is +1 on an interval of one feature and -1 elsewhere (or the reverse) cuts the
samples into three regions. No stump is right on all three, but some stump is right on the two of
larger weight. So under any probability distribution over the samples the best stump has an error of
at most 1/3: stumps are weak learners of these functions, with an edge of 1/6, and boosting learns
the functions exactly [Shalev-Shwartz and Ben-David 2014, Understanding Machine Learning, example
10.1].

This file makes such functions, samples of them, and distributions over the samples. With a third of
the weight on each region, no stump has an edge above 1/6.

Other functions are out of reach: the sign of the product of two features is one. With a quarter of
the weight on each quadrant, every stump has an error of 1/2, while the product of two stumps is the
function itself; see `bounds.product_growth`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count
from gpustump.data.tables import check_table
from gpustump.theory.arguments import within

KINDS = ("equal", "spread", "peaked", "thirds")
"""The kinds of distributions that `random_distribution` draws."""

_CONCENTRATIONS = {"spread": 1.0, "peaked": 0.05}
"""Parameters of Dirichlet distributions. With 1 all distributions are equally likely; with 0.05 a
few samples have nearly all of the weight."""


@dataclass(frozen=True)
class IntervalFunction:
    """f(x) = polarity if low <= x[feature] <= high else -polarity; missing values are outside.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    low, high : float
    polarity : int
        +1 or -1, the label inside.

    Raises
    ------
    ValueError, TypeError
        If the feature is not a count, low is above high, or polarity is neither +1 nor -1.

    Examples
    --------
    >>> from gpustump.theory import IntervalFunction
    >>> function = IntervalFunction(feature=0, low=2.0, high=3.0, polarity=1)
    >>> function.labels([[1], [2], [3], [4]]).tolist()
    [-1, 1, 1, -1]
    >>> function.regions([[1], [2], [3], [4]]).tolist()
    [0, 1, 1, 2]
    """

    feature: int
    low: float
    high: float
    polarity: int

    def __post_init__(self) -> None:
        check_count(self.feature, "feature", least=0)
        if not self.low <= self.high:
            raise ValueError(f"low must not be above high; got {self.low!r} and {self.high!r}.")
        if self.polarity not in (-1, 1):
            raise ValueError(f"polarity must be +1 or -1; got {self.polarity!r}.")

    def labels(self, X: Array) -> Array:
        """The label of each row of X.

        Parameters
        ----------
        X : array (n_samples, n_features)
            Of any array library, or anything that NumPy converts to an array.

        Returns
        -------
        array (n_samples,) of int64
            -1 or +1, in the library and on the device of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a two-dimensional table of real numbers with this feature.

        Examples
        --------
        >>> from gpustump.theory import IntervalFunction
        >>> function = IntervalFunction(feature=1, low=2.0, high=3.0, polarity=-1)
        >>> function.labels([[0.0, 1.0], [0.0, 2.5]]).tolist()
        [1, -1]
        """
        regions = self.regions(X)
        with arrays.computing_on(regions):
            inside = arrays.namespace_of(regions).astype(regions == 1, regions.dtype)
            return self.polarity * (2 * inside - 1)

    def regions(self, X: Array) -> Array:
        """The region of each row of X: 0 below the interval, 1 inside, 2 above it or missing.

        Parameters, result and errors are those of `labels`.

        Examples
        --------
        >>> from gpustump.theory import IntervalFunction
        >>> function = IntervalFunction(feature=0, low=2.0, high=3.0, polarity=1)
        >>> function.regions([[1.0], [2.0], [4.0], [float("nan")]]).tolist()
        [0, 1, 2, 2]
        """
        X = check_table(X, min_features=self.feature + 1)
        xp = arrays.namespace_of(X)
        with arrays.computing_on(X):
            # float64 holds the values of every dtype, and both bounds, exactly.
            values = xp.astype(X[:, self.feature], xp.float64)
            not_below, inside_or_below = values >= self.low, values <= self.high
            above = xp.astype(~inside_or_below, xp.int64)
            return xp.astype(not_below & inside_or_below, xp.int64) + 2 * above


def make_intervals(
    n_samples: int,
    n_features: int = 1,
    *,
    random_state: int | np.random.Generator | None = None,
    noise: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, IntervalFunction]:
    """Samples labelled by an interval function of one feature.

    Parameters
    ----------
    n_samples, n_features : int
    random_state : int, Generator or None
        As for `numpy.random.default_rng`; the same number gives the same samples.
    noise : float
        In [0, 1]: the probability that a label is flipped.

    Returns
    -------
    X : array (n_samples, n_features) of float64
        Independent, uniform in [0, 1).
    y : array (n_samples,) of int64
        -1 or +1.
    function : IntervalFunction
        The function that labels them, before noise. Its ends are values of X. If no two values are
        equal, at least one sample is inside, one is above if there are two samples or more, and one
        is below if there are three or more.

    Raises
    ------
    ValueError, TypeError
        If a number is not as described.

    Examples
    --------
    >>> X, y, function = make_intervals(5, random_state=0)
    >>> bool((function.labels(X) == y).all())
    True
    """
    n_samples = check_count(n_samples, "n_samples")
    n_features = check_count(n_features, "n_features")
    noise = within(noise, "noise", "[0, 1]")
    rng = np.random.default_rng(random_state)
    X = rng.random((n_samples, n_features))
    # An interval between the values of two samples; all such intervals are equally likely.
    feature = int(rng.integers(n_features))
    values = np.sort(X[:, feature])
    first, end = 0, 1
    if n_samples >= 3:
        first, end = sorted(1 + rng.choice(n_samples - 1, size=2, replace=False))
    polarity = int(rng.choice([-1, 1]))
    function = IntervalFunction(feature, float(values[first]), float(values[end - 1]), polarity)
    y = function.labels(X)
    return X, np.where(rng.random(n_samples) < noise, -y, y), function


def random_distribution(
    function: IntervalFunction,
    X: Array,
    *,
    kind: str | None = None,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """A random probability distribution over samples of an interval function.

    Parameters
    ----------
    function : IntervalFunction
    X : array (n_samples, n_features)
        Of any array library.
    kind : str, optional
        "equal": the same probability for all samples. "spread" or "peaked": drawn from a Dirichlet
        distribution. "thirds": the same total for each region that has samples, spread at random
        inside it; if no region is empty and no value is missing, every stump has an error of at
        least 1/3. By default one of the four at random.
    random_state : int, Generator or None
        As for `numpy.random.default_rng`.

    Returns
    -------
    array (n_samples,) of float64
        Not negative; the sum is 1 up to rounding.

    Raises
    ------
    ValueError, TypeError
        If X is not a table with the function's feature, or kind is none of the four.

    Examples
    --------
    >>> from gpustump import fit_stump
    >>> from gpustump.theory import IntervalFunction, random_distribution
    >>> X = [[1], [2], [3]]
    >>> function = IntervalFunction(feature=0, low=2.0, high=2.0, polarity=1)
    >>> weights = random_distribution(function, X, kind="thirds")
    >>> weights.round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    >>> round(fit_stump(X, function.labels(X), weights).error, 4)
    0.3333
    """
    rng = np.random.default_rng(random_state)
    regions = arrays.to_host(function.regions(X))
    kind = KINDS[rng.integers(len(KINDS))] if kind is None else kind
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "equal":
        return np.full(len(regions), 1 / len(regions))
    if kind != "thirds":
        return rng.dirichlet(np.full(len(regions), _CONCENTRATIONS[kind]))
    weights, occupied = np.empty(len(regions)), np.unique(regions)
    for region in occupied:
        here = regions == region
        weights[here] = rng.dirichlet(np.ones(int(here.sum()))) / len(occupied)
    return weights / math.fsum(weights)
