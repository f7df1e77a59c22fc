"""How a table's columns become features, in training and again in prediction.

A column of numbers is one feature; a column of text is one feature for each of its values. The
`Encoding` is learned from the training table and stored in the model file's details.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpustump.cli.arguments import CATEGORY_LIMIT
from gpustump.cli.errors import InputError
from gpustump.cli.input.input_table import NUMERIC, TEMPORAL, USABLE, Column, InputTable
from gpustump.cli.wording import counted, listed, quoted, suggestion

UNITS = {
    "date": "days since 1970-01-01",
    "datetime": "seconds since 1970-01-01",
    "time": "seconds since midnight",
    "duration": "seconds",
}


@dataclass(frozen=True)
class InputColumn:
    """One column that the model needs.

    Attributes
    ----------
    name : str
        Its index if the columns had no names.
    position : int
        Its index in the training table.
    kind : str
        "number", "boolean", one of the temporal kinds, or "category".
    values : tuple of str
        A category's values, sorted; each becomes a feature.
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
    """All columns that the model needs, in the order of its features.

    Attributes
    ----------
    columns : tuple of InputColumn
    n_columns : int
        Number of columns of the training table, with the target and dropped ones.
    named : bool
        Whether they had names.
    """

    columns: tuple[InputColumn, ...]
    n_columns: int
    named: bool

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """A name for each feature; None if the columns had no names."""
        return self.shown_names if self.named else None

    @property
    def shown_names(self) -> tuple[str, ...]:
        """A name for each feature, "column 0" and so on if the columns had no names."""
        prefix = "" if self.named else "column "
        return tuple(prefix + name for column in self.columns for name in column.features)

    @property
    def names_with_units(self) -> tuple[str, ...]:
        """The shown names, followed by the unit where the feature is a time."""
        kinds = [column.kind for column in self.columns for _ in column.features]
        return tuple(
            f"{name}, {UNITS[kind]}" if kind in UNITS else name
            for name, kind in zip(self.shown_names, kinds, strict=True)
        )

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns to read as text, whatever they look like."""
        return tuple(column.name for column in self.columns if column.kind == "category")

    def origin(self, feature: int) -> tuple[InputColumn, str | None]:
        """The column that a feature comes from, and for a category the value it stands for."""
        return self._origins[feature]

    @cached_property
    def _origins(self) -> tuple[tuple[InputColumn, str | None], ...]:
        """The origin of each feature, found once for tables of thousands of columns."""
        return tuple(
            (column, value) for column in self.columns for value in (column.values or (None,))
        )

    def as_details(self) -> dict[str, Any]:
        """The encoding in JSON's types."""
        columns = [
            {key: value for key, value in asdict(column).items() if value != ()}
            for column in self.columns
        ]
        return {"n_columns": self.n_columns, "named": self.named, "columns": columns}


def stored_encoding(
    details: Mapping[str, Any], n_features: int, feature_names: Sequence[str] | None
) -> Encoding:
    """The encoding in a model's details; without one, each feature is a column of numbers.

    Raises
    ------
    InputError
        If it does not fit the model.
    """
    stored = details.get("encoding")
    if stored is None:
        names = [str(j) for j in range(n_features)] if feature_names is None else feature_names
        columns = tuple(InputColumn(name, j, "number") for j, name in enumerate(names))
        return Encoding(columns, n_features, feature_names is not None)
    try:
        columns = tuple(
            InputColumn(**{**column, "values": tuple(column.get("values", ()))})
            for column in stored["columns"]
        )
        encoding = Encoding(columns, stored["n_columns"], stored["named"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the model's details hold no encoding of this gpustump: {error!r}") from (
            error
        )
    if len(encoding.shown_names) != n_features:
        raise InputError("the encoding in the model's details does not fit its features.")
    return encoding


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
    others = [value for value in values if not _is_number(value)]
    what = f"it is text with {len(values)} distinct values, more than {CATEGORY_LIMIT}"
    if len(others) < len(values) / 2:
        return f"{what}; all are numbers but {listed(others, 3)}"
    return f"{what}, such as {listed(values[:2])}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def encode(encoding: Encoding, table: InputTable) -> tuple[np.ndarray, dict[str, int]]:
    """The features of a table's rows.

    Parameters
    ----------
    encoding : Encoding
    table : InputTable
        The training table, or one to predict.

    Returns
    -------
    X : ndarray (n_rows, n_features)
        A view of the table's own array where possible; otherwise in the narrowest float dtype
        that holds all values.
    unseen : dict of str to int
        For each category that has values unknown in training, the number of such rows. All its
        features are 0 there.

    Raises
    ------
    InputError
        If columns are missing from the table, or hold another kind of value than in training.
    """
    positions = _positions(encoding, table)
    columns = [table.columns[position] for position in positions]
    for needed, column in zip(encoding.columns, columns, strict=True):
        _check_kind(needed, column, table.source)
    if table.matrix is not None:
        return _columns_of(table.matrix, positions), {}
    width = len(encoding.shown_names)
    X = np.empty((table.n_rows, width), dtype=_common_dtype(columns), order="F")
    unseen, at = {}, 0
    for needed, column in zip(encoding.columns, columns, strict=True):
        if needed.kind == "category":
            n_unseen = _fill_category(X[:, at : at + len(needed.values)], needed, column)
            unseen.update({needed.name: n_unseen} if n_unseen else {})
        else:
            X[:, at] = column.numbers()
        at += len(needed.features)
    return X, unseen


def _columns_of(matrix: np.ndarray, positions: list[int]) -> np.ndarray:
    """Columns of an array, without a copy if they are neighbours."""
    first, last = positions[0], positions[-1] + 1
    if positions == list(range(first, last)):
        return matrix[:, first:last]
    return matrix[:, positions]


def _common_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    numeric = [column.dtype for column in columns if column.kind != "text"]
    return np.result_type(np.float32, *numeric)


def _fill_category(X: np.ndarray, needed: InputColumn, column: Column) -> int:
    """Write a category's features; return the number of rows whose value is unknown."""
    missing = column.missing()
    known = np.zeros(len(missing), dtype=bool)
    for j, value in enumerate(needed.values):
        equal = ~missing if column.kind == "empty" else column.equals(value)
        X[:, j] = equal
        known |= equal
    X[missing] = np.nan
    return int(np.count_nonzero(~known & ~missing))


def _check_kind(needed: InputColumn, column: Column, source: str) -> None:
    had, has = needed.kind, column.kind
    same = had == has or has == "empty" or (had in NUMERIC and has in NUMERIC)
    if same or (had == "category" and has == "text"):
        return
    example = ""
    if has == "text":
        words = [value for value in column.distinct() if not _is_number(value)]
        example = f", for example {quoted(words[0])}" if words else ""
    raise InputError(
        f"{source}: column {quoted(needed.name)} held {_values(had)} in training, but here it "
        f"holds {_values(has)}{example}."
    )


def _values(kind: str) -> str:
    if kind in (*NUMERIC, *TEMPORAL):
        return f"{kind}s"
    return "text" if kind in ("category", "text") else f"values of type {kind}"


def _positions(encoding: Encoding, table: InputTable) -> list[int]:
    """The indices of the needed columns: by name if both sides have names, else by position."""
    if encoding.named and table.named:
        places = {name: position for position, name in enumerate(table.names)}
        absent = [needed.name for needed in encoding.columns if needed.name not in places]
        if absent:
            hint = suggestion(absent[0], table.names) if len(absent) == 1 else ""
            raise InputError(
                f"{table.source} lacks {counted(len(absent), 'column')} that the model needs: "
                f"{listed(absent)}.{hint}"
            )
        return [places[needed.name] for needed in encoding.columns]
    n_needed = len(encoding.columns)
    if len(table.columns) == n_needed:
        return list(range(n_needed))
    if len(table.columns) == encoding.n_columns:
        return [needed.position for needed in encoding.columns]
    also = ""
    if encoding.n_columns != n_needed:
        also = f", or all {encoding.n_columns} of the training table"
    raise InputError(
        f"{table.source} has {counted(len(table.columns), 'column')}, but the model needs its "
        f"{n_needed}{also}; unless both sides have names, columns are matched by position."
    )
