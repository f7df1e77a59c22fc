"""Whether a table's file changed while it was read.

A .npy file is mapped: its values are read from disk whenever they are needed. If another program
writes to it meanwhile, a model would be trained on values of two tables. Changes that the size or
the time of the file show are refused. If the file gets shorter, the process may have to end at
once; see `lost_pages`.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from gpustump.cli.errors import InputError
from gpustump.cli.read.streams import STANDARD_INPUT


class FileState(NamedTuple):
    """What would show that a file was written to.

    Attributes
    ----------
    path : str
    identity : tuple of int
        Which file has this name: device and number.
    content : tuple of int
        Size (bytes) and time of the last change (ns).
    """

    path: str
    identity: tuple[int, int]
    content: tuple[int, int]

    @classmethod
    def of(cls, path: str | None) -> FileState | None:
        """The state of a file; None if it is not a plain file or cannot be looked up."""
        if path is None or path == STANDARD_INPUT:
            return None
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(path, (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))


def check_unchanged(before: FileState | None) -> None:
    """Refuse a file that was written to.

    A file that was replaced by another is not refused: the old one is still mapped.

    Raises
    ------
    InputError
    """
    if before is None:
        return
    now = FileState.of(before.path)
    if now is not None and now.identity == before.identity and now.content != before.content:
        raise InputError(
            f"{before.path} was changed while it was read; wait until it is complete, and start "
            "again."
        )


def check_unchanged_if_mapped(before: FileState | None) -> None:
    """`check_unchanged` after the work, for .npy files; other tables were in memory by then.

    Raises
    ------
    InputError
    """
    if before is not None and before.path.lower().endswith(".npy"):
        check_unchanged(before)
