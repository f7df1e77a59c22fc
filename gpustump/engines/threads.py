"""Threads: a piece of work is cut into items, and whoever is free takes the next one.

Kernels run without Python's lock, so plain threads do. They are Python's own rather than Numba's,
because those may neither be used from two threads at once nor survive a fork.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")

_pools: dict[int, ThreadPoolExecutor] = {}

if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pools.clear)


def threads_of(n_jobs: int | None) -> int:
    """How many threads a checked `n_jobs` asks for.

    For None and -1 all that this process may use: the cores that it may run on, fewer if
    OMP_NUM_THREADS says so.
    """
    if n_jobs is not None and n_jobs != -1:
        return n_jobs
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
        shared = Shared(items)

        def take() -> None:
            for item in shared:
                work(item)

        futures: list[Future[None]] = []
        try:
            for _ in range(min(self.size, len(shared)) - 1):
                with contextlib.suppress(RuntimeError):  # no more threads to be had: do with fewer
                    futures.append(_pool(self.size).submit(take))
            take()
        finally:
            shared.close()  # after an error, nobody begins another item
            begun = [future for future in futures if not future.cancel()]
            problems = [future.exception() for future in begun]
        for problem in problems:
            if problem is not None:
                raise problem


class Shared(Generic[Item]):
    """Items that several threads take from, each of them once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = list(items)
        self._lock = threading.Lock()
        self._n_taken = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._lock:
                at = self._n_taken
                if at >= len(self._items):
                    return
                self._n_taken += 1
            yield self._items[at]

    def close(self) -> None:
        """Let nobody take another one."""
        with self._lock:
            self._n_taken = len(self._items)


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """(start, end) pairs that cover `total` things, `size` at a time."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _pool(size: int) -> ThreadPoolExecutor:
    if size not in _pools:
        _pools[size] = ThreadPoolExecutor(size, thread_name_prefix="gpustump")
    return _pools[size]
