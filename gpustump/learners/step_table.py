"""What one feature adds to a score, as a table: the sum of all votes on that feature.

For numbers it is a step function, for a categorical feature a value for each category.

Votes are whole multiples of `VOTE_UNIT`, so sums of votes are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.columns import ArrayColumn, AsText
from gpustump.data.input_arrays import as_array
from gpustump.learners.thresholds import rounded_down

UNIT_BITS = 36
"""The binary places of a vote."""

VOTE_UNIT = 2.0**-UNIT_BITS
"""Votes of stumps are whole multiples of this, about 1.5e-11."""

VOTES_LIMIT = 2.0**17
"""Bound on the sum of absolute votes: below it, float64 holds every sum of votes exactly."""

MOST_UNITS = 2**53
"""`VOTES_LIMIT` in units."""


def unit_of(numbers: np.ndarray) -> float:
    """The unit of a quantity's votes: the largest power of two of which all are whole multiples.

    It is 1 if all are 0.
    """
    mantissas, exponents = np.frexp(numbers[numbers != 0.0])
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    _, lowest = np.frexp((digits & -digits).astype(np.float64))
    return math.ldexp(1.0, int((exponents + lowest).min()) - 54) if len(digits) else 1.0


Categories = tuple[str, ...] | tuple[int, ...]
"""The names of a feature's categories, or their numbers if they have no names."""


class _Table:
    """What tables have in common: values, their spread over the bags, and looking them up."""

    values: np.ndarray
    missing: Any
    bags: np.ndarray | None

    @property
    def outcomes(self) -> np.ndarray:
        """The values, followed by the missing one: (k + 1,) or (k + 1, n_outputs)."""
        return np.concatenate([self.values, np.asarray(self.missing)[np.newaxis]])

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation over the bags, of each of `outcomes`: (k + 1,).

        The divisor is n_bags - 1.

        Raises
        ------
        ValueError
            If the table is not of a bagged model.
        """
        found: np.ndarray = np.std(self._bags(), axis=0, ddof=1)
        return found

    def quantiles(self, q: float | Sequence[float]) -> np.ndarray:
        """Quantiles over the bags, of each of `outcomes`: (k + 1,) or (n_quantiles, k + 1).

        Parameters
        ----------
        q : float or sequence of float
            From 0 to 1. Between two bags the values are interpolated, as `numpy.quantile` does.

        Raises
        ------
        ValueError
            If the table is not of a bagged model, or q is not between 0 and 1.

        Examples
        --------
        >>> from gpustump import LogitBoostClassifier
        >>> X = [[value] for value in range(20)]
        >>> y = [0, 1] * 3 + [0] * 4 + [1] * 10
        >>> clf = LogitBoostClassifier(n_estimators=5, n_bags=3, random_state=0)
        >>> table = clf.fit(X, y).shape_function(0)
        >>> low, middle, high = table.quantiles([0.0, 0.5, 1.0])
        >>> bool((low <= table.outcomes).all()), bool((table.outcomes <= high).all())
        (True, True)
        """
        found: np.ndarray = np.quantile(self._bags(), q, axis=0)
        return found

    def _bags(self) -> np.ndarray:
        if self.bags is None:
            raise ValueError(
                "only tables of a bagged model have a spread; train with n_bags=8, for instance."
            )
        return self.bags

    def look_up(self, column: Any) -> Array:
        """The values that belong to a feature's values.

        Parameters
        ----------
        column : array (n_samples,)
            As for `steps_of`.

        Returns
        -------
        array (n_samples,) or (n_samples, n_outputs) of float64
            In the library and on the device of the column; NumPy's for names of categories.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import AdaBoostClassifier
        >>> X, y = [[1], [2], [3], [4]], [0, 1, 1, 0]
        >>> table = AdaBoostClassifier(n_estimators=3).fit(X, y).shape_function(0)
        >>> table.look_up(np.asarray([1.0, 2.0, 9.0])).round(3).tolist()
        [0.255, 1.354, -0.255]
        """
        steps = self.steps_of(column)
        xp, device = arrays.namespace_of(steps), arrays.device_of(steps)
        return xp.take(xp.asarray(self.outcomes, device=device), steps, axis=0)

    def steps_of(self, column: Any) -> Array:
        """The place among `outcomes` of each value of a feature."""
        raise NotImplementedError


def steps_of(column: Array, thresholds: np.ndarray) -> Array:
    """How many of k thresholds lie below each of a feature's values; k for NaN.

    The thresholds are increasing, and the last one is infinite.
    """
    xp, device = arrays.namespace_of(column), arrays.device_of(column)
    column = arrays.as_working(column)
    own = rounded_down(thresholds, arrays.dtype_name(column))
    keys = xp.asarray(arrays.order_keys(own), device=device)
    # The key of NaN is above that of infinity, so searching for it returns k.
    return xp.searchsorted(keys, arrays.order_keys(column))


@dataclass(frozen=True, repr=False)
class StepTable(_Table):
    """A step function of one feature.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    thresholds : ndarray (k,) of float64
        Increasing; the last is infinite.
    values : ndarray (k,) or (k, n_outputs) of float64
        values[i] is the function's value where thresholds[i - 1] < x <= thresholds[i].
    missing : float, or ndarray (n_outputs,)
        The function's value where x is NaN.
    bags : ndarray (n_bags, k + 1) of float64, or None
        For one output of a bagged model, the values of each bag's own step function: on each step
        and, last, where x is NaN. Their mean over the bags is the function's value.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import StepTable
    >>> thresholds, values = np.asarray([2.0, np.inf]), np.asarray([-0.5, 1.0])
    >>> table = StepTable(0, thresholds, values, missing=0.25)
    >>> table
    StepTable of feature 0 with 2 steps
    >>> table.look_up(np.asarray([2.0, 2.1, np.nan])).tolist()
    [-0.5, 1.0, 0.25]
    >>> table.outcomes.tolist()
    [-0.5, 1.0, 0.25]
    """

    feature: int
    thresholds: np.ndarray
    values: np.ndarray
    missing: Any
    bags: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"StepTable of feature {self.feature} with {len(self.thresholds)} steps"

    def output(self, number: int) -> StepTable:
        """The step function of one output, with values (k,) and without `bags`.

        Parameters
        ----------
        number : int
            The output, from 0.

        Returns
        -------
        StepTable

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import StepTable
        >>> values = np.asarray([[-1.0, 3.0], [1.0, 4.0]])  # two steps, two outputs
        >>> thresholds = np.asarray([2.0, np.inf])
        >>> both = StepTable(0, thresholds, values, missing=[0.0, 0.5])
        >>> second = both.output(1)
        >>> second.values.tolist(), second.missing
        ([3.0, 4.0], 0.5)
        """
        missing = float(self.missing[number])
        return StepTable(self.feature, self.thresholds, self.values[:, number], missing)

    def steps_of(self, column: Array) -> Array:
        """The number of the step that each of a feature's values lies on.

        Parameters
        ----------
        column : array (n_samples,), or what NumPy makes one of
            Booleans, integers or floats, of any array library; NaN where missing.

        Returns
        -------
        array (n_samples,) of integers
            From 0; k for NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import StepTable
        >>> thresholds, values = np.asarray([2.0, np.inf]), np.asarray([-0.5, 1.0])
        >>> table = StepTable(0, thresholds, values, missing=0.25)
        >>> table.steps_of(np.asarray([1.0, 2.0, 3.0, np.nan])).tolist()
        [0, 0, 1, 2]
        """
        values = as_array(column, "column")
        if arrays.working_dtype(arrays.dtype_name(values)) is None:
            raise TypeError(
                f"column has dtype {arrays.dtype_name(values)}, but must hold the numbers of a "
                "feature."
            )
        return steps_of(values, self.thresholds)


@dataclass(frozen=True, repr=False)
class CategoryTable(_Table):
    """What each category of a categorical feature adds to a score.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    categories : tuple of str, or tuple of int
        Their names, in the order of their numbers: 0, 1, ... If the model knows no names, the
        numbers themselves, increasing, of those that training samples had.
    values : ndarray (k,) or (k, n_outputs) of float64
        What each category adds, in the same order.
    missing : float, or ndarray (n_outputs,)
        What a missing value adds, and a value that is no category of the training data.
    bags : ndarray (n_bags, k + 1) of float64, or None
        For one output of a bagged model, the same of each bag: of each category and, last, of a
        missing value. The mean over the bags is the value.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import CategoryTable
    >>> table = CategoryTable(0, ("blue", "red"), np.asarray([-0.5, 1.0]), missing=0.25)
    >>> table
    CategoryTable of feature 0 with 2 categories
    >>> dict(zip(table.categories, table.values.tolist()))
    {'blue': -0.5, 'red': 1.0}
    >>> table.look_up(["red", "green", None]).tolist()
    [1.0, 0.25, 0.25]
    """

    feature: int
    categories: Categories
    values: np.ndarray
    missing: Any
    bags: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"CategoryTable of feature {self.feature} with {len(self.categories)} categories"

    def steps_of(self, column: Any) -> Array:
        """The place of each value among the categories.

        Parameters
        ----------
        column : sequence of str, or array (n_samples,)
            Names of categories, or numbers of categories in an array of any library: whichever
            `categories` holds. Names that are numbers may be given as numbers.

        Returns
        -------
        array (n_samples,) of integers
            From 0; k for a value that is missing or none of the categories.

        Examples
        --------
        >>> import numpy as np
        >>> from gpustump import CategoryTable
        >>> table = CategoryTable(0, (0, 1, 4), np.asarray([-0.5, 1.0, 0.5]), missing=0.25)
        >>> table.steps_of(np.asarray([4.0, 0.0, 0.999, 3.0, np.nan])).tolist()
        [2, 0, 3, 3, 3]
        """
        n_categories = len(self.categories)
        if any(isinstance(own, str) for own in self.categories):
            given = np.asarray(column)
            are_numbers = given.dtype.kind in "biuf"
            names = AsText(ArrayColumn("", given)).labels() if are_numbers else given
            places = {name: place for place, name in enumerate(self.categories)}
            found = [places.get(name, n_categories) for name in names.tolist()]
            return np.asarray(found, dtype=np.int64)
        xp, device = arrays.namespace_of(column), arrays.device_of(column)
        column = arrays.as_working(column)
        keys = arrays.order_keys(column)
        numbers = np.asarray([*self.categories, np.inf], dtype=arrays.dtype_name(column))
        own = xp.asarray(arrays.order_keys(numbers), device=device)
        places = xp.searchsorted(own[:-1], keys)
        is_known = xp.take(own, places, axis=0) == keys
        return xp.where(is_known, places, n_categories)


@dataclass(frozen=True, repr=False, eq=False)
class StepTables(Sequence[StepTable]):
    """The step functions of several features, kept together: a sequence of `StepTable`.

    Attributes
    ----------
    features : ndarray (n_tables,) of int64
        Increasing.
    starts : ndarray (n_tables + 1,) of int64
        Where each table's thresholds begin.
    thresholds : ndarray (n_steps,) of float64
    values : ndarray (n_steps, n_outputs) of float64
    missing : ndarray (n_tables, n_outputs) of float64
    """

    features: np.ndarray
    starts: np.ndarray
    thresholds: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, tables: Sequence[StepTable]) -> StepTables:
        """One or more tables with values (k, n_outputs), kept together."""
        if isinstance(tables, cls):
            return tables
        return cls(
            np.asarray([table.feature for table in tables]),
            np.cumsum([0] + [len(table.thresholds) for table in tables]),
            np.concatenate([table.thresholds for table in tables]),
            np.concatenate([table.values for table in tables]),
            np.asarray([table.missing for table in tables]),
        )

    def add_up_exactly(self, constant: np.ndarray) -> bool:
        """Whether float64 holds every sum of these values and the constant, in any order."""
        values = np.concatenate([constant[np.newaxis], self.values, self.missing])
        units = values / VOTE_UNIT
        of_steps = np.maximum.reduceat(np.abs(self.values), self.starts[:-1], axis=0)
        sums = np.maximum(of_steps, np.abs(self.missing)).sum(axis=0) + np.abs(constant)
        return bool((units == np.rint(units)).all()) and float(sums.max()) < VOTES_LIMIT

    def outcomes(self, number: int) -> np.ndarray:
        """`StepTable.outcomes` of a table."""
        own = self.values[self.starts[number] : self.starts[number + 1]]
        return np.concatenate([own, self.missing[number : number + 1]])

    def __len__(self) -> int:
        return len(self.features)

    @overload
    def __getitem__(self, number: int) -> StepTable: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[StepTable, ...]: ...

    def __getitem__(self, number: int | slice) -> StepTable | tuple[StepTable, ...]:
        if isinstance(number, slice):
            return tuple(self[i] for i in range(len(self))[number])
        at = range(len(self))[number]
        own = slice(self.starts[at], self.starts[at + 1])
        feature = int(self.features[at])
        return StepTable(feature, self.thresholds[own], self.values[own], self.missing[at])
