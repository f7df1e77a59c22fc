"""NPY and NPZ files, memory-mapped where that is possible and never unpickled.

NumPy maps a .npy file, but not the arrays inside a .npz. An uncompressed one lies in the archive
as it is, so it can be mapped too, from its offset.
"""

from __future__ import annotations

import contextlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import numpy as np

from gpustump.cli.errors import InputError, listed
from gpustump.cli.tables import ArrayColumn, Table, check_distinct, of_matrix

NAMES = ("names", "feature_names")
"""Arrays of a .npz that are taken as the names of its table's columns."""

CHUNK = 2**22
"""Bytes read at a time to compare a checksum."""

_LOCAL_HEADER = struct.Struct("<4s22x2H")  # signature, ..., lengths of the name and the extra field


def read_npy(path: str, text_columns: Collection[str] = ()) -> Table:
    """Read a .npy file; see `reading.read_table`."""
    with _explained(path):
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        loaded.close()
        raise InputError(f"{path} is a .npz archive; give it that ending.")
    return of_matrix(path, np.asarray(loaded), None)


def read_npz(path: str, text_columns: Collection[str] = ()) -> Table:
    """Read a .npz file; see `reading.read_table`."""
    with _explained(path):
        arrays = _members(path)
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) > 1:  # a single column may be labels
        tables = [name for name in tables if arrays[name].shape[1] != 1]
    chosen = "X" if "X" in arrays else tables[0] if len(tables) == 1 else None
    if chosen is None:
        raise InputError(
            f"{path}: which array is the table? Of {listed(arrays)}, {len(tables)} have two "
            "dimensions; name it X."
        )
    matrix = arrays.pop(chosen)
    beside = {
        name: ArrayColumn(name, array.reshape(-1))
        for name, array in arrays.items()
        if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    }
    return of_matrix(path, matrix, _names(path, arrays, matrix), beside)


def _names(path: str, arrays: dict[str, np.ndarray], matrix: np.ndarray) -> list[str] | None:
    for name in NAMES:
        if name in arrays and arrays[name].dtype.kind == "U":
            if matrix.ndim == 2 and arrays[name].shape == matrix.shape[1:]:
                names = [str(text) for text in arrays[name]]
                check_distinct(path, names)
                return names
            raise InputError(
                f"the array {name!r} has shape {arrays[name].shape}, but the table "
                f"{matrix.shape}: one name a column is wanted."
            )
    return None


def _members(path: str) -> dict[str, np.ndarray]:
    """All arrays of an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        found = {}
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                mapped = _mapped(path, info)
                if mapped is None:
                    with archive.open(info) as file:
                        mapped = np.lib.format.read_array(file, allow_pickle=False)
                found[info.filename.removesuffix(".npy")] = mapped
    return found


def _check_intact(file: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Compare what is mapped with the archive's checksum, which nobody else would do."""
    checksum, left = 0, info.file_size
    while left and (part := file.read(min(left, CHUNK))):
        checksum, left = zlib.crc32(part, checksum), left - len(part)
    if left or checksum != info.CRC:
        raise InputError(f"the array {info.filename!r} is damaged: its checksum is wrong.")


def _mapped(path: str, info: zipfile.ZipInfo) -> np.ndarray | None:
    """An uncompressed array as it lies in the archive; None if it cannot be mapped."""
    encrypted = info.flag_bits & 0x1
    if info.compress_type != zipfile.ZIP_STORED or encrypted:
        return None
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        signature, n_name, n_extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        if signature != b"PK\3\4":
            return None
        file.seek(n_name + n_extra, 1)
        start = file.tell()
        _check_intact(file, info)
        file.seek(start)
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            return None
        read_header: Any = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, fortran_order, dtype = read_header(file)
        n_bytes = dtype.itemsize * int(np.prod(shape, dtype=object))
        fits = file.tell() - start + n_bytes <= info.file_size
        if dtype.hasobject or n_bytes == 0 or not fits:
            return None
        order: Any = "F" if fortran_order else "C"
        return np.asarray(np.memmap(path, dtype, "r", file.tell(), shape, order))


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    broken = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, struct.error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, about headers that Python 2 wrote
            yield
    except (*broken, SyntaxError, tokenize.TokenError) as error:  # the header is Python's syntax
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            raise InputError(
                f"{path} holds Python objects, which are not read; save plain numbers and text."
            ) from error
        raise InputError(f"{path} is not an intact NumPy file: {error}.") from error
    except (RuntimeError, NotImplementedError) as error:  # a password; an unknown compression
        raise InputError(f"{path} cannot be unpacked: {error}") from error
