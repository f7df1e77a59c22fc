"""The confusion matrix: how many samples of each class are predicted to be of each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.plots import style
from gpustump.plots.judged import JudgedSamples
from gpustump.plots.panels import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = 14
"""The middle of a label with more characters is cut out."""


class _Matrix(NamedTuple):
    """Counts or shares; the classes without a row of their own share the last one.

    Attributes
    ----------
    cells : ndarray (n_rows, n_rows)
        The rows are true classes, the columns predicted ones: counts, or shares of the weight.
    names : list of str
    others_right : int, float or None
        The part of the last cell whose class is right; None if every class has a row.
    """

    cells: np.ndarray
    names: list[str]
    others_right: Any


def confusion_matrix(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_classes: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many samples of each class are predicted to be of each class.

    Parameters
    ----------
    model, X, y, sample_weight
        As for `roc_curve`.
    n_classes : int
        The most classes, at least 2, that have a row and a column: the most frequent ones. The
        others share the last row and column.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes
        The first image's array holds each true class's shares of predictions: rows add up to 1.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    `sklearn.metrics.confusion_matrix`. The larger a cell's share of its row, the darker it is. The
    numbers are counts of samples, or with weights shares of the whole weight. Above are the
    accuracy and the share of the largest class: the accuracy of always predicting that class.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], ["no", "no", "yes", "no", "yes"]
    >>> clf = AdaBoostClassifier(n_estimators=1).fit(X, y)
    >>> ax = plots.confusion_matrix(clf, X, y)
    >>> ax.images[0].get_array().round(3).tolist()
    [[0.667, 0.333], [0.0, 1.0]]
    """
    check_count(n_classes, "n_classes", least=2)
    samples = JudgedSamples.of(model, X, y, sample_weight)
    matrix = _matrix(samples, n_classes)
    n_rows = len(matrix.names)
    side = 1.6 + 0.55 * max(n_rows, 4)
    ax = style.tidy_axes(ax, side + 0.6, side)
    _draw(ax, matrix, is_weighted=samples.weights is not None)
    text = (
        f"accuracy {samples.accuracy:.4g}; the largest class has {samples.class_shares.max():.4g}"
    )
    style.legend_above(ax, [], [], title=text, alignment="left")
    return style.make_current(ax)


def _matrix(samples: JudgedSamples, limit: int) -> _Matrix:
    from sklearn import metrics

    labels = samples.model.classes
    whole = metrics.confusion_matrix(
        samples.true,
        samples.predicted,
        labels=range(len(labels)),
        sample_weight=samples.weights,
    )
    names = style.different_words([str(label) for label in labels], _NAME)
    if len(labels) <= limit:
        return _Matrix(whole, names, None)
    most = np.sort(np.argsort(-whole.sum(axis=1), kind="stable")[: limit - 1])
    place = np.full(len(labels), limit - 1)
    place[most] = np.arange(limit - 1)
    cells = np.zeros((limit, limit), dtype=whole.dtype)
    np.add.at(cells, (place[:, None], place[None, :]), whole)
    names = [*(names[k] for k in most), f"{len(labels) - len(most)} others"]
    return _Matrix(cells, names, np.trace(whole) - np.trace(cells[:-1, :-1]))


def _draw(ax: Axes, matrix: _Matrix, *, is_weighted: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    cells, n_rows = matrix.cells, len(matrix.names)
    sums = cells.sum(axis=1, keepdims=True)
    shares = np.divide(cells, sums, out=np.zeros(cells.shape), where=sums > 0)
    colours = LinearSegmentedColormap.from_list("shares", ["#ffffff", style.BLUE])
    ax.imshow(shares, cmap=colours, vmin=0, vmax=1, aspect="auto")
    size = "medium" if n_rows <= 6 else "small"
    for (i, j), share in np.ndenumerate(shares):
        text = _text(cells[i, j], is_weighted=is_weighted)
        if matrix.others_right is not None and i == j == n_rows - 1:
            right = _text(matrix.others_right, is_weighted=is_weighted)
            wrong = _text(cells[i, j] - matrix.others_right, is_weighted=is_weighted)
            text = f"{right} right\n{wrong} wrong"
        look: Any = {"color": "white" if share > 0.55 else "#1a1a1a", "fontsize": size}
        look |= {"fontsize": "x-small"} if "\n" in text else {}
        ax.text(j, i, text, ha="center", va="center", gid=f"{i} {j}", **look)
    is_long = 0.1 * max(map(len, matrix.names)) > style.width(ax) / n_rows
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    ax.set_xticks(range(n_rows), matrix.names, **turned)
    ax.set_yticks(range(n_rows), matrix.names)
    ax.set_xticks(np.arange(n_rows - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n_rows - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="#d0d0d0", linewidth=0.8)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="predicted class", ylabel="true class")


def _text(value: Any, *, is_weighted: bool) -> str:
    """A count, or a share of the weight; nothing for 0, so that errors stand out."""
    if value == 0:
        return ""
    return percent(float(value)) if is_weighted else f"{int(value):,}"
