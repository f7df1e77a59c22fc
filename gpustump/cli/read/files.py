"""Open data and model files; the ending of the name, or else the first bytes, tell the format.

Readers open a file by its name, some of them twice, and some map it. So standard input, named -,
and pipes are first copied to a temporary file, which is removed when the process ends. Devices are
refused, since some never end.

A .npy file is mapped: its values are read from disk whenever they are needed. If another program
writes to it meanwhile, a model would be trained on values of two tables. Changes that the size or
the time of the file show are refused, while any table is read and while a model is trained.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace

from gpustump.cli.errors import InputError, system_errors_at
from gpustump.cli.read import svmlight
from gpustump.cli.read.binary import read_arrays, read_ipc, read_parquet
from gpustump.cli.read.packed import without_compression
from gpustump.cli.read.table import InputTable, Request
from gpustump.cli.read.text import read_csv, read_json_lines
from gpustump.data.readable import is_text
from gpustump.model.model_file import ModelFileError

STANDARD_INPUT = "-"

_HEAD_BYTES = 2**16
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
}
"""What files of each format begin with; compressed text is taken for CSV."""

_READERS: dict[tuple[str, ...], Callable[[str, Request], InputTable]] = {
    (".csv", ".tsv"): read_csv,
    (".jsonl", ".ndjson"): read_json_lines,
    svmlight.ENDINGS: svmlight.read_svmlight,
    (".parquet", ".pq"): read_parquet,
    (".feather", ".arrow", ".ipc"): read_ipc,
    (".npy", ".npz"): read_arrays,
}
"""What reads a table, by the ending of its name, after which that of a compression may stand."""

_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_table(
    path: str, request: Request | None = None, *, may_be_empty: bool = False
) -> InputTable:
    """Read a data file.

    Parameters
    ----------
    path : str
        Or - for standard input.
    request : Request, optional
        Which columns, and how text is written; everything by default. Columns that are not wanted
        keep their place in the table, but have no values.
    may_be_empty : bool
        Whether a table without rows is accepted.

    Raises
    ------
    InputError
        If the file is not what its name says, holds no table or not the one that is wanted, or is
        written to meanwhile.
    OSError
        If it cannot be read.
    """
    with unchanged(path), _plain_file(path, _ending_of_table) as file:
        table = _read(file, request or Request())
        if not table.columns:
            raise InputError(f"{table.source} has no columns.")
        if table.n_rows == 0 and not may_be_empty:
            raise InputError(f"{table.source} has columns but no rows.")
    return replace(table, source=shown_name(path))


def model_file(path: str) -> contextlib.AbstractContextManager[str]:
    """A model's file, or the copy of a stream; errors raised within the `with` name the stream."""
    return _plain_file(path, _ending_of_model)


def text_file(path: str) -> contextlib.AbstractContextManager[str]:
    """A text file beside the table and the model, or the copy of a stream; see `model_file`."""
    return _plain_file(path, lambda name, head: ".txt")


@contextlib.contextmanager
def _plain_file(path: str, ending_of: Callable[[str, bytes], str]) -> Iterator[str]:
    """A file that can be opened as often as needed: the given one, or the copy of a stream."""
    if not _needs_copy(path):
        yield path
        return
    name = shown_name(path)
    copy = _copied(path, name, ending_of)
    try:
        yield copy
    except (InputError, ModelFileError) as error:
        raise InputError(str(error).replace(copy, name)) from error


def _needs_copy(path: str) -> bool:
    """Whether to read a copy: of a stream, or of a file whose name is not UTF-8 text.

    polars cannot open such a name; the other readers can.
    """
    if path == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # opening it will say why
        return False
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError(f"{path} is a device; give the name of a file, or - for standard input.")
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or path.startswith(("/dev/", "/proc/")):
        return True
    return not is_text(path) and not path.lower().endswith((".npy", ".npz", ".json"))


def _copied(path: str, name: str, ending_of: Callable[[str, bytes], str]) -> str:
    """Copy a stream to a temporary file; return its path."""
    is_stdin = path == STANDARD_INPUT
    if is_stdin and sys.stdin is None:  # closed by the shell, `<&-`
        raise InputError("standard input is closed.")
    with contextlib.nullcontext(sys.stdin.buffer) if is_stdin else open(path, "rb") as stream:
        with contextlib.suppress(OSError, ValueError):  # else `read` may end before the stream does
            os.set_blocking(stream.fileno(), True)
        head = stream.read(_HEAD_BYTES)
        if not head:
            raise InputError(f"{name} is empty.")
        ending = ending_of(name, head)
        with (
            system_errors_at(f"{name} cannot be kept in {tempfile.gettempdir()}"),
            tempfile.NamedTemporaryFile(suffix=ending, delete=False) as file,
        ):
            atexit.register(_remove, file.name)
            file.write(head)
            shutil.copyfileobj(stream, file)
    return file.name


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _ending_of_table(name: str, head: bytes) -> str:
    bare = without_compression(name)
    for ending in itertools.chain(*_READERS):
        if bare.endswith(ending):
            return ending + name.lower().removeprefix(bare)
    for mark, ending in BINARY_FORMATS.items():
        if head.startswith(mark):
            return ending
    if b"\0" in head and not head.startswith(_BYTE_ORDER_MARKS):
        raise InputError(f"{name} is not a table: neither text nor Parquet, Feather, .npy or .npz.")
    if svmlight.BEGINNING.match(head):
        return svmlight.ENDINGS[0]
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ".jsonl" if text.startswith(b"{") else ".csv"


def _ending_of_model(name: str, head: bytes) -> str:
    if not head.lstrip().startswith(b"{"):
        raise InputError(f"{name} is not a gpustump model: it is not JSON.")
    return ".json"


def _read(path: str, request: Request) -> InputTable:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    read = _reader(path)
    with open(path, "rb") as file:  # first, for the operating system's own reason if this fails
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    return read(path, request)


def _reader(path: str) -> Callable[[str, Request], InputTable]:
    for endings, read in _READERS.items():
        if without_compression(path).endswith(endings):
            return read
    if os.path.exists(path):
        raise InputError(
            f"{path}: the name must end in that of its format, such as .csv, .tsv, .parquet, "
            ".feather, .jsonl, .npy, .npz or .svm; rename the file, or convert it."
        )
    raise InputError(f"{path}: no such file.")


def holds_values(path: str) -> bool:
    """Whether a file holds values, and not text from which they are read."""
    return _reader(path) in (read_parquet, read_ipc, read_arrays)


@contextlib.contextmanager
def unchanged(path: str | None) -> Iterator[None]:
    """Refuse a plain file that is written to within the `with`, but not one that another replaces.

    Raises
    ------
    InputError
    """
    before = _state(path)
    yield
    now = _state(path)
    if before is not None and now is not None and before[0] == now[0] and before != now:
        raise InputError(
            f"{path} was changed while it was read; wait until it is complete, and start again."
        )


def _state(path: str | None) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Which file it is, and its size and time; None if it is not plain or cannot be looked up."""
    try:
        found = os.stat(path or "")
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns)


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
