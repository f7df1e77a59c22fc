"""Find columns that alone determine the target; most often they were made from it.

A column of numbers does if each label has a range of values of its own. A column of text does if no
two labels share a value, and all labels but one have a single value. The missing values of either
must all have the same label. If the target is a quantity, a column of numbers does if it rises
wherever the target does, or falls wherever it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.cli.columns.training import TrainingData
from gpustump.model.encoding import NUMBERED, InputColumn

_LOOKED_AT = 500
"""Rows that are checked first; they exclude almost every column."""


class _Labels(NamedTuple):
    """Rows in the order of their labels.

    Attributes
    ----------
    order : ndarray (n_rows,) of int64
    starts : ndarray (n_classes,) of int64
        Where each label begins.
    """

    order: np.ndarray
    starts: np.ndarray


def telling_columns(data: TrainingData) -> list[InputColumn]:
    """The columns that determine the target without error."""
    if data.is_quantity:
        return list(_ordered_alike(data))
    _, codes = np.unique(data.y, return_inverse=True)
    some = np.unique(np.linspace(0, len(codes) - 1, _LOOKED_AT).astype(np.int64))
    labels, labels_of_some = _in_order(codes), _in_order(codes[some])
    found, end = [], 0
    for column in data.encoding.columns:
        start, end = end, end + len(column.features)
        features = slice(start, end)
        is_set = column.kind == NUMBERED
        if _tells(data.X[some, features], labels_of_some, is_set=is_set) and _tells(
            data.X[:, features], labels, is_set=is_set
        ):
            found.append(column)
    return found


def _ordered_alike(data: TrainingData) -> Iterator[InputColumn]:
    """The columns of numbers that rise, or fall, wherever the target does."""
    order = np.argsort(data.y, kind="stable")
    rises = np.diff(data.y[order]) > 0
    if np.count_nonzero(rises) < 2:
        return
    start = 0
    for column in data.encoding.columns:
        feature, start = start, start + len(column.features)
        if len(column.features) != 1 or column.kind == NUMBERED:
            continue
        steps = np.diff(np.asarray(data.X[:, feature], dtype=np.float64)[order])
        is_alike = not steps[~rises].any() and not np.isnan(steps).any()
        if is_alike and ((steps[rises] > 0).all() or (steps[rises] < 0).all()):
            yield column


def _in_order(codes: np.ndarray) -> _Labels:
    order = np.argsort(codes, kind="stable")
    return _Labels(order, np.unique(codes[order], return_index=True)[1])


def _tells(features: np.ndarray, labels: _Labels, *, is_set: bool) -> bool:
    """Whether the features of a column, (n_rows, n_features), determine the label of each row.

    `is_set` says that one feature holds numbers of categories, whose order means nothing.
    """
    if not features.shape[1]:
        return False
    missing = np.isnan(features[:, 0])[labels.order]
    if np.count_nonzero(np.logical_or.reduceat(missing, labels.starts)) > 1:
        return False
    if is_set or features.shape[1] > 1:
        values = features[:, 0] if is_set else np.asarray(features == 1).argmax(axis=1)
        values = values[labels.order]
        parts = np.split(values, labels.starts[1:])
        gone = np.split(missing, labels.starts[1:])
        return _have_own_values([p[~g] for p, g in zip(parts, gone, strict=True)])
    return _are_apart(np.asarray(features[:, 0])[labels.order], labels)


def _are_apart(values: np.ndarray, labels: _Labels) -> bool:
    """Whether no label has a value between two values of another."""
    lowest = np.fmin.reduceat(values, labels.starts)
    highest = np.fmax.reduceat(values, labels.starts)
    has_values = ~np.isnan(lowest)
    lowest, highest = lowest[has_values], highest[has_values]
    order = np.argsort(lowest, kind="stable")
    return bool((highest[order][:-1] < lowest[order][1:]).all())


def _have_own_values(parts: list[np.ndarray]) -> bool:
    """Whether labels share no value, and all but one of them have a single value."""
    values = [set(np.unique(part).tolist()) for part in parts]
    n_values = [len(own) for own in values]
    is_shared = len(set().union(*values)) < sum(n_values)
    return not is_shared and sum(n > 1 for n in n_values) <= 1
