"""All shards of a table, and how messages reach them.

A message is the name of a method of `questions.Shard`, or of `samples.Samples`, and its arguments.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

from gpustump.engines.cluster.questions import Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Task
from gpustump.engines.cpu.engine import CODED, KERNELS, MOST_CODED
from gpustump.engines.cpu.loss import STAGE_OF
from gpustump.engines.cuda.device import device_named
from gpustump.engines.cuda.engine import CudaEngine


class Shards(Protocol):
    """All shards of a table."""

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answers of all shards, in order. All shards are asked at the same time."""


def answer(shard: Shard, method: str, arguments: Sequence[Any]) -> Any:
    """A shard's answer to a message, by its own method or by a method of its samples."""
    asked = shard.samples if method in Samples.__dict__ else shard
    return getattr(asked, method)(*arguments)


def shard_of(
    samples: Samples, kind: str, n_threads: int = 1, categorical: Sequence[int] = ()
) -> Shard:
    """A shard of some kind.

    Parameters
    ----------
    samples : Samples
        At least one.
    kind : str
        "kernels" for the CPU's kernels, or for NumPy if these cannot be loaded here or samples are
        too many for them; "cuda" for the CUDA kernels, or for CuPy if they cannot take the samples
        or the device; or the array library: "numpy", "cupy", "torch" and so on.
    n_threads : int
        Threads of the CPU's kernels.
    categorical : sequence of int
        As for `contract.Task`.
    """
    stages = CODED.name, *dict.fromkeys(STAGE_OF.values()), "histogram.update_pass"
    has_few = len(samples.weights) < MOST_CODED
    if kind == "kernels" and has_few and KERNELS.load(*stages):
        from gpustump.engines.cluster.kernel_shard import KernelShard

        return KernelShard(samples, n_threads)
    if kind == "cuda" and (device := device_named("cuda")) is not None:
        task = Task(samples.values.T, len(samples), categorical=tuple(categorical))
        if CudaEngine.refusal(task) is None:
            from gpustump.engines.cluster.cuda_shard import CudaShard

            return CudaShard(samples, device)
    from gpustump.engines.cluster.array_shard import ArrayShard

    library = {"kernels": "numpy", "cuda": "cupy"}.get(kind, kind)
    return ArrayShard(samples, importlib.import_module(f"array_api_compat.{library}"))
