"""Read the binary formats that polars knows: Parquet, Feather, Arrow IPC."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.read.table import InputTable, Request, UnreadColumn, check_column_names
from gpustump.cli.wording import one_line
from gpustump.data.frames import columns_of


def read_parquet(path: str, request: Request) -> InputTable:
    """Read a Parquet file; see `files.read_table`."""
    pl = import_polars(path)
    return _read_binary(
        path,
        request,
        "Parquet",
        lambda names: pl.read_parquet(path, columns=names, glob=False, hive_partitioning=False),
        lambda: pl.read_parquet_schema(path),
    )


def read_ipc(path: str, request: Request) -> InputTable:
    """Read a Feather or Arrow IPC file; see `files.read_table`."""
    pl = import_polars(path)
    with open(path, "rb") as file:
        is_stream = file.read(6) != b"ARROW1"
    if is_stream:
        return _read_binary(
            path,
            request,
            "Arrow",
            lambda names: pl.read_ipc_stream(path, columns=names),
            lambda: pl.read_ipc_stream(path, n_rows=0).schema,
        )
    return _read_binary(
        path,
        request,
        "Arrow",
        lambda names: pl.read_ipc(path, columns=names),
        lambda: pl.read_ipc_schema(path),
    )


def _read_binary(
    path: str,
    request: Request,
    format_name: str,
    read: Callable[[list[str]], Any],
    read_schema: Callable[[], Any],
) -> InputTable:
    """Read those columns of a file that are wanted."""
    with explained(path, format_name):
        names = list(read_schema())
    check_column_names(path, names)
    header = InputTable(path, tuple(map(UnreadColumn, names)), 0)
    if not names:
        return header
    skipped = request.choose(header).skipped
    wanted = [name for j, name in enumerate(names) if j not in skipped]
    with explained(path, format_name):
        frame = read(wanted)
    found = {column.name: column for column in table_of_frame(path, frame).columns}
    columns = tuple(found.get(column.name, column) for column in header.columns)
    return InputTable(path, columns, len(frame))


def table_of_frame(path: str, frame: Any) -> InputTable:
    """A frame of polars as a table."""
    table = columns_of(frame, path)
    assert table is not None
    return InputTable(table.source, table.columns, table.n_rows)


def import_polars(path: str) -> Any:
    """The module polars.

    Raises
    ------
    MissingLibraryError
    """
    try:
        import polars
    except ImportError as error:
        raise MissingLibraryError(f"reading {path}", "polars") from error
    return polars


@contextlib.contextmanager
def explained(path: str, format_name: str) -> Iterator[None]:
    """Turn an error of polars into one line about the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = one_line(str(error).strip().partition("\n")[0])[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error
    except OSError as error:  # polars raises it for damaged compressed bytes, too
        if error.errno is not None:
            raise
        reason = one_line(str(error))[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error
