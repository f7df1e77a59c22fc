"""How the columns of a training table become features, and which of them are left out."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.options import CATEGORY_LIMIT
from gpustump.cli.read.fields import MARKERS
from gpustump.cli.read.table import InputTable
from gpustump.data.columns import NUMERIC, USABLE, AsText, Column, is_number
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.data.readable import listed, quoted
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn

_MARKED = re.compile(r"\W*\d[\d.,'\s]*\W*")
"""A number with signs, or with marks between its digits."""

LEAST_NUMBERS, MOST_WORDS = 3, 3
"""A column of text is refused if 1 to `MOST_WORDS` of its distinct values are not numbers, while at
least `LEAST_NUMBERS`, and twice as many as the words, are: the words may mean missing values."""


class Forced(NamedTuple):
    """What the user decides: the positions of columns that are text, and of those that are numbers,
    and whether a column of text becomes one categorical feature."""

    text: frozenset[int]
    numbers: frozenset[int]
    as_sets: bool

    @property
    def kind_of_text(self) -> str:
        """What a column of text becomes."""
        return NUMBERED if self.as_sets else "category"

    @property
    def most_values(self) -> int:
        """The most distinct values that a column of text may have."""
        return MOST_CATEGORIES if self.as_sets else CATEGORY_LIMIT


class _Refused(NamedTuple):
    """A column that cannot be a feature: its name, the reason, and what to do unless to drop it."""

    name: str
    reason: str
    advice: str


def learn_encoding(table: InputTable, positions: Sequence[int], forced: Forced) -> Encoding:
    """Decide how these columns of a training table become features.

    Raises
    ------
    InputError
        If columns cannot be features; the message names them.
    """
    columns, refused = [], []
    for position in positions:
        column = table.columns[position]
        if position in forced.text and column.kind in NUMERIC:
            column = AsText(column)
        kind = {"text": forced.kind_of_text, "empty": "number"}.get(column.kind, column.kind)
        values = tuple(column.distinct()) if column.kind == "text" else ()
        problem = _problem(column, values, position, forced)
        if problem is None:
            columns.append(InputColumn(column.name, position, kind, values))
        else:
            refused.append(problem)
    if refused:
        raise InputError(_refusal(table.source, refused))
    return Encoding(tuple(columns), len(table.columns), table.named)


def _problem(
    column: Column, values: Sequence[str], position: int, forced: Forced
) -> _Refused | None:
    """Why a column cannot be a feature; None if it can."""
    refused = functools.partial(_Refused, column.name)
    if column.kind not in USABLE:
        return refused(f"its type is {column.kind}", "Turn it into numbers or text")
    is_forced = position in forced.text
    if is_forced and column.kind not in ("text", "empty"):
        return refused(f"--categorical names it, but it is a {column.kind}", "Turn it into text")
    words = [own for own in values if not is_number(own) and own.lower() not in MARKERS]
    options = " ".join(f"--missing {shlex.quote(word)}" for word in words[:MOST_WORDS])
    say_what_words_are = f"Give {options} for missing values, --categorical for text"
    if position in forced.numbers and column.kind == "text":
        reason = f"--numeric names it, but it holds {listed(words or values, MOST_WORDS)}"
        return refused(reason, say_what_words_are if words else "Turn it into numbers")
    n_numbers = sum(map(is_number, values))
    are_numbers = n_numbers >= max(LEAST_NUMBERS, 2 * len(words))
    if 0 < len(words) <= MOST_WORDS and are_numbers and not is_forced:
        return refused(f"all its values are numbers except {listed(words)}", say_what_words_are)
    if len(values) <= forced.most_values:
        return None
    limits = f"{len(values)} distinct values, more than {forced.most_values}"
    advice = "Turn it into numbers"
    if not is_forced and not words:
        advice = "Read it as numbers with --numeric"
    elif not is_forced and all(map(_MARKED.fullmatch, words)):
        advice = "Say which mark is the decimal one with --decimal, write all values alike"
    return refused(f"it is text with {limits}, such as {listed(words[:2] or values[:2])}", advice)


def _refusal(source: str, refused: Sequence[_Refused]) -> str:
    """A message about the columns that cannot be used, those with one advice together."""
    told = []
    for advice in dict.fromkeys(own.advice for own in refused):
        first, *others = (own for own in refused if own.advice == advice)
        also = f" The same is true of {listed(own.name for own in others)}." if others else ""
        names = shlex.quote(",".join(own.name for own in (first, *others)))
        told.append(
            f"column {quoted(first.name)} cannot be used: {first.reason}.{also} {advice}, or leave "
            f"it out with --drop {names}."
        )
    return f"{source}: " + " And ".join(told)


_INDEX_NAMES = (
    "index idx id row rowid row_id rownames rowname row_names row.names row_number rownumber nr "
    "nr. no no. # level_0 __index_level_0__"
)
INDEX_NAMES = frozenset([*_INDEX_NAMES.split(), "", "unnamed: 0"])
"""Names of a column that may be an index, in lower case; '' is a column without a name."""


def find_index(table: InputTable, positions: Sequence[int]) -> tuple[frozenset[int], list[str]]:
    """Which of some columns are left out, by their positions, and what users are told about them.

    They are one that numbers the rows, which is first or stands where pandas keeps an index in
    Parquet files, and those that have neither a name nor values. Users are told of another one that
    may be an index, too.
    """
    left_out, told = set[int](), list[str]()
    for position in positions if table.named else ():
        column = table.columns[position]
        small, shown = column.name.strip().lower(), f"column {quoted(column.name)}"
        is_place = position == 0 or small == "__index_level_0__"
        if not small and column.kind == "empty":
            left_out.add(position)
            told.append(f"{shown} is left out: it has neither a name nor values")
        elif small in INDEX_NAMES and is_place and column.kind == "number":
            numbers = column.numbers()
            first = _first_row_number(numbers)
            if first is not None:
                left_out.add(position)
                told.append(f"{shown} is left out: it numbers the rows from {first}")
            elif len(np.unique(numbers)) == table.n_rows:
                told.append(
                    f"{shown} is used as a feature, but looks like an index: its values are all "
                    f"different; --drop {quoted(column.name)} leaves it out"
                )
    return frozenset(left_out), told


def _first_row_number(numbers: np.ndarray) -> int | None:
    """0 or 1 if these are the numbers of rows counted from there."""
    for first in (0, 1):
        if len(numbers) > 1 and np.array_equal(numbers, np.arange(first, len(numbers) + first)):
            return first
    return None
