"""Splits of a categorical feature: a set of categories on either side.

The values of a categorical feature are the numbers of categories, 0 to 999: they tell categories
apart, and their order means nothing. A split sends a set of them left and a set right. Every other
value lies in the region of missing values: a category that no training sample had, a number that is
no category at all, such as 0.999, and NaN.

Such a split is written as a partition: each of its categories is a slice of its own, so thin that
it holds no other number, and the slices between them are those of missing values. So it is like any
other split for predictions, explanations and exports.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpustump.arrays import Array
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.learners.hypothesis import (
    FIRST,
    MISSING,
    SECOND,
    check_signs_of,
    predict,
    set_plain_numbers,
)

_SLICES = tuple(
    (math.nextafter(number, -math.inf) if number else -sys.float_info.min, float(number))
    for number in range(MOST_CATEGORIES)
)
"""The ends of each category's slice: the largest float64 below its number, and the number.

The slice of category 0 begins at the smallest normal number. With a subnormal one, processors that
flush subnormal numbers to zero would take category 0 for a missing value.
"""


class _Sets:
    """What both kinds of splits are: a partition into two sets, and the region of other values."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def thresholds(self) -> tuple[float, ...]:
        """For each category, in increasing order, the largest float64 below it, and its number."""
        return self._partition[0]

    @property
    def slices(self) -> tuple[int, ...]:
        """The region of each slice: that of missing values and those of categories, in turns."""
        return self._partition[1]

    @cached_property
    def _partition(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        regions = dict.fromkeys(self.left, FIRST) | dict.fromkeys(self.right, SECOND)
        numbers = sorted(regions)
        thresholds = tuple(end for number in numbers for end in _SLICES[number])
        slices = tuple(region for number in numbers for region in (MISSING, regions[number]))
        return thresholds, (*slices, MISSING)


@dataclass(frozen=True)
class CategorySplit(_Sets):
    """x[feature] in `left` on the left, x[feature] in `right` on the right, or any other value.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    left, right : tuple of int
        Numbers of categories from 0 to 999, increasing. No category is in both; `left` has at least
        one. If `right` is empty, the split separates these categories from all other values.

    Raises
    ------
    ValueError, TypeError
        If the categories are not as described.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier
    >>> X = [[category] for category in [0.0, 1.0, 2.0] for _ in range(10)]
    >>> y = [1] * 10 + [0] * 10 + [1] * 10
    >>> clf = LogitBoostClassifier(n_estimators=1, categorical_features=[0])
    >>> clf.fit(X, y).model_.members[0].splits
    (CategorySplit(feature=0, left=(0, 2), right=(1,)),)
    """

    feature: int
    left: tuple[int, ...]
    right: tuple[int, ...]

    def __post_init__(self) -> None:
        _set_categories(self)
        set_plain_numbers(self)


@dataclass(frozen=True)
class CategoryStump(_Sets):
    """A split of categories with a sign for each region.

    h(x) = polarity if x[feature] is in `left`, -polarity if it is in `right`, otherwise `missing`.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    left, right : tuple of int
        As for `CategorySplit`.
    polarity : int
        +1: predicts +1 on the left; -1: predicts -1 there.
    missing : int
        What it predicts for all other values, +1 or -1; as for `Stump`.
    error : float
        The share of the training weight that it gets wrong.

    Raises
    ------
    ValueError, TypeError
        If categories or signs are not as described.

    Examples
    --------
    >>> from gpustump import CategoryStump
    >>> stump = CategoryStump(0, (1, 4), (0, 2), polarity=1, missing=-1, error=0.0)
    >>> stump.predict([[0], [1], [3], [4]]).tolist()
    [-1, 1, -1, 1]
    """

    feature: int
    left: tuple[int, ...]
    right: tuple[int, ...]
    polarity: int
    missing: int
    error: float

    def __post_init__(self) -> None:
        _set_categories(self)
        check_signs_of(self)
        set_plain_numbers(self)

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample; a split of categories never does."""
        return False

    def predict(self, X: Array) -> Array:
        """Predict -1 or +1 for each row of X; parameters, result and errors as `Stump.predict`.

        Examples
        --------
        Category 3 is in neither set, so it counts as missing:

        >>> from gpustump import CategoryStump
        >>> stump = CategoryStump(0, (1, 4), (0, 2), polarity=1, missing=1, error=0.0)
        >>> stump.predict([[0], [1], [3]]).tolist()
        [-1, 1, 1]
        """
        return predict(self, X)


def is_set(categories: Iterable[Any]) -> bool:
    """Whether these are numbers of categories, increasing."""
    numbers = list(categories)
    if not numbers:
        return True
    if {*map(type, numbers)} != {int} or numbers != sorted({*numbers}):
        return False
    lowest, highest = numbers[0], numbers[-1]
    return bool(lowest >= 0 and highest < MOST_CATEGORIES)


def _set_categories(split: CategorySplit | CategoryStump) -> None:
    """Make both sets plain tuples of int, and refuse others."""
    for name in ("left", "right"):
        given = getattr(split, name)
        own = tuple(map(int, given))
        if own != tuple(given) or not is_set(own):
            raise ValueError(
                f"{name} must hold increasing numbers of categories, from 0 to "
                f"{MOST_CATEGORIES - 1}; got {given!r}."
            )
        object.__setattr__(split, name, own)
    if not split.left:
        raise ValueError("left must hold at least one category; got none.")
    both = sorted({*split.left} & {*split.right})
    if both:
        raise ValueError(f"no category may be in left and in right; got {both} in both.")
