"""Read NPY and NPZ files with `numpy.load`, without unpickling anything.

A .npy file is memory-mapped, so it may be larger than the memory. NumPy cannot map a .npz file: its
table and the vectors beside it are loaded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.lib.npyio import NpzFile

from gpustump.cli.errors import InputError
from gpustump.cli.read.table import InputTable, check_column_names, table_of
from gpustump.cli.wording import one_line
from gpustump.data.columns import ArrayColumn
from gpustump.data.readable import listed, quoted

NAMES = ("names", "feature_names")
"""Arrays of a .npz that are taken as the names of its table's columns."""


def read_npy(path: str) -> InputTable:
    """Read a .npy file; see `files.read_table`."""
    with _explained(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(array, NpzFile):
        raise InputError(f"{path} is a .npz archive; give it that ending.")
    return table_of(path, np.asarray(array), None)


def read_npz(path: str) -> InputTable:
    """Read a .npz file; see `files.read_table`."""
    arrays, unread = dict[str, np.ndarray](), dict[str, InputError]()
    with open(path, "rb") as file:
        with _explained(path):
            archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, NpzFile):
            raise InputError(f"{path} is not an intact NumPy file: it is not a .npz archive.")
        for name in archive.files:
            try:
                with _explained(path):
                    found = archive[name]
                if not isinstance(found, np.ndarray):  # bytes
                    raise InputError(f"{path}: {quoted(name)} is not an intact NumPy file.")
                arrays[name] = found
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
def _explained(path: str) -> Iterator[None]:
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
