"""Recognise a column that is not a feature but the index that a data frame was saved with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.cli.read.table import InputTable, UnreadColumn
from gpustump.data.readable import quoted

_INDEX_NAMES = (
    "index idx id row rowid row_id rownames rowname row_names row.names row_number rownumber nr "
    "nr. no no. # level_0 __index_level_0__"
)
INDEX_NAMES = frozenset([*_INDEX_NAMES.split(), "", "unnamed: 0"])
"""Names of a column that may be an index, in lower case; '' is a column without a name."""


class Finding(NamedTuple):
    """What was found.

    Attributes
    ----------
    left_out : frozenset of int
        The positions of columns that are left out: one that numbers the rows, and those that have
        neither a name nor values.
    warnings : tuple of str
        What users are told about these columns, or about another one that may be an index.
    """

    left_out: frozenset[int]
    warnings: tuple[str, ...]


def find_index(table: InputTable) -> Finding:
    """Look at the first column, and where pandas keeps an index in Parquet files."""
    nameless = frozenset(
        position
        for position, column in enumerate(table.columns)
        if table.named and not column.name.strip() and column.kind == "empty"
    )
    index = _index(table)
    warnings = [
        f"column {quoted(table.names[j])} is left out: it has neither a name nor values"
        for j in sorted(nameless)
    ]
    return Finding(nameless | index.left_out, (*warnings, *index.warnings))


def _index(table: InputTable) -> Finding:
    if not table.named:
        return Finding(frozenset(), ())
    for position, column in enumerate(table.columns):
        small = column.name.strip().lower()
        is_place = position == 0 or small == "__index_level_0__"
        if small not in INDEX_NAMES or not is_place or isinstance(column, UnreadColumn):
            continue
        shown = f"column {quoted(column.name)}"
        first = _first_row_number(column.numbers()) if column.kind == "number" else None
        if first is not None:
            return Finding(
                frozenset({position}),
                (f"{shown} is left out: it numbers the rows from {first}, as an index does",),
            )
        if column.kind == "number" and len(np.unique(column.numbers())) == table.n_rows:
            return Finding(
                frozenset(),
                (
                    f"{shown} is used as a feature, but looks like an index: its values are all "
                    f"different; --drop {quoted(column.name)} leaves it out",
                ),
            )
        if not column.name.strip() and column.kind != "empty":
            return Finding(frozenset(), (f"{shown} is used as a feature, but has no name",))
    return Finding(frozenset(), ())


def _first_row_number(numbers: np.ndarray) -> int | None:
    """0 or 1 if these are the numbers of rows counted from there."""
    for first in (0, 1):
        if len(numbers) > 1 and np.array_equal(numbers, np.arange(first, len(numbers) + first)):
            return first
    return None
