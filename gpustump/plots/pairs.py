"""Pairs of features: what both add together, beyond what each adds alone.

A pair is a table over the bins of both features, so its picture is exact: a cell for each entry.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.readable import listed, shown, suggestion, temporal_text
from gpustump.learners.pair_table import PairAxis
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.model.explanation import categories_of
from gpustump.model.pairs import shares_of_pairs, strength_of
from gpustump.plots import style, terms
from gpustump.plots.axis import DATES, unit_of, value_text
from gpustump.plots.panels import DrawnScore
from gpustump.plots.shapes import drawn_scores, largest, output_indices, score_text
from gpustump.plots.terms import Pair, Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_MIDDLE = "#f7f7f7"
"""The colour of 0."""

_HATCH, _PALE = "#a6a6a6", 0.35
"""Cells without samples in training have lines of this colour, and so much of their own colour."""

_GAP = 0.35
"""The room between the other cells and those of missing values, in widths of a cell."""

_LINES = 3
"""How many parts of the second feature have lines of their own."""

_TICKS = 6
"""The most ticks at thresholds."""

_LINE = 0.17
"""The height of a line of tick labels, in inches."""

_KEPT = 0.8
"""About which share of the length of axes a layout leaves."""

_VALUE = 16
"""The middle of a category's name with more characters is cut out."""

_FLAGS = {"boolean": ("false", "true"), "category": ("no", "yes")}
"""What 0 and 1 are called, by the kind of a feature's column."""

_SMALL = 3
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
    number, is_turned = _pair_index(ensemble, pair)
    outputs = output_indices(ensemble, label)
    samples = terms.samples_of(model, X, sample_weight)
    output = _strongest(ensemble, number, outputs)
    (score,) = drawn_scores(ensemble, [output], [])
    cells = _cells_of(ensemble, number, output, samples, is_turned=is_turned)
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
        bands = f"bands: {style.bag_text(ensemble.n_bags)}"
        density.set_xlabel(f"{cells.axes[0].name}\n{textwrap.fill(bands, 30)}")
    style.make_current(table)
    return figure


def draw_pairs(
    model: StumpEnsemble,
    pairs: Sequence[Pair],
    scores: Sequence[DrawnScore],
    samples: Samples | None,
    figure: Figure | SubFigure,
) -> None:
    """The tables of some pairs beside each other, with one scale of colours.

    Of several scores, each pair is drawn for the one to which it adds most, and says so.
    """
    names = {one.output: one.name for one in scores}
    strongest = [_strongest(model, own.number, [*names]) for own in pairs]
    drawn = [
        _cells_of(model, own.number, output, samples)
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


def top_pairs(model: StumpEnsemble, contributions: np.ndarray) -> list[Pair]:
    """The pairs with the largest shares of the contributions (n_features + n_pairs,) over samples.

    If all are 0, the samples of the training take the place of others.
    """
    shares = contributions[model.n_features :]
    if not shares.any():
        shares = shares_of_pairs(model.pairs)
    pairs = terms.pairs_of(model)
    return [pairs[k] for k in largest(shares, _SMALL)]


def _strongest(model: StumpEnsemble, number: int, outputs: Sequence[int]) -> int:
    """The output to whose score a pair adds most."""
    return max(outputs, key=lambda output: strength_of(model.pairs[number].output(output)))


@dataclass(frozen=True)
class _CellAxis:
    """The bins of one feature of a pair, drawn with equal widths.

    Attributes
    ----------
    name : str
        With the unit that its values are drawn in.
    limits : tuple of str
        Where one bin of numbers ends and the next one begins, as text.
    categories : tuple of str
        What each bin of categories holds, as text.
    has_missing : bool
        Whether the last bin is that of missing values.
    """

    name: str
    limits: tuple[str, ...]
    categories: tuple[str, ...]
    has_missing: bool

    @property
    def n_values(self) -> int:
        """How many bins there are beside that of missing values."""
        return len(self.categories) or len(self.limits) + 1

    @property
    def bins(self) -> tuple[str, ...]:
        """What each bin holds, as text."""
        held = self.categories or tuple(self.name_of(k, k) for k in range(self.n_values))
        return held + ("missing",) * self.has_missing

    @property
    def edges(self) -> np.ndarray:
        """The left edges of all bins and the right edge of the last one, with a gap before the bin
        of missing values, which is an own cell: (n_bins + 1,), or (n_bins + 2,) with a gap."""
        end = self.n_values + _GAP
        return np.append(np.arange(self.n_values + 1.0), [end, end + 1.0] * self.has_missing)

    def middle(self, number: int) -> float:
        """Where the middle of a bin is drawn."""
        return number + 0.5 + (_GAP if self.has_missing and number == self.n_values else 0.0)

    def name_of(self, first: int, last: int) -> str:
        """What some neighbouring bins of numbers hold, such as "2 to 5"."""
        low = self.limits[first - 1] if first else ""
        high = self.limits[last] if last < len(self.limits) else ""
        if low and high:
            return f"{low} to {high}"
        return f"above {low}" if low else f"up to {high}" if high else "all"

    @property
    def tick_texts(self) -> tuple[str, ...]:
        """The limits, or else what each bin holds, without that of missing values."""
        return self.limits or self.bins[: self.n_values]

    def ticks(self, cell: float, least: float) -> tuple[list[float], list[str]]:
        """Places and labels of ticks, one for missing values among them.

        `cell` is the length of a cell, `least` the least distance of two ticks.
        """
        places = [k + 1.0 if self.limits else self.middle(k) for k in range(len(self.tick_texts))]
        step = max(1, math.ceil(least / cell), math.ceil(len(places) / _TICKS) * bool(self.limits))
        chosen = range((len(places) - 1) % step // 2, len(places), step)
        found = [(places[k], self.tick_texts[k]) for k in chosen]
        if self.has_missing:
            at = self.middle(self.n_values)
            found = [own for own in found if (at - own[0]) * cell >= least] + [(at, "missing")]
        return [place for place, _ in found], [text for _, text in found]


@dataclass(frozen=True)
class _Cells:
    """What a pair adds to one score.

    Attributes
    ----------
    axes : (_CellAxis, _CellAxis)
        Along x and along y.
    values : ndarray (k, m) of float64
        What is added in each cell.
    bags : ndarray (n_bags, k, m) of float64, or None
        For a bagged model what each bag adds there.
    weights : ndarray (k, m) of float64
        The share of the weight of the training samples in each cell.
    shares : ndarray (k, m) of float64
        The same of the samples that are shown: those of the training, or of a table.
    """

    axes: tuple[_CellAxis, _CellAxis]
    values: np.ndarray
    bags: np.ndarray | None
    weights: np.ndarray
    shares: np.ndarray

    @property
    def is_learnt(self) -> np.ndarray:
        """Whether any sample of the training lay in a cell, (k, m) of bool."""
        return self.weights > 0.0

    @property
    def largest(self) -> float:
        """The largest size of a value that was learnt."""
        return float(np.abs(self.values[self.is_learnt]).max(initial=0.0))

    def mean_over(self, bins: Sequence[int]) -> tuple[np.ndarray, np.ndarray | None]:
        """What the first feature adds on average beside some bins of the second one.

        Returns
        -------
        ndarray (k,) of float64
            The mean over the training samples in these bins; NaN where there are none.
        ndarray (k,) of float64, or None
            The standard deviation of that mean over the bags.
        """
        own = self.weights[:, bins]
        total = own.sum(axis=1)
        total = np.where(total > 0.0, total, np.nan)
        mean = (own * self.values[:, bins]).sum(axis=1) / total
        if self.bags is None:
            return mean, None
        return mean, np.std((own * self.bags[:, :, bins]).sum(axis=2) / total, axis=0, ddof=1)


def _pair_index(model: StumpEnsemble, pair: Any) -> tuple[int, bool]:
    """The number of a pair among those of a model, and whether its features are named in turn."""
    names = model.term_names[model.n_features :]
    if not names:
        raise ValueError(
            f"pair is {shown(pair)}, but the model has no pairs of features; train with "
            "interactions='auto', as GlassBoxClassifier and GlassBoxRegressor do."
        )
    known: dict[Any, tuple[int, bool]] = {}
    for k, own in enumerate(model.pairs):
        for features, is_turned in ((own.features[::-1], True), (own.features, False)):
            name = " x ".join(model.term_names[feature] for feature in features)
            known[features] = known[name] = k, is_turned
            known.setdefault(k, (k, False))
    is_two = isinstance(pair, Iterable) and not isinstance(pair, str)
    key = tuple(map(model.feature_index, pair)) if is_two else pair
    if not isinstance(key, bool) and key in known:
        return known[key]
    named = [one for one in known if isinstance(one, str)]
    hint = suggestion(pair, named) if isinstance(pair, str) else ""
    raise ValueError(
        f"pair is {shown(pair)}, which is none of the model's pairs, {listed(names, 3)}, and no "
        f"number below {len(names)}.{hint}"
    )


def _cells_of(
    model: StumpEnsemble,
    number: int,
    output: int,
    samples: Samples | None,
    *,
    is_turned: bool = False,
) -> _Cells:
    """What a pair adds to one output; the first feature is drawn along x, unless it is turned.

    The shares that are shown are those of samples, or for None of the samples of the training.
    """
    pair, axes = model.pairs[number], model.pairs[number].axes
    table = pair.output(output)
    shares = table.weights
    if samples is not None:
        with arrays.computing_on(samples.X):
            first, second = map(arrays.to_host, pair.bins_of(samples.X))
        shares = np.zeros(table.weights.shape)
        np.add.at(shares, (first, second), samples.weights.values / samples.weights.total)
    own = [table.values, table.weights, shares, *(() if table.bags is None else table.bags)]
    if is_turned:
        axes, own = axes[::-1], [one.T for one in own]
    total = own[1] + own[2]
    x = _cell_axis(model, axes[0], has_missing=bool(total[-1].any()))
    y = _cell_axis(model, axes[1], has_missing=bool(total[:, -1].any()))
    values, weights, shares, *bags = (one[: len(x.bins), : len(y.bins)] for one in own)
    return _Cells((x, y), values, np.stack(bags) if bags else None, weights, shares)


def _cell_axis(model: StumpEnsemble, axis: PairAxis, *, has_missing: bool) -> _CellAxis:
    name = terms.feature_name(model, axis.feature)
    if axis.groups:
        names = categories_of(model, axis.feature) or {}
        texts = [[names.get(number, str(number)) for number in own] for own in axis.groups]
        short = style.different_words([", ".join(own) for own in texts], _VALUE)
        return _CellAxis(name, (), tuple(short), has_missing)
    thresholds, kind = axis.thresholds[:-1], model.encoding.origin(axis.feature).column.kind
    if kind in _FLAGS and len(thresholds) == 1 and 0.0 <= thresholds[0] < 1.0:
        return _CellAxis(name, (), _FLAGS[kind], has_missing)
    unit, note = unit_of(thresholds, kind)
    return _CellAxis(name + note, tuple(_texts(thresholds / unit, kind)), (), has_missing)


def _texts(values: np.ndarray, kind: str) -> list[str]:
    """Increasing values with as few digits as tell them apart, three at least."""
    if kind in DATES:
        found = [value_text(value, kind) for value in values.tolist()]
        if kind != "datetime" or len({*found}) == len(found):
            return found
        seconds = (temporal_text(86400.0 * value, kind) for value in values.tolist())
        return [text or short for text, short in zip(seconds, found, strict=True)]
    texts: list[str] = []
    for digits in range(3, 18):
        texts = [style.number_text(value, digits) for value in values.tolist()]
        if len({*texts}) == len(texts):
            break
    return texts


def _draw_cells(ax: Axes, cells: _Cells, largest: float) -> Any:
    """The table in colours, from -largest to largest; cells that were not learnt are pale, hatched.

    Each cell has an edge in its own colour: without, programs that show vector graphics leave gaps
    between them.
    """
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

    colours = np.asarray([to_rgb(one) for one in (style.VERMILION, _MIDDLE, style.BLUE)])
    pale = _PALE * colours + (1 - _PALE) * colours[1]
    strong, weak = (LinearSegmentedColormap.from_list("pairs", [*own]) for own in (colours, pale))
    norm, is_learnt = Normalize(-(largest or 1.0), largest or 1.0), cells.is_learnt
    not_learnt = np.where(is_learnt, np.nan, cells.values)
    _mesh(ax.pcolormesh, cells, not_learnt, norm=norm, cmap=weak)
    lines: Any = {"edgecolors": _HATCH, "linewidth": 0.0, "hatch": "/////", "hatch_linewidth": 0.6}
    _mesh(ax.pcolor, cells, not_learnt, facecolor="none", gid="not learnt", **lines)
    seen = np.where(is_learnt, cells.values, np.nan)
    return _mesh(ax.pcolormesh, cells, seen, norm=norm, cmap=strong, gid="cells")


def _mesh(draw: Callable[..., Any], cells: _Cells, values: np.ndarray, **look: Any) -> Any:
    """Draw values (k, m) in the places of the cells, with gaps before the missing ones."""
    x, y = cells.axes
    for at, axis in enumerate(cells.axes):
        if axis.has_missing:
            values = np.insert(values, axis.n_values, np.nan, axis=at)
    look = {"edgecolors": "face", "linewidth": 0.3} | look
    return draw(x.edges, y.edges, np.ma.masked_invalid(values.T), **look)


def _name_axes(ax: Axes, cells: _Cells) -> None:
    """Ticks at some thresholds, or at categories, and the names of the features.

    Categories have no order, so as many are named as there is room for; below x at an angle.
    """
    x, y = cells.axes
    height = ax.bbox.height / ax.figure.dpi
    width = style.CHARACTER * (max(map(len, x.tick_texts), default=0) + 2)
    room = _KEPT * style.width_of(ax) / x.edges[-1]  # of a cell
    fits = room >= width
    ax.set_xticks(*x.ticks(room, width if x.limits or fits else _LINE))
    if not x.limits and not fits:
        for text in ax.get_xticklabels():
            text.set(rotation=45, ha="right", rotation_mode="anchor")
    ax.set_xlabel(x.name)
    ax.set_yticks(*y.ticks(_KEPT * height / y.edges[-1], _LINE))
    ax.set_ylabel(textwrap.fill(y.name, max(12, int(_KEPT * height / style.CHARACTER))))
    ax.set(xlim=(0, x.edges[-1]), ylim=(0, y.edges[-1]))
    ax.spines[:].set_visible(False)


def _name_bar(bar: Any, text: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bar.set_label(text, fontsize="small")
    bar.ax.tick_params(labelsize="x-small")
    bar.locator = MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    bar.update_ticks()
    bar.outline.set_visible(False)


def _draw_lines(ax: Axes, cells: _Cells) -> None:
    """What the first feature adds beside low, middle and high values of the second one."""
    x, y = cells.axes
    ax.axhline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    handles, parts = [], _parts(cells)
    for (name, bins), look in zip(parts.items(), style.line_looks(len(parts)), strict=True):
        values, deviations = cells.mean_over(bins)
        places, heights = _steps(x, values)
        if deviations is not None:
            low, high = (_steps(x, values + off)[1] for off in (-deviations, deviations))
            style.fill_band(ax, places, low, high, look["color"])
        (line,) = ax.plot(places, heights, gid=f"line of {name}", **look)
        handles.append(line)
    ax.set_xlim(0, x.edges[-1])
    ax.set_ylabel("adds", fontsize="small")
    room = style.width_of(ax) / (style.CHARACTER * (max(map(len, parts)) + 7))
    look = {"ncols": max(1, min(int(room), len(parts))), "handlelength": 1.8}
    look |= {"title": f"beside {y.name}", "columnspacing": 1.2}
    style.legend_above(ax, handles, [*parts], **look)


def _parts(cells: _Cells) -> dict[str, list[int]]:
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


def _steps(x: _CellAxis, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a line over bins; categories and missing values are apart from the others."""
    places, heights = [], []
    for k, value in enumerate(values.tolist()):
        left = x.middle(k) - 0.5
        is_apart = k > 0 and (not x.limits or (x.has_missing and k == x.n_values))
        places += [left] * is_apart + [left, left + 1.0]
        heights += [np.nan] * is_apart + [value, value]
    return np.asarray(places), np.asarray(heights)


def _draw_density(ax: Axes, cells: _Cells, whose: str) -> None:
    """The shares of the samples in the cells, in greys."""
    most = float(cells.shares.max())
    look: Any = {"cmap": "Greys", "vmin": 0.0, "vmax": most or 1.0, "gid": "samples"}
    _mesh(ax.pcolormesh, cells, cells.shares, **look)
    _name_axes(ax, cells)
    ax.yaxis.label.set_fontsize("small")
    ax.set_title(f"{whose}, up to {style.percent(most)} in a cell", fontsize="small", loc="left")
