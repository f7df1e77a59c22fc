"""Sizes and names as people read them, for messages, tables and pictures."""

from __future__ import annotations


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
