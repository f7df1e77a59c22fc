"""Ctrl-C in the command line: several in a row count once, and after the work it is ignored.

People press Ctrl-C several times. A second one would interrupt what the first one began, such as
removing a temporary file or reporting the interruption.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

_AT_ONCE = 1.0
"""A further Ctrl-C within this time (s) is ignored."""


class Interruptions:
    """Handles Ctrl-C for a process that runs one command, unless it has another handler."""

    def __init__(self) -> None:
        self._last = float("-inf")
        is_main = threading.current_thread() is threading.main_thread()
        self._are_ours = is_main and (signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        if self._are_ours:
            signal.signal(signal.SIGINT, self._interrupt)

    def end(self) -> None:
        """Ignore Ctrl-C from now on: the work is done."""
        if self._are_ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > _AT_ONCE:
            self._last = now
            raise KeyboardInterrupt
