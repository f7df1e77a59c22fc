"""How much of the host's memory the CPU engines take, and how to train within a limit.

Beside the table they keep arrays of one number for each sample (labels, weights, scores), codes of
one byte or two for each value, and samples in the order of their codes, four bytes each. Labels,
weights and the first byte are necessary. The second byte saves time, and so does the order; these
two get the memory that is left.

The kernels themselves take memory, too. LLVM ends the process if it cannot get memory, so
`has_room` is asked before kernels are loaded or compiled.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

LOADING_BYTES = 400_000_000
"""Address space that Numba and the compiled kernels take: 300 MB, with a reserve."""

COMPILING_BYTES = 500_000_000
"""What compiling all kernels takes in addition: 400 MB, with a reserve."""

_SAMPLE_BYTES = 80
"""Peak bytes of a sample: labels and weights, here and in the estimators."""

_OUTPUT_BYTES = 40
"""For each sample and each output but the first: what a loss keeps, scores and integers."""

_SORTING_BYTES = 16
"""Per sample and thread: one feature's samples while they are sorted."""

_LISTED_BYTES = 40
"""Per value that a sparse table lists: its place in the sorted column, and keys for sorting."""

_CODING_BYTES = 16_000
"""Per feature: cuts and counts while values are coded."""

_SLOT_BYTES = 60
"""For each bin: layout and bounds."""

_OF_ONE_OUTPUT, _OF_EACH_OUTPUT = (100, 48), (160, 40)
"""For each bin and output, if there is one output or several: sums and what is kept between rounds;
and histograms, per thread."""

_NARROW_SLOTS, _WIDE_SLOTS = 256, 1024
"""Bins of a feature with codes of one byte, and of two."""

_DRAWN_BYTES = 30
"""For each value of the drawn rows, from which the edges of bins are chosen."""


class Size(NamedTuple):
    """The size of what is trained on."""

    n_samples: int
    n_features: int
    n_outputs: int = 1

    @property
    def n_elements(self) -> int:
        return self.n_samples * self.n_features


class CodedBudget(NamedTuple):
    """What a coded table may use.

    Attributes
    ----------
    threads : int
    finely : bool
        Whether features of many values get a second byte.
    parted : bool
        Whether their samples may be kept in the order of their codes.
    """

    threads: int
    finely: bool
    parted: bool


def has_room(n_bytes: int) -> bool:
    """Whether the system gives this process `n_bytes` of memory, which are released at once."""
    try:
        mmap.mmap(-1, n_bytes).close()
    except (OSError, MemoryError):
        return False
    return True


def coded_budget(size: Size, limit: int, threads: int) -> CodedBudget:
    """How to train on a coded table within a limit of bytes that is enough for one thread."""
    n_elements = size.n_elements
    least, of_thread = _of_coded(size, _NARROW_SLOTS)
    threads = max(1, min(threads, (limit - least) // of_thread))
    free = limit - least - threads * of_thread
    finer, of_finer_thread = _of_coded(size, _WIDE_SLOTS)
    second_bytes = n_elements + finer - least + threads * (of_finer_thread - of_thread)
    if free < second_bytes + n_elements:
        return CodedBudget(threads, finely=False, parted=False)
    return CodedBudget(threads, finely=True, parted=free - second_bytes >= 5 * n_elements)


def least_of_sorted(size: Size, threads: int, has_bins: bool) -> int:
    """Bytes of the orders and thresholds of all features; for each thread keys of some of them, or
    sums of one.

    With bins also of codes of one byte, the bins' places and what is remembered of them; for each
    thread rows of integers, and sums over bins.
    """
    n_samples, n_features, n_outputs = size
    of_sample = 12 * n_features + _SAMPLE_BYTES + (n_outputs - 1) * _OUTPUT_BYTES
    of_feature, of_thread = 0, max(50 * min(size.n_elements, 2**17), 32 * n_samples)
    if has_bins:
        of_sample += n_features
        rows = 16 * (n_outputs + 4) * n_samples
        of_feature, of_thread = 33 * _NARROW_SLOTS, max(of_thread, rows) + 2**14 * (n_outputs + 4)
    return n_samples * of_sample + n_features * of_feature + threads * of_thread + 2**20


def least_of_sparse(size: Size, n_listed: int) -> int:
    """The fewest bytes beside a sparse table with which its columns are sorted and searched."""
    of_samples = _SAMPLE_BYTES + (size.n_outputs - 1) * _OUTPUT_BYTES + 16 * size.n_outputs
    return size.n_samples * of_samples + n_listed * _LISTED_BYTES + size.n_features * 100


def least_of_coded(size: Size) -> int:
    """Bytes with codes of one byte and one thread, without orders of samples."""
    return sum(_of_coded(size, _NARROW_SLOTS))


def _of_coded(size: Size, slots: int) -> tuple[int, int]:
    """Bytes with codes of one byte and nothing else stored: in all, and for each thread."""
    n_samples, n_features, n_outputs = size
    of_sample = n_features + _SAMPLE_BYTES + (n_outputs - 1) * _OUTPUT_BYTES
    of_slot, of_bin = _OF_ONE_OUTPUT if n_outputs == 1 else _OF_EACH_OUTPUT
    of_feature = slots * (_SLOT_BYTES + n_outputs * of_slot) + _CODING_BYTES
    drawn = _DRAWN_BYTES * min(n_samples, 64 * slots) * min(n_features, 64 * 256 // slots)
    parts = 3 * 2**20
    of_thread = n_samples * _SORTING_BYTES + n_features * slots * n_outputs * of_bin
    return n_samples * of_sample + n_features * of_feature, of_thread + drawn + parts
