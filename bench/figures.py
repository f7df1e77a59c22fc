"""Figures from the JSON of a run, as SVG: small, legible in print and to the colour-blind.

A figure shows what the table beside it says: medians as points, least and greatest as whiskers.
Each file carries the SHA-256 of the JSON it was drawn from, so that one can tell whether it belongs
to the table. The same JSON gives the same file.
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

from bench import records
from bench.records import Report, Run, Section
from bench.summary import (
    AXES,
    Quantity,
    bandwidth,
    by_contender,
    bytes_to_move,
    exponents,
    gather_rate,
    measured,
    per_round,
    preparation,
    size,
    size_label,
    speed_of,
    spread,
    whole_fit,
)
from gpustump.files import whole_file

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
_BELOW: Any = {"loc": "outside lower center", "ncols": 2, "frameon": False}


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
    makers = {"backends": _backends, "peers": _peers, "growth": _growth, "limit": _limit}
    return makers[report.benchmark](report)


def _backends(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 1)
    for section, (axes,) in zip(report.sections, grid, strict=True):
        _points(axes, section, per_round, 1e3)
        axes.set(xlabel="ms per round", title=_title(section))
    return figure


def _peers(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 2)
    for section, (left, right) in zip(report.sections, grid, strict=True):
        _points(left, section, per_round, 1e3)
        _points(right, section, whole_fit, 1.0)
        left.set(xlabel="ms per round", title=_title(section))
        right.set(xlabel=f"whole fit of {section.runs[0].rounds[1]} rounds, s")
        right.tick_params(labelleft=False)
    look: Any = {"color": COLOURS[-1], "marker": MARKERS[1], "linestyle": ""}
    markers = [Line2D([], [], **look), Line2D([], [], **look, markerfacecolor="white")]
    figure.legend(markers, ["looks at every threshold", "looks at a histogram's"], **_BELOW)
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
    figure.legend(styles, ["a round", "preparation"], **{**_BELOW, "loc": "outside upper left"})
    return figure


def _limit(report: Report) -> Figure:
    figure, grid = _panels(report.sections, 1)
    (section,), ((axes,),) = report.sections, grid
    _points(axes, section, per_round, 1e3)
    for row, run in enumerate(measured(section)):
        if speed := speed_of(report, run):
            least = bytes_to_move(run) / spread(bandwidth(speed)).median
            gathered = run.samples * run.features / spread(gather_rate(speed)).median
            ends = [row - 0.4, row + 0.4]
            axes.plot([least * 1e3] * 2, ends, color=COLOURS[1], linewidth=2)
            axes.plot([gathered * 1e3] * 2, ends, color=COLOURS[2], linewidth=2, linestyle=":")
    axes.set(xlabel="ms per round", title=_title(section))
    yardsticks = ["a byte an element, at the bandwidth of a copy", "a gather an element"]
    look = zip(COLOURS[1:3], ("-", ":"), strict=True)
    lines = [Line2D([], [], color=c, linestyle=style, linewidth=2) for c, style in look]
    figure.legend(lines, yardsticks, **_BELOW)
    return figure


def _panels(sections: Sequence[Section], columns: int) -> tuple[Figure, Any]:
    """One row of panels a section."""
    heights = [1.1 + 0.26 * len(measured(section)) for section in sections]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    ratios: Any = {"height_ratios": heights}
    return figure, figure.subplots(len(sections), columns, squeeze=False, gridspec_kw=ratios)


def _points(axes: Axes, section: Section, of: Quantity, scale: float) -> None:
    """One line a contender, the first on top; times on a logarithmic axis, from the left."""
    runs = measured(section)
    for row, run in enumerate(runs):
        median, low, high = spread([value * scale for value in of(run)])
        ours = run.contender.startswith("gpustump")
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
    """One line a contender; the legend tells the exponent of a round."""
    for index, (contender, runs) in enumerate(by_contender(measured(section)).items()):
        sizes = [size(section.name, run) for run in runs]
        found = [spread([value * 1e3 for value in of(run)]) for run in runs]
        slopes = exponents(of, sizes, runs)
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
            label=contender.removeprefix("gpustump ") + exponent if of is per_round else None,
        )


def _name_sizes(axes: Axes, section: Section) -> None:
    """Log-log, with the sizes that were measured below."""
    short = EngFormatter(sep="")  # 25k, 1.6M
    names = {size(section.name, run): size_label(section.name, run) for run in section.runs}
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


def _title(section: Section) -> str:
    run = section.runs[0]
    return f"{run.data}, {run.samples} x {run.features}"
