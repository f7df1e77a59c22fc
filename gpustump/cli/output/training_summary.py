"""The summary that `gpustump train` ends with: data, rounds, held-out figures, features, time."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpustump.cli.input.telling_columns import telling_columns
from gpustump.cli.input.training_data import Part, TrainingData
from gpustump.cli.output.text_layout import aligned_lines
from gpustump.cli.wording import label_text, percent
from gpustump.data.columns import UNITS
from gpustump.data.labels import class_numbers
from gpustump.data.readable import counted, listed, shortened, thousands
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.encoding import Encoding, InputColumn
from gpustump.theory.proportions import effective_size, wilson_interval

if TYPE_CHECKING:
    from gpustump import AdaBoostClassifier, StumpEnsemble

FEATURES_SHOWN = 8
CLASSES_SHOWN = 6
VALUES_ROOM = 40
"""The values of a text column are listed up to this many characters."""

STOP_REASONS = {
    "perfect": "a stump without error ended it",
    "no edge": "no further stump is better than chance",
    "small vote": "at this learning rate votes round to zero",
    "large votes": "at this learning rate votes become too large",
}


@dataclass(frozen=True)
class FinishedTraining:
    """A trained model and what it was trained on.

    Attributes
    ----------
    classifier : AdaBoostClassifier
        As it was fitted.
    model : StumpEnsemble
        Its model, as it is saved: with the features' names.
    data : TrainingData
    trained, held_out : Part
        None if no rows are held out.
    seconds : float
        How long the fit took.
    """

    classifier: AdaBoostClassifier
    model: StumpEnsemble
    data: TrainingData
    trained: Part
    held_out: Part | None
    seconds: float


def summary(training: FinishedTraining, *, with_route: bool = False) -> list[tuple[str, str]]:
    """Names and values; an empty name continues the value above.

    `with_route` adds which engine trained, and why.
    """
    return [
        *_about_data(training),
        *_about_rounds(training),
        *_about_held_out(training),
        *_about_features(training),
        *(_about_route(training) if with_route else []),
        *_about_time(training),
        ("digest", training.model.digest()),
    ]


def _about_data(training: FinishedTraining) -> list[tuple[str, str]]:
    """Rows, features, classes, and how columns were encoded."""
    data = training.data
    n_rows, n_features = data.X.shape
    classes, counts = np.unique(data.y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    shares = ", ".join(
        f"{label_text(classes[k].item())} {percent(counts[k] / n_rows)}" for k in order
    )
    more = f" and {len(classes) - len(order)} more" if len(classes) > len(order) else ""
    encoded = [_encoded(column, data.encoding) for column in data.encoding.columns]
    lines = [line for line in encoded if line is not None]
    return [
        ("data", shortened(data.source)),
        *(("", note) for note in data.notes),
        ("rows", f"{thousands(n_rows)}{_split_of_rows(training)}"),
        ("features", f"{thousands(n_features)}{_number_of_columns(data.encoding)}"),
        ("classes", f"{len(classes)}: {shares}{more}"),
        *(("" if k else "encoded", line) for k, line in enumerate(lines)),
        *_about_telling_columns(data),
    ]


def _about_telling_columns(data: TrainingData) -> list[tuple[str, str]]:
    """A warning of columns that may hold the answer."""
    found = telling_columns(data)
    if not found:
        return []
    prefix = "" if data.encoding.named else "column "
    names = listed([prefix + column.name for column in found], 3)
    them = "them" if len(found) > 1 else "it"
    tell, hold = ("each tell", "do they hold") if len(found) > 1 else ("tells", "does it hold")
    return [
        ("warning", f"{names} alone {tell} the target without error: {hold} the answer?"),
        ("", f"If so, leave {them} out with --drop."),
    ]


def _split_of_rows(training: FinishedTraining) -> str:
    parts = []
    if training.held_out is not None:
        parts.append(f"{thousands(len(training.trained.y))} to train on")
        parts.append(f"{thousands(len(training.held_out.y))} held out")
    if training.data.n_without_target:
        parts.append(f"{thousands(training.data.n_without_target)} without target left out")
    return ": " + ", ".join(parts) if parts else ""


def _number_of_columns(encoding: Encoding) -> str:
    """How many columns the features come from, if that is another number."""
    return f", from {counted(len(encoding.columns), 'column')}" if encoding.text_columns else ""


def _encoded(column: InputColumn, encoding: Encoding) -> str | None:
    """What became of a column that is not numbers."""
    if column.kind == "category":
        values = _some([label_text(value) for value in column.values])
        what = f"text, {counted(len(column.values), 'feature')}: {values}"
    elif column.kind in UNITS:
        what = f"{column.kind}, in {UNITS[column.kind]}"
    elif column.kind == "boolean" and encoding.named:
        what = "boolean, 0 and 1"
    else:
        return None
    return f"{shortened(column.name, 30)}: {what}"


def _some(values: list[str]) -> str:
    """As many whole values as have room, but one at least, and how many more there are."""
    n_shown = 1
    while n_shown < len(values) and len(", ".join(values[: n_shown + 1])) <= VALUES_ROOM:
        n_shown += 1
    more = f" and {len(values) - n_shown} more" if n_shown < len(values) else ""
    return ", ".join([shortened(value, VALUES_ROOM) for value in values[:n_shown]]) + more


def _about_rounds(training: FinishedTraining) -> list[tuple[str, str]]:
    """The number of rounds, why it is not larger, the training error and its bound."""
    model, wanted = training.model, training.classifier.n_estimators
    done = [len(member) for member in model.members]
    reasons = [
        STOP_REASONS.get(reason, reason)
        for reason, n_rounds in zip(training.classifier.stop_reasons_, done, strict=True)
        if n_rounds < wanted
    ]
    rounds = thousands(sum(done))
    if reasons:
        rounds += f" of {thousands(wanted * len(done))}"
    if not model.is_binary:
        rounds += f", over {len(done)} classes"
    if reasons:
        each = [
            why if model.is_binary else f"for {n_classes} of them {why}"
            for why, n_classes in Counter(reasons).items()
        ]
        rounds += f": {', '.join(each)}"
    error, bound = _training_error(training)
    at_most = f", at most {bound:.4f} by AdaBoost's bound" if bound < 1.0 else ""
    return [("rounds", rounds), ("training error", f"{error:.4f}{at_most}")]


def _training_error(training: FinishedTraining) -> tuple[float, float]:
    """The share of weight that the model gets wrong, and a bound on it.

    With more than two classes a sample is wrong only if one of the binary models is wrong about
    it, so the sum of their bounds is a bound.
    """
    model, part = training.model, training.trained
    runs = training.classifier.rounds_
    bounds = [rounds[-1].training_bound or 1.0 if rounds else 1.0 for rounds in runs]
    bound = min(sum(bounds), 1.0)
    if model.is_binary and runs[0]:
        return runs[0][-1].training_error, bound
    wrong = model.labels_of(part.scores(model)) != part.y
    return _share(wrong, part), bound


def _share(selected: np.ndarray, part: Part) -> float:
    """The share of a part's weight, not all of it zero, that the selected samples have."""
    weights = np.ones(len(selected)) if part.weights is None else part.weights
    counts = weights > 0
    return IntegerWeights.of(weights[counts]).share(selected[counts])


def _about_held_out(training: FinishedTraining) -> list[tuple[str, str]]:
    """How good the model is on the rows held out, if there are any, and what is easily reached."""
    model, part = training.model, training.held_out
    if part is None:
        return []
    weighted = ", weighted" if part.weights is not None else ""
    if part.weights is not None:
        if not part.weights.any():
            return [("held out", "no figures: all of its weights are zero")]
        part = replace(part, weights=part.weights / part.weights.max())  # sums stay finite
    scores = part.scores(model)
    rows = _about_accuracy(model, scores, part)
    rows += _about_probabilities(model, scores, part)
    area, n_classes = _mean_area(model, scores, part)
    if n_classes:
        among = "" if n_classes == len(model.classes) else f" of {len(model.classes)}"
        mean = f", one class against the rest, mean over {n_classes}{among}"
        over = "" if model.is_binary else mean
        rows.append(("held-out ROC AUC", f"{area:.4f}{over}{weighted}"))
    return rows


def _about_accuracy(model: StumpEnsemble, scores: np.ndarray, part: Part) -> list[tuple[str, str]]:
    """The accuracy, its 95 % interval, and what predicting the largest class always would reach.

    Weighted rows count as many as Kish's effective number. That is right if weights make up for
    rows that are in the table too seldom; if they are counts of equal rows, the interval is too
    wide. It never makes few rows look precise.
    """
    right = _share(model.labels_of(scores) == part.y, part)
    true = class_numbers(model.classes, part.y, scores)
    largest = float(_class_shares(model, true, part.weights).max())
    n_rows = len(part.y) if part.weights is None else effective_size(part.weights)
    low, high = wilson_interval(right, n_rows)
    interval = f"{right:.4f} (95%: {low:.4f}..{high:.4f})"
    if part.weights is None:
        return [("held-out accuracy", f"{interval}; the largest class has {largest:.4f}")]
    return [
        ("held-out accuracy", f"{interval}, weighted: worth {n_rows:.1f} rows"),
        ("", f"the largest class has {largest:.4f}"),
    ]


def _about_probabilities(
    model: StumpEnsemble, scores: np.ndarray, part: Part
) -> list[tuple[str, str]]:
    """Log-loss and Brier score, and those of predicting the classes' shares for every row.

    The Brier score is the mean squared error of the probability of the second of two classes. Of
    more classes the squared errors are added, so it is at most 2.
    """
    from sklearn.metrics import brier_score_loss

    weighted = ", weighted" if part.weights is not None else ""
    logs = model.log_probabilities_of(scores)  # finite, so the log-loss is
    true = class_numbers(model.classes, part.y, scores)
    shares = _class_shares(model, true, part.weights)
    log_loss = 0.0 - float(np.average(logs[np.arange(len(true)), true], weights=part.weights))
    chance_loss = 0.0 - float(sum(share * np.log(share) for share in shares if share))
    counted = range(1, 2) if model.is_binary else range(len(shares))
    brier, chance_brier = (
        sum(
            float(brier_score_loss(true == k, columns[:, k], sample_weight=part.weights))
            for k in counted
        )
        for columns in (np.exp(logs), np.broadcast_to(shares, logs.shape))
    )
    without = "the classes' shares alone give"
    return [
        ("held-out log-loss", f"{log_loss:.4f}{weighted}; {without} {chance_loss:.4f}"),
        ("held-out Brier", f"{brier:.4f}{weighted}; {without} {chance_brier:.4f}"),
    ]


def _class_shares(model: StumpEnsemble, true: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Each class's share of the weight of samples with these class numbers, (n_classes,)."""
    weight = np.bincount(true, weights, minlength=len(model.classes))
    shares: np.ndarray = weight / weight.sum()
    return shares


def _mean_area(model: StumpEnsemble, scores: np.ndarray, part: Part) -> tuple[float, int]:
    """The area under the ROC curve, its mean over the classes in the rows, and their number."""
    from sklearn.metrics import roc_auc_score

    if model.is_binary:
        columns, classes = [scores], model.classes[1:]
    else:
        columns, classes = list(model.probabilities_of(scores).T), model.classes
    weights = np.ones(len(part.y)) if part.weights is None else part.weights
    areas = []
    for column, label in zip(columns, classes, strict=True):
        is_label = part.y == label
        if weights[is_label].any() and weights[~is_label].any():
            areas.append(roc_auc_score(is_label, column, sample_weight=part.weights))
    return float(np.mean(areas)) if areas else float("nan"), len(areas)


def _about_features(training: FinishedTraining) -> list[tuple[str, str]]:
    """The features with the largest shares of the votes."""
    shares = training.model.feature_importances()
    order = [j for j in np.argsort(-shares, kind="stable").tolist() if shares[j] > 0]
    if not order:
        return [("most votes", "none: no stump is better than chance")]
    names = training.data.encoding.shown_names
    lines = aligned_lines(
        [(shortened(names[j]), percent(shares[j])) for j in order[:FEATURES_SHOWN]], right=(1,)
    )
    if len(order) > FEATURES_SHOWN:
        lines.append(f"and {counted(len(order) - FEATURES_SHOWN, 'feature')} with less")
    return [("" if k else "most votes", line) for k, line in enumerate(lines)]


def _about_route(training: FinishedTraining) -> list[tuple[str, str]]:
    """Where and by which engine the model was trained, and why."""
    return [("trained by", str(training.classifier.route_))]


def _about_time(training: FinishedTraining) -> list[tuple[str, str]]:
    """How long the fit took, and where; and how long compiling, which is needed once."""
    text = f"{training.seconds:.2f} s to fit, on {training.classifier.device_}"
    if "gpustump.engines.cpu.compiling" in sys.modules:
        from gpustump.engines.cpu.compiling import seconds_compiling

        if seconds := seconds_compiling():
            text += f"; {seconds:.1f} s to compile the kernels, once"
    return [("time", text)]
