"""The rows on the page of a model: those of a file, best those that training held out."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from gpustump.cli.columns.model import read_features
from gpustump.cli.columns.training import (
    BREAST_CANCER_TARGET,
    TrainingData,
    held_out_in_training,
    split_rows,
)
from gpustump.cli.commands.audit import columns_of, read_audit_data
from gpustump.cli.errors import InputError
from gpustump.cli.read.files import STANDARD_INPUT, shown_name
from gpustump.cli.wording import tell
from gpustump.data.fingerprint import fingerprint_of
from gpustump.estimators.recorded import FINGERPRINT
from gpustump.model.ensemble import StumpEnsemble


class PageRows(NamedTuple):
    """Features (n_rows, n_features), targets (n_rows,) if they are known, what is known of scores
    beforehand (n_rows,), and what the rows are."""

    X: np.ndarray | None
    y: np.ndarray | None = None
    known_scores: np.ndarray | None = None
    source: str | None = None


def page_rows(path: str | None, model: StumpEnsemble) -> tuple[PageRows, np.ndarray | None]:
    """The rows in a file that a model can be shown on, none without a file; and the features of all
    rows of the table.

    If the file is the table that the model was trained on, these are the rows that training held
    out. The model that `gpustump train` makes without a table has scikit-learn's.

    Raises
    ------
    InputError, OSError
        If it is not a table with the columns that the model needs.
    """
    details = model.details
    if path is None and details.get("target") != BREAST_CANCER_TARGET:
        return PageRows(None), None
    nothing = argparse.Namespace(target=None, weight=None, exposure=None, init_score=None)
    try:
        data = read_audit_data(path, model, columns_of(model, nothing))
        known = data.offsets.of_rows(data.X, model, of_scores=True)
    except InputError as error:
        if path == STANDARD_INPUT:  # it cannot be read again
            raise
        rows = PageRows(None) if path is None else _without_targets(path, model, error)
        return rows, rows.X
    held_out = _held_out(model, data)
    if held_out is None:
        rows = PageRows(None) if path is None else PageRows(data.X, data.y, known, data.source)
        return rows, data.X
    source = f"those of {data.source} that training held out"
    known = None if known is None else known[held_out]
    return PageRows(data.X[held_out], data.y[held_out], known, source), data.X


def _without_targets(path: str, model: StumpEnsemble, error: InputError) -> PageRows:
    """The features alone; stderr says why the page cannot measure the model on them."""
    X = read_features(path, model)
    tell(f"the page does not say how good the model is on {shown_name(path)}: {error}")
    return PageRows(X, source=shown_name(path))


def _held_out(model: StumpEnsemble, data: TrainingData) -> np.ndarray | None:
    """The rows that training held out; None if there are none, or this is another table."""
    details = model.details
    try:
        choice = held_out_in_training(details)
        if choice is None or FINGERPRINT not in details:
            return None
        known = data.offsets.of_rows(data.X, model)
        given, how = (data.X, data.y, data.weights), {"of_quantity": data.is_quantity}
        own = fingerprint_of(*given, **how, offset=known)
        if own.as_details() != details[FINGERPRINT]:
            return None
        return split_rows(data, *choice)[1]
    except (InputError, ValueError):
        return None
