"""Read a data file with the reader for its format, which follows from the ending of its name.

Standard input and pipes are copied to a file first; see `standard_input`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from gpustump.cli.errors import InputError
from gpustump.cli.read.file_state import FileState, check_unchanged
from gpustump.cli.read.lost_pages import explain_lost_pages
from gpustump.cli.read.requests import Request
from gpustump.cli.read.streams import table_file
from gpustump.cli.read.table import InputTable
from gpustump.cli.read.text_blocks import without_compression


def read_table(
    path: str, request: Request | None = None, *, may_be_empty: bool = False
) -> InputTable:
    """Read a data file.

    Parameters
    ----------
    path : str
        Or - for standard input.
    request : Request, optional
        Which columns, and how text is written; everything by default. Columns that are not wanted
        keep their place in the table, but have no values.
    may_be_empty : bool
        Whether a table without rows is accepted.

    Raises
    ------
    InputError
        If the file is not what its name says, holds no table or not the one that is wanted, or is
        written to meanwhile.
    OSError
        If it cannot be read.
    """
    before = FileState.of(path)
    with table_file(path) as file:
        explain_lost_pages(file.path)
        table = _checked(_read(file.path, request or Request()), may_be_empty)
    check_unchanged(before)
    return replace(table, source=file.name)


def _read(path: str, request: Request) -> InputTable:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    read = _reader(path)
    with open(path, "rb") as file:  # first, for the operating system's own reason if this fails
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    return read(path, request)


def _checked(table: InputTable, may_be_empty: bool) -> InputTable:
    if not table.columns:
        raise InputError(f"{table.source} has no columns.")
    if table.n_rows == 0 and not may_be_empty:
        raise InputError(f"{table.source} has columns but no rows.")
    return table


def _reader(path: str) -> Callable[[str, Request], InputTable]:
    name = path.lower()
    if name.endswith((".npy", ".npz")):
        return _read_arrays
    if without_compression(name).endswith((".csv", ".tsv")):
        from gpustump.cli.read import text as csv_files

        return csv_files.read_csv
    from gpustump.cli.read import frames as polars_files

    if name.endswith((".parquet", ".pq")):
        return polars_files.read_parquet
    if name.endswith((".feather", ".arrow", ".ipc")):
        return polars_files.read_ipc
    if without_compression(name).endswith((".jsonl", ".ndjson")):
        return polars_files.read_json_lines
    if os.path.exists(path):
        raise InputError(
            f"{path}: the name must end in that of its format, such as .csv, .tsv, .parquet, "
            ".feather, .jsonl, .npy or .npz; rename the file, or convert it."
        )
    raise InputError(f"{path}: no such file.")


def _read_arrays(path: str, request: Request) -> InputTable:
    from gpustump.cli.read import arrays as numpy_files

    read = numpy_files.read_npy if path.lower().endswith(".npy") else numpy_files.read_npz
    table = read(path)
    if table.columns:
        request.choose(table)
    return table
