"""What stays in the device's memory, and how to make do with less of it.

Beside vectors as long as the samples there are the codes, one byte an element, which every round
reads, and the sorted orders, four bytes an element, of which a round reads a small part. Orders
that do not fit are sorted again when they are needed; codes that do not fit stay in the host's
memory and are streamed through a buffer, block by block, in every round.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpustump.notices import readable_bytes
from gpustump.placement import DeviceError

TILE_SAMPLES = 512
"""Samples that codes are padded to: a whole tile of any width."""

_SAMPLE_BYTES = 72
"""Of vectors: weights, scores, changes, marks, first masses, and what those are made from."""

_SORTING_BYTES = 64
"""Per sample: a column, its keys, their order, and what the array library needs to sort them."""

_ORDER_BYTES = 4

_FEATURE_BYTES = 40_000
"""Histograms, bins, and what is known of them."""

_FIXED_BYTES = 2**20

_LEAST_BUFFER, _MOST_BUFFER = 2**20, 2**28
"""Bytes of codes that are streamed at a time; more would not make a copy quicker."""


@dataclass(frozen=True)
class Plan:
    """How to use the device's memory.

    Attributes
    ----------
    n_orders : int
        Features whose sorted orders are kept.
    buffer_bytes : int or None
        Codes are streamed through a buffer of this size; None if all stay on the device.
    """

    n_orders: int
    buffer_bytes: int | None


def padded(n_samples: int) -> int:
    """Samples up to whole tiles."""
    return -(-n_samples // TILE_SAMPLES) * TILE_SAMPLES


def least_bytes(n_samples: int, n_features: int) -> int:
    """The least memory beside the table with which training is possible."""
    codes = padded(n_samples) * n_features
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
    codes = padded(n_samples) * n_features
    free = budget - _without_codes(n_samples, n_features)
    if codes <= free:
        return Plan(min(n_features, 1 + (free - codes) // of_order), None)
    return Plan(1, min(free // 2, _MOST_BUFFER))


def _without_codes(n_samples: int, n_features: int) -> int:
    of_sample = _SAMPLE_BYTES + _SORTING_BYTES + _ORDER_BYTES
    return n_samples * of_sample + n_features * _FEATURE_BYTES + _FIXED_BYTES
