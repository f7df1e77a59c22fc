"""What stays in the device's memory, and how to make do with less of it.

Beside vectors as long as the samples there are the codes, one byte an element, which every round
reads, and the sorted orders, four bytes an element, of which a round reads a small part. Orders
that do not fit are sorted again when they are needed; codes that do not fit stay in the host's
memory and are streamed through a buffer, block by block, in every round.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpustump.arrays.devices import DeviceError
from gpustump.data.readable import readable_bytes
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.layout import groups_of, n_bytes, padded, table_bytes

_SAMPLE_BYTES = 72
"""Of vectors: weights, scores, changes, marks, first masses, and what those are made from."""

_SORTING_BYTES = 64
"""Per sample: a column, its keys, their order, and what the array library needs to sort them."""

_ORDER_BYTES = 4

_SLOTS = 256
"""Of a feature: its bins, and one for what is missing."""

_FEATURE_BYTES = table_bytes(0) + 8 * _SLOTS * (layout.BIN + layout.PROFILE + layout.LISTED)
"""Histograms, bins, and what is known of them."""

_PIECE_BYTES = 8 * (layout.PIECE_WORDS + layout.EXTREMES)
"""Of what is noted of a piece of a bin while it is scanned."""

_FIXED_BYTES = 2**20

_LEAST_BUFFER, _MOST_BUFFER = 2**20, 2**28
"""Bytes of codes that are streamed at a time: enough for a copy not to be short."""

_MOST_STAGED = 2**30
"""Bytes of a host table's columns that are on the device at a time, while it is prepared."""


@dataclass(frozen=True)
class Plan:
    """How to use the device's memory.

    Attributes
    ----------
    n_orders : int
        Features whose sorted orders are kept.
    buffer_bytes : int or None
        Codes are streamed through a buffer of this size; None if all stay on the device.
    staged_bytes : int
        For columns of a host table, while it is prepared; one column always finds room.
    """

    n_orders: int
    buffer_bytes: int | None
    staged_bytes: int


def least_bytes(n_samples: int, n_features: int) -> int:
    """The least memory beside the table with which training is possible."""
    codes = _of_codes(n_samples, n_features)
    streamed = 2 * max(_LEAST_BUFFER, padded(n_samples))  # a buffer, and a column to be written
    return _without_codes(n_samples, n_features) + min(codes, streamed)


def plan(n_samples: int, n_features: int, budget: int, device: str) -> Plan:
    """What to keep within so many bytes.

    Raises
    ------
    DeviceError
        If they are too few; the message says how many are needed.
    """
    least = least_bytes(n_samples, n_features)
    if budget < least:
        raise DeviceError(
            f"{device} has too little memory: training on {n_samples} samples of {n_features} "
            f"features takes at least {readable_bytes(least)} of it beside the table, and "
            f"{readable_bytes(budget)} can be used."
        )
    of_order = _ORDER_BYTES * n_samples
    codes = _of_codes(n_samples, n_features)
    free = budget - _without_codes(n_samples, n_features)
    if codes <= free:
        return _shared_out(free - codes, n_features, of_order, None)
    buffer = min(free // 2, _MOST_BUFFER)  # and as much for codes while they are written
    return _shared_out(free - 2 * buffer, n_features, of_order, buffer)


def _shared_out(free: int, n_features: int, of_order: int, buffer: int | None) -> Plan:
    """What is left goes to staged columns, a quarter at most, and to orders."""
    staged = min(free // 4, _MOST_STAGED)
    return Plan(min(n_features, 1 + (free - staged) // of_order), buffer, staged)


def _without_codes(n_samples: int, n_features: int) -> int:
    of_sample = _SAMPLE_BYTES + _SORTING_BYTES + _ORDER_BYTES
    n_pieces = min(_SLOTS * layout.MOST_PIECES, _SLOTS + n_samples // layout.PIECE)
    of_feature = _FEATURE_BYTES + _PIECE_BYTES * n_pieces
    return n_samples * of_sample + n_features * of_feature + _FIXED_BYTES


def _of_codes(n_samples: int, n_features: int) -> int:
    n_padded = padded(n_samples)
    return n_bytes(groups_of(n_features, n_padded), n_padded)
