"""A table prepared for a device: sorted and coded, feature by feature, before the first round.

A feature is sorted whole and cut into bins; every sample is given its bin's number, a byte. The
codes stay on the device if they fit there, and the sorted orders as far as there is room.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.data.parameters import Learner
from gpustump.data.readable import readable_bytes
from gpustump.engines.announcements import announce
from gpustump.engines.cuda import memory
from gpustump.engines.cuda.codes import ResidentCodes, StreamedCodes, write_feature
from gpustump.engines.cuda.device import CudaDevice, OutOfDeviceMemoryError
from gpustump.engines.cuda.layout import BIN, Group, column_bits, groups_of, n_bytes, padded
from gpustump.engines.cuda.orders import Orders
from gpustump.engines.cuda.sorting import MARK, Cuts, cuts_of, sorted_feature
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.learners.thresholds import midpoint

if TYPE_CHECKING:
    from gpustump.engines.cuda.state import CudaState


@dataclass(frozen=True)
class Bins:
    """The bins of all features, numbered through; each feature's are followed by a slot for what is
    missing.

    Attributes
    ----------
    first, n_bins, n_present : ndarray (n_features,) of int64
        A feature's first bin, how many there are, and its samples that are not missing.
    facts : ndarray (n_slots, 4) of int64
        The `Bin` of `search.cu`: the sorted position of its first sample, how many it holds, the
        feature, and whether it holds two values or more.
    low, high : ndarray (n_slots,) of float64
        Its least and largest value; NaN for what is missing.
    """

    first: np.ndarray
    n_bins: np.ndarray
    n_present: np.ndarray
    facts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    _edges: dict[int, list[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, found: Sequence[Cuts], n_samples: int) -> Bins:
        """Those of features in order."""
        n_bins = np.asarray([len(cuts.low) for cuts in found])
        n_present = np.asarray([cuts.ends[-1] for cuts in found])
        first = np.cumsum(n_bins + 1) - (n_bins + 1)
        facts = np.zeros((int(np.sum(n_bins + 1)), BIN), dtype=np.int64)
        low, high = np.full(len(facts), np.nan), np.full(len(facts), np.nan)
        for j, cuts in enumerate(found):
            own = slice(first[j], first[j] + n_bins[j])
            begins, ends = np.append(0, cuts.ends[:-1])[: n_bins[j]], cuts.ends[: n_bins[j]]
            of_feature = np.full(n_bins[j], j)
            facts[own] = np.stack([begins, ends - begins, of_feature, cuts.has_cuts], axis=1)
            facts[first[j] + n_bins[j]] = (n_present[j], n_samples - n_present[j], j, 0)
            low[own], high[own] = cuts.low, cuts.high
        return cls(first, n_bins, n_present, facts, low, high)

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def features(self) -> np.ndarray:
        """The `Feature` of `search.cu`, (n_features, 3)."""
        return np.stack([self.first, self.n_bins, self.n_present], axis=1)

    def at(self, feature: int, position: int) -> tuple[int, int, int]:
        """The bin that holds a sorted position: number, begin and end."""
        edges = self._edges_of(feature)
        bin_ = bisect.bisect_right(edges, position) - 1
        return bin_, edges[bin_], edges[bin_ + 1]

    def _edges_of(self, feature: int) -> list[int]:
        """Where a feature's bins begin, and the end of the last: asked for once or more a round."""
        if feature not in self._edges:
            first = self.first[feature]
            own = self.facts[first : first + self.n_bins[feature] + 1, 0]  # and what is missing
            self._edges[feature] = own.tolist()
        return self._edges[feature]


@dataclass(frozen=True)
class CudaTable:
    """A feature table as byte codes for a device.

    Attributes
    ----------
    table : SourceTable
    groups : tuple of Group
        How features lie side by side in the codes.
    codes : ResidentCodes or StreamedCodes
    orders : Orders
    bins : Bins
    bins_there, features_there : array
        `bins.facts` and `bins.features` on the device.
    note : str or None
        What the user should know about how the memory is used.
    """

    table: SourceTable
    groups: tuple[Group, ...]
    codes: ResidentCodes | StreamedCodes
    orders: Orders
    bins: Bins
    bins_there: Array
    features_there: Array
    note: str | None
    _seen: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> CudaDevice:
        return self.table.device

    @property
    def X(self) -> Array:  # noqa: N802
        """The caller's own table."""
        return self.table.X

    @property
    def n_samples(self) -> int:
        return self.table.n_samples

    @property
    def n_features(self) -> int:
        return self.table.n_features

    def values(self, feature: int) -> Array:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.table.values(feature)

    def start(self, labels: Array, sample_weight: Array, learner: Learner) -> CudaState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        from gpustump.engines.cuda.state import CudaState  # which is made of tables

        return CudaState(self, labels, sample_weight)

    def group_of(self, feature: int) -> tuple[Group, int]:
        """The group that holds a feature, and its place there."""
        at = bisect.bisect_right(self.groups, feature, key=lambda group: group.first) - 1
        return self.groups[at], feature - self.groups[at].first

    def note_values(self, feature: int, position: int, values: np.ndarray) -> None:
        """Remember the threshold of a cut inside a bin, between two values of the table."""
        self._seen[feature, position] = midpoint(*arrays.as_working(values))

    def threshold(self, feature: int, position: int) -> float:
        """The threshold of the cut after a sorted position; see `Columns.threshold`."""
        bins = self.bins
        if position + 1 >= bins.n_present[feature]:
            return math.inf
        bin_, _, end = bins.at(feature, position)
        if position + 1 == end:
            slot = bins.first[feature] + bin_
            dtype = arrays.working_dtype(self.table.dtype)
            return midpoint(*np.asarray([bins.high[slot], bins.low[slot + 1]], dtype))
        if (feature, position) not in self._seen:
            with self.device.active():
                two = self.orders.of(feature)[position : position + 2]
                samples = arrays.to_host(two) & ~MARK
            self.note_values(feature, position, self.table.host_values(feature, samples))
        return self._seen[feature, position]


def prepare(
    X: Array,
    rows: Array | None,
    device: CudaDevice,
    *,
    budget: int | None = None,
    n_jobs: int | None = None,
) -> CudaTable:
    """Sort and code a table.

    Parameters
    ----------
    X : array (n_samples, n_features)
        On the device, or a host array of NumPy, a memory map among them.
    rows : array (n_rows,) of int, or None
        Take only these rows.
    device : CudaDevice
    budget : int, optional
        Bytes of the device's memory that may be used; by default most of what is free.
    n_jobs : int, optional
        Threads that gather the columns of a host table.

    Raises
    ------
    DeviceError
        If its memory is too small.
    """
    with device.active():
        table, free = SourceTable.of(X, rows, device, n_jobs), device.free_bytes()
    budget = min(budget or free, free - free // 10)
    while True:
        plan = memory.plan(table.n_samples, table.n_features, budget, device.name)
        try:
            with device.active():
                return _prepared(table, plan)
        except OutOfDeviceMemoryError:
            budget = budget * 3 // 4  # others use the device too: try with less


def _prepared(table: SourceTable, plan: memory.Plan) -> CudaTable:
    device, n_samples = table.device, padded(table.n_samples)
    groups = groups_of(table.n_features, n_samples, _width_bits(device, n_samples, plan))
    codes: ResidentCodes | StreamedCodes
    if plan.buffer_bytes is None:
        codes, note = ResidentCodes(device, groups, n_samples), None
    else:
        codes = StreamedCodes(device, groups, n_samples, plan.buffer_bytes)
        size = readable_bytes(n_bytes(groups, n_samples))
        note = f"{size} of codes streamed from the host's memory in every round"
        announce(f"the table's codes do not fit into {device.name}: {note}")

    def sort(feature: int) -> Array:
        (column,) = table.columns([feature])
        return sorted_feature(column)[0]

    orders = Orders(device, table.n_features, plan.n_orders, sort)
    found = [
        cuts for group in groups for cuts in _coded(table, group, codes, orders, plan.staged_bytes)
    ]
    orders.publish()
    bins = Bins.of(found, table.n_samples)
    there = device.array(bins.facts), device.array(bins.features)
    return CudaTable(table, groups, codes, orders, bins, *there, note)


def _coded(
    table: SourceTable,
    group: Group,
    codes: ResidentCodes | StreamedCodes,
    orders: Orders,
    staged_bytes: int,
) -> list[Cuts]:
    """Sort a group's features, write their codes, and tell how they were cut."""
    written, found = codes.group(group), []
    features = range(group.first, group.first + group.n_features)
    for feature, column in zip(features, table.columns(features, staged_bytes), strict=True):
        order, keys = sorted_feature(column)
        cuts = cuts_of(keys, arrays.dtype_name(column))
        write_feature(table.device, order, cuts, group, feature - group.first, written)
        orders.offer(feature, order)
        found.append(cuts)
    codes.keep(group, written)
    return found


def _width_bits(device: CudaDevice, n_samples: int, plan: memory.Plan) -> int:
    """How wide groups may be: the table of their sums must fit into shared memory, and a group that
    is to be streamed into the buffer's size while it is written."""
    bits = column_bits(device)
    if plan.buffer_bytes is not None:
        while bits > 0 and n_samples << bits > plan.buffer_bytes:
            bits -= 1
    return bits
