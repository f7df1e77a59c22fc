"""Pairs of features: what both add together, beyond what each adds alone.

A pair is a table over the bins of both features, so its picture is exact: a cell for each entry.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.model.pairs import shares_of_pairs, strength_of
from gpustump.plots import inputs, spread, style
from gpustump.plots.cells import CellAxis, Cells, cells_of, pair_index
from gpustump.plots.columns import Pair, pairs_of
from gpustump.plots.panels import DrawnScore, percent
from gpustump.plots.shapes import drawn_scores, output_indices, score_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_MIDDLE = "#f7f7f7"
"""The colour of 0."""

_HATCH, _PALE = "#a6a6a6", 0.35
"""Cells without samples in training have lines of this colour, and so much of their own colour."""

_LINES = 3
"""How many parts of the second feature have lines of their own."""

_TICKS = 6
"""The most ticks at thresholds."""

_CHARACTER, _LINE = 0.075, 0.17
"""The mean width of a character and the height of a line of tick labels, in inches."""

_KEPT = 0.8
"""About which share of the length of axes a layout leaves."""

SMALL = 3
"""How many pairs stand beside each other."""


def pair(
    model: Any,
    pair: int | str | tuple[int | str, int | str],
    *,
    X: Any = None,
    sample_weight: Any = None,
    label: Label | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Draw what a pair of features adds to the score, and where the samples are.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
    pair : int, str, or two of these
        Its number among `StumpEnsemble.pairs`; its name, such as "age x income"; or both features,
        by index or name. The feature that is named first is drawn along x.
    X : array or frame (n_samples, n_features), optional
        Samples, whose shares of the cells are drawn. By default those of the training, which the
        model knows.
    sample_weight : array (n_samples,), optional
        The weights of the samples of X.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is; by default the one to whose score
        the pair adds most.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to draw on; a new figure by default.

    Returns
    -------
    matplotlib Figure or SubFigure
        Its first three Axes hold the table, lines of it, and the samples.

    Raises
    ------
    ValueError, TypeError
        If there is no such pair or class, or X or sample_weight is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The pairwise terms of Lou, Caruana, Gehrke and Hooker (2013), Accurate intelligible models with
    pairwise interactions: here from `StumpEnsemble.pairs`. A table is pure: what one feature could
    add by itself is part of its shape function, so a pair is read together with the shape functions
    of its features.

    A bin ends at each threshold. All bins are equally wide, as their numbers of samples are about
    equal; so the axes are no linear scales. Cells in which no sample of the training lay are pale
    and hatched: what the model adds there was never compared with a target. Missing values have a
    row or a column of their own, if samples lack them.

    The lines are means of rows of the table over the training samples in them: what the first
    feature adds beside low, middle and high values of the second one, a third of the samples each.
    If it has at most three bins, or is categorical, these are the bins with most samples. Missing
    values have a line, too. For a bagged model, bands reach one standard deviation over the bags to
    both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import GlassBoxClassifier, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 2)).astype(np.float32)
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> clf = GlassBoxClassifier(random_state=0, device="cpu").fit(X, y)
    >>> figure = plots.pair(clf, (0, 1))
    >>> table = figure.axes[0]
    >>> table.get_xlabel(), table.get_ylabel()
    ('feature 0', 'feature 1')
    """
    ensemble = model_of(model)
    number, is_turned = pair_index(ensemble, pair)
    chosen = output_indices(ensemble, label)
    samples = inputs.samples_of(model, X, sample_weight)
    (output,) = chosen if len(chosen) == 1 else [_strongest(ensemble, number, chosen)]
    (score,) = drawn_scores(ensemble, _label_of(ensemble, output), [])
    cells = cells_of(ensemble, number, output, samples, is_turned=is_turned)
    if figure is None:
        figure = style.new_figure(9.6, 4.6)
    left, right = figure.subfigures(1, 2, width_ratios=[1.3, 1.0], squeeze=False)[0]
    table = style.tidy_axes(left.add_subplot())
    lines, density = map(style.tidy_axes, right.subplots(2, 1, sharex=True))
    mesh = _draw_cells(table, cells, cells.largest)
    bar = left.colorbar(mesh, ax=table, aspect=30, pad=0.02)
    _name_bar(bar, f"contribution to the {score_text([score])}")
    _name_axes(table, cells)
    _draw_lines(lines, cells)
    _draw_density(density, cells, "training samples" if samples is None else "samples of X")
    style.under(lines, density)
    if cells.bags is not None:
        density.set_xlabel(f"{cells.axes[0].name}\n{_bands(density, ensemble.n_bags)}")
    style.make_current(table)
    return figure


def draw_pairs(
    model: StumpEnsemble,
    pairs: Sequence[Pair],
    scores: Sequence[DrawnScore],
    samples: inputs.Samples | None,
    figure: Figure | SubFigure,
) -> None:
    """The tables of some pairs beside each other, with one scale of colours.

    Of several scores, each pair is drawn for the one to which it adds most, and says so.
    """
    outputs = [0 if one.label is None else model.output_index(one.label) for one in scores]
    names = dict(zip(outputs, (one.name for one in scores), strict=True))
    strongest = [_strongest(model, own.number, outputs) for own in pairs]
    drawn = [
        cells_of(model, own.number, output, samples)
        for own, output in zip(pairs, strongest, strict=True)
    ]
    largest = max(cells.largest for cells in drawn)
    grid = np.atleast_1d(figure.subplots(1, max(len(drawn), 2)))
    for ax in grid[len(drawn) :]:
        ax.set_axis_off()
    axes = [style.tidy_axes(ax) for ax in grid[: len(drawn)]]
    for ax, cells, output in zip(axes, drawn, strongest, strict=True):
        mesh = _draw_cells(ax, cells, largest)
        _name_axes(ax, cells)
        if len(scores) > 1:
            ax.set_title(names[output], fontsize="small", loc="left")
    bar = figure.colorbar(mesh, ax=axes, location="right", aspect=25, pad=0.02)
    whose = score_text(scores) if len(scores) == 1 else "score of the class above"
    _name_bar(bar, f"contribution to the\n{whose}")


def top_pairs(model: StumpEnsemble, contributions: np.ndarray, limit: int = SMALL) -> list[Pair]:
    """The pairs with the largest shares of the contributions over samples.

    Parameters
    ----------
    model : StumpEnsemble
    contributions : ndarray (n_features + n_pairs,) of float64
        If all are 0, the samples of the training take the place of others.
    limit : int
    """
    shares = contributions[model.n_features :]
    if not shares.any():
        shares = shares_of_pairs(model.pairs)
    order = np.argsort(-shares, kind="stable")[:limit].tolist()
    pairs = pairs_of(model)
    return [pairs[k] for k in order if shares[k] > 0]


def _strongest(model: StumpEnsemble, number: int, outputs: Sequence[int]) -> int:
    """The output to whose score a pair adds most."""
    return max(outputs, key=lambda output: strength_of(model.pairs[number].output(output)))


def _label_of(model: StumpEnsemble, output: int) -> Label | None:
    return None if model.has_one_score else model.classes[output]


def _draw_cells(ax: Axes, cells: Cells, largest: float) -> Any:
    """The table in colours, from -largest to largest; cells that were not learnt are pale, hatched.

    Each cell has an edge in its own colour: without, programs that show vector graphics leave gaps
    between them.
    """
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

    colours = np.asarray([to_rgb(one) for one in (style.VERMILION, _MIDDLE, style.BLUE)])
    pale = _PALE * colours + (1 - _PALE) * colours[1]
    strong, weak = (LinearSegmentedColormap.from_list("pairs", [*own]) for own in (colours, pale))
    look: Any = {"norm": Normalize(-(largest or 1.0), largest or 1.0)}
    _mesh(ax, cells, np.where(cells.is_learnt, np.nan, cells.values), look | {"cmap": weak})
    _hatch(ax, cells)
    shown = np.where(cells.is_learnt, cells.values, np.nan)
    return _mesh(ax, cells, shown, look | {"cmap": strong, "gid": "cells"})


def _mesh(ax: Axes, cells: Cells, values: np.ndarray, look: dict[str, Any]) -> Any:
    """Values (k, m) in the places of the cells, with gaps before the missing ones."""
    x, y = cells.axes
    for at, axis in enumerate(cells.axes):
        if axis.has_missing:
            values = np.insert(values, axis.n_values, np.nan, axis=at)
    look = {"edgecolors": "face", "linewidth": 0.3, **look}
    mesh = ax.pcolormesh(x.edges, y.edges, np.ma.masked_invalid(values.T), **look)
    ax.set(xlim=(0, x.edges[-1]), ylim=(0, y.edges[-1]))
    ax.spines[:].set_visible(False)
    return mesh


def _hatch(ax: Axes, cells: Cells) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    x, y = cells.axes
    empty = [
        Rectangle((x.middle(a) - 0.5, y.middle(b) - 0.5), 1.0, 1.0)
        for a, b in np.argwhere(~cells.is_learnt).tolist()
    ]
    if empty:
        look: Any = {
            "facecolor": "none",
            "edgecolor": _HATCH,
            "linewidth": 0.0,
            "gid": "not learnt",
        }
        hatched = PatchCollection(empty, hatch="/////", **look)
        hatched.set_hatch_linewidth(0.6)
        ax.add_collection(hatched)


def _name_axes(ax: Axes, cells: Cells) -> None:
    """Ticks at some thresholds, or at categories, and the names of the features."""
    x, y = cells.axes
    _name_x(ax, x)
    height = ax.bbox.height / ax.figure.dpi
    room = _value_room(y, height)
    most = int(room / _LINE)
    places, texts = y.ticks(min(most, _TICKS) if y.limits else most)
    ax.set_yticks(*_apart(y, places, texts, _LINE * y.n_values / room))
    n_lines = math.ceil(_CHARACTER * len(y.name) / (_KEPT * height))
    ax.set_ylabel(textwrap.fill(y.name, len(y.name) // n_lines + 4))


def _name_x(ax: Axes, x: CellAxis) -> None:
    """The same along x; categories have no order, so each is named, at an angle if need be."""
    room, longest = _value_room(x, style.width(ax)), max(map(len, x.tick_texts), default=0)
    width = _CHARACTER * (longest + 2)
    if x.limits:
        places, texts = x.ticks(min(int(room / width), _TICKS))
        between = _CHARACTER * (longest + len("missing") + 2) / 2
        ax.set_xticks(*_apart(x, places, texts, between * x.n_values / room))
    elif room / width >= x.n_values:
        ax.set_xticks(*x.ticks(x.n_values))
    else:
        look: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(*x.ticks(int(room / _LINE)), **look)
    ax.set_xlabel(x.name)


def _apart(
    axis: CellAxis, places: list[float], texts: list[str], least: float
) -> tuple[list[float], list[str]]:
    """Ticks without the last one before that of missing values, if both would touch."""
    if axis.limits and axis.has_missing and len(places) > 1 and places[-1] - places[-2] < least:
        return [*places[:-2], places[-1]], [*texts[:-2], texts[-1]]
    return places, texts


def _value_room(axis: CellAxis, length: float) -> float:
    """The part of an axis, in inches, that does not belong to missing values.

    The layout, which comes later, takes some of its length for the labels beside it.
    """
    return float(_KEPT * length * axis.n_values / axis.edges[-1])


def _bands(ax: Axes, n_bags: int) -> str:
    """What bands are, in two lines below narrow axes."""
    text = f"bands: {spread.caption(n_bags)}"
    is_long = _CHARACTER * len(text) > style.width(ax)
    return text.replace("deviation over", "deviation\nover") if is_long else text


def _name_bar(bar: Any, text: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bar.set_label(text, fontsize="small")
    bar.ax.tick_params(labelsize="x-small")
    bar.locator = MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    bar.update_ticks()
    bar.outline.set_visible(False)


def _draw_lines(ax: Axes, cells: Cells) -> None:
    """What the first feature adds beside low, middle and high values of the second one."""
    x, y = cells.axes
    ax.axhline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    edges = np.asarray([[x.middle(k) - 0.5, x.middle(k) + 0.5] for k in range(len(x.bins))])
    handles, parts = [], _parts(cells)
    for (name, bins), look in zip(parts.items(), style.class_looks(len(parts)), strict=True):
        values, deviations = cells.mean_over(bins)
        places, heights = _steps(x, edges, values)
        if deviations is not None:
            ends = [_steps(x, edges, values + side * deviations)[1] for side in (-1, 1)]
            spread.fill_band(ax, places, (ends[0], ends[1]), look)
        (line,) = ax.plot(places, heights, gid=f"line of {name}", **look)
        handles.append(line)
    ax.set_xlim(0, x.edges[-1])
    ax.set_ylabel("adds", fontsize="small")
    room = style.width(ax) / (_CHARACTER * (max(map(len, parts)) + 7))
    look = {"ncols": max(1, min(int(room), len(parts))), "alignment": "left"}
    look |= {"title": f"beside {y.name}", "handlelength": 1.8, "columnspacing": 1.2}
    style.legend_above(ax, handles, [*parts], **look)


def _parts(cells: Cells) -> dict[str, list[int]]:
    """The parts of the second feature that have lines: their names, and the bins in them."""
    y, own = cells.axes[1], cells.weights.sum(axis=0)
    missing = {"missing": [y.n_values]} if y.has_missing and own[-1] > 0.0 else {}
    own = own[: y.n_values]
    if not y.limits or y.n_values <= _LINES:
        largest = sorted(np.argsort(-own, kind="stable")[:_LINES].tolist())
        return {y.bins[k]: [k] for k in largest if own[k] > 0.0} | missing
    middles = (np.cumsum(own) - own / 2) / own.sum()
    third = np.minimum(np.floor(_LINES * middles), _LINES - 1)
    found = [np.flatnonzero(third == k).tolist() for k in range(_LINES)]
    return {y.name_of(bins[0], bins[-1]): bins for bins in found if bins} | missing


def _steps(x: CellAxis, edges: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a line over bins; categories and missing values are apart from the others."""
    places, heights = [], []
    for k, (own, value) in enumerate(zip(edges.tolist(), values.tolist(), strict=True)):
        is_apart = k > 0 and (not x.limits or (x.has_missing and k == x.n_values))
        places += [own[0]] * is_apart + own
        heights += [np.nan] * is_apart + [value, value]
    return np.asarray(places), np.asarray(heights)


def _draw_density(ax: Axes, cells: Cells, whose: str) -> None:
    """The shares of the samples in the cells, in greys."""
    most = float(cells.shares.max())
    look: Any = {"cmap": "Greys", "vmin": 0.0, "vmax": most or 1.0, "gid": "samples"}
    _mesh(ax, cells, cells.shares, look)
    _name_axes(ax, cells)
    ax.yaxis.label.set_fontsize("small")
    ax.set_title(f"{whose}, up to {percent(most)} in a cell", fontsize="small", loc="left")
