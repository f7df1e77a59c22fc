"""Read NPY and NPZ files without unpickling anything.

A .npy file is memory-mapped, so it may be larger than the memory. The arrays of a .npz file are
loaded: NumPy cannot map them.
"""

from __future__ import annotations

import contextlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.input.input_table import InputTable, check_column_names, table_of
from gpustump.data.columns import ArrayColumn
from gpustump.data.readable import listed

NAMES = ("names", "feature_names")
"""Arrays of a .npz that are taken as the names of its table's columns."""


def read_npy(path: str, text_columns: Collection[str] = ()) -> InputTable:
    """Read a .npy file; see `reading.read_table`."""
    if zipfile.is_zipfile(path):
        raise InputError(f"{path} is a .npz archive; give it that ending.")
    with _explained(path):
        matrix = np.lib.format.open_memmap(path, mode="r")
    return table_of(path, np.asarray(matrix), None)


def read_npz(path: str, text_columns: Collection[str] = ()) -> InputTable:
    """Read a .npz file; see `reading.read_table`."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not an intact NumPy file: it is no .npz archive.")
    with _explained(path), np.load(path, allow_pickle=False) as archive:
        members = {name: archive[name] for name in archive.files}
    arrays = {name: array for name, array in members.items() if isinstance(array, np.ndarray)}
    matrix = arrays.pop(_name_of_table(path, arrays))
    vectors = {
        name: ArrayColumn(name, array.reshape(-1))
        for name, array in arrays.items()
        if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    }
    return table_of(path, matrix, _column_names(path, arrays, matrix), vectors)


def _name_of_table(path: str, arrays: Mapping[str, np.ndarray]) -> str:
    """X, or else the only array of two dimensions; one of a single column may be labels."""
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
    for name in NAMES:
        if name in arrays and arrays[name].dtype.kind == "U":
            if matrix.ndim == 2 and arrays[name].shape == matrix.shape[1:]:
                names = [str(text) for text in arrays[name]]
                check_column_names(path, names)
                return names
            raise InputError(
                f"the array {name!r} has shape {arrays[name].shape}, but the table "
                f"{matrix.shape}; it must hold one name for each column."
            )
    return None


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn an error of NumPy or zipfile into one line about the file."""
    damaged = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, struct.error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, about headers that Python 2 wrote
            yield
    except (*damaged, SyntaxError, tokenize.TokenError) as error:  # a header is Python's syntax
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise InputError(
                f"{path} holds Python objects, which are not read; save plain numbers and text."
            ) from error
        raise InputError(f"{path} is not an intact NumPy file: {error}.") from error
    except (RuntimeError, NotImplementedError) as error:  # a password; an unknown compression
        raise InputError(f"{path} cannot be unpacked: {error}") from error
