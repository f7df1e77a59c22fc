"""How much of the host's memory the CPU engines take, and how to make do with what is allowed.

Beside the table they keep arrays of one number for each sample (labels, weights, scores), codes of
one byte or two for each value, and sorted positions of four bytes. Labels, weights and the first
byte are needed. The second byte saves time, and so does keeping sorted positions that may be needed
again; these two get the memory that is left.
"""

from __future__ import annotations

from typing import NamedTuple

_SAMPLE_BYTES = 80
"""For each sample: labels and weights, here and in the estimators, at their peak."""

_OUTPUT_BYTES = 40
"""For each sample and each output but the first: what a loss keeps, scores and integers."""

_SORTING_BYTES = 16
"""Per sample and thread: one feature's bins while they are sorted."""

_FEATURE_BYTES = 40_000
"""Histograms and what is known of a feature's bins."""

_HISTOGRAM_BYTES = 4096
"""Per feature and thread."""


class CodedBudget(NamedTuple):
    """What a coded table may use.

    Attributes
    ----------
    threads : int
    finely : bool
        Whether features of many values get a second byte.
    sorted_bytes : int
        For sorted positions.
    """

    threads: int
    finely: bool
    sorted_bytes: int


def coded_budget(n_samples: int, n_features: int, limit: int, threads: int) -> CodedBudget:
    """How to train on a coded table within a limit of bytes that is enough for one thread."""
    n_elements = n_samples * n_features
    least, of_thread = _of_coded(n_samples, n_features)
    threads = max(1, min(threads, (limit - least) // of_thread))
    free = limit - least - threads * of_thread
    finely = free >= 2 * n_elements
    return CodedBudget(threads, finely, free - finely * n_elements)


def least_of_direct(n_samples: int, n_features: int, n_outputs: int, threads: int) -> int:
    """The orders of all features; for each thread some of them, as keys, or a feature's sums."""
    of_sample = 4 * n_features + _SAMPLE_BYTES + (n_outputs - 1) * _OUTPUT_BYTES
    of_thread = max(50 * min(n_samples * n_features, 2**17), 24 * n_samples)
    return n_samples * of_sample + threads * of_thread + 2**20


def least_of_coded(n_samples: int, n_features: int) -> int:
    """One byte an element and one thread, with no sorted positions kept."""
    return sum(_of_coded(n_samples, n_features))


def _of_coded(n_samples: int, n_features: int) -> tuple[int, int]:
    """With one byte an element and nothing kept: in all, and for each thread."""
    least = n_samples * (n_features + _SAMPLE_BYTES) + n_features * _FEATURE_BYTES
    drawn = 30 * min(n_samples, 2**14) * min(n_features, 64)  # a sample of the rows, as keys
    parts = 3 * 2**20
    of_thread = drawn + parts + n_samples * _SORTING_BYTES + n_features * _HISTOGRAM_BYTES
    return least, of_thread
