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
from gpustump.model.whole_file import whole_file

ENDINGS = (".csv", ".parquet", ".npz")
CELLS = 2**17
"""So many numbers are turned into text at a time, in whole rows."""


class Sheet(NamedTuple):
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


def write(path: str, sheet: Sheet) -> None:
    """Write columns in the format that the file's ending tells; - is CSV on standard output."""
    if path == "-":
        _write_csv(sys.stdout.buffer, sheet)
        return
    writer = {".csv": _write_csv, ".npz": _write_npz}.get(path.lower()[-4:], _write_parquet)
    with whole_file(path) as file:
        writer(file, sheet)


def _write_csv(file: BinaryIO, sheet: Sheet) -> None:
    _write_rows(file, [sheet.names])
    size = max(1, CELLS // len(sheet.names))
    for start in range(0, sheet.n_rows, size):
        block = sheet.block(slice(start, min(start + size, sheet.n_rows)))
        _write_rows(file, zip(*(column.tolist() for column in block), strict=True))
    file.flush()


def _write_rows(file: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def _write_npz(file: BinaryIO, sheet: Sheet) -> None:
    np.savez(file, allow_pickle=False, **sheet.arrays())


def _write_parquet(file: BinaryIO, sheet: Sheet) -> None:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingLibraryError("writing Parquet", "polars") from error
    values = map(np.ascontiguousarray, sheet.block(slice(0, sheet.n_rows)))
    pl.DataFrame(dict(zip(sheet.names, values, strict=True))).write_parquet(file)
