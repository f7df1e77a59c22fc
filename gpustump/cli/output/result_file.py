"""A result for each row of a table, written as CSV, Parquet or NPZ; a file is complete or absent.

CSV is written with the standard library, so that arrays need no optional library, and in blocks of
rows, so that the text of a large table is never in memory as a whole.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.output.output_paths import OutputFile, check_output
from gpustump.model.whole_file import whole_file

ENDINGS = (".csv", ".parquet", ".npz")

BLOCK_CELLS = 2**17
"""About this many numbers are turned into text at a time."""


class Result(NamedTuple):
    """What is to be written.

    Attributes
    ----------
    n_rows : int
    names : sequence of str
        Names of the columns in CSV and Parquet, all different.
    block : callable
        Gives the columns' values in some of the rows.
    arrays : callable
        Gives the arrays of an NPZ file, by name.
    """

    n_rows: int
    names: Sequence[str]
    block: Callable[[slice], list[np.ndarray]]
    arrays: Callable[[], dict[str, np.ndarray]]


def check_result_file(path: str, *, inputs: tuple[str | None, ...]) -> None:
    """Refuse an --output that cannot be written, or whose name does not tell the format.

    Raises
    ------
    InputError
    """
    if path == "-":
        return
    if not path.lower().endswith(ENDINGS):
        raise InputError(
            f"--output: {path} must end in .csv, .parquet or .npz, which tells the format; "
            "- is CSV on standard output."
        )
    check_output(OutputFile("--output", path), inputs=inputs)


def write_result(path: str, result: Result) -> None:
    """Write a result in the format of the file's ending; - is CSV on standard output."""
    if path == "-":
        _write_csv(sys.stdout.buffer, result)
        return
    write = {".csv": _write_csv, ".npz": _write_npz}.get(path.lower()[-4:], _write_parquet)
    with whole_file(path) as file:
        write(file, result)


def _write_csv(file: BinaryIO, result: Result) -> None:
    _write_lines(file, [result.names])
    size = max(1, BLOCK_CELLS // len(result.names))
    for start in range(0, result.n_rows, size):
        columns = result.block(slice(start, min(start + size, result.n_rows)))
        _write_lines(file, zip(*(column.tolist() for column in columns), strict=True))
    file.flush()


def _write_lines(file: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def _write_npz(file: BinaryIO, result: Result) -> None:
    np.savez(file, allow_pickle=False, **result.arrays())


def _write_parquet(file: BinaryIO, result: Result) -> None:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingLibraryError("writing Parquet", "polars") from error
    values = map(np.ascontiguousarray, result.block(slice(0, result.n_rows)))
    pl.DataFrame(dict(zip(result.names, values, strict=True))).write_parquet(file)
