"""Names, values and counts as they stand in messages and reports.

Everything that comes from a file is shown with its control characters escaped.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from gpustump.data.readable import printable

MOST_LISTED = 6
"""A message lists at most this many names, then says how many more there are."""

LONGEST = 60
"""Longer texts in a report are cut in the middle (characters)."""

LONGEST_LABEL = 24
"""The same limit for labels and categories."""


def one_line(text: str) -> str:
    """The text without line breaks and with its control characters escaped."""
    return printable(" ".join(text.split()))


def quoted(name: object) -> str:
    """A name or value in quotes; numbers as they are."""
    return f"'{printable(name)}'" if isinstance(name, str) else repr(name)


def listed(names: Iterable[object], limit: int = MOST_LISTED) -> str:
    """Quoted names with commas, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(quoted(name) for name in names[:limit]) + more


def suggestion(name: str, candidates: Sequence[str]) -> str:
    """ " Did you mean 'x'?" if a candidate is similar, else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in reversed(candidates)}
    similar = difflib.get_close_matches(name.lower().strip(), by_lower, n=1)
    return f" Did you mean {quoted(by_lower[similar[0]])}?" if similar else ""


def counted(number: int, thing: str, things: str | None = None) -> str:
    """ "1 row", "12 345 rows"."""
    return f"{thousands(number)} {thing if number == 1 else things or thing + 's'}"


def thousands(count: int) -> str:
    """A count with spaces: 12 345."""
    return f"{count:,}".replace(",", " ")


def percent(share: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * share:.1f}%"


def number_text(value: float) -> str:
    """A number with six significant digits, or fewer if it needs fewer."""
    return f"{value:.6g}"


def shortened(text: str, limit: int = LONGEST) -> str:
    """The text, or only its two ends if it is long."""
    text = printable(text)
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


def label_text(value: object) -> str:
    """A label or category, shortened; in quotes if it is blank."""
    text = shortened(str(value), LONGEST_LABEL)
    return text if text.strip() else quoted(text)
