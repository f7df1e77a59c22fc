"""`gpustump train`: table -> features and labels -> model -> figures on held-out rows -> file.

Whatever can be refused is refused before the training: the output file, the device, the columns,
the target, the split. The model is written before it is reported, and nothing else ever is.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump import __version__
from gpustump.cli import report
from gpustump.cli.encoding import UNITS, Encoding, encode, learn
from gpustump.cli.errors import InputError, counted, input_errors, listed, quoted
from gpustump.cli.labels import labels_of
from gpustump.cli.outputs import check_output, check_replaced_model
from gpustump.cli.tables import ArrayColumn, Column, Table, of_matrix, read_table

if TYPE_CHECKING:
    from gpustump import AdaBoostClassifier, StumpEnsemble

MOST_USED = 8
"""How many features the report names."""

CLASSES_SHOWN = 6

STOP_REASONS = {
    "perfect": "a stump without error ended it",
    "no edge": "no further stump is better than chance",
}


@dataclass(frozen=True)
class Task:
    """What is to be learnt.

    Attributes
    ----------
    source, target : str
    X : ndarray (n_rows, n_features)
    y : ndarray (n_rows,)
    weights : ndarray (n_rows,) or None
    encoding : Encoding
    dropped_rows : int
        Rows left out because their target is missing.
    """

    source: str
    target: str
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    encoding: Encoding
    dropped_rows: int


@dataclass(frozen=True)
class Part:
    """Some of the rows, to train on or to judge by."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None

    def taken(self, rows: np.ndarray) -> Part:
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.X[rows], self.y[rows], weights)


def run(arguments: argparse.Namespace) -> None:
    """Train as the command line says."""
    check_output(arguments.output, "--output", inputs=(arguments.data,))
    if not arguments.force:
        check_replaced_model(arguments.output, "--output")
    _check_device(arguments.device)
    task = _task(arguments)
    trained, held_out = _split(task, arguments.test_size, arguments.seed)
    started = time.perf_counter()
    classifier = _fitted(trained, arguments)
    seconds = time.perf_counter() - started
    model = replace(
        classifier.model_,
        feature_names=task.encoding.feature_names,
        details=_details(task, arguments),
    )
    model.save(arguments.output)
    if not arguments.quiet:
        rows = [
            *_about_data(task, trained, held_out),
            *_about_training(classifier, model, trained, arguments.rounds),
            *_about_held_out(model, held_out),
            *_about_features(model, task.encoding),
            ("time", f"{seconds:.2f} s to fit, on {classifier.device_}"),
            ("digest", model.digest()),
            ("written", f"{arguments.output}, {report.size(os.path.getsize(arguments.output))}"),
        ]
        print(report.pairs(rows))


def _check_device(name: str) -> None:
    """Refuse a GPU that cannot be had before the table is read."""
    from gpustump.placement import DeviceError, check_usable

    try:
        check_usable(name)
    except DeviceError as error:
        raise DeviceError(f"--device {name}: {error}") from error


def _task(arguments: argparse.Namespace) -> Task:
    table, target, n_dropped = _labelled(arguments)
    column, at = table.taken(target, "--target")
    labels = labels_of(column, table.source)
    out = {at}
    weights = None
    if arguments.weight is not None:
        weight, weight_at = table.taken(arguments.weight, "--weight")
        if weight is column or (at is not None and weight_at == at):
            raise InputError(f"--weight and --target both name {quoted(column.name)}.")
        weights = _weights(weight, table.source)
        out.add(weight_at)
    out |= _dropped(table, arguments.drop)
    positions = [j for j in range(len(table.columns)) if j not in out]
    if not positions:
        raise InputError(f"{table.source}: no column is left to learn from.")
    encoding = learn(table, positions)
    X, _ = encode(encoding, table)
    return Task(table.source, column.name, X, labels, weights, encoding, n_dropped)


def _labelled(arguments: argparse.Namespace) -> tuple[Table, str, int]:
    """The table, its target's name, and how many rows without a target were left out."""
    if arguments.data is None:
        for option in ("target", "weight"):
            if getattr(arguments, option) is not None:
                raise InputError(
                    f"--{option} needs DATA, the name of a file. (Without DATA the breast-cancer "
                    "data is used, whose target is known.)"
                )
        table, target = _breast_cancer()
        return table, target, 0
    table = read_table(arguments.data)
    if arguments.target is None:
        there = listed(table.beside or table.names) if table.named or table.beside else ""
        raise InputError(
            "--target COLUMN is needed: which column holds the labels? "
            + (f"{table.source} has {there}." if there else "Columns count from 0; -1 is the last.")
        )
    missing = table.taken(arguments.target, "--target")[0].missing()
    n_missing = int(np.count_nonzero(missing))
    if n_missing == len(missing):
        raise InputError(f"{table.source}: the target {quoted(arguments.target)} is empty.")
    if n_missing and not arguments.drop_missing_target:
        raise InputError(
            f"{table.source}: the target is missing in {counted(n_missing, 'row')} of "
            f"{report.thousands(table.n_rows)}; leave them out with --drop-missing-target."
        )
    return table.kept(~missing) if n_missing else table, arguments.target, n_missing


def _breast_cancer() -> tuple[Table, str]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = ArrayColumn("diagnosis", np.asarray(data.target_names)[data.target].astype(str))
    names = [str(name) for name in data.feature_names]
    source = "breast cancer, from scikit-learn"
    return of_matrix(source, data.data, names, {"diagnosis": labels}), "diagnosis"


def _weights(column: Column, source: str) -> np.ndarray:
    where = f"{source}: the weights {quoted(column.name)}"
    if column.kind not in ("number", "boolean"):
        raise InputError(f"{where} are not numbers, but of type {column.kind}.")
    weights = column.numbers().astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"{where} must be finite and not negative; they are not in "
            f"{counted(int(np.count_nonzero(bad)), 'row')}, such as {weights[np.argmax(bad)]}."
        )
    if not weights.any():
        raise InputError(f"{where} are zero in every row; at least one must be positive.")
    return weights


def _dropped(table: Table, options: list[str]) -> set[int]:
    """The positions of all columns that --drop names."""
    dropped = set()
    for option in options:
        whole = table.named and option in table.names  # a name may hold a comma itself
        for name in [option] if whole else option.split(","):
            if name.strip():
                dropped.add(table.position(name.strip(), "--drop"))
    return dropped


def _split(task: Task, share: float, seed: int) -> tuple[Part, Part | None]:
    """Rows to train on, and rows held out."""
    every = Part(task.X, task.y, task.weights)
    if share == 0.0:
        return every, None
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(task.y, return_counts=True)
    n_held_out = math.ceil(share * len(task.y))
    rarest = quoted(classes[np.argmin(counts)].item())
    if counts.min() < 2:
        raise InputError(
            f"the target {quoted(task.target)} has {len(classes)} distinct values, and {rarest} "
            "occurs only once, so it cannot be both trained on and held out. Is it a column of "
            "labels? If so, leave that row out, or take --test-size 0."
        )
    if min(n_held_out, len(task.y) - n_held_out) < len(classes):
        raise InputError(
            f"--test-size {share:g} of {counted(len(task.y), 'row')} holds out {n_held_out}, but "
            f"each part needs a row of each of {len(classes)} classes; choose another share, or 0."
        )
    with input_errors("the rows cannot be split: "):
        rows, held_out = train_test_split(
            np.arange(len(task.y)), test_size=share, random_state=seed, stratify=task.y
        )
    return every.taken(np.sort(rows)), every.taken(np.sort(held_out))


def _fitted(part: Part, arguments: argparse.Namespace) -> AdaBoostClassifier:
    from gpustump import AdaBoostClassifier

    bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
    classifier = AdaBoostClassifier(
        n_estimators=arguments.rounds,
        learning_rate=arguments.learning_rate,
        random_state=arguments.seed,
        device=arguments.device,
        verbose=int(bar),
    )
    with input_errors():
        return classifier.fit(part.X, part.y, part.weights)


def _details(task: Task, arguments: argparse.Namespace) -> dict[str, object]:
    """What `predict` needs, and how the model came about; the same on every machine."""
    return {
        "gpustump": __version__,
        "target": task.target,
        "encoding": task.encoding.as_details(),
        "training": {
            "rounds": arguments.rounds,
            "learning_rate": arguments.learning_rate,
            "test_size": arguments.test_size,
            "seed": arguments.seed,
        },
    }


def _about_data(task: Task, trained: Part, held_out: Part | None) -> list[tuple[str, str]]:
    n_rows, n_features = task.X.shape
    classes, counts = np.unique(task.y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    shares = ", ".join(
        f"{report.shortened(str(classes[k].item()), 24)} {report.percent(counts[k] / n_rows)}"
        for k in order
    )
    more = f" and {len(classes) - len(order)} more" if len(classes) > len(order) else ""
    rows = [
        ("data", report.shortened(task.source)),
        ("rows", f"{report.thousands(n_rows)}{_of_rows(task, trained, held_out)}"),
        ("features", f"{report.thousands(n_features)}{_of_columns(task.encoding)}"),
        ("classes", f"{len(classes)}: {shares}{more}"),
    ]
    for wanted in task.encoding.inputs:
        if wanted.kind == "category":
            said = f"text, {counted(len(wanted.values), 'feature')}: "
            said += report.shortened(", ".join(wanted.values), 40)
        elif wanted.kind in UNITS:
            said = f"{wanted.kind}, in {UNITS[wanted.kind]}"
        elif wanted.kind == "boolean" and task.encoding.named:
            said = "boolean, 0 and 1"
        else:
            continue
        first = not any(name == "encoded" for name, _ in rows)
        rows.append(("encoded" if first else "", f"{report.shortened(wanted.name, 30)}: {said}"))
    return rows


def _of_rows(task: Task, trained: Part, held_out: Part | None) -> str:
    parts = []
    if held_out is not None:
        parts.append(f"{report.thousands(len(trained.y))} to train on")
        parts.append(f"{report.thousands(len(held_out.y))} held out")
    if task.dropped_rows:
        parts.append(f"{report.thousands(task.dropped_rows)} without target left out")
    return ": " + ", ".join(parts) if parts else ""


def _of_columns(encoding: Encoding) -> str:
    from_text = len(encoding.text_columns)
    return f", from {counted(len(encoding.inputs), 'column')}" if from_text else ""


def _about_training(
    classifier: AdaBoostClassifier, model: StumpEnsemble, part: Part, wanted: int
) -> list[tuple[str, str]]:
    done = [len(member) for member in model.members]
    rounds = report.thousands(sum(done))
    if not model.is_binary:
        rounds += f", over {len(done)} classes"
    reasons = [
        STOP_REASONS.get(reason, reason)
        for reason, n_rounds in zip(classifier.stop_reasons_, done, strict=True)
        if n_rounds < wanted
    ]
    if reasons:
        each = "" if model.is_binary else f" for {counted(len(reasons), 'class', 'classes')}"
        rounds += f" of {report.thousands(wanted * len(done))}{each}: {_joined(reasons)}"
    error, bound = _training_error(classifier, model, part)
    at_most = f", at most {bound:.4f} by AdaBoost's bound" if bound < 1.0 else ""
    return [("rounds", rounds), ("training error", f"{error:.4f}{at_most}")]


def _joined(reasons: list[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))


def _training_error(
    classifier: AdaBoostClassifier, model: StumpEnsemble, part: Part
) -> tuple[float, float]:
    """The share of weight that the model gets wrong, and what it cannot exceed.

    With more than two classes a sample is wrong only if one of the binary models is wrong about
    it, so the sum of their bounds is a bound.
    """
    runs = classifier.rounds_
    bound = sum(rounds[-1].training_bound if rounds else 1.0 for rounds in runs)
    if model.is_binary and runs[0]:
        return runs[0][-1].training_error, min(bound, 1.0)
    wrong = model.predict(part.X) != part.y
    return float(np.average(wrong, weights=part.weights)), min(bound, 1.0)


def _about_held_out(model: StumpEnsemble, part: Part | None) -> list[tuple[str, str]]:
    if part is None:
        return []
    weighted = ", weighted" if part.weights is not None else ""
    if part.weights is not None and not part.weights.any():
        return [("held out", "no figures: all of its weights are zero")]
    scores = model.decision_function(part.X)
    right = np.average(model.labels_of(scores) == part.y, weights=part.weights)
    rows = [("held-out accuracy", f"{right:.4f}{weighted}")]
    area, n_judged = _area(model, scores, part)
    if n_judged:
        over = "" if model.is_binary else f", one class against the rest, mean over {n_judged}"
        rows.append(("held-out ROC AUC", f"{area:.4f}{over}{weighted}"))
    return rows


def _area(model: StumpEnsemble, scores: np.ndarray, part: Part) -> tuple[float, int]:
    """The area under the ROC curve, a mean over the classes that the rows hold, and how many."""
    from sklearn.metrics import roc_auc_score

    if model.is_binary:
        columns, classes = [scores], model.classes[1:]
    else:
        probabilities = model.probabilities_of(scores)
        columns, classes = list(probabilities.T), model.classes
    weights = np.ones(len(part.y)) if part.weights is None else part.weights
    areas = []
    for column, label in zip(columns, classes, strict=True):
        truth = part.y == label
        if weights[truth].any() and weights[~truth].any():
            areas.append(roc_auc_score(truth, column, sample_weight=part.weights))
    return float(np.mean(areas)) if areas else float("nan"), len(areas)


def _about_features(model: StumpEnsemble, encoding: Encoding) -> list[tuple[str, str]]:
    shares = model.feature_importances()
    order = [j for j in np.argsort(-shares, kind="stable").tolist() if shares[j] > 0]
    if not order:
        return [("most votes", "none: no stump is better than chance")]
    names = encoding.feature_names or [f"column {wanted.name}" for wanted in encoding.inputs]
    lines = report.grid(
        [(report.shortened(names[j]), report.percent(shares[j])) for j in order[:MOST_USED]],
        right=(1,),
    )
    if len(order) > MOST_USED:
        lines.append(f"and {counted(len(order) - MOST_USED, 'feature')} with less")
    return [("most votes" if k == 0 else "", line) for k, line in enumerate(lines)]
