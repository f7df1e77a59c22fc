"""Lines that tell users why they wait, or where a table trains.

They go to stderr where a person reads it while the program runs: on a terminal, in a notebook. If
stderr is a file or a pipe, they go to the logger "gpustump"; without a handler of the caller's,
Python shows only warnings of it.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator


def in_notebook() -> bool:
    """Whether this is the kernel of a Jupyter notebook, whose stderr is shown, and no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


def is_read() -> bool:
    """Whether someone reads stderr while this program runs."""
    return sys.stderr is not None and (sys.stderr.isatty() or in_notebook())


Listener = Callable[[str, int], None]
"""Takes a line of text and its level, one of the numbers of `logging`."""


def tell(text: str, level: int) -> None:
    """Write a line to stderr if someone reads it, otherwise to the logger."""
    if is_read():
        print(f"gpustump: {text}", file=sys.stderr, flush=True)
    elif sys.stderr is not None or logging.getLogger("gpustump").hasHandlers():
        logging.getLogger("gpustump").log(level, "gpustump: %s", text)


listeners: list[Listener] = [tell]
"""Called with each line. If the list is empty, lines are dropped."""


@contextlib.contextmanager
def nobody_listens() -> Iterator[None]:
    """Drop all lines until the end of the `with`."""
    kept = listeners[:]
    listeners.clear()
    try:
        yield
    finally:
        listeners[:] = kept


def announce(text: str, level: int = logging.INFO) -> None:
    """Hand a line of text to all listeners."""
    for listener in listeners:
        listener(text, level)


def announce_anywhere(text: str) -> None:
    """Hand a line to all listeners as a warning, so that it is seen in files and pipes as well.

    It is for waits of many seconds that happen once on a machine.
    """
    announce(text, logging.WARNING)
