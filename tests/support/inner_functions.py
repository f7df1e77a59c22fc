"""Functions that only kernels call, made callable from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def callable_from_python(inner: Any) -> Callable[..., Any]:
    """A function that calls an `inner` one with its arguments."""

    @numba.njit
    def call(*arguments):
        return inner(*arguments)

    return call
