"""Plain text tables: aligned by what a terminal shows, without colours or lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from gpustump.cli.errors import quoted
from gpustump.data.readable import printable

LONGEST = 60
"""Cells of more characters than this are cut in the middle."""

LABEL = 24
"""So are labels of more characters than this."""


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns; an empty name goes on with the one above."""
    width = max(_width(name) for name, _ in rows)
    return "\n".join(f"{_padded(name, width)}  {printable(value)}".rstrip() for name, value in rows)


def grid(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell.

    Parameters
    ----------
    rows : sequence of sequences of str
        All of the same length.
    right : sequence of int
        Columns to align to the right.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            _padded(cell, width, right=j in right)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def shortened(text: str, limit: int = LONGEST) -> str:
    """The text, or its two ends if it is long."""
    text = printable(text)
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


def label(value: object) -> str:
    """A label or category, not too long; in quotes if there would be nothing to see."""
    text = shortened(str(value), LABEL)
    return text if text.strip() else quoted(text)


def number(value: float, digits: int = 6) -> str:
    """A number with some significant digits, and no more than it needs."""
    return f"{value:.{digits}g}"


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def thousands(count: int) -> str:
    """12 345 rather than 12345."""
    return f"{count:,}".replace(",", " ")


def _width(text: str) -> int:
    """Columns of a terminal that the text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
