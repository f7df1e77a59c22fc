"""Input that can be read only once: standard input, named -, and pipes.

Readers open a file by its name, some of them twice, and some map it. So a stream is first copied to
a temporary file, which is removed when the process ends. The name of a stream may have no ending;
then its first bytes tell the format. Devices are refused, since some never end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import select
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gpustump.cli.errors import InputError, system_errors_at
from gpustump.model.model_file import ModelFileError
from gpustump.model.whole_file import new_file

STANDARD_INPUT = "-"

HEAD_BYTES = 2**16
"""Bytes that are read to find out the format. If it is unknown, the rest is not read."""

BINARY_FORMATS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"PK\x05\x06": ".npz",  # without any member
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ\x00": ".csv.xz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
"""What files of each format begin with; compressed text is taken for CSV."""

_PACKED = ("", ".gz", ".bz2", ".xz", ".zst")
ENDINGS = (
    *(kind + packed for kind in (".csv", ".tsv", ".jsonl", ".ndjson") for packed in _PACKED),
    *(".parquet", ".pq", ".feather", ".arrow", ".ipc", ".npy", ".npz"),
)
"""A pipe whose name has one of these endings is read as that format."""

_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class InputFile(NamedTuple):
    """A file that can be opened as often as needed.

    Attributes
    ----------
    path : str
        Where it is.
    name : str
        What messages call it: what the user gave.
    """

    path: str
    name: str


def shown_name(path: str) -> str:
    """What messages call an input."""
    return "standard input" if path == STANDARD_INPUT else path


def check_one_standard_input(model: str, data: str | None) -> None:
    """Refuse to take two inputs from one stream.

    Raises
    ------
    InputError
    """
    if model == data == STANDARD_INPUT:
        raise InputError("MODEL and DATA are both -, standard input; name a file for one of them.")


def is_stream(path: str) -> bool:
    """Whether an input is standard input or a pipe, so that it can be read only once.

    Raises
    ------
    InputError
        If it is a device.
    """
    if path == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # opening it will say why
        return False
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError(f"{path} is a device; give the name of a file, or - for standard input.")
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or path.startswith(("/dev/", "/proc/"))


def _needs_copy(path: str) -> bool:
    """Whether to read a copy: of a stream, or of a file whose name is not UTF-8 text.

    polars cannot open such a name; NumPy's readers can.
    """
    if is_stream(path):
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return not path.lower().endswith((".npy", ".npz"))
    return False


@contextlib.contextmanager
def table_file(path: str) -> Iterator[InputFile]:
    """A table's file, or the copy of a stream under a name that tells its format.

    Errors about the copy that are raised within the `with` name the stream.
    """
    with _once(path, _ending_of_table) as file:
        yield file


@contextlib.contextmanager
def model_file(path: str) -> Iterator[InputFile]:
    """As `table_file`, for a model."""
    with _once(path, _ending_of_model) as file:
        yield file


@contextlib.contextmanager
def _once(path: str, ending_of: Callable[[str, bytes], str]) -> Iterator[InputFile]:
    if not _needs_copy(path):
        yield InputFile(path, path)
        return
    name = shown_name(path)
    copy = _copied(path, name, ending_of)
    try:
        yield InputFile(copy, name)
    except (InputError, ModelFileError) as error:
        raise InputError(str(error).replace(copy, name)) from error


def _copied(path: str, name: str, ending_of: Callable[[str, bytes], str]) -> str:
    """Copy a stream to a temporary file; return its path."""
    with _opened(path, name) as stream:
        head = _read(stream, HEAD_BYTES)
        if not head:
            raise InputError(f"{name} is empty.")
        ending = ending_of(name, head)
        folder = tempfile.gettempdir()
        with system_errors_at(f"{name} cannot be kept in {folder}"):
            copy = Path(folder, f".gpustump.{secrets.token_hex(8)}{ending}")
            atexit.register(_remove, copy)
            with new_file(copy) as file:
                while head:
                    file.write(head)
                    head = _read(stream, 2**20)
    return str(copy)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


@contextlib.contextmanager
def _opened(path: str, name: str) -> Iterator[BinaryIO]:
    if path != STANDARD_INPUT:
        with open(path, "rb") as file:
            yield file
    elif sys.stdin is None:  # closed by the shell, `<&-`
        raise InputError("standard input is closed.")
    else:
        yield sys.stdin.buffer


def _read(stream: BinaryIO, size: int) -> bytes:
    """This many bytes, or fewer only at the end."""
    parts, wanted = [], size
    while wanted:
        part = stream.read(wanted)
        if part is None:  # a stream that does not block has nothing yet
            select.select([stream], [], [])
            continue
        if not part:
            break
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def _ending_of_table(name: str, head: bytes) -> str:
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.lower().endswith(ending):
            return ending
    for mark, ending in BINARY_FORMATS.items():
        if head.startswith(mark):
            return ending
    if b"\0" in head and not head.startswith(_BYTE_ORDER_MARKS):
        raise InputError(f"{name} is not a table: neither text nor Parquet, Feather, .npy or .npz.")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ".jsonl" if text.startswith(b"{") else ".csv"


def _ending_of_model(name: str, head: bytes) -> str:
    if not head.lstrip().startswith(b"{"):
        raise InputError(f"{name} is not a gpustump model: it is not JSON.")
    return ".json"
