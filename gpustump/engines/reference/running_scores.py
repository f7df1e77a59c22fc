"""Scores after each of a model's terms, in any array library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.learners.hypothesis import Partition, by_region


class RunningScores:
    """The scores of a table's rows; see `engines.running_scores.RunningScores`."""

    def __init__(self, X: Array, rows: Array | None, start: Sequence[float] | Array) -> None:
        self._X, self._rows = X, rows
        n_rows = X.shape[0] if rows is None else rows.shape[0]
        xp, device = arrays.namespace_of(X), arrays.device_of(X)
        with arrays.computing_on(X):
            if arrays.is_array(start):
                columns: Array = start
                self._scores = [columns[:, output] for output in range(columns.shape[1])]
                return
            self._scores = [xp.full(n_rows, own, dtype=xp.float64, device=device) for own in start]

    def add(self, partition: Partition, votes: np.ndarray, first_output: int = 0) -> None:
        """Add a term's votes."""
        with arrays.computing_on(self._X):
            column = arrays.as_working(self._X[:, partition.feature])
            values = arrays.picked(column, self._rows)
            for output, own in enumerate(votes.T, start=first_output):
                if own.any():
                    voted = by_region(partition, values, own.tolist())
                    self._scores[output] = self._scores[output] + voted

    def now(self) -> Array:
        """The scores so far."""
        return self.copy()

    def on_host(self) -> None:
        """None: no kernels add to these scores."""

    def copy(self) -> Array:
        """The scores so far, in an array of their own."""
        with arrays.computing_on(self._X):
            return arrays.namespace_of(self._X).stack(self._scores, axis=1)
