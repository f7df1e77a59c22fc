"""Threads: a piece of work is cut into items, and whoever is free takes the next one.

Kernels run without Python's lock, so plain threads do. They are Python's own rather than Numba's,
because those may neither be used from two threads at once nor survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_pools: dict[int, ThreadPoolExecutor] = {}

if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pools.clear)


def available() -> int:
    """How many threads this process may use: cores it may run on, and OMP_NUM_THREADS."""
    import joblib

    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    cores = int(joblib.cpu_count())
    return max(1, min(cores, int(limit))) if limit.isdigit() and int(limit) else cores


class Team:
    """So many threads, the caller's own among them.

    Parameters
    ----------
    size : int
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def each(self, work: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call `work` with every item, in any order; raises what one of the calls raises."""
        items = list(items)
        shared = iter(items)

        def take() -> None:
            for item in shared:  # taking the next item of a list is one step for Python
                work(item)

        futures: list[Future[None]] = []
        try:
            helpers = min(self.size, len(items)) - 1
            if helpers > 0:
                pool = _pool(self.size)
                futures = [pool.submit(take) for _ in range(helpers)]
            take()
        finally:
            for _ in shared:  # after an error, nobody begins another item
                pass
            problems = [future.exception() for future in futures]
        for problem in problems:
            if problem is not None:
                raise problem


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """(start, end) pairs that cover `total` things, `size` at a time."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _pool(size: int) -> ThreadPoolExecutor:
    if size not in _pools:
        _pools[size] = ThreadPoolExecutor(size, thread_name_prefix="gpustump")
    return _pools[size]
