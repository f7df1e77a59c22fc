"""What workers report about their parts before training: columns, labels, weights; and the whole.

Joined columns do not hold all values, only those that are needed before training. So the same
functions decide about columns, labels and weights as on one machine.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError
from gpustump.cli.input.exported_index import may_be_index
from gpustump.cli.input.input_table import InputTable, UnreadColumn
from gpustump.cli.input.training_data import Choice, target_of
from gpustump.cli.on_dask.files import FilePart
from gpustump.cli.on_dask.parts import FileContent, read_part, told_from_afar
from gpustump.data.columns import NUMERIC, AsText, Column, values_of_kind
from gpustump.data.readable import listed, quoted

_MOST_VALUES = 10_000
"""The most distinct values of a text column that are sent; far fewer are allowed."""


@dataclass(frozen=True)
class ToldColumn:
    """What a worker sends of a column; see `Column`.

    Attributes
    ----------
    name, kind : str
    values : ndarray
        The distinct values of text; all values of labels, weights and columns that may number the
        rows; none of other columns.
    """

    name: str
    kind: str
    values: np.ndarray

    @property
    def dtype(self) -> str:
        return "" if self.kind == "text" else "float64"

    def numbers(self) -> np.ndarray:
        return self.values.astype(np.float64)

    def missing(self) -> np.ndarray:
        return np.zeros(len(self.values), dtype=bool)

    def equals(self, value: str) -> np.ndarray:
        return np.asarray(self.values == value)

    def distinct(self) -> list[Any]:
        return list(np.unique(self.values).tolist())

    def labels(self) -> np.ndarray:
        return self.values

    def with_rows(self, mask: np.ndarray) -> ToldColumn:
        return ToldColumn(self.name, self.kind, self.values[mask])


_NOTHING = np.empty(0)


class Outline(NamedTuple):
    """What a worker sends of a part.

    Attributes
    ----------
    part : FilePart
    state : FileContent
    named : bool
        Whether the columns have names.
    columns : tuple of ToldColumn
    target : ToldColumn
        The labels that are not missing, in the order of the rows.
    weights : ToldColumn or None
        Those of the same rows.
    choice : Choice
        What the options say of the columns.
    n_rows : int
        With and without a target.
    first_missing : int
        The first row without a target, if there is one.
    notes : tuple of str
        What the reader found out about the file that a user may want to know.
    """

    part: FilePart
    state: FileContent
    named: bool
    columns: tuple[ToldColumn, ...]
    target: ToldColumn
    weights: ToldColumn | None
    choice: Choice
    n_rows: int
    first_missing: int
    notes: tuple[str, ...]

    @property
    def n_known(self) -> int:
        """How many rows have a target."""
        return len(self.target.values)


def outline_of(part: FilePart, arguments: argparse.Namespace) -> Outline:
    """A task: the outline of a part."""
    with told_from_afar(part):
        reading = read_part(part, arguments, skips_numbers=True)
        table, known, choice = reading.table, reading.known, reading.choice
        pairs = zip(table.columns, known.columns, strict=True)
        own = {choice.target_at, choice.weight_at}
        columns = tuple(
            ToldColumn(column.name, rest.kind, _NOTHING)
            if j in own or isinstance(column, UnreadColumn)
            else _told(j, column, rest, choice)
            for j, (column, rest) in enumerate(pairs)
        )
        target = target_of(known, choice)
        weights = None
        if arguments.weight is not None:
            weights = _with_all(known.column_or_vector(arguments.weight, "--weight")[0])
        return Outline(
            part, reading.state, table.named, columns, _with_all(target), weights, choice,
            len(reading.missing), int(np.argmax(reading.missing)) if table.n_rows else 0,
            table.notes,
        )  # fmt: skip


def _told(position: int, column: Column, known: Column, choice: Choice) -> ToldColumn:
    """A column that may become features: `column` with all rows, `known` with those to learn."""
    is_forced = position in choice.forced.text and known.kind in NUMERIC
    known = AsText(known) if is_forced else known
    if known.kind == "text":
        values = np.asarray(known.distinct()[:_MOST_VALUES], dtype=str)
        return ToldColumn(column.name, "text", values)
    if known.kind == "number" and may_be_index(position, column.name):
        return ToldColumn(column.name, "number", column.numbers())
    return ToldColumn(column.name, known.kind, _NOTHING)


def _with_all(column: Column) -> ToldColumn:
    """Labels or weights with all their values."""
    usable = column.kind in ("text", *NUMERIC)
    return ToldColumn(column.name, column.kind, column.labels() if usable else _NOTHING)


def joined(source: str, outlines: Sequence[Outline]) -> InputTable:
    """The columns of some parts as those of one table.

    Raises
    ------
    InputError
        If they are not alike.
    """
    first = outlines[0]
    for outline in outlines[1:]:
        _check_names(first, outline)
    columns = tuple(
        joined_column(source, [(one.part.path, one.columns[j]) for one in outlines])
        for j in range(len(first.columns))
    )
    n_rows = sum(outline.n_rows for outline in outlines)
    notes = tuple(dict.fromkeys(note for outline in outlines for note in outline.notes))
    return InputTable(source, columns, n_rows, first.named, notes=notes)


def _check_names(first: Outline, other: Outline) -> None:
    """Refuse parts whose columns have other names."""
    names, own = ([column.name for column in one.columns] for one in (first, other))
    if (first.named, names) == (other.named, own):
        return
    differ = f"{other.part.path} has other columns than {first.part.path}"
    if not (first.named and other.named):
        raise InputError(f"{differ}: {len(own)} of them, not {len(names)}.")
    lacking = [name for name in names if name not in own]
    new = [name for name in own if name not in names]
    parts = [f"it lacks {listed(lacking)}"] if lacking else []
    parts += [f"it also has {listed(new)}"] if new else []
    raise InputError(f"{differ}: {', and '.join(parts) or 'they are in another order'}.")


def joined_column(source: str, columns: Sequence[tuple[str, ToldColumn]]) -> ToldColumn:
    """A column of all files, given with their names.

    Raises
    ------
    InputError
        If files have values of different kinds in it.
    """
    present = [(file, column) for file, column in columns if column.kind != "empty"]
    name = columns[0][1].name
    if not present:
        return ToldColumn(name, "empty", _NOTHING)
    (first_file, first), *others = present
    for file, column in others:
        if column.kind != first.kind:
            shown = shlex.quote(name)
            raise InputError(
                f"{source}: column {quoted(name)} holds {values_of_kind(first.kind)} in "
                f"{first_file} and {values_of_kind(column.kind)} in {file}. Leave it out with "
                f"--drop {shown}; or, in text files, read all of it alike with --categorical "
                f"{shown} or --numeric {shown}."
            )
    values = [column.values for _, column in present if len(column.values)]
    together = np.concatenate(values) if values else _NOTHING
    return ToldColumn(name, first.kind, together)
