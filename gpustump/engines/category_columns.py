"""The categorical features of a table: the category number of every sample, as one byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import OfCategories

N_NUMBERS = 256
"""How many different numbers a byte holds."""

NO_CATEGORY = 255
"""The number of samples without a category: their value is NaN or negative."""


@dataclass(frozen=True)
class CategoryColumns:
    """Some features of a table as numbers of categories, in the host's memory.

    Attributes
    ----------
    features : tuple of int
        In increasing order.
    numbers : ndarray (n_columns, n_samples) of uint8
        `NO_CATEGORY` where there is none. Of shape (n_columns, 0) if the samples are elsewhere; see
        `engines.cluster`.
    counts : ndarray (n_columns, N_NUMBERS) of int64
        How many samples have each number.
    """

    features: tuple[int, ...]
    numbers: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, X: Array, rows: Array | None, features: Sequence[int]) -> CategoryColumns:
        """From a table (n_samples_given, n_features), or some of its rows.

        Raises
        ------
        ValueError
            If a value is none of those that `numbers_of` allows.
        """
        numbers = np.stack([numbers_of(X, rows, feature) for feature in features])
        counts = np.stack([np.bincount(own, minlength=N_NUMBERS) for own in numbers])
        return cls(tuple(features), numbers, counts.astype(np.int64))

    @classmethod
    def counted(cls, features: Sequence[int], counts: np.ndarray) -> CategoryColumns:
        """For samples that are elsewhere, from `counts` as in the attributes."""
        return cls(tuple(features), np.empty((len(features), 0), dtype=np.uint8), counts)

    @property
    def n_missing(self) -> np.ndarray:
        """How many samples have no category, (n_columns,) of int64."""
        found: np.ndarray = self.counts[:, NO_CATEGORY]
        return found


def numbers_of(X: Array, rows: Array | None, feature: int, name: str | None = None) -> np.ndarray:
    """A feature's numbers of categories, (n_samples,) of uint8.

    Errors call the feature by its name, or by its index if there is none.

    Raises
    ------
    ValueError
        If a value is neither a whole number below `MOST_CATEGORIES` nor NaN. Negative numbers and
        NaN mean missing values, as in scikit-learn.
    """
    values = arrays.to_host(arrays.picked(arrays.as_working(X[:, feature]), rows))
    numbers = as_numbers(values)
    is_missing = np.isnan(values) | ((values < 0) & (values == np.floor(values)))
    is_wrong = (numbers == NO_CATEGORY) & ~is_missing
    if is_wrong.any():
        wrong = values[is_wrong][0].item()
        shown = repr(name) if name is not None else str(feature)
        raise ValueError(
            f"categorical feature {shown} must hold numbers of categories: whole numbers from 0 to "
            f"{MOST_CATEGORIES - 1}, negative ones or NaN where missing; got {wrong!r}. Number the "
            "categories with sklearn.preprocessing.OrdinalEncoder, put rare ones together if there "
            "are more, or leave the feature out of categorical_features."
        )
    return numbers


def as_numbers(values: np.ndarray) -> np.ndarray:
    """The number of each value's category, uint8; `NO_CATEGORY` for a value that is no category.

    A `CategorySplit` reads values in the same way.
    """
    is_number = (values >= 0) & (values < MOST_CATEGORIES) & (values == np.floor(values))
    return np.where(is_number, values, NO_CATEGORY).astype(np.uint8)


def regions_of_numbers(hypothesis: OfCategories) -> np.ndarray:
    """The region of each category number under a split or stump, (N_NUMBERS,) of uint8."""
    found = np.full(N_NUMBERS, MISSING, dtype=np.uint8)
    found[list(hypothesis.left)] = FIRST
    found[list(hypothesis.right)] = SECOND
    return found
