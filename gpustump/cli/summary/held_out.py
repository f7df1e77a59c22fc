"""How good a model is on the rows that were held out, in figures, beside simple predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpustump.cli.columns.targets import Offsets
from gpustump.cli.columns.training import TrainingData
from gpustump.cli.method import Loss
from gpustump.cli.wording import aligned_lines, label_text, number_text
from gpustump.data.labels import class_numbers
from gpustump.data.readable import counted
from gpustump.data.weights import SMALLEST
from gpustump.model.ensemble import StumpEnsemble
from gpustump.theory.bounds import effective_size, wilson_interval

_BLOCK_ROWS = 2**16
"""Number of rows that are copied out of the table together."""

CLASSES_SHOWN = 6
"""Classes that are told of one by one, the largest."""


@dataclass(frozen=True)
class ScoredPart:
    """Some rows of a table, and what a model makes of them.

    Attributes
    ----------
    model : StumpEnsemble
    data : TrainingData
        The whole table, which may be a file larger than the memory, and is not copied.
    rows : ndarray (n_rows,) of int64
        Which of its rows.
    weights : ndarray (n_rows,) of float64, or None
        At most 1, so that sums stay finite.
    """

    model: StumpEnsemble
    data: TrainingData
    rows: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, model: StumpEnsemble, data: TrainingData, rows: np.ndarray) -> ScoredPart | None:
        """Those rows that training would count, of some; None if all of their weights are zero."""
        if data.weights is None:
            return cls(model, data, rows, None)
        rows = rows[data.weights[rows] >= SMALLEST["float64"]]
        weights = data.weights[rows]
        return cls(model, data, rows, weights / weights.max()) if len(rows) else None

    @cached_property
    def y(self) -> np.ndarray:
        """The targets, (n_rows,)."""
        return np.asarray(self.data.y[self.rows])

    @cached_property
    def offsets(self) -> Offsets:
        """What is known of the rows."""
        return self.data.offsets.in_rows(self.rows)

    @cached_property
    def scores(self) -> np.ndarray:
        """The model's scores, with what is known of the rows, (n_rows,) or (n_rows, n_classes)."""
        starts = range(0, len(self.rows), _BLOCK_ROWS)
        blocks = [self.rows[start : start + _BLOCK_ROWS] for start in starts]
        own = [self.model.decision_function(self.data.X[rows]) for rows in blocks]
        return self.offsets.added(np.concatenate(own), self.model)

    @cached_property
    def true(self) -> np.ndarray:
        """The number of each row's class, (n_rows,)."""
        return class_numbers(self.model.classes, self.y, self.scores)

    @cached_property
    def shares(self) -> np.ndarray:
        """Each class's share of the weight, (n_classes,)."""
        weight = np.bincount(self.true, self.weights, minlength=len(self.model.classes))
        return np.asarray(weight / weight.sum())

    @property
    def weighted(self) -> str:
        """What follows a weighted figure."""
        return "" if self.weights is None else ", weighted"

    @property
    def accuracy(self) -> float:
        """The share of the weight whose class is predicted."""
        right = self.model.labels_of(self.scores) == self.y
        return float(np.average(right, weights=self.weights))

    @property
    def log_loss(self) -> float:
        """The mean of -ln P, where P is the probability of a row's class; it is finite."""
        logs = self.model.log_probabilities_of(self.scores)[np.arange(len(self.true)), self.true]
        return 0.0 - float(np.average(logs, weights=self.weights))

    @property
    def log_loss_of_shares(self) -> float:
        """The same if P is the class's share of the rows."""
        return 0.0 - float(sum(share * np.log(share) for share in self.shares if share))


def about_held_out(
    held_out: ScoredPart | None, loss: Loss, quantile: float = 0.5
) -> list[tuple[str, str]]:
    """How good a model is on the rows held out, beside simple predictions: names and values.

    Parameters
    ----------
    held_out : ScoredPart or None
        None if their weights are zero.
    loss : str
        What was lowered in training.
    quantile : float
        Which one the quantile loss asks for.
    """
    if held_out is None:
        return [("held out", "no figures: all of its weights are zero")]
    model = held_out.model
    if model.is_regression:
        return about_errors(held_out, loss, "held-out", quantile)
    parts = (_about_accuracy, _about_recall, _about_probabilities, _about_ranks)
    return [row for about in parts for row in about(held_out)]


def _about_accuracy(held_out: ScoredPart) -> list[tuple[str, str]]:
    """The accuracy, its 95 % interval, and that of always predicting the largest class.

    For weighted rows, the number of rows is Kish's effective number. That is right if weights make
    up for rows that are in the table too seldom. If they are counts of equal rows, the interval is
    too wide; it never makes few rows look precise.
    """
    right, largest = held_out.accuracy, float(held_out.shares.max())
    weights = held_out.weights
    n_rows = len(held_out.true) if weights is None else effective_size(weights)
    low, high = wilson_interval(right, n_rows)
    interval = f"{right:.4f} (95%: {low:.4f}..{high:.4f})"
    if weights is None:
        return [("held-out accuracy", f"{interval}; the largest class has {largest:.4f}")]
    return [
        ("held-out accuracy", f"{interval}, weighted: worth {n_rows:.1f} rows"),
        ("", f"the largest class has {largest:.4f}"),
    ]


def _about_recall(held_out: ScoredPart) -> list[tuple[str, str]]:
    """Which share of each class is found, and which share of what is taken for it is right.

    The largest classes are told of. Weights count.
    """
    from sklearn.metrics import precision_recall_fscore_support

    model, shares = held_out.model, held_out.shares
    order = [k for k in np.argsort(-shares, kind="stable").tolist() if shares[k]]
    shown, n_more = order[:CLASSES_SHOWN], len(order) - CLASSES_SHOWN
    precision, recall, _, _ = precision_recall_fscore_support(
        held_out.true, model.class_indices(held_out.scores), labels=shown,
        sample_weight=held_out.weights, zero_division=np.nan,
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


def _about_probabilities(held_out: ScoredPart) -> list[tuple[str, str]]:
    """Log-loss and Brier score, and those of predicting the classes' shares for every row.

    The Brier score is the mean squared error of the probability of the second of two classes. Of
    more classes the squared errors are added, so it is at most 2.
    """
    model, weighted = held_out.model, held_out.weighted
    is_true = held_out.true[:, np.newaxis] == np.arange(len(model.classes))

    def brier(probabilities: np.ndarray) -> float:
        errors = ((probabilities - is_true) ** 2).sum(axis=1)
        return float(np.average(errors, weights=held_out.weights)) / (1 + model.is_binary)

    own, of_shares = brier(model.probabilities_of(held_out.scores)), brier(held_out.shares)
    alone = f"{weighted}; the classes' shares alone give"
    return [
        ("held-out log-loss", f"{held_out.log_loss:.4f}{alone} {held_out.log_loss_of_shares:.4f}"),
        ("held-out Brier", f"{own:.4f}{alone} {of_shares:.4f}"),
    ]


def _about_ranks(held_out: ScoredPart) -> list[tuple[str, str]]:
    """The area under the ROC curve and the average precision: of the second of two classes, or the
    mean over those classes that some rows, but not all, have."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    model, weights = held_out.model, held_out.weights
    if model.is_binary:
        columns, over, of = {1: held_out.scores}, "", f" of {label_text(model.classes[1])}"
    else:
        columns = dict(enumerate(model.probabilities_of(held_out.scores).T))
        over = of = ", one class against the rest, mean"
    there = [k for k in columns if 0.0 < held_out.shares[k] < 1.0]
    if not there:
        return []

    def mean(area: Callable[..., float]) -> str:
        areas = [area(held_out.true == k, columns[k], sample_weight=weights) for k in there]
        return f"{np.mean(areas):.4f}"

    return [
        ("held-out ROC AUC", f"{mean(roc_auc_score)}{over}{held_out.weighted}"),
        ("average precision", f"{mean(average_precision_score)}{of}{held_out.weighted}"),
    ]


def about_errors(
    scored: ScoredPart, loss: Loss, which: str, quantile: float = 0.5
) -> list[tuple[str, str]]:
    """Rows of the summary: errors on a part of the rows, "training" or "held-out".

    Parameters
    ----------
    scored : ScoredPart
    loss : str
        That of a quantity.
    which : str
    quantile : float
        Which one the quantile loss asks for.
    """
    own = np.asarray(scored.model.quantities_of(scored.scores))
    predicted = scored.offsets.applied(own, scored.model)
    true, weights, exposure = scored.y, scored.weights, scored.offsets.exposure
    if exposure is not None:  # rates, whose deviances are those of the counts by unit of exposure
        predicted, true = predicted / exposure, true / exposure
        weights = exposure if weights is None else weights * exposure
    mean = np.full(len(true), np.average(true, weights=weights))
    if loss == "quantile":
        found = _of_quantile(true, predicted, weights, quantile)
    elif loss == "squared_error":
        found = _of_squares(true, predicted, mean, weights)
    else:
        found = _of_deviance(true, predicted, mean, weights, loss)
    found[next(iter(found))] += scored.weighted
    if which == "training":  # the rows held out say more
        found = dict([*found.items()][:1])
    return [(f"{which} {name}", text) for name, text in found.items()]


def _of_squares(
    true: np.ndarray, predicted: np.ndarray, mean: np.ndarray, weights: np.ndarray | None
) -> dict[str, str]:
    """Root mean squared error, mean absolute error and R2 of predictions, beside the mean alone."""

    def errors(given: np.ndarray) -> tuple[float, float]:
        gaps = np.abs(true - given)
        largest = float(gaps.max()) or 1.0  # squares of very large gaps would overflow
        square = float(np.average((gaps / largest) ** 2, weights=weights))
        return largest * math.sqrt(square), float(np.average(gaps, weights=weights))

    (root, absolute), (root_of_mean, absolute_of_mean) = errors(predicted), errors(mean)
    found = {
        "RMSE": f"{number_text(root)}; their mean alone has {number_text(root_of_mean)}",
        "MAE": f"{number_text(absolute)}; their mean alone has {number_text(absolute_of_mean)}",
    }
    if root_of_mean > 0.0:
        found["R2"] = f"{1.0 - (root / root_of_mean) ** 2:.4f}"
    return found


def _of_quantile(
    true: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None, quantile: float
) -> dict[str, str]:
    """The mean pinball loss, beside that of the best single number, and the share below."""

    def loss(given: np.ndarray) -> float:
        gaps = true - given
        losses = np.maximum(quantile * gaps, (quantile - 1.0) * gaps)
        return float(np.average(losses, weights=weights))

    order = np.argsort(true)
    upto = np.cumsum(np.ones(len(true)) if weights is None else weights[order])
    place = min(np.searchsorted(upto, quantile * upto[-1]), len(true) - 1)
    alone = loss(np.full(len(true), true[order[place]]))
    below = float(np.average(true <= predicted, weights=weights))
    return {
        "pinball": f"{number_text(loss(predicted))}; their quantile alone has {number_text(alone)}",
        "share at or below": f"{below:.4f}, asked for {quantile:g}",
    }


def _of_deviance(
    true: np.ndarray, predicted: np.ndarray, mean: np.ndarray, weights: np.ndarray | None, loss: str
) -> dict[str, str]:
    """The mean deviance, the share of it that is explained, and the totals."""
    from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

    mean_deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    weight = 1.0 if weights is None else weights
    expected, observed = (number_text(np.sum(own * weight)) for own in (predicted, true))
    total = f"{expected} predicted, {observed} observed"
    if not mean.all():  # there are no counts at all
        return {"total": total}
    deviance = float(mean_deviance(true, predicted, sample_weight=weights))
    of_mean = float(mean_deviance(true, mean, sample_weight=weights))
    found = {"deviance": f"{number_text(deviance)}; their mean alone has {number_text(of_mean)}"}
    if of_mean > 0.0:
        found["D2"] = f"{1.0 - deviance / of_mean:.4f}"
    return found | {"total": total}
