"""The score of every row: the sum of a model's step functions, by the fastest engine available."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.parameters import check_jobs
from gpustump.engines.cpu.engine import KERNELS
from gpustump.engines.cuda import device as cuda_device
from gpustump.engines.cuda.engine import MOST_SAMPLES
from gpustump.engines.reference import prediction as reference
from gpustump.engines.route import asked_for, is_worth_its_start
from gpustump.learners.pair_table import PairTable
from gpustump.learners.step_table import StepTable

_ELEMENT_NS, _TABLE_NS = 20.0, 4000.0
"""About how many nanoseconds the reference takes for each element, and for each step table."""

_CELL_NS, _PAIR_NS = 50.0, 20_000.0
"""The same for each row of a pair, and for each pair."""


def scores(
    X: Array,
    constant: np.ndarray,
    tables: Sequence[StepTable],
    n_jobs: int | None = None,
    layouts: dict[str, Any] | None = None,
    lacking: np.ndarray | None = None,
) -> Array:
    """F(x) of each row of a checked table: the sum of the constant and all step functions.

    Parameters
    ----------
    X : array (n_samples, n_features)
    constant : ndarray (n_outputs,) of float64
    tables : sequence of StepTable
        Each has values (k, n_outputs).
    n_jobs : int, optional
        Threads on the CPU.
    layouts : dict, optional
        Empty at first. The kernels keep their own form of the tables in it for the next call.
    lacking : ndarray (n_tables,) of bool, optional
        Set to true for the tables whose feature has no value in some row.

    Returns
    -------
    array (n_samples, n_outputs) of float64
        In the library and on the device of X.
    """
    check_jobs(n_jobs)
    given, X = X, quick_to_compute_in(X)
    if X is not given:
        found = scores(X, constant, tables, n_jobs, layouts, lacking)
        return moved_to_device_of(found, given)
    device = device_for(X)
    if device is not None:
        from gpustump.engines.cuda import prediction as on_cuda

        reference.note_missing(X, tables, lacking)
        return moved_to_device_of(on_cuda.scores(X, constant, tables, device, layouts), X)
    seconds = len(tables) * (_TABLE_NS + X.shape[0] * _ELEMENT_NS) * 1e-9
    if cpu_kernels_take(X, seconds, "predict.prediction"):
        from gpustump.engines.cpu.predict import prediction as on_cpu

        found = on_cpu.scores(arrays.to_host(X), constant, tables, n_jobs, layouts, lacking)
        return moved_to_device_of(found, X)
    return reference.scores(X, constant, tables, layouts, lacking)


def with_pairs(
    scores: Array,
    X: Array,
    pairs: Sequence[PairTable],
    n_jobs: int | None = None,
    layouts: dict[str, Any] | None = None,
) -> Array:
    """Scores (n_samples, n_outputs), and what pairs add for the rows of X.

    Parameters
    ----------
    scores : array (n_samples, n_outputs) of float64
        In the library and on the device of X.
    X : array (n_samples, n_features)
    pairs : sequence of PairTable
        With values (k, m, n_outputs).
    n_jobs : int, optional
        Threads on the CPU.
    layouts : dict, optional
        As for `scores`; both may share it.
    """
    given, X = X, quick_to_compute_in(X)
    if X is not given:
        found = with_pairs(arrays.to_host(scores), X, pairs, n_jobs, layouts)
        return moved_to_device_of(found, given)
    seconds = len(pairs) * (_PAIR_NS + X.shape[0] * _CELL_NS) * 1e-9
    if cpu_kernels_take(X, seconds, "predict.pair_scores"):
        from gpustump.engines.cpu.predict.pair_scores import add_pairs

        found = add_pairs(arrays.to_host(scores), arrays.to_host(X), pairs, n_jobs, layouts)
        return moved_to_device_of(found, X)
    bins: dict[Any, Array] = {}
    for axis in (axis for pair in pairs for axis in pair.axes):
        if axis.value not in bins:
            bins[axis.value] = axis.bins_of(X[:, axis.feature])
    for pair in pairs:
        scores = scores + pair.at(*(bins[axis.value] for axis in pair.axes))
    return scores


def quick_to_compute_in(X: Array) -> Array:
    """The array in a library without compile times: NumPy for a JAX array on the host.

    JAX compiles every operation for every new shape, which takes seconds; NumPy does not, and
    shares the array's memory. If GPUSTUMP_KERNELS asks for the reference, the array stays in JAX.
    """
    if array_api_compat.is_jax_array(X) and arrays.on_host(X) and asked_for() != "reference":
        return arrays.to_host(X)
    return X


def device_for(X: Array) -> cuda_device.CudaDevice | None:
    """The device whose kernels compute on this array, if there is one."""
    is_asked_for = asked_for() == "cuda" or (asked_for() == "auto" and not arrays.on_host(X))
    return cuda_device.device_of(X) if is_asked_for and X.shape[0] <= MOST_SAMPLES else None


def cpu_kernels_take(X: Array, seconds: float, stage: str) -> bool:
    """Whether to use the CPU kernels for work that takes the reference this many seconds.

    As for training, they are loaded only once that saves time (`route.is_worth_its_start`), and
    nothing waits until they are compiled. Where kernels have trained, Numba is loaded, and these
    few take no time.
    """
    asked = asked_for()
    if asked == "reference" or arrays.is_sparse(X) or KERNELS.refusal(X) is not None:
        return False
    if asked == "auto" and not is_worth_its_start(seconds):
        return False
    return KERNELS.load(stage, waits=asked != "auto")
