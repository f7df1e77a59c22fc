"""The categories of columns that are spread over partitions, numbered as on one machine.

A worker sees the categories of one partition at a time. So it numbers these by themselves, and
reports them. The leading process, the one that calls `fit`, puts the categories of all partitions
into the order that one machine would find. Then the workers replace their own numbers by the
numbers in that order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from gpustump.data.columns import (
    NUMERIC,
    AsText,
    Column,
    ColumnTable,
    common_dtype,
)
from gpustump.data.frames import numbers_of, refuse_all_but_numbers
from gpustump.data.readable import caller_level, quoted
from gpustump.estimators.categorical import (
    Categories,
    categories_of_frame,
    is_of_categories,
)
from gpustump.model.encoding import Unseen, unseen_text

_MOST_TOLD = 10_000
"""The most categories of a column that a partition reports; far fewer are allowed."""

Asked = tuple[int, ...] | Literal["from_dtype"]
"""Which columns of a frame are categorical: these, or those whose type says so."""


PlainNumbers = tuple[int, str | None]
"""A categorical feature whose values are numbers already, and its name or None."""


class ToldColumn(NamedTuple):
    """What a worker reports of a partition's column; or what is known of it in all partitions.

    Attributes
    ----------
    name : str
    kind : str
        As `data.columns.Column` has it; "text" if its categories were numbered.
    is_category : bool
        Whether it is text, or has the frame's own type for categories.
    values : tuple of str
        Its categories, sorted; at most the first `_MOST_TOLD`.
    """

    name: str
    kind: str
    is_category: bool
    values: tuple[str, ...] = ()

    def distinct(self) -> list[str]:
        """See `data.columns.Column`."""
        return list(self.values)


def numbered(
    frame: ColumnTable, asked: Asked
) -> tuple[np.ndarray, tuple[ToldColumn, ...], dict[int, np.ndarray]]:
    """Number the categories of a partition's frame, which has rows.

    Returns
    -------
    ndarray (n_rows, n_features)
        The frame as numbers; those of categories are the partition's own.
    tuple of ToldColumn
    dict of int to ndarray of str
        The categories of the features whose columns were numbered, sorted.

    Raises
    ------
    ValueError
        If a column that is not categorical holds something other than numbers.
    """
    columns = list(enumerate(frame.columns))
    own = {
        j: _numbers_of(column)
        for j, column in columns
        if is_of_categories(column) and (asked == "from_dtype" or j in asked)
    }
    others = [column for j, column in columns if j not in own]
    refuse_all_but_numbers(others, frame.source)
    categories = {j: values for j, (_, values) in own.items()}
    told = tuple(_told(column, categories.get(j)) for j, column in columns)
    if not own:
        return numbers_of(frame), told, {}
    X = np.empty((frame.n_rows, len(columns)), dtype=common_dtype(others), order="F")
    for j, column in columns:
        X[:, j] = own[j][0] if j in own else column.numbers()
    return X, told, categories


def _numbers_of(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """A column's numbers of categories, NaN where missing, and the categories, sorted."""
    present = ~column.missing()
    numbers = np.full(len(present), np.nan)
    if not present.any():
        return numbers, np.empty(0, dtype=str)
    text = AsText(column) if column.kind in NUMERIC else column
    labels = text.with_rows(present).labels()
    values, numbers[present] = np.unique(labels, return_inverse=True)
    return numbers, values


def _told(column: Column, values: np.ndarray | None) -> ToldColumn:
    """The report on a column with these categories (None if it was not numbered)."""
    is_category = is_of_categories(column)
    if values is None:
        return ToldColumn(column.name, column.kind, is_category)
    told = tuple(values[:_MOST_TOLD].tolist())
    return ToldColumn(column.name, "text" if told else "empty", is_category, told)


def renumber(values: np.ndarray, own: np.ndarray, numbers: Mapping[str, int]) -> Unseen | None:
    """Replace a partition's own numbers of categories by other ones.

    Parameters
    ----------
    values : ndarray (n_rows,)
        The partition's numbers, NaN where missing; they are changed.
    own : ndarray of str
        The categories, by these numbers.
    numbers : mapping of str to int
        The other numbers. A category that has none becomes NaN.

    Returns
    -------
    Unseen or None
        The categories without a number, if there are any.
    """
    present = np.flatnonzero(~np.isnan(values))
    places = values[present].astype(np.int64)
    table = np.asarray([numbers.get(text, np.nan) for text in own.tolist()], dtype=np.float64)
    found = table[places]
    values[present] = found
    unknown = np.flatnonzero(np.isnan(found))
    if not len(unknown):
        return None
    return Unseen(len(unknown), str(own[places[unknown[0]]]), is_numbered=True)


def learnt(asked: Any, partitions: Sequence[Sequence[ToldColumn]], *, named: bool) -> Categories:
    """The categorical features of a table, from the reports on the columns of its partitions.

    Parameters
    ----------
    asked : "from_dtype" or array-like
        As for `categories_of_frame`.
    partitions : sequence of sequence of ToldColumn
        Of those that have rows.
    named : bool
        Whether the columns have names.

    Raises
    ------
    ValueError
        As on one machine; or if a column holds categories in some partitions and numbers in others.
    """
    columns: Any = tuple(_joined(own) for own in zip(*partitions, strict=True))
    return categories_of_frame(asked, ColumnTable("X", columns, 0, named))


def _joined(columns: Sequence[ToldColumn]) -> ToldColumn:
    """A column of all partitions, from the reports of each."""
    name, kinds = columns[0].name, {own.kind for own in columns} - {"empty"}
    if "text" in kinds and len(kinds) > 1:
        raise ValueError(
            f"X: column {quoted(name)} holds categories in some partitions and numbers in others. "
            "Make it one type, for example with .astype(str)."
        )
    if "text" in kinds or (not kinds and any(own.is_category for own in columns)):
        values = {value for own in columns for value in own.values}
        return ToldColumn(name, "text" if values else "empty", True, tuple(sorted(values)))
    return ToldColumn(name, "boolean" if kinds == {"boolean"} else "number", False)


def refuse_other_kinds(known: Categories, columns: Sequence[ToldColumn], name: str) -> None:
    """Refuse a partition with categories where the training table has numbers, and vice versa.

    Parameters
    ----------
    known : Categories
        Of the table that is trained on.
    columns : sequence of ToldColumn
    name : str
        What the table is called in messages.

    Raises
    ------
    ValueError
    """
    for feature, column in enumerate(columns):
        wanted = known.encoding is not None and known.encoding.categories(feature) is not None
        is_text = column.kind == "text"
        if column.kind == "empty" or is_text == wanted:
            continue
        kinds = {True: "categories", False: "numbers"}
        raise ValueError(
            f"{name}: column {quoted(column.name)} holds {kinds[is_text]}, and {kinds[wanted]} "
            "in the table that is trained on. Make both of one type."
        )


def numbers_by_feature(categories: Categories) -> dict[int, dict[str, int]]:
    """The numbers of the categories of each feature whose column had to be numbered."""
    encoding = categories.encoding
    if encoding is None:
        return {}
    found = {j: encoding.categories(j) for j in categories.features}
    return {
        j: {value: number for number, value in enumerate(values)}
        for j, values in found.items()
        if values is not None
    }


def plain_numbers(categories: Categories, names: Sequence[str] | None) -> list[PlainNumbers]:
    """The categorical features whose values are numbers already."""
    known = numbers_by_feature(categories)
    others = [feature for feature in categories.features if feature not in known]
    return [(feature, None if names is None else names[feature]) for feature in others]


def warn_of_unseen(
    name: str, categories: Categories, found: Iterable[Mapping[int, Unseen]]
) -> None:
    """Warn of categories that were not in training, as on one machine.

    Parameters
    ----------
    name : str
        What the table is called.
    categories : Categories
        Of the training table.
    found : iterable of mapping from features to Unseen
        Of each partition, in their order.
    """
    total: dict[int, Unseen] = {}
    for own in found:
        for feature, unseen in own.items():
            before = total.get(feature, unseen._replace(n_rows=0))
            total[feature] = before._replace(n_rows=before.n_rows + unseen.n_rows)
    encoding = categories.encoding
    for feature, unseen in sorted(total.items()):
        assert encoding is not None  # without one no category is unknown
        text = unseen_text(encoding.origin(feature).column.name, unseen)
        warnings.warn(f"{name}: {text}", stacklevel=caller_level())
