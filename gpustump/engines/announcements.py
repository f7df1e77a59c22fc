"""A line about what comes as a surprise, such as a long wait: to stderr if someone looks.

Sizes and names in a form that can be read are here as well, for messages, tables and pictures.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


def on_terminal(text: str) -> None:
    """Write a line to stderr if somebody is there to read it, else to the log."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"gpustump: {text}", file=sys.stderr)
    else:
        logging.getLogger("gpustump").info(text)


listeners: list[Callable[[str], None]] = [on_terminal]
"""Who is told, in a line of text, about a wait that would otherwise be a surprise."""


def announce(text: str) -> None:
    """Tell all listeners."""
    for tell in listeners:
        tell(text)
