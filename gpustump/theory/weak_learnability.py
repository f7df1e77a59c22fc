"""Interval functions: the class that decision stumps learn weakly, as a source of samples.

A function that is +1 on an interval of one feature and -1 elsewhere (or the reverse) cuts the
samples into three regions. No stump gets all three right, but some stump gets the two heavier ones
right, so under any distribution the best stump has an error of at most 1/3: stumps are a weak
learner of these functions, with an edge of 1/6, and boosting them learns the functions exactly
[Shalev-Shwartz and Ben-David 2014, Understanding Machine Learning, example 10.1].

Here are such functions, samples of them, and distributions that try that edge: also the one that
no stump can exceed, a third of the weight on each region.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count, check_real
from gpustump.data.tables import check_table

KINDS = ("equal", "spread", "peaked", "thirds")
"""The kinds of distributions that `random_distribution` draws."""

_CONCENTRATIONS = {"spread": 1.0, "peaked": 0.05}
"""Of Dirichlet distributions: at 1 all distributions are equally likely, at 0.05 a few samples hold
nearly all of the weight."""


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
            Of any array library; anything else is taken as NumPy takes it.

        Returns
        -------
        array (n_samples,) of int64
            -1 or +1, in the library and on the device of X.

        Raises
        ------
        ValueError, TypeError
            If X is not a two-dimensional table of numbers that holds the feature.
        """
        regions = self.regions(X)
        with arrays.computing_on(regions):
            inside = arrays.namespace_of(regions).astype(regions == 1, regions.dtype)
            return self.polarity * (2 * inside - 1)

    def regions(self, X: Array) -> Array:
        """Where each row of X lies: 0 below the interval, 1 inside, 2 above it or missing.

        Parameters, result and errors are those of `labels`.
        """
        X = check_table(X, min_features=self.feature + 1)
        xp = arrays.namespace_of(X)
        with arrays.computing_on(X):
            # In float64, which holds every value and both bounds exactly, whatever X's dtype.
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
        As `numpy.random.default_rng` takes it; the same number gives the same samples.
    noise : float
        In [0, 1]: the probability with which each label is flipped.

    Returns
    -------
    X : array (n_samples, n_features) of float64
        Independent, uniform in [0, 1).
    y : array (n_samples,) of int64
        -1 or +1.
    function : IntervalFunction
        What labelled them. Its ends are values of X, with at least one sample inside, one above if
        there are two, and one below if there are three (and if no two values are equal).

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
    noise = check_real(noise, "noise")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be in [0, 1]; got {noise!r}.")
    rng = np.random.default_rng(random_state)
    X = rng.random((n_samples, n_features))
    function = _random_interval(X, rng)
    y = function.labels(X)
    return X, np.where(rng.random(n_samples) < noise, -y, y), function


def random_distribution(
    function: IntervalFunction,
    X: Array,
    *,
    kind: str | None = None,
    random_state: int | np.random.Generator | None = None,
) -> np.ndarray:
    """A distribution over samples of an interval function, to try a weak learner with.

    Parameters
    ----------
    function : IntervalFunction
    X : array (n_samples, n_features)
        Of any array library.
    kind : str, optional
        "equal" for all samples; "spread" or "peaked", a Dirichlet distribution's draw; "thirds",
        an equal share for each region that has samples, spread inside it: no stump does better
        there than an error of 1/3, if none of the three is empty and no value is missing. By
        default any of the four.
    random_state : int, Generator or None
        As `numpy.random.default_rng` takes it.

    Returns
    -------
    array (n_samples,) of float64
        Not negative, with a sum of 1 but for rounding.

    Raises
    ------
    ValueError, TypeError
        If X is not a table that holds the function's feature, or kind is none of the four.
    """
    rng = np.random.default_rng(random_state)
    regions = arrays.to_host(function.regions(X))
    kind = KINDS[rng.integers(len(KINDS))] if kind is None else kind
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "equal":
        return np.full(len(regions), 1 / len(regions))
    if kind == "thirds":
        return _thirds(regions, rng)
    return rng.dirichlet(np.full(len(regions), _CONCENTRATIONS[kind]))


def _random_interval(X: np.ndarray, rng: np.random.Generator) -> IntervalFunction:
    """An interval from one sample's value to another's, every one as likely."""
    n_samples, n_features = X.shape
    feature = int(rng.integers(n_features))
    values = np.sort(X[:, feature])
    first, end = 0, 1
    if n_samples >= 3:
        first, end = sorted(1 + rng.choice(n_samples - 1, size=2, replace=False))
    polarity = int(rng.choice([-1, 1]))
    return IntervalFunction(feature, float(values[first]), float(values[end - 1]), polarity)


def _thirds(regions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    weights = np.empty(len(regions))
    occupied: list[Any] = np.unique(regions).tolist()
    for region in occupied:
        here = regions == region
        weights[here] = rng.dirichlet(np.ones(int(here.sum()))) / len(occupied)
    return weights / math.fsum(weights)
