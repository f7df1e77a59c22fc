"""Polling a number in memory for a moment, without Python's global lock.

See `gpustump.engines.threads.watch_with`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpustump.engines.cpu.runtime.compiling import kernel

_TIMES = 200_000
"""How often the number is read: for about 140 microseconds."""


@intrinsic
def _current(typing_context: Any, array: Any) -> Any:
    """The first element of an array, read from memory each time, so that other threads' writes are
    seen."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(data, "acquire", ir.IntType(64).width // 8)

    return types.int64(array), generate


@kernel("boolean(int64[::1], int64)")
def watch(numbers, least):  # type: ignore[no-untyped-def]
    """Wait a moment for the first number to reach `least`; returns whether it has."""
    for _ in range(_TIMES):  # noqa: SIM110
        if _current(numbers) >= least:
            return True
    return False
