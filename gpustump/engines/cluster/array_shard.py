"""A shard on arrays of any library: every feature is sorted, so any range of keys is a slice.

It needs no compiled kernel, and runs where its arrays are: on a GPU with CuPy, on the CPU with
NumPy. The losses are the reference's. The sums over a slice are differences of running sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.questions import (
    BY_VALUE,
    NO_KEYS,
    Cells,
    Changes,
    Coded,
    Looked,
    Majority,
    Ranges,
    Run,
    Tally,
    bin_planes_of,
    narrowed,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Step
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import scaled
from gpustump.engines.objective import Objective
from gpustump.engines.reference import table as reference
from gpustump.engines.reference.integers import hessian_of, picked_numbers
from gpustump.engines.reference.state import ArrayState
from gpustump.engines.reference.table import ArrayTable
from gpustump.learners.hypothesis import Partition, regions

Pick = Callable[[Array], Array]
"""Takes the numbers of some samples."""


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
        return Coded(sizes, lows, highs, counts)

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.objective, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        with arrays.computing_on(self._table.X):
            own = self._xp.asarray(labels), self._xp.asarray(units)
            self._state = ArrayState(self._table, *own, run.objective)
            self._objective = run.objective
            return self._tally(self._sums_of(range(len(self._edges))))

    def advance(self, step: Step, majority: Majority | None = None) -> Tally:
        """Follow a step."""
        with arrays.computing_on(self._table.X):
            before = self._state.integers().outputs
            self._state.advance(step)
            if majority is None:
                return self._tally(self._sums_of(range(len(self._edges))))
            return self._tally(self._changes(step, majority, before))

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges, from running sums over the sorted samples."""
        with arrays.computing_on(self._table.X):
            parts = [self._cells_of(r, *own) for r, own in enumerate(zip(*ranges, strict=True))]
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

    def _tally(self, bins: np.ndarray | Changes) -> Tally:
        totals = self._state.integers().totals
        numbers = [part for own in totals for part in own]
        numbers.append(self._state.totals.error)
        by_category = None
        if self._columns is not None:
            by_category = self._state.category_sums(self._columns)
        return Tally(np.asarray(numbers, dtype=np.int64), bins, by_category)

    def _sums_of(self, features: Sequence[int]) -> np.ndarray:
        """The sums over the bins of some features."""
        by_label = bin_planes_of(self._objective) == 4
        bins = [
            self._sums_at(j, self._edges[j], lambda pick: self._planes(pick, by_label=by_label))
            for j in features
        ]
        return np.concatenate(bins, axis=1)

    def _changes(self, step: Step, majority: Majority, before: Sequence[Sums]) -> Changes:
        """What a step adds to the sums over bins beside what it would do to the majority.

        Each sample outside the majority adds what its integers are now, less what they would be.
        """
        region = regions(step.hypothesis, self._table.values(step.hypothesis.feature))
        planes: list[Array] = []
        pairs = zip(before, self._state.integers().outputs, strict=True)
        for output, (old, new) in enumerate(pairs):
            own = slice(2 * output, 2 * output + 2)
            moved = majority.factor[own], majority.slope[own]
            planes += self._changed(old, new, region != majority.region, *moved)
        bins = [
            self._sums_at(j, edges, lambda pick: list(map(pick, planes)))
            for j, edges in enumerate(self._edges)
        ]
        n_slots = [len(edges) - 1 for edges in self._edges]
        first = np.cumsum([0, *n_slots[:-1]])
        return narrowed(np.concatenate(bins, axis=1), first)

    def _changed(
        self,
        old: Sums,
        new: Sums,
        is_minority: Array,
        factor: tuple[float, ...],
        slope: tuple[float, ...],
    ) -> list[Array]:
        """The changes of an output's integers, in planes; factors and slopes are the majority's."""
        xp = self._xp
        is_positive = old.gradient > 0
        label = xp.astype(~is_positive, xp.int64)  # positive first
        by = picked_numbers(factor, label)
        size = xp.astype(xp.abs(old.gradient), xp.float64)
        expected = [size * by]
        if old.hessian is not None:
            more = picked_numbers(slope, label)
            hessian = xp.astype(old.hessian, xp.float64)
            spread = hessian - hessian * hessian / size
            expected[0] = expected[0] + hessian * more
            expected.append(hessian + (hessian - 2.0 * spread) * more)
        now = [xp.abs(new.gradient), *([] if new.hessian is None else [new.hessian])]
        planes = []
        for own, ought in zip(now, expected, strict=True):
            change = xp.where(is_minority, own - xp.astype(xp.round(ought), xp.int64), 0)
            planes += [xp.where(is_positive, change, 0), xp.where(is_positive, 0, change)]
        return planes

    def _planes(self, pick: Pick, *, by_label: bool) -> list[Array]:
        """The integers of some samples, in planes."""
        xp, planes = self._xp, list[Array]()
        for own in self._state.integers().outputs:
            gradient = pick(own.gradient)
            nothing = xp.zeros_like(gradient)
            planes += [
                xp.where(gradient > 0, gradient, nothing),
                xp.where(gradient < 0, -gradient, nothing),
            ]
            if own.hessian is not None:
                hessian = pick(hessian_of(own))
                of_both = [xp.where(gradient > 0, hessian, 0), xp.where(gradient < 0, hessian, 0)]
                planes += of_both if by_label else [hessian]
        return planes

    def _sums_at(
        self, feature: int, edges: np.ndarray, planes_of: Callable[[Pick], list[Array]]
    ) -> np.ndarray:
        """The sums of planes between sorted positions of a feature, (n_planes, n_edges - 1)."""
        block, row = self._table.row_of(feature)
        xp, start, end = self._xp, int(edges[0]), int(edges[-1])
        order = block.order[row, start:end]
        places = xp.asarray(edges - start)
        sums = [
            xp.take(xp.cumulative_sum(plane, include_initial=True), places, axis=0)
            for plane in planes_of(lambda numbers: xp.take(numbers, order, axis=0))
        ]
        found: np.ndarray = np.diff(arrays.to_host(xp.stack(sums)), axis=1)
        return found

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
            self._sums_at(feature, start + ends, lambda pick: self._planes(pick, by_label=False)),
        )
