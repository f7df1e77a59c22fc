"""Figures from the JSON of a run, as SVG: small, legible in print and to the colour-blind.

A figure shows the numbers of the table beside it: medians as points, least and greatest values as
whiskers. Each file holds the SHA-256 of the JSON that it was drawn from, so one can check that it
belongs to the table. The same JSON gives the same file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, NullLocator

from bench import records, summary
from bench.contenders import is_ours
from bench.records import Report, Section
from bench.summary import Quantity, spread
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


def draw(file: Path) -> Path:
    """Draw the figure of a JSON file beside it, under its name."""
    origin = hashlib.sha256(file.read_bytes()).hexdigest()
    target = file.with_suffix(".svg")
    about = {"Description": f"drawn from sha256 {origin}", "Date": None}
    with matplotlib.rc_context(STYLE), whole_file(target) as stream:
        figure_of(records.read(file)).savefig(stream, format="svg", metadata=about)
    return target


def figure_of(report: Report) -> Figure:
    """The figure of a report."""
    makers = {"growth": _growth, "panel": _shares}
    return makers.get(report.benchmark, _side_by_side)(report)


def _side_by_side(report: Report) -> Figure:
    """A row of panels for each section, with a line for each contender."""
    panels: list[tuple[str, Quantity, float]] = [("ms per round", summary.per_round, 1e3)]
    legend: dict[str, Any] = {}
    if report.benchmark == "peers":
        rounds = report.sections[0].runs[0].rounds[1]
        panels.append((f"whole fit of {rounds} rounds, s", summary.whole_fit, 1.0))
        look = {"color": COLOURS[-1], "marker": MARKERS[1], "linestyle": ""}
        legend["looks at every threshold"] = look
        legend["looks at a histogram's"] = {**look, "markerfacecolor": "white"}
    elif report.benchmark == "limit":
        bandwidth = "a byte an element, at the bandwidth of a copy"
        legend[bandwidth] = {"linewidth": 2, "color": COLOURS[1]}
        legend["a gather an element"] = {"linewidth": 2, "color": COLOURS[2], "linestyle": ":"}
    heights = [1.1 + 0.26 * len(summary.measured(section)) for section in report.sections]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    grid = figure.subplots(
        len(heights), len(panels), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for section, row in zip(report.sections, grid, strict=True):
        for axes, (label, of, scale) in zip(row, panels, strict=True):
            _points(axes, section, of, scale)
            axes.set_xlabel(label)
            axes.tick_params(labelleft=axes is row[0])
        run = section.runs[0]
        row[0].set_title(f"{run.data}, {run.samples} x {run.features}")
        for line, run in enumerate(summary.measured(section)):
            yardsticks = zip(summary.yardsticks(report, run), legend.values(), strict=False)
            for seconds, look in yardsticks:
                ends = [spread(seconds).median * 1e3] * 2
                row[0].plot(ends, [line - 0.4, line + 0.4], **look)
    if legend:
        lines = [Line2D([], [], **look) for look in legend.values()]
        figure.legend(lines, list(legend), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _shares(report: Report) -> Figure:
    """gpustump's time as a share of the fastest peer's: a line for each section, the peer at 1."""
    panels = [("a round", summary.per_round), ("a whole fit", summary.whole_fit)]
    places = [section.runs[0] for section in report.sections]
    names = [
        f"{run.data}, {run.samples} x {run.features}, {run.rounds[0]} to {run.rounds[1]}"
        for run in places
    ]
    figure = Figure(figsize=(9, 1.4 + 0.3 * len(names)), layout="constrained")
    (row,) = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axes, (label, of) in zip(row, panels, strict=True):
        axes.axvline(1.0, color="grey", linewidth=1)
        ratios = [summary.of_fastest_peer(of, section) for section in report.sections]
        for index, contender in enumerate(summary.ours(report)):
            look = {"fmt": MARKERS[index % len(MARKERS)], "color": COLOURS[index % len(COLOURS)]}
            _whiskered(axes, [found.get(contender, []) for found in ratios], contender, look)
        if any(value > 0 for found in ratios for values in found.values() for value in values):
            axes.set_xscale("log")
            _plain_ticks(axes.xaxis)
        axes.set_xlabel(f"{label}, of the fastest peer's")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
    figure.legend(
        *row[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def _whiskered(axes: Axes, lines: Sequence[Sequence[float]], label: str, look: Any) -> None:
    """The median of each line that has values, with whiskers to the least and the greatest."""
    found = [(spread(values), line) for line, values in enumerate(lines) if values]
    axes.errorbar(
        [median for (median, _, _), _ in found],
        [line for _, line in found],
        xerr=[[m - low for (m, low, _), _ in found], [high - m for (m, _, high), _ in found]],
        capsize=2,
        label=label,
        **look,
    )


def _growth(report: Report) -> Figure:
    """A panel for each axis, log-log: rounds as lines, preparation dashed."""
    rows = -(-len(report.sections) // _GROWTH_COLUMNS)
    figure = Figure(figsize=(9, 0.6 + 2.5 * rows), layout="constrained")
    grid = figure.subplots(rows, _GROWTH_COLUMNS, squeeze=False)
    for section, axes in zip(report.sections, grid.flat, strict=False):
        _lines(axes, section, summary.per_round, "-")
        _lines(axes, section, summary.preparation, "--")
        _name_sizes(axes, section)
        axes.set_xlabel(summary.AXES[section.name])
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


def _points(axes: Axes, section: Section, of: Quantity, scale: float) -> None:
    """One line a contender, the first on top; times on a logarithmic axis, from the left."""
    runs = summary.measured(section)
    for row, run in enumerate(runs):
        median, low, high = spread([value * scale for value in of(run)])
        ours = is_ours(run.contender)
        axes.errorbar(
            median,
            row,
            xerr=[[median - low], [high - median]],
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


def _lines(axes: Axes, section: Section, of: Quantity, linestyle: str) -> None:
    """One line a contender; the legend has the exponent of a round."""
    for index, (contender, runs) in enumerate(summary.by_contender(section).items()):
        sizes = [summary.size(section.name, run)[0] for run in runs]
        found = [spread([value * 1e3 for value in of(run)]) for run in runs]
        slopes = summary.exponents(of, sizes, runs)
        exponent = f" {spread(slopes).median:z.2f}" if slopes else ""
        axes.errorbar(
            sizes,
            [median for median, _, _ in found],
            yerr=[[m - low for m, low, _ in found], [high - m for m, _, high in found]],
            marker=MARKERS[index % len(MARKERS)],
            markersize=4,
            color=COLOURS[index % len(COLOURS)],
            linestyle=linestyle,
            capsize=2,
            label=contender.removeprefix("gpustump ") + exponent
            if of is summary.per_round
            else None,
        )


def _name_sizes(axes: Axes, section: Section) -> None:
    """Log-log, with the sizes that were measured below."""
    short = EngFormatter(sep="")  # 25k, 1.6M
    names = dict(summary.size(section.name, run) for run in section.runs)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(
        list(names), [short(at) if name.isdigit() else name for at, name in names.items()]
    )
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_ticks(axes.yaxis)


def _plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis, written out; 1, 10, ... on a long one."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
