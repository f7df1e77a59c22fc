"""The sums over held-out samples that early stopping needs, by kernels where they are used.

The CPU's kernels offer `HeldOutSums`; on a CUDA device a `DeviceJudge` adds the votes of a round,
too. Where `held_out_sums` and `device_judge` return None, boosting computes the same sums by array
operations. Losses are multiplied by weights, and each product is rounded to an integer. The caller
scales the weights so that the sum of these integers is below 2**62.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.engines.cuda.device import CudaDevice, OutOfDeviceMemoryError
from gpustump.engines.prediction import cpu_kernels_take

if TYPE_CHECKING:
    from gpustump.engines.cpu.predict.held_out_sums import HeldOutSums
    from gpustump.engines.cuda.held_out import DeviceJudge

_STAGE = "predict.held_out_sums"

LossTable = tuple[Array, Array, int]
"""ln(1 + exp(-x)) at every multiple of 2**-b from x = 0 on, in units of 2**-32: these losses, how
far each lies above the next one, and b."""


def validation_table(X: Array) -> Array:
    """The table as early stopping reads it: in NumPy, without a copy, where the kernels are in use.

    The kernels are in use if training has loaded them; early stopping alone does not load them.
    """
    return arrays.to_host(X) if cpu_kernels_take(X, 0.0, _STAGE) else X


def device_judge(
    device: CudaDevice, samples: ValidationSamples, n_jobs: int | None = None
) -> DeviceJudge | None:
    """The held-out samples on the device that trains; None if there is too little room."""
    n_bytes = 8 * samples.scores.shape[0] * (samples.X.shape[1] + 8 * samples.scores.shape[1])
    if device.free_bytes() < 2 * n_bytes:
        return None
    from gpustump.engines.cuda import held_out as on_device

    try:
        return on_device.DeviceJudge(device, samples, n_jobs)
    except OutOfDeviceMemoryError:  # other programs use the device, too
        return None


def held_out_sums(
    classes: Array, units: Array, n_classes: int, n_jobs: int | None = None
) -> HeldOutSums | None:
    """The sums over some samples by the CPU kernels; None where array operations have to do it.

    Parameters
    ----------
    classes : array (n_samples,) of int64
        With one output: 1 for the class that a positive score predicts, and 0 for the other.
    units : array (n_samples,) of int64
        The samples' integer weights.
    n_classes : int
    n_jobs : int, optional
    """
    if not isinstance(units, np.ndarray) or not cpu_kernels_take(units, 0.0, _STAGE):
        return None
    from gpustump.engines.cpu.predict import held_out_sums as on_cpu

    return on_cpu.HeldOutSums(classes, units, n_classes, n_jobs)
