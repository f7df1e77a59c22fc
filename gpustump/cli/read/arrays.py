"""Read NPY and NPZ files without unpickling anything.

A .npy file is memory-mapped, so it may be larger than the memory. NumPy cannot map a .npz file: its
table is loaded, and each other array when a command asks for it. What a header says is checked
against the size of the file before memory is taken for it.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.read.table import InputTable, check_column_names, table_of
from gpustump.cli.read.vectors import Vectors
from gpustump.data.columns import ArrayColumn
from gpustump.data.readable import listed

NAMES = ("names", "feature_names")
"""Arrays of a .npz that are taken as the names of its table's columns."""

HEADER_BYTES = 10_000
"""A longer header is refused, as NumPy refuses it, but before it is read."""

MOST_DIMENSIONS = 32

MOST_CHARACTERS = 300
"""The longest part of an error of NumPy or zipfile that a message repeats."""

MOST_EMPTY_COLUMNS = 2**20
"""A table without rows takes no bytes, so the size of the file does not limit its columns."""


class ArrayHeader(NamedTuple):
    """What stands before the values of an array.

    Attributes
    ----------
    shape : tuple of int
    fortran_order : bool
    dtype : numpy.dtype
    n_bytes : int
        Length of the header.
    """

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    n_bytes: int


def read_npy(path: str) -> InputTable:
    """Read a .npy file; see `reading.read_table`."""
    if zipfile.is_zipfile(path):
        raise InputError(f"{path} is a .npz archive; give it that ending.")
    with _explained(path), open(path, "rb") as file:
        header = _header(file, file.seek(0, io.SEEK_END))
        if header.dtype.hasobject:
            raise ValueError("Python objects")
        matrix = np.memmap(
            file,
            dtype=header.dtype,
            shape=header.shape,
            order="F" if header.fortran_order else "C",
            offset=header.n_bytes,
            mode="r",
        )
    return table_of(path, np.asarray(matrix), None)


def read_npz(path: str) -> InputTable:
    """Read a .npz file; see `reading.read_table`."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not an intact NumPy file: it is not a .npz archive.")
    headers, damaged = _headers(path)
    of_table = _name_of_table(path, headers)
    matrix = _member(path, of_table)
    names = _column_names(path, headers, matrix)
    lengths = {
        name: math.prod(header.shape)
        for name, header in headers.items()
        if name != of_table and _is_vector(header)
    }
    lengths |= dict.fromkeys(damaged, 0)  # asking for one tells what is wrong with it
    vectors = Vectors(lengths, lambda name: ArrayColumn(name, _member(path, name).reshape(-1)))
    return table_of(path, matrix, names, vectors)


def _is_vector(header: ArrayHeader) -> bool:
    shape = header.shape
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def _headers(path: str) -> tuple[dict[str, ArrayHeader], dict[str, InputError]]:
    """The headers of the arrays in an archive, and what is wrong with those that are damaged.

    Raises
    ------
    InputError
        If no array is intact, or the table X is not.
    """
    headers, damaged = dict[str, ArrayHeader](), dict[str, InputError]()
    with _explained(path), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            try:
                with _explained(path), archive.open(info) as file:
                    headers[name] = _header(file, info.file_size)
            except InputError as error:
                if name == "X":
                    raise
                if info.filename.endswith(".npy"):  # others are not arrays
                    damaged[name] = error
    if damaged and not headers:
        raise next(iter(damaged.values()))
    return headers, damaged


def _member(path: str, name: str) -> np.ndarray:
    """One array of an archive."""
    with _explained(path), zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        with archive.open(members[name]) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _header(file: IO[bytes], size: int) -> ArrayHeader:
    """The header of an array in a file of this size (bytes), checked.

    Raises
    ------
    ValueError
        If it is not a header, or claims more than the file holds.
    """
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format version is {version[0]}.{version[1]}")
    number = struct.Struct("<H" if version == (1, 0) else "<I")
    prefix = file.read(number.size)
    (length,) = number.unpack(prefix)
    if length > HEADER_BYTES:
        raise ValueError(f"its header claims to be {length} bytes long")
    parsed = _parsed(version, prefix + file.read(length))
    header = ArrayHeader(*parsed, np.lib.format.MAGIC_LEN + number.size + length)
    _check_header(header, size)
    return header


def _parsed(version: tuple[int, int], text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):  # version 3 is 2 with other names of fields, which are not used here
        read = np.lib.format.read_array_header_2_0
    try:
        return read(io.BytesIO(text))
    except Exception as error:  # a header is Python's syntax; there is no list of what can go wrong
        raise ValueError(f"its header cannot be read ({error})") from error


def _check_header(header: ArrayHeader, size: int) -> None:
    shape, dtype = header.shape, header.dtype
    if dtype.hasobject:  # pickled, so of any size; refused when they are read
        return
    if len(shape) > MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"its header claims the shape {str(shape)[:60]}")
    if dtype.itemsize == 0:
        raise ValueError(f"its values, of dtype {dtype}, have no bytes")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > size - header.n_bytes:
        raise ValueError(
            f"its header claims {n_bytes} bytes of values, but there are {size - header.n_bytes}"
        )
    if n_bytes == 0 and max(shape[1:], default=0) > MOST_EMPTY_COLUMNS:
        raise ValueError(f"its header claims the shape {shape}")


def _name_of_table(path: str, headers: Mapping[str, ArrayHeader]) -> str:
    """X, or else the only array of two dimensions. An array of one column may be labels."""
    if "X" in headers:
        return "X"
    tables = [name for name, header in headers.items() if len(header.shape) == 2]
    if len(tables) > 1:
        tables = [name for name in tables if headers[name].shape[1] != 1]
    if len(tables) != 1:
        raise InputError(
            f"{path}: which array is the table? Of {listed(headers)}, {len(tables)} have two "
            "dimensions; name it X."
        )
    return tables[0]


def _column_names(
    path: str, headers: Mapping[str, ArrayHeader], matrix: np.ndarray
) -> list[str] | None:
    for name in NAMES:
        if name in headers and headers[name].dtype.kind == "U":
            if matrix.ndim == 2 and headers[name].shape == matrix.shape[1:]:
                names = [str(text) for text in _member(path, name)]
                check_column_names(path, names)
                return names
            raise InputError(
                f"{path}: the array {name!r} has shape {headers[name].shape}, but the table "
                f"{matrix.shape}; it must hold one name for each column."
            )
    return None


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn an error of NumPy or zipfile into one line about the file."""
    damaged = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, about headers that Python 2 wrote
            yield
    except InputError:
        raise
    except damaged as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise InputError(
                f"{path} holds Python objects, which are not read; save plain numbers and text."
            ) from error
        reason = str(error)[:MOST_CHARACTERS]  # some hold a part of the file
        raise InputError(f"{path} is not an intact NumPy file: {reason}.") from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (RuntimeError, NotImplementedError) as error:  # a password; an unknown compression
        raise InputError(f"{path} cannot be unpacked: {error}") from error
