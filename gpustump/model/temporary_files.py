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
import secrets
import socket
import time
from pathlib import Path
from typing import BinaryIO

ABANDONED_AFTER = 24 * 60 * 60
"""A file that was changed within this time (s) is left alone, whoever made it."""

_NAME = re.compile(r"\.gpustump\.(?P<host>[^.]+)\.(?P<process>\d+)\.[^.]+")


def temporary_path(folder: str | os.PathLike[str], ending: str = "") -> Path:
    """A name for a temporary file of this process, which no other file has.

    Whoever makes the file knows its name before it is there, so an interruption at any moment can
    be answered by removing it.
    """
    return Path(folder, f".gpustump.{_host()}.{os.getpid()}.{secrets.token_hex(8)}{ending}")


def new_file(path: Path) -> BinaryIO:
    """Make a file that only this user can read, open for writing.

    Raises
    ------
    OSError
        If it is there already, or cannot be made.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


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
