"""Categorical features, whose values are numbers of categories: their names, votes and rows.

In pictures they look like a category whose values are features of their own (`columns.Category`):
there is a bar for each value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpustump.learners.step_table import CategoryTable
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.plots import inputs
from gpustump.plots.columns import CategoryRows, CategoryVotes


def value_name(names: Mapping[int, str], value: float) -> str:
    """The name of a feature's value."""
    if np.isnan(value) or value < 0:
        return "missing"
    return names.get(int(value), "(other)") if value.is_integer() else "(other)"


def votes_of(model: StumpEnsemble, feature: int, label: Label | None) -> CategoryVotes:
    """What a categorical feature adds to the score of a class."""
    table = model.shape_function(feature, label=label)
    assert isinstance(table, CategoryTable)
    missing = float(table.missing)
    # An unknown category counts as a missing value.
    deviations = None if table.bags is None else np.append(table.deviations, table.deviations[-1])
    return CategoryVotes(table.values, missing, missing, deviations)


def rows_of(samples: inputs.Samples, feature: int, names: Mapping[int, str]) -> CategoryRows:
    """The share of the rows with each category."""
    column, weights = inputs.column_of(samples.X, feature), samples.weights
    is_missing = np.isnan(column) | (column < 0)
    is_other = ~is_missing & ~np.isin(column, list(names))
    shares = np.asarray([weights.share(column == number) for number in names])
    return CategoryRows(shares, weights.share(is_other), weights.share(is_missing))
