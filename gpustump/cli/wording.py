"""Names, values and counts as they stand in messages and reports.

Everything that comes from a file is shown with its control characters escaped.
"""

from __future__ import annotations

from gpustump.data.readable import printable, shortened

LONGEST_LABEL = 24
"""Longer labels and categories are cut in the middle (characters)."""


def one_line(text: str) -> str:
    """The text without line breaks and with its control characters escaped."""
    return printable(" ".join(text.split()))


def percent(share: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * share:.1f}%"


def number_text(value: float) -> str:
    """A number with six significant digits, or fewer if it needs fewer."""
    return f"{value:.6g}"


def label_text(value: object) -> str:
    """A label or category, shortened."""
    return shortened(str(value), LONGEST_LABEL)
