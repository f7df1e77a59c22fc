"""Which implementation of the scan trains: the compiled kernels or the reference on arrays.

Nobody names one. NumPy arrays and PyTorch's CPU tensors go to the CPU kernels if Numba is installed
and worth its start; everything else goes to the reference. All return the same integers, so a
choice by time costs nothing but time:

* Loading Numba and the kernels takes a second in every process (and compiling them some more, once
  on a machine). A process that has only small things to do is done sooner without; so kernels are
  loaded when the reference has worked, or would work, for about as long as that takes.
* Few samples are scanned directly, more through histograms.

The environment variable GPUSTUMP_KERNELS is for tests, comparisons and doubts: "reference" keeps
the kernels out, "direct" and "coded" always take the one or the other.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, TypeAlias

import array_api_compat
import numpy as np

from gpustump import arrays, columns
from gpustump.arrays import Array
from gpustump.columns import Columns
from gpustump.distribution import ArrayDistribution, Distribution
from gpustump.validation import check_count

if TYPE_CHECKING:
    from gpustump.cpu.codes import CodedColumns
    from gpustump.cpu.direct import SortedColumns

    AnyColumns: TypeAlias = Columns | CodedColumns | SortedColumns

CHOICES = ("auto", "reference", "direct", "coded")

DIRECT_SAMPLES = 4096
"""Up to so many samples are scanned directly."""

START_SECONDS = 1.0
"""About what loading Numba and the compiled kernels takes."""

_PREPARING_NS, _ROUND_NS, _ROUND_SECONDS = 60.0, 9.0, 0.0005
"""What the reference takes to sort an element, to scan it in a round, and for a round besides."""

_waited = 0.0
"""Seconds that the reference has taken in this process where the kernels could have been used."""


def prepare(
    X: Array,
    rows: Array | None = None,
    *,
    n_rounds: int | None = None,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
) -> AnyColumns:
    """A feature table ready for the implementation that suits it.

    Parameters
    ----------
    X : array (n_samples, n_features)
    rows : array (n_rows,) of int, optional
        Take only these rows.
    n_rounds : int, optional
        How many rounds there will be at most, if that is known.
    block_bytes : int, optional
        See `columns.prepare`.
    n_jobs : int, optional
        Threads for the CPU kernels; all that the process may use by default.
    """
    threads = check_jobs(n_jobs)
    if block_bytes is not None:
        check_count(block_bytes, "block_bytes")
    choice = _choice(X, rows, n_rounds)
    if choice == "reference":
        return columns.prepare(X, rows=rows, block_bytes=block_bytes)
    from gpustump.cpu.team import Team

    table = arrays.to_host(X)
    taken = None if rows is None else arrays.to_host(rows).astype(np.int64, copy=False)
    team = Team(threads)
    if choice == "direct":
        from gpustump.cpu import direct

        return direct.prepare(table, taken, team)
    from gpustump.cpu import codes

    return codes.prepare(table, taken, team, None)


def distribution(prepared: AnyColumns, y: Array, sample_weight: Array) -> Distribution:
    """The first round's distribution for labels -1.0 and 1.0 and positive weights."""
    if isinstance(prepared, Columns):
        return ArrayDistribution(prepared, y, sample_weight)
    y, sample_weight = arrays.to_host(y), arrays.to_host(sample_weight)
    from gpustump.cpu.direct import DirectDistribution, SortedColumns

    if isinstance(prepared, SortedColumns):
        return DirectDistribution(prepared, y, sample_weight)
    from gpustump.cpu.distribution import CodedDistribution

    return CodedDistribution(prepared, y, sample_weight)


def check_jobs(n_jobs: int | None) -> int:
    """The number of threads that a parameter asks for: all that there are for None and -1."""
    if n_jobs is None or n_jobs == -1:
        from gpustump.cpu.team import available

        return available()
    return check_count(n_jobs, "n_jobs")


def _choice(X: Array, rows: Array | None, n_rounds: int | None) -> str:
    global _waited
    choice = os.environ.get("GPUSTUMP_KERNELS") or "auto"
    if choice not in CHOICES:
        raise ValueError(f"GPUSTUMP_KERNELS must be one of {', '.join(CHOICES)}; got {choice!r}.")
    if choice == "reference" or not _suits(X):
        return "reference"
    n_samples = X.shape[0] if rows is None else rows.shape[0]
    if choice == "auto":
        if n_rounds is not None and not _is_loaded():
            seconds = _reference_seconds(n_samples * X.shape[1], n_rounds)
            if _waited + seconds < START_SECONDS:
                _waited += seconds
                return "reference"
        choice = "direct" if n_samples <= DIRECT_SAMPLES else "coded"
    from gpustump.cpu import jit

    jit.load()
    return choice


def _suits(X: Array) -> bool:
    """Whether the CPU kernels take this array, and are there."""
    if not (array_api_compat.is_numpy_array(X) or array_api_compat.is_torch_array(X)):
        return False
    return arrays.on_host(X) and importlib.util.find_spec("numba") is not None


def _is_loaded() -> bool:
    return "gpustump.cpu.distribution" in sys.modules


def _reference_seconds(n_elements: int, n_rounds: int) -> float:
    nanoseconds = n_elements * (_PREPARING_NS + n_rounds * _ROUND_NS)
    return nanoseconds * 1e-9 + n_rounds * _ROUND_SECONDS
