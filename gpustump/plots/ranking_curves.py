"""How well scores separate a class from the rest: ROC curves, and precision over recall.

The points, areas and average precisions are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.model.ensemble import Label
from gpustump.plots import style
from gpustump.plots.judged import JudgedClass, JudgedSamples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ONE_KIND = "all samples are of one class"


def roc_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    label: Label | Iterable[Label] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the true positive rate over the false positive rate, for all thresholds on the score.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features)
        Samples, best those that were held out.
    y : array (n_samples,)
        Labels of the model's classes.
    sample_weight : array (n_samples,), optional
        The weights of the samples.
    label : bool, int, float or str, or an iterable of these, optional
        With more than two classes, the class that is drawn against the rest, or several, with a
        line each. By default all; if there are more than 6, the most frequent ones.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    `sklearn.metrics.roc_curve` and `roc_auc_score`: of two classes for the second one, ranked by
    the score; of more classes for each, ranked by its probability. A mark shows what the model
    predicts: with two classes, at the threshold 0. The diagonal is the curve of random scores.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.roc_curve(clf, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class 1: area 0.8333', 'chance: area 0.5', 'as predicted']
    """
    from sklearn import metrics

    samples = JudgedSamples.of(model, X, y, sample_weight)
    drawn = samples.classes(label)
    ax = style.tidy_axes(ax, 5.2, 5.0)
    if not any(one.has_both for one in drawn):
        style.leave_empty(ax, _ONE_KIND)
        return style.make_current(ax)
    chance: Any = {"color": style.GREY, "linewidth": 0.8, "zorder": 1}
    for one in drawn:
        if not one.has_both:
            continue
        given: Any = {"sample_weight": samples.weights}
        x, y_, _ = metrics.roc_curve(one.is_it, one.ranking, **given)
        area = metrics.roc_auc_score(one.is_it, one.ranking, **given)
        ax.plot(x, y_, label=f"{one.name}: area {area:.4g}", gid=one.name, **_look(one))
        _mark(ax, one, _rate(one, samples, ~one.is_it), _rate(one, samples, one.is_it))
    ax.plot([0, 1], [0, 1], label="chance: area 0.5", gid="chance", **chance)
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    return _finished(ax, samples.choice(drawn))


def precision_recall_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    label: Label | Iterable[Label] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the precision over the recall, for all thresholds on the score.

    Parameters
    ----------
    model, X, y, sample_weight, label, ax
        As for `roc_curve`.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    `sklearn.metrics.precision_recall_curve` and `average_precision_score`, which is the area below
    the steps. Precision is the share of the samples predicted to be of the class that are of it.
    Recall, the true positive rate, is the share of the samples of the class that are predicted to
    be of it. A mark shows what the model predicts. The thin lines are the shares of the classes:
    the precision of random scores.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.precision_recall_curve(clf, X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('recall', 'precision')
    """
    from sklearn import metrics

    samples = JudgedSamples.of(model, X, y, sample_weight)
    drawn = samples.classes(label)
    ax = style.tidy_axes(ax, 5.2, 5.0)
    if not any(one.has_both for one in drawn):
        style.leave_empty(ax, _ONE_KIND)
        return style.make_current(ax)
    for one in drawn:
        if not one.has_both:
            continue
        given: Any = {"sample_weight": samples.weights}
        precision, recall, _ = metrics.precision_recall_curve(
            one.is_it, one.ranking, drop_intermediate=True, **given
        )
        mean = metrics.average_precision_score(one.is_it, one.ranking, **given)
        text = f"{one.name}: average precision {mean:.4g}"
        look: Any = {"gid": one.name, "drawstyle": "steps-post", **_look(one)}
        ax.plot(recall, precision, label=text, **look)
        share = float(samples.shares[one.is_it].sum())
        _draw_chance(ax, one, share, is_alone=len(drawn) == 1)
        if one.predicted.any():
            right = float(samples.shares[one.predicted & one.is_it].sum())
            called = float(samples.shares[one.predicted].sum())
            _mark(ax, one, _rate(one, samples, one.is_it), right / called)
    if len(drawn) > 1:
        ax.plot([], [], color=style.GREY, linewidth=0.8, label="chance: the share of the class")
    ax.set(xlabel="recall", ylabel="precision")
    return _finished(ax, samples.choice(drawn))


def _draw_chance(ax: Axes, one: JudgedClass, share: float, *, is_alone: bool) -> None:
    """A thin line at the share of the class."""
    look: Any = {"linewidth": 0.8, "zorder": 1, "gid": "chance"}
    if is_alone:
        text = f"chance: {share:.4g}, the share of {one.name}"
        ax.axhline(share, color=style.GREY, label=text, **look)
    else:
        ax.axhline(share, color=one.look["color"], linestyle=one.look["linestyle"], **look)


def _rate(one: JudgedClass, samples: JudgedSamples, among: np.ndarray) -> float:
    """The share of some samples' weight that is predicted to be of the class."""
    shares = samples.shares
    return float(shares[among & one.predicted].sum() / shares[among].sum())


def _look(one: JudgedClass) -> dict[str, Any]:
    return {**one.look, "clip_on": False, "solid_joinstyle": "miter"}


def _mark(ax: Axes, one: JudgedClass, x: float, y: float) -> None:
    """A mark at what the model predicts."""
    look: Any = {"color": one.look["color"], "mec": ax.get_facecolor(), "ms": 8, "zorder": 5}
    ax.plot([x], [y], "o", clip_on=False, gid=f"{one.name} as predicted", **look)


def _finished(ax: Axes, title: str | None) -> Axes:
    """Limits, and a legend with an entry for the marks."""
    from matplotlib.lines import Line2D

    ax.set(xlim=(0, 1), ylim=(0, 1))
    handles, names = ax.get_legend_handles_labels()
    mark = Line2D([], [], linestyle="", marker="o", color=style.GREY, markersize=7)
    look: Any = {"ncols": style.columns_for(names), "title": title, "alignment": "left"}
    style.legend_above(ax, [*handles, mark], [*names, "as predicted"], **look)
    return style.make_current(ax)
