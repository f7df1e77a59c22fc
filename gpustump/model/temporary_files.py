"""Temporary files whose names say which process made them, so that abandoned ones can be removed.

A process that is killed cannot remove its temporary file. The next one that writes into the same
folder does, if it is certain that nobody uses the file: its name holds this machine's name, no
process of that number lives, and nothing was written to it for a day. The day is for folders that
several machines or containers of the same name share: a process on another one cannot be seen. If
the number belongs to a new process by now, the file stays until that process has ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tempfile
import time
from pathlib import Path

ABANDONED_AFTER = 24 * 60 * 60
"""A file that was changed within this time (s) is left alone, whoever made it."""

_NAME = re.compile(r"\.gpustump\.(?P<host>[^.]+)\.(?P<process>\d+)\.[^.]+")


def new_temporary_file(folder: str | os.PathLike[str], ending: str = "") -> tuple[int, str]:
    """Make an empty file that only this user can read.

    Returns
    -------
    descriptor : int
        Open for reading and writing.
    path : str

    Raises
    ------
    OSError
        If no file can be made in the folder.
    """
    prefix = f".gpustump.{_host()}.{os.getpid()}."
    return tempfile.mkstemp(prefix=prefix, suffix=ending, dir=folder)


def remove_abandoned_files(folder: str | os.PathLike[str]) -> None:
    """Remove the temporary files that processes on this machine left when they were killed."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask whether a process lives
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".gpustump.") and _is_abandoned(entry):
                with contextlib.suppress(OSError):  # another process was faster, or it is not ours
                    Path(entry.path).unlink()


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    found = _NAME.match(entry.name)
    if found is None or found["host"] != _host() or not entry.is_file(follow_symlinks=False):
        return False
    with contextlib.suppress(OSError):
        changed = entry.stat(follow_symlinks=False).st_mtime
        return time.time() - changed > ABANDONED_AFTER and _is_dead(int(found["process"]))
    return False


def _is_dead(process: int) -> bool:
    try:
        os.kill(process, 0)  # no signal, only the check whether it could be sent
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it lives, but belongs to another user; or is no number
        return False
    return False


def _host() -> str:
    """This machine's name, as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname())[:60] or "_"
