"""`gpustump train`: train a model on a table, judge it on held-out rows, write it to a file.

Everything that can be refused is refused before the training: the output files, the device, the
columns, the target, the split. The model is written first, then the summary is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump import __version__
from gpustump.cli import checkpoint
from gpustump.cli.checkpoint import rounds_in, telling_of_the_rounds
from gpustump.cli.columns.targets import OtherColumns
from gpustump.cli.columns.training import (
    TrainingData,
    by_feature,
    constraints_of,
    read_training_data,
    split,
    weights_of,
)
from gpustump.cli.errors import as_input_error
from gpustump.cli.method import Loss, check_device_option, estimator_of, loss_of, resources
from gpustump.cli.read.files import unchanged
from gpustump.cli.summary.training import FinishedTraining, summary
from gpustump.cli.wording import aligned_lines
from gpustump.cli.write.files import (
    STANDARD_OUTPUT,
    OutputFile,
    check_model_output,
    write_model,
)
from gpustump.data.readable import counted
from gpustump.engines.announcements import nobody_listens

if TYPE_CHECKING:
    from gpustump.estimators.boosters import BoostedEstimator


def run(arguments: argparse.Namespace) -> None:
    """Train as the options say."""
    silence = nobody_listens() if arguments.quiet else contextlib.nullcontext()
    with silence, telling_of_the_rounds(arguments):
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    loss_of(arguments)  # refuses what is not defined, whatever the target is
    _check_outputs(arguments)
    check_device_option(arguments.device)
    before = rounds_in(arguments.checkpoint)
    training = _trained(arguments)
    with as_input_error():  # names or labels that no file can hold
        written = write_model(training.model, OutputFile("--output", arguments.output))
    checkpoint.remove(arguments)
    if arguments.quiet:
        return
    rows = summary(training)
    if before and arguments.resume:
        rows = [*rows, ("went on", f"from {counted(before, 'round')} of {arguments.checkpoint}")]
    lines = aligned_lines([*rows, ("written", written)])
    print("\n".join(lines), file=sys.stderr if arguments.output == STANDARD_OUTPUT else sys.stdout)


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written, or should not be replaced, before the table is read."""
    model = OutputFile("--output", arguments.output)
    model.check(arguments.data, arguments.feature_names)
    check_model_output(model, force=arguments.force)
    checkpoint.check_checkpoint_option(arguments, model)


def _trained(arguments: argparse.Namespace) -> FinishedTraining:
    """Read the table, split it, and train; the model has names and details, as it is saved."""
    from gpustump.estimators.checkpointing import fingerprint_with
    from gpustump.estimators.recorded import FINGERPRINT, KEY, deciding_parameters
    from gpustump.estimators.targets import Offset

    is_mapped = arguments.data is not None and arguments.data.lower().endswith(".npy")
    with unchanged(arguments.data if is_mapped else None):
        data = read_training_data(arguments)
        loss = loss_of(arguments, is_quantity=data.is_quantity)
        trained, held_out = split(data, arguments.test_size, arguments.seed)
        constraints = constraints_of(data, arguments.monotone)
        started = time.perf_counter()
        fitted = _fitted(data, trained, loss, constraints, arguments)
        seconds = time.perf_counter() - started
        given = (data.X, data.y, data.weights, Offset(*data.offsets))
        fingerprint = fingerprint_with(*given, fitted._target)
    record = fitted.model_.details[KEY]
    made = {"n_estimators": fitted.n_estimators_, "n_bags": fitted.model_.n_bags}  # for None
    parameters, usual = record["parameters"] | made, deciding_parameters(type(fitted)())
    columns = OtherColumns.of_options(arguments)._replace(target=data.target)._asdict()
    details = {  # what `predict` and `audit` need; the same on every machine
        "gpustump": __version__,
        **{name: own for name, own in columns.items() if own is not None},
        "encoding": data.encoding.as_details(),
        KEY: {
            **record,
            "parameters": {n: own for n, own in parameters.items() if own != usual[n]},
        },
        "training": {"test_size": arguments.test_size, "seed": arguments.seed},
        FINGERPRINT: fingerprint.as_details(),
    }
    names = data.encoding.feature_names
    model = replace(fitted.model_, feature_names=names, details=details)
    return FinishedTraining(fitted, model, data, trained, held_out, seconds, loss, constraints)


def _fitted(
    data: TrainingData,
    rows: np.ndarray,
    loss: Loss,
    constraints: Mapping[str, int],
    arguments: argparse.Namespace,
) -> BoostedEstimator:
    """Train on some of the rows: the others get weight zero, so that the table is not copied."""
    wanted = estimator_of(
        arguments,
        loss,
        categorical_features=data.encoding.categorical_features or None,
        random_state=arguments.seed,
        monotonic_cst=by_feature(data.encoding, constraints),
        checkpoint=checkpoint.checkpoint_of(arguments),
        **resources(arguments),
    )
    offsets = {name: own for name, own in data.offsets._asdict().items() if own is not None}
    with as_input_error():
        wanted.fit(data.X, data.y, weights_of(data, rows), **offsets)
    return wanted
