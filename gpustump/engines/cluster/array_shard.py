"""A shard on arrays of any library: every feature is sorted, so any range of keys is a slice.

It needs no compiled kernel, and runs where its arrays are: on the CPU with NumPy, on a GPU with
CuPy. The losses are the reference's. The sums over a slice are differences of running sums, which
take as long after any step, so all of them are added up in every round.
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
    Cells,
    Coded,
    Looked,
    Majority,
    Ranges,
    Run,
    Tally,
    bin_planes_of,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Step
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.integer_weights import scaled
from gpustump.engines.objective import Objective
from gpustump.engines.reference import table as reference
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
    _objective: Objective

    def __init__(self, samples: Samples, xp: Any = np) -> None:
        self.samples, self._xp = samples, xp
        self._keys: list[np.ndarray] = []

    def code(self, cuts: list[Cuts], categorical: Sequence[int] = ()) -> Coded:
        """Sort all rows, and find where the cuts fall in each feature's sorted keys."""
        samples = self.samples
        given = samples.values_of(slice(None))
        values = self._xp.permute_dims(self._xp.asarray(given), (1, 0))
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
            edges = np.searchsorted(keys, own.keys, side="right")
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
        counts = None if self._columns is None else self._columns.counts
        return Coded(sizes, lows, highs, counts, follows_steps=False)

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.objective, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        with arrays.computing_on(self._table.X):
            own = self._xp.asarray(labels), self._xp.asarray(units)
            self._state = ArrayState(self._table, *own, run.objective)
            self._objective = run.objective
            return self._tally()

    def advance(self, step: Step, majority: Majority | None = None) -> Tally:
        """Follow a step."""
        assert majority is None
        with arrays.computing_on(self._table.X):
            self._state.advance(step)
            return self._tally()

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges, from running sums over the sorted samples."""
        with arrays.computing_on(self._table.X):
            parts = [self._cells_of(r, *own) for r, own in enumerate(zip(*ranges[:5], strict=True))]
        return Cells(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """The sums over the bins of some features, and over parts of bins."""
        with arrays.computing_on(self._table.X):
            found = self._sums_of(features.tolist())
        return found, self.cells(ranges) if len(ranges.low) else None

    def region_sums(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The sums over the regions of each of several hypotheses."""
        with arrays.computing_on(self._table.X):
            return np.stack([self._state.region_sums(own) for own in hypotheses])

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._state.smallest_weight()

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        found: np.ndarray = arrays.to_host(self._state.weights)
        return found

    def _tally(self) -> Tally:
        totals = self._state.integers().totals
        numbers = [part for own in totals for part in own]
        numbers.append(self._state.totals.error)
        bins = self._sums_of(range(len(self._edges)))
        by_category = None
        if self._columns is not None:
            by_category = self._state.category_sums(self._columns)
        return Tally(np.asarray(numbers, dtype=np.int64), bins, by_category)

    def _sums_of(self, features: Sequence[int]) -> np.ndarray:
        """The sums over the bins of some features."""
        by_label = bin_planes_of(self._objective) == 4
        bins = [self._sums_at(j, self._edges[j], by_label=by_label) for j in features]
        return np.concatenate(bins, axis=1)

    def _sums_at(self, feature: int, edges: np.ndarray, *, by_label: bool) -> np.ndarray:
        """The sums of integers between sorted positions of a feature, (n_planes, n_edges - 1)."""
        block, row = self._table.row_of(feature)
        xp, start, end = self._xp, int(edges[0]), int(edges[-1])
        planes = self._planes(block.order[row, start:end], by_label=by_label)
        places = xp.asarray(edges - start)
        sums = [
            xp.take(xp.cumulative_sum(plane, include_initial=True), places, axis=0)
            for plane in planes
        ]
        found: np.ndarray = np.diff(arrays.to_host(xp.stack(sums)), axis=1)
        return found

    def _planes(self, samples: Array, *, by_label: bool) -> list[Array]:
        """The integers of some samples, in planes."""
        xp, planes = self._xp, list[Array]()
        for own in self._state.integers().outputs:
            gradient = xp.take(own.gradient, samples, axis=0)
            planes += [xp.where(gradient > 0, gradient, 0), xp.where(gradient < 0, -gradient, 0)]
            if own.hessian is not None:
                hessian = xp.take(own.hessian, samples, axis=0)
                of_both = [xp.where(gradient > 0, hessian, 0), xp.where(gradient < 0, hessian, 0)]
                planes += of_both if by_label else [hessian]
        return planes

    def _cells_of(
        self, number: int, feature: int, bin_: int, low: int, high: int, shift: int
    ) -> tuple[np.ndarray, ...]:
        """The cells of one range, as the fields of `Cells`."""
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
            self._sums_at(feature, start + ends, by_label=False),
        )
