"""Shape functions: what each feature adds to the score.

All stumps on one feature add up to one step function, and the picture draws it exactly, with
corners at the thresholds. Partial dependence, in contrast, is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.columns import CATEGORY, Column, column_at, columns_of
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import style, terms
from gpustump.plots.panels import DrawnScore, Panel, keep_room, turn_texts_inwards
from gpustump.plots.terms import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_COLUMNS = 3
_ENTRIES = 6
"""The most entries of a line of the legend."""

_STRIP = 0.2
"""The height of the strip below, as a share of the panel's."""


def shape_function(
    model: Any,
    feature: int | str,
    *,
    X: Any = None,
    sample_weight: Any = None,
    label: Label | Iterable[Label] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a feature adds to the score, as a function of its value.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
    feature : int or str
        Its index, or its name if the model has names.
    X : array (n_samples, n_features), optional
        Samples, whose values are drawn as a histogram in a strip below; an array of any library, or
        a frame if the model is an estimator.
    sample_weight : array (n_samples,), optional
        The weights of the samples in the histogram.
    label : bool, int, float or str, or an iterable of these, optional
        With more than two classes, the class whose score it is, or several, with a line each. By
        default all classes; if there are more than 6, those whose functions rise and fall most.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the step function. With X, the figure's last Axes are those of the strip.

    Raises
    ------
    ValueError, TypeError
        If there is no such feature or class, or X or sample_weight is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The component functions of a generalised additive model [Hastie and Tibshirani 1986], which
    boosted stumps are [Friedman, Hastie and Tibshirani 2000]: here from
    `StumpEnsemble.shape_function`, in units of the score, half the log-odds; with a softmax, half
    the log-probability up to a number that all classes share.

    The x axis covers the finite values of X, or without X the thresholds. Long tails are cut off,
    and texts at the edges say which share of the samples lies there. Where half of positive values
    would stand at the very left of the axis, it is logarithmic. Dates and times of a model that
    knows them are drawn as such, and durations in a unit that the axis names.
    The vote for missing values is drawn to the right: without X if it is not 0 and was learnt from
    missing values, with X if a value is missing. A categorical feature has bars, and so has a
    column of text that the command line gave the model as one feature for each value. If it has
    many categories, the most frequent ones are drawn, or without X those that differ most;
    "(other)" is a value that the model does not know, drawn if X has one.

    A bagged model has a band around the function, or lines at the ends of bars: one standard
    deviation over the bags to both sides, as Explainable Boosting Machines draw it [Nori, Jenkins,
    Koch and Caruana 2019].

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.shape_function(clf, 0, X=X)
    >>> len(ax.figure.axes)  # the curve, and the density below it
    2
    """
    ensemble = model_of(model)
    index = ensemble.feature_index(feature)
    outputs = output_indices(ensemble, label)  # refused before a table is read
    scores = drawn_scores(ensemble, outputs, [index])
    samples = terms.samples_of(model, X, sample_weight)
    ax = style.tidy_axes(ax, height=3.6 if samples is None else 4.2)
    strip = None if samples is None else style.strip_below(ax, _STRIP)
    column = column_at(ensemble, index)
    if Panel(ax, strip, ensemble, column, scores, samples).draw():
        keep_room(ax)
        turn_texts_inwards(ax)
    text = f"contribution to the {score_text(scores)}"
    is_long = 0.09 * len(text) > 1.15 * ax.bbox.height / ax.figure.dpi
    ax.set_ylabel(text.replace(" to the", " to\nthe", 1) if is_long else text)
    handles, names = _entries(ensemble, [column], scores)
    if handles:
        style.legend_above(ax, handles, names, title=_classes_shown(ensemble, scores))
    return style.make_current(ax)


def shape_functions(
    model: Any,
    *,
    X: Any = None,
    sample_weight: Any = None,
    features: int | str | Iterable[int | str] | None = None,
    n_features: int = 6,
    label: Label | Iterable[Label] | None = None,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw the shape functions of the most important features, with one scale for all.

    Parameters
    ----------
    model, X, sample_weight
        As for `shape_function`.
    features : int, str, or an iterable of these, optional
        Which ones, in this order; also names of columns of text that are one feature for each
        value. By default those with the largest `StumpEnsemble.contribution_importances` over X, or
        without X the largest `StumpEnsemble.feature_importances`.
    n_features : int
        How many, if `features` is not given; fewer if the model uses fewer.
    label : bool, int, float or str, or an iterable of these, optional
        As for `shape_function`. If there are more than 6 classes, those whose functions rise and
        fall most in the panels are drawn.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to draw on; a new figure by default.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each feature; all have the same y axis.

    Raises
    ------
    ValueError, TypeError
        If there is no such feature or class, or an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    Sources and limits as for `shape_function`. If contributions are the same in all rows of X, the
    features with the most votes are drawn.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> panels = plots.shape_functions(clf)
    >>> [ax.get_xlabel() for ax in panels]
    ['feature 0', 'feature 1']
    """
    ensemble = model_of(model)
    outputs = output_indices(ensemble, label)
    check_count(n_features, "n_features")
    columns = list(columns_of(ensemble))
    chosen = None if features is None else _named_columns(ensemble, columns, features)
    samples = terms.samples_of(model, X, sample_weight)
    if chosen is None:
        one = ranked_model(ensemble, outputs)
        chosen = top(one, contributions_of(one, samples), columns, n_features)
    scores = drawn_scores(ensemble, outputs, features_in(chosen))
    return draw_panels(ensemble, chosen, scores, samples, figure)


def draw_panels(
    model: StumpEnsemble,
    columns: Sequence[Column],
    scores: Sequence[DrawnScore],
    samples: Samples | None,
    figure: Figure | SubFigure | None,
) -> np.ndarray:
    """The shape functions of some columns; of the first feature if there are none."""
    columns = columns or [column_at(model, 0)]
    handles, names = _entries(model, columns, scores)
    grid, strips = _grid(figure, len(columns), names, has_strip=samples is not None)
    panels = zip(grid, strips, columns, strict=True)
    missing = [Panel(ax, strip, model, one, scores, samples).draw() for ax, strip, one in panels]
    if any(missing):
        for ax in grid:
            keep_room(ax)
    _share_scale(grid)
    for ax in grid:
        turn_texts_inwards(ax)
    line = "\n" if len(columns) <= _COLUMNS else " "  # one row has little height for the label
    whole = grid[0].figure
    whole.supylabel(f"contribution to{line}the {score_text(scores)}", fontsize="medium")
    if handles:
        look: Any = {"frameon": False, "fontsize": "small", "title_fontsize": "small"}
        n_columns = style.columns_that_fit(names, whole.bbox.width / whole.dpi, _ENTRIES)
        look |= {"ncols": n_columns, "alignment": "left"}
        title = _classes_shown(model, scores)
        whole.legend(handles, names, loc="outside upper left", title=title, **look)
    style.make_current(grid[0])
    return np.asarray(grid)


def drawn_scores(
    model: StumpEnsemble, outputs: Sequence[int], features: Iterable[int]
) -> list[DrawnScore]:
    """The scores to draw of some outputs: of too many those that differ most over some features."""
    if len(outputs) > style.CLASSES:
        outputs = _most_different(model, outputs, {*features})
    found = []
    for output, look in zip(outputs, style.line_looks(len(outputs)), strict=True):
        label = None if model.has_one_score else model.classes[output]
        found.append(DrawnScore(output, label, terms.score_name(model, label), look))
    return found


def output_indices(model: StumpEnsemble, label: Label | Iterable[Label] | None) -> list[int]:
    """The outputs for a label, for several labels, or for all classes.

    Raises
    ------
    ValueError
        If there is no such class, or there are too many labels.
    """
    if label is None:
        return list(range(model.n_outputs))
    numbers = list(dict.fromkeys(model.output_index(one) for one in terms.several(label)))
    if not 1 <= len(numbers) <= style.CLASSES:
        raise ValueError(f"label must be 1 to {style.CLASSES} labels; got {len(numbers)}.")
    return numbers


def ranked_model(model: StumpEnsemble, outputs: Sequence[int]) -> StumpEnsemble:
    """The model whose shares choose the features: of one of several classes alone, or of all."""
    if model.n_outputs == 1 or len(outputs) > 1:
        return model
    (output,) = outputs
    pairs = tuple(replace(own, values=own.values[..., [output]], bags=None) for own in model.pairs)
    of_one: dict[str, Any] = {"members": (model.output_member(output),), "pairs": pairs}
    of_one["moved"] = model.moved[output : output + 1]
    if model.is_shared:
        of_one["moved"] = tuple(own.of_output(output) for own in model.moved)
    return replace(model, **of_one, classes=(-1, 1), link="logistic", bags=None)


def score_text(scores: Sequence[DrawnScore]) -> str:
    """What the contributions add up to."""
    name = scores[0].name if len(scores) == 1 else "each class"
    return name if name in terms.PREDICTIONS.values() else f"score of {name}"


def contributions_of(model: StumpEnsemble, samples: Samples | None) -> np.ndarray:
    """The share of each feature and pair in the contributions, (n_features + n_pairs,).

    All are 0 if there are no samples, or if all samples have the same score.
    """
    if samples is None:
        return np.zeros(model.n_features + len(model.pairs))
    return model.contribution_importances(samples.X, samples.sample_weight)


def top(
    model: StumpEnsemble, contributions: np.ndarray, columns: Sequence[Column], limit: int
) -> list[Column]:
    """The columns with the largest shares of contributions, or of votes if all those are 0."""
    shares = contributions if contributions.any() else terms.votes_of_terms(model)
    return [columns[k] for k in largest(terms.shares_of(shares, columns), limit)]


def largest(shares: np.ndarray, limit: int) -> list[int]:
    """The indices of the largest shares, in decreasing order, without shares of 0."""
    order = np.argsort(-shares, kind="stable")[:limit]
    return [int(index) for index in order if shares[index] > 0]


def features_in(columns: Iterable[Column]) -> list[int]:
    """The features of some columns."""
    return [feature for column in columns for feature in column.features]


def _named_columns(model: StumpEnsemble, columns: Sequence[Column], features: Any) -> list[Column]:
    """The categories and features that a caller names; a category's name comes first."""
    categories = {column.name: column for column in columns if column.kind == CATEGORY}
    given = terms.several(features)
    if not given:
        raise ValueError("features is empty; name one at least, or leave it out.")
    return [
        categories[one]
        if isinstance(one, str) and one in categories
        else column_at(model, model.feature_index(one))
        for one in given
    ]


def _most_different(model: StumpEnsemble, outputs: Sequence[int], features: set[int]) -> list[int]:
    """The outputs whose functions of some features have the largest ranges, in their order."""

    def span(output: int) -> float:
        tables = model.output_tables(output)[1]
        return float(sum(np.ptp(own.values) for own in tables if own.feature in features))

    return sorted(sorted(outputs, key=span, reverse=True)[: style.CLASSES])


def _entries(
    model: StumpEnsemble, columns: Sequence[Column], scores: Sequence[DrawnScore]
) -> tuple[list[Any], list[str]]:
    """What the legend explains: the classes if there are several, and the spread of the bags."""
    from matplotlib.lines import Line2D

    shown = scores if len(scores) > 1 else ()
    handles: list[Any] = [Line2D([], [], **score.look) for score in shown]
    names = [score.name for score in shown]
    if model.n_bags > 1:
        colour = style.GREY if shown else scores[0].look["color"]
        is_band = any(column.values is None for column in columns)
        handles.append(style.bag_handle(colour, is_band=is_band))
        names.append(style.bag_text(model.n_bags))
    return handles, names


def _classes_shown(model: StumpEnsemble, scores: Sequence[DrawnScore]) -> str | None:
    """What the legend says if not all classes are drawn."""
    if len(scores) in (1, len(model.classes)):
        return None
    return f"the {len(scores)} of {len(model.classes)} classes whose functions rise and fall most"


def _grid(
    figure: Figure | SubFigure | None, n_panels: int, names: list[str], *, has_strip: bool
) -> tuple[list[Axes], list[Axes | None]]:
    """Axes for the panels, three in a row, and the strips below them; `names` are in the legend.

    The panels of a row share a grid, so that their edges are aligned.
    """
    columns = 2 if n_panels == 4 else min(n_panels, _COLUMNS)
    rows = -(-n_panels // columns)
    if figure is None:
        width = 0.5 + 2.9 * columns
        lines = -(-len(names) // style.columns_that_fit(names, width, _ENTRIES))
        height = (2.5 if has_strip else 2.1) * rows + 0.2 * max(0, lines - 1)
        figure = style.new_figure(width, height)
    gap = None if figure.get_layout_engine() else 0.35  # without a layout, room for the names
    outer = figure.add_gridspec(rows, 1, hspace=gap)
    ratios = [1 - _STRIP, _STRIP] if has_strip else [1]
    grid: list[Axes] = []
    strips: list[Axes | None] = []
    for k in range(n_panels):
        row, column = divmod(k, columns)
        if column == 0:
            inner = outer[row].subgridspec(len(ratios), columns, height_ratios=ratios, hspace=0.06)
        ax = figure.add_subplot(inner[0, column], sharey=grid[0] if grid else None)
        ax.tick_params(labelleft=column == 0)
        grid.append(style.tidy_axes(ax))
        strip = figure.add_subplot(inner[1, column], sharex=ax) if has_strip else None
        strips.append(strip if strip is None else style.under(ax, style.tidy_axes(strip)))
    return grid, strips


def _share_scale(grid: Sequence[Axes]) -> None:
    """Set one scale of y for all panels, with room for the largest values.

    The number of ticks does not depend on the height of the axes: the layout would otherwise change
    the tick labels after it has made room for them, and wider ones would touch the label beside.
    """
    from matplotlib.ticker import MaxNLocator

    bounds = [ax.dataLim.intervaly for ax in grid]
    low, high = min(0.0, *(b[0] for b in bounds)), max(0.0, *(b[1] for b in bounds))
    margin = 0.06 * (high - low) or 1.0
    for ax in grid:
        ax.set_ylim(low - margin, high + margin)
    if low < high:
        grid[0].yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
