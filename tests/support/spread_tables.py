"""A table whose rows are spread over shards in this process, started as any other table is.

Shards know their classes and weights before they code their rows, so they are made anew for every
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.bins import code_all
from gpustump.engines.cluster.questions import Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.cluster.shards import answer, shard_of
from gpustump.engines.cluster.state import ClusterState, start
from gpustump.engines.cluster.table import ClusterTable, ValueTypes
from gpustump.engines.cpu.table.source_table import codable
from gpustump.engines.objective import Objective

Rows = np.ndarray | None


@dataclass(frozen=True)
class Spread:
    """How rows are spread."""

    devices: Sequence[str] = ("cpu",)
    """Where each shard computes; see `shards.shard_of`. Those without rows are left out."""
    max_cuts: int | None = None
    n_threads: int = 1
    """Of each shard."""
    lone: int | None = None
    """The shard that holds one row; the others share the rest at random."""
    shares_values: bool = False
    """Whether all shards hold the values of all rows."""

    def rows(self, n_samples: int) -> list[np.ndarray]:
        """The rows of each shard, which are in no order of the table."""
        n_shards = len(self.devices)
        owner = np.random.default_rng(n_samples).integers(0, n_shards, size=n_samples)
        if self.lone is not None:
            owner[owner == self.lone] = (self.lone + 1) % n_shards
            owner[n_samples // 2] = self.lone
        return [np.flatnonzero(owner == shard)[::-1] for shard in range(n_shards)]


class Together:
    """Shards in this process, asked one after the other; see `shards.Shards`."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = tuple(shards)

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answers of all shards, in order."""
        return [answer(shard, method, arguments) for shard in self._shards]


class SpreadTable:
    """See `contract.PreparedTable`; the arguments are those of `contract.Task`."""

    table: ClusterTable

    def __init__(
        self, X: np.ndarray, rows: Rows, spread: Spread, categorical: tuple[int, ...] = ()
    ) -> None:
        self.X, self.spread, self._categorical = X, spread, categorical
        own = X if rows is None else X[rows]
        self._values = codable(own)
        self._types = ValueTypes(
            str(self._values.dtype), arrays.working_dtype(arrays.dtype_name(own))
        )
        self.n_samples, self.n_features = own.shape
        self.n_missing = np.isnan(self._values).sum(axis=0)

    def start(
        self,
        labels: np.ndarray,
        sample_weight: np.ndarray,
        objective: Objective,
        beginning: None = None,
    ) -> InOrder:
        """Begin a run on new shards, which take no known scores."""
        spread = self.spread
        labels, sample_weight = arrays.to_host(labels), arrays.to_host(sample_weight)
        classes = labels
        if objective.n_outputs == 1 and not objective.is_of_quantity:
            classes = (labels > 0).astype(np.int64)
        every = zip(spread.rows(self.n_samples), spread.devices, strict=True)
        parts = [(own, device) for own, device in every if len(own)]
        shards = [
            shard_of(
                self.samples(own, classes, sample_weight),
                device,
                spread.n_threads,
                self._categorical,
            )
            for own, device in parts
        ]
        how = {"max_cuts": spread.max_cuts, "categorical": self._categorical}
        together = Together(shards)
        bins = code_all(together, self.n_samples, objective, **how)
        self.table = ClusterTable(self.X, together, bins, self._types)
        order = np.concatenate([own for own, _ in parts])
        return InOrder(self.table, start(self.table, 1, None, objective), order)

    def samples(self, rows: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Samples:
        """Some of the rows, in arrays that cannot be written to, like those of a message."""
        if self.spread.shares_values:
            return Samples(np.ascontiguousarray(self._values.T), classes, weights).taken(rows)
        own = (np.ascontiguousarray(self._values[rows].T), classes[rows], weights[rows])
        for part in own:
            part.flags.writeable = False
        return Samples(*own)

    def threshold(self, feature: int, position: int) -> float:
        return self.table.threshold(feature, position)


class InOrder:
    """A run whose weights are in the order of the table's rows; see `contract.State`."""

    def __init__(self, table: ClusterTable, state: ClusterState, order: np.ndarray) -> None:
        self._table, self.state, self._order = table, state, order

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    @property
    def weights(self) -> Any:
        spread = self.state.weights
        found = np.empty_like(spread)
        found[self._order] = spread
        return found

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        known = self._table.bins.categories
        assert known is not None
        assert known.features == columns.features
        assert np.array_equal(known.counts, columns.counts)
        return self.state.category_sums(columns)
