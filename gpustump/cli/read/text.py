"""Read CSV and TSV files with polars, block by block, so that the text is never held as a whole.

A block is read as text. Each of its columns is then made into numbers if possible: that takes as
long as the reading, but the numbers need only a third of the text's memory. The other columns stay
text. Once the whole file is read, it is decided whether they are booleans, dates or times. A column
of which only some blocks are numbers is read again, as text, and may be numbers as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.read.dates import DateOrder, naming_column
from gpustump.cli.read.fields import (
    MISSING_WORDS,
    Numbers,
    Rules,
    Typed,
    numbers_in,
    other_numbers,
    plain_numbers,
    typed,
)
from gpustump.cli.read.frames import explained, import_polars
from gpustump.cli.read.requests import NUMBER, TEXT, Request, TextOptions, Wanted
from gpustump.cli.read.table import InputTable, UnreadColumn, check_column_names
from gpustump.cli.read.text_blocks import (
    NotUtf8Error,
    OpenQuoteError,
    TextFile,
    blocks,
    end_of_first_line,
    first_lines,
    lines_of,
    rewritten_blocks,
    rows_of,
    without_blank_lines,
    without_compression,
)
from gpustump.data.columns import LARGEST_WHOLE, ArrayColumn, Column
from gpustump.data.frames import FrameColumn
from gpustump.data.readable import counted, listed, quoted, shortened

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


class _Format(NamedTuple):
    """How the file is written.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    repeated : dict of str to str
        Names that several columns have, and what the last of them is called here.
    separator : str
    rules : Rules
    """

    names: tuple[str, ...]
    repeated: dict[str, str]
    separator: str
    rules: Rules


_BlocksOf = Callable[[_Format], Iterator[bytes]]


class _Part(NamedTuple):
    """A column in one block, or as a whole: numbers, or text with the style "text"."""

    values: Any
    style: str
    n_marked: int


_Parts = dict[int, list[_Part]]


class MalformedError(Exception):
    """polars cannot divide a block into rows, because of its quotes."""


def read_csv(path: str, request: Request) -> InputTable:
    """Read a CSV file, separated by commas, semicolons or tabs; see `reading.read_table`."""
    import_polars(path)
    text = request.text
    try:
        return _read(TextFile(path, text.encoding), request)
    except NotUtf8Error:
        if text.encoding is not None or text.fallback is None:
            raise
        return _read(TextFile(path, text.fallback), request)


def _read(file: TextFile, request: Request) -> InputTable:
    try:
        return _read_as(file, request, lambda form: blocks(file, n_columns=len(form.names)))
    except (OpenQuoteError, MalformedError):
        return _read_as(file, request, lambda form: rewritten_blocks(file, form.separator))


def _read_as(file: TextFile, request: Request, blocks_of: _BlocksOf) -> InputTable:
    """Read the file from blocks of its text; they may depend on the format."""
    form = _format(file, request.text)
    path, names = file.path, form.names
    header = InputTable(path, tuple(map(UnreadColumn, names)), 0, repeated=form.repeated)
    wanted = request.choose(header)
    positions = [j for j in range(len(names)) if j not in wanted.skipped]
    parts: _Parts = {j: [] for j in positions}
    n_rows = 0
    for frame in _frames(file, form, blocks_of):
        n_rows += len(frame)
        for j, part in _parts_of(frame, form.rules, wanted).items():
            parts[j].append(part)
    again = [j for j in positions if not _fit_together(parts[j])]
    for j in again:
        parts[j] = []
    if again:
        for frame in _frames(file, form, blocks_of):
            for j in again:
                parts[j].append(_Part(frame[:, j], "text", 0))
    for j in positions:
        if any(part.style == "text" for part in parts[j]):
            parts[j] = [_one_part(parts[j], form.rules, wanted.kinds.get(j))]
    notes, decimals = _notes(path, form, parts), _decimals_of(form, parts)
    found, orders = _columns(path, parts, n_rows, form, wanted)
    columns = tuple(found.get(j, column) for j, column in enumerate(header.columns))
    return replace(
        header, columns=columns, n_rows=n_rows, notes=notes, date_orders=orders, decimals=decimals
    )


def _notes(path: str, form: _Format, parts: _Parts) -> tuple[str, ...]:
    """What the reader found out about the file that a user may want to know."""
    notes = list[str]()
    styles = {j: {part.style for part in own} for j, own in parts.items()}
    commas = [form.names[j] for j, own in styles.items() if "commas" in own]
    written = [form.names[j] for j, own in styles.items() if _written_in(own)]
    for name, last in form.repeated.items():
        notes.append(f"several columns are named {quoted(name)}: the last is {quoted(last)}")
    if form.separator != _usual_separator(path):
        notes.append(f"separated by {SEPARATORS[form.separator]}")
    if commas:
        notes.append(f"decimal commas in {listed(commas, 3)}")
    if written:
        notes.append(f"numbers with signs, or marks between thousands, in {listed(written, 3)}")
    return tuple(notes)


def _written_in(styles: set[str]) -> str:
    """The style of a column that has numbers with signs, or marks between thousands; else ""."""
    return next((style for style in styles if style.startswith("written")), "")


def _decimals_of(form: _Format, parts: _Parts) -> str | None:
    """The decimal mark, if it was taken to be the only one, and the other is between thousands."""
    styles = (_written_in({part.style for part in own}) for own in parts.values())
    return form.rules.decimals[0] if len(form.rules.decimals) == 1 and any(styles) else None


def _parts_of(frame: Any, rules: Rules, wanted: Wanted) -> dict[int, _Part]:
    """The columns of one block that are wanted."""
    texts = {j: text for j, text in enumerate(frame.get_columns()) if j not in wanted.skipped}
    others = [text.name for j, text in texts.items() if wanted.kinds.get(j) != TEXT]
    plain = plain_numbers(frame.select(others), rules)
    parts = {}
    for j, text in texts.items():
        kind = wanted.kinds.get(j)
        found = plain.get(text.name)
        if found is None and kind != TEXT:
            found = other_numbers(text, rules, is_known=kind == NUMBER)
        parts[j] = _part(text, found, kind)
    return parts


def _one_part(parts: Sequence[_Part], rules: Rules, kind: str | None) -> _Part:
    """A whole column from blocks of text, as if there had been one block."""
    import polars as pl

    text = pl.concat([part.values.cast(pl.String) for part in parts])
    numbers = None if kind == TEXT else numbers_in(text, rules, is_known=kind == NUMBER)
    return _part(text, numbers, kind)


def _part(text: Any, found: Numbers | None, kind: str | None) -> _Part:
    """A column's numbers, if it holds any and they are not codes; otherwise its text."""
    if found is None or (found.style == "codes" and kind != NUMBER):
        return _Part(text, "text", 0)
    return _Part(*found)


def _fit_together(parts: Sequence[_Part]) -> bool:
    """Whether the blocks of a column are all text, or all numbers of one style."""
    styles = {part.style for part in parts}
    if _written_in(styles):
        return len(styles - {"nothing"}) == 1
    if "text" not in styles:
        return not {"floats", "commas"} <= styles
    return styles <= {"text", "nothing"} and not any(part.n_marked for part in parts)


def _columns(
    path: str, parts: _Parts, n_rows: int, form: _Format, wanted: Wanted
) -> tuple[dict[int, Column], dict[int, DateOrder]]:
    """Whole columns from their blocks, which are discarded one by one, and how dates begin.

    All columns of numbers become one array, so that the features need not be copied again.
    """
    import narwhals.stable.v2 as nw

    together = [j for j, own in parts.items() if _are_floats(own)]
    matrix = np.empty((n_rows, len(together)), order="F")
    found: dict[int, Column] = {}
    orders: dict[int, DateOrder] = {}
    for k, j in enumerate(together):
        _fill(matrix[:, k], parts.pop(j))
        found[j] = ArrayColumn(form.names[j], matrix[:, k])
    for j in list(parts):
        rules = form.rules._replace(date_order=wanted.date_orders.get(j))
        with naming_column(path, form.names[j]):
            series, order = _joined(parts.pop(j), rules, wanted.kinds.get(j))
        found[j] = FrameColumn(form.names[j], nw.from_native(series, series_only=True))
        if order is not None:
            orders[j] = order
    return found, orders


def _are_floats(parts: Sequence[_Part]) -> bool:
    """Whether a column is of numbers that float64 holds exactly."""
    import polars as pl

    styles = {part.style for part in parts}
    if "text" in styles or styles <= {"nothing"}:
        return False
    whole = [part.values for part in parts if part.values.dtype != pl.Float64]
    return all((values.abs().max() or 0) <= LARGEST_WHOLE for values in whole)


def _fill(column: np.ndarray, parts: list[_Part]) -> None:
    import polars as pl

    start = 0
    for part in parts:
        values = part.values.cast(pl.Float64).to_numpy()  # NaN where there is no value
        column[start : start + len(values)] = values
        start += len(values)


def _joined(parts: list[_Part], rules: Rules, kind: str | None) -> Typed:
    """A column that is not all floats: text, wide integers, or no value at all."""
    import polars as pl

    if not parts:
        return Typed(pl.Series([], dtype=pl.Float64))
    if parts[0].style == "text":
        return typed(parts[0].values, rules, kind)
    types = {part.values.dtype for part in parts if part.style != "nothing"} or {pl.Float64}
    common = next((t for t in (pl.Float64, pl.Int128) if t in types), pl.Int64)
    return Typed(pl.concat([part.values.cast(common) for part in parts]))


def _frames(file: TextFile, form: _Format, blocks_of: _BlocksOf) -> Iterator[Any]:
    """The blocks as frames of text."""
    import polars as pl

    names = [str(j) for j in range(len(form.names))]
    header = form.separator.join(names).encode() + b"\n"
    for number, text in enumerate(blocks_of(form)):
        start = _end_of_header(text) if number == 0 else 0
        rows = b"".join([header, memoryview(text)[start:]])
        if len(names) > 1:
            rows = without_blank_lines(rows)
        if len(rows) == len(header):
            continue
        with explained(file.path, "CSV"):
            try:
                frame = pl.read_csv(
                    rows,
                    separator=form.separator,
                    infer_schema=False,
                    null_values=[*MISSING_WORDS, *form.rules.missing],
                )
            except pl.exceptions.ComputeError as error:
                if "found more fields" in str(error):
                    raise InputError(_about_long_line(file.path, form, blocks_of)) from error
                raise MalformedError from error
        yield frame


def _format(file: TextFile, options: TextOptions) -> _Format:
    """The names of the columns, and how the file is written."""
    line, rest = first_lines(file)
    separator = _separator(file.path, line)
    names = [name.strip() for name in _fields(file.path, line, separator)]
    if not names:
        raise InputError(f"{file.path} has no columns.")
    if len(names) == 1:
        _refuse_title(file.path, names[0], rest)
    check_column_names(file.path, [name for name in names if not name])
    names, repeated = _told_apart(names)
    decimals = options.decimals or ("." if separator == "," else ".,")
    return _Format(tuple(names), repeated, separator, Rules(decimals, options.missing))


def _told_apart(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Names that differ: x, x_2, ... for those that were x. And the last one of each such name."""
    found, repeated, taken = list[str](), dict[str, str](), set[str]()
    given = {*names}
    for name in names:
        number, own = 1, name
        while own in taken or (own != name and own in given):
            number += 1
            own = f"{name}_{number}"
        if own != name:
            repeated[name] = own
        found.append(own)
        taken.add(own)
    return found, repeated


def _end_of_header(text: bytes) -> int:
    """Where the first line ends that is not blank."""
    start = re.compile(rb"[^\r\n]|$").search(text)
    return end_of_first_line(text, start.start() if start else 0)


def _fields(path: str, line: str, separator: str) -> list[str]:
    """The fields of one line."""
    return next(rows_of(path, [line], separator), ([], 0))[0]


def _usual_separator(path: str) -> str:
    return "\t" if without_compression(path).endswith(".tsv") else ","


def _separator(path: str, header: str) -> str:
    """Tab in a .tsv; otherwise the commonest of comma, tab, semicolon and bar in the header.

    polars does not detect separators. `csv.Sniffer` fails on a file with one column, and its answer
    depends on the rows; this rule is one sentence, and depends on the header alone.
    """
    if _usual_separator(path) == "\t":
        return "\t"
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=bare.count)  # the first one if there is none


def _refuse_title(path: str, name: str, rest: str) -> None:
    """Refuse a first line with one name if the next line has several fields.

    Raises
    ------
    InputError
    """
    line = next((line for line in rest.split("\n") if line.strip()), "")
    fields = _fields(path, line, _separator(path, line))
    if len(fields) > 1:
        raise InputError(
            f"{path}: the first line, {quoted(shortened(name, 40))}, names one column, but the "
            f"next line has {counted(len(fields), 'field')}. If there is a title or a comment "
            "above the names of the columns, remove it."
        )


def _about_long_line(path: str, form: _Format, blocks_of: _BlocksOf) -> str:
    """A message about the first line that has more fields than the header."""
    n_columns = len(form.names)
    lines = (line for block in blocks_of(form) for line in lines_of(block))
    rows = rows_of(path, lines, form.separator)
    row, number = next(((row, n) for row, n in rows if len(row) > n_columns), ([], 0))
    if not row:
        return f"{path} has lines with more fields than names."
    if len(row) == n_columns + 1 and not row[-1].strip():
        return (
            f"{path}: line {number} ends with a separator, but the line of names does not; remove "
            "it from the rows, or add it to the line of names."
        )
    return (
        f"{path} has {len(row)} fields in line {number}, but {n_columns} names of columns; put "
        "quotes around fields that hold the separator."
    )
