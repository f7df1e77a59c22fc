"""Read a data file with the reader for its format, which the ending of its name tells.

Standard input and pipes are copied to a file first; see `standard_input`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace

from gpustump.cli.errors import InputError
from gpustump.cli.input.file_state import FileState, check_unchanged
from gpustump.cli.input.input_table import InputTable
from gpustump.cli.input.standard_input import table_file


def read_table(
    path: str, *, text_columns: Collection[str] = (), may_be_empty: bool = False
) -> InputTable:
    """Read a data file.

    Parameters
    ----------
    path : str
        Or - for standard input.
    text_columns : collection of str
        Columns of a text file to read as text even if they look like numbers or dates.
    may_be_empty : bool
        Whether a table without rows is accepted.

    Raises
    ------
    InputError
        If the file is not what its name says, holds no table, or is written to meanwhile.
    OSError
        If it cannot be read.
    """
    before = FileState.of(path)
    with table_file(path) as file:
        table = _checked(_read(file.path, text_columns), may_be_empty)
    check_unchanged(before)
    return replace(table, source=file.name)


def _read(path: str, text_columns: Collection[str]) -> InputTable:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    read = _reader(path)
    with open(path, "rb") as file:  # first, for the operating system's own reason if this fails
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    return read(path, text_columns)


def _checked(table: InputTable, may_be_empty: bool) -> InputTable:
    if not table.columns:
        raise InputError(f"{table.source} has no columns.")
    if table.n_rows == 0 and not may_be_empty:
        raise InputError(f"{table.source} has columns but no rows.")
    return table


def _reader(path: str) -> Callable[[str, Collection[str]], InputTable]:
    name = path.lower()
    if name.endswith((".npy", ".npz")):
        from gpustump.cli.input import numpy_files

        return numpy_files.read_npy if name.endswith(".npy") else numpy_files.read_npz
    if name.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")):
        from gpustump.cli.input import polars_files

        is_parquet = name.endswith((".parquet", ".pq"))
        return polars_files.read_parquet if is_parquet else polars_files.read_csv
    if os.path.exists(path):
        raise InputError(
            f"{path}: the ending of a name tells the format, one of .csv, .tsv, .parquet, .npy and "
            ".npz; rename the file, or convert it."
        )
    raise InputError(f"{path}: no such file.")
