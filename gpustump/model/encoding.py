"""How a table's columns become a model's features, in training and again in prediction.

A column of numbers is one feature. A column of text is one feature for each of its values, 1 in
rows with that value and 0 in others (NaN if the text is missing); or it is one categorical feature,
whose values are the numbers of its categories. The encoding is a part of the model: it is learnt
from the training table and stored in the model file's details. A model without a stored encoding
has only columns of numbers, one for each feature.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.columns import (
    NUMERIC,
    TEMPORAL,
    ArrayColumn,
    AsText,
    Column,
    ColumnTable,
    WithoutWords,
    is_number,
    is_plain_number,
    numbers_of,
    times_of_text,
    values_of_kind,
    without_numbers,
)
from gpustump.data.parameters import DATE_ORDERS, MOST_CATEGORIES
from gpustump.data.readable import (
    caller_level,
    counted,
    listed,
    quoted,
    shortened,
    shown,
    suggestion,
)
from gpustump.engines.prediction import quick_to_compute_in
from gpustump.model.rows import WRONG, reason_of

NUMBERED = "numbered"
"""The kind of a column whose categories are numbered: one categorical feature."""

_OF_TEXT = ("category", NUMBERED)

_KINDS = (*NUMERIC, *TEMPORAL, *_OF_TEXT)

_OPTIONS = ("missing", "text_encoding", "decimals")
"""Parts of an encoding that are stored only if the user asked for them."""

_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class InputColumn:
    """One column that the model needs.

    Attributes
    ----------
    name : str
        Its index as text, if the columns had no names.
    position : int
        Its index in the training table.
    kind : str
        "number", "boolean", one of the temporal kinds, "category" or "numbered".
    values : tuple of str
        The sorted values of a column of text. "category": each becomes a feature. "numbered": value
        k becomes the number k.
    date_order : str or None
        One of `DATE_ORDERS`, if the dates began so, as text.

    Raises
    ------
    TypeError, ValueError
        If it is not as described.
    """

    name: str
    position: int
    kind: str
    values: tuple[str, ...] = ()
    date_order: str | None = None

    def __post_init__(self) -> None:
        is_text = all(isinstance(text, str) for text in (self.name, *self.values))
        if not is_text or type(self.position) is not int:
            raise TypeError(f"name and values must be text, and position an int; got {shown(self)}")
        if self.kind not in _KINDS or (self.kind not in _OF_TEXT and self.values):
            raise ValueError(
                f"a column is of an unknown kind, or of one that has no values: {shown(self)}"
            )
        if self.date_order not in (None, *DATE_ORDERS):
            raise ValueError(f"a column's dates are of an unknown order: {shown(self)}")
        n_values = len(self.values)
        if self.kind == NUMBERED and not len({*self.values}) == n_values <= MOST_CATEGORIES:
            raise ValueError(
                f"a column has one category twice, or more than {MOST_CATEGORIES}: {shown(self)}"
            )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that the column becomes."""
        if self.kind == "category":
            name = self.name if self.name.strip() else quoted(self.name)
            return tuple(f"{name}={value}" for value in self.values)
        return (self.name,)


class Unseen(NamedTuple):
    """Values of a column that were not in training: the number of rows with such a value, one of
    the values, and whether the column's categories are numbered."""

    n_rows: int
    example: str
    is_numbered: bool = False


class Origin(NamedTuple):
    """Where a feature comes from: its column, and for a category the value it stands for."""

    column: InputColumn
    value: str | None


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
    missing : tuple of str
        Words, or numbers as text, that stand for missing values in every column.
    text_encoding, decimals : str or None
        What the user said of the training table's text: the encoding of its characters, and the
        mark before the fraction of a number, "." or ",".
    first_index : int or None
        The number of the first feature, 0 or 1, in a training file that lists features by their
        numbers; the columns then are the features.

    Raises
    ------
    TypeError, ValueError
        If they are not as described.
    """

    columns: tuple[InputColumn, ...]
    n_columns: int
    named: bool
    missing: tuple[str, ...] = ()
    text_encoding: str | None = None
    decimals: str | None = None
    first_index: int | None = None

    def __post_init__(self) -> None:
        if type(self.n_columns) is not int or type(self.named) is not bool:
            raise TypeError(
                "n_columns must be an int, and named true or false; got "
                f"{shown(self.n_columns)} and {shown(self.named)}."
            )
        positions = [column.position for column in self.columns]
        if not all(0 <= position < self.n_columns for position in positions):
            raise ValueError(
                f"positions must be 0 or more and below {self.n_columns}, the number of columns; "
                f"got {shown(positions)}."
            )
        if len({*positions}) < len(positions):
            raise ValueError(f"positions must all be different; got {shown(positions)}.")
        if not all(isinstance(word, str) for word in (*self.missing, self.text_encoding or "")):
            raise TypeError(
                "missing must hold text only, and text_encoding must be text or None; got "
                f"{shown(self.missing)} and {shown(self.text_encoding)}."
            )
        if self.decimals not in (None, ".", ","):
            raise ValueError(f"decimals must be '.', ',' or None; got {shown(self.decimals)}.")
        if self.first_index not in (0, 1, None):
            raise ValueError(f"first_index must be 0, 1 or None; got {shown(self.first_index)}.")

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """A name for each feature; None if the columns had no names."""
        return self.shown_names if self.named else None

    @cached_property
    def shown_names(self) -> tuple[str, ...]:
        """A name for each feature, "column 0" and so on if the columns had no names."""
        prefix = "column " if self.first_index is None else "feature "
        prefix = "" if self.named else prefix
        return tuple(prefix + name for column in self.columns for name in column.features)

    @property
    def categorical_features(self) -> tuple[int, ...]:
        """The features whose values are numbers of categories."""
        numbers = range(len(self.shown_names))
        return tuple(j for j in numbers if self.origin(j).column.kind == NUMBERED)

    def categories(self, feature: int) -> tuple[str, ...] | None:
        """The names of a numbered column's categories; None for any other feature."""
        column = self.origin(feature).column
        return column.values if column.kind == NUMBERED else None

    def origin(self, feature: int) -> Origin:
        """The column and value that a feature comes from."""
        return self._origins[feature]

    @cached_property
    def _origins(self) -> tuple[Origin, ...]:
        return tuple(
            Origin(column, value)
            for column in self.columns
            for value in (column.values if column.kind == "category" else (None,))
        )

    def as_details(self) -> dict[str, Any]:
        """The encoding in JSON's types."""
        if self.first_index is not None:  # there may be millions of columns
            own = {"n_columns": self.n_columns, "named": self.named}
            return {**own, "first_index": self.first_index}
        columns = [
            {key: value for key, value in asdict(column).items() if value not in ((), None)}
            for column in self.columns
        ]
        details = {"n_columns": self.n_columns, "named": self.named, "columns": columns}
        options = {name: getattr(self, name) for name in _OPTIONS}
        return details | {name: value for name, value in options.items() if value}


@functools.lru_cache(maxsize=8)
def plain_encoding(
    n_features: int, feature_names: tuple[str, ...] | None, first_index: int | None = None
) -> Encoding:
    """The encoding of a model whose features are columns of numbers."""
    names = feature_names
    if names is None:
        names = tuple(str((first_index or 0) + j) for j in range(n_features))
    columns = tuple(InputColumn(name, j, "number") for j, name in enumerate(names))
    return Encoding(columns, n_features, feature_names is not None, first_index=first_index)


def stored_encoding(
    details: Mapping[str, Any], n_features: int, feature_names: tuple[str, ...] | None = None
) -> Encoding | None:
    """The encoding in a model's details; None if there is none.

    Raises
    ------
    ValueError
        If what they hold is no encoding, or does not fit the model.
    """
    stored = details.get("encoding")
    if stored is None:
        return None
    try:
        first_index = stored.get("first_index")
        if first_index is not None:
            return plain_encoding(n_features, feature_names, first_index)
        columns = tuple(
            InputColumn(**{**column, "values": tuple(column.get("values", ()))})
            for column in stored["columns"]
        )
        options = {name: stored[name] for name in _OPTIONS if name in stored}
        options["missing"] = tuple(options.get("missing", ()))
        encoding = Encoding(columns, stored["n_columns"], stored["named"], **options)
    except WRONG as error:
        raise ValueError(
            f"the model's details hold no valid encoding: {shortened(reason_of(error), 200)}"
        ) from error
    if len(encoding.shown_names) != n_features:
        raise ValueError(
            f"the encoding in the model's details makes {len(encoding.shown_names)} features, but "
            f"the model has {n_features}."
        )
    return encoding


def encode(encoding: Encoding, table: ColumnTable) -> tuple[np.ndarray, dict[str, Unseen]]:
    """The features of a table's rows.

    Parameters
    ----------
    encoding : Encoding
    table : ColumnTable
        The training table, or one to predict. Other columns than those that the model needs are
        ignored.

    Returns
    -------
    X : ndarray (n_rows, n_features)
        A view of the table's own array where possible; otherwise in the narrowest float dtype
        that holds all values.
    unseen : dict of str to Unseen
        By the name of each text column with values that were not in training. In these rows all
        features of the column are 0; the feature of a numbered column is NaN.

    Raises
    ------
    ValueError
        If columns are missing from the table, or hold another kind of value than in training.
    """
    positions = needed_positions(encoding, table)
    is_plain = all(column.kind in NUMERIC for column in encoding.columns) and not encoding.missing
    if arrays.is_sparse(table.matrix) and not is_plain:
        raise ValueError(
            f"{table.source} is sparse and holds numbers only, but the model was trained with "
            "text, dates or words for missing values; save the rows as CSV or Parquet."
        )
    types, gone = table.numeric_types, numbers_of(encoding.missing)
    plain = _plain_columns(encoding, [types[position] for position in positions])
    if len(plain) == len(positions) > 0:
        return without_numbers(table.numbers(positions), gone), {}
    others: dict[int, Column] = {}
    for j in sorted({*range(len(positions))} - {*plain}):
        needed, column = encoding.columns[j], table.columns[positions[j]]
        if encoding.missing:
            column = WithoutWords(column, encoding.missing)
        others[j] = _as_needed(needed, column, encoding)
        _check_kind(needed, others[j], table.source)
    widths = [len(column.features) for column in encoding.columns]
    starts = [0, *itertools.accumulate(widths)]
    X = table.numbers_with_room(
        [positions[j] for j in plain], [starts[j] for j in plain], [*others.values()], starts[-1]
    )
    unseen: dict[str, Unseen] = {}
    for j, column in others.items():
        needed, at = encoding.columns[j], starts[j]
        if needed.kind == "category":
            found = _fill_category(X[:, at : at + widths[j]], needed, column)
        elif needed.kind == NUMBERED:
            found = _fill_numbers(X[:, at], needed, column)
        else:
            X[:, at], found = _numbers(needed, column), None
        unseen.update({needed.name: found} if found is not None else {})
    return X, unseen


def needed_positions(encoding: Encoding, table: ColumnTable) -> list[int]:
    """The indices of the needed columns: by name if both sides have names, else by position.

    Raises
    ------
    ValueError
        If columns are missing from the table.
    """
    if encoding.named and table.named:
        places = {name: position for position, name in enumerate(table.names)}
        needed = [column.name for column in encoding.columns]
        absent = [name for name in needed if name not in places]
        if absent:
            others = [name for name in table.names if name not in needed]
            hint = suggestion(absent[0], others) if len(absent) == 1 else ""
            raise ValueError(
                f"{table.source} lacks {counted(len(absent), 'column')} that the model needs: "
                f"{listed(absent)}.{hint}"
            )
        return [places[name] for name in needed]
    n_needed = len(encoding.columns)
    if len(table.columns) == n_needed:
        return list(range(n_needed))
    if len(table.columns) == encoding.n_columns:
        return [needed.position for needed in encoding.columns]
    also = ""
    if encoding.n_columns != n_needed:
        also = f", or all {encoding.n_columns} of the training table"
    raise ValueError(
        f"{table.source} has {counted(len(table.columns), 'column')}, but the model needs its "
        f"{n_needed}{also}; unless both sides have names, columns are matched by position."
    )


def _plain_columns(encoding: Encoding, types: Sequence[str | None]) -> list[int]:
    """The needed columns that are numbers for certain, given their `numeric_types`.

    Where numbers stand for missing values, all columns or none: they are not looked for in features
    that the encoding makes.
    """
    has_words = bool(numbers_of(encoding.missing))
    usable = ("number",) if has_words else NUMERIC
    pairs = enumerate(zip(encoding.columns, types, strict=True))
    found = [j for j, (needed, own) in pairs if needed.kind in NUMERIC and own in usable]
    return found if not has_words or len(found) == len(types) else []


def _as_needed(needed: InputColumn, column: Column, encoding: Encoding) -> Column:
    """A column in the kind that the model needs, if it can be converted with certainty."""
    if needed.kind in ("date", "datetime") and column.kind == "text":
        return times_of_text(column) or column
    if needed.kind in _OF_TEXT and column.kind in NUMERIC:
        # A number is found among these categories by its text: "5" can be, "05" cannot.
        is_certain = all(is_plain_number(own) or not is_number(own) for own in needed.values)
        return AsText(column) if is_certain else column
    may_be_numbers = needed.kind in NUMERIC and column.kind == "text" and encoding.missing
    if may_be_numbers and all(map(is_number, column.distinct())):  # a word made all of them text
        present = ~column.missing()
        numbers = np.full(len(present), np.nan)
        numbers[present] = [float(text) for text in column.with_rows(present).labels()]
        return ArrayColumn(column.name, numbers)
    return column


def _check_kind(needed: InputColumn, column: Column, source: str) -> None:
    had, has = needed.kind, column.kind
    same = had == has or has == "empty" or (had in NUMERIC and has in NUMERIC)
    if same or (had in _OF_TEXT and has == "text") or (had, has) == ("date", "datetime"):
        return
    if has == "number" and column.missing().all():  # what pandas makes of an empty column
        return
    example = ""
    what_to_do = f" Turn it into {values_of_kind(had)}, as in training."
    if has == "text":
        words = [value for value in column.distinct() if not is_number(value)]
        example = f", for example {quoted(words[0])}" if words else ""
    if had in _OF_TEXT:
        what_to_do = " Read it as text, as in training."
    raise ValueError(
        f"{source}: column {quoted(needed.name)} held {values_of_kind(had)} in training, but here "
        f"it holds {values_of_kind(has)}{example}.{what_to_do}"
    )


def _fill_category(X: np.ndarray, needed: InputColumn, column: Column) -> Unseen | None:
    """Write a category's features; return which values are unknown, if any are."""
    missing = column.missing()
    known = np.zeros(len(missing), dtype=bool)
    for j, value in enumerate(needed.values):
        equal = column.equals(value) if column.kind == "text" else ~missing
        X[:, j] = equal
        known |= equal
    X[missing] = np.nan
    unknown = ~known & ~missing
    n_unknown = int(np.count_nonzero(unknown))
    if not n_unknown:
        return None
    return Unseen(n_unknown, str(column.with_rows(unknown).distinct()[0]))


def _fill_numbers(X: np.ndarray, needed: InputColumn, column: Column) -> Unseen | None:
    """Write the numbers of a column's categories; return which values are unknown, if any are."""
    present = ~column.missing()
    X[:] = np.nan
    if not present.any():
        return None
    numbers = {value: float(number) for number, value in enumerate(needed.values)}
    texts = column.with_rows(present).labels().tolist()
    found = np.asarray([numbers.get(text, np.nan) for text in texts])
    X[present] = found
    unknown = np.flatnonzero(np.isnan(found))
    if not len(unknown):
        return None
    return Unseen(len(unknown), str(texts[int(unknown[0])]), is_numbered=True)


def _numbers(needed: InputColumn, column: Column) -> np.ndarray:
    """A column's numbers in the unit of training. (pandas holds dates as times at midnight.)"""
    numbers = column.numbers()
    is_of_days = needed.kind == "date" and column.kind == "datetime"
    return numbers / _SECONDS_A_DAY if is_of_days else numbers


def features_of(model: Encoding, table: ColumnTable) -> tuple[np.ndarray, dict[str, Unseen]]:
    """The features of a frame's rows, for a model that is used from Python.

    A frame may hold the columns of the training table, or all features under their own names.
    Columns are found by name where both sides have names; others are ignored.

    Returns
    -------
    X : ndarray (n_rows, n_features)
    unseen : dict of str to Unseen
        As `encode` returns it.

    Raises
    ------
    ValueError
        If the frame holds neither, or columns hold another kind of value than in training.
    """
    if model.named and table.named:
        names = {*table.names}
        needs = {column.name for column in model.columns}
        if not needs <= names and {*model.shown_names} <= names:
            model = plain_encoding(len(model.shown_names), model.feature_names)
    return encode(model, table)


def told_features_of(model: Encoding, table: ColumnTable, name: str = "X") -> np.ndarray:
    """The same, with a warning of values that were not in training; `name` is what it calls the
    table."""
    X, unseen = features_of(model, table)
    for column, values in unseen.items():
        warnings.warn(f"{name}: {unseen_text(column, values)}", stacklevel=caller_level())
    return X


def unseen_text(name: str, unseen: Unseen) -> str:
    """The text of the warning about values that were not in training."""
    what = "they count as missing" if unseen.is_numbered else "none of its features is 1 there"
    return (
        f"{listed([name])} has values that were not in training in "
        f"{counted(unseen.n_rows, 'row')}, such as {quoted(shortened(unseen.example))}; {what}"
    )


def unseen_numbers(X: Array, known: Mapping[int, Sequence[int]]) -> dict[int, Unseen]:
    """Values of categorical features that were not in training, by the features.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Of any library; its values stay on its device.
    known : mapping
        For each feature the numbers of its categories. All other values are unseen, except NaN and
        negative whole numbers, which mean missing values.
    """
    X, found = quick_to_compute_in(X), dict[int, Unseen]()
    with arrays.computing_on(X):
        for feature, numbers in known.items():
            values = arrays.as_working(X[:, feature])
            xp, device = arrays.namespace_of(values), arrays.device_of(values)
            flags = np.zeros(MOST_CATEGORIES + 1, dtype=bool)  # the last one is for what is none
            flags[list(numbers)] = True
            is_whole = xp.floor(values) == values
            is_number = is_whole & (values >= 0) & (values < MOST_CATEGORIES)
            places = xp.astype(xp.where(is_number, values, MOST_CATEGORIES), xp.int64)
            is_known = xp.take(xp.asarray(flags, device=device), places, axis=0)
            is_missing = xp.isnan(values) | (is_whole & (values < 0))
            is_unseen = xp.astype(~(is_known | is_missing), xp.int64)
            if count := int(xp.sum(is_unseen)):
                row = int(xp.argmax(is_unseen))
                (example,) = arrays.to_host(values[row : row + 1])
                text = str(example).removesuffix(".0")
                found[feature] = Unseen(count, text, is_numbered=True)
    return found
