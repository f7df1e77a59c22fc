"""Decide how the columns of a training table become features."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpustump.cli.arguments import CATEGORY_LIMIT
from gpustump.cli.errors import InputError
from gpustump.cli.input.input_table import InputTable
from gpustump.data.columns import USABLE, Column
from gpustump.data.readable import listed, quoted
from gpustump.model.encoding import Encoding, InputColumn, is_number


def learn_encoding(table: InputTable, positions: Sequence[int]) -> Encoding:
    """Decide how these columns of a training table become features.

    Raises
    ------
    InputError
        That names the columns that cannot be features, if there are any.
    """
    columns, refused = [], []
    for position in positions:
        column = table.columns[position]
        kind = {"text": "category", "empty": "number"}.get(column.kind, column.kind)
        values = tuple(column.distinct()) if kind == "category" else ()
        if column.kind not in USABLE:
            refused.append((column, f"its type is {column.kind}"))
        elif len(values) > CATEGORY_LIMIT:
            refused.append((column, _too_many(values)))
        columns.append(InputColumn(column.name, position, kind, values))
    if refused:
        raise InputError(_refusal(table.source, refused))
    return Encoding(tuple(columns), len(table.columns), table.named)


def _refusal(source: str, refused: Sequence[tuple[Column, str]]) -> str:
    """A message about all columns that cannot be used, with the reason for the first."""
    column, reason = refused[0]
    names = [column.name for column, _ in refused]
    also = f" The same is true of {listed(names[1:])}." if names[1:] else ""
    them = "them" if names[1:] else "it"
    return (
        f"{source}: column {quoted(column.name)} cannot be used: {reason}.{also} Leave {them} out "
        f"with --drop {shlex.quote(','.join(names))}, or turn {them} into numbers."
    )


def _too_many(values: Sequence[str]) -> str:
    """Why text is refused; if most values are numbers, the message names the others."""
    others = [value for value in values if not is_number(value)]
    what = f"it is text with {len(values)} distinct values, more than {CATEGORY_LIMIT}"
    if len(others) < len(values) / 2:
        return f"{what}; all are numbers but {listed(others, 3)}"
    return f"{what}, such as {listed(values[:2])}"
