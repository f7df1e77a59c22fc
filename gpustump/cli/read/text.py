"""Read CSV, TSV and JSON lines with polars; `fields` tells what the text of each column is.

The file's text and its fields are in memory at once.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.binary import explained, import_polars
from gpustump.cli.read.fields import (
    FIRST,
    MISSING_WORDS,
    Numbers,
    Rules,
    Typed,
    other_numbers,
    plain_numbers,
    times_in,
    typed,
)
from gpustump.cli.read.packed import unpacked, without_compression
from gpustump.cli.read.table import (
    NUMBER,
    TEXT,
    InputTable,
    Request,
    UnreadColumn,
    Wanted,
    check_column_names,
)
from gpustump.cli.wording import told_apart
from gpustump.data.columns import LARGEST_WHOLE, ArrayColumn, Column
from gpustump.data.frames import FrameColumn, FrameColumns
from gpustump.data.readable import listed, quoted

SEPARATORS = (",", "\t", ";", "|")

_LONGEST_FIELD = 2**31 - 1
_PART = 2**24


class _Format(NamedTuple):
    """How the file is written.

    Attributes
    ----------
    path : str
    names : list of str
        Of the columns, all different.
    given : list of str
        As the file has them.
    separator : str
    rules : Rules
    """

    path: str
    names: list[str]
    given: list[str]
    separator: str
    rules: Rules


def read_csv(path: str, request: Request) -> InputTable:
    """Read a CSV file, separated by commas, semicolons, bars or tabs; see `files.read_table`."""
    import_polars(path)
    text = text_of(path, request.encoding, request.fallback).strip(b"\r\n")
    form = _format(path, text, request)
    renamed = {new: old for old, new in zip(form.given, form.names, strict=True) if old != new}
    header = InputTable(path, tuple(map(UnreadColumn, form.names)), 0, renamed=renamed)
    wanted = request.choose(header)
    frame = _frame(form, text)
    del text
    numbers, texts = _fields(frame, form, wanted)
    written = [form.names[j] for j, own in numbers.items() if own.is_written]
    doubts = {form.names[j]: own.doubt for j, own in numbers.items() if own.doubt is not None}
    found = _columns(form, len(frame), numbers, texts)
    table = replace(
        header,
        columns=tuple(found.get(j, column) for j, column in enumerate(header.columns)),
        n_rows=len(frame),
        notes=_notes(renamed, written),
        decimals=form.rules.decimals if written and len(form.rules.decimals) == 1 else None,
        warnings=tuple(
            f"the commas of {quoted(name)}, such as {quoted(example)}, may be decimal ones, or "
            "between thousands; they were read as decimal ones. Say which with --decimal."
            for name, example in doubts.items()
        ),
    )
    return _with_dates(table, texts)


def _with_dates(table: InputTable, found: Mapping[int, Typed]) -> InputTable:
    """The table, which knows how its dates begin, and warns of those that may begin otherwise."""
    warnings = (
        f"the dates of {quoted(table.names[j])}, such as {quoted(own.doubt)}, may be in another "
        f"order; they were read with the {FIRST[str(own.date_order)]} first. Train with "
        "--date-order to say which it is."
        for j, own in found.items()
        if own.doubt is not None
    )
    orders = {j: own.date_order for j, own in found.items() if own.date_order is not None}
    return replace(table, date_orders=orders, warnings=(*table.warnings, *warnings))


def read_json_lines(path: str, request: Request) -> InputTable:
    """Read a file with a JSON object in each line; see `files.read_table`."""
    pl = import_polars(path)
    text = text_of(path, request.encoding, request.fallback)
    try:
        with explained(path, "JSON lines"):
            frame = pl.read_ndjson(io.BytesIO(text), infer_schema_length=None)
    except InputError:
        _refuse_bad_json(path, text)
        raise
    check_column_names(path, frame.columns)
    header = InputTable(path, tuple(map(UnreadColumn, frame.columns)), 0)
    if not frame.columns:
        return header
    wanted = request.choose(header)
    found: dict[int, Typed] = {}
    for j, series in enumerate(frame):
        if series.dtype == pl.String and j not in wanted.skipped and wanted.kinds.get(j) != TEXT:
            with as_input_error(f"{path}: "):
                times = times_in(series, wanted.date_orders.get(j))
            if times is not None:
                found[j] = times
    frame = frame.with_columns([own.values for own in found.values()])
    return _with_dates(InputTable(path, FrameColumns(frame, frame.columns), len(frame)), found)


def _refuse_bad_json(path: str, text: bytes) -> None:
    """Refuse the first line that is no JSON; do nothing if there is none."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        try:
            json.loads(line.strip() or b"0")
        except ValueError as error:
            raise InputError(
                f"{path} cannot be read as JSON lines: line {number} is no JSON ({error})."
            ) from error


def text_of(path: str, encoding: str | None = None, fallback: str | None = None) -> bytes:
    """The file's text as UTF-8, unpacked, with "\\n" at the ends of lines; see `Request`.

    Raises
    ------
    InputError
        If the file is not intact, or not text in that encoding.
    """
    with unpacked(path) as file:
        content = file.read()
    if encoding is None and content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        encoding = "utf-16"
    if encoding is None and b"\0" in content:
        raise InputError(f"{path} is not text: it holds zero bytes, as binary files do.")
    if encoding is None and not _is_utf8(content):
        if fallback is None:
            raise InputError(
                f"{path} is not UTF-8 text; save it as UTF-8, or name its encoding, such as "
                "`train --encoding latin-1`."
            )
        encoding = fallback
    try:
        content = content if encoding is None else content.decode(encoding).encode()
    except UnicodeError as error:
        raise InputError(f"{path} is not {encoding} text: {error}.") from error
    except (LookupError, ValueError) as error:  # a model file may name any encoding
        raise InputError(
            f"{path} is not UTF-8 text, and this Python knows no encoding {quoted(encoding)}; save "
            "it as UTF-8."
        ) from error
    content = content.removeprefix(codecs.BOM_UTF8)
    return content if b"\n" in content else content.replace(b"\r", b"\n")


def _is_utf8(content: bytes) -> bool:
    """Whether the content is UTF-8; in parts, as decoded text may be four times as large."""
    parts = (content[start : start + _PART] for start in range(0, len(content), _PART))
    try:
        for _ in codecs.iterdecode(parts, "utf-8"):
            pass
    except UnicodeError:
        return False
    return True


def _format(path: str, text: bytes, request: Request) -> _Format:
    """The names of the columns, and how the file is written, from its first line."""
    separator = _separator(path, text[: text.find(b"\n") + 1 or len(text)].decode())
    given = [name.strip() for name in next(_rows(path, text, separator), ([], 0))[0]]
    if not given:
        raise InputError(f"{path} has no columns.")
    check_column_names(path, [name for name in given if not name])
    names = told_apart(given, "{}_{}")
    decimals = request.decimals or ("." if separator == "," else ".,")
    return _Format(path, names, given, separator, Rules(decimals, request.missing))


def _separator(path: str, header: str) -> str:
    """Tab in a .tsv; otherwise the commonest of comma, tab, semicolon and bar in the header.

    polars does not detect separators. `csv.Sniffer` fails on a file with one column, and its answer
    depends on the rows; this rule is one sentence, and depends on the header alone.
    """
    if without_compression(path).endswith(".tsv"):
        return "\t"
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=bare.count)  # the first one if there is none


def _frame(form: _Format, text: bytes) -> Any:
    """All rows as a frame of text.

    polars takes blank lines for rows, and refuses quotes that are not around whole fields. Python's
    slower reader then writes the rows anew, and names a line that has too many fields.
    """
    import polars as pl

    has_blank_lines = len(form.names) > 1 and (b"\n\n" in text or b"\n\r\n" in text)
    if not has_blank_lines and text.count(b'"') % 2 == 0:
        with contextlib.suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return _parsed(form, text + b"\n")  # else a separator at its end is nothing
    with explained(form.path, "CSV"):
        return _parsed(form, _rewritten(form, text))


def _parsed(form: _Format, text: bytes) -> Any:
    import polars as pl

    frame = pl.read_csv(
        text,
        has_header=False,
        schema={str(j): pl.String for j in range(len(form.names))},
        separator=form.separator,
        null_values=[*MISSING_WORDS, *form.rules.missing],
    )
    return frame.slice(1)  # the first row is that of the names


def _rewritten(form: _Format, text: bytes) -> bytes:
    """The same rows with quotes around whole fields only, and without blank lines."""
    rewritten = io.StringIO()
    writer = csv.writer(rewritten, delimiter=form.separator, lineterminator="\n")
    n_columns = len(form.names)
    for row, line in _rows(form.path, text, form.separator):
        if len(row) > n_columns:
            raise InputError(
                f"{form.path} has {len(row)} fields in line {line}, but {n_columns} names of "
                "columns; put quotes around fields that hold the separator."
            )
        if row or n_columns == 1:
            writer.writerow(row)
    return rewritten.getvalue().encode()


def _rows(path: str, text: bytes, separator: str) -> Iterator[tuple[list[str], int]]:
    """The fields of each row, and the number of the row's last line in the file.

    Raises
    ------
    InputError
        If quotes or line ends are out of place.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="\n")  # only "\n" ends a line
    reader = csv.reader(lines, delimiter=separator, strict=True)
    line = 0
    try:
        for row in reader:
            line = reader.line_num
            yield row, line
    except csv.Error as error:
        raise InputError(
            f"{path}: a quote or a carriage return is out of place in the row that begins in line "
            f"{line + 1} ({error}). Put quotes around the whole field, and two for one within it."
        ) from error


def _fields(
    frame: Any, form: _Format, wanted: Wanted
) -> tuple[dict[int, Numbers], dict[int, Typed]]:
    """The wanted columns: those of numbers, and the others."""
    fields = {j: text for j, text in enumerate(frame) if j not in wanted.skipped}
    may_be_numbers = [text.name for j, text in fields.items() if wanted.kinds.get(j) != TEXT]
    known = {str(j) for j, kind in wanted.kinds.items() if kind == NUMBER}
    plain = plain_numbers(frame.select(may_be_numbers), form.rules, known)
    numbers, texts = dict[int, Numbers](), dict[int, Typed]()
    for j, text in fields.items():
        kind = wanted.kinds.get(j)
        found = plain.get(text.name)
        if found is None and kind != TEXT:
            found = other_numbers(text, form.rules, is_known=kind == NUMBER)
        if found is not None:
            numbers[j] = found
            continue
        rules = form.rules._replace(date_order=wanted.date_orders.get(j))
        with as_input_error(f"{form.path}: "):
            texts[j] = typed(text.alias(form.names[j]), rules, kind)
    return numbers, texts


def _columns(
    form: _Format, n_rows: int, numbers: dict[int, Numbers], texts: dict[int, Typed]
) -> dict[int, Column]:
    """The columns. Those of numbers become one array, so that features need no further copy; they
    are taken out of `numbers`, which frees their memory."""
    import narwhals.stable.v2 as nw
    import polars as pl

    together = [j for j, own in numbers.items() if _are_floats(own.values)]
    matrix = np.empty((n_rows, len(together)), order="F")
    found: dict[int, Column] = {}
    for k, j in enumerate(together):
        matrix[:, k] = numbers.pop(j).values.cast(pl.Float64).to_numpy()  # NaN: there is no value
        found[j] = ArrayColumn(form.names[j], matrix[:, k])
    rest: dict[int, Numbers | Typed] = {**numbers, **texts}
    for j, own in rest.items():
        found[j] = FrameColumn(form.names[j], nw.from_native(own.values, series_only=True))
    return found


def _are_floats(values: Any) -> bool:
    """Whether a column has values, and float64 holds them exactly."""
    if values.null_count() == len(values):
        return False
    return bool(values.dtype.is_float() or values.abs().max() <= LARGEST_WHOLE)


def _notes(renamed: Mapping[str, str], written: list[str]) -> tuple[str, ...]:
    """What the reader found out about the file that a user may want to know."""
    notes = [
        f"several columns are named {quoted(old)}: one of them is {quoted(new)} here"
        for new, old in renamed.items()
    ]
    if written:
        which = listed(written, 3)
        notes.append(f"numbers with decimal commas, signs, or marks between thousands in {which}")
    return tuple(notes)
