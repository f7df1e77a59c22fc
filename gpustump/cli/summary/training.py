"""The summary that `gpustump train` ends with: data, rounds, held-out figures, features, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpustump.cli.columns.model import with_shown_names
from gpustump.cli.columns.training import TrainingData, as_text
from gpustump.cli.method import Loss
from gpustump.cli.summary.doubts import doubts
from gpustump.cli.summary.held_out import (
    CLASSES_SHOWN,
    ScoredPart,
    about_errors,
    about_held_out,
)
from gpustump.cli.wording import aligned_lines, label_text, number_text, percent
from gpustump.data.columns import UNITS
from gpustump.data.readable import counted, shortened, thousands
from gpustump.estimators.recorded import KEY
from gpustump.model.encoding import NUMBERED, Encoding, InputColumn
from gpustump.model.pairs import shares_of_pairs

if TYPE_CHECKING:
    from gpustump import StumpEnsemble
    from gpustump.estimators.boosters import BoostedEstimator

FEATURES_SHOWN, PAIRS_SHOWN = 8, 4
VALUES_ROOM = 40
"""The list of a text column's values is cut in its middle if it is longer (characters)."""

STOP_REASONS = {
    "perfect": "a stump without error ended it",
    "no edge": "no further stump helps",
    "small vote": "further votes round to zero",
    "large votes": "at this learning rate votes become too large",
    "early": "stopped early",
}


@dataclass(frozen=True)
class FinishedTraining:
    """A trained model and what it was trained on.

    Attributes
    ----------
    estimator : BoostedEstimator
        As it was fitted.
    model : StumpEnsemble
        Its model, as it is saved: with the features' names.
    data : TrainingData
    trained, held_out : ndarray of int64
        The numbers of rows; None if no rows are held out.
    seconds : float
        How long the fit took.
    loss : str
        What was lowered.
    monotone : mapping of str to int
        The constraints of columns.
    """

    estimator: BoostedEstimator
    model: StumpEnsemble
    data: TrainingData
    trained: np.ndarray
    held_out: np.ndarray | None
    seconds: float
    loss: Loss
    monotone: Mapping[str, int]

    @property
    def quantile(self) -> float:
        """Which quantile the quantile loss asks for; 0.5 of other losses."""
        return float(getattr(self.estimator, "quantile", 0.5))


def summary(training: FinishedTraining) -> list[tuple[str, str]]:
    """Names and values; an empty name continues the value above."""
    model, data, held_out = training.model, training.data, training.held_out
    scored = None if held_out is None else ScoredPart.of(model, data, held_out)
    trained = ScoredPart.of(model, data, training.trained)
    assert trained is not None  # no weights that are all zero are trained on
    return [
        *_about_data(training),
        *_about_method(training),
        *_about_rounds(training, trained),
        *([] if held_out is None else about_held_out(scored, training.loss, training.quantile)),
        *_about_features(training),
        *_about_pairs(training),
        *doubts(
            trained if scored is None else scored,
            is_held_out=scored is not None,
            is_balanced=getattr(training.estimator, "class_weight", None) is not None,
        ),
        ("time", f"{training.seconds:.2f} s to fit, on {training.estimator.device_}"),
        ("digest", training.model.digest()),
    ]


def _about_data(training: FinishedTraining) -> list[tuple[str, str]]:
    """Rows, features, what is predicted, and how columns were encoded."""
    data = training.data
    columns, features = data.encoding.columns, thousands(data.X.shape[1])
    if any(column.kind == "category" for column in columns):
        features += f", from {counted(len(columns), 'column')}"
    encoded = [_encoded(column, data.encoding) for column in columns]
    lines = [line for line in encoded if line is not None]
    return [
        ("data", shortened(data.source)),
        *(("", note) for note in data.notes),
        ("rows", f"{thousands(len(data.y))}{_split_of_rows(training)}"),
        ("features", features),
        _quantity(data) if data.is_quantity else _classes(data),
        *(("" if k else "encoded", line) for k, line in enumerate(lines)),
    ]


def _classes(data: TrainingData) -> tuple[str, str]:
    classes, counts = np.unique(data.y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    shares = ", ".join(
        f"{label_text(classes[k].item())} {percent(counts[k] / len(data.y))}" for k in order
    )
    more = f" and {len(classes) - len(order)} more" if len(classes) > len(order) else ""
    return "classes", f"{len(classes)}: {shares}{more}"


def _quantity(data: TrainingData) -> tuple[str, str]:
    low, mean, high = (number_text(own) for own in (data.y.min(), data.y.mean(), data.y.max()))
    exposure, over = data.offsets.exposure, ""
    if exposure is not None:
        over = f"; exposure {number_text(exposure.min())} to {number_text(exposure.max())}"
    return "target", f"a quantity, from {low} to {high}, mean {mean}{over}"


def _split_of_rows(training: FinishedTraining) -> str:
    parts = []
    if training.held_out is not None:
        parts.append(f"{thousands(len(training.trained))} to train on")
        parts.append(f"{thousands(len(training.held_out))} held out")
    if training.data.n_without_target:
        parts.append(f"{thousands(training.data.n_without_target)} without a target left out")
    return ": " + ", ".join(parts) if parts else ""


def _encoded(column: InputColumn, encoding: Encoding) -> str | None:
    """What became of a column that is not numbers."""
    if column.kind in ("category", NUMBERED):
        become = ("category", "categories") if column.kind == NUMBERED else ("feature",)
        values = ", ".join(map(label_text, column.values))
        what = f"text, {counted(len(column.values), *become)}: {shortened(values, VALUES_ROOM)}"
    elif column.kind in UNITS:
        what = f"{column.kind}, in {UNITS[column.kind]}"
    elif column.kind == "boolean" and encoding.named:
        what = "boolean, 0 and 1"
    else:
        return None
    return f"{shortened(column.name, 30)}: {what}"


def _about_method(training: FinishedTraining) -> list[tuple[str, str]]:
    """The estimator, those of its parameters that are not its defaults, and the constraints."""
    record = training.model.details[KEY]
    own = {"loss": training.loss} if training.model.is_regression else {}
    own |= record["parameters"]
    others = ("n_estimators", "monotonic_cst")  # rows of their own tell of them
    given = [f"{name} {value}" for name, value in own.items() if name not in others]
    rows = [("estimator", record["name"]), *(("", text) for text in given)]
    if training.monotone:
        rows.append(("monotone", shortened(as_text(training.monotone))))
    return rows


def _about_rounds(training: FinishedTraining, scored: ScoredPart) -> list[tuple[str, str]]:
    """The number of rounds, why it is not larger, the training error and its bound."""
    rows = [("rounds", _rounds(training))]
    if training.model.is_regression:
        return [*rows, *about_errors(scored, training.loss, "training", training.quantile)]
    error, bound = _training_error(training, scored)
    theorem = "AdaBoost.MH's bound" if training.model.is_shared else "AdaBoost's bound"
    at_most = f", at most {_small(bound)} by {theorem}" if bound < 1.0 else ""
    rows.append(("training error", f"{error:.4f}{at_most}"))
    if training.loss == "logistic":
        rows.append(("training log-loss", f"{scored.log_loss:.4f}"))
    return rows


def _rounds(training: FinishedTraining) -> str:
    model, wanted = training.model, training.estimator.n_estimators_
    if model.n_bags > 1:
        sizes = [len(rounds) for rounds in training.estimator.rounds_]
        each = f"{thousands(min(sizes))} to {thousands(max(sizes))} each"
        return f"{thousands(sum(sizes))} in {model.n_bags} bags, {each}"
    done = [len(member) for member in model.members]
    reasons = training.estimator.stop_reasons_
    ended = [
        STOP_REASONS.get(reason, reason)
        for reason, n_rounds in zip(reasons, done, strict=True)
        if n_rounds < wanted
    ]
    text = thousands(sum(done))
    if ended:
        text += f" of {thousands(wanted * len(done))}"
    if model.n_outputs > 1:
        how = "shared by" if model.is_shared else "over"
        text += f", {how} {len(model.classes)} classes"
    if ended:
        text += f": {', '.join(dict.fromkeys(ended))}"
    return text


def _small(bound: float) -> str:
    """A bound with four decimals, or its order of magnitude if these were all 0."""
    return f"{bound:.4f}" if bound >= 0.00005 or bound == 0.0 else f"{bound:.0e}"


def _training_error(training: FinishedTraining, scored: ScoredPart) -> tuple[float, float]:
    """The share of weight that the model gets wrong, and a bound on it; 1 if there is none.

    With one class against the rest, a sample is wrong only if one of the binary models is wrong
    about it, so the sum of their bounds is a bound. Newton votes have none.
    """
    model, runs = training.model, training.estimator.rounds_
    if model.n_bags > 1 or training.estimator.n_iter_no_change is not None:
        return 1.0 - scored.accuracy, 1.0  # a bound would be that of the rows of the rounds
    bounds = [rounds[-1].training_bound if rounds else None for rounds in runs]
    bound = min(sum(1.0 if own is None else own for own in bounds), 1.0)
    if len(runs) == 1 and runs[0] and not model.pairs:
        return runs[0][-1].training_error, bound
    return 1.0 - scored.accuracy, bound


def _about_features(training: FinishedTraining) -> list[tuple[str, str]]:
    """The features with the largest shares of the votes."""
    shares = training.model.feature_importances()
    if not shares.any():
        return [("most votes", "none")]
    used = np.flatnonzero(shares).tolist()
    names = [training.data.encoding.shown_names[j] for j in used]
    lines = _largest(names, shares[used], FEATURES_SHOWN, "feature")
    return [("" if k else "most votes", line) for k, line in enumerate(lines)]


def _about_pairs(training: FinishedTraining) -> list[tuple[str, str]]:
    """How many pairs of features were learnt, and which add most; no row if none was to be."""
    if training.estimator.interactions == 0 or training.loss == "quantile":
        return []
    model = training.model
    names = with_shown_names(model).term_names[model.n_features :]
    if not names:
        return [("pairs", "none: no two features can be cut, or none helped on held-out rows")]
    lines = _largest(names, shares_of_pairs(model.pairs), PAIRS_SHOWN, "pair")
    first = f"{thousands(len(names))}, with these shares of what they add:"
    return [("pairs", first), *(("", line) for line in lines)]


def _largest(names: Sequence[str], shares: np.ndarray, most: int, thing: str) -> list[str]:
    """Lines for the largest shares, and how many more there are."""
    order = np.argsort(-shares, kind="stable").tolist()
    rows = [(shortened(names[k]), percent(shares[k])) for k in order[:most]]
    lines = aligned_lines(rows, right=(1,))
    if len(order) > most:
        lines.append(f"and {counted(len(order) - most, thing)} with less")
    return lines
