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
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gpustump import __version__
from gpustump.arrays.order_keys import working_dtype
from gpustump.cli import checkpoint
from gpustump.cli.checkpoint import rounds_in, telling_of_the_rounds
from gpustump.cli.columns.constraints import by_feature, constraints_of
from gpustump.cli.columns.targets import OffsetColumns
from gpustump.cli.columns.training import (
    Part,
    TrainingData,
    read_training_data,
    split,
    weights_of,
)
from gpustump.cli.errors import as_input_error, system_errors_at
from gpustump.cli.method import Method, check_device_option, estimator, method_of, settings
from gpustump.cli.read.files import FileState, check_unchanged
from gpustump.cli.summary.layout import name_value_lines
from gpustump.cli.summary.training import FinishedTraining, summary
from gpustump.cli.write import report as html_report
from gpustump.cli.write.model import (
    check_model_output,
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
    training = _trained(arguments)
    with as_input_error():  # names or labels that no file can hold
        written = write_model(training.model, arguments.output)
    checkpoint.remove(arguments)
    if arguments.quiet and arguments.report is None:
        return
    rows = summary(training)
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


def _trained(arguments: argparse.Namespace) -> FinishedTraining:
    """Read the table, split it, and train; the model has names and details, as it is saved."""
    from gpustump.estimators.checkpointing import fingerprint_with
    from gpustump.estimators.targets import Offset

    before = FileState.of(arguments.data)
    data = read_training_data(arguments)
    method = method_of(arguments, is_quantity=data.is_quantity)
    trained, held_out = split(data, arguments.test_size, arguments.seed)
    constraints = constraints_of(data, arguments.monotone)
    started = time.perf_counter()
    fitted = _fitted(data, trained, method, constraints, arguments)
    seconds = time.perf_counter() - started
    given = (data.X, data.y, data.weights, Offset(*data.offsets))
    fingerprint = fingerprint_with(*given, fitted._target)
    check_unchanged(before, if_mapped=True)
    method = replace(method, bags=fitted.model_.n_bags)
    offsets = OffsetColumns.of_options(arguments)._asdict()
    details = {  # what `predict` and `audit` need; the same on every machine
        "gpustump": __version__,
        "target": data.target,
        **({} if arguments.weight is None else {"weight": arguments.weight}),
        **{name: own for name, own in offsets.items() if own},
        "encoding": data.encoding.as_details(),
        "training": {
            **settings(method, fitted.n_estimators_),
            "test_size": arguments.test_size,
            "seed": arguments.seed,
            **({"monotone": constraints} if constraints else {}),
        },
        "dtype": working_dtype(str(data.X.dtype)),
        "fingerprint": fingerprint.as_details(),
    }
    names = data.encoding.feature_names
    model = replace(fitted.model_, feature_names=names, details=details)
    return FinishedTraining(fitted, model, data, trained, held_out, seconds, method)


def _fitted(
    data: TrainingData,
    part: Part,
    method: Method,
    constraints: Mapping[str, int],
    arguments: argparse.Namespace,
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
        monotonic_cst=by_feature(data.encoding, constraints),
        checkpoint=checkpoint.checkpoint_of(arguments),
    )
    offsets = {name: own for name, own in data.offsets._asdict().items() if own is not None}
    with as_input_error():
        wanted.fit(data.X, data.y, weights_of(data, part), **offsets)
    return wanted
