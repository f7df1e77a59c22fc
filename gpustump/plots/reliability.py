"""Reliability: of the samples with a predicted probability of 80 %, are 80 % of the class?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label
from gpustump.plots import style
from gpustump.plots.judged import JudgedClass, JudgedSamples
from gpustump.theory.proportions import effective_size, wilson_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRIP = 0.24
"""The height of the strip below, as a share of the axes'."""


class _Bins(NamedTuple):
    """Samples by their probability, (n_bins,) each; NaN for bins without samples.

    Attributes
    ----------
    predicted : ndarray
        The mean probability.
    observed : ndarray
        The share of the samples that are of the class.
    low, high : ndarray
        The 95 % interval for that share.
    weight : ndarray
        The share of all samples in the bin.
    """

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


def reliability_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    label: Label | Iterable[Label] | None = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often predictions come true, over their probability, with a histogram below.

    Parameters
    ----------
    model, X, y, sample_weight, label
        As for `roc_curve`.
    n_bins : int
        The number of bins, equally wide, into which the probabilities are sorted.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip of the histogram takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the curve. The figure's last Axes are those of the strip.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    For each bin, the share of its samples that are of the class over the mean of their
    probabilities: `sklearn.calibration.calibration_curve`, with weights. Above the diagonal the
    predicted probabilities are too small, below it too large. After many rounds of boosting, they
    are often too close to 0 and 1 [Niculescu-Mizil and Caruana 2005]. If one class is drawn, bars
    show the 95 % interval of each share [Wilson 1927]; for weighted samples its size is Kish's
    effective number. The Brier score is the mean squared difference between the probability and 1
    for samples of the class, or 0 for others.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X = [[value] for value in range(20)]
    >>> y = [0, 1] * 3 + [0] * 4 + [1] * 10
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.reliability_curve(clf, X, y, n_bins=5)
    >>> ax.get_ylabel(), len(ax.figure.axes)
    ('share that is class 1', 2)
    """
    from sklearn.metrics import brier_score_loss

    check_count(n_bins, "n_bins")
    samples = JudgedSamples.of(model, X, y, sample_weight)
    drawn = samples.classes(label)
    ax = style.tidy_axes(ax, 5.2, 5.4)
    strip = style.strip_below(ax, _STRIP)
    ax.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, zorder=1, gid="calibrated")
    edges = np.linspace(0, 1, n_bins + 1)
    for one in drawn:
        score = brier_score_loss(one.is_it, one.probability, sample_weight=samples.weights)
        bins = _bins(one, samples, edges)
        _draw_bins(ax, one, bins, f"{one.name}: Brier score {score:.4g}", len(drawn) == 1)
        _draw_histogram(strip, one, bins.weight, edges, len(drawn) == 1)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="share that is of the class")
    if len(drawn) == 1:
        ax.set_ylabel(f"share that is {drawn[0].name}")
    strip.set(xlabel="predicted probability", ylabel="samples", yticks=[])
    if sample_weight is not None:
        strip.set_ylabel("weight")
    strip.yaxis.label.set_fontsize("small")
    strip.spines["left"].set_visible(False)
    strip.set_ylim(bottom=0)
    handles, names = ax.get_legend_handles_labels()
    line = ax.get_lines()[0]
    look: Any = {"ncols": style.columns_for(names), "title": samples.choice(drawn)}
    style.legend_above(
        ax, [*handles, line], [*names, "as often as predicted"], alignment="left", **look
    )
    return style.make_current(ax)


def _bins(one: JudgedClass, samples: JudgedSamples, edges: np.ndarray) -> _Bins:
    n_bins = len(edges) - 1
    shares = samples.shares
    at = np.searchsorted(edges[1:-1], one.probability)  # as scikit-learn's calibration_curve
    weight = np.bincount(at, shares, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        predicted = np.bincount(at, shares * one.probability, minlength=n_bins) / weight
        observed = np.bincount(at, shares * one.is_it, minlength=n_bins) / weight
    ends = np.full((n_bins, 2), np.nan)
    for k in np.unique(at):
        ends[k] = wilson_interval(min(float(observed[k]), 1.0), effective_size(shares[at == k]))
    return _Bins(predicted, observed, ends[:, 0], ends[:, 1], weight)


def _draw_bins(ax: Axes, one: JudgedClass, bins: _Bins, text: str, is_alone: bool) -> None:
    is_used = bins.weight > 0
    x, y = bins.predicted[is_used], bins.observed[is_used]
    look: Any = {"marker": "o", "markersize": 5, "clip_on": False, **one.look}
    ax.plot(x, y, label=text, gid=one.name, **look)
    if is_alone:
        ends = bins.low[is_used], bins.high[is_used]
        ax.vlines(x, *ends, color=one.look["color"], linewidth=1.0, alpha=0.6, clip_on=False)


def _draw_histogram(
    strip: Axes, one: JudgedClass, weight: np.ndarray, edges: np.ndarray, is_alone: bool
) -> None:
    if is_alone:
        strip.stairs(weight, edges, fill=True, facecolor="#b3b3b3", edgecolor="none")
    else:
        strip.stairs(weight, edges, color=one.look["color"], linestyle=one.look["linestyle"])
