"""One panel of shape functions: the steps of a feature, or the bars of a category.

A panel shows what one column adds to one score, or to the scores of several classes. It is made in
two stages: `panel_of` computes all that is drawn, as values, and `draw_panel` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.readable import temporal_text
from gpustump.learners.step_table import StepTable
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.model.explanation import categories_of, step_table_of
from gpustump.plots import inputs, limits, spread, style
from gpustump.plots.columns import (
    Category,
    CategoryRows,
    CategoryVotes,
    Column,
    category_rows,
    category_votes,
    name_of,
)
from gpustump.plots.numbered import rows_of, votes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_DISTINCT = 20
"""A feature with at most this many distinct values has a bar for each in the strip below."""

_STEPS = 8
"""Without samples, the scale is linear with at most so many thresholds: they tell too little."""

_BINS = 40

_VALUES = 12
"""The most values of a category that have bars; fewer if there are bars for several classes."""

_BARS = 30
"""The most bars of a category, over all classes."""

_VALUE_NAME = 12
"""The middle of a value's name with more characters is cut out."""

_CHARACTER = 0.058
"""The mean width of a character in names of values, in inches."""

_MISSING = "missing text"

_AT_EDGE = (1.015, 1.055)
"""The place of the vote for missing values, right of the axes, in shares of their width."""


@dataclass(frozen=True)
class DrawnScore:
    """A score whose parts are drawn: its label, as models take it, and its look."""

    label: Label | None
    name: str
    look: dict[str, Any]


@dataclass(frozen=True)
class _Values:
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
class StepPanel:
    """A feature's step functions and values, in the unit that they are drawn in.

    Attributes
    ----------
    name : str
    unit : str
        The unit as text to put after the name; empty for the feature's own.
    kind : str
        Of the feature's column: `data.columns` names them.
    scores : tuple of DrawnScore
    tables : tuple of StepTable
        One for each score.
    data : _Values or None
    learnt_missing : bool
        Whether the votes for missing values were learnt from some, as far as is known.
    """

    name: str
    unit: str
    kind: str
    scores: tuple[DrawnScore, ...]
    tables: tuple[StepTable, ...]
    data: _Values | None
    learnt_missing: bool

    @property
    def shows_missing(self) -> bool:
        votes = [table.missing for table in self.tables]
        return _shows_missing(votes, self.data, learnt=self.learnt_missing)


@dataclass(frozen=True)
class CategoryPanel:
    """A category's votes and values.

    Attributes
    ----------
    name : str
    scores : tuple of DrawnScore
    votes : tuple of CategoryVotes
        One for each score.
    values : tuple of str
    data : CategoryRows or None
    learnt_missing : bool
        As for `StepPanel`.
    """

    name: str
    scores: tuple[DrawnScore, ...]
    votes: tuple[CategoryVotes, ...]
    values: tuple[str, ...]
    data: CategoryRows | None
    learnt_missing: bool

    @property
    def shows_missing(self) -> bool:
        votes = [one.missing for one in self.votes]
        return _shows_missing(votes, self.data, learnt=self.learnt_missing)


Panel = StepPanel | CategoryPanel


def panel_of(
    model: StumpEnsemble,
    column: Column,
    scores: Sequence[DrawnScore],
    samples: inputs.Samples | None,
) -> Panel:
    """What is drawn of a column.

    Raises
    ------
    ValueError
        If the column is a category, and the samples are not as `category_rows` needs them.
    """
    if isinstance(column, Category):
        return CategoryPanel(
            name_of(model, column),
            tuple(scores),
            tuple(category_votes(model, column, score.label) for score in scores),
            column.values,
            None if samples is None else category_rows(samples, column),
            any(inputs.learnt_missing(model, feature) for feature in column.features),
        )
    names = categories_of(model, column)
    if names is not None:
        return CategoryPanel(
            name_of(model, column),
            tuple(scores),
            tuple(votes_of(model, column, score.label) for score in scores),
            tuple(names.values()),
            None if samples is None else rows_of(samples, column, names),
            inputs.learnt_missing(model, column),
        )
    tables = [step_table_of(model, column, score.label) for score in scores]
    data = None if samples is None else _values_of(samples, column)
    thresholds = np.concatenate([table.thresholds for table in tables])
    kind = inputs.kind_of(model, column)
    known = thresholds if data is None or not data.values.size else data.values
    unit, text = limits.unit_of_kind(known, kind)
    if data is not None:
        data = replace(data, values=limits.in_unit(data.values, unit))
    return StepPanel(
        name_of(model, column),
        text,
        kind,
        tuple(scores),
        tuple(replace(t, thresholds=limits.in_unit(t.thresholds, unit)) for t in tables),
        data,
        inputs.learnt_missing(model, column),
    )


def draw_panel(ax: Axes, strip: Axes | None, panel: Panel) -> None:
    """A panel, and the values in the data if there is a strip for them."""
    ax.axhline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    if isinstance(panel, CategoryPanel):
        _draw_category(ax, strip, panel)
        (ax if strip is None else strip).set_xlabel(panel.name)
    else:
        _draw_feature(ax, strip, panel)


def keep_room(ax: Axes) -> None:
    """Make the layout leave room for the width of the text on the right, but not for its height.

    An invisible line, half as high as the axes, takes up this room.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    points = 3 + 1.4 * FontProperties(size="small").get_size_in_points()
    shift = ScaledTranslation(points / 72, 0, ax.figure.dpi_scale_trans)
    place = [1.0, _AT_EDGE[1]], [0.25, 0.75]
    look: Any = {"linestyle": "none", "clip_on": False, "transform": ax.transAxes + shift}
    ax.add_artist(Line2D(*place, **look))


def turn_texts_inwards(ax: Axes) -> None:
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


def corners(
    table: StepTable, heights: np.ndarray, view: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The corners in view of steps with heights (k,) at a table's thresholds, two at each."""
    low, high = view
    inside = (table.thresholds > low) & (table.thresholds < high)
    first = int(np.searchsorted(table.thresholds, low, side="right"))
    values = heights[first : first + int(inside.sum()) + 1]
    edges = np.concatenate([[low], table.thresholds[inside], [high]])
    return style.corners(edges, values)


def percent(share: float) -> str:
    """A share as text; only 0 is written as 0 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def _shows_missing(
    votes: Sequence[float], data: _Values | CategoryRows | None, *, learnt: bool
) -> bool:
    """Whether votes for missing values are drawn.

    With data, they are drawn if values are missing there, as those rows get the votes. Without,
    they are drawn if they are not 0 and were learnt from missing values.
    """
    if data is not None:
        return data.missing != 0.0
    return learnt and any(vote != 0.0 for vote in votes)


def _values_of(samples: inputs.Samples, feature: int) -> _Values:
    X, weights = samples.X, samples.weights
    values = inputs.column_of(X, feature)
    is_missing = np.isnan(values)
    is_shown = ~is_missing & (weights.values > 0)
    return _Values(
        values[is_shown],
        weights.values[is_shown] / weights.total,
        weights.share(is_missing),
        arrays.dtype_name(X) == "bool",
    )


def _draw_feature(ax: Axes, strip: Axes | None, panel: StepPanel) -> None:
    """The steps, the votes for missing values, and counts of steps and values out of view."""
    data = panel.data
    thresholds = np.concatenate([table.thresholds for table in panel.tables])
    bottom = ax if strip is None else strip
    view, is_whole = _view(thresholds, data, panel.kind)
    low, high = view.low, view.high
    if view.scale != "linear":
        own = {"linear_width": view.linear_width} if view.scale == "asinh" else {}
        ax.set_xscale(view.scale, **own)
    is_alone, heights = len(panel.scores) == 1, []
    for score, table in zip(panel.scores, panel.tables, strict=True):
        x, y = corners(table, table.values, (low, high))
        if table.bags is not None:
            low_end, high_end = (
                corners(table, table.values + side * table.deviations[:-1], (low, high))[1]
                for side in (-1, 1)
            )
            spread.fill_band(ax, x, (low_end, high_end), score.look)
        gid = "steps" if is_alone else f"steps of {score.name}"
        ax.plot(x, y, solid_joinstyle="miter", gid=gid, label=score.name, **score.look)
        heights.append(y)
    ax.set_xlim(low, high)
    note = style.few_ticks(bottom, panel.kind, is_whole=is_whole)
    style.name_across(bottom, panel.name, panel.unit + view.note + note)
    if panel.shows_missing:
        _mark_missing(ax, panel, [_missing(table) for table in panel.tables])
    _count_hidden(
        ax,
        np.unique(thresholds[np.isfinite(thresholds)]),
        np.asarray([[y[0], y[-1], y.min(), y.max()] for y in heights]),
        None if data is not None else panel.kind,
    )
    if not any(table.values.any() or table.missing for table in panel.tables):
        ax.set(ylim=(-1.0, 1.0), yticks=[0.0])
        if data is None:
            ax.set_xticks([])
        style.note(ax, "not used", y=0.6)
    if strip is not None and data is not None:
        _fill_strip(strip, data, panel.kind)


def _view(thresholds: np.ndarray, data: _Values | None, kind: str) -> tuple[limits.View, bool]:
    """The limits of the x axis and its scale, and whether its ticks are whole numbers."""
    if data is not None and _is_flag(data.values):
        return limits.View(-0.5, 1.5), True
    values = thresholds[np.isfinite(thresholds)] if data is None else data.values
    pad, few = (0.15, _STEPS) if data is None else (0.02, _DISTINCT)
    if kind in ("date", "datetime", "time"):
        view = limits.View(*limits.bulk(values, pad))
    else:
        view = limits.readable(values, pad, few)
    low, high = view.low, view.high
    if data is None:
        return view, limits.are_between_whole(values, (low, high))
    if view.scale != "linear":
        return view, False
    distinct = np.unique(data.values[(data.values >= low) & (data.values <= high)])
    if 1 < len(distinct) <= _DISTINCT:  # room for half a bar
        room = 0.35 * float(np.diff(distinct).min())
        low, high = min(low, float(distinct[0]) - room), max(high, float(distinct[-1]) + room)
    return limits.View(low, high), limits.is_whole(distinct, (low, high))


def _missing(table: StepTable) -> tuple[float, float]:
    """The vote for missing values, and its standard deviation over the bags; 0 without bags."""
    return table.missing, 0.0 if table.bags is None else float(table.deviations[-1])


def _mark_missing(ax: Axes, panel: Panel, votes: list[tuple[float, float]]) -> None:
    """The votes for missing values, right of the axes; hollow if there are no samples.

    Each comes with its standard deviation over the bags, for a line above and below; 0 for no line.
    They are kept out of the layout, which would shrink the axes if the text is higher than they
    are. `keep_room` makes room at the side.
    """
    across = ax.get_yaxis_transform()
    data, is_alone = panel.data, len(votes) == 1
    usual = style.GREY if data is None else style.VERMILION
    for (vote, deviation), score in zip(votes, panel.scores, strict=True):
        colour = usual if is_alone else score.look["color"]
        is_hollow = data is None or not panel.learnt_missing
        face = ax.get_facecolor() if is_hollow else colour
        look: Any = {"color": colour, "transform": across, "clip_on": False, "in_layout": False}
        ax.plot(_AT_EDGE, [vote] * 2, linewidth=1.6, **look)
        middle = sum(_AT_EDGE) / 2
        if deviation:
            ends = [vote - deviation, vote + deviation]
            ax.plot([middle] * 2, ends, linewidth=0.9, gid="spread of missing", **look)
        gid = "missing" if is_alone else f"missing of {score.name}"
        ax.plot([middle], [vote], "D", mfc=face, markersize=5, gid=gid, **look)
    share = "" if data is None else f" ({percent(data.missing)})"
    ax.annotate(
        f"missing{share}" if panel.learnt_missing else f"missing{share}: not learnt",
        (_AT_EDGE[1], sorted(vote for vote, _ in votes)[len(votes) // 2]),
        xycoords=across,
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        va="center",
        color=style.GREY if data is None else style.ink(),
        fontsize="small",
        annotation_clip=False,
        in_layout=False,
        gid=_MISSING,
    )


def _count_hidden(ax: Axes, thresholds: np.ndarray, heights: np.ndarray, kind: str | None) -> None:
    """The number of steps beyond each edge, as text above or below the functions.

    Parameters
    ----------
    ax : Axes
    thresholds : ndarray (n_thresholds,) of float64
        Distinct and finite, of all functions.
    heights : ndarray (n_functions, 4) of float64
        At the left edge, at the right edge, the lowest and the highest.
    kind : str or None
        Of the column, to write how far the steps go; None where the strip says how far values go.
    """
    view = ax.get_xlim()
    left, right = int((thresholds <= view[0]).sum()), int((thresholds >= view[1]).sum())
    middle = (min(0.0, heights[:, 2].min()) + max(0.0, heights[:, 3].max())) / 2
    for count, ends, x, ha, text in (
        (left, heights[:, 0], 0.01, "left", "← {}"),
        (right, heights[:, 1], 0.99, "right", "{} →"),
    ):
        if count:
            y, va = (0.02, "bottom") if ends.mean() > middle else (0.98, "top")
            steps = f"{count} step{'s' * (count > 1)} beyond"
            if kind is not None:
                steps += f", to {value_text(float(thresholds[0 if x < 0.5 else -1]), kind)}"
            box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.8, "alpha": 0.8}
            style.note(ax, text.format(steps), x=x, y=y, ha=ha, va=va, bbox=box)


def _fill_strip(strip: Axes, data: _Values, kind: str) -> None:
    """The histogram of the samples' values, below the function."""
    low, high = strip.get_xlim()
    in_view = (data.values >= low) & (data.values <= high)
    values, shares = data.values[in_view], data.shares[in_view]
    distinct, at = np.unique(values, return_inverse=True)
    look: Any = {"facecolor": "#b3b3b3", "edgecolor": "none"}
    if len(distinct) <= _DISTINCT and strip.get_xscale() == "linear":
        width = 0.6 * min([high - low, *np.diff(distinct)]) if len(distinct) > 1 else 0.2
        heights = np.bincount(at, weights=shares, minlength=len(distinct))
        strip.bar(distinct, heights, max(width, (high - low) / 200), **look)
    else:
        placed: Any = strip.xaxis.get_transform()
        first, last = placed.transform([low, high]).tolist()
        edges = placed.inverted().transform(np.linspace(first, last, _BINS + 1))
        edges[[0, -1]] = low, high
        heights, _ = np.histogram(values, edges, weights=shares)
        strip.stairs(heights, edges, fill=True, **look)
    _name_strip(strip, (low, high))
    for beyond, x, text in (
        (data.values < low, 0.0, "← {}, to {}"),
        (data.values > high, 1.0, "{}, to {} →"),
    ):
        if beyond.any():
            furthest = data.values[beyond].max() if x else data.values[beyond].min()
            share = percent(float(data.shares[beyond].sum()))
            where: Any = {"x": x, "y": 0.98, "ha": "right" if x else "left", "va": "top"}
            text = text.format(share, value_text(float(furthest), kind))
            style.note(strip, text, fontsize="x-small", **where)
    if _is_flag(data.values):
        strip.set_xticks([0, 1], ["false", "true"] if data.is_boolean else ["0", "1"])


def _name_strip(strip: Axes, view: tuple[float, float]) -> None:
    strip.set(yticks=[], ylabel="data", xlim=view)
    strip.yaxis.label.set_fontsize("small")
    strip.spines["left"].set_visible(False)


def value_text(value: float, kind: str) -> str:
    """A value in the unit of a panel as text: dates, and datetimes in days, as dates."""
    if kind in ("date", "datetime"):
        return temporal_text(value, "date") or style.number_text(value)
    return (temporal_text(value, kind) if kind == "time" else None) or style.number_text(value)


def _is_flag(values: np.ndarray) -> bool:
    return values.size > 0 and bool(np.isin(values, (0.0, 1.0)).all())


def _draw_category(ax: Axes, strip: Axes | None, panel: CategoryPanel) -> None:
    """A bar for each value and score, from 0 to the sum of the category's contributions."""
    data = panel.data
    shown = _shown_values(panel)
    names = style.different_words([panel.values[k] for k in shown], _VALUE_NAME)
    has_other = data is not None and data.other > 0
    if has_other:
        names.append("(other)")
    width = 0.8 / len(panel.scores)
    for k, (score, votes) in enumerate(zip(panel.scores, panel.votes, strict=True)):
        of_values = [*shown.tolist(), *[len(panel.values)] * has_other]
        own = np.append(votes.values, votes.other)[of_values]
        at = np.arange(len(names)) + (k - (len(panel.scores) - 1) / 2) * width
        gid = "bars" if len(panel.scores) == 1 else f"bars of {score.name}"
        look: dict[str, Any] = {"color": score.look["color"], "gid": gid}
        if votes.deviations is not None:
            look |= {"yerr": votes.deviations[of_values], **spread.line_look()}
        ax.bar(at, own, 0.9 * width, **look)
    view = -0.6, len(names) - 0.4
    ax.set_xlim(view)
    bottom = ax if strip is None else strip
    if strip is not None and data is not None:
        shares = np.append(data.values[shown], [data.other] * has_other)
        strip.bar(np.arange(len(names)), shares, 0.6, facecolor="#b3b3b3", edgecolor="none")
        _name_strip(strip, view)
    _name_values(bottom, names)
    if panel.shows_missing:
        _mark_missing(ax, panel, [(one.missing, one.deviation_of_missing) for one in panel.votes])
    if hidden := len(panel.values) - len(shown):
        style.note(ax, f"{hidden} more values", x=0.99, y=0.98, ha="right", va="top")


def _shown_values(panel: CategoryPanel) -> np.ndarray:
    """The values with bars, by what they add to the first score, the largest first.

    If there are too many, these are the most frequent ones; without data, those whose votes differ
    most from their middle.
    """
    votes = panel.votes[0].values
    if panel.data is not None:
        rank = panel.data.values
    else:
        rank = np.max([abs(one.values - np.median(one.values)) for one in panel.votes], axis=0)
    limit = max(4, min(_VALUES, _BARS // len(panel.scores)))
    shown = np.argsort(-rank, kind="stable")[:limit]
    return np.sort(shown)[np.argsort(-votes[np.sort(shown)], kind="stable")]


def _name_values(ax: Axes, names: list[str]) -> None:
    """The names of values below the bars, at an angle if they are long."""
    ax.set_xticks(range(len(names)), names)
    if _CHARACTER * sum(len(name) + 2 for name in names) > style.width(ax):
        look: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(names)), names, fontsize="x-small", **look)
