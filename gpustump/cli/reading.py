"""Which reader a data file needs, by the ending of its name, and what no table may lack."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from gpustump.cli.errors import InputError
from gpustump.cli.tables import Table


def read_table(path: str, *, text_columns: Collection[str] = ()) -> Table:
    """Read a data file, by the ending of its name.

    Parameters
    ----------
    path : str
    text_columns : collection of str
        Columns of a text file to take as text even if they look like numbers or dates.

    Raises
    ------
    InputError
        If the file is not what its name says, or holds no table.
    OSError
        If it cannot be read.
    """
    read = _reader(path)
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    with open(path, "rb") as file:  # so that the system's own reason is told, not a library's
        if not file.read(1):
            raise InputError(f"{path} is empty.")
    table = read(path, text_columns)
    if not table.columns:
        raise InputError(f"{path} has no columns.")
    if table.n_rows == 0:
        raise InputError(f"{path} has columns but no rows.")
    return table


def _reader(path: str) -> Callable[[str, Collection[str]], Table]:
    name = path.lower()
    if name.endswith((".npy", ".npz")):
        from gpustump.cli import numpy_files

        return numpy_files.read_npy if name.endswith(".npy") else numpy_files.read_npz
    if name.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")):
        from gpustump.cli import frames

        return frames.read_parquet if name.endswith((".parquet", ".pq")) else frames.read_csv
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(
            f"{path}: the format is told by the ending, one of .csv, .tsv, .parquet, .npy and "
            ".npz; rename the file, or convert it."
        )
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give the name of a file.")
    raise InputError(f"{path}: no such file.")
