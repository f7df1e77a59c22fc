"""Categorical features, whose values are numbers of categories: their names, votes and rows.

In pictures they look like a category whose values are features of their own (`columns.Category`):
there is a bar for each value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpustump.learners.kinds import OfCategories
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.plots import inputs
from gpustump.plots.columns import CategoryRows, CategoryVotes


def categories_of(model: StumpEnsemble, feature: int) -> Mapping[int, str] | None:
    """The names of a categorical feature's categories by their numbers; None for other features.

    If the model has no names, the categories that occur in its stumps are named by their numbers.
    """
    names = model.encoding.categories(feature)
    if names is not None:
        return dict(enumerate(names)) or None
    known = {
        number
        for member in model.members
        for split in member.hypotheses
        if split.feature == feature and isinstance(split, OfCategories)
        for number in (*split.left, *split.right)
    }
    return {number: str(number) for number in sorted(known)} or None


def value_name(names: Mapping[int, str], value: float) -> str:
    """The name of a feature's value."""
    if np.isnan(value) or value < 0:
        return "missing"
    return names.get(int(value), "(other)")


def votes_of(
    model: StumpEnsemble, feature: int, names: Mapping[int, str], label: Label | None
) -> CategoryVotes:
    """What the feature adds to the score of a class."""
    table = model.shape_function(feature, label=label)
    numbers = np.asarray(list(names), dtype=np.float64)
    deviations = None
    if table.bags is not None:  # the last two are of unknown categories and of missing values
        deviations = table.deviations[np.append(table.steps_of(numbers), [-1, -1])]
    missing = float(table.missing)
    return CategoryVotes(table.look_up(numbers), missing, missing, deviations)


def rows_of(samples: inputs.Samples, feature: int, names: Mapping[int, str]) -> CategoryRows:
    """The share of the rows with each category."""
    column, weights = inputs.column_of(samples.X, feature), samples.weights
    is_missing = np.isnan(column) | (column < 0)
    is_other = ~is_missing & ~np.isin(column, list(names))
    shares = np.asarray([weights.share(column == number) for number in names])
    return CategoryRows(shares, weights.share(is_other), weights.share(is_missing))
