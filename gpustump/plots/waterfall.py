"""A waterfall: how the score of one row comes about, from the intercept, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label, model_of
from gpustump.plots import style
from gpustump.plots.columns import Groups, terms_of
from gpustump.plots.one_row import (
    Bar,
    amount_text,
    bars_of,
    known_score,
    name_axis,
    name_of_score,
    row_score,
    score_text,
    table_of_row,
    write_prediction,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AMOUNT = 0.45
"""The room for an amount beside its bar, in inches."""


def waterfall(
    model: Any,
    row: Any,
    *,
    n_features: int = 10,
    groups: Groups | None = None,
    label: Label | None = None,
    init_score: Any = None,
    exposure: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the score of one row comes about: the intercept, and what each feature adds.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    row : array (n_features,) or (1, n_features)
        Of any array library; NaN means missing. Also a frame of one row, or a row of a pandas
        frame, in which the features are found by name.
    n_features : int
        How many features, and pairs of features, have a bar of their own: those that add or take
        away most. The others that contribute are summed in one bar.
    groups : mapping, optional
        Categories, as for `shape_functions`. One has one bar, and its value stands beside its name.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is; by default the one predicted.
    init_score : float or array (n_classes,), optional
    exposure : float, optional
        What is known of the row beforehand, as `predict` takes it. It has a bar of its own.
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
    A feature's contribution is the sum of its votes, `StumpEnsemble.explain`. The widths of the
    bars add up to `decision_function` bit for bit, in any order, if nothing is known beforehand.
    (Sums of votes made by hand may be rounded.) With two classes the second one is predicted if the
    score is above 0. Of the scores of a softmax only the differences between classes mean
    something.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.waterfall(clf, X[2])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['intercept', 'feature 0 = 3', 'feature 1 = 8', 'score']
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    if label is not None:
        ensemble.output_index(label)  # refused before the row is read
    known = known_score(ensemble, init_score, exposure)
    terms = terms_of(ensemble, groups)
    found = row_score(ensemble, table_of_row(model, row), terms, label, known)
    bars = [Bar("intercept", found.intercept), *bars_of(found, n_features)]
    ax = style.tidy_axes(ax, 6.4, 1.2 + 0.32 * (len(bars) + 1))
    _draw(ax, bars, found.score.value, name_of_score(found))
    name_axis(ax, score_text(found))
    write_prediction(ax, found)
    return style.make_current(ax)


def _draw(ax: Axes, bars: list[Bar], score: float, name: str) -> None:
    """The bars, each from where the one above ends, and below the score, under its name."""
    amounts = np.asarray([bar.amount.value for bar in bars])
    ends = np.cumsum(amounts)
    starts = np.concatenate([[0.0], ends[:-1]])
    ax.axvline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    for k, (start, amount) in enumerate(zip(starts.tolist(), amounts.tolist(), strict=True)):
        colour = style.GREY if k == 0 else (style.BLUE if amount > 0 else style.VERMILION)
        hatch = "" if amount > 0 or k == 0 else "////"
        look: Any = {"color": colour, "hatch": hatch, "edgecolor": ax.get_facecolor()}
        ax.barh(k, amount, 0.66, left=start, gid="contribution", linewidth=0.0, **look)
        below = k + 1
        ax.plot([start + amount] * 2, [k - 0.33, below + 0.33], color=style.GREY, linewidth=0.8)
    ax.barh(len(bars), score, 0.66, facecolor="none", edgecolor=style.ink(), gid="score")
    low, high = min(0.0, ends.min()), max(0.0, ends.max())
    room = min(0.4, _AMOUNT / (0.55 * style.width(ax))) * (high - low) or 1.0
    ax.set_xlim(low - room, high + room)
    for k, (start, amount) in enumerate(zip(starts.tolist(), amounts.tolist(), strict=True)):
        _write(ax, k, (start, start + amount), amount)
    _write(ax, len(bars), (0.0, score), score)
    ax.set_yticks(range(len(bars) + 1), [*(bar.name for bar in bars), name])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set_ylim(len(bars) + 0.6, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _write(ax: Axes, place: int, ends: tuple[float, float], amount: float) -> None:
    """An amount as text at the end of its bar."""
    goes_up = amount >= 0
    ax.annotate(
        amount_text(amount),
        (max(ends) if goes_up else min(ends), place),
        xytext=(4 if goes_up else -4, 0),
        textcoords="offset points",
        ha="left" if goes_up else "right",
        va="center",
        fontsize="x-small",
        color=style.ink(),
    )
