"""A shard on arrays of any library: every feature is sorted, so any range of keys is a slice.

It needs no compiled kernel, and runs where its arrays are: on a GPU with CuPy, on the CPU with
NumPy. The losses are the reference's. The sums over a slice are differences of running sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.questions import (
    BY_VALUE,
    NO_KEYS,
    Coded,
    Ranges,
    Run,
    Tally,
    Units,
    counts_of,
    no_sums_by_category,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Search, Step
from gpustump.engines.integer_weights import scaled
from gpustump.engines.reference import table as reference
from gpustump.engines.reference.integers import second_of
from gpustump.engines.reference.state import ArrayState
from gpustump.engines.reference.table import ArrayTable
from gpustump.learners.hypothesis import Partition


class ArrayShard:
    """Some rows of a table; see `questions.Shard`.

    Parameters
    ----------
    samples : Samples
        At least one.
    xp : module, optional
        The array library, as array_api_compat names it; NumPy by default.
    """

    _table: ArrayTable
    _columns: CategoryColumns | None
    _state: ArrayState
    _search: Search

    def __init__(self, samples: Samples, xp: Any = np) -> None:
        self.samples, self._xp = samples, xp
        self._keys: list[np.ndarray] = []

    def code(
        self, cuts: list[np.ndarray], is_crowded: list[bool], categorical: Sequence[int] = ()
    ) -> Coded:
        """Sort all rows, and find where the cuts fall in each feature's sorted keys."""
        samples = self.samples
        given = samples.values_of(slice(None))
        values = self._xp.permute_dims(self._as_array(given), (1, 0))
        self._table = reference.prepare(values, categorical=categorical)
        self._columns = samples.categories(categorical)
        missing = arrays.missing_key(str(given.dtype))
        self._edges, size, low, high = [], [], [], []
        self._keys = [
            np.sort(arrays.order_keys(own)).astype(np.int64)
            if feature not in categorical
            else np.full(len(samples), missing, dtype=np.int64)
            for feature, own in enumerate(given)
        ]
        for keys, own in zip(self._keys, cuts, strict=True):
            edges = np.searchsorted(keys, own, side="right")
            n_present = np.searchsorted(keys, missing)
            edges = np.concatenate([[0], edges, [n_present, len(keys)]])
            self._edges.append(edges)
            size.append(np.diff(edges))
            has_keys = size[-1] > 0
            has_keys[-1] = False  # what is missing
            within = np.minimum(edges[:-1], len(keys) - 1)
            low.append(np.where(has_keys, keys[within], NO_KEYS[0]))
            high.append(np.where(has_keys, keys[edges[1:] - 1], NO_KEYS[1]))
        sizes, lows, highs = map(np.concatenate, (size, low, high))
        return Coded(sizes, lows, highs, counts_of(self._columns))

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.search.n_outputs, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        with arrays.computing_on(self._table.X):
            self._state = ArrayState(
                self._table, self._as_array(labels), self._as_array(units), run.search
            )
            self._search = run.search
            return self._tally()

    def advance(self, step: Step) -> Tally:
        """Follow a step."""
        with arrays.computing_on(self._table.X):
            self._state.advance(step)
            return self._tally()

    def units(self, ranges: Ranges) -> Units:
        """The sums over the units of ranges, from running sums over the sorted samples."""
        with arrays.computing_on(self._table.X):
            parts = [self._units_of(r, *own) for r, own in enumerate(zip(*ranges, strict=True))]
        return Units(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """The sums over the regions of a hypothesis."""
        with arrays.computing_on(self._table.X):
            return np.asarray(self._state.region_sums(hypothesis), dtype=np.int64)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses, (n, n_regions, n_outputs, 2) of int64."""
        return np.stack([self.region_sums(own) for own in hypotheses])

    def smallest_weight(self) -> int:
        """The smallest second integer."""
        return self._state.smallest_weight()

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        found: np.ndarray = arrays.to_host(self._state.weights)
        return found

    def _as_array(self, x: np.ndarray) -> Array:
        return self._xp.asarray(x)

    def _tally(self) -> Tally:
        totals = self._state.integers().totals
        numbers = [part for own in totals for part in own]
        numbers.append(self._state.totals.misclassified)
        bins = [self._sums_at(j, edges) for j, edges in enumerate(self._edges)]
        by_category = no_sums_by_category(self._search)
        if self._columns is not None:
            by_category = self._state.category_sums(self._columns)
        return Tally(np.asarray(numbers, dtype=np.int64), np.concatenate(bins, axis=1), by_category)

    def _sums_at(self, feature: int, edges: np.ndarray) -> np.ndarray:
        """The sums between sorted positions of a feature: (n_planes, n_edges - 1) of int64.

        The planes are those of `questions.planes_of`.
        """
        block, row = self._table.row_of(feature)
        xp, start, end = self._xp, int(edges[0]), int(edges[-1])
        order = block.order[row, start:end]
        places = xp.asarray(edges - start)
        planes = []
        for own in self._state.integers().outputs:
            first = xp.take(own.first, order, axis=0)
            nothing = xp.zeros_like(first)
            planes += [xp.where(first > 0, first, nothing), xp.where(first < 0, -first, nothing)]
            if own.second is not None:
                planes.append(xp.take(second_of(own), order, axis=0))
        sums = [
            xp.take(xp.cumulative_sum(plane, include_initial=True), places, axis=0)
            for plane in planes
        ]
        found: np.ndarray = np.diff(arrays.to_host(xp.stack(sums)), axis=1)
        return found

    def _units_of(
        self, number: int, feature: int, bin_: int, low: int, high: int, shift: int
    ) -> tuple[np.ndarray, ...]:
        """The units of one range, as the fields of `Units`."""
        keys = self._keys[feature]
        start, end = np.searchsorted(keys, [low, high + 1])
        own = keys[start:end]
        # Keys may be further apart than int64 holds; their differences are unsigned.
        offset = (own - low).view(np.uint64)
        if shift != BY_VALUE:
            offset >>= np.uint64(shift)
        offsets = offset.view(np.int64)
        is_new = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 1))
        ends = np.append(is_new, len(own))
        return (
            np.full(len(is_new), number),
            offsets[is_new],
            np.diff(ends),
            own[is_new],
            own[ends[1:] - 1],
            self._sums_at(feature, start + ends),
        )
