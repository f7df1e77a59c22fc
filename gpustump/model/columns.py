"""The columns of a model's table: a column of text is one thing, whatever features it became.

The command line gives a model a column of text as one feature for each value: 1 where the row has
that value, else 0. Pictures and pages show such a category as one column again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.model.encoding import NUMBERED
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.explanation import categories_of

CATEGORY = "category"
"""The kind of a column that is one feature for each value."""


class Column(NamedTuple):
    """A column that a row has.

    Attributes
    ----------
    name, kind : str
        As `InputColumn` has them; "column 0" and so on if the columns had no names.
    features : tuple of int
        What it became: one feature for each value if the kind is "category", else one.
    values : tuple of str, or None
        The names of its categories; None for numbers, dates and so on.
    numbers : tuple of int
        The number of each category, if one feature holds them.
    """

    name: str
    kind: str
    features: tuple[int, ...]
    values: tuple[str, ...] | None = None
    numbers: tuple[int, ...] = ()

    def probe(self, ends: np.ndarray) -> np.ndarray:
        """The features (n_steps, n_features) of a row on each step: of numbers the steps' ends.

        The last row is that of a missing value, of categories the one before that of others.
        """
        if self.values is None:
            return np.append(ends, np.nan)[:, np.newaxis]
        if self.kind == CATEGORY:
            n_values = len(self.features)
            return np.vstack([np.eye(n_values + 1)[:, :-1], np.full((1, n_values), np.nan)])
        return np.append(np.asarray(self.numbers, np.float64), [np.nan, np.nan])[:, np.newaxis]

    def codes(self, X: np.ndarray) -> np.ndarray:
        """The column's value in each row, (n_rows,), from its features (n_rows, n_features).

        Of categories it is the place in `values`, -1 for others, and NaN for missing ones.
        """
        if self.values is None:
            return X[:, 0]
        held = [1.0] if self.kind == CATEGORY else self.numbers
        is_value = np.asarray(held, dtype=np.float64) == X
        found = np.where(is_value.any(axis=1), is_value.argmax(axis=1), -1.0)
        found[~(X >= 0).any(axis=1)] = np.nan  # a negative number is no category, as NaN is none
        return found

    def steps(self, codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The step of each value, (n_rows,) of int64, in the order of `probe`."""
        if self.values is None:
            return np.searchsorted(ends, codes)  # NaN lies behind all ends
        n_values = len(self.values)
        known = np.where(codes < 0, n_values, codes)
        return np.where(np.isnan(codes), n_values + 1, known).astype(np.int64)


def columns_of(model: StumpEnsemble) -> Iterator[Column]:
    """All columns, in the order of their features."""
    first, encoding = 0, model.encoding
    for own in encoding.columns:
        if own.kind != CATEGORY:
            yield column_at(model, first)
            first += 1
        elif own.values:
            name = own.name if encoding.named else f"column {own.name}"
            features = tuple(range(first, first + len(own.values)))
            yield Column(name, CATEGORY, features, own.values)
            first += len(features)


def column_at(model: StumpEnsemble, feature: int) -> Column:
    """The column of one feature; one value of a column of text is a number."""
    name, names = model.encoding.shown_names[feature], categories_of(model, feature)
    if names is not None:
        return Column(name, NUMBERED, (feature,), tuple(names.values()), tuple(names))
    kind = model.encoding.origin(feature).column.kind
    return Column(name, "number" if kind == CATEGORY else kind, (feature,))
