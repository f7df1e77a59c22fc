"""A shard that computes with the CUDA kernels: rows are coded and added up as on one GPU.

The host adds up the shards' sums and searches them, so of the CUDA engine's kernels those that code
a table, follow a step and add up histograms are used, and one more that answers questions about
parts of bins. All sums over bins are sent in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import DeviceError
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.key_ranges import Asked, Places, cells_of
from gpustump.engines.cluster.questions import (
    NO_KEYS,
    Cells,
    Coded,
    Looked,
    Ranges,
    Run,
    Tally,
    bin_planes_of,
    planes_of,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Resources, Step
from gpustump.engines.cpu.histogram.estimates import Move
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.cuda import table
from gpustump.engines.cuda.device import (
    THREADS,
    CudaDevice,
    OutOfDeviceMemoryError,
    blocks_for,
)
from gpustump.engines.cuda.layout import CELL_SUMS, N_CODES, NO_CODE, SUMS, read, record
from gpustump.engines.cuda.losses import LossPass
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.engines.cuda.state import added_up, pass_of, write_step
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import UpdatePass, no_sums
from gpustump.engines.integer_weights import scaled
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

_STAGED = 2**26
"""Bytes of the columns that are copied to the device at a time, if it is several."""


class CudaShard:
    """Some rows of a table; see `questions.Shard`.

    Parameters
    ----------
    samples : Samples
        At least one.
    device : CudaDevice
    n_threads : int
        Threads that copy values to it.
    """

    _table: CudaTable
    _columns: CategoryColumns | None
    _places: np.ndarray  # (n_slots,) of int64: each slot among the codes of all features
    _objective: Objective
    _pass: Any  # UpdatePass or LossPass; None between two runs
    _smallest: int
    _integers: Array | None  # of the present round, once they are asked for

    def __init__(self, samples: Samples, device: CudaDevice, n_threads: int = 1) -> None:
        self.samples, self._device, self._n_threads = samples, device, n_threads

    def code(self, cuts: list[Cuts], categorical: Sequence[int] = ()) -> Coded:
        """Sort and code all rows."""
        samples, device = self.samples, self._device
        largest = [own.keys for own in cuts]
        assert max(map(len, largest)) < NO_CODE  # a byte holds the number of a bin
        try:
            with device.active():
                X = self._values().T
        except OutOfDeviceMemoryError as error:
            raise DeviceError(
                f"{device.name} has no room for the values of {len(samples)} rows: {error}. Take "
                "more workers, or device='cpu'."
            ) from error
        own = table.prepare(X, None, device, Resources(), categorical=categorical, largest=largest)
        self._table, self._columns = own, samples.categories(categorical)
        slots = [np.append(np.arange(len(keys) + 1), NO_CODE) for keys in largest]
        feature = np.repeat(np.arange(len(slots)), [len(codes) for codes in slots])
        self._places = feature * N_CODES + np.concatenate(slots)
        size = own.bins.records["n_inside"].copy()
        has_keys = (size > 0) & ~np.isnan(own.bins.low)
        low, high = (
            np.where(has_keys, arrays.order_keys(values.astype(X.dtype)).astype(np.int64), nothing)
            for values, nothing in zip((own.bins.low, own.bins.high), NO_KEYS, strict=True)
        )
        counts = None if self._columns is None else self._columns.counts
        return Coded(size, low, high, counts, follows_steps=False)

    def _values(self) -> Array:
        """The values on the device, (n_features, n_samples)."""
        values = self.samples.values
        given = SourceTable.of(values.T, self.samples.rows, self._device, self._n_threads)
        found = self._device.xp.empty((len(values), len(self.samples)), dtype=values.dtype)
        for own, column in zip(found, given.columns(range(len(values)), _STAGED), strict=True):
            own[:] = column
        return found

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.objective, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        self._objective = run.objective
        self._pass = self._integers = None  # first: both runs may not fit

        def made() -> UpdatePass | LossPass:
            array = self._device.array
            return pass_of(self._table, array(labels), array(units), run.objective)

        self._pass = self._table.orders.making_room(made)
        with self._device.active():
            self._pass.queue_beginning()
            return self._tally()

    def advance(self, step: Step, move: Move | None = None) -> Tally:
        """Follow a step."""
        assert move is None
        if step.cut is not None and step.cut.position is not None:
            step = replace(step, cut=None)  # its position is one among the samples of all shards
        with self._device.active():
            write_step(self._table, self._pass, step)
            self._pass.queue()
            return self._tally()

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges, from the samples of the bins they lie in."""
        asked, n_planes = Asked.of(ranges), planes_of(self._objective)

        def add(places: Places, sums: np.ndarray) -> None:
            self._add_cells(asked, places, sums)

        return cells_of(asked.ranges, ranges.size, n_planes, add)

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """Nobody asks: shards that do not follow steps send all sums in every round."""
        raise NotImplementedError

    def region_sums(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The sums over the regions of each of several hypotheses."""
        return np.stack([added_up(self._table, self._pass, own) for own in hypotheses])

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._smallest

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        with self._device.active():
            found: np.ndarray = arrays.to_host(self._pass.weights)
        return found

    def _tally(self) -> Tally:
        """Wait for a round's sums."""
        objective, self._integers = self._objective, None
        sums = read(arrays.to_host(self._pass.sums).copy(), SUMS)[0]
        self._pass.sums[...] = no_sums(self._device)
        self._smallest = int(sums["smallest"])
        by_label = arrays.to_host(self._pass.histograms.sums)
        n_features = self._table.n_features
        by_label = by_label.reshape(objective.n_outputs, -1, n_features, 2, N_CODES)
        planes, numbers, by_category = list[np.ndarray](), list[int](), list[np.ndarray]()
        for own in by_label:
            negative, positive = own[0, :, 0], own[0, :, 1]
            both = positive - negative, own[-1].sum(axis=1)
            numbers += [int(part[0].sum()) for part in both]
            by_category.append(np.stack([part[list(self._table.categories)] for part in both]))
            planes += [positive, negative]
            if objective.has_hessians:
                is_apart = bin_planes_of(objective) == 4
                planes += [own[1, :, 1], own[1, :, 0]] if is_apart else [both[1]]
        bins = self._in_slots(np.stack(planes))
        numbers.append(int(sums["error"]))
        categories = None
        if self._columns is not None:
            n_numbers = self._columns.n_numbers
            codes = np.append(np.arange(n_numbers - 1), NO_CODE)
            categories = np.stack(by_category)[..., codes].transpose(2, 0, 1, 3)
        return Tally(np.asarray(numbers, dtype=np.int64), bins, categories)

    def _in_slots(self, planes: np.ndarray) -> np.ndarray:
        """Sums by code, (n_planes, n_features, N_CODES), as those over slots. The values of
        categorical features, which have no bins, count as missing."""
        categorical = list(self._table.categories)
        total = planes[:, categorical].sum(axis=2)
        planes[:, categorical] = 0
        planes[:, categorical, NO_CODE] = total
        return np.take(planes.reshape(len(planes), -1), self._places, axis=1)

    def _all_integers(self) -> Array:
        """Gradients and, under a loss that has them, Hessians: (n_outputs, n_kinds, n_samples)."""
        objective, n_kinds = self._objective, 2 if self._objective.has_hessians else 1
        shape = objective.n_outputs, n_kinds, self._table.n_samples
        found = self._device.xp.empty(shape, dtype=np.int64)
        for output, own in enumerate(self._pass.integers()):
            for kind in range(n_kinds):
                found[output, kind] = own[kind]
        return found

    def _add_cells(self, asked: Asked, places: Places, sums: np.ndarray) -> None:
        """Put the samples of bins into places, and add up their integers."""
        bins, orders = self._table.bins, self._table.orders
        slots = bins.features["first"][asked.feature] + asked.bin
        offset, size = (bins.records[name][slots] for name in ("offset", "n_inside"))
        first = asked.ranges.first
        about = np.stack([asked.feature, offset, size, first[:-1], first[1:]])
        waiting = size > 0
        with self._device.active():
            ranges = self._device.array(np.stack([*asked.ranges[1:], places.next]))
            found = self._device.array(np.vstack([*places[1:], sums]))
            if self._integers is None:
                self._integers = orders.making_room(self._all_integers)
            while waiting.any():
                orders.provide(np.unique(asked.feature[waiting]).tolist())
                here = waiting & [orders.hold(feature) for feature in asked.feature.tolist()]
                own = np.ascontiguousarray(about[:, here])
                own[2] = np.cumsum(own[2])
                n = int(own[2, -1])
                own = self._device.array(own)
                cells = record(
                    CELL_SUMS,
                    bins=self._device.address(own),
                    ranges=self._device.address(ranges),
                    places=self._device.address(found),
                    integers=self._device.address(self._integers),
                    n_bins=own.shape[1],
                    n_ranges=ranges.shape[1],
                    n_places=found.shape[1],
                    n_samples=self._table.n_samples,
                    n_outputs=len(self._integers),
                    n_kinds=self._integers.shape[1],
                )
                self._device.launch(
                    "add_cells", blocks_for(n, self._device), THREADS, cells,
                    self._table.source.record(), orders.addresses, n,
                )  # fmt: skip
                waiting &= ~here
            numbers = arrays.to_host(found)
        places.size[:], places.low[:], places.high[:] = numbers[:3]
        sums[:] = numbers[3:]
