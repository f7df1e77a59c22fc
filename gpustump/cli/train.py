"""`gpustump train`: table -> features and labels -> model -> figures on held-out rows -> file.

Whatever can be refused is refused before the training: the output file, the device, the columns,
the target, the split. The model is written before it is reported; so is the page, if one is wanted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump import __version__
from gpustump.cli import report, report_page, summary
from gpustump.cli.errors import input_errors, named_errors
from gpustump.cli.outputs import check_distinct, check_ending, check_output, check_replaced
from gpustump.cli.task import Part, Task, split, task_of
from gpustump.data.readable import printable, readable_bytes
from gpustump.engines.announcements import listeners
from gpustump.model.model_file import FORMAT
from gpustump.model.whole_file import whole_file

if TYPE_CHECKING:
    from gpustump import AdaBoostClassifier


def run(arguments: argparse.Namespace) -> None:
    """Train as the command line says."""
    if arguments.quiet:
        listeners.clear()
    check_output(arguments.output, "--output", inputs=(arguments.data,))
    if not arguments.force:
        check_replaced(arguments.output, "--output", FORMAT.encode(), "gpustump model")
    if arguments.report is not None:
        _check_report(arguments)
    _check_device(arguments.device)
    task = task_of(arguments)
    trained, held_out = split(task, arguments.test_size, arguments.seed)
    started = time.perf_counter()
    classifier = _fitted(task, trained, arguments)
    seconds = time.perf_counter() - started
    model = replace(
        classifier.model_,
        feature_names=task.encoding.feature_names,
        details=_details(task, arguments),
    )
    model.save(arguments.output)
    if arguments.quiet and arguments.report is None:
        return
    rows = [
        *summary.about_data(task, trained, held_out),
        *summary.about_training(classifier, model, trained, arguments.rounds),
        *summary.about_held_out(model, held_out),
        *summary.about_features(model, task.encoding),
        ("time", f"{seconds:.2f} s to fit, on {classifier.device_}{_of_it_compiling()}"),
        ("digest", model.digest()),
    ]
    lines = report.pairs([*rows, ("written", _written(arguments.output))])
    _say(lines, arguments)
    if arguments.report is not None:
        content = report_page.page(classifier, model, task, (trained, held_out), rows)
        with named_errors(f"--report {arguments.report}"):
            with whole_file(arguments.report) as file:
                file.write(content)
            written = _written(arguments.report)
        _say(" " * _indent(lines, arguments.output) + written, arguments)


def _say(text: str, arguments: argparse.Namespace) -> None:
    """Print what is known so far: what comes next may take a while, or fail."""
    if not arguments.quiet:
        print(text, flush=True)


def _indent(lines: str, value: str) -> int:
    """Where the values begin in a list of pairs, whose last one begins with `value`."""
    return lines.splitlines()[-1].index(printable(value))


def _written(path: str) -> str:
    there = path if os.path.exists(path) else os.path.realpath(path)  # by way of no folder
    return f"{path}, {readable_bytes(os.path.getsize(there))}"


def _check_report(arguments: argparse.Namespace) -> None:
    """Refuse a report that could not be written before the table is read."""
    path: str = arguments.report
    check_ending(path, "--report", (".html", ".htm"))
    check_output(path, "--report", inputs=(arguments.data,))
    check_distinct(("--report", path), ("--output", arguments.output))
    if not arguments.force:
        check_replaced(path, "--report", report_page.MARK.encode(), "report of gpustump")
    report_page.check_libraries()


def _check_device(name: str) -> None:
    """Refuse a GPU that cannot be had before the table is read."""
    from gpustump.arrays.devices import DeviceError, check_usable

    try:
        check_usable(name)
    except DeviceError as error:
        raise DeviceError(f"--device {name}: {error}") from error


def _fitted(task: Task, part: Part, arguments: argparse.Namespace) -> AdaBoostClassifier:
    """Train on a part of the rows: the others get no weight, and are not copied."""
    from gpustump import AdaBoostClassifier

    weights = part.weights
    if len(part.rows) < len(task.y):
        weights = np.zeros(len(task.y))
        weights[part.rows] = 1.0 if part.weights is None else part.weights
    bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
    classifier = AdaBoostClassifier(
        n_estimators=arguments.rounds,
        learning_rate=arguments.learning_rate,
        weak_learner=arguments.weak_learner,
        random_state=arguments.seed,
        device=arguments.device,
        n_jobs=arguments.jobs,
        max_memory=arguments.max_memory,
        verbose=int(bar),
    )
    with input_errors():
        return classifier.fit(task.X, task.y, weights)


def _of_it_compiling() -> str:
    """What part of the time is never needed again on this machine."""
    if "gpustump.engines.cpu.compiling" not in sys.modules:
        return ""
    from gpustump.engines.cpu.compiling import seconds_compiling

    seconds = seconds_compiling()
    return f"; {seconds:.2f} s of it to compile the kernels, once" if seconds else ""


def _details(task: Task, arguments: argparse.Namespace) -> dict[str, object]:
    """What `predict` needs, and how the model came about; the same on every machine."""
    return {
        "gpustump": __version__,
        "target": task.target,
        "encoding": task.encoding.as_details(),
        "training": {
            "rounds": arguments.rounds,
            "learning_rate": arguments.learning_rate,
            "weak_learner": arguments.weak_learner,
            "test_size": arguments.test_size,
            "seed": arguments.seed,
        },
    }
