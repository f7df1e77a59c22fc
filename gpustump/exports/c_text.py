"""Names, text and numbers as C has them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gpustump.data.readable import shown

_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
"""Bytes that stand for themselves in a string: no quote, no backslash, no ? of a trigraph."""

_LONGEST_STRING = 4000
"""C99 promises 4095 characters in a string literal; longer text becomes an array (bytes)."""

_PER_LINE = 4


def check_name(name: str) -> str:
    """Refuse what cannot begin the names of functions and macros.

    Raises
    ------
    ValueError
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            "name must be 1 to 63 letters, digits and _, a letter first, as it begins the names in "
            f"C; got {shown(name)}."
        )
    return name


def comment(text: str) -> str:
    """Text from a model, harmless in a // comment: ASCII, and no backslash at the end of a line."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain.replace("??", "? ?").replace("/*", "/ *").replace("*/", "* /")


def string(text: str) -> str:
    """A string literal of the text in UTF-8, or the initialiser of an array if it is long."""
    content = text.encode()
    if len(content) <= _LONGEST_STRING:
        return '"' + "".join(map(_in_string, content)) + '"'
    return "{" + ", ".join(f"'\\{byte:03o}'" for byte in [*content, 0]) + "}"


def _in_string(byte: int) -> str:
    return chr(byte) if byte in _PLAIN else f"\\{byte:03o}"


def number(value: float) -> str:
    """A double literal of 17 digits: read in extended precision first, it is still the same."""
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "-HUGE_VAL"
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else f"{text}.0"


def rows(texts: Sequence[str]) -> str:
    """The lines of an initialiser, some values on each; 0 if there are none, as C requires one."""
    found = list(texts) or ["0"]
    lines = [", ".join(found[i : i + _PER_LINE]) for i in range(0, len(found), _PER_LINE)]
    return ",\n    ".join(lines)
