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

_SORTING_BYTES = 16
"""Per sample and thread: one feature's bins while they are sorted."""

_FEATURE_BYTES = 40_000
"""Histograms and what is known of a feature's bins."""

_HISTOGRAM_BYTES = 4096
"""Per feature and thread."""


class Plan(NamedTuple):
    """What coded columns may use.

    Attributes
    ----------
    threads : int
    finely : bool
        Whether features of many values get a second byte.
    kept : int
        Bytes for sorted positions.
    """

    threads: int
    finely: bool
    kept: int


def choice_within(limit: int, choice: str, n_samples: int, n_features: int, threads: int) -> str:
    """The way of training that was chosen, or the first other one that a limit of bytes allows.

    Raises
    ------
    ValueError
        If there is none.
    """
    shape = (n_samples, n_features)
    needs = {"reference": _of_reference(*shape)}
    if choice != "reference":  # else the kernels are not to be had
        needs |= {"direct": _of_direct(*shape, threads), "coded": sum(_of_coded(*shape))}
    for way in (choice, "coded", "reference"):
        if needs.get(way, limit + 1) <= limit:
            return way
    raise ValueError(
        f"max_memory is {limit} bytes, but training on {n_samples} samples of {n_features} features"
        f" takes at least {min(needs.values())} bytes beside the table."
    )


def plan(n_samples: int, n_features: int, limit: int, threads: int) -> Plan:
    """How to train on coded columns within a limit of bytes that is enough for one thread."""
    n_elements = n_samples * n_features
    least, of_thread = _of_coded(n_samples, n_features)
    threads = max(1, min(threads, (limit - least) // of_thread))
    free = limit - least - threads * of_thread
    finely = free >= 2 * n_elements
    return Plan(threads, finely, free - finely * n_elements)


def block_bytes(n_samples: int, n_features: int, limit: int) -> int:
    """Bytes of temporaries that a limit leaves to the reference scan."""
    return limit - _of_reference(n_samples, n_features) + n_samples * ELEMENT_BYTES


def _of_reference(n_samples: int, n_features: int) -> int:
    """Orders and cuts of all features, temporaries of one."""
    position = 4 if n_samples < 2**31 else 8
    of_element = n_features * (position + 1)
    return n_samples * (of_element + _SAMPLE_BYTES + ELEMENT_BYTES)


def _of_direct(n_samples: int, n_features: int, threads: int) -> int:
    """Orders of all features; some, as keys, while each thread sorts."""
    of_thread = 50 * min(n_samples * n_features, 2**17)
    return n_samples * (4 * n_features + _SAMPLE_BYTES) + threads * of_thread + 2**20


def _of_coded(n_samples: int, n_features: int) -> tuple[int, int]:
    """With one byte an element and nothing kept: in all, and for each thread."""
    least = n_samples * (n_features + _SAMPLE_BYTES) + n_features * _FEATURE_BYTES
    drawn = 30 * min(n_samples, 2**14) * min(n_features, 64)  # a sample of the rows, as keys
    parts = 3 * 2**20
    of_thread = drawn + parts + n_samples * _SORTING_BYTES + n_features * _HISTOGRAM_BYTES
    return least, of_thread
