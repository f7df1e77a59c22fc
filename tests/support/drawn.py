"""What is drawn on axes: texts, legends, and lines found by their gid."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.text import Text


def drawn(ax: Axes, gid: str) -> np.ndarray:
    """The points of the only line with a gid, (n_points, 2)."""
    (line,) = [line for line in ax.get_lines() if line.get_gid() == gid]
    return np.asarray(line.get_xydata())


def has(ax: Axes, gid: str) -> bool:
    return any(line.get_gid() == gid for line in ax.get_lines())


def line_called(ax: Axes, start: str) -> Line2D:
    """The only line whose label begins so."""
    (line,) = [line for line in ax.get_lines() if str(line.get_label()).startswith(start)]
    return line


def labels(axis: Axis) -> list[str]:
    """The labels of the ticks."""
    return [label.get_text() for label in axis.get_ticklabels()]


def bars(ax: Axes, gid: str) -> list:
    """The bars with a gid, in the order in which they were drawn."""
    return [patch for patch in ax.patches if patch.get_gid() == gid]


def texts(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def title(ax: Axes) -> str:
    return ax.get_legend().get_title().get_text()


def saved(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=50)
    assert stream.getvalue().startswith(b"\x89PNG")
    return stream.getvalue()


def overlaps(figure: Figure, dpi: int = 150) -> list[tuple[str, str]]:
    """Pairs of upright or level texts that overlap: labels, ticks in view, notes."""
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    shown = [text for text in _texts(figure) if text.get_text() and text.get_rotation() % 90 == 0]
    boxes = [(text.get_text(), text.get_window_extent().padded(-0.25)) for text in shown]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


def _texts(figure: Figure | SubFigure) -> Iterator[Text]:
    for name in ("_suptitle", "_supxlabel", "_supylabel"):
        if getattr(figure, name) is not None:
            yield getattr(figure, name)
    for part in figure.subfigs:
        yield from _texts(part)
    if isinstance(figure, Figure):
        for ax in figure.axes:
            yield from (ax.xaxis.label, ax.yaxis.label, *ax.texts)
            for axis in (ax.xaxis, ax.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                yield from (tick.label1 for tick in ticks if tick.label1.get_visible())
