"""What happens when polars ends the process: one line and an exit code.

A damaged file can claim more memory than there is. If Rust cannot get memory, it calls `abort`,
which no `except` can catch, and the process ends without a message. A Python handler would run
after `abort` returns, which it never does. So the system itself calls this handler: it prints what
happened and ends the process. polars releases Python's lock while it reads, so the handler can take
it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator

from gpustump.cli.wording import one_line

_EXIT_CODE = 2  # an error that the user can mend


@contextlib.contextmanager
def explained_abort(message: str) -> Iterator[None]:
    """Within it, a call of `abort` prints this message on stderr and ends the process.

    Only the main thread sets the handler, because all threads of a process share it.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        stderr = os.dup(2)  # polars is called with another stderr
    except OSError:  # there is none
        yield
        return
    text = f"gpustump: error: {one_line(message)}\n".encode(errors="backslashreplace")

    def end(number: int) -> None:
        try:
            os.write(stderr, text)
        finally:
            os._exit(_EXIT_CODE)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    before = _replaced_handler(ctypes.cast(handler, ctypes.c_void_p))
    try:
        yield
    finally:
        _replaced_handler(before)
        os.close(stderr)


def _replaced_handler(handler: ctypes.c_void_p) -> ctypes.c_void_p:
    """Let the system call a function at SIGABRT; return what it called before."""
    replace = ctypes.CDLL(None).signal
    replace.argtypes, replace.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    return ctypes.c_void_p(replace(signal.SIGABRT, handler))
