"""Columns of the caller's table: a feature each, or a category whose values are features.

A category, such as a colour, is often given to a model as one feature for each value: 1 where the
row has that value, else 0. In a picture it is one column again: one panel, one bar, one share.

What adds to a score is a term: a column, or a pair of features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.learners.step_table import StepTable
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.model.explanation import step_table_of
from gpustump.plots import inputs, style

Groups = Mapping[str, Mapping[str, int | str]]
"""For each category its values, and for each value its feature: an index, or a name."""

_PAIR = 30
"""The most characters of both names of a pair, if they can be shortened."""

_GIVEN = "groups must be a mapping such as {'colour': {'red': 0, 'blue': 1}}"


@dataclass(frozen=True)
class Category:
    """A category whose values are features.

    Attributes
    ----------
    name : str
    values : tuple of str
    features : tuple of int
        The feature of each value.
    """

    name: str
    values: tuple[str, ...]
    features: tuple[int, ...]


Column = int | Category
"""A feature's index, or a category."""


@dataclass(frozen=True)
class Pair:
    """A pair of features.

    Attributes
    ----------
    number : int
        In `StumpEnsemble.pairs`.
    place : int
        Of its column in `StumpEnsemble.explain`, behind those of all features.
    features : (int, int)
    """

    number: int
    place: int
    features: tuple[int, int]


Term = Column | Pair
"""What adds to a score."""


@dataclass(frozen=True)
class CategoryVotes:
    """What a category adds to a score.

    Attributes
    ----------
    values : ndarray (n_values,) of float64
        The sum of the contributions of all its features, in a row with that value.
    other : float
        The same in a row with another value, where all its features are 0.
    missing : float
        The same in a row without a value, where all its features are NaN.
    deviations : ndarray (n_values + 2,) of float64, or None
        For a bagged model the standard deviation of these numbers over the bags: of the values, of
        `other` and of `missing`.
    """

    values: np.ndarray
    other: float
    missing: float
    deviations: np.ndarray | None = None

    @property
    def deviation_of_missing(self) -> float:
        """That of `missing`; 0 without bags."""
        return 0.0 if self.deviations is None else float(self.deviations[-1])


def columns_of(model: StumpEnsemble, groups: Groups | None) -> list[Column]:
    """All columns, each at the place of its first feature.

    By default the text columns that the model encoded itself are the categories.

    Raises
    ------
    ValueError, TypeError
        If a group is empty or not a mapping, or a feature does not exist or is in two groups.
    """
    if groups is None:
        groups = model.encoding.groups if "encoding" in model.details else {}
    if not isinstance(groups, Mapping):
        raise TypeError(f"{_GIVEN}; got {groups!r}.")
    place: dict[int, Column] = {feature: feature for feature in range(model.n_features)}
    taken: set[int] = set()
    for name, values in groups.items():
        category = _category(model, name, values)
        if len({*category.features} - taken) < len(category.features):
            raise ValueError(
                f"groups[{name!r}] has a feature that appears twice in groups; name each once."
            )
        taken |= {*category.features}
        for feature in category.features:
            del place[feature]
        place[min(category.features)] = category
    return [place[feature] for feature in sorted(place)]


def _category(model: StumpEnsemble, name: str, values: Any) -> Category:
    if not isinstance(values, Mapping):
        raise TypeError(f"{_GIVEN}; got {values!r} for {name!r}.")
    if not values:
        raise ValueError(f"groups[{name!r}] is empty; name a feature for each value.")
    features = tuple(model.feature_index(feature) for feature in values.values())
    return Category(str(name), tuple(map(str, values)), features)


def chosen_columns(
    model: StumpEnsemble, columns: Sequence[Column], given: Iterable[int | str]
) -> list[Column]:
    """The categories and features that a caller names; a category's name comes first."""
    categories = {column.name: column for column in columns if isinstance(column, Category)}
    return [
        categories[one] if isinstance(one, str) and one in categories else model.feature_index(one)
        for one in given
    ]


def pairs_of(model: StumpEnsemble) -> list[Pair]:
    """All pairs of features of a model."""
    return [
        Pair(number, model.n_features + number, own.features)
        for number, own in enumerate(model.pairs)
    ]


def terms_of(model: StumpEnsemble, groups: Groups | None) -> list[Term]:
    """All columns, then all pairs of features; errors as for `columns_of`."""
    return [*columns_of(model, groups), *pairs_of(model)]


def features_of(column: Column) -> tuple[int, ...]:
    """The features of a column."""
    return column.features if isinstance(column, Category) else (column,)


def places_of(term: Term) -> tuple[int, ...]:
    """The columns of `StumpEnsemble.explain` that hold what a term adds."""
    return (term.place,) if isinstance(term, Pair) else features_of(term)


def name_of(model: StumpEnsemble, term: Term) -> str:
    """The name of a term in a picture."""
    if isinstance(term, Pair):
        return pair_name(model, term.features)
    if isinstance(term, Category):
        return style.words(term.name)
    return inputs.feature_name(model, term)


def pair_name(model: StumpEnsemble, features: tuple[int, int]) -> str:
    """The name of a pair in a picture; of long names each feature has half of the room."""
    names = [inputs.feature_name(model, feature) for feature in features]
    if sum(map(len, names)) > _PAIR:
        names = [inputs.feature_name(model, feature, _PAIR // 2) for feature in features]
    return " x ".join(names)


def counted_terms(terms: Sequence[Term]) -> str:
    """How many terms there are, such as "3 other features and pairs", without the number 3."""
    n_pairs = sum(isinstance(term, Pair) for term in terms)
    if not n_pairs:
        return "other features" if len(terms) != 1 else "other feature"
    if n_pairs < len(terms):
        return "other features and pairs"
    return "other pairs" if n_pairs != 1 else "other pair"


def shares_of(shares: np.ndarray, terms: Sequence[Term]) -> np.ndarray:
    """The share of each term, (n_terms,): for a column the sum over its features."""
    sums = np.empty(len(terms))
    for k, term in enumerate(terms):
        sums[k] = sum(shares[place] for place in places_of(term))
    return sums


def category_votes(model: StumpEnsemble, category: Category, label: Label | None) -> CategoryVotes:
    """What a category adds to the score of a class.

    Votes are whole multiples of a power of two, so the sums are exact in any order: those of
    `StumpEnsemble.explain`, to the last bit.
    """
    tables = [step_table_of(model, feature, label) for feature in category.features]
    at_0, at_1 = (np.asarray([_at(table, x) for table in tables]) for x in (0.0, 1.0))
    other = float(at_0.sum())
    missing = float(np.sum([table.missing for table in tables]))
    return CategoryVotes(other - at_0 + at_1, other, missing, _deviations(tables))


def _deviations(tables: Sequence[StepTable]) -> np.ndarray | None:
    """The standard deviations over the bags, from the tables of a category's features."""
    bags = [table.bags for table in tables if table.bags is not None]
    if len(bags) < len(tables):
        return None
    at_0, at_1 = (
        np.stack([own[:, _step(table, x)] for own, table in zip(bags, tables, strict=True)])
        for x in (0.0, 1.0)
    )
    other = at_0.sum(axis=0)
    missing = np.sum([own[:, -1] for own in bags], axis=0)
    found: np.ndarray = np.std(np.vstack([other - at_0 + at_1, other, missing]), axis=1, ddof=1)
    return found


def _step(table: StepTable, x: float) -> int:
    return int(table.steps_of(np.asarray([x]))[0])


def _at(table: StepTable, x: float) -> float:
    return float(table.look_up(np.asarray([x]))[0])


@dataclass(frozen=True)
class CategoryRows:
    """The values of a category in a table, as shares of the weight.

    Attributes
    ----------
    values : ndarray (n_values,) of float64
    other : float
        The share of the rows with another value.
    missing : float
        The share of the rows without a value.
    """

    values: np.ndarray
    other: float
    missing: float


def category_rows(samples: inputs.Samples, category: Category) -> CategoryRows:
    """The share of the rows with each value.

    Raises
    ------
    ValueError
        If a row is not as described: one of the features 1 and the others 0, all 0, or all NaN.
    """
    weights = samples.weights
    n_ones = np.zeros(len(weights.values), dtype=np.int64)
    n_missing = np.zeros_like(n_ones)
    shares = np.empty(len(category.features))
    for k, feature in enumerate(category.features):
        column = inputs.column_of(samples.X, feature)
        is_one, is_missing = column == 1.0, np.isnan(column)
        _check_rows(is_one | is_missing | (column == 0.0), category)
        n_ones += is_one
        n_missing += is_missing
        shares[k] = weights.share(is_one)
    lacks_all = n_missing == len(category.features)
    _check_rows(lacks_all | ((n_missing == 0) & (n_ones <= 1)), category)
    has_other = (n_ones == 0) & ~lacks_all
    return CategoryRows(shares, weights.share(has_other), weights.share(lacks_all))


def _check_rows(is_right: np.ndarray, category: Category) -> None:
    if not is_right.all():
        raise ValueError(
            f"groups[{category.name!r}]: row {int(np.argmin(is_right))} of X has no single value; "
            "its features must be 1 for one value and 0 for the others, or all 0, or all NaN."
        )
