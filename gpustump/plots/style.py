"""The common look of all pictures.

Colours are those of Okabe and Ito. They are never the only difference: lines differ in their
dashes, points in their shapes and areas in lightness, so a grey print shows the same. Black stands
for the caller's own text colour, and text sizes are relative to the caller's. Matplotlib is
imported inside functions only, so these files can be imported without it.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.arrays.devices import how_to_install
from gpustump.data.columns import UNITS
from gpustump.data.readable import printable, temporal_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#767676"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
"""Okabe and Ito's palette (2008). GREY is for reference lines and notes."""

MARKERS = "osD^vP*X"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1)))

CLASSES = 6
"""The most classes that one picture draws a line for."""

_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200)
"""Steps between ticks at times of the day."""

LONG = 50
"""With this many rounds or more, their axis is logarithmic."""

NAME = 30
"""The middle of a name with more characters is cut out."""


def new_figure(width: float, height: float) -> Figure:
    """A new pyplot figure, in inches, so that `plt.show()` and notebooks show it.

    Raises
    ------
    ImportError
        If Matplotlib is missing.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"pictures need Matplotlib; {how_to_install('plots')}") from error
    return pyplot.figure(figsize=(width, height), layout="constrained")


def tidy_axes(ax: Axes | None, width: float = 5.6, height: float = 3.8) -> Axes:
    """The axes to draw on, new ones for None, without the lines above and on the right.

    Raises
    ------
    TypeError
        If `ax` is not one Axes with x and y.
    ImportError
        If Matplotlib is missing.
    """
    if ax is None:
        ax = new_figure(width, height).add_subplot()
    elif not _has_two_dimensions(ax):
        raise TypeError(f"ax must be one Matplotlib Axes with x and y; got {ax!r}.")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
    return ax


def _has_two_dimensions(ax: object) -> bool:
    from matplotlib.axes import Axes

    return isinstance(ax, Axes) and {"top", "right"} <= {*ax.spines} and not hasattr(ax, "zaxis")


def make_current(ax: Axes) -> Axes:
    """Make `plt.title()` and similar functions apply to these axes, not to a strip below them."""
    ax.figure.sca(ax)
    return ax


def ink() -> str:
    """The caller's text colour, which is readable on the caller's background."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def seen(look: Any) -> dict[str, Any]:
    """A line's look, with the text colour in place of black."""
    return {**look, "color": ink()} if look["color"] == BLACK else dict(look)


def class_looks(n_classes: int) -> list[dict[str, Any]]:
    """A colour and dashes for each of at most `CLASSES` lines; one alone is blue."""
    dashes = (*DASHES, (0, (9, 1.5)))
    return [
        {"color": colour, "linestyle": dash, "linewidth": 1.8}
        for colour, dash in zip(COLOURS[:n_classes], dashes[:n_classes], strict=True)
    ]


def strip_below(ax: Axes, share: float) -> Axes:
    """New axes below others, with the same x axis; they take a share of the others' height."""
    figure, spec = ax.figure, ax.get_subplotspec()
    ratios = [1 - share, share]
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=ratios, hspace=0.06)
        ax.set_subplotspec(parts[0])
        strip = figure.add_subplot(parts[1], sharex=ax)
    else:
        place, gap = ax.get_position(), 0.03
        low = place.height * share
        ax.set_position((place.x0, place.y0 + low, place.width, place.height - low))
        strip = figure.add_axes((place.x0, place.y0, place.width, low * (1 - gap)), sharex=ax)
    return under(ax, tidy_axes(strip))


def under(ax: Axes, strip: Axes) -> Axes:
    """The strip, after removing the labels of the x axis above it."""
    ax.tick_params(labelbottom=False)
    ax.xaxis.offsetText.set_visible(False)
    return strip


def few_ticks(ax: Axes, kind: str, *, is_whole: bool) -> str:
    """Few and short tick labels on the x axis, so that they fit into a small panel.

    Whole numbers, such as years, have whole ticks, and are written in full below 100,000. Dates and
    times of the day, by the kind of the column, have ticks of their own. What the labels leave out,
    such as the year of all of them, is returned as text to put after the feature's name.
    """
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    note = temporal_ticks(ax.xaxis, kind, max(2, min(5, int(width(ax) / 0.5))))
    if note is not None:
        return note
    if ax.get_xscale() != "linear":
        log_ticks(ax.xaxis)
        return ""
    formatter = ScalarFormatter(useMathText=True, useOffset=not is_whole)
    formatter.set_powerlimits((-2, 5 if is_whole else 4))
    most = max(1, min(4 if is_whole else 5, int(width(ax) / 0.42)))
    locator = MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=is_whole)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
    ax.xaxis.offsetText.set_fontsize("x-small")
    counted = {"date": "date", "datetime": "date", "time": "time"}.get(kind)
    return f" ({UNITS[counted]})" if counted else ""


def log_ticks(axis: Axis) -> None:
    """A few powers of ten, and of a short axis their double and fivefold, without names between."""
    from matplotlib.ticker import AsinhLocator, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if axis.get_scale() == "log":
        is_short = high < 100 * low
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_short else (1,), numticks=5))
    else:
        scale: Any = axis.get_transform()
        axis.set_major_locator(AsinhLocator(scale.linear_width, numticks=5))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def temporal_ticks(axis: Axis, kind: str, most: int) -> str | None:
    """Ticks at dates or at times of the day, if the axis shows such.

    Parameters
    ----------
    axis : matplotlib Axis
        Its limits are days since 1970 for dates, and seconds since midnight for times.
    kind : str
        Of the column: "date", "datetime" or "time"; others have no ticks of their own.
    most : int
        About how many ticks.

    Returns
    -------
    str or None
        What the labels leave out, as text to put after a name. None if the kind is another, or the
        limits are no dates.
    """
    from matplotlib import dates
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    untyped: Any = dates
    low, high = axis.get_view_interval()
    if kind in ("date", "datetime"):
        is_usual = untyped.get_epoch() == "1970-01-01T00:00:00"
        if not is_usual or None in (temporal_text(low, "date"), temporal_text(high, "date")):
            return None
        least = max(2, most // 2)  # its intervals leave gaps, so it needs room between the two
        locator = untyped.AutoDateLocator(tz=UTC, minticks=least, maxticks=2 * least + 1)
        axis.set_major_locator(locator)
        looks = {
            "formats": ["%Y", "%b", "%b %d", "%H:%M", "%H:%M", "%H:%M:%S"],
            "zero_formats": ["", "%Y", "%b", "%b %d", "%H:%M", "%H:%M"],
        }
        formatter = untyped.ConciseDateFormatter(locator, UTC, show_offset=False, **looks)
        axis.set_major_formatter(formatter)
        ticks = [at for at in axis.get_majorticklocs() if low <= at <= high]
        return _what_dates_share([untyped.num2date(at, UTC) for at in ticks])
    if kind == "time" and high - low >= 1:
        step = next((one for one in _SECONDS if high - low <= one * most), _SECONDS[-1])
        axis.set_major_locator(MultipleLocator(step))
        axis.set_major_formatter(FuncFormatter(lambda at, _: _time_of_day(at, in_full=step < 60)))
        return ""
    return None


def _what_dates_share(ticks: list[datetime]) -> str:
    """The day or the year that the labels of ticks leave out, in brackets; empty if they do not."""
    if not ticks or all((at.month, at.day) == (1, 1) for at in ticks):  # labelled by their years
        return ""
    first, last = ticks[0], ticks[-1]
    if first.date() == last.date():
        return f" ({first.date()})"
    return f" ({first.year})" if first.year == last.year else f" ({first.year}–{last.year})"


def _time_of_day(seconds: float, *, in_full: bool) -> str:
    """Such as "06:00", or with seconds; empty before the day and after it."""
    minutes, second = divmod(round(seconds), 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}{f':{second:02d}' * in_full}"
    return text if 0 <= seconds <= 86400 else ""


def width(ax: Axes) -> float:
    """The width of axes in inches, before a layout changes it a little."""
    return float(ax.bbox.width / ax.figure.dpi)


def whole_ticks(axis: Axis, *, is_whole: bool) -> None:
    """For values that are whole numbers, such as years: whole ticks, written in full."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    if is_whole:
        axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))
        formatter = ScalarFormatter(useMathText=True, useOffset=False)
        formatter.set_powerlimits((-2, 6))
        axis.set_major_formatter(formatter)


def number_text(value: float) -> str:
    """A number in a picture, with four digits; those before the decimal point in full."""
    is_short = abs(value) < 1e6 and (value.is_integer() or abs(value) >= 1e4)
    return (f"{value:.0f}" if is_short else f"{value:.4g}").replace("-", "−")


def name_across(ax: Axes, name: str, note: str) -> None:
    """The label of the x axis: a name and a note such as a unit, in two lines if they are long."""
    note = note.replace(") (", ", ")
    is_long = 0.075 * len(name + note) > width(ax)
    ax.set_xlabel(f"{name}\n{note.strip()}" if note and is_long else name + note)


def words(text: object, limit: int = NAME) -> str:
    """Text for a picture: on one line, not too long, and without mathematics.

    Control characters, which no font has, are escaped.
    """
    line = printable(" ".join(str(text).split())) or "(no name)"
    if len(line) > limit:
        line = f"{line[: limit - limit // 2 - 1]}…{line[-(limit // 2) :]}"
    return line.replace("$", r"\$")


def different_words(texts: list[str], limit: int) -> list[str]:
    """Texts as `words` makes them; those that would look the same lose their common ends."""
    looks: dict[str, list[str]] = defaultdict(list)
    for text in dict.fromkeys(texts):
        looks[words(text, limit)].append(text)
    shown: dict[str, str] = {}
    for short, alike in looks.items():
        inner = _without_common_ends(alike) if len(alike) > 1 else alike
        shown |= {
            text: short if len(alike) == 1 else words(part, limit)
            for text, part in zip(alike, inner, strict=True)
        }
    if len({*shown.values()}) == len(shown):
        return [shown[text] for text in texts]
    return [words(f"{k + 1}: {text}", limit) for k, text in enumerate(texts)]


def _without_common_ends(texts: list[str]) -> list[str]:
    """Texts with … in place of what all of them begin with, and of what all end with."""
    shortest = min(map(len, texts))
    n_before = _n_common(texts, shortest)
    n_after = _n_common([text[::-1] for text in texts], shortest - n_before)
    inner = [text[n_before : len(text) - n_after] for text in texts]
    return [f"{'…' * (n_before > 0)}{text}{'…' * (n_after > 0)}" for text in inner]


def _n_common(texts: list[str], limit: int) -> int:
    """How many characters all texts begin with, at most `limit`."""
    return next((k for k in range(limit) if len({text[k] for text in texts}) > 1), limit)


def leave_empty(ax: Axes, text: str) -> None:
    """Show only a text: why there is nothing to draw."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    note(ax, text)


def note(ax: Axes, text: str, *, x: float = 0.5, y: float = 0.5, **how: Any) -> None:
    """A text in axes coordinates."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
    look |= {"color": ink(), "alpha": 0.75}
    ax.text(x, y, text, transform=ax.transAxes, **look | how)


def chance_line(ax: Axes) -> None:
    """A line at an error of 1/2, that of random guessing."""
    ax.axhline(0.5, color=GREY, linewidth=0.8, zorder=1)
    look: dict[str, Any] = {"fontsize": "x-small", "color": GREY, "alpha": 1.0}
    note(ax, "chance", x=0.995, y=0.5, ha="right", va="bottom", **look)


def legend_above(ax: Axes, handles: list[Any], labels: list[str], **how: Any) -> None:
    """A legend above the axes, where it hides no data."""
    look: dict[str, Any] = {"ncols": 4, "fontsize": "small", "title_fontsize": "small"}
    look |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles, labels, frameon=False, **look | how)


def name_ends(ax: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """Names right of the axes, beside the heights at which lines of these colours end.

    Names whose lines end close to each other are moved apart. The layout leaves room for them.
    """
    from matplotlib.font_manager import FontProperties

    low, high = ax.get_ylim()
    points = 72 * ax.bbox.height / ax.figure.dpi
    height = 1.15 * FontProperties(size="small").get_size_in_points() / points
    names = sorted(ends, key=lambda name: ends[name][0])
    own = np.asarray([(ends[name][0] - low) / (high - low) for name in names])
    steps = height * np.arange(len(names))
    # The least moves that keep the order and the distance: the mean of the two extreme ones.
    up = np.maximum.accumulate(own - steps)
    down = np.minimum.accumulate((own - steps)[::-1])[::-1]
    for name, at in zip(names, (up + down) / 2 + steps, strict=True):
        note(ax, name, x=1.01, y=at, ha="left", color=ends[name][1], alpha=1.0)


def columns_for(labels: list[str]) -> int:
    """In how many columns a legend of these labels fits above a picture of its own."""
    return 2 if len(labels) > 3 and max(map(len, labels)) <= 30 else 1


def rounds_axis(ax: Axes, n_rounds: int) -> None:
    """An x axis from the first round to the last, logarithmic if there are many."""
    from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

    ax.set_xlabel("round")
    if n_rounds < LONG:
        ax.set_xlim(0.5, max(n_rounds, 1) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return
    ax.set_xscale("log")
    ax.set_xlim(1, n_rounds * 1.02)
    steps = (1, 2, 5) if n_rounds < 2000 else (1,)
    ticks = [step * 10**k for k in range(len(str(n_rounds))) for step in steps]
    ax.set_xticks([tick for tick in ticks if tick <= n_rounds])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())


def tint(colour: str, lightness: float) -> tuple[float, float, float]:
    """A colour mixed with white to print in a given grey; `lightness` is 1 for white."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    grey = sum(share * part for share, part in zip((0.299, 0.587, 0.114), parts, strict=True))
    strength = min(1.0, (1 - lightness) / (1 - grey))
    red, green, blue = (1 - strength * (1 - part) for part in parts)
    return red, green, blue


def corners(edges: np.ndarray, heights: Any) -> tuple[np.ndarray, np.ndarray]:
    """The 2 * k corners of a line of k steps, from k + 1 edges and k heights."""
    return np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)


def point_area(n_samples: int) -> float:
    """The area of a sample's mark in square points, smaller for more samples."""
    return float(np.clip(6000 / max(n_samples, 1), 4, 26))
