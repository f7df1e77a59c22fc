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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.binary import explained, import_polars
from gpustump.cli.read.fields import (
    MISSING_WORDS,
    DateOrder,
    Numbers,
    Rules,
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
from gpustump.data.readable import counted, listed, quoted, shortened

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}

_LONGEST_FIELD = 2**31 - 1
_PART = 2**24


class _Format(NamedTuple):
    """How the file is written.

    Attributes
    ----------
    path : str
    names : list of str
        Of the columns.
    repeated : dict of str to str
        Names that several columns have, and what the last of them is called here.
    separator : str
    rules : Rules
    """

    path: str
    names: list[str]
    repeated: dict[str, str]
    separator: str
    rules: Rules


def read_csv(path: str, request: Request) -> InputTable:
    """Read a CSV file, separated by commas, semicolons, bars or tabs; see `files.read_table`."""
    import_polars(path)
    text = text_of(path, request.encoding, request.fallback).strip(b"\r\n")
    end = _end_of_first_line(text)
    form = _format(path, text[:end].decode(), text[end : end + 2**16], request)
    header = InputTable(path, tuple(map(UnreadColumn, form.names)), 0, repeated=form.repeated)
    wanted = request.choose(header)
    frame = _frame(form, text)
    short_rows = _short_rows(form, text, frame)
    del text
    numbers, texts = _fields(frame, form, wanted)
    notes, decimals = _notes(form, numbers), _decimals_of(form, numbers)
    has_mark = request.decimals is not None
    doubts = {form.names[j]: own.doubt for j, own in numbers.items() if own.doubt and not has_mark}
    found, orders = _columns(form, len(frame), numbers, texts, wanted)
    return replace(
        header,
        columns=tuple(found.get(j, column) for j, column in enumerate(header.columns)),
        n_rows=len(frame),
        notes=notes,
        date_orders=orders,
        decimals=decimals,
        doubtful_commas=doubts,
        short_rows=short_rows,
    )


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
    found: list[Any] = []
    orders: dict[int, DateOrder] = {}
    for place, series in enumerate(frame):
        is_text = series.dtype == pl.String and wanted.kinds.get(place) != TEXT
        if not is_text or place in wanted.skipped:
            continue
        with as_input_error(f"{path}: "):
            times = times_in(series, wanted.date_orders.get(place))
        if times is not None:
            found.append(times.values)
            if times.date_order is not None:
                orders[place] = times.date_order
    frame = frame.with_columns(found)
    columns = FrameColumns(frame, frame.columns)
    return InputTable(path, columns, len(frame), date_orders=orders)


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
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PART):
            decoder.decode(content[start : start + _PART])
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _format(path: str, line: str, rest: bytes, request: Request) -> _Format:
    """The names of the columns, and how the file is written, from its first lines."""
    separator = _separator(path, line)
    given = [name.strip() for name in _row(path, line, separator)]
    if not given:
        raise InputError(f"{path} has no columns.")
    if len(given) == 1:
        _refuse_title(path, given[0], rest.decode(errors="replace"))
    check_column_names(path, [name for name in given if not name])
    names = told_apart(given, "{}_{}")
    repeated = {old: new for old, new in zip(given, names, strict=True) if old != new}
    decimals = request.decimals or ("." if separator == "," else ".,")
    return _Format(path, names, repeated, separator, Rules(decimals, request.missing))


def _separator(path: str, header: str) -> str:
    """Tab in a .tsv; otherwise the commonest of comma, tab, semicolon and bar in the header.

    polars does not detect separators. `csv.Sniffer` fails on a file with one column, and its answer
    depends on the rows; this rule is one sentence, and depends on the header alone.
    """
    if _usual_separator(path) == "\t":
        return "\t"
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=bare.count)  # the first one if there is none


def _usual_separator(path: str) -> str:
    return "\t" if without_compression(path).endswith(".tsv") else ","


def _refuse_title(path: str, name: str, rest: str) -> None:
    """Refuse a first line with one name if the next line has several fields.

    Raises
    ------
    InputError
    """
    line = next((line for line in rest.split("\n") if line.strip()), "")
    fields = _row(path, line, _separator(path, line))
    if len(fields) > 1:
        raise InputError(
            f"{path}: the first line, {quoted(shortened(name, 40))}, names one column, but the "
            f"next line has {counted(len(fields), 'field')}. If there is a title or a comment "
            "above the names of the columns, remove it."
        )


def _end_of_first_line(text: bytes) -> int:
    """Where the first line ends that is not in quotes; if a quote is never closed, none counts."""
    first = text.find(b"\n") + 1 or len(text)
    if not re.search(rb'(?:^|[,;\t|])"', text[:first]):  # quotes within fields are parts of them
        return first
    at, quotes = -1, 0
    while True:
        start, at = at + 1, text.find(b"\n", at + 1)
        if at < 0:
            return first
        quotes += text.count(b'"', start, at)
        if quotes % 2 == 0:
            return at + 1


def _frame(form: _Format, given: bytes) -> Any:
    """All rows as a frame of text."""
    import polars as pl

    text = given if len(form.names) == 1 else _without_blank_lines(given)
    text += b"\n"  # else polars takes a separator at its end for nothing
    for is_rewritten in (False, True):  # polars refuses quotes that are not around whole fields
        if is_rewritten or text.count(b'"') % 2:
            text = _rewritten(form, given)
        with explained(form.path, "CSV"):
            try:
                frame = pl.read_csv(
                    text,
                    has_header=False,
                    schema={str(j): pl.String for j in range(len(form.names))},
                    separator=form.separator,
                    null_values=[*MISSING_WORDS, *form.rules.missing],
                )
                return frame.slice(1)  # the first row is that of the names
            except (pl.exceptions.ComputeError, pl.exceptions.SchemaError) as error:
                if "more fields" in str(error) or "n_extra" in str(error):
                    raise InputError(_about_long_line(form, given)) from error
                if is_rewritten:
                    raise
    raise AssertionError("the second attempt either returns or raises")


def _without_blank_lines(text: bytes) -> bytes:
    """The text without lines that hold nothing; those in quotes stay."""
    if b"\n\n" not in text and b"\n\r\n" not in text:
        return text
    if b'"' not in text:
        return re.sub(rb"\n(?:\r?\n)+", b"\n", text)
    return re.sub(
        rb'"[^"]*"|\n(?:\r?\n)+', lambda found: found[0] if found[0][:1] == b'"' else b"\n", text
    )


def _rewritten(form: _Format, rows: bytes) -> bytes:
    """The same rows with quotes around whole fields only, by Python's slower reader."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=form.separator, lineterminator="\n")
    found = _rows(form.path, _lines(rows), form.separator)
    writer.writerows(row for row, _ in found if row or len(form.names) == 1)
    return text.getvalue().encode()


def _lines(rows: bytes) -> Iterator[str]:
    return iter(io.StringIO(rows.decode(), newline="\n"))  # only "\n" ends a line


def _rows(path: str, lines: Iterable[str], separator: str) -> Iterator[tuple[list[str], int]]:
    """The fields of each row, and the number of the row's last line in the file.

    Raises
    ------
    InputError
        If quotes or line ends are out of place.
    """
    csv.field_size_limit(_LONGEST_FIELD)
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


def _row(path: str, line: str, separator: str) -> list[str]:
    """The fields of one line; without quotes that make sense, as they stand."""
    try:
        return next(_rows(path, [line], separator), ([], 0))[0]
    except InputError:
        return line.strip("\r\n").split(separator)


def _about_long_line(form: _Format, rows: bytes) -> str:
    """A message about the first line that has more fields than the header."""
    n_columns, path = len(form.names), form.path
    found = _rows(path, _lines(rows), form.separator)
    row, line = next(((row, line) for row, line in found if len(row) > n_columns), ([], 0))
    if not row:
        return f"{path} has lines with more fields than names."
    if len(row) == n_columns + 1 and not row[-1].strip():
        return (
            f"{path}: line {line} ends with a separator, but the line of names does not; remove "
            "it from the rows, or add it to the line of names."
        )
    return (
        f"{path} has {len(row)} fields in line {line}, but {n_columns} names of columns; put "
        "quotes around fields that hold the separator."
    )


def _short_rows(form: _Format, text: bytes, frame: Any) -> tuple[int, int]:
    """How many rows have fewer fields than there are names, and the line of the first one.

    Their last field is missing, so most files need not be read again.
    """
    n_columns = len(form.names)
    if n_columns == 1 or not frame.to_series(-1).null_count():
        return 0, 0
    bare = re.sub(rb'"[^"]*"', b"", text) if b'"' in text else text
    if bare.count(form.separator.encode()) >= (n_columns - 1) * (len(frame) + 1):
        return 0, 0
    lines = list[int]()
    with contextlib.suppress(InputError):  # polars reads some text that the stricter reader refuses
        for row, line in _rows(form.path, _lines(text), form.separator):
            lines += [line] if 0 < len(row) < n_columns else []
    return len(lines), min(lines, default=0)


def _fields(frame: Any, form: _Format, wanted: Wanted) -> tuple[dict[int, Numbers], dict[int, Any]]:
    """The wanted columns that are numbers, and the text of the others."""
    texts = {j: text for j, text in enumerate(frame) if j not in wanted.skipped}
    others = [text.name for j, text in texts.items() if wanted.kinds.get(j) != TEXT]
    plain = plain_numbers(frame.select(others), form.rules)
    numbers = {}
    for j, text in texts.items():
        kind = wanted.kinds.get(j)
        found = plain.get(text.name)
        if found is None and kind != TEXT:
            found = other_numbers(text, form.rules, is_known=kind == NUMBER)
        if found is not None and (found.style != "codes" or kind == NUMBER):
            numbers[j] = found
    return numbers, {j: text for j, text in texts.items() if j not in numbers}


def _columns(
    form: _Format,
    n_rows: int,
    numbers: dict[int, Numbers],
    texts: Mapping[int, Any],
    wanted: Wanted,
) -> tuple[dict[int, Column], dict[int, DateOrder]]:
    """The columns, and how dates begin.

    All columns of numbers become one array, so that the features need not be copied again.
    """
    import narwhals.stable.v2 as nw
    import polars as pl

    together = [j for j, own in numbers.items() if _are_floats(own)]
    matrix = np.empty((n_rows, len(together)), order="F")
    found: dict[int, Column] = {}
    orders: dict[int, DateOrder] = {}
    for k, j in enumerate(together):
        matrix[:, k] = numbers.pop(j).values.cast(pl.Float64).to_numpy()  # NaN: there is no value
        found[j] = ArrayColumn(form.names[j], matrix[:, k])
    rest = {j: own.values for j, own in numbers.items()}
    for j, text in texts.items():
        rules = form.rules._replace(date_order=wanted.date_orders.get(j))
        with as_input_error(f"{form.path}: "):
            rest[j], order = typed(text.alias(form.names[j]), rules, wanted.kinds.get(j))
        if order is not None:
            orders[j] = order
    for j, series in rest.items():
        found[j] = FrameColumn(form.names[j], nw.from_native(series, series_only=True))
    return found, orders


def _are_floats(numbers: Numbers) -> bool:
    """Whether a column is of numbers, and float64 holds them exactly."""
    if numbers.style == "nothing":
        return False
    values = numbers.values
    return values.dtype.is_float() or (values.abs().max() or 0) <= LARGEST_WHOLE


def _notes(form: _Format, numbers: Mapping[int, Numbers]) -> tuple[str, ...]:
    """What the reader found out about the file that a user may want to know."""
    notes = list[str]()
    commas = [form.names[j] for j, own in numbers.items() if own.style == "commas"]
    written = [form.names[j] for j, own in numbers.items() if own.style == "written"]
    for name, last in form.repeated.items():
        notes.append(f"several columns are named {quoted(name)}: the last is {quoted(last)}")
    if form.separator != _usual_separator(form.path):
        notes.append(f"separated by {SEPARATORS[form.separator]}")
    if commas:
        notes.append(f"decimal commas in {listed(commas, 3)}")
    if written:
        notes.append(f"numbers with signs, or marks between thousands, in {listed(written, 3)}")
    return tuple(notes)


def _decimals_of(form: _Format, numbers: Mapping[int, Numbers]) -> str | None:
    """The decimal mark, if it was taken to be the only one, and the other is between thousands."""
    has_written = any(own.style == "written" for own in numbers.values())
    return form.rules.decimals[0] if len(form.rules.decimals) == 1 and has_written else None
