"""What speaks against using a model as it is: warnings at the end of the summary of a training."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.cli.columns.model import contributions_of, terms_that_vote
from gpustump.cli.columns.training import Part, TrainingData
from gpustump.cli.summary.held_out import ScoredPart, class_shares
from gpustump.cli.wording import label_text, percent
from gpustump.data.labels import class_numbers
from gpustump.data.readable import counted, listed, quoted
from gpustump.model.encoding import InputColumn
from gpustump.model.ensemble import StumpEnsemble

_LEAST_ROWS, _LEAST_IDS = 50, 100
"""Fewer rows are no evidence of anything, and no evidence that a column holds IDs."""

_MOST_VALUES, _MOST_COLUMNS = 2**22, 20
"""Of larger tables some rows are looked at to find out what a column alone tells; and these many
columns, those with most votes."""

_LARGE_SHARE = 0.05
"""A column with a smaller share of the votes hardly matters."""

_CLEARLY = 1.02
"""A log-loss is clearly larger than another if it is so many times as large."""

_WIDTH = 60
"""The most characters of a line."""

_NEARLY_ALL, _OF_THE_ERROR = 0.99, 0.1
"""A column that alone is right in this share of the rows, with this part of the errors of always
predicting the largest class, probably holds the answer; so does one that explains this share of
the variance of a quantity."""


def doubts(
    model: StumpEnsemble,
    data: TrainingData,
    held_out: ScoredPart | None,
    trained: ScoredPart,
    *,
    is_balanced: bool,
) -> Iterator[tuple[str, str]]:
    """Names and values of rows of the summary.

    Parameters
    ----------
    model : StumpEnsemble
    data : TrainingData
    held_out : ScoredPart or None
        The rows held out, if there are any.
    trained : ScoredPart
        The rows trained on.
    is_balanced : bool
        Whether all classes had the same weight in training.
    """
    columns = _voting(model, data)
    yield from _about_numbers_of_rows(data, columns)
    yield from _about_one_column(model, (held_out or trained).part, columns)
    if held_out is not None and not model.is_regression:
        if not is_balanced:  # weighted classes have other probabilities on purpose
            yield from _about_probabilities(held_out)
        yield from _about_classes(held_out, is_balanced=is_balanced)


class _Voting(NamedTuple):
    """A column, its features, and its share of the votes."""

    column: InputColumn
    features: list[int]
    share: float


def _voting(model: StumpEnsemble, data: TrainingData) -> list[_Voting]:
    """All columns, with what they have."""
    shares, end, found = model.feature_importances(), 0, []
    for column in data.encoding.columns:
        start, end = end, end + len(column.features)
        found.append(_Voting(column, [*range(start, end)], float(shares[start:end].sum())))
    return found


def _about_numbers_of_rows(data: TrainingData, columns: list[_Voting]) -> Iterator[tuple[str, str]]:
    """Columns that hold another whole number in each row, as the numbers of customers do."""
    for column, features, share in columns:
        if column.kind != "number" or share < _LARGE_SHARE or len(data.y) < _LEAST_IDS:
            continue
        values = data.X[:, features[0]]
        if (np.floor(values) == values).all() and len(np.unique(values)) == len(values):
            name = quoted(column.name)
            yield from _warning(
                f"{name} holds another whole number in each row, as an ID does, and has "
                f"{percent(share)} of the votes. If it is one, leave it out with --drop {name}."
            )


def _about_one_column(
    model: StumpEnsemble, part: Part, columns: list[_Voting]
) -> Iterator[tuple[str, str]]:
    """The first column from which the model predicts nearly all alone: it may hold the answer."""
    n_terms = len(terms_that_vote(model)) if arrays.is_sparse(part.X) else model.n_features
    some = slice(None, None, -(-len(part.y) * n_terms * model.n_outputs // _MOST_VALUES))
    y, weights = part.y[some], None if part.weights is None else part.weights[some]
    is_known = any(own is not None for own in part.offsets)  # beforehand, in part
    has_weight = weights is None or weights.any()
    if len(y) < _LEAST_ROWS or is_known or not has_weight:
        return
    largest = sorted(columns, key=lambda own: -own.share)[:_MOST_COLUMNS]
    terms = [j for own in largest for j in own.features] + [model.n_features + len(model.pairs)]
    parts, at = contributions_of(model, part.X[part.rows[some]], terms), 0
    for column, features, _ in largest:
        own = [*range(at, at + len(features)), -1]  # the last is the intercept
        at += len(features)
        told = _told_by(model, parts[..., own].sum(axis=-1), y, weights)
        if told:
            name = quoted(column.name)
            yield from _warning(
                f"{name} alone {told}: does it hold the answer? If so, leave it out with --drop "
                f"{name}."
            )
            return


def _told_by(
    model: StumpEnsemble, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None
) -> str:
    """What scores tell of the target, if that is nearly all; otherwise nothing."""
    if model.is_regression:
        unit = float(np.abs(y).max()) or 1.0  # squares of large targets overflow
        true, predicted = y / unit, model.quantities_of(scores) / unit
        mean = np.average(true, weights=weights)
        of_mean = np.average((true - mean) ** 2, weights=weights)
        error = np.average((true - predicted) ** 2, weights=weights)
        is_nearly_all = error <= (1.0 - _NEARLY_ALL) * of_mean
        return "explains nearly all differences of the target" if is_nearly_all else ""
    right = float(np.average(model.labels_of(scores) == y, weights=weights))
    of_largest = class_shares(model, class_numbers(model.classes, y, scores), weights).max()
    is_nearly_all = right >= _NEARLY_ALL and 1.0 - right <= _OF_THE_ERROR * (1.0 - of_largest)
    return f"predicts {percent(right)} of the rows" if is_nearly_all else ""


def _about_probabilities(held_out: ScoredPart) -> Iterator[tuple[str, str]]:
    """Probabilities that are worse than the same ones for each row."""
    if len(held_out.part.y) < _LEAST_ROWS:
        return
    if held_out.log_loss <= _CLEARLY * held_out.log_loss_of_shares:
        return
    text = "by the held-out log-loss, the probabilities are worse than the classes' shares."
    if held_out.model.n_bags == 1:
        text += " --glass-box learns probabilities, and stops before it learns noise."
    yield from _warning(text)


def _about_classes(held_out: ScoredPart, *, is_balanced: bool) -> Iterator[tuple[str, str]]:
    """Classes of the rows held out that are predicted for none of them."""
    model, y = held_out.model, held_out.part.y
    predicted = {*model.labels_of(held_out.scores).tolist()}
    never = [label for label in model.classes if label in {*y.tolist()} - predicted]
    if never and len(y) >= _LEAST_ROWS:
        names = listed([label_text(label) for label in never], 3)
        n_rows = counted(sum(int((y == label).sum()) for label in never), "row")
        text = f"never predicted for rows held out: {names}, the class of {n_rows}."
        if not is_balanced:
            text += " --balanced gives all classes the same weight."
        yield from _warning(text)


def _warning(text: str) -> Iterator[tuple[str, str]]:
    """A warning as rows of the summary."""
    for k, line in enumerate(textwrap.wrap(text, _WIDTH, break_on_hyphens=False)):
        yield "" if k else "warning", line
