"""Names, values and counts as messages and reports show them.

Everything that comes from a file is shown with its control characters escaped.
"""

from __future__ import annotations

from collections import Counter
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


def percent(share: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * share:.1f}%"


def number_text(value: float) -> str:
    """A number with six significant digits, or fewer if it needs fewer."""
    return f"{value:.6g}"


def label_text(value: object) -> str:
    """A label or category, shortened."""
    return shortened(str(value), LONGEST_LABEL)


def different_labels(values: Sequence[str]) -> list[str]:
    """Labels or categories, each shortened no more than leaves it different from the others."""
    limits = dict.fromkeys(values, LONGEST_LABEL)
    while True:
        shown = {value: shortened(value, limit) for value, limit in limits.items()}
        counts = Counter(shown.values())
        alike = [own for own in limits if counts[shown[own]] > 1 and limits[own] < len(own)]
        if not alike:
            return [shown[value] for value in values]
        for own in alike:
            limits[own] *= 2
