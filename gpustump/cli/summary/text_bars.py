"""Bars made of characters, to both sides of a zero line, in colour on terminals.

The side tells the sign, so nothing is lost without colour. If the output cannot hold block
characters, ASCII characters replace them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

WIDTH = 30
"""The width of the longest two bars together, in characters; less in a narrow terminal."""

_LEAST = 10

_LINE_AND_PART = 2
"""Characters for the zero line and a part of a cell."""

_POSITIVE, _NEGATIVE, _PLAIN = "\x1b[94m", "\x1b[31m", "\x1b[0m"
"""Blue and red: the codes that all terminals know."""


class Marks(NamedTuple):
    """The characters of bars: whole cells, halves and slivers beside the line, and the line."""

    cell: str
    half_right: str
    half_left: str
    sliver_right: str
    sliver_left: str
    line: str


BLOCKS = Marks("█", "▌", "▐", "▏", "▕", "│")
ASCII = Marks("#", ":", ":", ".", ".", "|")


@dataclass(frozen=True)
class BarStyle:
    """How bars are written.

    Attributes
    ----------
    marks : Marks
    is_coloured : bool
    n_columns : int or None
        The width of the terminal; None if the output is none.
    """

    marks: Marks
    is_coloured: bool
    n_columns: int | None

    @classmethod
    def of(cls, stream: Any) -> BarStyle:
        """The style for a stream: colour for a terminal that knows it, unless NO_COLOR is set."""
        is_terminal = bool(stream.isatty())
        knows_colour = os.environ.get("TERM") != "dumb" and (
            os.name != "nt" or "WT_SESSION" in os.environ
        )
        return cls(
            BLOCKS if _can_write(stream, "".join(BLOCKS)) else ASCII,
            is_terminal and knows_colour and not os.environ.get("NO_COLOR"),
            shutil.get_terminal_size().columns if is_terminal else None,
        )


def _can_write(stream: Any, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def bars(amounts: Sequence[float], style: BarStyle, *, beside: int) -> list[str]:
    """A bar for each amount, with one scale and one line at 0.

    Parameters
    ----------
    amounts : sequence of float
    style : BarStyle
    beside : int
        The width of the text to the left of the bars.
    """
    room = WIDTH if style.n_columns is None else style.n_columns - beside - _LINE_AND_PART
    span = max(0.0, *amounts) - min(0.0, *amounts)
    unit = span / max(_LEAST, min(WIDTH, room)) or 1.0
    found = [_bar(amount, unit, style.marks) for amount in amounts]
    left = max(len(bar) if amount < 0 else 0 for bar, amount in zip(found, amounts, strict=True))
    lines = []
    for bar, amount in zip(found, amounts, strict=True):
        if amount < 0:
            before = " " * (left - len(bar)) + _coloured(bar, _NEGATIVE, style)
            lines.append(before + style.marks.line)
        else:
            lines.append(" " * left + style.marks.line + _coloured(bar, _POSITIVE, style))
    return lines


def _bar(amount: float, unit: float, marks: Marks) -> str:
    """The characters of a bar; `unit` is the amount of a whole one."""
    n_cells, n_halves = divmod(round(2 * abs(amount) / unit), 2)
    if amount < 0:
        return marks.half_left * n_halves + marks.cell * n_cells or marks.sliver_left
    return marks.cell * n_cells + marks.half_right * n_halves or marks.sliver_right * (amount > 0)


def _coloured(bar: str, colour: str, style: BarStyle) -> str:
    return f"{colour}{bar}{_PLAIN}" if style.is_coloured and bar else bar
