"""Ctrl-C in the command line: once, and not after the work.

People press Ctrl-C several times. A second one would interrupt what the first one began, such as
removing a temporary file or telling of the interruption.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

_AT_ONCE = 1.0
"""A further Ctrl-C within this time (s) is the same one."""


class Interruptions:
    """How this process takes Ctrl-C while it is one command, if nobody else has decided it."""

    def __init__(self) -> None:
        self._last = float("-inf")
        is_main = threading.current_thread() is threading.main_thread()
        self._are_ours = is_main and (signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        if self._are_ours:
            signal.signal(signal.SIGINT, self._interrupt)

    def end(self) -> None:
        """The work is done: Ctrl-C changes nothing any more."""
        if self._are_ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > _AT_ONCE:
            self._last = now
            raise KeyboardInterrupt
