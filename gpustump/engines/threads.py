"""Threads: work is cut into items, and each thread takes the next item when it is done with one.

Kernels run without Python's lock, so plain threads do. They are Python's own rather than Numba's,
because those may neither be used from two threads at once nor survive a fork. All work shares one
pool, so the process has few threads, whatever `n_jobs` has been asked for. The caller takes items,
too, and waits only for threads that have begun: so work within work cannot deadlock.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST_THREADS = max(8, os.cpu_count() or 1)
"""In the pool. More threads than cores save no time; a few more than a small machine's cores do no
harm, and show whether results depend on their number."""


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

    def each(self, work: Callable[[Item], object], items: Sequence[Item]) -> None:
        """Call `work` with every item, in any order; raises what one of the calls raises."""
        if self.size == 1 or len(items) == 1:
            for item in items:
                work(item)
            return
        shared = Shared(items)
        shares = [_Share(shared, work) for _ in range(min(self.size, len(shared)) - 1)]
        try:
            for share in shares:
                with contextlib.suppress(RuntimeError):  # no more threads to be had: do with fewer
                    _POOL.executor().submit(share.run)
            for item in shared:
                work(item)
        finally:
            shared.close()  # after an error, no thread begins another item
            begun = [share.done for share in shares if not share.done.cancel()]
            problems = [done.exception() for done in begun]
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
        """Hand out no more items."""
        with self._lock:
            self._n_taken = len(self._items)


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """(start, end) pairs that cover `total` things, `size` at a time."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


class _Share(Generic[Item]):
    """What one thread of the pool does for a team.

    `done` is a future of its own: where the system refuses a new thread, `submit` raises, and yet
    another thread of the pool may begin the work later.
    """

    def __init__(self, shared: Shared[Item], work: Callable[[Item], object]) -> None:
        self._shared, self._work = shared, work
        self.done: Future[None] = Future()

    def run(self) -> None:
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            for item in self._shared:
                self._work(item)
        except BaseException as problem:  # for the thread that waits for this one
            self.done.set_exception(problem)
        else:
            self.done.set_result(None)


class _Pool:
    """The threads of this process, started when they are first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, with a lock that is free."""
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def executor(self) -> ThreadPoolExecutor:
        """The one pool, whichever thread asks first."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="gpustump")
            return self._executor


_POOL = _Pool()

if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_POOL.forget)
