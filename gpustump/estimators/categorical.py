"""Which features of a training table are categorical, and how a frame's categories are numbered.

`categorical_features` has the forms that it has in scikit-learn's `HistGradientBoostingClassifier`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.training import Settings
from gpustump.data.columns import NUMERIC, AsText, Column, ColumnTable, is_plain_number
from gpustump.data.frames import refuse_all_but_numbers
from gpustump.data.parameters import MOST_CATEGORIES, feature_index, places_of_names
from gpustump.data.readable import caller_level, quoted
from gpustump.engines.category_columns import NO_CATEGORY, numbers_of
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn, unseen_numbers, unseen_text


class Categories(NamedTuple):
    """What a fit learns of categorical features.

    Attributes
    ----------
    asked : None, "from_dtype" or array-like
        `categorical_features` as it was given.
    features : tuple of int
        The categorical features, increasing.
    encoding : Encoding or None
        How a frame becomes features, if it has columns whose categories had to be numbered.
    """

    asked: Any = None
    features: tuple[int, ...] = ()
    encoding: Encoding | None = None


def categories_of_frame(categorical_features: Any, frame: ColumnTable) -> Categories:
    """The categorical columns of a training frame, and the numbers of their categories.

    The categories of text columns, and of columns of the frame's own type for categories, are
    numbered in sorted order. Columns of numbers hold numbers of categories already.

    Raises
    ------
    ValueError
        If categorical_features does not fit the frame, or a column has too many categories.
    """
    if categorical_features is None:
        return Categories()
    if is_by_type(categorical_features):
        features = tuple(j for j, own in enumerate(frame.columns) if is_of_categories(own))
    else:
        names = frame.names if frame.named else None
        features = chosen(categorical_features, len(frame.columns), names)
    among = {*features}
    others = [own for j, own in enumerate(frame.columns) if j not in among]
    refuse_all_but_numbers(others, frame.source)
    columns = tuple(
        _learnt(column, place, is_categorical=place in among)
        for place, column in enumerate(frame.columns)
    )
    is_numbered = any(column.kind == NUMBERED for column in columns)
    encoding = Encoding(columns, len(columns), frame.named) if is_numbered else None
    return Categories(categorical_features, features, encoding)


def _learnt(column: Column, place: int, *, is_categorical: bool) -> InputColumn:
    """How a column becomes a feature."""
    if not is_categorical or not is_of_categories(column):
        kind = column.kind if column.kind in NUMERIC else "number"
        return InputColumn(column.name, place, kind)
    if column.kind in NUMERIC:
        column = AsText(column)
    values = [] if column.kind == "empty" else column.distinct()
    if len(values) > MOST_CATEGORIES:
        raise ValueError(
            f"categorical feature {quoted(column.name)} has {len(values)} categories; there may be "
            f"{MOST_CATEGORIES} at most. Put rare ones together, turn them into numbers that mean "
            "something, for example with sklearn.preprocessing.TargetEncoder, or leave it out."
        )
    if all(map(is_plain_number, values)):
        values = sorted(values, key=float)
    return InputColumn(column.name, place, NUMBERED, tuple(values))


def chosen(
    categorical_features: Any, n_features: int, names: Sequence[str] | None
) -> tuple[int, ...]:
    """The features that `categorical_features` names, increasing.

    Parameters
    ----------
    categorical_features : None, "from_dtype" or array-like of bool, int or str
        "from_dtype" names none here, as an array has one dtype.
    n_features : int
    names : sequence of str, or None
        Of the features.

    Raises
    ------
    ValueError
        If categorical_features is something else, or does not fit the table.
    """
    if categorical_features is None or is_by_type(categorical_features):
        return ()
    given = np.asarray(categorical_features)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "biuUO"):
        raise ValueError(
            "categorical_features must be None, 'from_dtype' or an array-like of bool, int or str, "
            f"got: {categorical_features!r}."
        )
    if given.dtype.kind == "b":
        if len(given) != n_features:
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,), got: "
                f"{given.shape} for {n_features} features."
            )
        return tuple(np.flatnonzero(given).tolist())
    places = places_of_names(names)
    asked = given.tolist()
    found = (feature_index(one, n_features, places, "categorical_features") for one in asked)
    return tuple(sorted({*found}))


def category_numbers(
    X: Array, categories: Categories, names: Sequence[str] | None
) -> dict[int, list[int]]:
    """The numbers of categories in each categorical feature of a table to fit, checked.

    Features whose categories were names are left out.

    Raises
    ------
    ValueError
        If a value is no number of a category.
    """
    found = {
        feature: np.unique(numbers_of(X, None, feature, _name(feature, names)))
        for feature in categories.features
        if categories.encoding is None or categories.encoding.categories(feature) is None
    }
    return {feature: own[own != NO_CATEGORY].tolist() for feature, own in found.items()}


def warn_of_unseen_numbers(
    X: Array, known: Mapping[int, Sequence[int]], names: Sequence[str] | None
) -> None:
    """Warn of values of categorical features in watched rows that are no categories of X."""
    for feature, unseen in unseen_numbers(X, known).items():
        name = _name(feature, names) or f"column {feature}"
        warnings.warn(f"X_val: {unseen_text(name, unseen)}", stacklevel=caller_level())


def _name(feature: int, names: Sequence[str] | None) -> str | None:
    return None if names is None else names[feature]


def refuse_other_categories(asked: Any, earlier: Categories) -> None:
    """Refuse a warm start with other categorical features.

    Raises
    ------
    ValueError
    """
    if not np.array_equal(np.asarray(asked), np.asarray(earlier.asked)):
        raise ValueError(
            f"warm_start=True goes on with categorical_features={earlier.asked!r}; got {asked!r}. "
            "Keep it as it was, or fit anew with warm_start=False."
        )


def refuse_sparse_categories(X: Array, categories: Categories, names: Sequence[str] | None) -> None:
    """Refuse categorical features of a sparse table.

    Raises
    ------
    ValueError
    """
    if categories.features and arrays.is_sparse(X):
        first = categories.features[0]
        raise ValueError(
            f"categorical_features names {quoted(first if names is None else names[first])}, but X "
            "is sparse. Encode categories with sklearn.preprocessing.OneHotEncoder, or pass a "
            "dense table: X.toarray()."
        )


def refuse_constrained_categories(settings: Settings) -> None:
    """Refuse a monotone constraint on a categorical feature, as scikit-learn does.

    Raises
    ------
    ValueError
    """
    monotone = settings.votes.monotone or ()
    both = [feature for feature in settings.categorical if monotone and monotone[feature]]
    if both:
        raise ValueError(
            f"Categorical features cannot have monotonic constraints: feature {both[0]} is "
            f"categorical, and monotonic_cst is {monotone[both[0]]} for it. Make that 0, or take "
            "the feature out of categorical_features."
        )


def is_by_type(categorical_features: Any) -> bool:
    """Whether the types of columns say which are categorical."""
    return isinstance(categorical_features, str) and categorical_features == "from_dtype"


def is_of_categories(column: Column) -> bool:
    """Whether a column is text, or has the frame's own type for categories."""
    return column.kind == "text" or getattr(column, "is_category", False)
