"""Writing files that are either complete or not there at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into that gets its name only when it is complete.

    The bytes go to a temporary file in the same folder, which replaces the old file at the end of
    the `with`. If anything fails before, the old file stays as it was and the temporary file is
    removed. If the process is killed, a file stays whose name begins with ".gpustump.".

    Raises
    ------
    OSError
        If the folder is missing or cannot be written to, or the disk is full.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if Path(path).exists() and not Path(path).is_file():  # a device or a pipe: nothing to replace
        with Path(path).open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    temporary = target.with_name(f".gpustump.{secrets.token_hex(8)}")
    try:  # the name is known before the file is there, so any interruption can remove it
        try:
            file = new_file(temporary, 0o666 if mode is None else 0o600)
        except OSError as error:  # name the file that was asked for, not the temporary one
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error tells more
            temporary.unlink()
        raise


def new_file(path: Path, mode: int) -> BinaryIO:
    """Make a file, open for writing, with these permissions less those of the process's mask.

    Raises
    ------
    OSError
        If it is there already, or cannot be made.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))
