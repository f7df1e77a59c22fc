"""Plain text in aligned columns, without colours, lines or wrapping.

A library such as tabulate would be a dependency of commands that need no optional library now, and
it aligns wide characters only with a second one, wcwidth. This short file does without them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from gpustump.data.readable import printable


def name_value_lines(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Names and values in two columns; an empty name continues the value above."""
    width = max(_width(name) for name, _ in rows)
    return [f"{_padded(name, width)}  {printable(value)}".rstrip() for name, value in rows]


def aligned_lines(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines; each column is as wide as its widest cell.

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


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
