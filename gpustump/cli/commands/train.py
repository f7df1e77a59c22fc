"""`gpustump train`: train a model on a table, judge it on held-out rows, write it to a file.

Everything that can be refused is refused before the training: the output files, the device, the
columns, the target, the split. The model is written first, then the summary and the report.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gpustump import __version__
from gpustump.arrays.order_keys import working_dtype
from gpustump.cli import checkpoint
from gpustump.cli.checkpoint import rounds_in, telling_of_the_rounds
from gpustump.cli.columns.constraints import by_feature, constraints_of
from gpustump.cli.columns.device_option import check_device_option
from gpustump.cli.columns.offsets import OffsetColumns
from gpustump.cli.columns.training import (
    FittedTraining,
    Part,
    TrainingData,
    read_training_data,
    split,
    weights_of,
)
from gpustump.cli.errors import as_input_error, system_errors_at
from gpustump.cli.method import Method, estimator, method_of, settings
from gpustump.cli.read.file_state import FileState, check_unchanged_if_mapped
from gpustump.cli.summary.layout import name_value_lines
from gpustump.cli.summary.training import FinishedTraining, summary
from gpustump.cli.write import report as html_report
from gpustump.cli.write.model import (
    check_model_output,
    replaced_model,
    write_model,
)
from gpustump.cli.write.paths import (
    STANDARD_OUTPUT,
    OutputFile,
    check_different_files,
    check_ending,
    check_output,
    check_replaced_file,
    kind_with_mark,
)
from gpustump.data.readable import counted, readable_bytes
from gpustump.engines.announcements import nobody_listens
from gpustump.model.whole_file import whole_file

if TYPE_CHECKING:
    from gpustump.estimators.boosters import BoostedEstimator

REPORT = kind_with_mark("report of gpustump", html_report.MARK.encode())


def run(arguments: argparse.Namespace) -> None:
    """Train as the options say."""
    silence = nobody_listens() if arguments.quiet else contextlib.nullcontext()
    with silence, telling_of_the_rounds(arguments):
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    method_of(arguments)  # refuses what is not defined, whatever the target is
    _check_outputs(arguments)
    check_device_option(arguments.device)
    before = rounds_in(arguments.checkpoint)
    found = _trained(arguments)
    method = method_of(arguments, is_quantity=found.data.is_quantity)
    _finish(found, method, arguments, before)


def _finish(
    found: FittedTraining, method: Method, arguments: argparse.Namespace, before: int | None
) -> None:
    """Write the model, remove the checkpoint, then write the summary and the report.

    `before` says how many rounds the checkpoint held at first.
    """
    method = replace(method, bags=found.estimator.model_.n_bags)
    training = _finished(found, method, arguments)
    replaced = replaced_model(arguments.output)
    with as_input_error():  # names or labels that no file can hold
        written = f"{write_model(training.model, arguments.output)}{replaced}"
    checkpoint.remove(arguments)
    if arguments.quiet and arguments.report is None:
        return
    rows = summary(training, with_route=arguments.verbose)
    if before and arguments.resume:
        rows = [*rows, ("went on", f"from {counted(before, 'round')} of {arguments.checkpoint}")]
    shown = [*rows, ("written", written)]
    _show(name_value_lines(shown), arguments)
    if arguments.report is not None:
        content = html_report.page(training, rows)
        with system_errors_at(f"--report {arguments.report}"):
            with whole_file(arguments.report) as file:
                file.write(content)
            size = readable_bytes(len(content))
            shown.append(("", f"{arguments.report}, {size}"))
        _show(name_value_lines(shown)[-1:], arguments)


def _show(lines: list[str], arguments: argparse.Namespace) -> None:
    """Print at once what is known: the next step may take a while, or fail."""
    if not arguments.quiet:
        stream = sys.stderr if arguments.output == STANDARD_OUTPUT else sys.stdout
        print("\n".join(lines), file=stream, flush=True)


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written, or should not be replaced, before the table is read."""
    inputs = () if arguments.data is None else (arguments.data,)
    model = OutputFile("--output", arguments.output)
    check_output(model, inputs=inputs)
    check_model_output(model, force=arguments.force)
    report = OutputFile("--report", arguments.report or "")
    outputs = [model] if arguments.report is None else [model, report]
    checkpoint.check_checkpoint_option(arguments, inputs, outputs)
    if arguments.report is None:
        return
    check_ending(report, (".html", ".htm"))
    check_output(report, inputs=inputs)
    check_different_files(report, model)
    check_replaced_file(report, REPORT, force=arguments.force)
    html_report.check_libraries()


def _trained(arguments: argparse.Namespace) -> FittedTraining:
    """Read the table, split it, and train."""
    from gpustump.estimators.checkpointing import fingerprint_with
    from gpustump.estimators.targets import Offset

    before = FileState.of(arguments.data)
    data = read_training_data(arguments)
    method = method_of(arguments, is_quantity=data.is_quantity)
    trained, held_out = split(data, arguments.test_size, arguments.seed)
    started = time.perf_counter()
    fitted = _fitted(data, trained, method, arguments)
    seconds = time.perf_counter() - started
    given = (data.X, data.y, data.weights, Offset(*data.offsets))
    fingerprint = fingerprint_with(*given, fitted._target)
    check_unchanged_if_mapped(before)
    return FittedTraining(fitted, data, trained, held_out, seconds, fingerprint)


def _finished(
    found: FittedTraining, method: Method, arguments: argparse.Namespace
) -> FinishedTraining:
    """The training, with the model as it is saved: with names and details."""
    data, fitted = found.data, found.estimator
    model = replace(
        fitted.model_,
        feature_names=data.encoding.feature_names,
        details=_details(found, method, arguments),
    )
    return FinishedTraining(
        fitted, model, data, found.trained, found.held_out, found.seconds, method
    )


def _fitted(
    data: TrainingData, part: Part, method: Method, arguments: argparse.Namespace
) -> BoostedEstimator:
    """Train on a part of the rows: the others get weight zero, so that the table is not copied."""
    has_bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
    wanted = estimator(
        method,
        categorical_features=data.encoding.categorical_features or None,
        random_state=arguments.seed,
        device=arguments.device,
        n_jobs=arguments.jobs,
        max_memory=arguments.max_memory,
        verbose=int(has_bar),
        monotonic_cst=by_feature(data.encoding, constraints_of(data, arguments.monotone)),
        checkpoint=checkpoint.checkpoint_of(arguments),
    )
    offsets = {name: own for name, own in data.offsets._asdict().items() if own is not None}
    with as_input_error():
        wanted.fit(data.X, data.y, weights_of(data, part), **offsets)
    return wanted


def _details(
    found: FittedTraining, method: Method, arguments: argparse.Namespace
) -> dict[str, object]:
    """What `predict` and `audit` need, and how the model was trained; the same on every machine."""
    data = found.data
    constraints = constraints_of(data, arguments.monotone)
    return {
        "gpustump": __version__,
        "target": data.target,
        **({} if arguments.weight is None else {"weight": arguments.weight}),
        **{n: own for n, own in OffsetColumns.of_options(arguments)._asdict().items() if own},
        "encoding": data.encoding.as_details(),
        "training": {
            **settings(method, found.estimator.n_estimators_),
            "test_size": arguments.test_size,
            "seed": arguments.seed,
            **({"monotone": constraints} if constraints else {}),
        },
        **_of_table(found),
    }


def _of_table(found: FittedTraining) -> dict[str, object]:
    """What identifies the training table, whatever kind of file it is in."""
    dtype = working_dtype(str(found.data.X.dtype))
    return {"dtype": dtype, "fingerprint": found.fingerprint.as_details()}
