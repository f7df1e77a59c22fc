"""Shape functions: what each feature adds to the score, drawn step by step.

All stumps on one feature add up to one step function, so the picture is the model itself and not an
estimate of it, as partial dependence would be. Corners lie at the thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import StepTable
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, limits, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

_BARS = 20
"""A feature of so many values or fewer has a bar for each in the strip below."""

_BINS = 40
_MISSING = "missing text"
_COLUMNS = 3
_STRIP = 0.2
"""The share of a panel's height that the strip below takes."""

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


@dataclass(frozen=True)
class _Panel:
    """What is drawn of a feature, in the unit that it is drawn in."""

    name: str
    table: StepTable
    data: _Data | None

    @property
    def shows_missing(self) -> bool:
        """Without data nobody knows whether values are missing; then the vote on them counts."""
        return (self.table.missing if self.data is None else self.data.missing) != 0.0


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
    boosted stumps are [Friedman, Hastie and Tibshirani 2000]: here from
    `StumpEnsemble.shape_function`, in units of the score, half the log-odds.

    The picture ends with the finite values of X, or a little outside the thresholds, and before
    tails that would leave the bulk no room; steps beyond it are counted at its edge. The vote for
    missing values stands to the right: without X wherever it is not 0, with X where a value is
    missing. Values too large or too small for Matplotlib are drawn in units of a power of ten,
    which is then named on the axis.
    """
    ensemble = model_of(model)
    index = ensemble.feature_index(feature)
    ensemble.member_index(label)  # refused before a table is read
    X = None if X is None else inputs.table_of(model, X)
    panel = _panel_of(ensemble, index, label, X, inputs.weights_if_any(sample_weight, X))
    ax = style.tidy_axes(ax, height=3.6 if X is None else 4.2)
    _draw_panel(ax, None if X is None else style.strip_below(ax, _STRIP), panel)
    if panel.shows_missing:
        _keep_room(ax)
    _say_what(ax, inputs.score_name(ensemble, label))
    _turn_texts_inwards(ax)
    return style.make_current(ax)


def shape_functions(
    model: Any,
    *,
    X: Any = None,
    sample_weight: Any = None,
    features: int | str | Iterable[int | str] | None = None,
    n_features: int = 6,
    label: Label | None = None,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw the shape functions that matter most, side by side and to the same scale.

    Parameters
    ----------
    model, X, sample_weight, label
        As for `shape_function`.
    features : int, str, or an iterable of these, optional
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
    Where contributions are the same in all rows of X, those with the most votes are drawn.
    """
    ensemble = model_of(model)
    number = ensemble.member_index(label)
    check_count(n_features, "n_features")
    chosen = (
        None if features is None else [ensemble.feature_index(f) for f in inputs.several(features)]
    )
    if chosen == []:
        raise ValueError("features is empty; name one at least, or leave it out.")
    X = None if X is None else inputs.table_of(model, X)
    weights = inputs.weights_if_any(sample_weight, X)
    if chosen is None:
        one = inputs.alone(ensemble, number)
        chosen = top(one, contributions_of(one, X, sample_weight), n_features)
    return draw_panels(ensemble, chosen, label, X, weights, figure)


def draw_panels(
    model: StumpEnsemble,
    features: list[int],
    label: Label | None,
    X: Array | None,
    weights: IntegerWeights | None,
    figure: Figure | SubFigure | None,
) -> np.ndarray:
    """The shape functions of some features; of a feature that is not used, if there are none."""
    features = features or [0]
    panels = [_panel_of(model, index, label, X, weights) for index in features]
    grid, strips = _grid(figure, len(panels), has_strip=X is not None)
    has_missing = any(panel.shows_missing for panel in panels)
    for ax, strip, panel in zip(grid, strips, panels, strict=True):
        _draw_panel(ax, strip, panel)
        if has_missing:
            _keep_room(ax)
    _share_scale(grid)
    for ax in grid:
        _turn_texts_inwards(ax)
    line = "\n" if len(features) <= _COLUMNS else " "  # one row leaves the label little room
    text = f"contribution to{line}the score of {inputs.score_name(model, label)}"
    grid[0].figure.supylabel(text, fontsize="medium")
    style.make_current(grid[0])
    return grid


def contributions_of(model: StumpEnsemble, X: Array | None, sample_weight: Any) -> np.ndarray:
    """Shares of contributions over X; all 0 if there is no X, or every row has the same score."""
    if X is None:
        return np.zeros(model.n_features)
    return model.contribution_importances(X, sample_weight)


def top(model: StumpEnsemble, contributions: np.ndarray, limit: int) -> list[int]:
    """The features of the largest shares of contributions, or of votes if those are all 0."""
    return largest(contributions if contributions.any() else model.feature_importances(), limit)


def largest(shares: np.ndarray, limit: int) -> list[int]:
    """The features of the largest shares, the largest first; none without a share."""
    order = np.argsort(-shares, kind="stable")[:limit]
    return [int(index) for index in order if shares[index] > 0]


def _panel_of(
    model: StumpEnsemble,
    feature: int,
    label: Label | None,
    X: Array | None,
    weights: IntegerWeights | None,
) -> _Panel:
    table = model.shape_function(feature, label=label)
    data = None if X is None or weights is None else _data_of(X, weights, feature)
    known = table.thresholds if data is None or not data.values.size else data.values
    unit = limits.unit(known)
    table = replace(table, thresholds=limits.in_unit(table.thresholds, unit))
    if data is not None:
        data = replace(data, values=limits.in_unit(data.values, unit))
    return _Panel(inputs.feature_name(model, feature) + limits.unit_text(unit), table, data)


def _data_of(X: Array, weights: IntegerWeights, feature: int) -> _Data:
    values = inputs.column_of(X, feature)
    is_missing = np.isnan(values)
    is_shown = ~is_missing & (weights.values > 0)
    return _Data(
        values[is_shown],
        weights.values[is_shown] / weights.total,
        weights.share(is_missing),
        arrays.dtype_name(X) == "bool",
    )


def _draw_panel(ax: Axes, strip: Axes | None, panel: _Panel) -> None:
    """A feature's steps, and its samples in the strip if there is one."""
    bottom = ax if strip is None else strip
    style.few_ticks(bottom)
    _draw(ax, panel)
    if strip is not None and panel.data is not None:
        _fill_strip(strip, panel.data)
    bottom.set_xlabel(panel.name)


def _draw(ax: Axes, panel: _Panel) -> None:
    """The zero line, the steps, the vote for missing values, and what is not in view."""
    table, data = panel.table, panel.data
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
    if panel.shows_missing:
        _mark_missing(ax, table.missing, data)
    _count_hidden(ax, table.thresholds[:-1], (low, high), y)
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
    return style.corners(edges, values)


def _mark_missing(ax: Axes, vote: float, data: _Data | None) -> None:
    """The vote for missing values behind the right edge; grey if nobody knows whether there are.

    None of it is in the layout, as it would make the axes as much lower as it stands out above or
    below them; `_keep_room` makes room at the side.
    """
    across = ax.get_yaxis_transform()
    paper = ax.get_facecolor()
    colour, face = (style.GREY, paper) if data is None else (style.VERMILION, style.VERMILION)
    look: Any = {"color": colour, "transform": across, "clip_on": False, "in_layout": False}
    ax.plot(_AT_EDGE, [vote] * 2, linewidth=1.6, **look)
    middle = sum(_AT_EDGE) / 2
    ax.plot([middle], [vote], "D", mfc=face, markersize=5, gid="missing", **look)
    share = "" if data is None else f" ({percent(data.missing)})"
    ax.annotate(
        f"missing{share}",
        (_AT_EDGE[1], vote),
        xycoords=across,
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        va="center",
        color=colour if data is None else style.ink(),
        fontsize="small",
        annotation_clip=False,
        in_layout=False,
        gid=_MISSING,
    )


def _say_what(ax: Axes, score: str) -> None:
    """The label of y, in two lines where the axes are low."""
    text = f"contribution to the score of {score}"
    ax.set_ylabel(text)
    length = 0.5 * float(ax.yaxis.label.get_fontsize()) * len(text) / 72
    if length > 1.15 * ax.bbox.height / ax.figure.dpi:  # the layout will make the axes higher
        ax.set_ylabel(text.replace(" to the", " to\nthe", 1))


def _keep_room(ax: Axes) -> None:
    """Let the layout leave as much room on the right as the text there takes, and no more above.

    What takes it is a line that cannot be seen, half as high as the axes.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    points = 3 + 1.4 * FontProperties(size="small").get_size_in_points()
    shift = ScaledTranslation(points / 72, 0, ax.figure.dpi_scale_trans)
    place = [1.0, _AT_EDGE[1]], [0.25, 0.75]
    look: Any = {"linestyle": "none", "clip_on": False, "transform": ax.transAxes + shift}
    ax.add_artist(Line2D(*place, **look))


def _turn_texts_inwards(ax: Axes) -> None:
    """Texts beside a vote near an end of the scale reach from there to the middle."""
    low, high = ax.get_ylim()
    for text in ax.texts:
        if text.get_gid() == _MISSING:
            _turn_inwards(text, (text.xy[1] - low) / (high - low))  # type: ignore[attr-defined]


def _turn_inwards(text: Text, height: float) -> None:
    if height > 2 / 3:
        text.set_verticalalignment("top")
    elif height < 1 / 3:
        text.set_verticalalignment("bottom")


def percent(share: float) -> str:
    """A share as text; one that is not 0 is never written as if it were."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def _count_hidden(
    ax: Axes, thresholds: np.ndarray, view: tuple[float, float], heights: np.ndarray
) -> None:
    """How many steps lie beyond the edges: said above or below, where the function is not."""
    left, right = int((thresholds <= view[0]).sum()), int((thresholds >= view[1]).sum())
    middle = (min(0.0, heights.min()) + max(0.0, heights.max())) / 2
    for count, end, x, ha, text in (
        (left, heights[0], 0.01, "left", "← {}"),
        (right, heights[-1], 0.99, "right", "{} →"),
    ):
        if count:
            y, va = (0.02, "bottom") if end > middle else (0.98, "top")
            steps = f"{count} step{'s' * (count > 1)} beyond"
            box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8, "alpha": 0.8}
            style.note(ax, text.format(steps), x=x, y=y, ha=ha, va=va, bbox=box)


def _fill_strip(strip: Axes, data: _Data) -> None:
    """The samples' distribution, below the function."""
    low, high = strip.get_xlim()
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


def _is_flag(values: np.ndarray) -> bool:
    return values.size > 0 and bool(np.isin(values, (0.0, 1.0)).all())


def _grid(
    figure: Figure | SubFigure | None, n_panels: int, *, has_strip: bool
) -> tuple[np.ndarray, list[Axes | None]]:
    """So many axes, row by row, three in a row, and the strips below them."""
    columns = 2 if n_panels == 4 else min(n_panels, _COLUMNS)
    rows = -(-n_panels // columns)
    if figure is None:
        figure = style.new_figure(0.5 + 2.9 * columns, (2.5 if has_strip else 2.1) * rows)
    if has_strip:
        return _grid_of_strips(figure, n_panels, columns, rows)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    return np.asarray([style.tidy_axes(ax) for ax in grid[:n_panels]]), [None] * n_panels


def _grid_of_strips(
    figure: Figure | SubFigure, n_panels: int, columns: int, rows: int
) -> tuple[np.ndarray, list[Axes | None]]:
    """The panels of a row share a grid, so that their axes and their strips are level."""
    gap = None if figure.get_layout_engine() else 0.35  # no layout makes room for names
    outer = figure.add_gridspec(rows, 1, hspace=gap)
    look: Any = {"height_ratios": [1 - _STRIP, _STRIP], "hspace": 0.06}
    grid: list[Axes] = []
    strips: list[Axes | None] = []
    for k in range(n_panels):
        row, column = divmod(k, columns)
        if column == 0:
            inner = outer[row].subgridspec(2, columns, **look)
        ax = figure.add_subplot(inner[0, column], sharey=grid[0] if grid else None)
        strip = figure.add_subplot(inner[1, column], sharex=ax)
        ax.tick_params(labelleft=column == 0)
        grid.append(style.tidy_axes(ax))
        strips.append(style.under(ax, style.tidy_axes(strip)))
    return np.asarray(grid), strips


def _share_scale(grid: np.ndarray) -> None:
    """One scale of y, that of the panel that needs most."""
    bounds = [ax.dataLim.intervaly for ax in grid]
    low, high = min(0.0, *(b[0] for b in bounds)), max(0.0, *(b[1] for b in bounds))
    margin = 0.06 * (high - low) or 1.0
    for ax in grid:
        ax.set_ylim(low - margin, high + margin)
