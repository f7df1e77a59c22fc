"""The text of a file as UTF-8, in blocks of whole lines, whatever its compression and encoding.

The text of a large file is never in memory as a whole. A line break in quotes does not end a block;
outside of quotes, the number of quotes before it is even.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.data.readable import quoted

BLOCK_BYTES = 2**24
"""About this much text is read at a time."""

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
"""Endings of compressed files, and the names of the formats."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_FIELD = 2**31 - 1
_MOST_LINE_BREAKS = 1_000
"""The number of line breaks that are tried as the end of a block before more text is read."""


class NotUtf8Error(InputError):
    """The file is not UTF-8 text."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is not UTF-8 text; save it as UTF-8, or name its encoding, such as "
            "`train --encoding latin-1`."
        )


class OpenQuoteError(Exception):
    """The number of quotes in the file is odd."""


class TextFile(NamedTuple):
    """A file of text.

    Attributes
    ----------
    path : str
    encoding : str or None
        None for UTF-8, or UTF-16 if the file begins as such files do.
    """

    path: str
    encoding: str | None = None


def without_compression(path: str) -> str:
    """A file's name in lower case, without the ending of its compression."""
    name = path.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return name


def blocks(file: TextFile, *, n_columns: int = 1, has_quotes: bool = True) -> Iterator[bytes]:
    """The file's text in blocks of whole lines, without blank lines at its end.

    The blocks of a file with thousands of columns are larger, as each column of a block takes some
    time. `has_quotes` says that lines may have line breaks in quotes.

    Raises
    ------
    InputError
        If the file is not intact, or not text in that encoding.
    OpenQuoteError
        If a quote is never closed; earlier blocks were then cut at the wrong places.
    """
    size = BLOCK_BYTES * max(1, n_columns // 1_000)
    held, wanted = b"", size
    for piece in _utf8(file, size):
        held += piece
        if len(held) < wanted:
            continue
        end = _end_of_lines(held) if has_quotes else held.rfind(b"\n") + 1
        if end:
            yield held[:end]
            held, wanted = held[end:], size
        else:
            wanted = 2 * len(held)
    held = held.rstrip(b"\r\n")
    if has_quotes and held.count(b'"') % 2:
        raise OpenQuoteError
    if held:
        yield held + b"\n"


def rewritten_blocks(file: TextFile, separator: str) -> Iterator[bytes]:
    """The same rows as in `blocks`, with correct quotes.

    They come from Python's csv reader, which is slow, but takes a quote in the middle of a field as
    a character.

    Raises
    ------
    InputError
        If a quote at the beginning of a field is never closed.
    """
    end = "\0end of file"
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    before = 0
    for row, number in rows_of(file.path, _lines(file, end), separator):
        if row == [end]:
            break
        if row and row[-1].endswith(end):
            raise InputError(
                f"{file.path}: a quote that begins a field in line {before + 1} is never closed; "
                "remove it, or close it."
            )
        before = number
        writer.writerow(row)
        if text.tell() > BLOCK_BYTES:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    if text.tell():
        yield text.getvalue().encode()


def rows_of(path: str, lines: Iterable[str], separator: str) -> Iterator[tuple[list[str], int]]:
    """The fields of each row, as Python's reader finds them, and the number of its last line.

    Raises
    ------
    InputError
        If a field that is not in quotes holds a carriage return.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(lines, delimiter=separator)
    try:
        for row in reader:
            yield row, reader.line_num
    except csv.Error as error:  # the only possible reason here
        raise InputError(
            f"{path}: a field in line {reader.line_num} holds a carriage return; remove it, or put "
            "quotes around the field."
        ) from error


def without_blank_lines(block: bytes) -> bytes:
    """The block without lines that hold nothing; those in quotes stay."""
    if b"\n\n" not in block and b"\n\r\n" not in block:
        return block
    if b'"' not in block:
        return re.sub(rb"\n(?:\r?\n)+", b"\n", block)
    return re.sub(
        rb'"[^"]*"|\n(?:\r?\n)+', lambda found: found[0] if found[0][:1] == b'"' else b"\n", block
    )


def first_lines(file: TextFile) -> tuple[str, str]:
    """The first line that is not blank, and some of the text after it.

    Line breaks in quotes do not end the line.
    """
    held, end = b"", 0
    for piece in _utf8(file, 2**16):
        held = (held + piece).lstrip(b"\r\n")
        end = end_of_first_line(held)
        if end < len(held):
            break
    if end == len(held) and held.count(b'"') % 2:  # a quote is never closed, so quotes do not count
        end = held.find(b"\n") + 1 or len(held)
    return held[:end].decode(errors="replace"), held[end:].decode(errors="replace")


def end_of_first_line(block: bytes, start: int = 0) -> int:
    """Where the first line that is not in quotes ends, from a place on."""
    at, quotes = start - 1, 0
    while True:
        start, at = at + 1, block.find(b"\n", at + 1)
        if at < 0:
            return len(block)
        quotes += block.count(b'"', start, at)
        if quotes % 2 == 0:
            return at + 1


def _lines(file: TextFile, end: str) -> Iterator[str]:
    """The decoded lines, then `end`."""
    held = b""
    for piece in _utf8(file, BLOCK_BYTES):
        held += piece
        whole = held.rfind(b"\n") + 1
        yield from lines_of(held[:whole])
        held = held[whole:]
    if held.strip(b"\r\n"):
        yield held.decode().rstrip("\r\n") + "\n"
    yield end


def lines_of(block: bytes) -> Iterator[str]:
    """The lines of a block; only "\\n" ends a line."""
    return iter(io.StringIO(block.decode(), newline="\n"))


def _end_of_lines(text: bytes) -> int:
    """The end of the last line that is not in quotes; 0 if none is found."""
    at = text.rfind(b"\n")
    quotes = text.count(b'"', 0, at + 1)
    for _ in range(_MOST_LINE_BREAKS):
        if at < 0:
            return 0
        if quotes % 2 == 0:
            return at + 1
        before = text.rfind(b"\n", 0, at)
        quotes -= text.count(b'"', before + 1, at)
        at = before
    return 0


def _utf8(file: TextFile, size: int) -> Iterator[bytes]:
    """Pieces of the file's text as UTF-8 with "\\n" at the ends of lines, cut anywhere."""
    pieces = _bytes(file.path, size)
    head = next(pieces, b"")
    encoding = file.encoding or _encoding_by_mark(head)
    decoder = _decoder(file.path, encoding or "utf-8")
    only_returns = False
    for number, piece in enumerate(_with_end(head, pieces)):
        if encoding is None and piece and b"\0" in piece:
            raise InputError(f"{file.path} is not text: it holds zero bytes, as binary files do.")
        try:
            text = decoder.decode(piece or b"", final=piece is None)
            encoded = (piece or b"") if encoding is None else text.encode()
        except UnicodeError as error:
            if encoding is None:
                raise NotUtf8Error(file.path) from error
            raise InputError(f"{file.path} is not {encoding} text: {error}.") from error
        if number == 0:
            encoded = encoded.removeprefix(_BYTE_ORDER_MARK)
            only_returns = b"\r" in encoded and b"\n" not in encoded
        yield encoded.replace(b"\r", b"\n") if only_returns else encoded


def _decoder(path: str, encoding: str) -> codecs.IncrementalDecoder:
    """What turns bytes into text, piece by piece; a model file may name any encoding."""
    try:
        "a".encode(encoding)  # some codecs, such as zip, are of bytes alone
        return codecs.getincrementaldecoder(encoding)()
    except (LookupError, UnicodeError, ValueError) as error:
        raise InputError(
            f"{path} is not UTF-8 text, and this Python knows no encoding {quoted(encoding)}; save "
            "it as UTF-8."
        ) from error


def _with_end(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    """All pieces, and None for the end."""
    yield head
    yield from pieces
    yield None


def _encoding_by_mark(head: bytes) -> str | None:
    return "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else None


def _bytes(path: str, size: int) -> Iterator[bytes]:
    """Pieces of the file's content, unpacked."""
    name = next((name for end, name in COMPRESSIONS.items() if path.lower().endswith(end)), None)
    broken: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError)
    try:
        with _opened(path, name) as file:
            while piece := file.read(size):
                yield piece
    except broken as error:
        raise InputError(f"{path} is not an intact {name} file: {error}.") from error
    except OSError as error:
        if name is None or error.errno is not None:
            raise
        raise InputError(f"{path} is not an intact {name} file: {error}.") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{path} is not an intact {name} file: {error}.") from error


def _opened(path: str, compression: str | None) -> Any:
    if compression is None:
        return open(path, "rb")
    if compression != "Zstandard":
        return {"gzip": gzip, "bzip2": bz2, "xz": lzma}[compression].open(path)
    try:
        from compression import zstd
    except ImportError:  # before Python 3.14
        try:
            from backports import zstd
        except ImportError as error:
            raise MissingLibraryError(f"reading {path}", "backports.zstd") from error
    return zstd.open(path)
