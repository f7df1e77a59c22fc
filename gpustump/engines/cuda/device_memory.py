"""What stays in the device's memory, and what is done if it is too small.

Besides some vectors with one element for each sample, training keeps the codes, one byte for each
value, which every round reads, and the sorted orders, four bytes for each value, of which a round
reads a small part. Orders that do not fit are sorted again when they are needed. Codes that do not
fit stay in the host's memory, and are copied through a buffer on the device, part by part, in every
round.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpustump.arrays.devices import DeviceError
from gpustump.data.readable import readable_bytes
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.layout import groups_of, n_bytes, padded, table_bytes
from gpustump.engines.objective import Objective

_SORTING_BYTES = 64
"""Per sample: a column, its keys, their order, and what the array library needs to sort them."""

_ORDER_BYTES = 4

_SLOTS = 256
"""A feature's bins, and a slot for missing values."""

_MANY_PIECES = _SLOTS * layout.MOST_PIECES
"""The most pieces of a feature's bins in the searches for classic stumps and intervals."""

_FIXED_BYTES = 2**20

_LEAST_BUFFER, _MOST_BUFFER = 2**20, 2**28
"""Bytes of codes that are streamed at a time: enough for copies at full speed."""

_MOST_STAGED = 2**30
"""Bytes of a host table's columns that are on the device at a time, while it is prepared."""


@dataclass(frozen=True)
class DeviceBudget:
    """How the device's memory is used.

    Attributes
    ----------
    n_orders : int
        How many features' sorted orders are kept.
    buffer_bytes : int or None
        Codes are streamed through a buffer of this size; None if all stay on the device.
    staged_bytes : int
        Bytes for columns of a host table while it is prepared; one column always has room.
    """

    n_orders: int
    buffer_bytes: int | None
    staged_bytes: int


def least_bytes(n_samples: int, n_features: int, objective: Objective) -> int:
    """The least memory beside the table with which training is possible."""
    codes = _of_codes(n_samples, n_features)
    streamed = 2 * max(_LEAST_BUFFER, padded(n_samples))  # a buffer, and a column to be written
    return _without_codes(n_samples, n_features, objective) + min(codes, streamed)


def device_budget(
    n_samples: int, n_features: int, objective: Objective, n_available: int, device: str
) -> DeviceBudget:
    """What to keep in `n_available` bytes of a device's memory.

    Raises
    ------
    DeviceError
        If they are too few; the message says how many are needed.
    """
    least = least_bytes(n_samples, n_features, objective)
    if n_available < least:
        raise DeviceError(
            f"{device} has too little memory: training on {n_samples} samples of {n_features} "
            f"features takes at least {readable_bytes(least)} of it beside the table, and "
            f"{readable_bytes(n_available)} can be used."
        )
    of_order = _ORDER_BYTES * n_samples
    codes = _of_codes(n_samples, n_features)
    free = n_available - _without_codes(n_samples, n_features, objective)
    if codes <= free:
        return _shared_out(free - codes, n_features, of_order, None)
    buffer = min(free // 2, _MOST_BUFFER)  # codes take as much again while they are written
    return _shared_out(free - 2 * buffer, n_features, of_order, buffer)


def _shared_out(free: int, n_features: int, of_order: int, buffer: int | None) -> DeviceBudget:
    """Give at most a quarter of the free bytes to staged columns, and the rest to orders."""
    staged = min(free // 4, _MOST_STAGED)
    return DeviceBudget(min(n_features, 1 + (free - staged) // of_order), buffer, staged)


def _without_codes(n_samples: int, n_features: int, objective: Objective) -> int:
    of_sample = _run_bytes(objective) + _SORTING_BYTES + _ORDER_BYTES
    of_histograms = table_bytes(0) * objective.n_layers
    of_feature = of_histograms + _SLOTS * _slot_bytes(objective)
    n_pieces = _SLOTS + n_samples // layout.SPLIT_PIECE
    if objective.has_signs:
        n_pieces = min(_MANY_PIECES, _SLOTS + n_samples // layout.SIGNED_PIECE)
    of_feature += _piece_bytes(objective) * n_pieces
    return n_samples * of_sample + n_features * of_feature + _FIXED_BYTES


def _run_bytes(objective: Objective) -> int:
    """Bytes of a sample: weights, odds or probabilities, scores and integers of each output.

    Marks, first weights, and temporary arrays are included.
    """
    return 48 + 16 * objective.n_outputs + 8 * objective.n_layers


def _slot_bytes(objective: Objective) -> int:
    """Bytes of a bin: its place, its bound, and what the search keeps of it.

    A categorical feature has no bins, and the sums over its categories take less than this.
    """
    fixed = layout.BIN.itemsize + layout.LISTED.itemsize + 8
    if objective.learner == "interval":
        return fixed + layout.PROFILE.itemsize + layout.SLOPES.itemsize
    if objective.has_signs:
        return fixed + layout.PROFILE.itemsize
    noted = layout.SKEW.itemsize + 8  # and the tilt
    return fixed + objective.n_outputs * (layout.TRIPLE.itemsize + noted)


def _piece_bytes(objective: Objective) -> int:
    """Bytes of a piece of a bin that is searched."""
    if objective.has_signs:
        found = layout.SLOPES if objective.learner == "interval" else layout.EXTREMES
        return layout.PIECE_OF_BIN.itemsize + found.itemsize
    of_output = 2 * layout.TRIPLE.itemsize + layout.SKEW.itemsize
    return layout.PIECE_OF_BIN.itemsize + layout.BEST.itemsize + 8 + objective.n_outputs * of_output


def _of_codes(n_samples: int, n_features: int) -> int:
    n_padded = padded(n_samples)
    return n_bytes(groups_of(n_features, n_padded), n_padded)
