"""`gpustump train`: train a model on a table, judge it on held-out rows, write it to a file.

Everything that can be refused is refused before the training: the output files, the device, the
columns, the target, the split. The model is written first, then the summary is printed.

The estimator writes the file of --checkpoint and goes on from it; see
`boosting.checkpoints.writing`. The command line uses or replaces a file that exists only if an
option says so, and removes it once the model is written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump import __version__
from gpustump.cli.columns.targets import OtherColumns
from gpustump.cli.columns.training import (
    TrainingData,
    by_feature,
    constraints_of,
    read_training_data,
    split,
    weights_of,
)
from gpustump.cli.errors import InputError, ToldInterrupt, as_input_error, system_errors_at
from gpustump.cli.method import Loss, check_device_option, estimator_of, loss_of, resources
from gpustump.cli.read.files import unchanged
from gpustump.cli.summary.training import FinishedTraining, summary
from gpustump.cli.wording import aligned_lines, tell
from gpustump.cli.write.files import (
    STANDARD_OUTPUT,
    OutputFile,
    check_model_output,
    write_model,
)
from gpustump.data.readable import counted
from gpustump.engines.announcements import nobody_listens

if TYPE_CHECKING:
    from gpustump.boosting.checkpoints.writing import Checkpoint
    from gpustump.estimators.boosters import BoostedEstimator


def run(arguments: argparse.Namespace) -> None:
    """Train as the options say."""
    silence = nobody_listens() if arguments.quiet else contextlib.nullcontext()
    with silence, _telling_of_the_rounds(arguments):
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    loss_of(arguments)  # refuses what is not defined, whatever the target is
    output = OutputFile("--output", arguments.output)
    output.check(arguments.data, arguments.feature_names)
    check_model_output(output, force=arguments.force)
    _check_checkpoint_option(arguments, output)
    check_device_option(arguments.device)
    before = _rounds_in(arguments.checkpoint)
    training = _trained(arguments)
    with as_input_error():  # names or labels that no file can hold
        written = write_model(training.model, output)
    _remove_checkpoint(arguments)
    if arguments.quiet:
        return
    rows = summary(training)
    if before and arguments.resume:
        rows = [*rows, ("went on", f"from {counted(before, 'round')} of {arguments.checkpoint}")]
    lines = aligned_lines([*rows, ("written", written)])
    print("\n".join(lines), file=sys.stderr if arguments.output == STANDARD_OUTPUT else sys.stdout)


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
        checkpoint=_checkpoint_of(arguments),
        **resources(arguments),
    )
    offsets = {name: own for name, own in data.offsets._asdict().items() if own is not None}
    with as_input_error():
        wanted.fit(data.X, data.y, weights_of(data, rows), **offsets)
    return wanted


def _check_checkpoint_option(arguments: argparse.Namespace, model: OutputFile) -> None:
    """Refuse a file that cannot be written, or that exists while no option says what to do with it.

    `model` is the other file that is written.
    """
    path = arguments.checkpoint
    if path is None:
        for option in ("resume", "checkpoint_every"):
            if getattr(arguments, option):
                name = option.replace("_", "-")
                raise InputError(f"--{name} is for a checkpoint; name its file with --checkpoint.")
        return
    own = OutputFile("--checkpoint", path)
    if own.is_stream:
        raise InputError(f"--checkpoint: {path} cannot be read again later; name a plain file.")
    own.check(arguments.data, arguments.feature_names)
    if os.path.realpath(own.path) == os.path.realpath(model.path):
        raise InputError(f"--checkpoint and --output both name {path}.")
    from gpustump.boosting.checkpoints.file import is_there

    if is_there(path) and not arguments.resume and not arguments.force:
        raise InputError(
            f"--checkpoint: {path} exists; --resume goes on from it, --force replaces it and "
            "starts again."
        )


def _checkpoint_of(arguments: argparse.Namespace) -> Checkpoint | None:
    """The estimator's `checkpoint` parameter; removes a file that is to be replaced."""
    if arguments.checkpoint is None:
        return None
    from gpustump.boosting.checkpoints.writing import Checkpoint

    if not arguments.resume:
        _remove_checkpoint(arguments)
    if arguments.checkpoint_every is None:
        return Checkpoint(arguments.checkpoint)
    rounds, seconds = arguments.checkpoint_every
    return Checkpoint(arguments.checkpoint, every_rounds=rounds, every_seconds=seconds)


def _remove_checkpoint(arguments: argparse.Namespace) -> None:
    """Remove the file, if there is one."""
    if arguments.checkpoint is not None:
        with (
            system_errors_at(f"--checkpoint {arguments.checkpoint}"),
            contextlib.suppress(FileNotFoundError),
        ):
            os.unlink(arguments.checkpoint)


def _rounds_in(path: str | None) -> int | None:
    """How many rounds a checkpoint holds; None if there is no checkpoint that can be read."""
    from gpustump.boosting.checkpoints.file import CheckpointError, is_there, read

    if path is None or not is_there(path):
        return None
    try:
        return read(path).n_rounds
    except (OSError, CheckpointError):
        return None


@contextlib.contextmanager
def _telling_of_the_rounds(arguments: argparse.Namespace) -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM end the command with a line that says what is kept.

    SIGTERM then ends the process, as it would have without a checkpoint.
    """
    if arguments.checkpoint is None:
        yield
        return
    from gpustump.boosting.checkpoints.writing import ending_in_order

    with ending_in_order(lambda: tell(_kept(arguments, "ended by SIGTERM"))):
        try:
            yield
        except KeyboardInterrupt as error:
            raise ToldInterrupt(_kept(arguments, "interrupted")) from error


def _kept(arguments: argparse.Namespace, what: str) -> str:
    rounds = _rounds_in(arguments.checkpoint)
    if rounds is None:
        return what
    how = "the same command" if arguments.resume else "the same command with --resume"
    if rounds == 0:
        return f"{what} before the first round was made; to start again, run {how}"
    made = counted(rounds, "round")
    return f"{what} after {made}, kept in {arguments.checkpoint}; to go on, run {how}"
