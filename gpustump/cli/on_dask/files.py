"""DATA as files, and files cut into parts, each of which one worker reads at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.input.standard_input import STANDARD_INPUT
from gpustump.data.readable import quoted

PART_BYTES = 64_000_000
"""About the size of a part, as float64, if its file can be read in parts."""

_VALUE_BYTES = 8


class FilePart(NamedTuple):
    """Rows of a file.

    Attributes
    ----------
    path : str
    rows : tuple of int, or None
        The first row, and the one after the last; None for all.
    """

    path: str
    rows: tuple[int, int] | None = None


def files_of(names: Sequence[str]) -> list[str]:
    """The files that names and patterns stand for, in their order.

    Raises
    ------
    InputError
        If a name or pattern stands for no file, or a file is given twice.
    """
    found = [file for name in names for file in _files(name)]
    known: dict[str, str] = {}
    for file in found:
        real = os.path.realpath(file)
        if real in known:
            raise InputError(f"DATA: {file} is given twice; its rows would count twice.")
        known[real] = file
    return found


def _files(name: str) -> list[str]:
    from dask.utils import natural_sort_key

    if name == STANDARD_INPUT:
        raise InputError("DATA: standard input is for one machine; give --dask names of files.")
    if os.path.isdir(name):
        example = quoted(os.path.join(name, "*.parquet"))
        raise InputError(f"DATA: {name} is a folder; name its files, such as {example}.")
    if os.path.exists(name):
        return [name]
    if not glob.has_magic(name):
        raise InputError(f"DATA: {name}: no such file.")
    matches = glob.glob(name, recursive=True)
    found = [path for path in matches if not os.path.isdir(path)]
    if not found:
        raise InputError(f"DATA: no file matches {quoted(name)}.")
    for path in found:
        if not os.path.isfile(path):
            raise InputError(f"DATA: {path} is a pipe or a device; give the names of files.")
    return sorted(found, key=natural_sort_key)


def source_of(names: Sequence[str]) -> str:
    """What messages call the table."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def parts_of(files: Sequence[str], n_workers: int) -> list[FilePart]:
    """Parts of files, more than one for each worker where files can be cut."""
    shapes = {file: _row_groups(file) for file in files}
    n_rows = sum(sum(sizes) for sizes, _ in shapes.values())
    share = max(1, -(-n_rows // (2 * n_workers)))
    return [part for file in files for part in _cut(file, *shapes[file], share)]


def _cut(file: str, groups: Sequence[int], width: int, share: int) -> Iterator[FilePart]:
    """Join groups of rows until they are large enough."""
    if not groups:
        yield FilePart(file)
        return
    wanted = min(share, max(1, PART_BYTES // (_VALUE_BYTES * max(width, 1))))
    ends = np.cumsum(groups).tolist()
    start = 0
    for end, following in zip(ends, [*ends[1:], np.inf], strict=True):
        if following - start > wanted and end > start:
            yield FilePart(file, (start, end))
            start = end


def _row_groups(file: str) -> tuple[list[int], int]:
    """The sizes of the groups of rows that are stored together, and the number of columns.

    No groups for files that are read as a whole, or not at all: then their reader says why.
    """
    name = file.lower()
    if name.endswith((".parquet", ".pq")):
        return _parquet_groups(file)
    return _array_groups(file) if name.endswith(".npy") else ([], 0)


def _parquet_groups(file: str) -> tuple[list[int], int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return [], 0
    sizes = [found.row_group(k).num_rows for k in range(found.num_row_groups)]
    return sizes, found.num_columns


def _array_groups(file: str) -> tuple[list[int], int]:
    """Groups of an array: it is mapped, so any rows can be read."""
    try:
        shape = np.load(file, mmap_mode="r").shape
    except (ValueError, OSError, EOFError):
        return [], 0
    if len(shape) != 2 or not shape[1]:
        return [], 0
    size = max(1, PART_BYTES // (4 * _VALUE_BYTES * shape[1]))
    starts = range(0, shape[0], min(size, -(-shape[0] // 64) or 1))
    return [min(starts.step, shape[0] - start) for start in starts], shape[1]
