"""Read binary files: Parquet, Feather and Arrow IPC with polars, NPY and NPZ with NumPy.

Nothing is unpickled. A .npy file is memory-mapped, so it may be larger than the memory, unless its
bytes are in the order of another machine. NumPy cannot map a .npz file: its table and the vectors
beside it are loaded.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from gpustump.arrays import plain
from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.read.table import InputTable, Request, UnreadColumn, check_column_names, table_of
from gpustump.cli.wording import one_line
from gpustump.data.columns import ArrayColumn
from gpustump.data.frames import FrameColumns
from gpustump.data.readable import listed, quoted


def read_parquet(path: str, request: Request) -> InputTable:
    """Read a Parquet file; see `files.read_table`."""
    pl = import_polars(path)
    read = functools.partial(pl.read_parquet, glob=False, hive_partitioning=False)
    return _read_binary(path, request, "Parquet", read, pl.read_parquet_schema)


def read_ipc(path: str, request: Request) -> InputTable:
    """Read a Feather or Arrow IPC file; see `files.read_table`."""
    pl = import_polars(path)
    with open(path, "rb") as file:
        is_stream = file.read(6) != b"ARROW1"
    if is_stream:
        head = functools.partial(pl.read_ipc_stream, n_rows=0)
        return _read_binary(
            path, request, "Arrow", pl.read_ipc_stream, lambda own: head(own).schema
        )
    return _read_binary(path, request, "Arrow", pl.read_ipc, pl.read_ipc_schema)


def _read_binary(
    path: str,
    request: Request,
    format_name: str,
    read: Callable[..., Any],
    read_schema: Callable[[str], Any],
) -> InputTable:
    """Read those columns of a file that are wanted."""
    with explained(path, format_name):
        names = list(read_schema(path))
    check_column_names(path, names)
    header = InputTable(path, tuple(map(UnreadColumn, names)), 0)
    if not names:
        return header
    skipped = request.choose(header).skipped
    wanted = [name for j, name in enumerate(names) if j not in skipped]
    with explained(path, format_name):
        frame = read(path, columns=wanted)
    found = dict(zip(frame.columns, FrameColumns(frame, frame.columns), strict=True))
    columns = tuple(found.get(column.name, column) for column in header.columns)
    return InputTable(path, columns, len(frame))


def import_polars(path: str) -> Any:
    """The module polars.

    Raises
    ------
    MissingLibraryError
    """
    try:
        import polars
    except ImportError as error:
        raise MissingLibraryError(f"reading {path}", "polars") from error
    return polars


@contextlib.contextmanager
def explained(path: str, format_name: str) -> Iterator[None]:
    """Turn an error of polars into one line about the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = one_line(str(error).strip().partition("\n")[0])[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error
    except OSError as error:  # polars raises it for damaged compressed bytes, too
        if error.errno is not None:
            raise
        reason = one_line(str(error))[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error


NAMES = ("names", "feature_names")
"""Arrays of a .npz that are taken as the names of its table's columns."""


def read_arrays(path: str, request: Request) -> InputTable:
    """Read a .npy or .npz file; see `files.read_table`."""
    table = (_read_npy if path.lower().endswith(".npy") else _read_npz)(path)
    if table.columns:
        request.choose(table)
    return table


def _read_npy(path: str) -> InputTable:
    with _numpy_explained(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(array, NpzFile):
        raise InputError(f"{path} is a .npz archive; give it that ending.")
    return table_of(path, plain(np.asarray(array)), None)


def _read_npz(path: str) -> InputTable:
    arrays, unread = dict[str, np.ndarray](), dict[str, InputError]()
    with open(path, "rb") as file:
        with _numpy_explained(path):
            archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, NpzFile):
            raise InputError(f"{path} is not an intact NumPy file: it is not a .npz archive.")
        for name in archive.files:
            try:
                with _numpy_explained(path):
                    found = archive[name]
                if not isinstance(found, np.ndarray):  # bytes
                    raise InputError(f"{path}: {quoted(name)} is not an intact NumPy file.")
                arrays[name] = plain(found)
            except InputError as error:
                unread[name] = error
    if "X" in unread or (unread and not arrays):
        raise unread.get("X") or next(iter(unread.values()))
    of_table = _name_of_table(path, arrays)
    matrix = arrays.pop(of_table)
    names = _column_names(path, arrays, matrix)
    vectors = {
        name: ArrayColumn(name, array.reshape(-1))
        for name, array in arrays.items()
        if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    }
    return replace(table_of(path, matrix, names, vectors), unread=unread)


def _name_of_table(path: str, arrays: Mapping[str, np.ndarray]) -> str:
    """X, or else the only array of two dimensions. An array of one column may be labels."""
    if "X" in arrays:
        return "X"
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) > 1:
        tables = [name for name in tables if arrays[name].shape[1] != 1]
    if len(tables) != 1:
        raise InputError(
            f"{path}: which array is the table? Of {listed(arrays)}, {len(tables)} have two "
            "dimensions; name it X."
        )
    return tables[0]


def _column_names(
    path: str, arrays: Mapping[str, np.ndarray], matrix: np.ndarray
) -> list[str] | None:
    for key in NAMES:
        if key in arrays and arrays[key].dtype.kind == "U":
            if arrays[key].shape != matrix.shape[1:]:
                raise InputError(
                    f"{path}: the array {key!r} has shape {arrays[key].shape}, but the table "
                    f"{matrix.shape}; it must hold one name for each column."
                )
            names = [str(name) for name in arrays[key]]
            check_column_names(path, names)
            return names
    return None


@contextlib.contextmanager
def _numpy_explained(path: str) -> Iterator[None]:
    """Turn an error of NumPy or zipfile into one line about the file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # headers are Python's syntax: nobody lists what can go wrong
        if isinstance(error, OSError) and error.filename is not None:
            raise
        if "Python objects in dtype" in str(error) or "Object arrays" in str(error):
            raise InputError(
                f"{path} holds Python objects, which are not read; save plain numbers and text."
            ) from error
        reason = one_line(str(error))[:300].rstrip(".")  # some hold a part of the file
        if "pickle" in reason:  # NumPy's advice to load it all the same
            reason = "it does not begin as such files do"
        raise InputError(f"{path} is not an intact NumPy file: {reason}.") from error
