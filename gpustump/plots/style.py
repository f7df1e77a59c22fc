"""The common look of all pictures: colours, lines, text, legends, and new figures.

Colours are those of Okabe and Ito. They are never the only difference: lines differ in their
dashes, points in their shapes and areas in lightness, so a grey print shows the same. Black stands
for the caller's own text colour, and text sizes are relative to the caller's. Matplotlib is
imported inside functions only, so these files can be imported without it.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.arrays.devices import how_to_install
from gpustump.data.readable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#767676"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
"""Okabe and Ito's palette (2008). GREY is for reference lines and notes."""

MARKERS = "osD^vP*X"
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1)), (0, (9, 1.5)),
)  # fmt: skip

CLASSES = 6
"""The most classes that one picture draws a line for."""

CHARACTER = 0.075
"""The mean width of a character in labels, in inches."""

_ENTRY = 0.65
"""The width of an entry of a legend besides its text, in inches."""

LONG = 50
"""With this many rounds or more, their axis is logarithmic, and curves have no points."""

NAME = 30
"""The middle of a name with more characters is cut out."""

_BAND = 0.25
"""How much of a band's colour is seen: the lines of other classes show through it."""


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
    elif getattr(ax, "name", None) != "rectilinear":
        raise TypeError(f"ax must be one Matplotlib Axes with x and y; got {ax!r}.")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize="small")
    return ax


def make_current(ax: Axes) -> Axes:
    """Make `plt.title()` and similar functions apply to these axes, not to a strip below them."""
    ax.figure.sca(ax)
    return ax


def width_of(ax: Axes) -> float:
    """The width of axes in inches, before a layout changes it a little."""
    return float(ax.bbox.width / ax.figure.dpi)


def strip_below(ax: Axes, share: float) -> Axes:
    """New axes below others, with the same x axis; they take a share of the others' height."""
    figure, spec = ax.figure, ax.get_subplotspec()
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=[1 - share, share], hspace=0.06)
        ax.set_subplotspec(parts[0])
        strip = figure.add_subplot(parts[1], sharex=ax)
    else:
        place = ax.get_position()
        low = place.height * share
        ax.set_position((place.x0, place.y0 + low, place.width, place.height - low))
        strip = figure.add_axes((place.x0, place.y0, place.width, 0.97 * low), sharex=ax)
    return under(ax, tidy_axes(strip))


def under(ax: Axes, strip: Axes) -> Axes:
    """The strip, after removing the labels of the x axis above it."""
    ax.tick_params(labelbottom=False)
    ax.xaxis.offsetText.set_visible(False)
    return strip


def ink() -> str:
    """The caller's text colour, which is readable on the caller's background."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def line_looks(n_lines: int) -> list[dict[str, Any]]:
    """A colour and dashes for each of at most `CLASSES` lines; one alone is blue."""
    return [
        {"color": colour, "linestyle": dash, "linewidth": 1.8}
        for colour, dash in zip(COLOURS[:n_lines], DASHES[:n_lines], strict=True)
    ]


def tint(colour: str, lightness: float) -> tuple[float, float, float]:
    """A colour mixed with white to print in a given grey; `lightness` is 1 for white."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    grey = sum(share * part for share, part in zip((0.299, 0.587, 0.114), parts, strict=True))
    strength = min(1.0, (1 - lightness) / (1 - grey))
    red, green, blue = (1 - strength * (1 - part) for part in parts)
    return red, green, blue


def point_area(n_samples: int) -> float:
    """The area of a sample's mark in square points, smaller for more samples."""
    return float(np.clip(6000 / max(n_samples, 1), 4, 26))


def corners(
    cuts: np.ndarray, heights: Any, view: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The corners of steps between two limits.

    Parameters
    ----------
    cuts : ndarray (k,)
        Where the steps are, increasing; they may be infinite.
    heights : array (k + 1,)
    view : (float, float)

    Returns
    -------
    x, y : ndarray (2 * m,)
        Of the m heights in view.
    """
    inside = (cuts > view[0]) & (cuts < view[1])
    first = int(np.searchsorted(cuts, view[0], side="right"))
    edges = np.concatenate([[view[0]], cuts[inside], [view[1]]])
    shown = np.asarray(heights)[first : first + len(edges) - 1]
    return np.repeat(edges, 2)[1:-1], np.repeat(shown, 2)


def fill_band(ax: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str) -> None:
    """A band between two lines of corners."""
    ax.fill_between(x, low, high, color=colour, alpha=_BAND, linewidth=0.0, gid="band")


def bag_lines() -> dict[str, Any]:
    """The look of lines over the ends of bars, without the name of the axis ("xerr", "yerr")."""
    own = {"elinewidth": 0.9, "capsize": 2.0, "gid": "spread"}
    return {"ecolor": ink(), "error_kw": own}


def bag_handle(colour: str, *, is_band: bool) -> Any:
    """What stands beside `bag_text` in a legend: a band, or a line with two ends."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if is_band:
        return Patch(facecolor=colour, alpha=_BAND, linewidth=0.0)
    return Line2D([], [], color=ink(), linewidth=0.9, marker="|", markersize=5)


def bag_text(n_bags: int) -> str:
    """What bands and lines over bars are. They tell how much a model depends on which samples were
    drawn for training, not how often it is right."""
    return f"± 1 standard deviation over {n_bags} bags"


def in_lines(parts: Sequence[str], room: int) -> str:
    """Texts below each other; those longer than so many characters are broken behind commas, and
    what is still longer between words."""
    lines = [part.replace(", ", ",\n") if len(part) > room else part for part in parts]
    return "\n".join(textwrap.fill(one, max(room, 20)) for one in "\n".join(lines).split("\n"))


def rounds_axis(ax: Axes, n_rounds: int) -> None:
    """An x axis from the first round to the last, logarithmic if there are many."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    ax.set_xlabel("round")
    if n_rounds < LONG:
        ax.set_xlim(0.5, max(n_rounds, 1) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return
    ax.set_xscale("log")
    ax.set_xlim(1, n_rounds * 1.02)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if n_rounds < 2000 else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def plot_rounds(ax: Axes, values: Any, *, marker: str = "o", **look: Any) -> None:
    """A line with a value for each round, with points if the rounds are few."""
    marker = marker if len(values) < LONG else ""
    ax.plot(np.arange(1, len(values) + 1), values, marker=marker, markersize=3, **look)


def note(ax: Axes, text: str, *, x: float = 0.5, y: float = 0.5, **how: Any) -> None:
    """A text in axes coordinates."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
    ax.text(x, y, text, transform=ax.transAxes, **look | {"color": ink(), "alpha": 0.75} | how)


def leave_empty(ax: Axes, text: str) -> None:
    """Show only a text: why there is nothing to draw."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    note(ax, text)


def legend_above(ax: Axes, handles: list[Any], labels: list[str], **how: Any) -> None:
    """A legend above the axes, where it hides no data."""
    n_columns = columns_that_fit(labels, 1.2 * width_of(ax), 4)
    look: dict[str, Any] = {"ncols": n_columns, "fontsize": "small", "title_fontsize": "small"}
    look |= {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles, labels, frameon=False, alignment="left", **look | how)


def columns_that_fit(labels: list[str], width: float, most: int) -> int:
    """How many columns of a legend fit into a width in inches; too wide ones squeeze the axes."""
    longest = max(map(len, labels), default=0)
    return max(1, min(most, int(width / (_ENTRY + 0.85 * CHARACTER * longest))))


def number_text(value: float, digits: int = 4) -> str:
    """A number in a picture, with so many digits; below a million those before the decimal point
    in full."""
    n_whole = len(f"{abs(value):.0f}") if abs(value) < 1e6 else 0
    return f"{value:.{max(digits, n_whole)}g}".replace("-", "−")


def percent(share: float) -> str:
    """A share as text; only 0 is written as 0 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.1 else 0}f} %"


def words(text: object, limit: int = NAME) -> str:
    """Text for a picture: on one line, not too long, and without mathematics.

    Control characters, which no font has, are escaped.
    """
    line = printable(" ".join(str(text).split())) or "(no name)"
    if len(line) > limit:
        line = f"{line[: limit - limit // 2 - 1]}…{line[-(limit // 2) :]}"
    return line.replace("$", r"\$")


def different_words(texts: Sequence[str], limit: int) -> list[str]:
    """Texts as `words` makes them. Of those that would look the same the words are shown with which
    they begin to differ; if these do not tell them apart, they begin with their numbers."""
    short = [words(text, limit) for text in texts]
    by_look = defaultdict[str, list[int]](list)
    for place, own in enumerate(short):
        by_look[own].append(place)
    for places in by_look.values():
        if len(places) > 1:
            columns = enumerate(zip(*(texts[place] for place in places), strict=False))
            n_alike = next((at for at, own in columns if len({*own}) > 1), 0)
            for place in places:
                short[place] = _from_difference(texts[place], n_alike, limit)
    counts = Counter(short)
    return [
        own if counts[own] == 1 else words(f"{k + 1}: {text}", limit)
        for k, (own, text) in enumerate(zip(short, texts, strict=True))
    ]


def _from_difference(text: str, n_alike: int, limit: int) -> str:
    """The text, shortened so that the word is shown that the first `n_alike` characters lead to."""
    start = text.rfind(" ", 0, n_alike) + 1
    if start > limit // 2:
        text = f"{text[: limit // 4]}…{text[start:]}"
    return words(text if len(text) <= limit else f"{text[: limit - 1]}…", limit)
