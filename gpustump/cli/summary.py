"""The table that `gpustump train` ends with: data, training, held-out figures, features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump.cli import report
from gpustump.cli.encoding import UNITS, Encoding
from gpustump.cli.errors import counted
from gpustump.cli.task import Part, Task

if TYPE_CHECKING:
    from gpustump import AdaBoostClassifier, StumpEnsemble

MOST_USED = 8
"""How many features the report names."""

CLASSES_SHOWN = 6

STOP_REASONS = {
    "perfect": "a stump without error ended it",
    "no edge": "no further stump is better than chance",
    "small vote": "at this learning rate votes round to zero",
    "large votes": "at this learning rate votes grow beyond all bounds",
}


def about_data(task: Task, trained: Part, held_out: Part | None) -> list[tuple[str, str]]:
    """Rows, features, classes, and what was encoded."""
    n_rows, n_features = task.X.shape
    classes, counts = np.unique(task.y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    shares = ", ".join(
        f"{report.label(classes[k].item())} {report.percent(counts[k] / n_rows)}" for k in order
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
            said += report.shortened(", ".join(map(report.label, wanted.values)), 40)
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


def about_training(
    classifier: AdaBoostClassifier, model: StumpEnsemble, part: Part, wanted: int
) -> list[tuple[str, str]]:
    """How many rounds were made, why no more, the training error and its bound."""
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
    wrong = model.labels_of(part.scores(model)) != part.y
    weights = None if part.weights is None else part.weights / part.weights.max()
    return float(np.average(wrong, weights=weights)), min(bound, 1.0)


def about_held_out(model: StumpEnsemble, part: Part | None) -> list[tuple[str, str]]:
    """Accuracy and ROC AUC on the rows held out, if there are any."""
    if part is None:
        return []
    weighted = ", weighted" if part.weights is not None else ""
    if part.weights is not None:
        if not part.weights.any():
            return [("held out", "no figures: all of its weights are zero")]
        part = replace(part, weights=part.weights / part.weights.max())  # sums stay finite
    scores = part.scores(model)
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


def about_features(model: StumpEnsemble, encoding: Encoding) -> list[tuple[str, str]]:
    """The features that have most votes."""
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
