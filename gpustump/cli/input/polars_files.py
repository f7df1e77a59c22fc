"""Read CSV and Parquet files, with polars.

polars infers the type of a CSV column from all its values. Two things are done here beside it:
blanks around fields are removed, as they would turn numbers into text, and a header with two equal
names is refused.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import os
import re
from collections.abc import Collection, Iterator
from typing import Any

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.input.input_table import InputTable, check_column_names
from gpustump.cli.wording import one_line
from gpustump.data.frames import columns_of

MISSING_WORDS = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None"]

HEAD_BYTES = 2**16
"""The part of a file that tells whether it is text, and what separates its columns."""


def read_parquet(path: str, text_columns: Collection[str] = ()) -> InputTable:
    """Read a Parquet file; see `reading.read_table`."""
    pl = _polars(path)
    with _explained(path, "Parquet"), _silent_stderr():
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    return _table(path, frame)


def read_csv(path: str, text_columns: Collection[str] = ()) -> InputTable:
    """Read a CSV file, separated by commas, semicolons or tabs; see `reading.read_table`."""
    pl = _polars(path)
    separator = _separator(path, _checked_head(path))
    options = {"separator": separator, "glob": False, "null_values": MISSING_WORDS}
    with _explained(path, "CSV", separator):
        header = pl.read_csv(path, n_rows=0, **options).columns
        _check_header(path, header)
        frame = pl.read_csv(
            path,
            infer_schema_length=None,
            try_parse_dates=True,
            schema_overrides={n: pl.String for n in header if n.strip() in text_columns},
            **options,
        )
    frame = frame.rename({name: name.strip() for name in header if name != name.strip()})
    return _table(path, frame.with_columns(_without_blanks(s, text_columns) for s in frame))


def _table(path: str, frame: Any) -> InputTable:
    table = columns_of(frame, path)
    assert table is not None
    return InputTable(table.source, table.columns, table.n_rows)


def _polars(path: str) -> Any:
    try:
        import polars
    except ImportError as error:
        raise MissingLibraryError(f"reading {path}", "polars") from error
    return polars


@contextlib.contextmanager
def _explained(path: str, format_name: str, separator: str = ",") -> Iterator[None]:
    """Turn an error of polars into one line about the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        message = str(error)
        if "invalid utf-8" in message:
            raise InputError(f"{path} is not UTF-8 text; save it as UTF-8.") from error
        if "found more fields" in message:
            line = _first_long_line(path, separator)
            raise InputError(
                f"{path} {line}; put quotes around fields that hold the separator."
            ) from error
        reason = one_line(message.strip().partition("\n")[0])[:200]
        raise InputError(f"{path} cannot be read as {format_name}: {reason}") from error


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide the page of Rust messages that polars prints when a damaged file makes it panic."""
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


def _open(path: str) -> Any:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")


def _checked_head(path: str) -> bytes:
    """The first bytes of a file; refuses one that is not UTF-8 text, which polars may accept."""
    try:
        with _open(path) as file:
            head: bytes = file.read(HEAD_BYTES)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is not an intact gzip file: {error}.") from error
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is UTF-16 text; save it as UTF-8.")
    if b"\0" in head:
        raise InputError(f"{path} is not text: it holds zero bytes, as binary files do.")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8.") from error
    return head


def _separator(path: str, head: bytes) -> str:
    """Tab in a .tsv; otherwise a comma, or a tab or semicolon if the header has no comma.

    polars does not detect separators. `csv.Sniffer` fails on a file with one column, and its answer
    depends on the rows; this rule is one sentence, and depends on the header alone.
    """
    if path.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    header = head.partition(b"\n")[0]
    found = [mark for mark in (",", "\t", ";") if mark.encode() in header]
    return found[0] if found else ","


def _first_long_line(path: str, separator: str) -> str:
    with _open(path) as file:
        lines = (line.decode(errors="replace") for line in file)
        reader = csv.reader(lines, delimiter=separator)
        n_columns = len(next(reader))
        for row in reader:
            if len(row) > n_columns:
                return f"has {len(row)} fields in line {reader.line_num}, but {n_columns} names"
    return "has lines with more fields than names"


def _check_header(path: str, header: list[str]) -> None:
    """Refuse a repeated name: the copy of a target would be a feature that gives it away."""
    check_column_names(path, [re.sub(r"_duplicated_\d+$", "", name).strip() for name in header])


def _without_blanks(series: Any, text_columns: Collection[str]) -> Any:
    """A text column without blanks around its fields, as numbers if it then holds only numbers."""
    import polars as pl

    if series.dtype != pl.String:
        return series
    series = series.str.strip_chars()
    series = series.set(series.is_in(["", *MISSING_WORDS]).fill_null(False), None)
    if series.name in text_columns:
        return series
    numbers = series.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == series.null_count() else series
