"""`gpustump audit`: derive a model again from its training table, and compare it round by round.

The model's file says how it was trained, and how the table is read: which columns are features,
which of them are text, which words stand for missing values. The target and the weights are named
by options, or by the file. Besides that, only what is compared is taken from it.
"""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.columns.model import features_in, load_model, read_for_model
from gpustump.cli.columns.targets import OtherColumns, target_labels, target_numbers
from gpustump.cli.columns.training import (
    BREAST_CANCER_TARGET,
    TrainingData,
    as_read,
    breast_cancer,
    held_out_in_training,
    split_rows,
    with_target,
    words_removed,
)
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.method import check_device_option, resources
from gpustump.cli.read.files import (
    check_one_standard_input,
    shown_name,
)
from gpustump.cli.read.table import TEXT, InputTable
from gpustump.cli.wording import aligned_lines
from gpustump.data.columns import Column
from gpustump.data.readable import counted, shortened, thousands
from gpustump.estimators.audit import audit_with
from gpustump.estimators.base import Data
from gpustump.estimators.recorded import Recorded, recorded
from gpustump.estimators.targets import Offset
from gpustump.model.ensemble import StumpEnsemble

SAME, DIFFERENT = 0, 1
"""Exit codes."""


def run(arguments: argparse.Namespace) -> int:
    """Print what the audit found; the exit code tells whether the data give the same model."""
    check_one_standard_input(arguments.model, arguments.data)
    check_device_option(arguments.device)
    model = load_model(arguments.model)
    columns = columns_of(model, arguments)
    choice = held_out_in_training(model.details)
    with as_input_error():
        known = _known(model, choice)
    data = read_audit_data(arguments.data, model, columns)
    kept = None if choice is None else _kept(data, *choice)
    with as_input_error():
        given = Data(data.X, data.y, data.weights, offset=Offset(*data.offsets))
        found = audit_with(model, known, given, kept=kept, means=resources(arguments))
    if not arguments.quiet:
        n_held_out = 0 if kept is None else int(np.count_nonzero(~kept))
        rows = [
            ("model", shortened(shown_name(arguments.model))),
            ("table", f"{shortened(data.source)}, {rows_text(data, n_held_out)}"),
            *found.rows(),
        ]
        print("\n".join(aligned_lines(rows)))
    return SAME if found.same else DIFFERENT


def _known(model: StumpEnsemble, choice: tuple[float, int] | None) -> Recorded:
    """How the model was trained."""
    known = recorded(model.details)
    if known is None:
        raise InputError(
            "the model does not say how it was trained: models of `gpustump train` do, and those "
            "of estimators. For any other model, use gpustump.audit(model, X, y, estimator=...) "
            "in Python, with the parameters of its fit."
        )
    if choice is not None:  # for the report; what the fit drew at random is in the record
        known.estimator.set_params(random_state=choice[1])
    return known


def _kept(data: TrainingData, share: float, seed: int) -> np.ndarray | None:
    """The rows that training did not hold out; None for all."""
    try:
        rows, held_out = split_rows(data, share, seed)
    except InputError as error:  # its advice is for `train`
        raise InputError(
            f"{data.source} is not the table that the model was trained on: training held out rows "
            f"(--test-size {share}), and these {rows_text(data, 0)} cannot be split so."
        ) from error
    if held_out is None:
        return None
    kept = np.zeros(len(data.y), dtype=bool)
    kept[rows] = True
    return kept


def columns_of(model: StumpEnsemble, arguments: argparse.Namespace) -> OtherColumns:
    """The target, the weights and the offsets: by the options, or else by the model's details.

    Raises
    ------
    InputError
        If neither says which column is the target, or a name in the details is not text.
    """
    columns = OtherColumns.of_model(model, arguments)
    if columns.target is None:
        raise InputError(
            "--target COLUMN is needed: which column is predicted? The model does not say."
        )
    return columns


def read_audit_data(path: str | None, model: StumpEnsemble, columns: OtherColumns) -> TrainingData:
    """The features, targets and weights in a file, or in the breast-cancer data if there is none.

    Rows without a target are left out, as training either leaves them out or refuses the table.

    Raises
    ------
    InputError, OSError
        If it is not a table with the columns that the model was trained on.
    """
    encoding = model.encoding
    if path is None and columns.target != BREAST_CANCER_TARGET:
        raise InputError(
            "DATA is needed: the table that the model was trained on. (Without DATA, "
            "scikit-learn's breast-cancer data is used; this model was not trained on it.)"
        )

    def others_in(header: InputTable) -> dict[int, str | None]:
        kinds: dict[int, str | None] = dict.fromkeys(columns.places(header))
        _, target_at = columns.target_in(header)
        if target_at is not None and _has_text_labels(model):
            kinds[target_at] = TEXT
        return kinds

    table = breast_cancer()[0] if path is None else read_for_model(path, model, others_in)
    table = words_removed(table, encoding.missing)
    table, missing = with_target(table, _target(table, model, columns))
    target = _target(table, model, columns)
    values = (target_numbers if model.is_regression else target_labels)(target, table.source)
    weights = columns.weights(table)
    X = features_in(table, model, columns.places(table))
    return TrainingData(
        *(table.source, target.name, X, values, weights, encoding, int(missing.sum()), table.notes),
        is_quantity=model.is_regression,
        offsets=columns.offsets(table),
    )


def _has_text_labels(model: StumpEnsemble) -> bool:
    """Whether labels are text, so that numbers in their column were read as text."""
    return bool(model.classes) and all(isinstance(label, str) for label in model.classes)


def _target(table: InputTable, model: StumpEnsemble, columns: OtherColumns) -> Column:
    """The target as training read it."""
    column, place = columns.target_in(table)
    return as_read(column, place, model.encoding.missing, is_text=_has_text_labels(model))


def rows_text(data: TrainingData, n_held_out: int) -> str:
    """How many rows there are, how many training held out, and how many were left out."""
    parts = []
    if n_held_out:
        parts.append(f"{thousands(n_held_out)} of them held out in training")
    if data.n_without_target:
        parts.append(f"{thousands(data.n_without_target)} without a target left out")
    return ", ".join([counted(len(data.y), "row"), *parts])
