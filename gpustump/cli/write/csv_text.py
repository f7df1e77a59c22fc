"""Arrays as the lines of a CSV file: the same bytes as the standard library's, but faster.

A number is written with the fewest digits that read back as the same float64. Finding those digits
is most of the work. Contributions and labels have few distinct values, so each column remembers
the texts of its values as long as they repeat. Floats that do not repeat go to `shortest_floats`.
"""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpustump.cli.write.shortest_floats import shortest_texts

MOST_REMEMBERED = 2**16
"""A column with more distinct values forgets their texts."""


def header_line(names: Sequence[str]) -> bytes:
    """The line of the columns' names."""
    return _written(names)


class CsvColumns:
    """Turns block after block of the same columns into lines.

    Parameters
    ----------
    n_columns : int
    """

    def __init__(self, n_columns: int) -> None:
        self._texts = [_ColumnTexts(alone=n_columns == 1) for _ in range(n_columns)]

    def lines(self, columns: Sequence[np.ndarray]) -> bytes:
        """The lines of a block of rows: columns (n_rows,) of float64, integers, bool or text."""
        texts = [of.texts(column) for of, column in zip(self._texts, columns, strict=True)]
        return b"".join([row + b"\n" for row in map(b",".join, zip(*texts, strict=True))])


class _ColumnTexts:
    """The texts of one column's values; `alone` if there is no other column."""

    def __init__(self, *, alone: bool) -> None:
        self._field = _field_alone if alone else _field
        self._floats, self._others = _Remembered(_float_of_bits), _Remembered(self._field)
        self._repeats = True

    def texts(self, column: np.ndarray) -> list[bytes]:
        is_float = column.dtype == np.float64
        if not self._repeats:
            return shortest_texts(column) if is_float else list(map(self._field, column.tolist()))
        known = self._floats if is_float else self._others
        n_before = len(known)
        # floats by their bits: 0.0 equals -0.0, but has another text
        keys = column.view(np.int64) if is_float else column
        texts = list(map(known.__getitem__, keys.tolist()))
        n_new = len(known) - n_before
        if n_new > len(texts) // 2 or len(known) > MOST_REMEMBERED:
            self._repeats = False
            known.clear()
        return texts


class _Remembered(dict[Any, bytes]):
    """Texts by key; a text that is not known yet is made when it is asked for."""

    def __init__(self, make: Callable[[Any], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> bytes:
        text = self[key] = self._make(key)
        return text


def _float_of_bits(bits: int) -> bytes:
    return repr(struct.unpack("=d", struct.pack("=q", bits))[0]).encode()


def _field(value: object) -> bytes:
    """One of several fields of a line, in quotes if it must be."""
    return _written([value, ""])[: -len(",\n")]


def _field_alone(value: object) -> bytes:
    """The only field of a line, which is in quotes if it is empty."""
    return _written([value])[: -len("\n")]


def _written(row: Sequence[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(row)  # so that it quotes a "\r" in a field
    return text.getvalue().removesuffix("\r\n").encode() + b"\n"
