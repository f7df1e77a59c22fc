"""Threads: work is cut into items, and each thread takes the next item when it is done with one.

Kernels release Python's global lock, so ordinary threads run in parallel. They are Python's own
threads, not Numba's, which cannot be used from two threads at once and do not survive a fork. All
work in a process shares one pool of at most `MOST_THREADS` threads, whatever `n_jobs` is. The
caller works on items, too. It takes only threads that are idle, and waits only for those that have
begun. So a work item may use the pool itself without a deadlock.

Work of Python functions is shared by `Team.each`. A thread that is given some must wake up and wait
for the global lock, which takes 50 to 100 microseconds, as long as some steps of a round. So the
pieces of a kernel are shared by `Team.run`: threads that help stay in compiled code, and look there
for more pieces, until there have been none for a moment (see `cpu.runtime.crew`).
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")

CREW_SIZE = 32
"""Numbers of the array through which the threads of a team meet."""

PIECES = 4
"""About how many pieces each thread takes: few, but enough for nearly equal shares."""

MOST_THREADS = max(8, os.cpu_count() or 1)
"""The most threads in the pool. More threads than cores save no time. On a small machine eight are
allowed even so: they do no harm, and let tests show that results do not depend on their number."""


def threads_of(n_jobs: int | None) -> int:
    """How many threads a checked `n_jobs` asks for.

    None and -1 ask for one thread for each core that this process may run on, or for
    OMP_NUM_THREADS if that is fewer.
    """
    if n_jobs is not None and n_jobs != -1:
        return n_jobs
    import joblib

    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    cores = int(joblib.cpu_count())
    return max(1, min(cores, int(limit))) if limit.isdigit() and int(limit) else cores


def help_with(serve: Callable[[np.ndarray], object]) -> None:
    """Let idle threads help with kernels.

    Parameters
    ----------
    serve : callable
        Takes the array of a team, works on the pieces of its kernels, and returns when there have
        been none for some milliseconds. It must release Python's global lock.
    """
    _POOL.serve = serve


class Team:
    """Works on items with several threads of the pool.

    Parameters
    ----------
    size : int
        How many threads to use at most, the caller's own among them.
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._most_helpers = min(size, _n_cores()) - 1
        self._helping = list[None]()  # an item for each thread; only its length matters
        self._crew, self._is_running = np.zeros(CREW_SIZE, dtype=np.int64), threading.Lock()

    def __reduce__(self) -> tuple[type[Team], tuple[int]]:
        """A copy asks for threads of its own."""
        return Team, (self.size,)

    def run(self, kernel: Callable[..., Any], n_pieces: int, *arguments: object) -> Any:
        """Call a kernel for all pieces of its work; see `cpu.runtime.crew.parallel`."""
        if not self._is_running.acquire(blocking=False):  # another thread's kernel uses the array
            return kernel(np.zeros(CREW_SIZE, dtype=np.int64), n_pieces, *arguments)
        try:
            if n_pieces > 1 and len(self._helping) < self._most_helpers:
                self._ask_for_help()
            return kernel(self._crew, n_pieces, *arguments)
        finally:
            self._is_running.release()

    def pieces(self, total: int, least: int) -> tuple[int, int]:
        """How many pieces `total` things are taken in, and the size of each but the last: a
        multiple of `least`."""
        size = total if self.size == 1 else -(-total // (PIECES * self.size))
        size = max(1, -(-size // least)) * least
        return max(1, -(-total // size)), size

    def _ask_for_help(self) -> None:
        """Have idle threads of the pool look for pieces."""
        while len(self._helping) < self._most_helpers and _POOL.serve is not None:
            worker = _POOL.idle_worker()
            if worker is None:
                return
            self._helping.append(None)
            worker.give(partial(_help, _POOL.serve, self._crew, self._helping))

    def each(self, work: Callable[[Item], object], items: Sequence[Item]) -> None:
        """Call `work` with every item, in any order; an exception of a call is raised here."""
        if self.size == 1 or len(items) == 1:
            for item in items:
                work(item)
            return
        left = deque(partial(work, item) for item in items)
        shares: list[Future[None]] = []
        try:
            for _ in range(min(self.size, len(items)) - 1):
                share = Future[None]()  # first: memory may be short
                worker = _POOL.idle_worker()
                if worker is None:
                    break
                shares.append(share)
                worker.give(partial(_take_share, share, left))
            _work_off(left)
        finally:
            left.clear()  # after an error, no thread begins another item
            begun = [share for share in shares if not share.cancel()]
            wait(begun)
        for share in begun:
            share.result()


def ranges(total: int, size: int) -> list[tuple[int, int]]:
    """(start, end) pairs that cover `total` things, `size` at a time."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


_Ending = Callable[[], object]
"""Says that a piece of work is done."""


def _work_off(left: deque[partial[object]]) -> None:
    """Do one piece of work after the other; `popleft` gives each to one thread only."""
    while True:
        try:
            do = left.popleft()
        except IndexError:
            return
        do()


def _take_share(share: Future[None], left: deque[partial[object]]) -> _Ending | None:
    """Work for a team, unless that has been cancelled.

    Afterwards nothing here refers to the work, and so to large arrays: a busy system may let a
    thread run only much later.
    """
    if not share.set_running_or_notify_cancel():
        return None
    try:
        _work_off(left)
    except BaseException as problem:  # for the thread that waits for this one
        return partial(share.set_exception, problem)
    return partial(share.set_result, None)


def _help(serve: Callable[[np.ndarray], object], crew: np.ndarray, helping: list[None]) -> _Ending:
    """Help with a team's kernels until there has been nothing to do for a moment."""
    serve(crew)
    return helping.pop  # the team may ask again


class _Worker(threading.Thread):
    """One thread of the pool."""

    def __init__(self, pool: _Pool) -> None:
        super().__init__(name="gpustump", daemon=True)
        self._pool = pool
        self._work: queue.SimpleQueue[Callable[[], _Ending | None]] = queue.SimpleQueue()

    def give(self, work: Callable[[], _Ending | None]) -> None:
        """Give the worker its next work; it must be idle."""
        self._work.put(work)

    def run(self) -> None:
        while True:
            end = self._work.get()()
            try:
                self._pool.put_back(self)  # before the caller goes on, and looks for an idle thread
            finally:  # whatever happens, the caller must not wait for ever
                if end is not None:
                    end()
                del end  # an error may refer to what it worked on


class _Pool:
    """The threads of this process, started when they are first needed."""

    serve: Callable[[np.ndarray], object] | None = None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew with no workers, and a lock that is free."""
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._n_workers = 0

    def idle_worker(self) -> _Worker | None:
        """A worker that has nothing to do, perhaps a new one; None if all are busy."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._n_workers >= MOST_THREADS:
                return None
            worker = _Worker(self)
            with contextlib.suppress(RuntimeError):  # the system has no more threads: use fewer
                worker.start()
                self._n_workers += 1
                return worker
        return None

    def put_back(self, worker: _Worker) -> None:
        """Take back a worker that is idle again; the one that was used last is used next."""
        with self._lock:
            self._idle.append(worker)


def _n_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_POOL = _Pool()

if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_POOL.forget)
