"""Read a data file with the reader for its format, which the ending of its name tells."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from gpustump.cli.errors import InputError
from gpustump.cli.input.input_table import InputTable


def read_table(path: str, *, text_columns: Collection[str] = ()) -> InputTable:
    """Read a data file.

    Parameters
    ----------
    path : str
    text_columns : collection of str
        Columns of a text file to read as text even if they look like numbers or dates.

    Raises
    ------
    InputError
        If the file is not what its name says, or holds no table.
    OSError
        If it cannot be read.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    read = _reader(path)
    with open(path, "rb") as file:  # first, for the operating system's own reason if this fails
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    table = read(path, text_columns)
    if not table.columns:
        raise InputError(f"{path} has no columns.")
    if table.n_rows == 0:
        raise InputError(f"{path} has columns but no rows.")
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
