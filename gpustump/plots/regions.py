"""Decision regions over two features, exactly: rectangles between thresholds.

With all other features fixed, the score is the sum of a constant and one step function of each of
the two features. So the prediction is the same in each cell between neighbouring thresholds, and
the cells are drawn. scikit-learn's `DecisionBoundaryDisplay` evaluates a model on a grid of points,
so its boundaries are off by up to a grid's width. Its names `xx0`, `xx1` and `response` are used
here as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import class_numbers
from gpustump.model.columns import Column, column_at
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.model.explanation import categories_of
from gpustump.plots import axis, style, terms
from gpustump.plots.axis import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_LIGHTNESS = (0.72, 0.93, 0.58, 0.84, 0.66, 0.78, 0.5, 0.88)
"""One for each marker, so 8; with 7 colours, no two of 56 classes look the same."""

_CELLS = 2000
"""The most cells along an axis; no screen shows more."""

_NAMED, _NAME = 12, 12
"""The most categories that have ticks, and the most characters of their names."""


def decision_regions(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Iterable[int | str] = (0, 1),
    at: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the class that a model predicts over two features, and the samples on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features), optional
        Samples to draw. Those with a missing or infinite value of one of the two features, or one
        so large that it would squeeze the others, are not drawn; a text above gives their number.
    y : array (n_samples,), optional
        Their labels, of the model's classes; without it, all points look the same.
    features : two of int or str
        On the x axis and on the y axis; names if the model has names.
    at : array (n_features,), optional
        The values of the other features, NaN for missing; by default their medians over X, of
        categories the most frequent one. Not needed if the model uses no other features.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes
        The first collection is the mesh of cells, and its array holds the class numbers.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or the model uses other features and neither X nor `at`
        is given.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    Pictures of this kind are in Schapire and Freund (2012), Boosting: Foundations and Algorithms,
    chapter 1, and in scikit-learn's AdaBoost examples. A boundary belongs to the cell on its left,
    or below. If thresholds are closer than 1/2000 of the axis, only one of them is drawn.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> ax = plots.decision_regions(clf, X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('feature 0', 'feature 1')
    """
    ensemble = model_of(model)
    ensemble.refuse_quantity()
    pair = terms.two_features(features, ensemble.feature_index)
    if X is None and y is not None:
        raise ValueError("y is given without X; give both, or X alone.")
    table = None if X is None else terms.table_of(model, X)
    held = _held(ensemble, pair, table, at)
    points = None if table is None else [terms.column_of(table, feature) for feature in pair]
    numbers = None if y is None else class_numbers(ensemble.classes, y, table)
    ax = style.tidy_axes(ax, 5.2, 4.6)
    first, second = (
        _axis(ensemble, feature, None if points is None else points[k])
        for k, feature in enumerate(pair)
    )
    response = _response(ensemble, pair, (first.ends, second.ends), held)
    _draw_cells(ax, first.edges, second.edges, response, len(ensemble.classes))
    for drawn, of_axis in ((first, ax.xaxis), (second, ax.yaxis)):
        note = axis.set_ticks(of_axis, drawn.column.kind, 6, is_whole=drawn.is_whole)
        of_axis.set_label_text(drawn.name + note)
        if drawn.column.values:
            _name_categories(of_axis, drawn.column)
    if points is not None:
        _draw_points(ax, points[0] / first.unit, points[1] / second.unit, numbers)
    _label(ax, ensemble, numbers)
    return style.make_current(ax)


class _Axis(NamedTuple):
    """A feature's axis.

    Attributes
    ----------
    column : Column
    name : str
        The label of the axis.
    unit : float
        What values are divided by.
    edges : ndarray (n_cells + 1,) of float64
        The edges of the cells, in that unit.
    ends : ndarray (n_cells,) of float64
        The upper ends of the cells, in the model's own unit.
    is_whole : bool
        Whether the values are whole numbers.
    """

    column: Column
    name: str
    unit: float
    edges: np.ndarray
    ends: np.ndarray
    is_whole: bool


def _held(model: StumpEnsemble, pair: tuple[int, int], X: Any, at: Any) -> np.ndarray:
    """A row (n_features,) with the values of the features outside the pair."""
    others, row = model.used_features - set(pair), np.zeros(model.n_features)
    if at is not None:
        host = arrays.to_host(as_array(at, "at"))
        if host.shape != row.shape or host.dtype.kind not in "biuf":
            raise ValueError(
                f"at must hold {len(row)} numbers, one for each feature; got shape {host.shape} of "
                f"{host.dtype}."
            )
        return host.astype(np.float64)
    if X is None and others:
        raise ValueError(
            "the model uses other features than these two: give X, for their medians, or at, a "
            "row with their values."
        )
    for feature in others:
        values = terms.column_of(X, feature)
        present = values[~np.isnan(values)]
        if not present.size:
            row[feature] = np.nan
        elif categories_of(model, feature) is None:
            row[feature] = 2 * np.median(present / 2)  # a sum of two values may overflow
        else:  # the median of their numbers may be no category
            distinct, counts = np.unique(present, return_counts=True)
            row[feature] = distinct[counts.argmax()]
    return row


def _axis(model: StumpEnsemble, feature: int, values: np.ndarray | None) -> _Axis:
    """A feature's axis, with a cell between any two neighbouring thresholds in view.

    A category has a cell that is 1 wide, around its number.
    """
    _, tables = model.additive.tables
    column = column_at(model, feature)
    if column.values is None:
        found = [table.thresholds for table in tables if table.feature == feature]
        axes = (own for pair in model.pairs for own in pair.axes)
        found += [own.thresholds for own in axes if own.feature == feature]
    else:
        numbers = np.asarray(column.numbers, dtype=np.float64)
        found = [numbers - 0.5, numbers + 0.5]
    thresholds = np.unique(np.concatenate([np.zeros(0), *found]))
    unit, text = axis.unit_of(thresholds if values is None else values, column.kind)
    cuts = thresholds / unit
    shown = cuts[np.isfinite(cuts)] if values is None else values / unit
    view = axis.span(shown, 0.15) if values is None else axis.bulk(shown, 0.04)
    inside = (cuts > view.low) & (cuts < view.high)
    places = (cuts[inside] - view.low) * (_CELLS / (view.high - view.low))
    _, kept = np.unique(np.floor(places), return_index=True)
    ends = np.append(thresholds[inside][kept], view.high * unit)
    if column.values is not None:
        ends = np.ceil(ends - 0.5)
    is_whole = axis.are_between_whole if values is None else axis.is_whole
    return _Axis(
        column,
        terms.feature_name(model, feature) + text,
        unit,
        np.concatenate([[view.low], cuts[inside][kept], [view.high]]),
        ends,
        is_whole(shown, View(view.low, view.high)),
    )


def _name_categories(of_axis: Axis, column: Column) -> None:
    """Ticks at the categories in view, evenly spaced if they are many, with their names."""
    low, high = of_axis.get_view_interval()
    categories = zip(column.numbers, column.values or (), strict=True)
    shown = {number: name for number, name in categories if low <= number <= high}
    names = style.different_words([*shown.values()], _NAME)
    step = max(1, -(-len(shown) // _NAMED))
    of_axis.set_ticks([*shown][::step], names[::step])
    width = style.CHARACTER * sum(len(name) + 2 for name in names[::step])
    if of_axis is of_axis.axes.xaxis and width > style.width_of(of_axis.axes):
        for text in of_axis.get_ticklabels():
            text.set(rotation=45, ha="right", rotation_mode="anchor")


def _response(
    model: StumpEnsemble,
    pair: tuple[int, int],
    ends: tuple[np.ndarray, np.ndarray],
    row: np.ndarray,
) -> np.ndarray:
    """The class number of each cell, (cells along x1, cells along x0).

    Each cell is evaluated at its upper end, as a threshold belongs to the left. Sums of votes are
    exact in any order, so these are the model's own predictions.
    """
    places = {pair[0]: ends[0][np.newaxis, :], pair[1]: ends[1][:, np.newaxis]}

    def values_of(feature: int) -> np.ndarray:
        return places.get(feature, row[feature : feature + 1, np.newaxis])

    constant, tables = model.additive.tables
    scores = np.tile(constant, (len(ends[1]), len(ends[0]), 1))
    for table in tables:
        values = values_of(table.feature)
        scores += table.look_up(values.ravel()).reshape(*values.shape, -1)
    for own in model.pairs:
        first, second = (axis.bins_of(values_of(axis.feature)) for axis in own.axes)
        scores += own.values[first, second]
    if model.is_binary:
        return (scores[..., 0] > 0).astype(np.int64)
    best: np.ndarray = scores.argmax(axis=-1)
    return best


def _draw_cells(
    ax: Axes, xx0: np.ndarray, xx1: np.ndarray, response: np.ndarray, n_classes: int
) -> None:
    """Tinted cells, and lines between cells of different classes.

    Each cell has an edge in its own colour: without, programs that show vector graphics leave gaps
    between areas, which look like boundaries.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import BoundaryNorm, ListedColormap

    tints = [_tint(k) for k in range(n_classes)]
    ax.pcolormesh(
        xx0,
        xx1,
        response,
        shading="flat",
        cmap=ListedColormap(tints),
        norm=BoundaryNorm(np.arange(n_classes + 1) - 0.5, n_classes),
        zorder=0,
        edgecolors="face",
        linewidth=0.3,
        rasterized=response.size > 10**4,
    )
    ax.add_collection(
        LineCollection(
            list(_boundaries(xx0, xx1, response)), colors="#333333", linewidths=1.1, zorder=2
        ),
        autolim=False,
    )
    ax.set(xlim=(xx0[0], xx0[-1]), ylim=(xx1[0], xx1[-1]))


def _boundaries(xx0: np.ndarray, xx1: np.ndarray, response: np.ndarray) -> np.ndarray:
    """The sides between two cells of different classes, (n_sides, 2 ends, 2 coordinates)."""
    i, j = np.nonzero(response[:, 1:] != response[:, :-1])
    upright = [[xx0[j + 1], xx1[i]], [xx0[j + 1], xx1[i + 1]]]
    i, j = np.nonzero(response[1:] != response[:-1])
    level = [[xx0[j], xx1[i + 1]], [xx0[j + 1], xx1[i + 1]]]
    return np.concatenate([np.moveaxis(np.asarray(part), 2, 0) for part in (upright, level)])


def _draw_points(ax: Axes, x: np.ndarray, y: np.ndarray, numbers: np.ndarray | None) -> None:
    """The samples in view, with a shape for each class, and the number of the others."""
    is_finite = np.isfinite(x) & np.isfinite(y)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    shown = is_finite & (left <= x) & (x <= right) & (bottom <= y) & (y <= top)
    area = style.point_area(int(shown.sum()))
    look: Any = {"s": area, "edgecolor": "black", "linewidth": 0.4 if area > 8 else 0.2}
    for number in [None] if numbers is None else np.unique(numbers).tolist():
        here = shown if number is None else shown & (numbers == number)
        marker = "o" if number is None else style.MARKERS[number % len(style.MARKERS)]
        face = style.GREY if number is None else _colour(number)
        ax.scatter(x[here], y[here], marker=marker, facecolor=face, zorder=3, **look)
    hidden = (~is_finite, "without finite values"), (is_finite & ~shown, "beyond")
    counts = [(int(own.sum()), why) for own, why in hidden if own.any()]
    texts = [f"{count} sample{'s' * (count > 1)} {why}" for count, why in counts]
    if texts:
        where: Any = {"x": 0.99, "y": 0.01, "ha": "right", "va": "bottom", "fontsize": "x-small"}
        where |= {"zorder": 4, "alpha": 1.0, "bbox": {"color": "white", "alpha": 0.8, "pad": 1.5}}
        style.note(ax, f"{', '.join(texts)} not shown", **where)


def _label(ax: Axes, model: StumpEnsemble, numbers: np.ndarray | None) -> None:
    """A legend of the areas and points."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    look: Any = {"linestyle": "", "markeredgecolor": "black", "markersize": 5}
    for k in range(len(model.classes)):
        patch = Patch(facecolor=_tint(k), edgecolor="#333333", linewidth=0.6)
        marker = style.MARKERS[k % len(style.MARKERS)]
        point = Line2D([], [], marker=marker, markerfacecolor=_colour(k), **look)
        handles.append(patch if numbers is None else (patch, point))
    names = terms.class_names(model)
    title = "predicted" if numbers is None else "predicted (area), true (point)"
    style.legend_above(ax, handles, names, title=title)


def _colour(number: int) -> str:
    return style.COLOURS[number % len(style.COLOURS)]


def _tint(number: int) -> tuple[float, float, float]:
    """The colour of a class's area; classes differ in lightness as well."""
    return style.tint(_colour(number), _LIGHTNESS[number % len(_LIGHTNESS)])
