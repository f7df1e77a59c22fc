"""Shape functions: what each feature adds to the score.

All stumps on one feature add up to one step function, and the picture draws it exactly, with
corners at the thresholds. Partial dependence, in contrast, is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, spread, style
from gpustump.plots.columns import (
    Column,
    Groups,
    chosen_columns,
    columns_of,
    features_of,
    shares_of,
)
from gpustump.plots.panels import (
    DrawnScore,
    Panel,
    StepPanel,
    draw_panel,
    keep_room,
    panel_of,
    turn_texts_inwards,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_COLUMNS = 3
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
    model : StumpEnsemble or fitted classifier
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
    and texts at the edge count the steps there, and say which share of the samples lies there and
    how far it reaches. Where half of the values would still stand in a tenth of the axis, it is
    logarithmic, and says so. Dates and times of a model that knows them are drawn as such, and
    durations in a unit that the axis names. The vote for missing values is drawn to the right:
    without X if it is not 0 and was learnt from missing values, with X if a value is missing.
    Values too large or too small for Matplotlib are drawn in units of a power of ten, which the
    axis names. A categorical feature has bars.

    A bagged model has a band around the function: one standard deviation over the bags to both
    sides, as Explainable Boosting Machines draw it [Nori, Jenkins, Koch and Caruana 2019]. The vote
    for missing values has a line of the same length.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.shape_function(clf, 0, X=X)
    >>> ax.get_ylabel(), len(ax.figure.axes)
    ('contribution to the score of class 1', 2)
    """
    ensemble = model_of(model)
    index = ensemble.feature_index(feature)
    scores = drawn_scores(ensemble, label, [index])  # refused before a table is read
    samples = inputs.samples_of(model, X, sample_weight)
    panel = panel_of(ensemble, index, scores, samples)
    ax = style.tidy_axes(ax, height=3.6 if samples is None else 4.2)
    draw_panel(ax, None if samples is None else style.strip_below(ax, _STRIP), panel)
    if panel.shows_missing:
        keep_room(ax)
    _say_what(ax, score_text(scores))
    handles, names = _entries(ensemble, [panel])
    if handles:
        title = _classes_shown(ensemble, scores)
        style.legend_above(ax, handles, names, title=title, alignment="left")
    turn_texts_inwards(ax)
    return style.make_current(ax)


def shape_functions(
    model: Any,
    *,
    X: Any = None,
    sample_weight: Any = None,
    features: int | str | Iterable[int | str] | None = None,
    n_features: int = 6,
    groups: Groups | None = None,
    label: Label | Iterable[Label] | None = None,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw the shape functions of the most important features, with one scale for all.

    Parameters
    ----------
    model, X, sample_weight
        As for `shape_function`.
    features : int, str, or an iterable of these, optional
        Which ones, in this order; also names of groups. By default those with the largest
        `StumpEnsemble.contribution_importances` over X, or without X the largest
        `StumpEnsemble.feature_importances`.
    n_features : int
        How many, if `features` is not given; fewer if the model uses fewer.
    groups : mapping, optional
        Categories that were given to the model as one feature for each value: 1 where a row has
        the value, else 0. For each category a mapping from its values to their features, such as
        ``{"colour": {"red": 0, "blue": 1}}``. A category has one panel. By default the text columns
        of a model that the command line trained; {} for a panel for each feature.
    label : bool, int, float or str, or an iterable of these, optional
        As for `shape_function`. If there are more than 6 classes, those whose functions rise and
        fall most in the panels are drawn.
    figure : matplotlib Figure or SubFigure, optional
        An empty one to draw on; a new figure by default.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each feature or category.

    Raises
    ------
    ValueError, TypeError
        If there is no such feature or class, or an argument is not as described. In X, a row of a
        category must have 1 for one value and 0 for the others, or all 0, or all NaN.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    Sources and limits as for `shape_function`. All panels have the same y axis. If contributions
    are the same in all rows of X, the features with the most votes are drawn.

    A category has a bar for each value, from 0 to what the category adds to the score of a row with
    that value: the sum over all its features, of which one is 1 and the others are 0. It is the sum
    of their columns in `StumpEnsemble.explain`. "(other)" is a value that has no feature, drawn if
    X has one. If a category has many values, the most frequent ones are drawn, or without X those
    whose sums differ most. The share of a category is the sum of its features' shares. For a bagged
    model, lines at the bars' ends reach one standard deviation over the bags to both sides.

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
    output_indices(ensemble, label)
    check_count(n_features, "n_features")
    columns = columns_of(ensemble, groups)
    chosen = (
        None if features is None else chosen_columns(ensemble, columns, inputs.several(features))
    )
    if chosen == []:
        raise ValueError("features is empty; name one at least, or leave it out.")
    samples = inputs.samples_of(model, X, sample_weight)
    if chosen is None:
        one = ranked_model(ensemble, label)
        chosen = top(one, contributions_of(one, samples), columns, n_features)
    scores = drawn_scores(ensemble, label, features_in(chosen))
    return draw_panels(ensemble, chosen, scores, samples, figure)


def draw_panels(
    model: StumpEnsemble,
    columns: Sequence[Column],
    scores: Sequence[DrawnScore],
    samples: inputs.Samples | None,
    figure: Figure | SubFigure | None,
) -> np.ndarray:
    """The shape functions of some columns; of the first feature if there are none."""
    columns = columns or [0]
    panels = [panel_of(model, column, scores, samples) for column in columns]
    grid, strips = _grid(figure, len(panels), has_strip=samples is not None)
    has_missing = any(panel.shows_missing for panel in panels)
    for ax, strip, panel in zip(grid, strips, panels, strict=True):
        draw_panel(ax, strip, panel)
        if has_missing:
            keep_room(ax)
    _share_scale(grid)
    for ax in grid:
        turn_texts_inwards(ax)
    line = "\n" if len(columns) <= _COLUMNS else " "  # one row has little height for the label
    text = f"contribution to{line}the {score_text(scores)}"
    grid[0].figure.supylabel(text, fontsize="medium")
    _legend_of_all(grid[0].figure, model, panels)
    style.make_current(grid[0])
    return grid


def drawn_scores(
    model: StumpEnsemble, label: Label | Iterable[Label] | None, features: Iterable[int]
) -> list[DrawnScore]:
    """The scores to draw: those with these labels, or all, or the most different ones.

    Raises
    ------
    ValueError
        If there is no such class, or there are too many labels.
    """
    numbers = output_indices(model, label)
    if model.is_regression:
        return [DrawnScore(None, inputs.PREDICTIONS[model.link], style.class_looks(1)[0])]
    if model.is_binary:
        name = inputs.class_name(model.classes[1])
        return [DrawnScore(None, name, style.class_looks(1)[0])]
    if len(numbers) > style.CLASSES:
        numbers = _most_different(model, numbers, {*features})
    looks = style.class_looks(len(numbers))
    labels = [model.classes[number] for number in numbers]
    return [
        DrawnScore(one, inputs.class_name(one), look)
        for one, look in zip(labels, looks, strict=True)
    ]


def output_indices(model: StumpEnsemble, label: Label | Iterable[Label] | None) -> list[int]:
    """The outputs for a label, for several labels, or for all classes.

    Raises
    ------
    ValueError
        If there is no such class, or there are too many labels.
    """
    if label is None:
        return list(range(model.n_outputs))
    numbers = list(dict.fromkeys(model.output_index(one) for one in inputs.several(label)))
    if not 1 <= len(numbers) <= style.CLASSES:
        raise ValueError(f"label must be 1 to {style.CLASSES} labels; got {len(numbers)}.")
    return numbers


def ranked_model(model: StumpEnsemble, label: Label | Iterable[Label] | None) -> StumpEnsemble:
    """The model whose shares choose the features: of one class, or of all."""
    numbers = output_indices(model, label)
    return inputs.alone(model, numbers[0]) if len(numbers) == 1 else model


def score_text(scores: Sequence[DrawnScore]) -> str:
    """What the contributions add up to."""
    name = scores[0].name if len(scores) == 1 else "each class"
    return name if name in inputs.PREDICTIONS.values() else f"score of {name}"


def _most_different(model: StumpEnsemble, numbers: list[int], features: set[int]) -> list[int]:
    """The outputs whose functions of some features have the largest ranges, in their order."""
    ranges = [
        sum(
            float(np.ptp(t.values)) for t in model.output_tables(number)[1] if t.feature in features
        )
        for number in numbers
    ]
    best = np.argsort(-np.asarray(ranges), kind="stable")[: style.CLASSES]
    return sorted(numbers[k] for k in best.tolist())


def _entries(model: StumpEnsemble, panels: Sequence[Panel]) -> tuple[list[Any], list[str]]:
    """What the legend explains: the classes if there are several, and the spread of the bags."""
    from matplotlib.lines import Line2D

    scores = panels[0].scores
    shown = scores if len(scores) > 1 else ()
    handles: list[Any] = [Line2D([], [], **score.look) for score in shown]
    names = [score.name for score in shown]
    if model.n_bags > 1:
        colour = style.GREY if shown else scores[0].look["color"]
        is_band = any(isinstance(panel, StepPanel) for panel in panels)
        handles.append(spread.handle(colour, is_band=is_band))
        names.append(spread.caption(model.n_bags))
    return handles, names


def _classes_shown(model: StumpEnsemble, scores: Sequence[DrawnScore]) -> str | None:
    """What the legend says if not all classes are drawn."""
    n_classes = len(model.classes)
    if len(scores) in (1, n_classes):
        return None
    return f"the {len(scores)} of {n_classes} classes whose functions rise and fall most"


def _legend_of_all(
    figure: Figure | SubFigure, model: StumpEnsemble, panels: Sequence[Panel]
) -> None:
    """One legend for all panels, above them."""
    handles, names = _entries(model, panels)
    if not handles:
        return
    look: Any = {"frameon": False, "fontsize": "small", "title_fontsize": "small"}
    title = _classes_shown(model, panels[0].scores)
    n_columns = 6 if sum(map(len, names)) < 80 else 3
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=n_columns,
        title=title,
        alignment="left",
        **look,
    )


def contributions_of(model: StumpEnsemble, samples: inputs.Samples | None) -> np.ndarray:
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
    shares = contributions if contributions.any() else spread.votes_of_terms(model)
    return [columns[k] for k in largest(shares_of(shares, columns), limit)]


def largest(shares: np.ndarray, limit: int) -> list[int]:
    """The indices of the largest shares, in decreasing order, without shares of 0."""
    order = np.argsort(-shares, kind="stable")[:limit]
    return [int(index) for index in order if shares[index] > 0]


def features_in(columns: Iterable[Column]) -> list[int]:
    """The features of some columns."""
    return [feature for column in columns for feature in features_of(column)]


def _say_what(ax: Axes, score: str) -> None:
    """The label of the y axis, in two lines if the axes are low."""
    text = f"contribution to the {score}"
    ax.set_ylabel(text)
    length = 0.5 * float(ax.yaxis.label.get_fontsize()) * len(text) / 72
    if (
        length > 1.15 * ax.bbox.height / ax.figure.dpi
    ):  # a margin, as the layout will make the axes higher
        ax.set_ylabel(text.replace(" to the", " to\nthe", 1))


def _grid(
    figure: Figure | SubFigure | None, n_panels: int, *, has_strip: bool
) -> tuple[np.ndarray, list[Axes | None]]:
    """Axes for the panels, three in a row, and the strips below them."""
    columns = 2 if n_panels == 4 else min(n_panels, _COLUMNS)
    rows = -(-n_panels // columns)
    if figure is None:
        figure = style.new_figure(0.5 + 2.9 * columns, (2.5 if has_strip else 2.1) * rows)
    if has_strip:
        return _grid_of_strips(figure, n_panels, columns, rows)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax in grid[n_panels:]:
        ax.remove()
    return np.asarray([style.tidy_axes(ax) for ax in grid[:n_panels]]), [None] * n_panels


def _grid_of_strips(
    figure: Figure | SubFigure, n_panels: int, columns: int, rows: int
) -> tuple[np.ndarray, list[Axes | None]]:
    """Panels with strips; those of a row share a grid, so that their edges are aligned."""
    gap = None if figure.get_layout_engine() else 0.35  # without a layout, room for the names
    outer = figure.add_gridspec(rows, 1, hspace=gap)
    look: Any = {"height_ratios": [1 - _STRIP, _STRIP], "hspace": 0.06}
    grid: list[Axes] = []
    strips: list[Axes | None] = []
    for k in range(n_panels):
        row, column = divmod(k, columns)
        if column == 0:
            inner = outer[row].subgridspec(2, columns, **look)
        ax = figure.add_subplot(inner[0, column], sharey=grid[0] if grid else None)
        strip = figure.add_subplot(inner[1, column], sharex=ax)
        ax.tick_params(labelleft=column == 0)
        grid.append(style.tidy_axes(ax))
        strips.append(style.under(ax, style.tidy_axes(strip)))
    return np.asarray(grid), strips


def _share_scale(grid: np.ndarray) -> None:
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
