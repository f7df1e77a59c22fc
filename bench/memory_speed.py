"""How fast this machine's memory is: copying in order, and gathering in random order.

A scan that reads in order is compared with the first, one that reads through a permutation with the
second. On the host NumPy does both, in as many threads as the contenders may use, each with memory
of its own; on a GPU CuPy does.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.contenders import synchronise
from bench.machine import gpus
from bench.records import Result
from bench.worker import NOT_YET, side_by_side, timed

COPY_BYTES = 1 << 30  # of each buffer: beyond the caches of most machines
MEMORY = "memory"
"""The case of the results."""
_FEWEST_GATHERED = 1 << 24  # in one timing; a shorter one is repeated until it has fetched as many


@dataclass(frozen=True)
class Probe:
    """A copy and a gather that take turns with the contenders.

    Attributes
    ----------
    name : str
        The device.
    threads, n_samples : int
    copied : int
        Bytes that a copy reads and writes.
    copy : function
    gathered : int
        Elements of 8 bytes that are gathered.
    gather : function
    """

    name: str
    threads: int
    n_samples: int
    copied: int
    copy: Callable[[], Any]
    gathered: int
    gather: Callable[[], Any]

    def warm_up(self) -> None:
        """Touch all of the memory once."""
        self.turn()

    def turn(self) -> dict[str, Any]:
        """Time both once."""
        return {"copy": _seconds(self.copy), "gather": _seconds(self.gather)}

    def judge(self) -> None:
        """Nothing: there is no model."""

    def close(self) -> None:
        """Nothing: it has no process of its own."""

    def result(self, turns: Sequence[dict[str, Any]], reason: str | None) -> Result:
        """The record of the turns so far."""
        return Result(
            case=MEMORY,
            contender=self.name,
            data="a vector",
            samples=self.n_samples,
            features=1,
            threads=self.threads,
            reason=reason or (None if turns else NOT_YET),
            facts={"copied": self.copied, "gathered": self.gathered},
            values=side_by_side(turns),
        )


def _seconds(work: Callable[[], Any]) -> float:
    def to_its_end() -> None:
        work()
        synchronise()

    return timed(to_its_end)[0]


def probes(n_samples: int, threads: int, copy_bytes: int) -> list[Probe]:
    """The host's memory, and the GPU's if there is one."""
    gpu = gpu_probe(n_samples, copy_bytes)
    return [host_probe(n_samples, threads, copy_bytes), *([gpu] if gpu else [])]


def host_probe(n_samples: int, threads: int, copy_bytes: int) -> Probe:
    """NumPy in several threads; it releases the interpreter's lock while it copies and gathers.

    Parameters
    ----------
    n_samples : int
        Length of the vector to gather from.
    threads : int
    copy_bytes : int
        Size of the buffer copied from, and of the one copied to.
    """
    pool = ThreadPoolExecutor(threads)
    share = copy_bytes // threads
    works = [_works(np, n_samples, share, n_samples * threads, mode="clip") for _ in range(threads)]
    return Probe(
        "cpu", threads, n_samples, sum(copied for copied, *_ in works),
        lambda: list(pool.map(lambda work: work[1](), works)),
        sum(gathered for *_, gathered, _ in works),
        lambda: list(pool.map(lambda work: work[3](), works)),
    )  # fmt: skip


def gpu_probe(n_samples: int, copy_bytes: int) -> Probe | None:
    """The first GPU, through CuPy; None where there is none or CuPy does not work."""
    if not gpus() or importlib.util.find_spec("cupy") is None:
        return None
    try:
        import cupy

        copied, copy, gathered, gather = _works(cupy, n_samples, copy_bytes, n_samples)
    except Exception as error:  # broken, or built for another driver
        print(f"the GPU's memory cannot be measured by CuPy: {error}", file=sys.stderr)
        return None
    return Probe("cuda:0", 1, n_samples, copied, copy, gathered, gather)


def _works(
    xp: Any, n_samples: int, n_bytes: int, at_once: int, **how: str
) -> tuple[int, Callable[[], None], int, Callable[[], None]]:
    """The bytes that a copy reads and writes, the copy, the elements of a gather, the gather."""
    source, target = (xp.ones(n_bytes // 8) for _ in range(2))
    vector, fetched = (xp.arange(n_samples) for _ in range(2))
    order = xp.asarray(np.random.default_rng(0).permutation(n_samples))
    repeats = -(-_FEWEST_GATHERED // at_once)

    def copy() -> None:
        target[...] = source

    def gather() -> None:
        for _ in range(repeats):
            xp.take(vector, order, out=fetched, **how)  # NumPy's other modes make a copy first

    return 2 * source.nbytes, copy, n_samples * repeats, gather
