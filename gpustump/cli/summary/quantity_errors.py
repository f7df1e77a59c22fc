"""How good the predictions of a quantity are, beside those of its mean alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.cli.columns.training import Part
from gpustump.cli.wording import number_text
from gpustump.model.ensemble import StumpEnsemble


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
