"""Shape functions: what each feature adds to the score.

All stumps on one feature add up to one step function, and the picture draws it exactly, with
corners at the thresholds. Partial dependence, in contrast, is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.parameters import check_count
from gpustump.learners.step_table import StepTable
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, limits, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

_BARS = 20
"""A feature with at most this many distinct values has a bar for each in the strip below."""

_BINS = 40
_MISSING = "missing text"
_COLUMNS = 3
_STRIP = 0.2
"""The height of the strip below, as a share of the panel's."""

_AT_EDGE = (1.015, 1.055)
"""The place of the vote for missing values, right of the axes, in shares of their width."""


@dataclass(frozen=True)
class _Data:
    """A feature's values in a table, for the strip below the function.

    Attributes
    ----------
    values : ndarray (n_present,) of float64
        Of the samples of positive weight that have a value.
    shares : ndarray (n_present,) of float64
        Their shares of the total weight.
    missing : float
        The share of the samples without a value.
    is_boolean : bool
        Whether the table holds booleans.
    """

    values: np.ndarray
    shares: np.ndarray
    missing: float
    is_boolean: bool


@dataclass(frozen=True)
class _Panel:
    """One feature's step function and data, in the unit that they are drawn in."""

    name: str
    table: StepTable
    data: _Data | None

    @property
    def shows_missing(self) -> bool:
        """Whether the vote for missing values is drawn: with data only if values are missing."""
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
        Samples, whose values are drawn as a histogram in a strip below; an array of any library, or
        a frame if the model is an estimator.
    sample_weight : array (n_samples,), optional
        The weights of the samples in the histogram.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the step function. With X, the figure's last Axes are those of the strip.

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

    The x axis covers the finite values of X, or without X the thresholds. Long tails are cut off,
    and a text at the edge counts the steps there. The vote for missing values is drawn to the
    right: without X if it is not 0, with X if a value is missing. Values too large or too small for
    Matplotlib are drawn in units of a power of ten, which the axis names.
    """
    ensemble = model_of(model)
    index = ensemble.feature_index(feature)
    ensemble.member_index(label)  # refused before a table is read
    samples = inputs.samples_of(model, X, sample_weight)
    panel = _panel_of(ensemble, index, label, samples)
    ax = style.tidy_axes(ax, height=3.6 if samples is None else 4.2)
    _draw_panel(ax, None if samples is None else style.strip_below(ax, _STRIP), panel)
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
    """Draw the shape functions of the most important features, with one scale for all.

    Parameters
    ----------
    model, X, sample_weight, label
        As for `shape_function`.
    features : int, str, or an iterable of these, optional
        Which ones, in this order. By default those with the largest
        `StumpEnsemble.contribution_importances` over X, or without X the largest
        `StumpEnsemble.feature_importances`.
    n_features : int
        How many, if `features` is not given; fewer if the model uses fewer.
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
    Sources and limits as for `shape_function`. All panels have the same y axis. If contributions
    are the same in all rows of X, the features with the most votes are drawn.
    """
    ensemble = model_of(model)
    number = ensemble.member_index(label)
    check_count(n_features, "n_features")
    chosen = (
        None if features is None else [ensemble.feature_index(f) for f in inputs.several(features)]
    )
    if chosen == []:
        raise ValueError("features is empty; name one at least, or leave it out.")
    samples = inputs.samples_of(model, X, sample_weight)
    if chosen is None:
        one = inputs.alone(ensemble, number)
        chosen = top(one, contributions_of(one, samples), n_features)
    return draw_panels(ensemble, chosen, label, samples, figure)


def draw_panels(
    model: StumpEnsemble,
    features: list[int],
    label: Label | None,
    samples: inputs.Samples | None,
    figure: Figure | SubFigure | None,
) -> np.ndarray:
    """The shape functions of some features; of the first feature if the list is empty."""
    features = features or [0]
    panels = [_panel_of(model, index, label, samples) for index in features]
    grid, strips = _grid(figure, len(panels), has_strip=samples is not None)
    has_missing = any(panel.shows_missing for panel in panels)
    for ax, strip, panel in zip(grid, strips, panels, strict=True):
        _draw_panel(ax, strip, panel)
        if has_missing:
            _keep_room(ax)
    _share_scale(grid)
    for ax in grid:
        _turn_texts_inwards(ax)
    line = "\n" if len(features) <= _COLUMNS else " "  # one row has little height for the label
    text = f"contribution to{line}the score of {inputs.score_name(model, label)}"
    grid[0].figure.supylabel(text, fontsize="medium")
    style.make_current(grid[0])
    return grid


def contributions_of(model: StumpEnsemble, samples: inputs.Samples | None) -> np.ndarray:
    """Each feature's share of the contributions, (n_features,).

    All are 0 if there are no samples, or if all samples have the same score.
    """
    if samples is None:
        return np.zeros(model.n_features)
    return model.contribution_importances(samples.X, samples.sample_weight)


def top(model: StumpEnsemble, contributions: np.ndarray, limit: int) -> list[int]:
    """The features with the largest shares of contributions, or of votes if all those are 0."""
    return largest(contributions if contributions.any() else model.feature_importances(), limit)


def largest(shares: np.ndarray, limit: int) -> list[int]:
    """The features with the largest shares, in decreasing order; features without a share not."""
    order = np.argsort(-shares, kind="stable")[:limit]
    return [int(index) for index in order if shares[index] > 0]


def _panel_of(
    model: StumpEnsemble, feature: int, label: Label | None, samples: inputs.Samples | None
) -> _Panel:
    table = model.shape_function(feature, label=label)
    data = None if samples is None else _data_of(samples, feature)
    known = table.thresholds if data is None or not data.values.size else data.values
    unit = limits.unit(known)
    table = replace(table, thresholds=limits.in_unit(table.thresholds, unit))
    if data is not None:
        data = replace(data, values=limits.in_unit(data.values, unit))
    return _Panel(inputs.feature_name(model, feature) + limits.unit_text(unit), table, data)


def _data_of(samples: inputs.Samples, feature: int) -> _Data:
    X, weights = samples.X, samples.weights
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
    """A feature's steps, and the histogram of its values if there is a strip."""
    bottom = ax if strip is None else strip
    style.few_ticks(bottom)
    _draw(ax, panel)
    if strip is not None and panel.data is not None:
        _fill_strip(strip, panel.data)
    bottom.set_xlabel(panel.name)


def _draw(ax: Axes, panel: _Panel) -> None:
    """The zero line, the steps, the vote for missing values, and counts of steps out of view."""
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
    """The corners of a step function from `low` to `high`, two at each threshold."""
    inside = (table.thresholds > low) & (table.thresholds < high)
    first = int(np.searchsorted(table.thresholds, low, side="right"))
    values = table.values[first : first + int(inside.sum()) + 1]
    edges = np.concatenate([[low], table.thresholds[inside], [high]])
    return style.corners(edges, values)


def _mark_missing(ax: Axes, vote: float, data: _Data | None) -> None:
    """The vote for missing values, right of the axes; grey if there are no samples.

    It is not part of the layout: its text may be higher than the axes, and the layout would make
    the axes smaller. `_keep_room` makes room at the side.
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
    """The label of the y axis, in two lines if the axes are low."""
    text = f"contribution to the score of {score}"
    ax.set_ylabel(text)
    length = 0.5 * float(ax.yaxis.label.get_fontsize()) * len(text) / 72
    if (
        length > 1.15 * ax.bbox.height / ax.figure.dpi
    ):  # a margin, as the layout will make the axes higher
        ax.set_ylabel(text.replace(" to the", " to\nthe", 1))


def _keep_room(ax: Axes) -> None:
    """Make the layout leave room for the text on the right, but not for its height.

    An invisible line, half as high as the axes, takes the room.
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
    """Align texts near an end of the y axis so that they extend towards the middle."""
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
    """A share as text; only 0 is written as 0 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def _count_hidden(
    ax: Axes, thresholds: np.ndarray, view: tuple[float, float], heights: np.ndarray
) -> None:
    """The number of steps beyond each edge, as text above or below the function."""
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
    """The histogram of the samples' values, below the function."""
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
    """Axes for the panels, three in a row, and the strips below them."""
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
    """Panels with strips; those of a row share a grid, so that their edges are aligned."""
    gap = None if figure.get_layout_engine() else 0.35  # without a layout, room for the names
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
    """Set one scale of y for all panels, with room for the largest values."""
    bounds = [ax.dataLim.intervaly for ax in grid]
    low, high = min(0.0, *(b[0] for b in bounds)), max(0.0, *(b[1] for b in bounds))
    margin = 0.06 * (high - low) or 1.0
    for ax in grid:
        ax.set_ylim(low - margin, high + margin)
