"""Decision regions over two features, exactly: rectangles between thresholds.

With all other features fixed, the score is the sum of a constant and one step function of each of
the two features. So the prediction is the same in each cell between neighbouring thresholds, and
the cells are drawn. scikit-learn's `DecisionBoundaryDisplay` evaluates a model on a grid of points,
so its boundaries are off by up to a grid's width. Its names `xx0`, `xx1` and `response` are used
here as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.labels import class_numbers
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.model.explanation import categories_of
from gpustump.plots import inputs, limits, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIGHTNESS = (0.72, 0.93, 0.58, 0.84, 0.66, 0.78, 0.5, 0.88)
"""One for each marker, so 8; with 7 colours, no two of 56 classes look the same."""

_CELLS = 2000
"""The most cells along an axis; no screen shows more."""


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
        The values of the other features, NaN for missing; by default their medians over X. Not
        needed if the model uses no other features.
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
    or below. If thresholds are closer than 1/2000 of the axis, only one of them is drawn. Values
    too large or too small for Matplotlib are drawn in units of a power of ten, which the axis
    names.

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
    pair = inputs.feature_pair(features, ensemble.feature_index)
    if X is None and y is not None:
        raise ValueError("y is given without X; give both, or X alone.")
    table = None if X is None else inputs.table_of(model, X)
    held = _held(ensemble, pair, table, at)
    points = None if table is None else [inputs.column_of(table, feature) for feature in pair]
    numbers = None if y is None else class_numbers(ensemble.classes, y, table)
    ax = style.tidy_axes(ax, 5.2, 4.6)
    first, second = (
        _axis(ensemble, feature, None if points is None else points[k])
        for k, feature in enumerate(pair)
    )
    response = _response(ensemble, pair, (first.ends, second.ends), held)
    _draw_cells(ax, first.edges, second.edges, response, len(ensemble.classes))
    if points is not None:
        shown = [limits.in_unit(points[k], axis.unit) for k, axis in enumerate((first, second))]
        _draw_points(ax, shown, numbers)
    _label(ax, ensemble, numbers)
    for axis, drawn in ((ax.xaxis, first), (ax.yaxis, second)):
        note = style.temporal_ticks(axis, drawn.kind, 6)
        if note is None:
            style.whole_ticks(axis, is_whole=drawn.is_whole)
        axis.set_label_text(drawn.name + (note or ""))
    return style.make_current(ax)


@dataclass(frozen=True)
class _Axis:
    """A feature's axis.

    Attributes
    ----------
    name : str
        The label of the axis.
    unit : float
        What values are divided by: a power of ten, or a unit of time.
    edges : ndarray (n_cells + 1,) of float64
        The edges of the cells, in that unit.
    ends : ndarray (n_cells,) of float64
        The upper ends of the cells, in the model's own unit.
    is_whole : bool
        Whether the values are whole numbers.
    kind : str
        Of the feature's column, such as "date".
    """

    name: str
    unit: float
    edges: np.ndarray
    ends: np.ndarray
    is_whole: bool
    kind: str


def _uses_others(model: StumpEnsemble, pair: tuple[int, int]) -> bool:
    return not model.used_features <= set(pair)


def _held(model: StumpEnsemble, pair: tuple[int, int], X: Any, at: Any) -> np.ndarray:
    """A row (n_features,) with the values of the features outside the pair."""
    if at is not None:
        return inputs.host_row(at, "at", model.n_features)
    if X is None:
        if _uses_others(model, pair):
            raise ValueError(
                "the model uses other features than these two: give X, for their medians, or at, a "
                "row with their values."
            )
        return np.zeros(model.n_features)
    row = np.zeros(model.n_features)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column of NaN, whose median is NaN
        for feature in model.used_features - set(pair):
            row[feature] = np.nanmedian(inputs.column_of(X, feature))
    return row


def _axis(model: StumpEnsemble, feature: int, values: np.ndarray | None) -> _Axis:
    """A feature's axis, with a cell between any two neighbouring thresholds in view.

    A category has a cell that is 1 wide, around its number.
    """
    _, tables = model.additive.tables
    categories = categories_of(model, feature)
    if categories is None:
        found = [table.thresholds for table in tables if table.feature == feature]
        axes = (axis for own in model.pairs for axis in own.axes)
        found += [axis.thresholds[:-1] for axis in axes if axis.feature == feature]
    else:
        numbers = np.asarray([*categories], dtype=np.float64)
        found = [numbers - 0.5, numbers + 0.5]
    thresholds = np.unique(np.concatenate([np.zeros(0), *found]))
    known, pad = (thresholds, 0.15) if values is None else (values, 0.04)
    kind = inputs.kind_of(model, feature)
    unit, text = limits.unit_of_kind(known, kind)
    view = limits.span if values is None else limits.bulk
    seen = limits.in_unit(known, unit)
    low, high = view(seen, pad)
    drawn = limits.in_unit(thresholds, unit)
    is_inside = (drawn > low) & (drawn < high)
    kept = _apart(drawn[is_inside], (high - low) / _CELLS)
    edges = np.concatenate([[low], drawn[is_inside][kept], [high]])
    with np.errstate(over="ignore"):  # near the largest float, the last end is infinite
        ends = np.append(thresholds[is_inside][kept], high * unit)
    if categories is not None:
        ends = np.ceil(ends - 0.5)
    whole = limits.are_between_whole if values is None else limits.is_whole
    name = inputs.feature_name(model, feature) + text
    return _Axis(name, unit, edges, ends, whole(seen, (low, high)), kind)


def _apart(values: np.ndarray, least: float) -> list[int]:
    """The indices of increasing values that are at least so far apart."""
    kept, at = [], 0
    while at < len(values):
        kept.append(at)
        at = max(at + 1, int(np.searchsorted(values, values[at] + least)))
    return kept


def _response(
    model: StumpEnsemble, pair: tuple[int, int], ends: tuple[np.ndarray, np.ndarray], row: Any
) -> np.ndarray:
    """The class number of each cell, (cells along x1, cells along x0).

    Each cell is evaluated at its upper end, as a threshold belongs to the left. Sums of votes are
    exact in any order, so these are the model's own predictions. If scores are equal, the first
    class is taken.
    """
    best = _scores(model, 0, pair, ends, row)
    if model.is_binary:
        return (best > 0).astype(np.int64)
    numbers = np.zeros(best.shape, dtype=np.int64)
    for number in range(1, model.n_outputs):
        score = _scores(model, number, pair, ends, row)
        numbers[score > best] = number
        np.maximum(best, score, out=best)
    return numbers


def _scores(
    model: StumpEnsemble,
    number: int,
    pair: tuple[int, int],
    ends: tuple[np.ndarray, np.ndarray],
    row: np.ndarray,
) -> np.ndarray:
    """An output's score in each cell."""
    constant, tables = model.additive.tables
    score = np.full((len(ends[1]), len(ends[0])), constant[number])
    for table in (own.output(number) for own in tables):
        if table.feature == pair[0]:
            score += table.look_up(ends[0])[np.newaxis, :]
        elif table.feature == pair[1]:
            score += table.look_up(ends[1])[:, np.newaxis]
        else:
            score += float(table.look_up(row[table.feature : table.feature + 1])[0])
    places = {pair[0]: ends[0][np.newaxis, :], pair[1]: ends[1][:, np.newaxis]}
    for own in model.pairs:
        x, z = (
            axis.bins_of(places.get(axis.feature, row[axis.feature].reshape(1, 1)))
            for axis in own.axes
        )
        score += own.output(number).values[x, z]
    return score


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


def _draw_points(ax: Axes, points: list[np.ndarray], numbers: np.ndarray | None) -> None:
    """The samples with finite values of both features, with a shape for each class."""
    is_finite = np.isfinite(points[0]) & np.isfinite(points[1])
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    is_shown = is_finite & (left <= points[0]) & (points[0] <= right)
    is_shown &= (bottom <= points[1]) & (points[1] <= top)
    area = style.point_area(int(is_shown.sum()))
    for number in [None] if numbers is None else np.unique(numbers).tolist():
        here = is_shown if number is None else is_shown & (numbers == number)
        ax.scatter(
            points[0][here],
            points[1][here],
            s=area,
            marker="o" if number is None else style.MARKERS[number % len(style.MARKERS)],
            facecolor=style.GREY if number is None else _colour(number),
            edgecolor="black",
            linewidth=0.4 if area > 8 else 0.2,
            zorder=3,
        )
    texts = []
    for hidden, why in ((~is_finite, "without finite values"), (is_finite & ~is_shown, "beyond")):
        if count := int(hidden.sum()):
            texts.append(f"{count} sample{'s' * (count > 1)} {why}")
    if texts:
        style.note(
            ax,
            f"{', '.join(texts)} not shown",
            x=1.0,
            y=1.01,
            ha="right",
            va="bottom",
            fontsize="x-small",
        )


def _label(ax: Axes, model: StumpEnsemble, numbers: np.ndarray | None) -> None:
    """A legend of the areas and points."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for k in range(len(model.classes)):
        face = _tint(k)
        patch = Patch(facecolor=face, edgecolor="#333333", linewidth=0.6)
        point = Line2D(
            [],
            [],
            linestyle="",
            marker=style.MARKERS[k % len(style.MARKERS)],
            markerfacecolor=_colour(k),
            markeredgecolor="black",
            markersize=5,
        )
        handles.append(patch if numbers is None else (patch, point))
    names = [inputs.class_name(label) for label in model.classes]
    title = "predicted" if numbers is None else "predicted (area), true (point)"
    style.legend_above(ax, handles, names, title=title, alignment="left")


def _colour(number: int) -> str:
    return style.COLOURS[number % len(style.COLOURS)]


def _tint(number: int) -> tuple[float, float, float]:
    """The colour of a class's area; classes differ in lightness as well."""
    return style.tint(_colour(number), _LIGHTNESS[number % len(_LIGHTNESS)])
