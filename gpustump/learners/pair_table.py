"""What a pair of features adds to a score: a table over the bins of both.

A pair's bins are slices of each feature's values, or groups of its categories. Missing values have
the last bin of each feature, and so have values that are none of the known categories.

Values of tables are whole multiples of the votes' unit, so sums of them are exact in any order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.learners.step_table import steps_of

MOST_BINS = 32
"""The most bins of a feature in a pair, one of them for missing values: finer bins of more tables
fit noise, and coarser ones lose what there is to learn; `bench/NOTES.md` has the figures."""


class AxisSteps(NamedTuple):
    """The bins of a feature as a step function.

    Attributes
    ----------
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite.
    bins : ndarray (k + 1,) of uint8
        The bin of each step and, last, that of missing values.
    """

    thresholds: np.ndarray
    bins: np.ndarray


@dataclass(frozen=True, eq=False)
class PairAxis:
    """The bins of one feature of a pair.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite. Bin b holds thresholds[b - 1] < x <= thresholds[b].
        Empty for a categorical feature.
    groups : tuple of tuple of int
        For a categorical feature the numbers of the categories in each bin; otherwise empty.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import PairAxis
    >>> axis = PairAxis(0, np.asarray([2.0, np.inf]))
    >>> axis.bins_of(np.asarray([1.0, 2.0, 3.0, np.nan])).tolist()
    [0, 0, 1, 2]
    >>> PairAxis(0, groups=((0, 3), (1,))).bins_of(np.asarray([3.0, 1.0, 2.0])).tolist()
    [0, 1, 2]
    """

    feature: int
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros(0))
    groups: tuple[tuple[int, ...], ...] = ()

    @property
    def n_bins(self) -> int:
        """How many bins there are, with that of missing values."""
        return len(self.groups or self.thresholds) + 1

    @property
    def value(self) -> tuple[Any, ...]:
        """What makes two axes equal."""
        return self.feature, tuple(self.thresholds.tolist()), self.groups

    @property
    def steps(self) -> AxisSteps:
        """The bins as a step function of the feature's value, also of a categorical feature."""
        ends = self.thresholds
        if self.groups:  # each category is a step of its own, so thin that it holds no other number
            numbers = np.asarray(sorted(itertools.chain(*self.groups)), dtype=np.float64)
            thin = np.column_stack([np.nextafter(numbers, -np.inf), numbers])
            ends = np.append(thin, np.inf)
        return AxisSteps(ends, self.bins_of(np.append(ends, np.nan)).astype(np.uint8))

    def bins_of(self, column: Array) -> Array:
        """The bin of each of a feature's values, (n_samples,) of int64, in the column's library."""
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        if not self.groups:
            return xp.astype(steps_of(column, self.thresholds), xp.int64)
        bins = np.full(MOST_CATEGORIES + 1, len(self.groups), dtype=np.int64)
        for number, own in enumerate(self.groups):
            bins[list(own)] = number
        column = arrays.as_working(column)
        is_known = (column >= 0) & (column < MOST_CATEGORIES) & (column == xp.floor(column))
        none = arrays.scalar(float(MOST_CATEGORIES), column)
        places = xp.astype(xp.where(is_known, column, none), xp.int64)
        return xp.take(xp.asarray(bins, device=device), places, axis=0)


@dataclass(frozen=True, eq=False)
class PairTable:
    """What a pair of features adds to a score.

    The table is pure: over the samples trained on, the weighted mean of its values over each row
    and each column is 0, to within the votes' unit. So what the pair adds is only what neither
    feature could add by itself.

    Attributes
    ----------
    axes : (PairAxis, PairAxis)
        The bins of both features, the one with the lower index first.
    values : ndarray (k, m) or (k, m, n_outputs) of float64
        values[a, b] is added where the first feature lies in bin a and the second one in bin b. The
        last row and the last column are for missing values.
    weights : ndarray (k, m) of float64
        The share of the weight of the samples trained on in each of these cells.
    bags : ndarray (n_bags, k, m) or (n_bags, k, m, n_outputs) of float64, or None
        For a bagged model the tables of the bags, whose mean is `values`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import GlassBoxClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 2)).astype(np.float32)
    >>> y = X[:, 0] * X[:, 1] > 0  # neither feature says anything by itself
    >>> clf = GlassBoxClassifier(random_state=0, device="cpu").fit(X, y)
    >>> (table,) = clf.model_.pairs
    >>> table.features
    (0, 1)
    >>> bool((table.look_up(X) > 0)[y].mean() > 0.9)
    True
    """

    axes: tuple[PairAxis, PairAxis]
    values: np.ndarray
    weights: np.ndarray
    bags: np.ndarray | None = None

    def __eq__(self, other: object) -> bool:
        """Equal tables have equal bins and values."""
        if not isinstance(other, PairTable):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    @property
    def _value(self) -> tuple[Any, ...]:
        return tuple(axis.value for axis in self.axes), (self.values + 0.0).tobytes()

    def __repr__(self) -> str:
        first, second = self.features
        return f"PairTable of features {first} and {second} with {self.n_cells} cells"

    @property
    def features(self) -> tuple[int, int]:
        """Both columns of X."""
        return self.axes[0].feature, self.axes[1].feature

    @property
    def n_cells(self) -> int:
        """How many combinations of bins there are."""
        return self.axes[0].n_bins * self.axes[1].n_bins

    def of_bag(self, number: int) -> PairTable:
        """The table of one bag."""
        return self if self.bags is None else replace(self, values=self.bags[number], bags=None)

    def output(self, number: int) -> PairTable:
        """The table of one output, with values (k, m)."""
        bags = None if self.bags is None else self.bags[..., number]
        return PairTable(self.axes, self.values[..., number], self.weights, bags)

    def look_up(self, X: Array) -> Array:
        """What the pair adds for each row of X, (n_samples,) or (n_samples, n_outputs) of float64.

        Parameters
        ----------
        X : array (n_samples, n_features)
            Booleans, integers or floats, of any array library; NaN where missing.
        """
        first, second = self.bins_of(X)
        return self.at(first, second)

    def bins_of(self, X: Array) -> tuple[Array, Array]:
        """The bins of both features of each row of X, (n_samples,) of int64 each."""
        first, second = (own.bins_of(X[:, own.feature]) for own in self.axes)
        return first, second

    def at(self, first: Array, second: Array) -> Array:
        """The values at the bins of both features, (n_samples,) of int64; see `look_up`."""
        xp, device = arrays.namespace_of(first), arrays.device_of(first)
        flat = self.values.reshape(self.n_cells, *self.values.shape[2:])
        cells = first * self.axes[1].n_bins + second
        return xp.take(xp.asarray(flat, device=device), cells, axis=0)
