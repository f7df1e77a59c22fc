"""Numbers and tables as Markdown that reads well in a terminal, too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tabulate

tabulate.MIN_PADDING = 0  # columns no wider than they need

NOTHING = "-"
_WORDS = ("", "exact", "digest", "what", "data", "fastest peer")  # columns that hold no numbers


def number(value: float | None) -> str:
    """Three significant digits, without an exponent."""
    if value is None:
        return NOTHING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{min(decimals, 6)}f}"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table: words to the left, numbers to the right."""
    sides = ["left" if column in _WORDS else "right" for column in columns]
    return str(
        tabulate.tabulate(rows, columns, tablefmt="pipe", colalign=sides, disable_numparse=True)
    )
