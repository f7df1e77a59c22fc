"""What happens when a file that is mapped becomes shorter: one line and an exit code.

A .npy file is mapped, and polars maps what it reads. If another program cuts such a file short, or
its disk fails, the system sends SIGBUS to the process when it next reads a page that is gone. That
ends the process without a message. A Python handler would run after the instruction that failed,
but that instruction is repeated for ever. So the system itself calls this handler, in the middle of
the instruction: it prints what happened and ends the process. The instruction only reads from the
file, so it holds no lock that the handler needs.

Reading the file into memory instead would take twice the memory, because the system keeps a copy,
and tables larger than the memory could not be read at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from gpustump.cli.wording import one_line

_EXIT_CODE = 2  # an error that the user can mend

_mapped: dict[str, int] = {}
"""Sizes (bytes) of the files that may be mapped."""

_handler: object = None
_stderr = -1


def explain_lost_pages(path: str) -> None:
    """From now on, if the file becomes shorter while it is mapped, say so and end the process."""
    if not hasattr(signal, "SIGBUS"):  # where a mapped file cannot be cut short
        return
    with contextlib.suppress(OSError, ValueError):
        _mapped[path] = os.stat(path).st_size
        _install()


def _install() -> None:
    global _handler, _stderr
    if _handler is not None:
        return
    _stderr = os.dup(2)  # polars is read with another stderr
    _handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_end)  # kept: the system has only its address
    ctypes.CDLL(None).signal(signal.SIGBUS, _handler)


def _end(number: int) -> None:
    try:
        os.write(_stderr, f"gpustump: error: {one_line(_message())}\n".encode(errors="replace"))
    finally:
        os._exit(_EXIT_CODE)


def _message() -> str:
    shorter = [path for path, size in _mapped.items() if _size(path) < size]
    if not shorter:
        return "a part of a file can no longer be read; check whether its disk is intact."
    return (
        f"{shorter[-1]} became shorter while it was read; wait until it is complete, and start "
        "again."
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
