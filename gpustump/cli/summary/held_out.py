"""How good a model is on the rows that were held out, in figures, beside simple predictions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpustump.cli.columns.training import Part
from gpustump.cli.method import Loss
from gpustump.cli.wording import aligned_lines, label_text, number_text
from gpustump.data.labels import class_numbers
from gpustump.data.readable import counted
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import StumpEnsemble
from gpustump.theory.bounds import effective_size, wilson_interval

CLASSES_SHOWN = 6
"""Classes that are told of one by one, the largest."""


class ScoredPart(NamedTuple):
    """Rows, with weights of at most 1, and the scores that a model gives them: (n_rows,), or
    (n_rows, n_classes); none of a quantity."""

    part: Part
    scores: np.ndarray

    @classmethod
    def of(cls, model: StumpEnsemble, part: Part) -> ScoredPart | None:
        """Some rows; None if all of their weights are zero."""
        if part.weights is not None and not part.weights.any():
            return None
        scores = np.empty(0) if model.is_regression else part.scores(model)
        return cls(with_moderate_weights(part), scores)


def about_held_out(
    model: StumpEnsemble, held_out: ScoredPart | None, loss: Loss
) -> list[tuple[str, str]]:
    """How good a model is on the rows held out, beside simple predictions: names and values.

    Parameters
    ----------
    model : StumpEnsemble
    held_out : ScoredPart or None
        None if their weights are zero.
    loss : str
        What was lowered in training.
    """
    if held_out is None:
        return [("held out", "no figures: all of its weights are zero")]
    part, scores = held_out
    if model.is_regression:
        return about_errors(model, part, loss, "held-out")
    rows = _about_accuracy(model, scores, part)
    rows += _about_recall(model, scores, part)
    rows += _about_probabilities(model, held_out)
    (roc, precision), n_classes = _mean_areas(model, scores, part)
    if n_classes:
        among = "" if n_classes == len(model.classes) else f" of {len(model.classes)}"
        mean = f", one class against the rest, mean over {n_classes}{among}"
        over = "" if model.is_binary else mean
        of = f" of {label_text(model.classes[1])}" if model.is_binary else over
        weighted = ", weighted" if part.weights is not None else ""
        rows.append(("held-out ROC AUC", f"{roc:.4f}{over}{weighted}"))
        rows.append(("average precision", f"{precision:.4f}{of}{weighted}"))
    return rows


def with_moderate_weights(part: Part) -> Part:
    """The part with weights of at most 1, so that sums stay finite."""
    if part.weights is None:
        return part
    return replace(part, weights=part.weights / part.weights.max())


def share_of(selected: np.ndarray, part: Part) -> float:
    """The share of a part's weight, not all of it zero, that the selected samples have."""
    weights = np.ones(len(selected)) if part.weights is None else part.weights
    counts = weights > 0
    return IntegerWeights.of(weights[counts]).share(selected[counts])


def _about_accuracy(model: StumpEnsemble, scores: np.ndarray, part: Part) -> list[tuple[str, str]]:
    """The accuracy, its 95 % interval, and that of always predicting the largest class.

    For weighted rows, the number of rows is Kish's effective number. That is right if weights make
    up for rows that are in the table too seldom. If they are counts of equal rows, the interval is
    too wide; it never makes few rows look precise.
    """
    right = share_of(model.labels_of(scores) == part.y, part)
    true = class_numbers(model.classes, part.y, scores)
    largest = float(class_shares(model, true, part.weights).max())
    n_rows = len(part.y) if part.weights is None else effective_size(part.weights)
    low, high = wilson_interval(right, n_rows)
    interval = f"{right:.4f} (95%: {low:.4f}..{high:.4f})"
    if part.weights is None:
        return [("held-out accuracy", f"{interval}; the largest class has {largest:.4f}")]
    return [
        ("held-out accuracy", f"{interval}, weighted: worth {n_rows:.1f} rows"),
        ("", f"the largest class has {largest:.4f}"),
    ]


def _about_recall(model: StumpEnsemble, scores: np.ndarray, part: Part) -> list[tuple[str, str]]:
    """Which share of each class is found, and which share of what is taken for it is right.

    The largest classes are told of. Weights count.
    """
    from sklearn.metrics import precision_recall_fscore_support

    true = class_numbers(model.classes, part.y, scores)
    shares = class_shares(model, true, part.weights)
    order = [k for k in np.argsort(-shares, kind="stable").tolist() if shares[k]]
    shown, n_more = order[:CLASSES_SHOWN], len(order) - CLASSES_SHOWN
    precision, recall, _, _ = precision_recall_fscore_support(
        true, model.class_indices(scores), labels=shown, sample_weight=part.weights,
        zero_division=np.nan,
    )  # fmt: skip
    rows = [
        (
            label_text(model.classes[k]),
            f"recall {found:.4f}",
            "never predicted" if np.isnan(right) else f"precision {right:.4f}",
        )
        for k, found, right in zip(shown, recall, precision, strict=True)
    ]
    lines = aligned_lines(rows)
    if n_more > 0:
        lines.append(f"and {counted(n_more, 'smaller class', 'smaller classes')}")
    return [("" if k else "held-out classes", line) for k, line in enumerate(lines)]


def _about_probabilities(model: StumpEnsemble, held_out: ScoredPart) -> list[tuple[str, str]]:
    """Log-loss and Brier score, and those of predicting the classes' shares for every row.

    The Brier score is the mean squared error of the probability of the second of two classes. Of
    more classes the squared errors are added, so it is at most 2.
    """
    from sklearn.metrics import brier_score_loss

    part, scores = held_out
    weighted = ", weighted" if part.weights is not None else ""
    probabilities = model.probabilities_of(scores)
    true = class_numbers(model.classes, part.y, scores)
    shares = class_shares(model, true, part.weights)
    log_loss, chance_loss = log_loss_of(model, held_out), log_loss_of_shares(model, held_out)
    counted = range(1, 2) if model.is_binary else range(len(shares))
    brier, chance_brier = (
        sum(
            float(brier_score_loss(true == k, columns[:, k], sample_weight=part.weights))
            for k in counted
        )
        for columns in (probabilities, np.broadcast_to(shares, probabilities.shape))
    )
    without = "the classes' shares alone give"
    return [
        ("held-out log-loss", f"{log_loss:.4f}{weighted}; {without} {chance_loss:.4f}"),
        ("held-out Brier", f"{brier:.4f}{weighted}; {without} {chance_brier:.4f}"),
    ]


def log_loss_of(model: StumpEnsemble, rows: ScoredPart) -> float:
    """The mean of -ln P, where P is the probability of a row's class; it is finite."""
    logs = model.log_probabilities_of(rows.scores)
    true = class_numbers(model.classes, rows.part.y, rows.scores)
    return 0.0 - float(np.average(logs[np.arange(len(true)), true], weights=rows.part.weights))


def log_loss_of_shares(model: StumpEnsemble, rows: ScoredPart) -> float:
    """The same if P is the class's share of the rows."""
    true = class_numbers(model.classes, rows.part.y, rows.scores)
    shares = class_shares(model, true, rows.part.weights)
    return 0.0 - float(sum(share * np.log(share) for share in shares if share))


def class_shares(model: StumpEnsemble, true: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Each class's share of the weight of samples with these class numbers, (n_classes,)."""
    weight = np.bincount(true, weights, minlength=len(model.classes))
    shares: np.ndarray = weight / weight.sum()
    return shares


def _mean_areas(
    model: StumpEnsemble, scores: np.ndarray, part: Part
) -> tuple[tuple[float, float], int]:
    """The area under the ROC curve and the average precision, means over the classes in the rows,
    and the number of these classes."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    if model.is_binary:
        columns, classes = [scores], model.classes[1:]
    else:
        columns, classes = list(model.probabilities_of(scores).T), model.classes
    weights = np.ones(len(part.y)) if part.weights is None else part.weights
    areas = []
    for column, label in zip(columns, classes, strict=True):
        is_label = part.y == label
        if weights[is_label].any() and weights[~is_label].any():
            areas.append(
                [
                    area(is_label, column, sample_weight=part.weights)
                    for area in (roc_auc_score, average_precision_score)
                ]
            )
    if not areas:
        return (math.nan, math.nan), 0
    roc, precision = np.mean(areas, axis=0).tolist()
    return (roc, precision), len(areas)


class _Rows(NamedTuple):
    """Targets and predictions of rows, and what the mean alone predicts; (n_rows,) each.

    With exposures they are rates, and weights are multiplied by the exposures: so the deviances are
    those of the counts, per unit of exposure.
    """

    true: np.ndarray
    predicted: np.ndarray
    mean: np.ndarray
    weights: np.ndarray | None


def about_errors(model: StumpEnsemble, part: Part, loss: str, which: str) -> list[tuple[str, str]]:
    """Rows of the summary: errors on a part of the rows, "training" or "held-out".

    Parameters
    ----------
    model : StumpEnsemble
    part : Part
        Its weights are at most 1, and not all 0.
    loss : str
        "squared_error", "poisson" or "gamma".
    which : str
    """
    rows = _rows(model, part)
    found = _of_squares(rows) if loss == "squared_error" else _of_deviance(rows, loss)
    if part.weights is not None:
        name = next(iter(found))
        found[name] += ", weighted"
    if which == "training":  # the rows held out say more
        found = dict([*found.items()][:1])
    return [(f"{which} {name}", text) for name, text in found.items()]


def _rows(model: StumpEnsemble, part: Part) -> _Rows:
    own = np.asarray(model.quantities_of(part.scores(model)))
    predicted, true, weights = part.offsets.applied(own, model), part.y, part.weights
    exposure = part.offsets.exposure
    if exposure is not None:
        predicted, true = predicted / exposure, true / exposure
        weights = exposure if weights is None else weights * exposure
    scale = float(np.abs(true).max()) or 1.0  # sums of large numbers stay finite
    mean = float(np.average(true / scale, weights=weights)) * scale
    return _Rows(true, predicted, np.full(len(true), mean), weights)


def _of_squares(rows: _Rows) -> dict[str, str]:
    """Root mean squared error, mean absolute error and R2."""
    true, predicted, mean, weights = rows
    scale = float(max(np.abs(true).max(), np.abs(predicted).max())) or 1.0
    scale = 2.0 ** np.floor(np.log2(scale))  # exact, and squares stay finite

    def errors(given: np.ndarray) -> tuple[float, float]:
        gaps = np.abs(true / scale - given / scale)
        square = float(np.average(gaps**2, weights=weights))
        return float(np.sqrt(square)) * scale, float(np.average(gaps, weights=weights)) * scale

    (root, absolute), (root_of_mean, absolute_of_mean) = errors(predicted), errors(mean)
    found = {
        "RMSE": f"{number_text(root)}; their mean alone has {number_text(root_of_mean)}",
        "MAE": f"{number_text(absolute)}; their mean alone has {number_text(absolute_of_mean)}",
    }
    if root_of_mean > 0.0:
        found["R2"] = f"{1.0 - (root / root_of_mean) ** 2:.4f}"
    return found


def _of_deviance(rows: _Rows, loss: str) -> dict[str, str]:
    """The mean deviance, the share of it that is explained, and the totals."""
    from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

    true, predicted, mean, weights = rows
    mean_deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    expected, observed = (number_text(_sum(own, weights)) for own in (predicted, true))
    total = f"{expected} predicted, {observed} observed"
    if not mean.all():  # there are no counts at all
        return {"total": total}
    deviance = float(mean_deviance(true, predicted, sample_weight=weights))
    of_mean = float(mean_deviance(true, mean, sample_weight=weights))
    found = {"deviance": f"{number_text(deviance)}; their mean alone has {number_text(of_mean)}"}
    if of_mean > 0.0:
        found["D2"] = f"{1.0 - deviance / of_mean:.4f}"
    return found | {"total": total}


def _sum(values: np.ndarray, weights: np.ndarray | None) -> float:
    return float(np.sum(values if weights is None else values * weights))
