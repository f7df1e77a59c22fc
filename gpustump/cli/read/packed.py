"""Text files that are compressed, which the endings of their names tell."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
from collections.abc import Iterator
from typing import IO, Any

from gpustump.cli.errors import InputError

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
"""Endings of compressed text files, and the names of the formats."""


def without_compression(path: str) -> str:
    """A file's name in lower case, without the ending of its compression."""
    name = path.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return name


@contextlib.contextmanager
def unpacked(path: str) -> Iterator[IO[bytes]]:
    """A file, to be read as it was before it was compressed.

    Raises
    ------
    InputError
        If it is not intact; also while it is read, within the `with`.
    """
    ending = next((end for end in COMPRESSIONS if path.lower().endswith(end)), None)
    opener: Any = {None: open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[ending]
    try:
        with opener(path, "rb") as file:
            yield file
    except (MemoryError, InputError):
        raise
    except Exception as error:  # each library has errors of its own
        is_of_system = isinstance(error, OSError) and error.errno is not None
        if ending is None or is_of_system:
            raise
        raise InputError(
            f"{path} is not an intact {COMPRESSIONS[ending]} file: {error}."
        ) from error
