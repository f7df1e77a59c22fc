"""Predictions of a quantity: the true values over them, and what the predictions miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import check_targets
from gpustump.model.ensemble import model_of
from gpustump.plots import inputs, style
from gpustump.theory.proportions import effective_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 2000
"""Of more samples a random choice is drawn as points; means and figures are those of all."""

_WITHIN = 1.959963984540054
"""Standard errors to either side of a mean that make a 95 % interval."""


@dataclass(frozen=True)
class _Judged:
    """Samples of positive weight, (n_samples,) each, and their share of the weight.

    With exposures, values are rates, and weights are multiplied by the exposures.
    """

    true: np.ndarray
    predicted: np.ndarray
    shares: np.ndarray
    link: str
    has_exposure: bool

    @property
    def name(self) -> str:
        return "rate" if self.has_exposure else "value"

    @property
    def points(self) -> np.ndarray:
        """Which samples are drawn as points."""
        n_samples = len(self.true)
        if n_samples <= _MOST_POINTS:
            return np.arange(n_samples)
        return np.sort(np.random.default_rng(0).choice(n_samples, _MOST_POINTS, replace=False))

    @property
    def explained(self) -> str:
        """The share of the squared error of the mean that is explained, R2; D2 for deviances."""
        mean = float(self.true @ self.shares)
        own, of_mean = self._loss(self.predicted), self._loss(np.full(len(self.true), mean))
        name = "R²" if self.link == "identity" else "D²"
        return f"{name} = {1.0 - own / of_mean:.3f}" if of_mean > 0.0 else "all values are equal"

    def _loss(self, predicted: np.ndarray) -> float:
        """The mean squared error; with a logarithmic link the Poisson deviance, but for a part that
        all predictions share."""
        if self.link == "identity":
            scale = max(float(np.abs(own).max()) for own in (self.true, predicted)) or 1.0
            return float(np.square((self.true - predicted) / scale) @ self.shares)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.true > 0.0, self.true * np.log(self.true / predicted), 0.0)
        return 2.0 * float((logs - self.true + predicted) @ self.shares)


class _Means(NamedTuple):
    """Groups of samples with similar predictions: mean predictions, mean values, and intervals."""

    predicted: np.ndarray
    true: np.ndarray
    half: np.ndarray


def true_over_predicted(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    init_score: Any = None,
    exposure: Any = None,
    n_groups: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the true values of a quantity over the predicted ones.

    Points are samples, a random choice of 2000 if there are more. Marks are means of groups of
    samples with similar predictions, with 95 % intervals: if predictions are right on average, they
    lie on the diagonal.

    Parameters
    ----------
    model : StumpEnsemble or fitted regressor
    X : array or frame (n_samples, n_features)
    y : array (n_samples,)
        The true values.
    sample_weight : array (n_samples,), optional
    init_score, exposure : array (n_samples,), optional
        What is known of each sample beforehand, as `StumpBoostingRegressor.predict` takes it. With
        exposures, rates are drawn.
    n_groups : int
        How many groups of equal weight.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If the model predicts classes.
    ValueError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The interval of a mean is 1.96 standard errors to either side; for weighted samples their number
    is Kish's effective one. The legend has R2, the share of the variance that is explained; for
    counts and costs D2, the share of the Poisson deviance [McCullagh and Nelder 1989, 2.3]. Most
    counts and costs are far from their means, so the y axis ends at two and a half times the
    largest mean, and a note says how many samples lie above.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gpustump import StumpBoostingRegressor, plots
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = StumpBoostingRegressor().fit(X[100:], y[100:])
    >>> ax = plots.true_over_predicted(reg, X[:100], y[:100])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted value', 'true value')
    """
    judged = _judged(model, X, y, sample_weight, (init_score, exposure))
    ax = style.tidy_axes(ax, 5.2, 4.8)
    at = judged.points
    _draw_points(ax, judged.predicted[at], judged.true[at])
    means = _means(judged, judged.true, n_groups)
    _draw_means(ax, means)
    ends = [float(judged.predicted.min()), float(judged.predicted.max())]
    if judged.link == "log":  # most counts and costs are far from their means
        top = 2.5 * float((means.true + means.half).max())
        ax.set_ylim(0.0, top)
        above = float(judged.shares[judged.true > top].sum())
        if above:
            style.note(ax, f"{100 * above:.2g} % of the samples lie above", y=0.98, va="top")
    else:
        ends = [min(ends[0], float(judged.true.min())), max(ends[1], float(judged.true.max()))]
    ax.plot(ends, ends, color=style.GREY, linewidth=0.9, label="as predicted")
    ax.set(xlabel=f"predicted {judged.name}", ylabel=f"true {judged.name}")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=2, title=judged.explained)
    return style.make_current(ax)


def residuals(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    init_score: Any = None,
    exposure: Any = None,
    n_groups: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw what predictions of a quantity miss, true minus predicted, over the predictions.

    Points and marks are as in `true_over_predicted`. A bend in the marks is something that the
    model has not learnt; points that spread more on one side call for another loss, or for a
    logarithm of the target.

    Parameters
    ----------
    model, X, y, sample_weight, init_score, exposure, n_groups, ax
        As for `true_over_predicted`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError, ImportError
        As `true_over_predicted`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gpustump import StumpBoostingRegressor, plots
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = StumpBoostingRegressor().fit(X[100:], y[100:])
    >>> plots.residuals(reg, X[:100], y[:100]).get_ylabel()
    'true minus predicted value'
    """
    judged = _judged(model, X, y, sample_weight, (init_score, exposure))
    ax = style.tidy_axes(ax, 5.2, 4.4)
    gaps = judged.true - judged.predicted
    at = judged.points
    _draw_points(ax, judged.predicted[at], gaps[at])
    _draw_means(ax, _means(judged, gaps, n_groups))
    ax.axhline(0.0, color=style.GREY, linewidth=0.9, label="as predicted")
    ax.set(xlabel=f"predicted {judged.name}", ylabel=f"true minus predicted {judged.name}")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=2)
    return style.make_current(ax)


def _judged(model: Any, X: Any, y: Any, sample_weight: Any, offset: tuple[Any, Any]) -> _Judged:
    """Check samples, and predict them; those of weight 0 are left out."""
    from gpustump.estimators.targets import Offset

    ensemble = model_of(model)
    if not ensemble.is_regression:
        raise TypeError("this model predicts classes; the picture is for a quantity.")
    X = inputs.table_of(model, X)
    is_log = ensemble.link == "log"
    with arrays.computing_on(X):
        true = arrays.to_host(check_targets(y, X))
    units = inputs.weights_of(sample_weight, X)
    predicted = ensemble.quantities_of(arrays.to_host(ensemble.decision_function(X)))
    rows = predicted[:, np.newaxis]
    known = Offset(*offset).of_quantity(rows, "poisson" if is_log else "squared_error")
    weights = units.values.astype(np.float64) / float(units.total)
    has_exposure = offset[1] is not None
    if known is not None and has_exposure:  # rates, each as much as its exposure
        own = arrays.to_host(as_array(offset[1], "exposure")).astype(np.float64)
        predicted, true, weights = predicted * known / own, true / own, weights * own
    elif known is not None:
        predicted = predicted * known if is_log else predicted + known
    counts = weights > 0.0
    shares = weights[counts] / weights[counts].sum()
    return _Judged(true[counts], predicted[counts], shares, ensemble.link, has_exposure)


def _means(judged: _Judged, values: np.ndarray, n_groups: int) -> _Means:
    """Groups of about equal weight in the order of the predictions; equal ones stay together."""
    order = np.argsort(judged.predicted, kind="stable")
    predicted, values, shares = judged.predicted[order], values[order], judged.shares[order]
    group = np.minimum((np.cumsum(shares) - shares / 2) * n_groups, n_groups - 1).astype(int)
    first = np.r_[True, predicted[1:] != predicted[:-1]]
    group = group[np.maximum.accumulate(np.where(first, np.arange(len(group)), 0))]
    found = []
    for number in np.unique(group):
        inside = group == number
        own = shares[inside] / shares[inside].sum()
        mean, of_predicted = float(values[inside] @ own), float(predicted[inside] @ own)
        gaps = np.abs(values[inside] - mean)
        scale = float(gaps.max()) or 1.0  # squares stay finite
        deviation = scale * np.sqrt(float(np.square(gaps / scale) @ own))
        error = deviation / np.sqrt(max(effective_size(shares[inside]) - 1.0, 1.0))
        found.append((of_predicted, mean, _WITHIN * float(error)))
    return _Means(*np.asarray(found).T)


def _draw_points(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    look: Any = {"s": 9, "alpha": 0.35, "color": style.SKY, "edgecolors": "none", "zorder": 1}
    ax.scatter(x, y, label="samples", **look)


def _draw_means(ax: Axes, means: _Means) -> None:
    look: Any = {"fmt": "o", "markersize": 4.5, "elinewidth": 1.2, "color": style.BLUE, "zorder": 3}
    ax.errorbar(means.predicted, means.true, yerr=means.half, label="means of groups", **look)
