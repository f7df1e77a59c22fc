"""Columns with a value for each row, written as CSV, Parquet or NPZ, whole or not at all.

CSV is written with the standard library, so that arrays need no optional one, and some rows at a
time, so that the text of a large table is never held in memory.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.outputs import check_output
from gpustump.files import whole_file

ENDINGS = (".csv", ".parquet", ".npz")
BLOCK = 2**14
"""Rows that are turned into text at a time."""


class Columns(NamedTuple):
    """What is to be written.

    Attributes
    ----------
    n_rows : int
    names : sequence of str
        Of the columns in CSV and Parquet, no two alike.
    block : callable
        Gives the columns' values in some of the rows.
    arrays : callable
        Gives the arrays of an NPZ file, by name.
    """

    n_rows: int
    names: Sequence[str]
    block: Callable[[slice], list[np.ndarray]]
    arrays: Callable[[], dict[str, np.ndarray]]


def check_columns_file(path: str, *, inputs: tuple[str | None, ...]) -> None:
    """Refuse --output if it could not be written, or does not say in what format.

    Raises
    ------
    InputError
    """
    if path == "-":
        return
    if not path.lower().endswith(ENDINGS):
        raise InputError(
            f"--output: {path} must end in {', '.join(ENDINGS)}, which tells the format; "
            "- is CSV on standard output."
        )
    check_output(path, "--output", inputs=inputs)


def write(path: str, columns: Columns) -> None:
    """Write columns in the format that the file's ending tells; - is CSV on standard output."""
    if path == "-":
        _write_csv(sys.stdout.buffer, columns)
        return
    writer = {".csv": _write_csv, ".npz": _write_npz}.get(path.lower()[-4:], _write_parquet)
    with whole_file(path) as file:
        writer(file, columns)


def _write_csv(file: BinaryIO, columns: Columns) -> None:
    _write_rows(file, [columns.names])
    for start in range(0, columns.n_rows, BLOCK):
        block = columns.block(slice(start, min(start + BLOCK, columns.n_rows)))
        _write_rows(file, zip(*(column.tolist() for column in block), strict=True))
    file.flush()


def _write_rows(file: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def _write_npz(file: BinaryIO, columns: Columns) -> None:
    np.savez(file, allow_pickle=False, **columns.arrays())


def _write_parquet(file: BinaryIO, columns: Columns) -> None:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingLibraryError("writing Parquet", "polars") from error
    values = map(np.ascontiguousarray, columns.block(slice(0, columns.n_rows)))
    pl.DataFrame(dict(zip(columns.names, values, strict=True))).write_parquet(file)
