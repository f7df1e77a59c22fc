"""The distribution of the samples' margins, and how it changes with the rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import style, terms
from gpustump.theory import class_margins, normalised_margins
from gpustump.theory.arguments import weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDS = (5, 100)
"""Margins are drawn after these rounds and after all, as by Schapire et al. (1998)."""

_MOST = 5
"""The most curves in one picture."""


def margin_distribution(
    model: Any,
    X: Any,
    y: Any,
    *,
    rounds: int | Iterable[int] | None = None,
    sample_weight: Any = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cumulative distribution of the samples' margins, after some numbers of rounds.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features)
    y : array (n_samples,)
        Labels of the model's classes.
    rounds : int or iterable of int, optional
        At most 5 numbers; by default 5, 100 and all, or fewer if the model has fewer rounds.
    sample_weight : array (n_samples,), optional
        The weights of the samples; those of weight 0 take no part.
    label : bool, int, float or str, optional
        With more than two classes, the class whose margins against the rest are drawn; by default
        the margins among all classes, the only ones that scores of a softmax have.
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
    Schapire, Freund, Bartlett and Lee (1998), figure 1: the share of the samples with a normalised
    margin (`gpustump.theory.normalised_margins`) of theta or less, for each theta, which is
    `gpustump.theory.share_below`. Samples left of 0 are misclassified. Margins among all classes
    are `gpustump.theory.class_margins`. Pairs of features are learnt after the last round, so they
    are part of the margins after all rounds only, and the legend says so.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=20).fit(X, y)
    >>> ax = plots.margin_distribution(clf, X, y, rounds=[1, 20])
    >>> ax.get_xlabel(), len(ax.lines)
    ('normalised margin', 3)
    """
    ensemble = model_of(model)
    ensemble.refuse_quantity()
    if label is not None and ensemble.link == "softmax":
        raise ValueError(
            "label must be left out, as scores of a softmax have margins among all classes only; "
            f"got {label!r}."
        )
    one_class = None if label is None else ensemble.output_index(label)
    n_rounds = ensemble.n_rounds
    if label is not None:
        n_rounds = len(ensemble.members[ensemble.member_index(label)])
    chosen = _chosen(rounds, n_rounds)
    X = terms.table_of(model, X)
    weights = weights_of(sample_weight, X)
    ax = style.tidy_axes(ax)
    ax.axvline(0.0, color=style.GREY, linewidth=0.8)
    for count, look in zip(chosen, style.line_looks(len(chosen))[::-1], strict=True):
        margins = arrays.to_host(_margins(ensemble.truncated(count), one_class, X, y))
        rounds_text = f"{count} round{'s' * (count != 1)}"
        if ensemble.pairs and count >= n_rounds:
            rounds_text += " and pairs"
        ax.plot(*_corners(margins, weights), label=rounds_text, **look)
    of = "the samples" if sample_weight is None else "the weight"
    ax.set(xlim=(-1.01, 1.01), ylim=(0, 1.01), ylabel=f"share of {of} with that margin or less")
    whose = f", among all {len(ensemble.classes)} classes"
    if label is not None:
        whose = f", {terms.score_name(ensemble, label)} against rest"
    ax.set_xlabel("normalised margin" + whose * (not ensemble.is_binary))
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    return style.make_current(ax)


def _margins(model: StumpEnsemble, one_class: int | None, X: Array, y: Any) -> Array:
    """The margins of samples among all classes, or those of one class against the rest."""
    if model.is_binary or one_class is None:
        return class_margins(model, X, y)
    return normalised_margins(model, X, y)[:, one_class]


def _chosen(rounds: int | Iterable[int] | None, n_rounds: int) -> list[int]:
    """Numbers of rounds, increasing."""
    if rounds is None:
        return sorted({min(count, n_rounds) for count in (*_ROUNDS, n_rounds)})
    chosen = sorted({check_count(count, "rounds", least=0) for count in terms.several(rounds)})
    if not 1 <= len(chosen) <= _MOST:
        raise ValueError(f"rounds must be 1 to {_MOST} numbers; got {len(chosen)}.")
    if chosen[-1] > n_rounds:
        raise ValueError(
            f"rounds must be at most {n_rounds}, the model's number; got {chosen[-1]}."
        )
    return chosen


def _corners(margins: np.ndarray, weights: IntegerWeights) -> tuple[np.ndarray, np.ndarray]:
    """The cumulative distribution from -1 to 1, with a step at each margin.

    Shares are ratios of integers, rounded once, and equal those of `share_below`.
    """
    has_weight = weights.values > 0
    values, at = np.unique(margins[has_weight], return_inverse=True)
    at_margin = np.zeros(len(values), dtype=np.int64)
    np.add.at(at_margin, at, weights.values[has_weight])
    shares = [0.0, *(up_to / weights.total for up_to in np.cumsum(at_margin).tolist())]
    return style.corners(values, shares, (-1.01, 1.01))
