"""Files with faults: valid ones with other bytes, or documents with other parts and values.

A mutation follows from a `random.Random`, so the number that seeded it is enough to make it again.
Faulty files may claim to be large, so here is how much memory a process has had, too.
"""

from __future__ import annotations

import copy
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TOKENS = [
    *(b"NaN", b"Infinity", b"-0.0", b"1e999", b"1e-320", b"null", b"true", b"9" * 5000, b"e308"),
    *(b"[", b"{", b"]", b"}", b",", b'"', b"\\ud800", b'"model":{},', b"[" * 3000, b'{"a":' * 3000),
    *(b"\0", b"\r", b"\n", b"\t", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b[31m"),
]
"""What is put into a file: marks of its format, numbers at the ends of their ranges, no text."""

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 4, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**400),
    *(0.0, -0.0, 0.5, 1e308, 1e-320, 2.0**-36, 2.0**-37, 2.0**17, -1.5),
    *("", "a", "inf", "-inf", "nan", "0 1", "1 0", "0 0", " 0", "256"),
    *("\ud800", "\0", "x" * 99_999),
    *([], {}, [[]], [[], []], {"a": 1}, [1], ["a"], [None], [0.0], [0.0, 0.0], [[1, 2]], [[[0.0]]]),
    *("softmax", "logistic", "number", "category", "numbered", "date"),
]
"""What is put in the place of a value in a document: of every type, and at the ends of ranges."""

_NEW_KEYS = (
    *("extra", "link", "constants", "missing_learnt", "bags", "encoding", "values", "kind"),
    *("missing", "decimals", "text_encoding", "sizes"),
)


def with_other_bytes(draw: random.Random, content: bytes) -> bytes:
    """A file with some bytes changed, taken out, put in, repeated, or cut off."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at, other = draw.randrange(len(found) + 1), draw.randrange(len(found) + 1)
        if draw.random() < 0.3:  # where headers and tables of contents are
            at = min(len(found), draw.choice((at, abs(len(found) - at))) % 300)
        if draw.random() < 0.1:
            del found[at:]
            continue
        own = bytes(found[at : at + draw.choice((1, 1, 2, 4, 8, 60, 500))])
        bit = 1 << draw.randrange(8)
        found[at : at + len(own)] = draw.choice((
            b"",
            draw.randbytes(len(own)),
            own * draw.choice((2, 3, 1000)),
            draw.choice(TOKENS),
            draw.choice(TOKENS) + own,
            bytes(len(own)),
            b"\xff" * len(own),
            b"\x7f" * bool(own) + b"\xff" * (len(own) - 1),  # the largest number with a sign
            bytes(found[other : other + 200]) + own,
            bytes(byte ^ bit for byte in own[:1]) + own[1:],
            re.sub(rb"[0-9]", b"%d" % draw.randrange(10), own, count=1),
        ))  # fmt: skip
    return bytes(found)


def with_other_parts(draw: random.Random, documents: Sequence[Any]) -> dict[str, Any]:
    """One of some documents with values of other types, parts of other documents, more or fewer."""
    found = copy.deepcopy(draw.choice(documents))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        paths = [path for path in _paths(found) if path]
        if not paths:
            break
        shallow = [path for path in paths if len(path) <= 4]
        path = draw.choice(paths if draw.random() < 0.6 else shallow)
        parent, key, other = _at(found, path[:-1]), path[-1], draw.choice(documents)
        how = draw.randrange(7)
        if how == 0:
            del parent[key]
        elif how > 1:
            near = draw.choice(_near(parent[key]))
            part = _at(other, draw.choice(list(_paths(other))))
            parent[key] = copy.deepcopy(draw.choice((near, near, part, *draw.choices(VALUES, k=2))))
        elif isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        else:
            parent[draw.choice(_NEW_KEYS)] = copy.deepcopy(draw.choice(VALUES))
        if draw.random() < 0.1:
            found["version"] = draw.choice((0, 1, 2))
    return dict(found)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each part of a document."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _paths(inner, (*path, place))


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _near(value: Any) -> tuple[Any, ...]:
    """Values that may be taken for this one."""
    if type(value) is float:
        return value * 2, -value, value + 2.0**-36, value + 2.0**-40, value * 1e300, repr(value)
    if type(value) is int:
        return value + 1, value - 1, -value, value * 10**6, 0.5, bool(value)
    if type(value) is str:
        return value + " ", value[::-1], value * 100, value.upper(), value[:-1]
    if type(value) is list:
        return value[::-1], value * 2, value[:-1], value + value[:1], value * 200
    return (not value,)


def peak_bytes() -> int:
    """Its largest resident set so far, as Linux tells it; 0 elsewhere.

    What `getrusage` returns includes the resident set of the process that started this one.
    """
    if sys.platform != "linux":
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return 1024 * int(found[1]) if found else 0


def limit_bytes(most: int) -> None:
    """Limit the memory of this process; does nothing on systems that do not enforce the limit."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
