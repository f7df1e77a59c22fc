"""Lines that tell users why they wait, or where a table trains: on stderr if it is a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


def on_terminal(text: str) -> None:
    """Write a line to stderr if that is a terminal, otherwise to the log."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"gpustump: {text}", file=sys.stderr)
    else:
        logging.getLogger("gpustump").info(text)


listeners: list[Callable[[str], None]] = [on_terminal]
"""Called with each line of text."""


def announce(text: str) -> None:
    """Hand a line of text to all listeners."""
    for tell in listeners:
        tell(text)
