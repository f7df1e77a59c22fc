"""A result for each row of a table, written as CSV, Parquet or NPZ; a file is complete or absent.

CSV is written in blocks of rows, so that the text of a large table is never in memory as a whole.
A float64 has the fewest digits that read back as the same bits.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.write.files import STANDARD_OUTPUT, FileKind, OutputFile
from gpustump.data.readable import counted, readable_bytes

ENDINGS = (".csv", ".parquet", ".npz")

BLOCK_CELLS = 2**20
"""About this many numbers are turned into text at a time."""


class Layout(NamedTuple):
    """What a result consists of, known before the table is read.

    Attributes
    ----------
    names : sequence of str
        Names of the columns in CSV and Parquet, all different.
    arrays : sequence of str
        Names of the arrays of an NPZ file.
    """

    names: Sequence[str]
    arrays: Sequence[str]


class Result(NamedTuple):
    """What is to be written.

    Attributes
    ----------
    n_rows : int
    layout : Layout
    block : callable
        Gives the columns' values in some of the rows.
    arrays : callable
        Gives the arrays of an NPZ file, in the order of the layout.
    """

    n_rows: int
    layout: Layout
    block: Callable[[slice], list[np.ndarray]]
    arrays: Callable[[], list[np.ndarray]]


def result_file(arguments: argparse.Namespace) -> OutputFile:
    """The file of --output, which can be written, and whose name tells the format.

    Raises
    ------
    InputError
        If it cannot, or does not.
    """
    output = OutputFile("--output", arguments.output)
    output.check(arguments.model, arguments.data)
    name = output.path.lower()
    if output.path != STANDARD_OUTPUT and not (output.is_stream and not name.endswith(ENDINGS)):
        output.check_ending(ENDINGS, ", which tells the format; - is CSV on standard output")
    if name.endswith(".parquet") and importlib.util.find_spec("polars") is None:
        raise MissingLibraryError("writing Parquet", "polars")
    return output


def result_of(layout: Layout, path: str) -> FileKind:
    """Results of the same layout, in the format of the file's ending."""
    header = header_line(layout.names)

    def is_one(file: BinaryIO) -> bool:
        if path.lower().endswith(".parquet"):
            return _parquet_columns(file) == list(layout.names)
        if path.lower().endswith(".npz"):
            return _npz_arrays(file) == set(layout.arrays)
        return file.read(len(header)) == header

    return FileKind("result of this command with this model", is_one)


def _parquet_columns(file: BinaryIO) -> list[str]:
    import polars as pl

    with contextlib.suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return list(pl.read_parquet_schema(file))
    return []


def _npz_arrays(file: BinaryIO) -> set[str]:
    with contextlib.suppress(zipfile.BadZipFile, ValueError, NotImplementedError):
        return {name.removesuffix(".npy") for name in zipfile.ZipFile(file).namelist()}
    return set()


def write_result(output: OutputFile, result: Result) -> None:
    """Write a result in the format of the file's ending; - is CSV on standard output.

    Raises
    ------
    InputError
        If the file cannot be written.
    OSError
        If standard output cannot.
    """
    path = output.path
    if path == STANDARD_OUTPUT:
        _write_csv(sys.stdout.buffer, result)
        return
    endings = {".csv": _write_csv, ".npz": _write_npz, ".parquet": _write_parquet}
    write = next((endings[e] for e in ENDINGS if path.lower().endswith(e)), _write_csv)
    with output.opened() as file:
        write(file, result)
    if not output.is_stream:
        size = readable_bytes(os.path.getsize(path))
        print(f"written  {path}, {counted(result.n_rows, 'row')}, {size}")


def _write_csv(file: BinaryIO, result: Result) -> None:
    names = result.layout.names
    file.write(header_line(names))
    step = max(1, BLOCK_CELLS // len(names))
    for start in range(0, result.n_rows, step):
        rows = slice(start, min(start + step, result.n_rows))
        columns = [column.tolist() for column in result.block(rows)]
        file.write(_lines(zip(*columns, strict=True)))
    file.flush()


def header_line(names: Sequence[str]) -> bytes:
    """The line of the columns' names."""
    return _lines([names])


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as CSV, in lines that end with a line feed.

    The writer quotes carriage returns in fields only if its own lines end with one.
    """
    lines: list[str] = []
    taker = SimpleNamespace(write=lambda line: lines.append(line.removesuffix("\r\n") + "\n"))
    csv.writer(taker).writerows(rows)
    return "".join(lines).encode()


def _write_npz(file: BinaryIO, result: Result) -> None:
    arrays: dict[str, Any] = dict(zip(result.layout.arrays, result.arrays(), strict=True))
    np.savez(file, allow_pickle=False, **arrays)


def _write_parquet(file: BinaryIO, result: Result) -> None:
    import polars as pl

    columns = map(np.ascontiguousarray, result.block(slice(0, result.n_rows)))
    frame = pl.DataFrame(dict(zip(result.layout.names, columns, strict=True)))
    try:
        frame.write_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _system_error(str(error)) from error


def _system_error(message: str) -> OSError:
    """The operating system's error that a message of polars ends with, if it does."""
    found = re.search(r"\(os error (\d+)\)", message)
    if found is None:
        return OSError(f"writing Parquet failed: {message}")
    return OSError(int(found[1]), os.strerror(int(found[1])))
