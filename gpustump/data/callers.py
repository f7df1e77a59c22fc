"""Where a warning points: to the line of the user's own code that led to it."""

from __future__ import annotations

import sys

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
