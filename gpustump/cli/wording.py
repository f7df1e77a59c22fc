"""Names, values, counts and aligned columns as messages and reports show them.

Everything that comes from a file is shown with its control characters escaped. Columns are plain
text, without colours, lines or wrapping. A library such as tabulate would be a dependency of
commands that need no optional library now, and it aligns wide characters only with a second one.
"""

from __future__ import annotations

import contextlib
import sys
import unicodedata
from collections.abc import Sequence

from gpustump.data.readable import printable, shortened

LONGEST_LABEL = 24
"""Longer labels and categories are cut in the middle (characters)."""


LONGEST_MESSAGE = 2000
"""Longer messages are cut in the middle (characters): a name in a file may be of any length."""


def one_line(text: str) -> str:
    """The text in one line, with control characters escaped; cut in the middle if it is long."""
    line = printable(" ".join(text.split()))
    half = (LONGEST_MESSAGE - len(" ... ")) // 2
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:half]} ... {line[-half:]}"


def tell(message: str) -> None:
    """Print a message in one line on stderr, which may be full, or closed by its reader."""
    with contextlib.suppress(OSError):
        print(f"gpustump: {one_line(message)}", file=sys.stderr)


def percent(share: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * share:.1f}%"


def number_text(value: float) -> str:
    """A number with six significant digits, or fewer if it needs fewer."""
    return f"{value:.6g}"


def label_text(value: object) -> str:
    """A label or category, shortened."""
    return shortened(str(value), LONGEST_LABEL)


def told_apart(names: Sequence[str], form: str) -> list[str]:
    """The names; a repeated one gets the first number that makes it different, as `form` has it."""
    given, found = {*names}, dict[str, None]()
    for name in names:
        number, own = 1, name
        while own in found or (number > 1 and own in given):
            number += 1
            own = form.format(name, number)
        found[own] = None
    return list(found)


def aligned_lines(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows of cells, such as names and values, as lines; each column is as wide as its widest cell.

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
