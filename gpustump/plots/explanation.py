"""An explanation of one row: what each feature adds to its score, the largest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label, model_of
from gpustump.plots import style
from gpustump.plots.columns import Groups, columns_of
from gpustump.plots.one_row import (
    Bar,
    RowScore,
    amount_text,
    bars_of,
    name_axis,
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
    ax: Axes | None = None,
) -> Axes:
    """Draw what each feature adds to the score of one row, as bars from 0, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    row : array (n_features,) or (1, n_features)
        As for `waterfall`.
    n_features : int
        How many features have a bar of their own: those that add or take away most. The others
        that contribute are summed in one bar.
    groups : mapping, optional
        Categories, as for `shape_functions`. One has one bar, and its value stands beside its name.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is; by default the one predicted.
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
    to the score that stands below them: `decision_function` bit for bit.
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    if label is not None:
        ensemble.output_index(label)  # refused before the row is read
    columns = columns_of(ensemble, groups)
    return draw_row(row_score(ensemble, table_of_row(model, row), columns, label), n_features, ax)


def draw_row(row: RowScore, n_features: int, ax: Axes | None) -> Axes:
    """Draw a row whose score is known, on `ax` or on a new figure."""
    bars = bars_of(row, n_features)
    ax = style.tidy_axes(ax, 6.4, 1.3 + 0.3 * (len(bars) + 2))
    _draw(ax, bars, row)
    name_axis(ax, f"contribution to the {score_text(row)}")
    write_prediction(ax, row)
    return style.make_current(ax)


def _draw(ax: Axes, bars: list[Bar], row: RowScore) -> None:
    """The bars, that of the intercept, and below a line the score, which is their sum."""
    every = [*bars, Bar("intercept", row.intercept)]
    n_bars = len(every)
    ax.axvline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    for k, (_, amount) in enumerate(every):
        colour = style.BLUE if amount > 0 else style.VERMILION
        look: Any = {"color": style.GREY if k == n_bars - 1 else colour, "linewidth": 0.0}
        look |= {"hatch": "////"} if amount < 0 else {}
        ax.barh(k, amount, 0.66, gid="contribution", edgecolor=ax.get_facecolor(), **look)
    _set_limits(ax, np.asarray([bar.amount for bar in every]))
    for k, (_, amount) in enumerate(every):
        _write(ax, k, amount)
    ax.axhline(n_bars - 0.5, color=style.ink(), linewidth=0.8, gid="sum")
    _write(ax, n_bars, row.score, at_zero=True)
    ax.set_yticks(range(n_bars + 1), [*(bar.name for bar in every), "score"])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set_ylim(n_bars + 0.5, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _set_limits(ax: Axes, amounts: np.ndarray) -> None:
    """Limits with room for the amounts beside the bars; on a side without bars there is none."""
    low, high = min(0.0, amounts.min()), max(0.0, amounts.max())
    room = min(0.4, _AMOUNT / (0.55 * style.width(ax))) * (high - low) or 1.0
    ax.set_xlim(low - room if low < 0 else -0.02 * high, high + room)


def _write(ax: Axes, place: int, amount: float, *, at_zero: bool = False) -> None:
    """An amount as text at the end of its bar; the score has none, and stands at 0."""
    goes_up = amount >= 0 or at_zero
    ax.annotate(
        amount_text(amount),
        (0.0 if at_zero else amount, place),
        xytext=(4 if goes_up else -4, 0),
        textcoords="offset points",
        ha="left" if goes_up else "right",
        va="center",
        fontsize="small" if at_zero else "x-small",
        fontweight="bold" if at_zero else "normal",
        color=style.ink(),
    )
