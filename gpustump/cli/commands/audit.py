"""`gpustump audit`: derive a model again from its training table, and compare it round by round.

The model's file says how it was trained. Besides that, only what is compared is taken from it.
"""

from __future__ import annotations

import argparse
import importlib.util

import numpy as np

from gpustump.cli.columns.audit import columns_of, read_audit_data, rows_text
from gpustump.cli.columns.constraints import by_feature
from gpustump.cli.columns.model import LoadedModel, load_model
from gpustump.cli.columns.training import TrainingData, split_rows
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.method import Recipe, check_device_option, estimator, recipe_of
from gpustump.cli.read.files import FileState, check_one_standard_input, check_unchanged, shown_name
from gpustump.cli.summary.layout import name_value_lines
from gpustump.data.readable import shortened, shown
from gpustump.estimators.audit import audit_with
from gpustump.estimators.base import Data
from gpustump.estimators.recorded import Recorded, checked_dtype, of_estimator, recorded
from gpustump.estimators.targets import Offset

SAME, DIFFERENT = 0, 1
"""Exit codes."""


def run(arguments: argparse.Namespace) -> int:
    """Print what the audit found; the exit code tells whether the data give the same model."""
    check_one_standard_input(arguments.model, arguments.data)
    check_device_option(arguments.device)
    loaded = load_model(arguments.model)
    details = loaded.model.details
    columns = columns_of(loaded.model, arguments)
    with as_input_error():
        recipe = recipe_of(details)
        known = _known(loaded, recipe)
    before = FileState.of(arguments.data)
    data = read_audit_data(arguments.data, loaded, columns)
    kept = None if recipe is None else _kept(data, recipe)
    with as_input_error():
        has_bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
        means = {
            "n_jobs": arguments.jobs,
            "max_memory": arguments.max_memory,
            "verbose": int(has_bar),
        }
        offset = Offset(*data.offsets)
        given = Data(data.X, data.y, data.weights, arguments.device, offset=offset)
        found = audit_with(loaded.model, known, given, kept=kept, means=means)
    check_unchanged(before, if_mapped=True)
    if not arguments.quiet:
        n_held_out = 0 if kept is None else int(np.count_nonzero(~kept))
        rows = [
            ("model", shortened(shown_name(arguments.model))),
            ("table", f"{shortened(data.source)}, {rows_text(data, n_held_out)}"),
            *found.rows(),
        ]
        print("\n".join(name_value_lines(rows)))
    return SAME if found.same else DIFFERENT


def _known(loaded: LoadedModel, recipe: Recipe | None) -> Recorded:
    """How the model was trained."""
    if recipe is None:
        known = recorded(loaded.model.details)
        if known is None:
            raise InputError(
                "the model does not say how it was trained: models of `gpustump train` do, and "
                "those of estimators. For any other model, use "
                "gpustump.audit(model, X, y, estimator=...) in Python, with the parameters of its "
                "fit."
            )
        return known
    encoding = loaded.encoding
    unknown = set(recipe.monotone) - {column.name for column in encoding.columns}
    if unknown:
        raise InputError(
            f"the model's details name a monotone constraint of {shown(min(unknown))}, which is "
            "not one of its columns."
        )
    own = estimator(
        recipe.method,
        categorical_features=list(encoding.categorical_features) or None,
        monotonic_cst=by_feature(encoding, recipe.monotone),
    )
    checked = of_estimator(own).set_params(random_state=recipe.seed)
    return Recorded(checked, dtype=checked_dtype(loaded.model.details.get("dtype")))


def _kept(data: TrainingData, recipe: Recipe) -> np.ndarray | None:
    """The rows that training did not hold out; None for all."""
    try:
        rows, held_out = split_rows(data, recipe.test_size, recipe.seed)
    except InputError as error:  # its advice is for `train`
        raise InputError(
            f"{data.source} is not the table that the model was trained on: training held out rows "
            f"(--test-size {recipe.test_size}), and these {rows_text(data, 0)} cannot be split so."
        ) from error
    if held_out is None:
        return None
    kept = np.zeros(len(data.y), dtype=bool)
    kept[rows] = True
    return kept
