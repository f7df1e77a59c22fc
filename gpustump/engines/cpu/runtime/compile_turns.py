"""Processes compile one after the other, so that all but the first find the kernels on disk.

Several processes that start on a machine without compiled kernels, such as those of a cross
validation, would all compile the same kernels. So when a process finds the first one missing, it
takes a lock, a file beside the kernels, and keeps it until it has loaded all that it imports. The
system releases the lock when a process ends, however it ends. A process that has waited for too
long, or cannot create a lock (in a folder that cannot be written to, or without the library
`filelock`), compiles without it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpustump.engines.announcements import announce_anywhere

LOCK = "compiling.lock"

PATIENCE = 180.0
"""Seconds to wait for a process that compiles; it may have been stopped."""


class Turns:
    """This process's turns, with one lock for all of its threads, which may wait for each other."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._n_loading = 0
        self._held: Any = None
        self._can_be_had = True
        self._has_waited = False

    @contextmanager
    def loading(self) -> Iterator[None]:
        """A context for loading kernels; when the last thread leaves it, the turn ends."""
        with self._guard:
            self._n_loading += 1
        try:
            yield
        finally:
            with self._guard:
                self._n_loading -= 1
                if self._n_loading == 0:
                    self._give_back()

    def take(self, folder: Path) -> bool:
        """Wait for this process's turn; False if it already has the turn, or cannot get one."""
        with self._guard:
            if self._n_loading == 0 or self._held is not None or not self._can_be_had:
                return False
            self._held = self._acquired(folder)
            self._can_be_had = self._held is not None
            return self._can_be_had

    def leave(self) -> None:
        """End the turn: there is nothing to compile."""
        with self._guard:
            self._give_back()

    def _acquired(self, folder: Path) -> Any:
        """The lock of a folder, when no other process has it; None if it cannot be acquired."""
        try:
            from filelock import FileLock, Timeout
        except ImportError:
            return None
        try:
            lock = FileLock(folder / LOCK, thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self._say_once()
                lock.acquire(timeout=PATIENCE)
        except (OSError, NotImplementedError):  # a Timeout is an OSError, too
            return None
        return lock

    def _say_once(self) -> None:
        if not self._has_waited:
            self._has_waited = True
            announce_anywhere("waiting for another process that is compiling the CPU kernels ...")

    def _give_back(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None


TURNS = Turns()
