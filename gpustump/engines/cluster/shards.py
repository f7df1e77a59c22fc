"""All shards of a table, how messages reach them, and where each computes.

A message is the name of a method of `questions.Shard`, or of `samples.Samples`, and its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gpustump.arrays.devices import DeviceError
from gpustump.engines.cluster.questions import Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Task
from gpustump.engines.cpu.engine import CODED, KERNELS, MOST_CODED
from gpustump.engines.cpu.loss import STAGE_OF
from gpustump.engines.cuda.device import usable_device
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.cuda.sorting import MOST_BINS

MOST_CUTS = {"cpu": None, "cuda": MOST_BINS - 1}
"""The most cuts between a feature's bins that shards on a device can take; None for any number."""


class Shards(Protocol):
    """All shards of a table."""

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answers of all shards, in order. All shards are asked at the same time."""


def answer(shard: Shard, method: str, arguments: Sequence[Any]) -> Any:
    """A shard's answer to a message, by its own method or by a method of its samples."""
    asked = shard.samples if method in Samples.__dict__ else shard
    return getattr(asked, method)(*arguments)


def shard_of(
    samples: Samples, device: str, n_threads: int = 1, categorical: Sequence[int] = ()
) -> Shard:
    """A shard that computes by the CPU's kernels or by a GPU's.

    Parameters
    ----------
    samples : Samples
        At least one.
    device : str
        "cpu" or "cuda".
    n_threads : int
        Threads of the CPU's kernels, or those that copy values to the GPU.
    categorical : sequence of int
        As for `contract.Task`.

    Raises
    ------
    DeviceError
        If the kernels cannot be used here, or not for these samples.
    """
    if device == "cuda":
        found = usable_device(device)
        task = Task(samples.values.T, len(samples), categorical=tuple(categorical))
        problem = CudaEngine.refusal(task)
        if problem is None:
            from gpustump.engines.cluster.cuda_shard import CudaShard

            return CudaShard(samples, found, n_threads)
    elif len(samples) >= MOST_CODED:
        problem = "they are too many; take more workers"
    else:
        losses = dict.fromkeys(STAGE_OF.values())
        if KERNELS.load(CODED.name, *losses, "histogram.update_pass", "cluster.key_ranges"):
            from gpustump.engines.cluster.kernel_shard import KernelShard

            return KernelShard(samples, n_threads)
        problem = KERNELS.refusal(samples.values) or "its kernels cannot be loaded"
    raise DeviceError(
        f"device={device!r} cannot be used for the {len(samples)} rows of a worker: {problem}"
    )
