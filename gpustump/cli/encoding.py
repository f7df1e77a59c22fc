"""From a table's columns to the features that stumps can cut, and the same again when predicting.

What was learnt from the training table, an `Encoding`, travels in the model file's details. A
column of numbers is one feature; a column of text is one feature for each of its values.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpustump.cli.arguments import CATEGORY_LIMIT
from gpustump.cli.errors import InputError, counted, listed, quoted, suggestion
from gpustump.cli.tables import NUMERIC, TEMPORAL, USABLE, Column, Table

UNITS = {
    "date": "days since 1970-01-01",
    "datetime": "seconds since 1970-01-01",
    "time": "seconds since midnight",
    "duration": "seconds",
}


@dataclass(frozen=True)
class Input:
    """One column as the model wants it.

    Attributes
    ----------
    name : str
        Its index where the columns had no names.
    position : int
        Where it stood in the training table.
    kind : str
        "number", "boolean", one of the temporal kinds, or "category".
    values : tuple of str
        A category's values, sorted: one feature each.
    """

    name: str
    position: int
    kind: str
    values: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that the column becomes."""
        if self.kind == "category":
            return tuple(f"{self.name}={value}" for value in self.values)
        return (self.name,)


@dataclass(frozen=True)
class Encoding:
    """All columns that the model wants, in the order of its features.

    Attributes
    ----------
    inputs : tuple of Input
    n_columns : int
        How many columns the training table had, the target and dropped ones included.
    named : bool
        Whether they had names.
    """

    inputs: tuple[Input, ...]
    n_columns: int
    named: bool

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name a feature; None if the columns had no names."""
        if not self.named:
            return None
        return tuple(name for wanted in self.inputs for name in wanted.features)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns to read as text, whatever they look like."""
        return tuple(wanted.name for wanted in self.inputs if wanted.kind == "category")

    def input_of(self, feature: int) -> tuple[Input, str | None]:
        """Where a feature comes from: a column, and which of its values if it is a category."""
        for wanted in self.inputs:
            if feature < len(wanted.features):
                return wanted, wanted.values[feature] if wanted.values else None
            feature -= len(wanted.features)
        raise IndexError(feature)

    def as_details(self) -> dict[str, Any]:
        """The encoding as JSON knows it."""
        inputs = [
            {key: value for key, value in asdict(wanted).items() if value != ()}
            for wanted in self.inputs
        ]
        return {"n_columns": self.n_columns, "named": self.named, "columns": inputs}


def from_details(
    details: Mapping[str, Any], n_features: int, feature_names: Sequence[str] | None
) -> Encoding:
    """The encoding in a model's details; where there is none, its features are plain columns.

    Raises
    ------
    InputError
        If there is one that does not fit the model.
    """
    stored = details.get("encoding")
    if stored is None:
        names = [str(j) for j in range(n_features)] if feature_names is None else feature_names
        inputs = tuple(Input(name, j, "number") for j, name in enumerate(names))
        return Encoding(inputs, n_features, feature_names is not None)
    try:
        inputs = tuple(
            Input(**{**wanted, "values": tuple(wanted.get("values", ()))})
            for wanted in stored["columns"]
        )
        encoding = Encoding(inputs, stored["n_columns"], stored["named"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the model's details hold no encoding of this gpustump: {error!r}") from (
            error
        )
    if sum(len(wanted.features) for wanted in inputs) != n_features:
        raise InputError("the encoding in the model's details does not fit its features.")
    return encoding


def learn(table: Table, positions: Sequence[int]) -> Encoding:
    """How to turn these columns of a training table into features.

    Raises
    ------
    InputError
        If some cannot be: they are named.
    """
    inputs, refused = [], []
    for position in positions:
        column = table.columns[position]
        kind = {"text": "category", "empty": "number"}.get(column.kind, column.kind)
        values = tuple(column.distinct()) if kind == "category" else ()
        if column.kind not in USABLE:
            refused.append((column, f"its type is {column.kind}"))
        elif len(values) > CATEGORY_LIMIT:
            refused.append((column, _too_many(values)))
        inputs.append(Input(column.name, position, kind, values))
    if refused:
        column, reason = refused[0]
        names = ",".join(column.name for column, _ in refused)
        others = listed(column.name for column, _ in refused[1:])
        also = f" The same goes for {others}." if others else ""
        raise InputError(
            f"{table.source}: column {quoted(column.name)} cannot be used: {reason}.{also} Leave "
            f"out what is no feature with --drop {shlex.quote(names)}, or turn it into numbers."
        )
    return Encoding(tuple(inputs), len(table.columns), table.named)


def _too_many(values: Sequence[str]) -> str:
    """Why text is refused; where most of it is numbers, what the rest is."""
    others = [value for value in values if not _is_number(value)]
    said = f"it is text with {len(values)} distinct values, more than {CATEGORY_LIMIT}"
    if len(others) < len(values) / 2:
        return f"{said}; all are numbers but {listed(others, 3)}"
    return f"{said}, such as {listed(values[:2])}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def encode(encoding: Encoding, table: Table) -> tuple[np.ndarray, dict[str, int]]:
    """The features of a table's rows.

    Parameters
    ----------
    encoding : Encoding
    table : Table
        The one it was learnt from, or one to predict.

    Returns
    -------
    X : ndarray (n_rows, n_features)
        A view of the table's own array where possible; else in the narrowest float dtype that
        holds all of it.
    unseen : dict of str to int
        For each category with values that the encoding does not know, in how many rows. All its
        features are 0 there.

    Raises
    ------
    InputError
        If columns are missing from the table, or hold something else than in training.
    """
    positions = _matched(encoding, table)
    columns = [table.columns[position] for position in positions]
    for wanted, column in zip(encoding.inputs, columns, strict=True):
        _check_kind(wanted, column, table.source)
    if table.matrix is not None:
        return _selected(table.matrix, positions), {}
    width = sum(len(wanted.features) for wanted in encoding.inputs)
    X = np.empty((table.n_rows, width), dtype=_common_dtype(columns), order="F")
    unseen, at = {}, 0
    for wanted, column in zip(encoding.inputs, columns, strict=True):
        if wanted.kind == "category":
            unknown = _fill_category(X[:, at : at + len(wanted.values)], wanted, column)
            unseen.update({wanted.name: unknown} if unknown else {})
        else:
            X[:, at] = column.numbers()
        at += len(wanted.features)
    return X, unseen


def _selected(matrix: np.ndarray, positions: list[int]) -> np.ndarray:
    """Columns of an array, without a copy if they are neighbours."""
    first, last = positions[0], positions[-1] + 1
    if positions == list(range(first, last)):
        return matrix[:, first:last]
    return matrix[:, positions]


def _common_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    numeric = [column.dtype for column in columns if column.kind != "text"]
    return np.result_type(np.float32, *numeric)


def _fill_category(X: np.ndarray, wanted: Input, column: Column) -> int:
    """Write a category's features; returns in how many rows its value is unknown."""
    missing = column.missing()
    known = np.zeros(len(missing), dtype=bool)
    for j, value in enumerate(wanted.values):
        equal = ~missing if column.kind == "empty" else column.equals(value)
        X[:, j] = equal
        known |= equal
    X[missing] = np.nan
    return int(np.count_nonzero(~known & ~missing))


def _check_kind(wanted: Input, column: Column, source: str) -> None:
    had, has = wanted.kind, column.kind
    same = had == has or has == "empty" or (had in NUMERIC and has in NUMERIC)
    if same or (had == "category" and has == "text"):
        return
    example = ""
    if has == "text":
        odd = [value for value in column.distinct() if not _is_number(value)]
        example = f", for example {quoted(odd[0])}" if odd else ""
    raise InputError(
        f"{source}: column {quoted(wanted.name)} held {_words(had)} in training, but here it holds "
        f"{_words(has)}{example}."
    )


def _words(kind: str) -> str:
    if kind in (*NUMERIC, *TEMPORAL):
        return f"{kind}s"
    return "text" if kind in ("category", "text") else f"values of type {kind}"


def _matched(encoding: Encoding, table: Table) -> list[int]:
    """Where the wanted columns stand in a table."""
    if encoding.named and table.named:
        places = {name: position for position, name in enumerate(table.names)}
        absent = [wanted.name for wanted in encoding.inputs if wanted.name not in places]
        if absent:
            close = suggestion(absent[0], table.names) if len(absent) == 1 else ""
            raise InputError(
                f"{table.source} lacks {counted(len(absent), 'column')} that the model needs: "
                f"{listed(absent)}.{close}"
            )
        return [places[wanted.name] for wanted in encoding.inputs]
    if len(table.columns) == len(encoding.inputs):
        return list(range(len(encoding.inputs)))
    if len(table.columns) == encoding.n_columns:
        return [wanted.position for wanted in encoding.inputs]
    also = (
        f", or all {encoding.n_columns} of the training table"
        if encoding.n_columns != len(encoding.inputs)
        else ""
    )
    raise InputError(
        f"{table.source} has {counted(len(table.columns), 'column')}, but the model wants its "
        f"{len(encoding.inputs)}{also}; without names on both sides they are taken by position."
    )
