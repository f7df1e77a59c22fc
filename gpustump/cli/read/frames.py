"""Read the binary formats that polars knows, and JSON lines."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.read.dates import DateOrder, naming_column
from gpustump.cli.read.fields import with_times
from gpustump.cli.read.reader_aborts import explained_abort
from gpustump.cli.read.requests import TEXT, Request
from gpustump.cli.read.table import InputTable, UnreadColumn, check_column_names
from gpustump.cli.read.text_blocks import TextFile, blocks
from gpustump.cli.wording import one_line
from gpustump.data.frames import columns_of


def read_parquet(path: str, request: Request) -> InputTable:
    """Read a Parquet file; see `reading.read_table`."""
    pl = import_polars(path)
    return _read_binary(
        path,
        request,
        "Parquet",
        lambda names: pl.read_parquet(path, columns=names, glob=False, hive_partitioning=False),
        lambda: pl.read_parquet_schema(path),
    )


def read_ipc(path: str, request: Request) -> InputTable:
    """Read a Feather or Arrow IPC file; see `reading.read_table`."""
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


def read_json_lines(path: str, request: Request) -> InputTable:
    """Read a file with a JSON object in each line; see `reading.read_table`."""
    pl = import_polars(path)
    text = b"".join(blocks(TextFile(path, request.text.encoding), has_quotes=False))
    with explained(path, "JSON lines"), _silent_stderr():
        frame = pl.read_ndjson(io.BytesIO(text), infer_schema_length=None)
    check_column_names(path, frame.columns)
    wanted = request.choose(_header(path, frame.columns))
    others = [s.name for j, s in enumerate(frame) if wanted.kinds.get(j) != TEXT]
    texts = [s for s in frame.select(others) if s.dtype == pl.String]
    places = {name: j for j, name in enumerate(frame.columns)}
    found: list[Any] = []
    orders: dict[int, DateOrder] = {}
    for series in texts:
        place = places[series.name]
        with naming_column(path, series.name):
            values, order = with_times(series, wanted.date_orders.get(place))
        found.append(values)
        if order is not None:
            orders[place] = order
    return replace(_table(path, frame.with_columns(found)), date_orders=orders)


def _read_binary(
    path: str,
    request: Request,
    format_name: str,
    read: Callable[[list[str]], Any],
    read_schema: Callable[[], Any],
) -> InputTable:
    """Read those columns of a file that are wanted."""
    with explained(path, format_name), _silent_stderr():
        names = list(read_schema())
    check_column_names(path, names)
    header = _header(path, names)
    if not names:
        return header
    skipped = request.choose(header).skipped
    wanted = [name for j, name in enumerate(names) if j not in skipped]
    with explained(path, format_name), _silent_stderr():
        frame = read(wanted)
    found = {column.name: column for column in _table(path, frame).columns}
    columns = tuple(found.get(column.name, column) for column in header.columns)
    return InputTable(path, columns, len(frame))


def _header(path: str, names: list[str]) -> InputTable:
    return InputTable(path, tuple(map(UnreadColumn, names)), 0)


def _table(path: str, frame: Any) -> InputTable:
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

    damaged = f"{path} cannot be read as {format_name}: it is damaged, or larger than the memory."
    try:
        with explained_abort(damaged):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = one_line(str(error).strip().partition("\n")[0])[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error
    except OSError as error:  # polars raises it for damaged compressed bytes, too
        if error.errno is not None:
            raise
        reason = one_line(str(error))[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide the page of Rust messages that polars prints if it panics at a damaged file."""
    try:
        saved = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
