"""An explanation of one row: what each feature adds to its score, the largest first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label, model_of
from gpustump.plots import spread, style
from gpustump.plots.columns import Groups, terms_of
from gpustump.plots.one_row import (
    Amount,
    Bar,
    RowScore,
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

_AMOUNT = 0.6
"""The room for an amount beside its bar, in inches."""


def explanation(
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
    """Draw what each feature adds to the score of one row, as bars from 0, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    row : array (n_features,) or (1, n_features)
        As for `waterfall`.
    n_features : int
        How many features, and pairs of features, have a bar of their own: those that add or take
        away most. The others that contribute are summed in one bar. Beside the name of a pair stand
        the values of both features.
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
    The local explanation of a generalised additive model, as Explainable Boosting Machines draw it
    [Nori, Jenkins, Koch and Caruana 2019]. All bars begin at 0, so that their lengths compare;
    `waterfall` draws the same numbers one after the other. A feature's contribution is the sum of
    its votes, `StumpEnsemble.explain`. The widths of the bars, with that of the intercept, add up
    to the score that stands below them: `decision_function` bit for bit, if nothing is known
    beforehand. For a bagged model, a line at the end of each bar reaches one standard deviation
    over the bags to both sides.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.explanation(clf, X[2])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['feature 0 = 3', 'feature 1 = 8', 'intercept', 'score']
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    if label is not None:
        ensemble.output_index(label)  # refused before the row is read
    known = known_score(ensemble, init_score, exposure)
    terms = terms_of(ensemble, groups)
    found = row_score(ensemble, table_of_row(model, row), terms, label, known)
    return draw_row(found, n_features, ax)


def draw_row(row: RowScore, n_features: int, ax: Axes | None) -> Axes:
    """Draw a row whose score is known, on `ax` or on a new figure."""
    bars = [*bars_of(row, n_features), Bar("intercept", row.intercept)]
    ax = style.tidy_axes(ax, 6.4, 1.3 + 0.3 * (len(bars) + 1))
    _draw(ax, bars)
    _write_score(ax, row, [bar.name for bar in bars])
    lines = f"\nlines: {spread.caption(row.model.n_bags)}" if row.model.n_bags > 1 else ""
    name_axis(ax, f"contribution to the {score_text(row)}{lines}")
    write_prediction(ax, row)
    return style.make_current(ax)


def _draw(ax: Axes, bars: list[Bar]) -> None:
    """The bars with their amounts, the last one grey, and the spread of the bags, if any."""
    ax.axvline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    for k, (_, amount) in enumerate(bars):
        colour = style.BLUE if amount.value > 0 else style.VERMILION
        look: Any = {"color": style.GREY if k == len(bars) - 1 else colour, "linewidth": 0.0}
        look |= {"hatch": "////"} if amount.value < 0 else {}
        look |= {"xerr": amount.deviation, **spread.line_look()} if amount.bags.size else {}
        ax.barh(k, amount.value, 0.66, gid="contribution", edgecolor=ax.get_facecolor(), **look)
    amounts = [bar.amount for bar in bars]
    _set_limits(ax, amounts)
    for k, amount in enumerate(amounts):
        _write(ax, (_end(amount), k), amount.value)


def _end(amount: Amount) -> float:
    """Where a bar ends, with the line over it."""
    return amount.value + math.copysign(amount.deviation, amount.value)


def _write_score(ax: Axes, row: RowScore, names: list[str]) -> None:
    """The score below a line, as the sum that it is, and all names."""
    ax.axhline(len(names) - 0.5, color=style.ink(), linewidth=0.8, gid="sum")
    _write(ax, (0.0, len(names)), row.score.value, fontsize="small", fontweight="bold", ha="left")
    ax.set_yticks(range(len(names) + 1), [*names, name_of_score(row)])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set_ylim(len(names) + 0.5, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _set_limits(ax: Axes, amounts: list[Amount]) -> None:
    """Limits with room for the amounts beside the bars; on a side without bars there is none."""
    low = min(0.0, *(amount.value - amount.deviation for amount in amounts))
    high = max(0.0, *(amount.value + amount.deviation for amount in amounts))
    room = min(0.4, _AMOUNT / (0.55 * style.width(ax))) * (high - low) or 1.0
    ax.set_xlim(low - room if low < 0 else -0.02 * high, high + room)


def _write(ax: Axes, place: tuple[float, int], amount: float, **how: Any) -> None:
    """An amount as text at the end of its bar."""
    look: dict[str, Any] = {"ha": "left" if amount >= 0 else "right", "fontsize": "x-small"} | how
    shift = (4 if look["ha"] == "left" else -4, 0)
    look |= {"va": "center", "color": style.ink(), "textcoords": "offset points"}
    ax.annotate(amount_text(amount), place, xytext=shift, **look)
