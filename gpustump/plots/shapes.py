"""Shape functions: what each feature adds to the score, drawn step by step.

All stumps on one feature add up to one step function, so the picture is the model itself and not an
estimate of it, as partial dependence would be. Corners lie at the thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.ensemble import Label, StumpEnsemble
from gpustump.plots import inputs, limits, style
from gpustump.tables import StepTable
from gpustump.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_BARS = 20
"""A feature of so many values or fewer has a bar for each in the strip below."""

_BINS = 40
_COLUMNS = 3
_AT_EDGE = (1.015, 1.055)
"""Where the vote for missing values stands, right of the axes, in their width."""


@dataclass(frozen=True)
class _Data:
    """A feature's values in a table: what is below the function, and how it is read.

    `values` and `shares` of the weight are those of the samples that are present; `missing` is the
    share of the others.
    """

    values: np.ndarray
    shares: np.ndarray
    missing: float
    is_boolean: bool


def shape_function(
    model: Any,
    feature: int | str,
    *,
    X: Any = None,
    sample_weight: Any = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a feature's part in the score as a function of its value.

    Parameters
    ----------
    model : AdaBoostClassifier, DecisionStumpClassifier or StumpEnsemble
    feature : int or str
        Its index, or its name if the model has names.
    X : array (n_samples, n_features), optional
        Samples, whose distribution is drawn in a strip below, with the same x axis; of any array
        library, and a frame if the model is an estimator.
    sample_weight : array (n_samples,), optional
        What the samples count in the strip.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score is meant.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the step function; with X, the strip's are the figure's newest.

    Raises
    ------
    ValueError, TypeError
        If there is no such feature or class, or X or sample_weight is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The component functions of a generalised additive model [Hastie and Tibshirani 1986], which
    boosted stumps are [Friedman, Hastie and Tibshirani 2000, section 5]: here from
    `StumpEnsemble.shape_function`, in units of the score, half the log-odds.

    The picture ends with the finite values of X, or a little outside the thresholds, and before
    tails that would leave the bulk no room; steps beyond it are counted at its edge. The vote for
    missing values stands to the right: without X wherever it is not 0, with X where a value is
    missing.
    """
    ensemble = inputs.model_of(model)
    index = ensemble.feature_index(feature)
    table = ensemble.shape_function(index, label=label)
    data = _data_of(model, X, sample_weight, index)
    ax = style.tidy_axes(ax, height=3.6 if data is None else 4.2)
    _draw(ax, table, data)
    ax.set_ylabel(f"contribution to the score of {inputs.score_name(ensemble, label)}")
    bottom = ax if data is None else _strip(ax, data)
    bottom.set_xlabel(inputs.feature_name(ensemble, index))
    return ax


def shape_functions(
    model: Any,
    *,
    X: Any = None,
    sample_weight: Any = None,
    features: Iterable[int | str] | None = None,
    n_features: int = 6,
    label: Label | None = None,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw the shape functions that matter most, side by side and to the same scale.

    Parameters
    ----------
    model, X, sample_weight, label
        As for `shape_function`.
    features : iterable of int or str, optional
        Which ones, in this order. By default those whose contributions to the score that is drawn
        differ most over X, or without X those with the most votes; see
        `StumpEnsemble.contribution_importances` and `StumpEnsemble.feature_importances`.
    n_features : int
        How many, if `features` is not given; fewer if the score uses fewer.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to draw on; a new figure by default.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each feature.

    Raises
    ------
    ValueError, TypeError
        If there is no such feature or class, or an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    Sources and limits as for `shape_function`. The scale of y is shared, so that heights compare.
    """
    ensemble = inputs.model_of(model)
    number = ensemble.member_index(label)
    check_count(n_features, "n_features")
    if features is None:
        shares = importances_of(model, inputs.alone(ensemble, number), X, sample_weight)
        chosen = top(shares, n_features) or [0]
    else:
        chosen = [ensemble.feature_index(feature) for feature in features]
    if not chosen:
        raise ValueError("features is empty; name one at least, or leave it out.")
    grid = _grid(figure, len(chosen), has_strip=X is not None)
    for index, ax in zip(chosen, grid, strict=True):
        shape_function(model, index, X=X, sample_weight=sample_weight, label=label, ax=ax)
        ax.set_ylabel("")
    _share_scale(grid)
    line = "\n" if len(chosen) <= _COLUMNS else " "  # one row leaves the label little room
    text = f"contribution to{line}the score of {inputs.score_name(ensemble, label)}"
    grid[0].figure.supylabel(text, fontsize="medium")
    return grid


def importances_of(
    model: Any, ensemble: StumpEnsemble, X: Any, sample_weight: Any = None
) -> np.ndarray:
    """Shares of contributions over X, or of votes if there is none; `model` knows how to read X."""
    if X is None:
        return ensemble.feature_importances()
    return ensemble.contribution_importances(inputs.table_of(model, X), sample_weight)


def top(shares: np.ndarray, limit: int) -> list[int]:
    """The features of the largest shares, the largest first; none without a share."""
    order = np.argsort(-shares, kind="stable")[:limit]
    return [int(index) for index in order if shares[index] > 0]


def _data_of(model: Any, X: Any, sample_weight: Any, feature: int) -> _Data | None:
    if X is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is given without X; give both, or neither.")
        return None
    table = inputs.table_of(model, X)
    values, units = inputs.column_of(table, feature), inputs.units_of(sample_weight, table)
    is_there, mass = ~np.isnan(values) & (units > 0), int(units.sum())
    lacking = int(units[np.isnan(values)].sum()) / mass
    is_boolean = arrays.dtype_name(table) == "bool"
    return _Data(values[is_there], units[is_there] / mass, lacking, is_boolean)


def _draw(ax: Axes, table: StepTable, data: _Data | None) -> None:
    """The zero line, the steps, the vote for missing values, and what is not in view."""
    finite = table.thresholds[np.isfinite(table.thresholds)]
    if data is not None and _is_flag(data.values):
        low, high = -0.5, 1.5
    elif data is None:
        low, high = limits.bulk(finite, 0.15, core=(0.05, 0.95))
    else:
        low, high = limits.bulk(data.values, 0.02, core=(0.01, 0.99))
    ax.axhline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    x, y = corners(table, low, high)
    ax.plot(x, y, color=style.BLUE, linewidth=1.8, solid_joinstyle="miter", gid="steps")
    ax.set_xlim(low, high)
    _mark_missing(ax, table, data)
    _count_hidden(ax, table.thresholds[:-1], low, high)
    if not table.values.any() and table.missing == 0.0:
        ax.set(ylim=(-1.0, 1.0), yticks=[0.0])
        if data is None:
            ax.set_xticks([])
        style.note(ax, "not used", y=0.6)


def corners(table: StepTable, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a step function between two values: two at each threshold."""
    inside = (table.thresholds > low) & (table.thresholds < high)
    first = int(np.searchsorted(table.thresholds, low, side="right"))
    values = table.values[first : first + int(inside.sum()) + 1]
    edges = np.concatenate([[low], table.thresholds[inside], [high]])
    return np.repeat(edges, 2)[1:-1], np.repeat(values, 2)


def _mark_missing(ax: Axes, table: StepTable, data: _Data | None) -> None:
    """The vote for missing values behind the right edge; grey if nobody knows whether there are."""
    if (table.missing == 0.0) if data is None else (data.missing == 0.0):
        return
    across = ax.get_yaxis_transform()
    colour, face = (style.GREY, "white") if data is None else (style.VERMILION, style.VERMILION)
    look: Any = {"color": colour, "transform": across, "clip_on": False}
    ax.plot(_AT_EDGE, [table.missing] * 2, linewidth=1.6, **look)
    middle = sum(_AT_EDGE) / 2
    ax.plot([middle], [table.missing], "D", mfc=face, markersize=5, gid="missing", **look)
    share = "" if data is None else f" ({percent(data.missing)})"
    ax.annotate(
        f"missing{share}",
        (_AT_EDGE[1], table.missing),
        xycoords=across,
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        va="center",
        color=colour if data is None else "black",
        fontsize="small",
        annotation_clip=False,
    )


def percent(share: float) -> str:
    """A share as text; one that is not 0 is never written as if it were."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def _count_hidden(ax: Axes, thresholds: np.ndarray, low: float, high: float) -> None:
    """How many steps lie beyond the edges."""
    left, right = int((thresholds <= low).sum()), int((thresholds >= high).sum())
    for count, x, ha, text in ((left, 0.01, "left", "← {}"), (right, 0.99, "right", "{} →")):
        if count:
            steps = f"{count} step{'s' * (count > 1)} beyond"
            style.note(ax, text.format(steps), x=x, y=0.02, ha=ha, va="bottom")


def _strip(ax: Axes, data: _Data) -> Axes:
    """The samples' distribution, below."""
    strip = style.strip_below(ax, 0.2)
    low, high = ax.get_xlim()
    in_view = (data.values >= low) & (data.values <= high)
    values, shares = data.values[in_view], data.shares[in_view]
    distinct, at = np.unique(values, return_inverse=True)
    look: Any = {"facecolor": "#b3b3b3", "edgecolor": "none"}
    if len(distinct) <= _BARS:
        width = 0.6 * min([high - low, *np.diff(distinct)]) if len(distinct) > 1 else 0.2
        heights = np.bincount(at, weights=shares, minlength=len(distinct))
        strip.bar(distinct, heights, max(width, (high - low) / 200), **look)
    else:
        edges = np.linspace(low, high, _BINS + 1)
        heights, _ = np.histogram(values, edges, weights=shares)
        strip.stairs(heights, edges, fill=True, **look)
    strip.set(yticks=[], ylabel="data", xlim=(low, high))
    strip.yaxis.label.set_fontsize("small")
    strip.spines["left"].set_visible(False)
    if _is_flag(data.values):
        strip.set_xticks([0, 1], ["false", "true"] if data.is_boolean else ["0", "1"])
    return strip


def _is_flag(values: np.ndarray) -> bool:
    return values.size > 0 and bool(np.isin(values, (0.0, 1.0)).all())


def _grid(figure: Figure | SubFigure | None, n_panels: int, *, has_strip: bool) -> np.ndarray:
    """So many axes, row by row, three in a row."""
    columns = 2 if n_panels == 4 else min(n_panels, _COLUMNS)
    rows = -(-n_panels // columns)
    if figure is None:
        figure = style.new_figure(0.5 + 2.9 * columns, (2.5 if has_strip else 2.1) * rows)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    return np.asarray(grid[:n_panels])


def _share_scale(grid: np.ndarray) -> None:
    """One scale of y, that of the panel that needs most."""
    bounds = [ax.dataLim.intervaly for ax in grid]
    low, high = min(0.0, *(b[0] for b in bounds)), max(0.0, *(b[1] for b in bounds))
    margin = 0.06 * (high - low) or 1.0
    for ax in grid:
        ax.set_ylim(low - margin, high + margin)
