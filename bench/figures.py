"""Figures from the JSON of a run, as PNG and SVG: small, legible in print and to the colour-blind.

A figure shows what the table beside it says: medians as points, least and greatest as whiskers.
Each file carries the SHA-256 of the JSON it was drawn from, so that one can tell whether it belongs
to the table. The same JSON gives the same SVG.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from bench import records
from bench.records import Report, Run, Section, Speed
from bench.summary import (
    AXES,
    bandwidth,
    by_contender,
    bytes_to_move,
    exponents,
    gather_rate,
    per_round,
    preparation,
    size,
    size_label,
    speed_of,
    spread,
    whole_fit,
)
from gpustump.model.whole_file import whole_file

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette (2008)."""

MARKERS = "osD^vP*"
_GROWTH_COLUMNS = 3
STYLE: Any = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "svg.hashsalt": "gpustump",
    "svg.fonttype": "none",
}


def draw(file: Path) -> list[Path]:
    """Draw the figure of a JSON file beside it, under its name, as PNG and as SVG."""
    report = records.read(file)
    origin = hashlib.sha256(file.read_bytes()).hexdigest()
    written = []
    with matplotlib.rc_context(STYLE):
        figure = figure_of(report)
        for suffix, dates in ((".png", {}), (".svg", {"Date": None})):
            target = file.with_suffix(suffix)
            about = {"Description": f"drawn from sha256 {origin}", **dates}
            with whole_file(target) as stream:
                figure.savefig(stream, format=suffix[1:], dpi=144, metadata=about)
            written.append(target)
    return written


def figure_of(report: Report) -> Figure:
    """The figure of a report."""
    makers: dict[str, Callable[[Report], Figure]] = {
        "backends": _backends,
        "peers": _peers,
        "growth": _growth,
        "limit": _limit,
    }
    return makers[report.benchmark](report)


def _backends(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 1, _height)
    for section, (axes,) in zip(report.sections, grid, strict=True):
        _points(axes, section, per_round, 1e3)
        axes.set(xlabel="ms per round", title=_title(section))
    return figure


def _peers(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 2, _height)
    for section, (left, right) in zip(report.sections, grid, strict=True):
        _points(left, section, per_round, 1e3)
        _points(right, section, whole_fit, 1.0)
        left.set(xlabel="ms per round", title=_title(section))
        right.set(xlabel=f"whole fit of {section.runs[0].rounds[1]} rounds, s")
        right.tick_params(labelleft=False)
    look: Any = {"color": COLOURS[-1], "marker": MARKERS[1], "linestyle": ""}
    figure.legend(
        [Line2D([], [], **look), Line2D([], [], **look, markerfacecolor="white")],
        ["looks at every threshold", "looks at a histogram's"],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def _growth(report: Report) -> Figure:
    """A panel for each axis, log-log: rounds as lines, preparation dashed."""
    rows = -(-len(report.sections) // _GROWTH_COLUMNS)
    figure = Figure(figsize=(9, 0.6 + 2.5 * rows), layout="constrained")
    grid = figure.subplots(rows, _GROWTH_COLUMNS, squeeze=False)
    for section, axes in zip(report.sections, grid.flat, strict=False):
        _lines(axes, section, per_round, "-")
        _lines(axes, section, preparation, "--")
        _name_sizes(axes, section)
        axes.set_xlabel(AXES[section.name])
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, title="exponent of a round", title_fontsize=7, edgecolor="none")
    for axes in grid.flat[len(report.sections) :]:
        axes.remove()
    for axes in grid[:, 0]:
        axes.set_ylabel("ms")
    styles = [Line2D([], [], color="grey", linestyle=style) for style in ("-", "--")]
    figure.legend(
        styles, ["a round", "preparation"], loc="outside upper left", ncols=2, frameon=False
    )
    return figure


def _limit(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 1, _height)
    (section,), ((axes,),) = report.sections, grid
    drawn: dict[str, Line2D] = {}
    for row, run in _points(axes, section, per_round, 1e3):
        if speed := speed_of(report, run):
            for name, (seconds, look) in _yardsticks(run, speed).items():
                ends = [row - 0.4, row + 0.4]
                drawn[name] = axes.plot([seconds * 1e3] * 2, ends, **look, linewidth=2)[0]
    axes.set(xlabel="ms per round", title=_title(section))
    figure.legend(
        list(drawn.values()), list(drawn), loc="outside lower center", ncols=2, frameon=False
    )
    return figure


def _yardsticks(run: Run, speed: Speed) -> dict[str, tuple[float, dict[str, str]]]:
    """Seconds of both yardsticks, and how each is drawn."""
    least = bytes_to_move(run) / spread(bandwidth(speed)).median
    gathered = run.samples * run.features / spread(gather_rate(speed)).median
    return {
        "a byte an element, at the bandwidth of a copy": (least, {"color": COLOURS[1]}),
        "a gather an element": (gathered, {"color": COLOURS[2], "linestyle": ":"}),
    }


def _panels(
    sections: Sequence[Section], columns: int, height: Callable[[Section], float]
) -> tuple[Figure, Any]:
    """One row of panels a section."""
    heights = [height(section) for section in sections]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    grid = figure.subplots(
        len(sections), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    return figure, grid


def _height(section: Section) -> float:
    return 1.1 + 0.26 * len(_measured(section))


def _points(
    axes: Axes, section: Section, of: Callable[[Run], list[float]], scale: float
) -> list[tuple[int, Run]]:
    """One line a contender, the first on top; times on a logarithmic axis, from the left."""
    runs = _measured(section)
    for row, run in enumerate(runs):
        found = spread([value * scale for value in of(run)])
        ours = run.contender.startswith("gpustump")
        axes.errorbar(
            found.median,
            row,
            xerr=[[found.median - found.low], [found.high - found.median]],
            fmt=MARKERS[0] if ours else MARKERS[1],
            color=COLOURS[0] if ours else COLOURS[-1],
            markerfacecolor=None if run.exact else "white",
            capsize=2,
        )
    if any(value > 0 for run in runs for value in of(run)):  # noise can turn a slope negative
        axes.set_xscale("log")
        _plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(runs)), [run.contender for run in runs])
    axes.set_ylim(max(len(runs), 1) - 0.5, -0.5)
    return list(enumerate(runs))


def _lines(axes: Axes, section: Section, of: Callable[[Run], list[float]], linestyle: str) -> None:
    """One line a contender; the exponent of a round stands in the legend."""
    for index, (contender, runs) in enumerate(by_contender(section).items()):
        measured = [run for run in runs if run.reason is None]
        if not measured:
            continue
        sizes = [size(section.name, run) for run in measured]
        found = [spread([value * 1e3 for value in of(run)]) for run in measured]
        slopes = exponents(of, sizes, measured)
        label = contender.removeprefix("gpustump ")
        if slopes:
            label += f" {spread(slopes).median:z.2f}"
        below = [each.median - each.low for each in found]
        above = [each.high - each.median for each in found]
        axes.errorbar(
            sizes,
            [each.median for each in found],
            yerr=[below, above],
            marker=MARKERS[index % len(MARKERS)],
            markersize=4,
            color=COLOURS[index % len(COLOURS)],
            linestyle=linestyle,
            capsize=2,
            label=label if of is per_round else None,
        )


def _name_sizes(axes: Axes, section: Section) -> None:
    """Log-log, with the sizes that were measured below."""
    names = {size(section.name, run): size_label(section.name, run) for run in section.runs}
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(list(names), [_short(name) for name in names.values()])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_ticks(axes.yaxis)


def _short(number: str) -> str:
    """A size on an axis: 25k, 1.6M."""
    for unit, zeros in (("M", 6), ("k", 3)):
        if len(number) > zeros and int(number) % 10 ** (zeros - 1) == 0:
            return f"{int(number) / 10**zeros:g}{unit}"
    return number


def _plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis, written out; 1, 10, ... on a long one."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _measured(section: Section) -> list[Run]:
    return [run for run in section.runs if run.reason is None]


def _title(section: Section) -> str:
    run = section.runs[0]
    return f"{run.data}, {run.samples} x {run.features}"
