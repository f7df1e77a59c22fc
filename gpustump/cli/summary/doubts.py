"""What beginners overlook: warnings at the end of the summary of a training."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from gpustump import arrays
from gpustump.cli.summary.held_out import ScoredPart
from gpustump.cli.wording import label_text, percent
from gpustump.data.readable import counted, listed, quoted

_LEAST_ROWS = 50
"""Fewer rows are no evidence of anything."""

_MOST_VALUES = 2**22
"""Of a larger table some rows are looked at to find out what one column tells."""

_LARGE_SHARE = 0.05
"""A column with a smaller share of the votes hardly matters."""

_CLEARLY = 1.02
"""A log-loss is clearly larger than another if it is so many times as large."""

_NEARLY_ALL, _OF_THE_ERROR = 0.99, 0.1
"""A column that alone is right in this share of the rows, with this part of the errors of always
predicting the largest class, probably holds the answer; so does one that explains this share of
the variance of a quantity."""


def doubts(judged: ScoredPart, *, is_held_out: bool, is_balanced: bool) -> list[tuple[str, str]]:
    """Names and values of rows of the summary.

    Parameters
    ----------
    judged : ScoredPart
        The rows held out, or those trained on if none are.
    is_held_out : bool
    is_balanced : bool
        Whether all classes had the same weight in training.
    """
    if len(judged.rows) < _LEAST_ROWS:
        return []
    found = [*_about_columns(judged)]
    if is_held_out and not judged.model.is_regression:
        if not is_balanced:  # weighted classes have other probabilities on purpose
            found += _about_probabilities(judged)
        found += _about_classes(judged, is_balanced=is_balanced)
    lines = [textwrap.wrap(text, 60, break_on_hyphens=False) for text in found]
    return [("" if k else "warning", line) for own in lines for k, line in enumerate(own)]


def _about_columns(judged: ScoredPart) -> Iterator[str]:
    """Columns that look like an ID, and the one with the most votes if it looks like the answer."""
    model, data = judged.model, judged.data
    if arrays.is_sparse(data.X):
        return
    widths = [len(column.features) for column in data.encoding.columns]
    features = np.split(np.arange(model.n_features), np.cumsum(widths)[:-1])
    shares = model.feature_importances()
    votes = [float(shares[own].sum()) for own in features]
    for column, own, share in zip(data.encoding.columns, features, votes, strict=True):
        if share < _LARGE_SHARE or column.kind != "number":
            continue
        values = data.X[:, own[0]]
        if (np.floor(values) == values).all() and len(np.unique(values)) == len(values):
            name = quoted(column.name)
            yield (
                f"{name} holds another whole number in each row, as an ID does, and has "
                f"{percent(share)} of the votes. If it is one, leave it out with --drop {name}."
            )
    most = int(np.argmax(votes))
    if told := _told_by(features[most], judged):
        name = quoted(data.encoding.columns[most].name)
        answer = "does it hold the answer? If so, leave it out with --drop"
        yield f"{name} alone {told}: {answer} {name}."


def _told_by(features: np.ndarray, judged: ScoredPart) -> str:
    """What some features tell of the target, if that is nearly all; otherwise nothing."""
    model, data = judged.model, judged.data
    n_values = len(judged.rows) * len(model.term_names) * model.n_outputs
    some = slice(None, None, -(-n_values // _MOST_VALUES))
    y, weights = judged.y[some], None if judged.weights is None else judged.weights[some]
    is_known = any(own is not None for own in data.offsets)  # beforehand, in part
    if is_known or (weights is not None and not weights.any()):
        return ""
    terms = [*features, len(model.term_names)]  # the last is the intercept
    scores = np.asarray(model.explain(data.X[judged.rows[some]]))[..., terms].sum(axis=-1)
    if model.is_regression:
        unit = float(np.abs(y).max()) or 1.0  # squares of large targets overflow
        true, predicted = y / unit, model.quantities_of(scores) / unit
        of_mean = np.average((true - np.average(true, weights=weights)) ** 2, weights=weights)
        error = np.average((true - predicted) ** 2, weights=weights)
        is_nearly_all = error <= (1.0 - _NEARLY_ALL) * of_mean
        return "explains nearly all differences of the target" if is_nearly_all else ""
    right = float(np.average(model.labels_of(scores) == y, weights=weights))
    largest = max(float(np.average(y == label, weights=weights)) for label in model.classes)
    is_nearly_all = right >= _NEARLY_ALL and 1.0 - right <= _OF_THE_ERROR * (1.0 - largest)
    return f"predicts {percent(right)} of the rows" if is_nearly_all else ""


def _about_probabilities(judged: ScoredPart) -> Iterator[str]:
    """Probabilities that are worse than the same ones for each row."""
    if judged.log_loss > _CLEARLY * judged.log_loss_of_shares:
        text = "by the held-out log-loss, the probabilities are worse than the classes' shares."
        if judged.model.n_bags == 1:
            text += " --glass-box learns probabilities, and stops before it learns noise."
        yield text


def _about_classes(judged: ScoredPart, *, is_balanced: bool) -> Iterator[str]:
    """Classes of the rows held out that are predicted for none of them."""
    model, y = judged.model, judged.y
    predicted = {*model.labels_of(judged.scores).tolist()}
    never = [label for label in model.classes if label in {*y.tolist()} - predicted]
    if never:
        names = listed([label_text(label) for label in never], 3)
        n_rows = counted(sum(int((y == label).sum()) for label in never), "row")
        text = f"never predicted for rows held out: {names}, the class of {n_rows}."
        if not is_balanced:
            text += " --balanced gives all classes the same weight."
        yield text
