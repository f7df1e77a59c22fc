"""How fast this machine's memory is: copying in order, and gathering in random order.

A scan that reads in order is compared with the first, one that reads through a permutation with the
second. On the host NumPy does both, in as many threads as the contenders may use, each with memory
of its own; on a GPU CuPy or PyTorch does.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.contenders import release, synchronise
from bench.machine import gpus
from bench.records import Speed
from bench.worker import timed

COPY_BYTES = 1 << 30  # of each buffer: beyond the caches of most machines
_FEWEST_GATHERED = 1 << 24  # in one timing; a shorter one is repeated until it has fetched as many


@dataclass
class Probe:
    """A copy and a gather, ready to be timed again and again."""

    device: str
    threads: int
    copied: int
    copy: Callable[[], Any]
    gathered: int
    gather: Callable[[], Any]
    copy_seconds: list[float] = field(default_factory=list)
    gather_seconds: list[float] = field(default_factory=list)

    def warm_up(self) -> None:
        """Touch all the memory once."""
        self.copy()
        self.gather()

    def measure(self) -> None:
        """Time both once."""
        self.copy_seconds.append(timed(self.copy)[0])
        self.gather_seconds.append(timed(self.gather)[0])

    def speed(self) -> Speed:
        """The record of what was measured."""
        copy, gather = tuple(self.copy_seconds), tuple(self.gather_seconds)
        return Speed(self.device, self.threads, self.copied, copy, self.gathered, gather)


def probes(n_samples: int, threads: int, copy_bytes: int) -> list[Probe]:
    """The host's memory, and the GPU's if there is one, warmed up."""
    gpu = gpu_probe(n_samples, copy_bytes)
    found = [host_probe(n_samples, threads, copy_bytes), *([gpu] if gpu else [])]
    for probe in found:
        probe.warm_up()
    return found


def host_probe(n_samples: int, threads: int, copy_bytes: int = COPY_BYTES) -> Probe:
    """NumPy in several threads; it releases the interpreter's lock while it copies and gathers.

    Parameters
    ----------
    n_samples : int
        Length of the vector to gather from.
    threads : int
    copy_bytes : int
        Size of the buffer copied from, and of the one copied to.
    """
    length = copy_bytes // 8 // threads
    sources = [np.ones(length) for _ in range(threads)]
    targets = [np.zeros(length) for _ in range(threads)]
    vectors = [np.arange(n_samples) for _ in range(threads)]
    orders = [np.random.default_rng(thread).permutation(n_samples) for thread in range(threads)]
    fetched = [np.zeros(n_samples, dtype=np.int64) for _ in range(threads)]
    repeats = _repeats(n_samples * threads)
    pool = ThreadPoolExecutor(threads)

    def gather(target: np.ndarray, vector: np.ndarray, order: np.ndarray) -> None:
        for _ in range(repeats):
            np.take(vector, order, out=target, mode="clip")  # other modes make a copy first

    return Probe(
        device="cpu",
        threads=threads,
        copied=2 * 8 * length * threads,
        copy=lambda: list(pool.map(np.copyto, targets, sources)),
        gathered=n_samples * threads * repeats,
        gather=lambda: list(pool.map(gather, fetched, vectors, orders)),
    )


def gpu_probe(n_samples: int, copy_bytes: int = COPY_BYTES) -> Probe | None:
    """The first GPU, through CuPy or PyTorch; None where there is none or neither works."""
    for library in ("cupy", "torch"):
        if gpus() and importlib.util.find_spec(library):
            try:
                return _gpu_probe(library, n_samples, copy_bytes)
            except Exception as error:  # broken, or built without CUDA: the next may work
                print(f"the GPU's memory cannot be measured by {library}: {error}", file=sys.stderr)
            with contextlib.suppress(Exception):  # a broken library may not be able to
                release()
    return None


def _gpu_probe(library: str, n_samples: int, copy_bytes: int) -> Probe:
    xp = importlib.import_module(library)
    on_gpu = {"device": "cuda"} if library == "torch" else {}
    length, repeats = copy_bytes // 8, _repeats(n_samples)
    source, target = (xp.ones(length, dtype=xp.float64, **on_gpu) for _ in range(2))
    vector, fetched = (xp.arange(n_samples, dtype=xp.int64, **on_gpu) for _ in range(2))
    permutation = np.random.default_rng(0).permutation(n_samples).astype(np.int32)
    order = xp.asarray(permutation, **on_gpu)

    def copy() -> None:
        target[...] = source
        synchronise()

    def gather() -> None:
        for _ in range(repeats):
            if library == "torch":
                xp.index_select(vector, 0, order, out=fetched)
            else:
                xp.take(vector, order, out=fetched)
        synchronise()

    return Probe("cuda:0", 1, 2 * 8 * length, copy, n_samples * repeats, gather)


def _repeats(fetched_at_once: int) -> int:
    return -(-_FEWEST_GATHERED // fetched_at_once)
