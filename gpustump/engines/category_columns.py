"""The categorical features of a table: the category number of every sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import OfCategories

NO_CATEGORY = 2**16 - 1
"""Stands for the number of a sample without a category, whose value is NaN or negative."""


@dataclass(frozen=True)
class CategoryColumns:
    """Some features of a table as numbers of categories, in the host's memory.

    Attributes
    ----------
    features : tuple of int
        In increasing order.
    numbers : ndarray (n_columns, n_samples) of uint16
        `n_numbers - 1` where there is none. Of shape (n_columns, 0) if the samples are elsewhere;
        see `engines.cluster`.
    counts : ndarray (n_columns, n_numbers) of int64
        How many samples have each number. The last place is that of samples without a category.
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
        none = int((numbers + np.uint16(1)).max(initial=0))  # of `NO_CATEGORY` it makes 0
        numbers = np.minimum(numbers, np.uint16(none))
        counts = np.stack([np.bincount(own, minlength=none + 1) for own in numbers])
        return cls(tuple(features), numbers, counts.astype(np.int64))

    @classmethod
    def counted(cls, features: Sequence[int], counts: np.ndarray) -> CategoryColumns:
        """For samples that are elsewhere, from `counts` as in the attributes."""
        return cls(tuple(features), np.empty((len(features), 0), dtype=np.uint16), counts)

    @property
    def n_missing(self) -> np.ndarray:
        """How many samples have no category, (n_columns,) of int64."""
        found: np.ndarray = self.counts[:, -1]
        return found

    @property
    def n_numbers(self) -> int:
        """How many numbers there are: those up to the highest category, and one for none."""
        return len(self.counts[0])


def numbers_of(X: Array, rows: Array | None, feature: int, name: str | None = None) -> np.ndarray:
    """A feature's numbers of categories, (n_samples,) of uint16; `NO_CATEGORY` where missing.

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
    """The number of each value's category, uint16; `NO_CATEGORY` for a value that is no category.

    A `CategorySplit` reads values in the same way.
    """
    is_number = (values >= 0) & (values < MOST_CATEGORIES) & (values == np.floor(values))
    numbers = np.where(is_number, values, 0).astype(np.uint16)  # float16 has no `NO_CATEGORY`
    return np.where(is_number, numbers, np.uint16(NO_CATEGORY))


def regions_of_numbers(hypothesis: OfCategories, n_numbers: int) -> np.ndarray:
    """The region of each number of a table under a split or stump, (n_numbers,) of uint8.

    The hypothesis may know categories that the table lacks.
    """
    found = np.full(n_numbers, MISSING, dtype=np.uint8)
    for region, side in ((FIRST, hypothesis.left), (SECOND, hypothesis.right)):
        found[[number for number in side if number < n_numbers - 1]] = region
    return found


def joined_sums(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sums over categories, (..., n_numbers) of int64, of several tables together.

    Each table has numbers of its own; in all of them the last place is that of none.
    """
    widest = max(own.shape[-1] for own in parts)
    found = np.zeros((*parts[0].shape[:-1], widest), dtype=np.int64)
    for own in parts:
        found[..., : own.shape[-1] - 1] += own[..., :-1]
        found[..., -1] += own[..., -1]
    return found
