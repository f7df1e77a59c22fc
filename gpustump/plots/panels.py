"""One panel of shape functions: the steps of a feature, or the bars of its categories.

A panel shows what one column adds to one score, or to the scores of several classes, and in a strip
below it the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.model.columns import Column
from gpustump.model.ensemble import Label, StumpEnsemble
from gpustump.model.explanation import step_table_of
from gpustump.plots import axis, style, terms
from gpustump.plots.axis import View
from gpustump.plots.terms import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DISTINCT = 20
"""A feature with at most this many distinct values has a bar for each in the strip below."""

_STEPS = 8
"""Without samples, the scale is linear with at most so many thresholds: they tell too little."""

_BINS = 40

_VALUES, _BARS = 12, 30
"""The most values of a category that have bars, and the most bars over all classes."""

_VALUE_NAME = 12
"""The middle of a value's name with more characters is cut out."""

_AT_EDGE = (1.015, 1.055)
"""The place of the vote for missing values, right of the axes, in shares of their width."""

_GREY = "#b3b3b3"
"""The colour of the samples in the strip below."""


@dataclass(frozen=True)
class DrawnScore:
    """A score whose parts are drawn: its number and its label, as models take it, and its look."""

    output: int
    label: Label | None
    name: str
    look: dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """Where a column is drawn, and what is drawn of it.

    Attributes
    ----------
    ax : Axes
    strip : Axes or None
        For the samples; None without samples.
    model : StumpEnsemble
    column : Column
    scores : sequence of DrawnScore
    samples : Samples or None
    """

    ax: Axes
    strip: Axes | None
    model: StumpEnsemble
    column: Column
    scores: Sequence[DrawnScore]
    samples: Samples | None

    @property
    def bottom(self) -> Axes:
        """The axes whose x axis has labels."""
        return self.ax if self.strip is None else self.strip

    def gid(self, what: str, score: DrawnScore) -> str:
        """The name of an artist."""
        return what if len(self.scores) == 1 else f"{what} of {score.name}"

    def draw(self) -> bool:
        """Draw the panel, and say whether it shows votes for missing values."""
        self.ax.axhline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
        values = self.column.values
        return _draw_steps(self) if values is None else _draw_bars(self, values)


def _draw_steps(panel: Panel) -> bool:
    """The steps of a feature with numbers, the votes for missing values, and the samples."""
    ax, model, (feature,), kind = panel.ax, panel.model, panel.column.features, panel.column.kind
    tables = [step_table_of(model, feature, score.label) for score in panel.scores]
    thresholds = np.unique(np.concatenate([table.thresholds for table in tables]))
    thresholds, values = thresholds[np.isfinite(thresholds)], None
    if panel.samples is not None:
        values = terms.column_of(panel.samples.X, feature)
        has_value = ~np.isnan(values) & (panel.samples.weights.values > 0)
    shown = thresholds if values is None or not has_value.any() else values[has_value]
    unit, unit_text = axis.unit_of(shown, kind)
    thresholds, shown = thresholds / unit, shown / unit
    view, is_whole = _view(shown, kind, of_samples=values is not None)
    if view.is_log:
        ax.set_xscale("log")
    limits = view.low, view.high
    for score, table in zip(panel.scores, tables, strict=True):
        x, y = style.corners(table.thresholds / unit, table.values, limits)
        if table.bags is not None:
            low, high = (
                style.corners(table.thresholds / unit, table.values + off, limits)[1]
                for off in (-table.deviations[:-1], table.deviations[:-1])
            )
            style.fill_band(ax, x, low, high, score.look["color"])
        look = {"solid_joinstyle": "miter", "label": score.name, **score.look}
        ax.plot(x, y, gid=panel.gid("steps", score), **look)
    ax.set_xlim(limits)
    ticks = max(1, min(4 if is_whole else 5, int(style.width_of(ax) / 0.45)))
    note = axis.set_ticks(panel.bottom.xaxis, kind, ticks, is_whole=is_whole)
    _name_across(panel.bottom, terms.name_of(model, panel.column), unit_text + note)
    if not any(table.values.any() or table.missing for table in tables):
        ax.set(ylim=(-1.0, 1.0), yticks=[0.0])
        style.note(ax, "not used", y=0.6)
    missing = 0.0
    if panel.samples is not None and panel.strip is not None and values is not None:
        weights = panel.samples.weights
        missing = weights.share(np.isnan(values))
        is_boolean = kind == "boolean" or arrays.dtype_name(panel.samples.X) == "bool"
        shares = weights.values[has_value] / weights.total
        _draw_samples(panel.strip, values[has_value] / unit, shares, view, kind)
        if _is_flag(values[has_value]):
            panel.strip.set_xticks([0, 1], ["false", "true"] if is_boolean else ["0", "1"])
    spread = [0.0 if own.bags is None else float(own.deviations[-1]) for own in tables]
    return _mark_missing(panel, [own.missing for own in tables], spread, missing)


def _view(values: np.ndarray, kind: str, *, of_samples: bool) -> tuple[View, bool]:
    """The part of the x axis that shows values or thresholds, and whether its ticks are whole."""
    if of_samples and _is_flag(values):
        return View(-0.5, 1.5), True
    pad = 0.02 if of_samples else 0.15
    if kind in axis.DATES:
        return axis.bulk(values, pad), False
    view = axis.readable(values, pad, _DISTINCT if of_samples else _STEPS)
    if not of_samples:
        return view, not view.is_log and axis.are_between_whole(values, view)
    distinct = np.unique(values[view.shows(values)])
    if 1 < len(distinct) <= _DISTINCT:  # room for half a bar
        room = 0.35 * float(np.diff(distinct).min())
        ends = float(distinct[0]) - room, float(distinct[-1]) + room
        view = View(min(view.low, ends[0]), max(view.high, ends[1]))
    return view, not view.is_log and axis.is_whole(distinct, view)


def _name_across(ax: Axes, name: str, note: str) -> None:
    """The label of the x axis: a name and a note such as a unit, in two lines if they are long."""
    is_long = style.CHARACTER * len(name + note) > style.width_of(ax)
    ax.set_xlabel(f"{name}\n{note.strip()}" if note and is_long else name + note)


def _draw_samples(
    strip: Axes, values: np.ndarray, shares: np.ndarray, view: View, kind: str
) -> None:
    """The histogram of the samples' values, below the function, and what lies beyond its edges."""
    inside = view.shows(values)
    distinct, at = np.unique(values[inside], return_inverse=True)
    look: Any = {"facecolor": _GREY, "edgecolor": "none"}
    if len(distinct) <= _DISTINCT and not view.is_log:
        width = 0.6 * float(np.diff(distinct).min()) if len(distinct) > 1 else 0.2
        heights = np.bincount(at, weights=shares[inside], minlength=len(distinct))
        strip.bar(distinct, heights, max(width, (view.high - view.low) / 200), **look)
    else:
        spaced = np.geomspace if view.is_log else np.linspace
        edges = spaced(view.low, view.high, _BINS + 1)
        edges[[0, -1]] = view.low, view.high
        heights, _ = np.histogram(values[inside], edges, weights=shares[inside])
        strip.stairs(heights, edges, fill=True, **look)
    _name_strip(strip)
    strip.set_xlim(view.low, view.high)
    for beyond, x, text in (
        (values < view.low, 0.0, "← {}, to {}"),
        (values > view.high, 1.0, "{}, to {} →"),
    ):
        if beyond.any():
            furthest = float(values[beyond].max() if x else values[beyond].min())
            share = style.percent(float(shares[beyond].sum()))
            where: Any = {"x": x, "y": 0.98, "ha": "right" if x else "left", "va": "top"}
            text = text.format(share, axis.value_text(furthest, kind))
            style.note(strip, text, fontsize="x-small", **where)


def _name_strip(strip: Axes) -> None:
    strip.set_yticks([])
    strip.set_ylabel("data", fontsize="small")
    strip.spines["left"].set_visible(False)


def _is_flag(values: np.ndarray) -> bool:
    return values.size > 0 and bool(np.isin(values, (0.0, 1.0)).all())


def _draw_bars(panel: Panel, values: tuple[str, ...]) -> bool:
    """A bar for each category and score, from 0 to what the column adds in such a row."""
    ax, model, scores = panel.ax, panel.model, panel.scores
    votes = [terms.votes_by_category(model, panel.column, score.label) for score in scores]
    samples, shares = panel.samples, None
    if samples is not None:
        shares = terms.shares_by_category(samples, panel.column)
    shown = _shown_values([own[0, :-2] for own in votes], shares)
    names = style.different_words([values[k] for k in shown], _VALUE_NAME)
    if shares is not None and shares[-2] > 0:
        names, shown = [*names, "(other)"], [*shown, len(values)]
    width = 0.8 / len(scores)
    no_spread = np.zeros(len(values) + 2)
    spread = [own[1:].std(axis=0, ddof=1) if len(own) > 1 else no_spread for own in votes]
    for k, (score, own, deviations) in enumerate(zip(scores, votes, spread, strict=True)):
        at = np.arange(len(names)) + (k - (len(scores) - 1) / 2) * width
        look: dict[str, Any] = {"color": score.look["color"], "gid": panel.gid("bars", score)}
        if model.bag_models:
            look |= {"yerr": deviations[shown], **style.bag_lines()}
        ax.bar(at, own[0, shown], 0.9 * width, **look)
    if panel.strip is not None and shares is not None:
        panel.strip.bar(
            np.arange(len(names)), shares[shown], 0.6, facecolor=_GREY, edgecolor="none"
        )
        _name_strip(panel.strip)
    ax.set_xlim(-0.6, len(names) - 0.4)
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "fontsize": "x-small"}
    fits = 0.06 * sum(len(name) + 2 for name in names) < style.width_of(ax)
    panel.bottom.set_xticks(range(len(names)), names, **({} if fits else turned))
    panel.bottom.set_xlabel(terms.name_of(model, panel.column))
    if hidden := len(values) - len(shown) + ("(other)" in names[-1:]):
        style.note(ax, f"{hidden} more values", x=0.99, y=0.98, ha="right", va="top")
    missing = 0.0 if shares is None else float(shares[-1])
    return _mark_missing(panel, [own[0, -1] for own in votes], [own[-1] for own in spread], missing)


def _shown_values(votes: Sequence[np.ndarray], shares: np.ndarray | None) -> list[int]:
    """The categories with bars, by what they add to the first score, the largest first.

    If there are too many, these are the most frequent ones; without data, those whose votes differ
    most from their middle.
    """
    if shares is not None:
        rank = shares[:-2]
    else:
        rank = np.max([abs(own - np.median(own)) for own in votes], axis=0)
    limit = max(4, min(_VALUES, _BARS // len(votes)))
    shown = np.sort(np.argsort(-rank, kind="stable")[:limit])
    ordered: list[int] = shown[np.argsort(-votes[0][shown], kind="stable")].tolist()
    return ordered


def _mark_missing(
    panel: Panel, votes: Sequence[float], spread: Sequence[float], share: float
) -> bool:
    """The votes for missing values, right of the axes; hollow if they are of no samples.

    With samples, they are drawn if values are missing there. Without, they are drawn if they are
    not 0 and were learnt from missing values. A line reaches one standard deviation over the bags
    to both sides.
    """
    learnt = panel.model.missing_learnt
    is_learnt = learnt is None or any(learnt[j] for j in panel.column.features)
    is_of_samples = panel.samples is not None
    if not (share if is_of_samples else is_learnt and any(votes)):
        return False
    ax = panel.ax
    across, middle = ax.get_yaxis_transform(), sum(_AT_EDGE) / 2
    for vote, deviation, score in zip(votes, spread, panel.scores, strict=True):
        colour = score.look["color"]
        if len(votes) == 1:
            colour = style.VERMILION if is_of_samples else style.GREY
        look: Any = {"color": colour, "transform": across, "clip_on": False, "in_layout": False}
        ax.plot(_AT_EDGE, [vote] * 2, linewidth=1.6, **look)
        if deviation:
            ends = [vote - deviation, vote + deviation]
            ax.plot([middle] * 2, ends, linewidth=0.9, gid="spread of missing", **look)
        face = colour if is_of_samples and is_learnt else ax.get_facecolor()
        gid = panel.gid("missing", score)
        ax.plot([middle], [vote], "D", mfc=face, markersize=5, gid=gid, **look)
    text = f"missing ({style.percent(share)})" if is_of_samples else "missing"
    colour = style.ink() if is_of_samples else style.GREY
    where: Any = {"xycoords": across, "xytext": (3, 0), "textcoords": "offset points"}
    ax.annotate(
        text if is_learnt else f"{text}: not learnt",
        (_AT_EDGE[1], float(np.median(votes))),
        rotation=90, va="center", color=colour, fontsize="small", annotation_clip=False,
        in_layout=False, gid="missing text", **where,
    )  # fmt: skip
    return True


def keep_room(ax: Axes) -> None:
    """Make the layout leave room for the width of the text on the right, but not for its height,
    which would shrink the axes: by an invisible line half as high as they are."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    shift = ScaledTranslation(17 / 72, 0, ax.figure.dpi_scale_trans)
    look: Any = {"linestyle": "none", "clip_on": False, "transform": ax.transAxes + shift}
    ax.add_artist(Line2D([1.0, _AT_EDGE[1]], [0.25, 0.75], **look))


def turn_texts_inwards(ax: Axes) -> None:
    """Make the text on missing values, if it is near an end of the y axis, extend to the middle."""
    low, high = ax.get_ylim()
    for text in ax.texts:
        if text.get_gid() == "missing text":
            height = (text.xy[1] - low) / (high - low)  # type: ignore[attr-defined]
            text.set_verticalalignment(
                "top" if height > 2 / 3 else "bottom" if height < 1 / 3 else "center"
            )
