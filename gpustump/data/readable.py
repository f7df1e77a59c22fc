"""Sizes and names in a form that people can read, for messages, tables and pictures."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def readable_bytes(n_bytes: int) -> str:
    """A number of bytes in the largest fitting unit."""
    value, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "bytes" else f"{value:.1f} {units[0]}"
