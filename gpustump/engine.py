"""Which implementation of the scan trains: the compiled kernels or the reference on arrays.

Nobody names one. Arrays on a CUDA device, of any library, go to the CUDA kernels if CuPy can launch
them; NumPy arrays and PyTorch's CPU tensors go to the CPU kernels if Numba is installed and worth
its start; everything else goes to the reference. All return the same integers, so a choice by time
costs nothing but time:

* Loading Numba and the kernels takes half a second in every process (and compiling them some more,
  once on a machine). A process that has only small things to do is done sooner without; so kernels
  are loaded when the reference has worked, or would work, for about as long as that takes.
* Small tables are scanned directly, others through histograms.
* Intervals are found by the CPU's kernels and by the reference; on a GPU, by the latter.

The environment variable GPUSTUMP_KERNELS is for tests, comparisons and doubts: "reference" keeps
the kernels out, "direct" and "coded" take the one or the other of the CPU's, and "cuda" the
device's, wherever they can be had.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias

import array_api_compat
import numpy as np

from gpustump import arrays, columns, memory
from gpustump.arrays import Array
from gpustump.columns import Columns
from gpustump.cpu.team import Team, threads_of
from gpustump.distribution import ArrayDistribution, Distribution
from gpustump.placement import DeviceError
from gpustump.validation import brought_beside, check_bytes, check_count, check_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpustump.cpu.codes import CodedColumns
    from gpustump.cpu.direct import SortedColumns
    from gpustump.cuda.columns import DeviceColumns
    from gpustump.cuda.device import Device
    from gpustump.tables import StepTable

    AnyColumns: TypeAlias = Columns | CodedColumns | SortedColumns | DeviceColumns

CHOICES = ("auto", "reference", "direct", "coded", "cuda")

DIRECT_SAMPLES, DIRECT_ELEMENTS = 4096, 2**19
"""Tables of up to so many samples, or elements, are scanned directly."""

START_SECONDS = 0.5
"""About what loading Numba and the compiled kernels takes."""

_PREPARING_NS, _ROUND_NS, _ROUND_SECONDS, _PREDICTING_NS = 60.0, 9.0, 0.0005, 10.0
"""What the reference takes to sort an element, to scan it in a round, for a round besides, and
to look an element up when it predicts."""

_TIMES_FOR_INTERVALS = 2.5
"""As long takes a round of the reference that looks for intervals."""

_MOST_ON_DEVICE = 2**31 - 1
"""Samples whose sorted positions the CUDA kernels can hold in 31 bits."""

_is_broken = False

_waited = 0.0
"""Seconds that the reference has taken in this process where the kernels could have been used."""


def prepare(
    X: Array,
    rows: Array | None = None,
    *,
    place: str | None = None,
    n_rounds: int | None = None,
    weak_learner: str = "stump",
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> AnyColumns:
    """A feature table ready for the implementation that suits it.

    Parameters
    ----------
    X : array (n_samples, n_features)
    rows : array (n_rows,) of int, optional
        Take only these rows.
    place : str, optional
        The device to train on, if X is in the host's memory; see `reader_of_host_tables`.
    n_rounds : int, optional
        How many rounds there will be at most, if that is known.
    weak_learner : str
        "stump" or "interval": what is to be searched for.
    block_bytes : int, optional
        See `columns.prepare`.
    n_jobs : int, optional
        Threads for the CPU kernels; all that the process may use by default.
    max_memory : int or str, optional
        Bytes that columns and rounds may take in all beside X: of the host's memory or, for the
        CUDA kernels, of the device's. The reference keeps to it on the host only.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, or max_memory is too little; the message says how much
        is needed.
    DeviceError
        If it is a device's memory that is too little.
    """
    check_jobs(n_jobs)
    if block_bytes is not None:
        check_count(block_bytes, "block_bytes")
    limit = None if max_memory is None else check_bytes(max_memory, "max_memory")
    device = _device_for(X, place) if weak_learner == "stump" else None
    if device is not None:
        from gpustump.cuda import columns as device_columns

        table = X if place is None else arrays.to_host(X)
        try:
            return device_columns.prepare(table, rows, device, budget=limit, n_jobs=n_jobs)
        except DeviceError:
            if place is not None or limit is not None or arrays.library_name(X) == "cupy":
                raise
            # JAX keeps most of a device's memory for itself; there the reference may fit.
    if not arrays.on_host(X):
        limit = None
    shape = (X.shape[0] if rows is None else rows.shape[0], X.shape[1])
    choice = _choice(X, shape, n_rounds, weak_learner)
    threads = 1 if choice == "reference" else threads_of(n_jobs)
    if limit is not None:
        choice = memory.choice_within(limit, choice, *shape, threads)
    if choice == "reference":
        if limit is not None:
            most = memory.block_bytes(*shape, limit)
            block_bytes = min(most, block_bytes or columns.HOST_BLOCK_BYTES)
        return columns.prepare(X, rows=rows, block_bytes=block_bytes)
    table = arrays.to_host(X)
    taken = None
    if rows is not None:
        taken = np.ascontiguousarray(arrays.to_host(rows), dtype=np.int64)
    if choice == "direct":
        from gpustump.cpu import direct

        return direct.prepare(table, taken, Team(threads))
    from gpustump.cpu import codes

    if limit is None:
        return codes.prepare(table, taken, Team(threads))
    plan = memory.plan(*shape, limit, threads)
    return codes.prepare(table, taken, Team(plan.threads), finely=plan.finely, budget=plan.kept)


def reader_of_host_tables(X: Array, place: str, weak_learner: str = "stump") -> str | None:
    """The device "cuda" or "cuda:N" by its full name, if its kernels take X from the host.

    None if not: the table has to be brought there, where the reference trains.

    Raises
    ------
    DeviceError
        If there is no such device.
    """
    if not place.startswith("cuda") or not arrays.on_host(X) or weak_learner != "stump":
        return None
    device = _device_for(X, place)
    return None if device is None else device.name


def distribution(
    prepared: AnyColumns, y: Array, sample_weight: Array, weak_learner: str = "stump"
) -> Distribution:
    """The first round's distribution for labels -1.0 and 1.0 and positive weights.

    The columns are those that `prepare` made for this weak learner.
    """
    if isinstance(prepared, Columns):
        return ArrayDistribution(prepared, y, sample_weight, weak_learner)
    from gpustump.cuda.columns import DeviceColumns

    if isinstance(prepared, DeviceColumns):
        from gpustump.cuda.distribution import CudaDistribution

        if weak_learner != "stump":
            raise ValueError(f"these columns were prepared for stumps, not for {weak_learner!r}.")
        return CudaDistribution(prepared, y, sample_weight)
    y, sample_weight = arrays.to_host(y), arrays.to_host(sample_weight)
    from gpustump.cpu.direct import DirectDistribution, SortedColumns

    if isinstance(prepared, SortedColumns):
        return DirectDistribution(prepared, y, sample_weight, weak_learner)
    from gpustump.cpu.distribution import CodedDistribution

    return CodedDistribution(prepared, y, sample_weight, weak_learner)


def scores(
    X: Array,
    constant: float,
    tables: Sequence[StepTable],
    n_jobs: int | None = None,
    plans: dict[str, Any] | None = None,
) -> Array:
    """F(x) of each row of a checked table: a constant and step functions, added up.

    float64 (n_samples,), in the library and on the device of X. `plans`, empty at first, keeps
    what the kernels make of the tables.
    """
    check_jobs(n_jobs)
    device = _device_for(X, None)
    if device is not None:
        from gpustump.cuda import prediction as device_prediction

        return brought_beside(device_prediction.scores(X, constant, tables, device, plans), X)
    n_elements = X.shape[0] * len(tables)
    if _predicts(X, n_elements):
        from gpustump.cpu import prediction

        found = prediction.scores(arrays.to_host(X), constant, tables, n_jobs, plans)
        return brought_beside(found, X)
    xp = arrays.namespace_of(X)
    score = xp.full(X.shape[0], constant, dtype=xp.float64, device=arrays.device_of(X))
    for table in tables:
        score = score + table.look_up(X[:, table.feature])
    return score


def _device_for(X: Array, place: str | None) -> Device | None:
    """The device whose kernels take this array, if there is one."""
    if _asked_for() not in ("auto", "cuda") or X.shape[0] > _MOST_ON_DEVICE:
        return None
    if place is None and arrays.on_host(X) and _asked_for() == "auto":
        return None
    from gpustump.cuda.device import device_named, device_of

    return device_of(X) if place is None else device_named(place)


def _choice(X: Array, shape: tuple[int, int], n_rounds: int | None, weak_learner: str) -> str:
    global _waited
    choice = _asked_for()
    choice = "auto" if choice == "cuda" else choice
    if choice == "reference" or not _suits(X):
        return "reference"
    if choice == "auto":
        if n_rounds is not None and not _is_loaded():
            seconds = _reference_seconds(shape[0] * shape[1], n_rounds, weak_learner)
            if _waited + seconds < START_SECONDS:
                _waited += seconds
                return "reference"
        is_small = shape[0] <= DIRECT_SAMPLES or shape[0] * shape[1] <= DIRECT_ELEMENTS
        choice = "direct" if is_small else "coded"
    return choice if _loaded() else "reference"


def _asked_for() -> str:
    choice = os.environ.get("GPUSTUMP_KERNELS") or "auto"
    if choice not in CHOICES:
        raise ValueError(f"GPUSTUMP_KERNELS must be one of {', '.join(CHOICES)}; got {choice!r}.")
    return choice


def _predicts(X: Array, n_elements: int) -> bool:
    """Whether the CPU kernels predict; as for training, not before that is worth their start."""
    global _waited
    choice = _asked_for()
    if choice == "reference" or not _suits(X):
        return False
    if "gpustump.cpu.prediction" not in sys.modules:
        seconds = n_elements * _PREDICTING_NS * 1e-9
        if choice == "auto" and _waited + seconds < START_SECONDS:
            _waited += seconds
            return False
        return _loaded("prediction")
    return True


def _suits(X: Array) -> bool:
    """Whether the CPU kernels take this array, and are there."""
    if not (array_api_compat.is_numpy_array(X) or array_api_compat.is_torch_array(X)):
        return False
    return arrays.on_host(X) and importlib.util.find_spec("numba") is not None


def _loaded(*stages: str) -> bool:
    """Whether the kernels can be had; an installation that does not work is reported once."""
    global _is_broken
    if _is_broken:
        return False
    try:
        from gpustump.cpu import jit

        jit.load(*stages)
    except Exception as error:  # of any kind: what it needs may be missing, broken, or too new
        _is_broken = True
        warnings.warn(
            f"Numba is installed but does not work, so the reference is used, which is slower: "
            f"{type(error).__name__}: {error}",
            stacklevel=2,
        )
        return False
    return True


def _is_loaded() -> bool:
    return "gpustump.cpu.distribution" in sys.modules


def _reference_seconds(n_elements: int, n_rounds: int, weak_learner: str) -> float:
    a_round = _ROUND_NS * (_TIMES_FOR_INTERVALS if weak_learner == "interval" else 1)
    nanoseconds = n_elements * (_PREPARING_NS + n_rounds * a_round)
    return nanoseconds * 1e-9 + n_rounds * _ROUND_SECONDS
