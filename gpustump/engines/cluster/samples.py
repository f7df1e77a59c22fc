"""The samples of a shard: values by feature, classes and weights, and answers about weights.

Several trainings, such as bags, may share the values, each with some of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_table import hidden
from gpustump.engines.integer_weights import scaled, scaled_total
from gpustump.engines.objective import Objective


@dataclass(frozen=True)
class Samples:
    """Some rows of a table.

    Attributes
    ----------
    values : ndarray (n_features, n_rows) of float32 or float64
        One feature after the other; it may be an array in a mapped file.
    classes : ndarray (n_samples,) of int64
        The number of each sample's class. Of a quantity each sample's target, float64.
    weights : ndarray (n_samples,) of float64
        Positive.
    rows : ndarray (n_samples,) of int64, or None
        The rows that are samples, in increasing order; None for all.
    """

    values: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def taken(self, index: np.ndarray) -> Samples:
        """The samples at `index` (n_taken,) of int64, increasing; the values are shared."""
        if len(index) == len(self):
            return self
        rows = index if self.rows is None else self.rows[index]
        return Samples(self.values, self.classes[index], self.weights[index], rows)

    def values_of(self, features: int | slice) -> np.ndarray:
        """The values of a feature, (n_samples,), or of several."""
        found = self.values[features]
        return found if self.rows is None else found[..., self.rows]

    def largest_weight(self) -> float:
        """The largest weight; 0 without samples."""
        return float(self.weights.max(initial=0.0))

    def scaled_total(self, exponent: int) -> int:
        """See `integer_weights.scaled_total`."""
        return scaled_total(self.weights, exponent)

    def class_weights(self, exponent: int, n_classes: int) -> list[int]:
        """For each class the integer weight of its samples, in units of 2**-exponent."""
        found = np.zeros(n_classes, dtype=np.int64)
        np.add.at(found, self.classes, scaled(self.weights, exponent).astype(np.int64))
        return [int(own) for own in found]

    def labels(self, objective: Objective, positive: int) -> np.ndarray:
        """The labels as `contract.Engine.start` takes them; see `questions.Run`."""
        if objective.n_outputs > 1 or objective.is_of_quantity:
            return self.classes
        signs: np.ndarray = np.where(self.classes == positive, 1.0, -1.0)
        return signs

    def categories(self, features: Sequence[int]) -> CategoryColumns | None:
        """The category numbers of some features; None without features."""
        return CategoryColumns.of(self.values.T, self.rows, features) if features else None

    def drawn_keys(self, share: float, categorical: Sequence[int] = ()) -> np.ndarray:
        """The keys (n_drawn, n_features) of about this share of the samples.

        One sample is drawn from each of n_drawn equal stretches, with the same seed in every
        process. Categorical features have the key of missing values.
        """
        n_drawn = min(len(self), int(np.ceil(share * len(self))))
        stretch = len(self) / max(1, n_drawn)
        drawn = np.random.default_rng(0).random(n_drawn)
        rows = ((np.arange(n_drawn) + drawn) * stretch).astype(np.int64)
        rows = rows if self.rows is None else self.rows[rows]
        values = hidden(np.ascontiguousarray(self.values[:, rows].T), 0, categorical)
        keys: np.ndarray = arrays.order_keys(values)
        return keys
