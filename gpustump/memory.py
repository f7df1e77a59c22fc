"""How much memory training takes on the host, and how to make do with what is allowed.

Beside the table itself there are vectors as long as the samples (labels, weights, scores), codes of
one byte per element or two, and sorted positions of four. Labels and weights cannot be done
without, nor the first byte. The second byte saves time, and so does keeping positions that may be
needed again: they get what is left.
"""

from __future__ import annotations

from typing import NamedTuple

from gpustump.columns import ELEMENT_BYTES

_SAMPLE_BYTES = 80
"""Of vectors: what the estimators, the labels and the weights need at their peak."""

_THREAD_BYTES = 20 * 2**20
"""Tiles being coded, a sample of the rows, weights in the parts of bins."""

_SORTING_BYTES = 16
"""Per sample and thread: one feature's bins while they are sorted."""

_FEATURE_BYTES = 40_000
"""Histograms and what is known of a feature's bins."""


class Plan(NamedTuple):
    """What coded columns may use.

    Attributes
    ----------
    threads : int
    finely : bool
        Whether features of many values get a second byte.
    sorted : int
        Bytes for sorted positions.
    """

    threads: int
    finely: bool
    sorted: int


def plan(n_samples: int, n_features: int, limit: int, threads: int) -> Plan:
    """The best way to train on coded columns within a limit of bytes.

    Raises
    ------
    ValueError
        If there is none.
    """
    n_elements = n_samples * n_features
    least = n_elements + n_samples * _SAMPLE_BYTES + n_features * _FEATURE_BYTES
    of_thread = _THREAD_BYTES + n_samples * _SORTING_BYTES
    if least + of_thread > limit:
        raise _too_little(n_samples, n_features, least + of_thread, limit)
    threads = min(threads, (limit - least) // of_thread)
    free = limit - least - threads * of_thread
    finely = free >= 2 * n_elements
    return Plan(threads, finely, free - finely * n_elements)


def of_direct(n_samples: int, n_features: int) -> int:
    """Bytes that sorting and scanning all of a small table takes."""
    return 8 * n_samples * n_features + n_samples * _SAMPLE_BYTES + 2 * _THREAD_BYTES


def block_bytes(n_samples: int, n_features: int, limit: int) -> int:
    """Bytes of temporaries that are left to the reference scan.

    Raises
    ------
    ValueError
        If that is not enough for one feature.
    """
    position = 4 if n_samples < 2**31 else 8
    resident = n_samples * n_features * (position + 1) + n_samples * _SAMPLE_BYTES
    least = resident + n_samples * ELEMENT_BYTES
    if least > limit:
        raise _too_little(n_samples, n_features, least, limit)
    return limit - resident


def _too_little(n_samples: int, n_features: int, needed: int, limit: int) -> ValueError:
    return ValueError(
        f"max_memory is {limit} bytes, but training on {n_samples} samples of {n_features} features"
        f" takes at least {needed} bytes beside the table."
    )
