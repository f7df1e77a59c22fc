"""Ending a process by SIGTERM only after files are written and threads have ended.

Schedulers and clouds send SIGTERM before they take a machine away. By default Python ends at once.
Within `ending_in_order` the signal first raises an exception, as Ctrl-C does: files are written and
threads end. Then the process ends by the signal, as its parent expects.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Terminated(BaseException):
    """The process was sent SIGTERM. It is no `Exception`, so that `except Exception` lets it
    pass."""


@contextlib.contextmanager
def ending_in_order(last_words: Callable[[], None] | None = None) -> Iterator[None]:
    """A context in which SIGTERM raises `Terminated`; at its end the process then ends by SIGTERM.

    Only in the main thread, and only where SIGTERM has its default handler, which is put back. A
    second signal changes nothing, as the process is about to end.

    Parameters
    ----------
    last_words : callable, optional
        Called before the process ends.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    handler = _Handler()
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        handler.is_over = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if handler.was_called:
            if last_words is not None:
                last_words()
            os.kill(os.getpid(), signal.SIGTERM)


class _Handler:
    """Raises `Terminated`, once, and in the process that asked for it only."""

    def __init__(self) -> None:
        self.is_over = self.was_called = False
        self._process = os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.is_over or os.getpid() != self._process:  # a child that was forked meanwhile
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        elif not self.was_called:
            self.was_called = True
            raise Terminated
