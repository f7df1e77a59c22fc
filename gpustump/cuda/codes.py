"""Each value as one byte on the device: bins that are slices of its feature's sorted order.

A feature is sorted whole, by the array library, and cut into bins of about equally many samples;
a value that fills a bin of its own gets one. Then every sample is given its bin's number, in the
layout that `codes.cu` describes, where 32 features lie side by side. A table in the host's memory,
or in a file, is brought over some columns at a time and may be larger than the device's memory.

Where the codes fit there, they stay on the device; elsewhere they stay in page-locked memory of the
host, and every round streams them through a buffer.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.columns import midpoint
from gpustump.cuda import memory
from gpustump.cuda.device import Device, OutOfDeviceMemoryError
from gpustump.cuda.layout import (
    TILE_SAMPLES,
    Group,
    column_bits,
    described,
    groups_of,
    n_bytes,
    padded,
)
from gpustump.cuda.orders import Orders
from gpustump.notices import announce, readable_bytes

MOST_BINS = 255
"""Of a feature; one more code is left for what is missing."""

_STAGED_BYTES = 2**28
"""Of a host table's columns that are gathered at a time: a table stored by rows is read that much
less often."""

_MARK = -(2**31)
"""The sign bit of a sorted position."""


class Part(NamedTuple):
    """Codes on the device, ready to be added: some groups, and the samples from `first` on.

    `groups` describes them to the kernel, `grid` is how many blocks they are cut out for.
    """

    codes: Array
    groups: Array
    n_groups: int
    grid: int
    first: int
    n: int


@dataclass(frozen=True)
class DeviceColumns:
    """A feature table as byte codes for a device.

    Bins are numbered through, a feature's followed by a slot for what is missing.

    Attributes
    ----------
    device : Device
    X : array (n_samples_given, n_features)
        The caller's own table, on the device or elsewhere.
    table : array or None
        The same on the device, if it lives there.
    rows : array (n_samples,) of int64, or None
        As given; `rows_there` on the device.
    n_samples, n_features : int
    groups : tuple of Group
    codes : ResidentCodes or StreamedCodes
    orders : Orders
    first, n_bins, n_present : ndarray (n_features,) of int64
        A feature's first bin, how many there are, and its samples that are not missing.
    bins : ndarray (n_slots, 4) of int64
        Sorted position of the first sample, how many there are, the feature, whether it holds two
        values or more. `bins_there` on the device, and `features_there` a row for each feature.
    low, high : ndarray (n_slots,) of float64
        A bin's least and largest value.
    note : str or None
        What the user should know about how the memory is used.
    """

    device: Device
    X: Array
    table: Array | None
    rows: Array | None
    rows_there: Array | None
    n_samples: int
    n_features: int
    groups: tuple[Group, ...]
    codes: ResidentCodes | StreamedCodes
    orders: Orders
    first: np.ndarray
    n_bins: np.ndarray
    n_present: np.ndarray
    bins: np.ndarray
    bins_there: Array
    features_there: Array
    low: np.ndarray
    high: np.ndarray
    note: str | None
    _seen: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    def group_of(self, feature: int) -> tuple[Group, int]:
        """The group that holds a feature, and its place there."""
        at = bisect.bisect_right(self.groups, feature, key=lambda group: group.first) - 1
        return self.groups[at], feature - self.groups[at].first

    def values(self, feature: int) -> Array:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return arrays.picked(arrays.as_working(self.X[:, feature]), self.rows)

    def bin_at(self, feature: int, position: int) -> int:
        """The bin of a feature that holds a sorted position."""
        first = self.first[feature]
        offsets = self.bins[first : first + self.n_bins[feature], 0]
        return int(np.searchsorted(offsets, position, side="right")) - 1

    def begin_and_end(self, feature: int, bin_: int) -> tuple[int, int]:
        """The sorted positions of a bin."""
        begin, n_inside = self.bins[self.first[feature] + bin_, :2].tolist()
        return begin, begin + n_inside

    def note_values(self, feature: int, position: int, values: np.ndarray) -> None:
        """Remember the threshold of a cut inside a bin, between two values of the table."""
        low, high = arrays.as_working(values)
        self._seen[feature, position] = midpoint(low, high)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold of the cut after a sorted position; see `Columns.threshold`."""
        if position + 1 >= self.n_present[feature]:
            return math.inf
        bin_ = self.bin_at(feature, position)
        if position + 1 == self.begin_and_end(feature, bin_)[1]:
            slot = self.first[feature] + bin_
            dtype = arrays.working_dtype(arrays.dtype_name(self.X))
            return midpoint(*np.asarray([self.high[slot], self.low[slot + 1]], dtype))
        if (feature, position) not in self._seen:
            with self.device.active():
                two = self.orders.of(feature)[position : position + 2]
                samples = arrays.to_host(two) & ~_MARK
            self.note_values(feature, position, self.host_values(feature, samples))
        return self._seen[feature, position]

    def host_values(self, feature: int, samples: np.ndarray) -> np.ndarray:
        """Some samples' values of a feature, on the host, as the table holds them."""
        rows = [int(s) if self.rows is None else int(self.rows[int(s)]) for s in samples]
        return np.concatenate([arrays.to_host(self.X[row : row + 1, feature]) for row in rows])


class ResidentCodes:
    """All codes in the device's memory.

    Parameters
    ----------
    device : Device
    groups : tuple of Group
    n_samples : int
        Padded.
    """

    def __init__(self, device: Device, groups: tuple[Group, ...], n_samples: int) -> None:
        self._device, self._groups, self._n = device, groups, n_samples
        self._codes = device.xp.zeros(n_bytes(groups, n_samples), dtype=np.uint8)
        table, grid = described(device, groups, n_samples)
        self._all = Part(self._codes, device.array(table), len(groups), grid, 0, n_samples)

    def group(self, group: Group) -> Array:
        """Where a group's codes are written."""
        return self._codes[group.first_byte : group.first_byte + (self._n << group.width_bits)]

    def keep(self, group: Group, codes: Array) -> None:
        """A group has been written."""

    def parts(self) -> Iterator[Part]:
        """All of them, to be added before the next is asked for."""
        yield self._all

    def parts_of(self, group: Group) -> Iterator[Part]:
        """A group's codes, from its first byte on."""
        yield self._all._replace(codes=self.group(group))


class StreamedCodes:
    """Codes in the host's memory, which pass through a buffer on the device.

    There is one buffer: copies and kernels follow each other in one stream, and the copies take
    nearly all of the time.

    Parameters
    ----------
    device : Device
    groups : tuple of Group
    n_samples : int
        Padded.
    buffer_bytes : int
    """

    def __init__(
        self, device: Device, groups: tuple[Group, ...], n_samples: int, buffer_bytes: int
    ) -> None:
        self._device, self._groups, self._n = device, groups, n_samples
        self._codes = device.pinned(n_bytes(groups, n_samples))
        widest = 1 << max(group.width_bits for group in groups)
        tiles = max(1, min(n_samples, buffer_bytes // widest) // TILE_SAMPLES)
        self._size = tiles * TILE_SAMPLES
        self._buffer = device.xp.zeros(self._size * widest, dtype=np.uint8)
        self._descriptions: dict[tuple[Group, int], tuple[Array, int]] = {}

    def group(self, group: Group) -> Array:
        """Where a group's codes are written."""
        return self._device.xp.zeros(self._n << group.width_bits, dtype=np.uint8)

    def keep(self, group: Group, codes: Array) -> None:
        """A group has been written."""
        self._codes[group.first_byte : group.first_byte + codes.size] = arrays.to_host(codes)

    def parts(self) -> Iterator[Part]:
        """All of them, to be added before the next is asked for."""
        for group in self._groups:
            yield from self.parts_of(group)

    def parts_of(self, group: Group) -> Iterator[Part]:
        """A group's codes, block by block."""
        for first in range(0, self._n, self._size):
            n = min(self._size, self._n - first)
            begin = group.first_byte + (first << group.width_bits)
            target = self._buffer[: n << group.width_bits]
            self._device.upload(self._codes[begin : begin + target.size], target)
            groups, grid = self._described(group, n)
            yield Part(target, groups, 1, grid, first, n)

    def _described(self, group: Group, n: int) -> tuple[Array, int]:
        if (group, n) not in self._descriptions:
            table, grid = described(self._device, (group._replace(first_byte=0),), n)
            self._descriptions[group, n] = self._device.array(table), grid
        return self._descriptions[group, n]


def prepare(
    X: Array, rows: Array | None, device: Device, *, budget: int | None = None
) -> DeviceColumns:
    """Sort and code a table.

    Parameters
    ----------
    X : array (n_samples, n_features)
        On the device, or a host array of NumPy, a memory map among them.
    rows : array (n_rows,) of int, or None
        Take only these rows.
    device : Device
    budget : int, optional
        Bytes of the device's memory that may be used; by default most of what is free.

    Raises
    ------
    DeviceError
        If its memory is too small.
    """
    n_samples = X.shape[0] if rows is None else rows.shape[0]
    shape = (n_samples, X.shape[1])
    with device.active():
        free = device.free_bytes()
    budget = min(budget or free, free - free // 10)
    while True:
        plan = memory.plan(*shape, budget, device.name)
        try:
            with device.active():
                return _prepared(X, rows, device, shape, plan)
        except OutOfDeviceMemoryError:
            budget = budget * 3 // 4  # others use the device too: try with less


def _prepared(
    X: Array, rows: Array | None, device: Device, shape: tuple[int, int], plan: memory.Plan
) -> DeviceColumns:
    n_samples, n_features = shape
    xp = device.xp
    table = device.array(X) if device.takes(X) else None
    rows_there = None if rows is None else device.array(xp.asarray(device.array(rows), np.int64))
    n_padded = padded(n_samples)
    groups = groups_of(n_features, n_padded, _width_bits(device, n_padded, plan))
    codes: ResidentCodes | StreamedCodes
    if plan.buffer_bytes is None:
        codes, note = ResidentCodes(device, groups, n_padded), None
    else:
        codes = StreamedCodes(device, groups, n_padded, plan.buffer_bytes)
        size = readable_bytes(n_bytes(groups, n_padded))
        note = f"{size} of codes streamed from the host's memory in every round"
        announce(f"the table's codes do not fit into {device.name}: {note}")

    def sort(feature: int) -> Array:
        (column,) = _columns(X if table is None else table, rows, rows_there, device, [feature])
        return _sorted(column)[0]

    orders = Orders(device, n_features, plan.n_orders, sort)
    found: list[_Cuts] = []
    for group in groups:
        written = codes.group(group)
        features = range(group.first, group.first + group.n_features)
        for feature, column in zip(
            features,
            _columns(X if table is None else table, rows, rows_there, device, features),
            strict=True,
        ):
            order, keys = _sorted(column)
            cuts = _cuts(keys, arrays.dtype_name(column))
            _write(device, order, cuts, group, feature - group.first, written)
            orders.offer(feature, order)
            found.append(cuts)
        codes.keep(group, written)
    orders.publish()
    return _columns_of(
        X, table, rows, rows_there, device, shape, groups, codes, orders, found, note
    )


def _columns_of(
    X: Array,
    table: Array | None,
    rows: Array | None,
    rows_there: Array | None,
    device: Device,
    shape: tuple[int, int],
    groups: tuple[Group, ...],
    codes: ResidentCodes | StreamedCodes,
    orders: Orders,
    found: list[_Cuts],
    note: str | None,
) -> DeviceColumns:
    n_samples, n_features = shape
    n_bins = np.asarray([len(cuts.low) for cuts in found])
    n_present = np.asarray([cuts.ends[-1] for cuts in found])
    first = np.cumsum(n_bins + 1) - (n_bins + 1)
    bins = np.zeros((int(np.sum(n_bins + 1)), 4), dtype=np.int64)
    low, high = np.full(len(bins), np.nan), np.full(len(bins), np.nan)
    for j, cuts in enumerate(found):
        own = slice(first[j], first[j] + n_bins[j])
        begins, ends = np.append(0, cuts.ends[:-1])[: n_bins[j]], cuts.ends[: n_bins[j]]
        bins[own] = np.stack([begins, ends - begins, np.full(n_bins[j], j), cuts.has_cuts], axis=1)
        bins[first[j] + n_bins[j]] = (n_present[j], n_samples - n_present[j], j, 0)
        low[own], high[own] = cuts.low, cuts.high
    return DeviceColumns(
        device=device,
        X=X,
        table=table,
        rows=rows,
        rows_there=rows_there,
        n_samples=n_samples,
        n_features=n_features,
        groups=groups,
        codes=codes,
        orders=orders,
        first=first,
        n_bins=n_bins,
        n_present=n_present,
        bins=bins,
        bins_there=device.array(bins),
        features_there=device.array(np.stack([first, n_bins, n_present], axis=1)),
        low=low,
        high=high,
        note=note,
    )


class _Cuts(NamedTuple):
    """A feature's bins: where they end, whether they hold two values, their extreme values.

    `ends` of a feature without a present value is [0].
    """

    ends: np.ndarray
    has_cuts: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _columns(
    X: Array, rows: Array | None, rows_there: Array | None, device: Device, features: Any
) -> Iterator[Array]:
    """Features' values on the device, in the dtype in which they are compared."""
    if device.takes(X):
        for feature in features:
            yield arrays.as_working(arrays.picked(X[:, feature], rows_there))
        return
    n_samples = X.shape[0] if rows is None else rows.shape[0]
    taken = None if rows is None else np.asarray(arrays.to_host(rows))
    at_once = max(1, _STAGED_BYTES // (n_samples * X.dtype.itemsize))
    for start in range(0, len(features), at_once):
        some = features[start : start + at_once]
        span = slice(some[0], some[-1] + 1)
        block = X[:, span] if taken is None else X[taken, span]
        for column in np.ascontiguousarray(block.T):
            yield device.array(arrays.as_working(arrays.plain(column)))


def _sorted(column: Array) -> tuple[Array, Array]:
    """A feature's sorted order, as `Orders` keeps it, and its sorted keys."""
    xp = arrays.namespace_of(column)
    keys = arrays.order_keys(column)
    order = xp.argsort(keys, stable=False)
    keys = xp.take(keys, order, axis=0)
    order = xp.astype(order, xp.int32)
    order[:-1] = xp.where(keys[1:] == keys[:-1], order[:-1] | _MARK, order[:-1])
    return order, keys


def _cuts(keys: Array, dtype: str) -> _Cuts:
    """Cut a feature's sorted keys into bins of about equally many samples."""
    xp = arrays.namespace_of(keys)
    missing = arrays.missing_key(dtype)
    n_present = int(xp.sum(xp.astype(keys != missing, xp.int64)))
    present = keys[:n_present]
    if n_present == 0:
        nothing = np.zeros(0)
        return _Cuts(np.asarray([0]), nothing, nothing, nothing)
    is_last = present[1:] != present[:-1]
    n_values = 1 + int(xp.sum(xp.astype(is_last, xp.int64)))
    if n_values <= MOST_BINS:
        inner = arrays.to_host(xp.nonzero(is_last)[0]) + 1
    else:
        inner = _spread(present)
    ends = np.append(inner, n_present).astype(np.int64)
    begins = np.append(0, ends[:-1])
    device = arrays.device_of(keys)
    at = xp.asarray(np.concatenate([begins, ends - 1]), device=device)
    low, high = np.split(arrays.to_host(xp.take(present, at, axis=0)), 2)
    return _Cuts(ends, low != high, _floats(low), _floats(high))


def _spread(keys: Array) -> np.ndarray:
    """At most so many places at which sorted keys may be cut, the samples spread between them.

    A value that fills a bin alone is cut off from those below it too, as far as there are bins.
    """
    xp, n_keys = arrays.namespace_of(keys), keys.shape[0]
    fair = n_keys / MOST_BINS
    last = (np.arange(1, MOST_BINS) * fair).astype(np.int64) - 1
    last = last[last >= 0]
    values = xp.take(keys, xp.asarray(last, device=arrays.device_of(keys)), axis=0)
    begins, ends = (
        arrays.to_host(xp.searchsorted(keys, values, side=side)).astype(np.int64)
        for side in ("left", "right")
    )
    is_heavy = ends - begins >= fair
    nearer_begin = (last + 1 - begins < ends - last - 1) & ~is_heavy
    chosen = set(np.where(nearer_begin, begins, ends).tolist()) - {0, n_keys}
    heaviest = np.argsort(begins - ends, kind="stable")
    for begin in begins[heaviest][is_heavy[heaviest]].tolist():
        if len(chosen) < MOST_BINS - 1:
            chosen |= {begin} - {0}
    return np.asarray(sorted(chosen), dtype=np.int64)


def _floats(keys: np.ndarray) -> np.ndarray:
    """Keys back as the floats, in float64, that they were made from."""
    bits = np.where(keys < 0, np.iinfo(keys.dtype).min - keys, keys)
    return bits.view(keys.dtype.str.replace("i", "f")).astype(np.float64)


def _write(
    device: Device, order: Array, cuts: _Cuts, group: Group, place: int, codes: Array
) -> None:
    """Write a feature's codes into its group's."""
    n_bins = len(cuts.low)
    offset = device.array(np.append(0, cuts.ends[:n_bins]).astype(np.int64))
    grid = min(-(-order.shape[0] // 256), 32 * device.n_processors)
    device.launch(
        "code_feature", grid, 256, order, offset, n_bins, order.shape[0], group.width_bits, place,
        codes,
    )  # fmt: skip


def _width_bits(device: Device, n_samples: int, plan: memory.Plan) -> int:
    """How wide groups may be: the histograms' table must fit, and a streamed group while it is
    written."""
    bits = column_bits(device)
    if plan.buffer_bytes is not None:
        while bits > 0 and n_samples << bits > plan.buffer_bytes:
            bits -= 1
    return bits
