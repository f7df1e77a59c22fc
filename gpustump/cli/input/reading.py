"""Read a data file with the reader for its format, which the ending of its name tells."""

from __future__ import annotations

import os
from collections.abc import Callable

from gpustump.cli.errors import InputError
from gpustump.cli.input.input_table import InputTable
from gpustump.cli.input.requests import Request
from gpustump.cli.input.text_blocks import without_compression


def read_table(path: str, request: Request | None = None) -> InputTable:
    """Read a data file.

    Parameters
    ----------
    path : str
    request : Request, optional
        Which columns, and how text is written; everything by default. Columns that are not wanted
        keep their place in the table, but have no values.

    Raises
    ------
    InputError
        If the file is not what its name says, holds no table, or not the table that is wanted.
    OSError
        If it cannot be read.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    read = _reader(path)
    with open(path, "rb") as file:  # first, for the operating system's own reason if this fails
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    table = read(path, request or Request())
    if not table.columns:
        raise InputError(f"{path} has no columns.")
    if table.n_rows == 0:
        raise InputError(f"{path} has columns but no rows.")
    return table


def _reader(path: str) -> Callable[[str, Request], InputTable]:
    name = path.lower()
    if name.endswith((".npy", ".npz")):
        return _read_arrays
    if without_compression(name).endswith((".csv", ".tsv")):
        from gpustump.cli.input import csv_files

        return csv_files.read_csv
    from gpustump.cli.input import polars_files

    if name.endswith((".parquet", ".pq")):
        return polars_files.read_parquet
    if name.endswith((".feather", ".arrow", ".ipc")):
        return polars_files.read_ipc
    if without_compression(name).endswith((".jsonl", ".ndjson")):
        return polars_files.read_json_lines
    if os.path.exists(path):
        raise InputError(
            f"{path}: the ending of a name tells the format, one of .csv, .tsv, .parquet, "
            ".feather, .jsonl, .npy and .npz; rename the file, or convert it."
        )
    raise InputError(f"{path}: no such file.")


def _read_arrays(path: str, request: Request) -> InputTable:
    from gpustump.cli.input import numpy_files

    read = numpy_files.read_npy if path.lower().endswith(".npy") else numpy_files.read_npz
    table = read(path)
    request.choose(table)
    return table
