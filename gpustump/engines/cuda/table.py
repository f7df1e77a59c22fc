"""A table prepared for a device: sorted and coded, feature by feature, before the first round.

Each feature is sorted and cut into bins, and every sample's code is the number of its bin, a byte.
For a categorical feature it is the number of the sample's category; such a feature has no bins, so
the kernels find no cut of it. The codes stay on the device if they fit there, and as many of the
sorted orders as fit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.data.readable import readable_bytes
from gpustump.engines.announcements import announce
from gpustump.engines.category_columns import regions_of_numbers
from gpustump.engines.contract import Cut, Resources, Step
from gpustump.engines.cuda import device_memory
from gpustump.engines.cuda.codes import (
    ResidentCodes,
    StreamedCodes,
    category_numbers,
    write_feature,
    write_numbers,
)
from gpustump.engines.cuda.device import CudaDevice, OutOfDeviceMemoryError
from gpustump.engines.cuda.device_memory import DeviceBudget
from gpustump.engines.cuda.layout import (
    BIN,
    FEATURE,
    N_CODES,
    Group,
    column_bits,
    groups_of,
    n_bytes,
    on_device,
    padded,
)
from gpustump.engines.cuda.orders import Orders
from gpustump.engines.cuda.sorting import (
    MARK,
    Cuts,
    cuts_after,
    cuts_of,
    sorted_feature,
)
from gpustump.engines.cuda.source_table import SourceTable
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS, Partition
from gpustump.learners.kinds import OfCategories
from gpustump.learners.thresholds import midpoint

_READ_AT_ONCE = 256
"""Around how many values are read at once to find the sorted position of a threshold."""

Parting = Cut | OfCategories
"""What divides the samples into regions, in a form with which their codes tell the regions."""


@dataclass(frozen=True)
class BinIndex:
    """Where the bins of all features are in their sorted orders.

    Bins are numbered from the first feature's first bin on. Each feature's bins are followed by a
    slot for its missing values.

    Attributes
    ----------
    features : ndarray (n_features,) of `layout.FEATURE`
        A feature's first bin, how many it has, and how many of its values are not missing.
    records : ndarray (n_slots,) of `layout.BIN`
        The sorted position of a bin's first sample, how many samples it holds, its feature, and
        whether it holds two values or more.
    low, high : ndarray (n_slots,) of float64
        A bin's smallest and largest value; NaN for missing values.
    """

    features: np.ndarray
    records: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, found: Sequence[Cuts], n_samples: int) -> BinIndex:
        """The index for the bins of each feature."""
        features = np.zeros(len(found), dtype=FEATURE)
        features["n_bins"] = [len(cuts.low) for cuts in found]
        features["n_present"] = [cuts.ends[-1] for cuts in found]
        ends = np.cumsum(features["n_bins"] + 1)
        features["first"] = ends - (features["n_bins"] + 1)
        records = np.zeros(int(ends[-1]), dtype=BIN)
        low, high = np.full(len(records), np.nan), np.full(len(records), np.nan)
        for j, (cuts, (first, n_bins, n_present)) in enumerate(
            zip(found, features.tolist(), strict=True)
        ):
            own = slice(first, first + n_bins)
            bins = records[own]
            bins["offset"] = np.append(0, cuts.ends[:-1])[:n_bins]
            bins["n_inside"] = cuts.ends[:n_bins] - bins["offset"]
            bins["feature"], bins["has_cuts"] = j, cuts.has_cuts
            records[first + n_bins] = (n_present, n_samples - n_present, j, 0)
            low[own], high[own] = cuts.low, cuts.high
        return cls(features, records, low, high)

    def __len__(self) -> int:
        return len(self.records)

    def at(self, feature: int, position: int) -> tuple[int, int, int]:
        """The bin of a feature that holds a sorted position: its number there, begin and end."""
        first, n_bins, _ = self.features[feature].item()
        edges = self.records["offset"][first : first + n_bins + 1]  # and the end of the last one
        bin_ = int(np.searchsorted(edges, position, side="right")) - 1
        return bin_, int(edges[bin_]), int(edges[bin_ + 1])


@dataclass(frozen=True)
class CudaTable:
    """A feature table as byte codes for a device; see `engines.contract.PreparedTable`.

    Attributes
    ----------
    source : SourceTable
    groups : tuple of Group
        Which features are neighbours in the codes.
    codes : ResidentCodes or StreamedCodes
    orders : Orders
    bins : BinIndex
    bins_on_device, features_on_device : array
        `bins.records` and `bins.features` on the device.
    categories : dict
        For each categorical feature how many samples have each code, (N_CODES,) of int64.
    """

    source: SourceTable
    groups: tuple[Group, ...]
    codes: ResidentCodes | StreamedCodes
    orders: Orders
    bins: BinIndex
    bins_on_device: Array
    features_on_device: Array
    categories: dict[int, np.ndarray]
    _seen: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)
    _places: dict[tuple[int, float], int] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> CudaDevice:
        return self.source.device

    @property
    def X(self) -> Array:  # noqa: N802
        """The caller's own table."""
        return self.source.X

    @property
    def n_samples(self) -> int:
        return self.source.n_samples

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def recorded(self, queue: Callable[[], None]) -> Callable[[], None]:
        """A function that queues what `queue` queues, from a record if codes are not streamed.

        `queue` must have been called before.
        """
        return self.device.recorded(queue) if self.codes.is_resident else queue

    def group_of(self, feature: int) -> tuple[Group, int]:
        """The group that holds a feature, and the feature's place in it."""
        at = bisect.bisect_right(self.groups, feature, key=lambda group: group.first) - 1
        return self.groups[at], feature - self.groups[at].first

    def note_values(self, feature: int, position: int, values: np.ndarray) -> None:
        """Keep the threshold of a cut inside a bin, given the two values on its sides."""
        self._seen[feature, position] = midpoint(*arrays.as_working(values))

    @property
    def n_missing(self) -> np.ndarray:
        return np.asarray(self.n_samples - self.bins.features["n_present"], dtype=np.int64)

    def has_categories_of(self, hypothesis: Partition) -> TypeGuard[OfCategories]:
        """Whether a hypothesis has sets of categories of a feature that is categorical here."""
        return isinstance(hypothesis, OfCategories) and hypothesis.feature in self.categories

    def parting_of(self, step: Step) -> Parting | None:
        """A step's cut, or its hypothesis of a categorical feature; None if it has neither."""
        if self.has_categories_of(step.hypothesis):
            return step.hypothesis
        return step.cut or self.cut_of(step.hypothesis)

    def cut_of(self, hypothesis: Partition) -> Cut | None:
        """The cut, without signs and score, that divides the samples as a hypothesis does.

        None if the hypothesis is none of the search's: it has categories, or is of a categorical
        feature, or no sample lies in its first region.
        """
        feature, ends = hypothesis.feature, hypothesis.thresholds
        if isinstance(hypothesis, OfCategories) or feature in self.categories:
            return None
        places = [self._place(feature, end) for end in ends]
        position = places[-1]
        if len(places) == 1:
            return Cut(feature, position, 0, 0, 0.0) if position >= 0 else None
        return Cut(feature, position, 0, 0, 0.0, places[0]) if places[0] < position else None

    def _place(self, feature: int, threshold: float) -> int:
        """The sorted position of the last value not above a threshold; -1 if there is none."""
        if (feature, threshold) not in self._places:
            self._places[feature, threshold] = self._find_place(feature, threshold)
        return self._places[feature, threshold]

    def _find_place(self, feature: int, threshold: float) -> int:
        first, n_bins, n_present = self.bins.features[feature].item()
        own = slice(first, first + n_bins)
        bin_ = int(np.searchsorted(self.bins.high[own], threshold, side="right"))
        if bin_ == n_bins:  # all values of all bins
            return int(n_present) - 1
        begin, n_inside = self.bins.records[["offset", "n_inside"]][first + bin_].item()
        if self.bins.low[first + bin_] > threshold:
            return int(begin) - 1
        return self._find_inside(feature, threshold, begin, begin + n_inside)

    def _find_inside(self, feature: int, threshold: float, begin: int, end: int) -> int:
        """As `_find_place`, if the next value lies before the sorted position `end`.

        Each pass takes a few samples at equal distances, so little is copied from the device.
        """
        while begin < end:
            step = max(1, (end - begin) // _READ_AT_ONCE)
            with self.device.active():
                order = arrays.to_host(self.orders.of(feature)[begin:end:step])
            values = self.source.host_values(feature, order & ~MARK)
            n_left = int(np.sum(values.astype(np.float64) <= threshold))
            if n_left == 0:
                break
            begin, end = begin + (n_left - 1) * step + 1, min(end, begin + n_left * step)
        return begin - 1

    def counts_of_regions(self, cut: Parting) -> tuple[int, int, int]:
        """How many samples lie in each region of a stump's cut, or of a split of categories."""
        if isinstance(cut, OfCategories):
            counts, regions = self.categories[cut.feature], regions_of_numbers(cut, N_CODES)
            left, right, missing = (int(counts[regions == own].sum()) for own in range(N_REGIONS))
            return left, right, missing
        if cut.position is None:
            return self.n_samples, 0, 0
        n_present = int(self.bins.features["n_present"][cut.feature])
        n_left = cut.position + 1
        return n_left, n_present - n_left, self.n_samples - n_present

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `engines.contract.PreparedTable`."""
        bins = self.bins
        first, _, n_present = bins.features[feature].item()
        if position + 1 >= n_present:
            return math.inf
        bin_, _, end = bins.at(feature, position)
        if position + 1 == end:
            slot = first + bin_
            dtype = arrays.working_dtype(self.source.dtype)
            return midpoint(*np.asarray([bins.high[slot], bins.low[slot + 1]], dtype))
        if (feature, position) not in self._seen:
            with self.device.active():
                two = self.orders.of(feature)[position : position + 2]
                samples = arrays.to_host(two) & ~MARK
            self.note_values(feature, position, self.source.host_values(feature, samples))
        return self._seen[feature, position]


def prepare(
    X: Array,
    rows: Array | None,
    device: CudaDevice,
    resources: Resources = Resources(),  # noqa: B008, it is immutable
    objective: Objective = Objective(),  # noqa: B008
    categorical: Sequence[int] = (),
    largest: Sequence[np.ndarray] | None = None,
) -> CudaTable:
    """Sort and code a table.

    Parameters
    ----------
    X : array (n_samples, n_features)
        On the device, or a NumPy array in the host's memory, or a memory map of a file.
    rows : array (n_rows,) of int, or None
        Take only these rows.
    device : CudaDevice
    resources : Resources, optional
        `max_memory` bytes of the device's memory may be used, nine tenths of the free memory by
        default; `n_jobs` threads gather the columns of a host table.
    objective : Objective, optional
        The kind of search for which there must be memory.
    categorical : sequence of int, optional
        As for `contract.Task`.
    largest : sequence of ndarray, optional
        For each feature the keys of the largest values left of its cuts, at most `MOST_BINS` - 1 of
        them; by default cuts are chosen here.

    Raises
    ------
    DeviceError
        If its memory is too small.
    """
    with device.active():
        source = SourceTable.of(X, rows, device, resources.n_jobs, categorical)
        free = device.free_bytes()
    n_available = min(resources.max_memory or free, free - free // 10)
    while True:
        memory_use = device_memory.device_budget(
            source.n_samples, source.n_features, objective, n_available, device.name
        )
        try:
            with device.active():
                return _prepared(source, memory_use, largest)
        except OutOfDeviceMemoryError:
            n_available = n_available * 3 // 4  # other programs use the device too: try with less


def _prepared(
    source: SourceTable, budget: DeviceBudget, largest: Sequence[np.ndarray] | None
) -> CudaTable:
    device, n_samples = source.device, padded(source.n_samples)
    groups = groups_of(source.n_features, n_samples, _width_bits(device, n_samples, budget))
    codes: ResidentCodes | StreamedCodes
    if budget.buffer_bytes is None:
        codes = ResidentCodes(device, groups, n_samples)
    else:
        codes = StreamedCodes(device, groups, n_samples, budget.buffer_bytes)
        size = readable_bytes(n_bytes(groups, n_samples))
        announce(
            f"the table's codes do not fit into {device.name}: {size} of codes streamed from the "
            "host's memory in every round"
        )

    def sort(feature: int) -> Array:
        (column,) = source.columns([feature])
        return sorted_feature(column)[0]

    orders = Orders(device, source.n_features, budget.n_orders, sort)
    found = [
        cuts
        for group in groups
        for cuts in _coded(source, group, codes, orders, budget.staged_bytes, largest)
    ]
    orders.publish()
    bins = BinIndex.of(found, source.n_samples)
    return CudaTable(
        source,
        groups,
        codes,
        orders,
        bins,
        bins_on_device=on_device(device, bins.records),
        features_on_device=on_device(device, bins.features),
        categories={
            feature: cuts.counts for feature, cuts in enumerate(found) if cuts.counts is not None
        },
    )


def _coded(
    source: SourceTable,
    group: Group,
    codes: ResidentCodes | StreamedCodes,
    orders: Orders,
    staged_bytes: int,
    largest: Sequence[np.ndarray] | None,
) -> list[Cuts]:
    """Sort a group's features, write their codes, and return the bins of each."""
    written, found = codes.group(group), []
    features = range(group.first, group.first + group.n_features)

    def cut(feature: int, keys: Array, dtype: str) -> Cuts:
        return (
            cuts_of(keys, dtype) if largest is None else cuts_after(keys, largest[feature], dtype)
        )

    for feature, column in zip(features, source.columns(features, staged_bytes), strict=True):
        dtype = arrays.dtype_name(column)
        if feature in source.categorical:
            numbers = category_numbers(column)
            write_numbers(numbers, group, feature - group.first, written)
            counts = arrays.to_host(source.device.xp.bincount(numbers, minlength=N_CODES))
            nothing = cut(feature, arrays.order_keys(column[:0]), dtype)
            found.append(nothing._replace(counts=counts.astype(np.int64)))
            continue
        order, keys = sorted_feature(column)
        cuts = cut(feature, keys, dtype)
        write_feature(source.device, order, cuts, group, feature - group.first, written)
        orders.offer(feature, order)
        found.append(cuts)
    codes.keep(group, written)
    return found


def _width_bits(device: CudaDevice, n_samples: int, budget: DeviceBudget) -> int:
    """The largest width of groups: they may have 2**this features.

    The table of a group's sums must fit into shared memory. A group that is streamed must not be
    larger than the buffer, because it is written on the device as a whole.
    """
    bits = column_bits(device)
    if budget.buffer_bytes is not None:
        while bits > 0 and n_samples << bits > budget.buffer_bytes:
            bits -= 1
    return bits
