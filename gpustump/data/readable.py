"""Text for people: sizes and names in messages, dates as text, and the line a warning points to."""

from __future__ import annotations

import datetime
import difflib
import math
import reprlib
import sys
from collections.abc import Iterable, Sequence

MOST_LISTED = 6
"""A message lists at most this many names, then says how many more there are."""

LONGEST = 60
"""Longer texts in reports and summaries are cut in the middle (characters)."""

LONGEST_LISTED = 200
"""Longer names in a list are cut in the middle (characters)."""


def printable(text: str) -> str:
    """The text with escapes in place of control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def readable_bytes(n_bytes: int) -> str:
    """A number of bytes in the largest unit that makes it 1 or more: 1.5 GB."""
    value, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def quoted(name: object) -> str:
    """A name or value in quotes; numbers as they are."""
    return f"'{printable(name)}'" if isinstance(name, str) else repr(name)


def listed(names: Iterable[object], limit: int = MOST_LISTED) -> str:
    """Quoted names with commas, long ones cut in the middle, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(_cut(quoted(name)) for name in names[:limit]) + more


def either(texts: Iterable[str]) -> str:
    """ "a, b or c"."""
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


def suggestion(name: str, candidates: Sequence[str]) -> str:
    """ " Did you mean 'x'?" if one candidate begins so, or one is similar; else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in reversed(candidates)}
    text = name.lower().strip()
    similar = [own for own in by_lower if own.startswith(text)]
    if len(similar) != 1:
        similar = difflib.get_close_matches(text, by_lower, n=1)
    return f" Did you mean {quoted(by_lower[similar[0]])}?" if similar else ""


def counted(number: int, thing: str, things: str | None = None) -> str:
    """ "1 row", "12 345 rows"."""
    return f"{thousands(number)} {thing if number == 1 else things or thing + 's'}"


def thousands(count: int) -> str:
    """A count with spaces: 12 345."""
    return f"{count:,}".replace(",", " ")


def shortened(text: str, limit: int = LONGEST) -> str:
    """The text, or only its two ends if it is long; in quotes if it is blank."""
    return _cut(printable(text) if text.strip() else quoted(text), limit)


def _cut(text: str, limit: int = LONGEST_LISTED) -> str:
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 2, 3, 3
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


def shown(value: object) -> str:
    """What was found, for a message: its `repr`, shortened to at most 80 characters."""
    text = _SHORT.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def is_text(value: object) -> bool:
    """Whether it is a string that can be written as UTF-8: one without lone surrogates."""
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_START = datetime.datetime(1970, 1, 1)


def temporal_text(number: float, kind: str, until: str = "seconds") -> str | None:
    """A date, time or duration as text, such as "2024-12-31".

    Parameters
    ----------
    number : float
        Days or seconds, in the unit of the kind; see `columns.UNITS`.
    kind : str
        Of the column, such as "date".
    until : str
        The last part of a time that is shown, as `isoformat` takes it.

    Returns
    -------
    str or None
        None if the kind is not temporal, or no date has this number. For the kind "date", it is the
        last day that is not after the number. A midnight is written as the date alone.
    """
    try:
        if kind == "date":
            return (_START + datetime.timedelta(days=math.floor(number))).date().isoformat()
        if kind == "datetime":
            moment = _START + datetime.timedelta(seconds=number)
            return moment.isoformat(" ", until).removesuffix(" 00:00:00")
        if kind == "time":
            return (_START + datetime.timedelta(seconds=number)).time().isoformat(until)
        if kind == "duration":
            return str(datetime.timedelta(seconds=number))
    except (OverflowError, ValueError):
        return None
    return None


_PASSED_OVER = ("gpustump", "sklearn")
"""Packages that are not the user's own code; scikit-learn wraps methods of its estimators."""


def caller_level() -> int:
    """The `stacklevel` with which a warning points to the first line outside of these packages."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED_OVER:
        frame, level = frame.f_back, level + 1
    return level


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
