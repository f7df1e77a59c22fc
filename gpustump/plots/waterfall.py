"""A waterfall: how the score of one row comes about, from the intercept, feature by feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_count
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.plots.columns import Category, Column, Groups, columns_of, features_of, name_of
from gpustump.plots.numbered import categories_of, value_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AMOUNT = 0.45
"""The room for an amount beside its bar, in inches."""

_VALUE = 18
"""The middle of a longer name of a category's value is cut out."""


_UNITS = {
    "logistic": "half the log-odds",
    "softmax": "half the log-probability up to a constant",
}
"""What the score is, by the model's link."""


class _Bar(NamedTuple):
    """A bar: its name, and what it adds."""

    name: str
    amount: float


class _Row(NamedTuple):
    """One row of a table, and its scores.

    Attributes
    ----------
    values : ndarray (n_features,) of float64
    contributions : ndarray (n_members, n_features + 1) of float64
        The intercept is the last.
    scores : ndarray (n_members,) of float64
    predicted : label
    probabilities : ndarray (n_classes,) of float64
    """

    values: np.ndarray
    contributions: np.ndarray
    scores: np.ndarray
    predicted: Any
    probabilities: np.ndarray


def waterfall(
    model: Any,
    row: Any,
    *,
    n_features: int = 10,
    groups: Groups | None = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the score of one row comes about: the intercept, and what each feature adds.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    row : array (n_features,) or (1, n_features)
        Of any array library; NaN means missing. Also a frame of one row, or a row of a pandas
        frame: features are found by name, or compared by an estimator.
    n_features : int
        How many features have a bar of their own: those that add or take away most. The others
        that contribute are summed in one bar.
    groups : mapping, optional
        Categories, as for `shape_functions`. One has one bar, and its value stands beside its name.
    label : bool, int, float or str, optional
        With more than two classes, the class whose score it is; by default the one predicted.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    A feature's contribution is the sum of its votes, `StumpEnsemble.explain`. The widths of the
    bars add up to `decision_function` bit for bit, in any order. (Sums of votes made by hand may be
    rounded.) With two classes the second one is predicted if the score is above 0. Of the scores of
    a softmax only the differences between classes mean something.
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    if label is not None:
        ensemble.output_index(label)  # refused before the row is read
    columns = columns_of(ensemble, groups)
    found = _read(ensemble, _table_of_row(model, row))
    if label is None and not ensemble.is_binary:
        label = found.predicted
    number = ensemble.output_index(label)
    bars = _bars(ensemble, found, number, columns, n_features)
    ax = style.tidy_axes(ax, 6.4, 1.2 + 0.32 * (len(bars) + 1))
    _draw(ax, bars, float(found.scores[number]))
    score = inputs.score_name(ensemble, label)
    ax.set_xlabel(f"score of {score}, {_UNITS[ensemble.link]}")
    text = _prediction(ensemble, found)
    if 0.085 * len(text) > style.width(ax):
        text = text.replace(", ", ",\n")
    style.legend_above(ax, [], [], title=text)
    return style.make_current(ax)


def _table_of_row(model: Any, row: Any) -> Array:
    """A row as a table of one row.

    Raises
    ------
    ValueError, TypeError
        If it is not one row with the model's features.
    """
    is_of_pandas = hasattr(row, "to_frame") and hasattr(row, "index")
    if is_of_pandas:  # its names say which value is which feature's
        row = row.to_frame().T.infer_objects()
    elif not hasattr(row, "columns"):
        row = row if arrays.is_array(row) else np.asarray(row)
        row = row[None, :] if row.ndim == 1 else row
    if len(row.shape) != 2 or row.shape[0] != 1:
        raise ValueError(f"row must be one row of a table; got shape {tuple(row.shape)}.")
    return inputs.table_of(model, row)


def _read(model: StumpEnsemble, table: Array) -> _Row:
    n_outputs, host = model.n_outputs, arrays.to_host
    scores = host(model.decision_function(table))
    with arrays.computing_on(table):
        values = host(arrays.as_working(table[0, :]))
    return _Row(
        values.astype(np.float64),
        host(model.explain(table)).reshape(n_outputs, model.n_features + 1),
        scores.reshape(n_outputs),
        model.classes[int(model.class_indices(scores)[0])],
        model.probabilities_of(scores)[0],
    )


def _bars(
    model: StumpEnsemble, row: _Row, number: int, columns: Sequence[Column], limit: int
) -> list[_Bar]:
    """The intercept, the columns that add or take away most, and the sum of the others."""
    parts = row.contributions[number]
    amounts = np.asarray([sum(parts[j] for j in features_of(column)) for column in columns])
    order = [k for k in np.argsort(-np.abs(amounts), kind="stable").tolist() if amounts[k] != 0.0]
    if len(order) == limit + 1:
        limit += 1  # a sum of one would be no shorter
    bars = [_Bar("intercept", float(parts[-1]))]
    bars += [_Bar(_name(model, row, columns[k]), float(amounts[k])) for k in order[:limit]]
    if rest := order[limit:]:
        bars.append(_Bar(f"{len(rest):,} other features", float(sum(amounts[k] for k in rest))))
    return bars


def _name(model: StumpEnsemble, row: _Row, column: Column) -> str:
    """A column's name, and its value in the row."""
    if isinstance(column, Category):
        values = row.values[list(column.features)]
        if np.isnan(values).all():
            value = "missing"
        else:
            names = style.different_words(list(column.values), _VALUE)
            value = " + ".join(names[k] for k in np.flatnonzero(values == 1.0)) or "(other)"
    elif (names_of := categories_of(model, column)) is not None:
        value = style.different_words([value_name(names_of, float(row.values[column]))], _VALUE)[0]
    else:
        value = _number(float(row.values[column]))
    return f"{name_of(model, column)} = {value}"


def _number(value: float) -> str:
    """A feature's value as text, whole numbers such as years in full."""
    if math.isnan(value):
        return "missing"
    text = f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"
    return text.replace("-", "−")


def _draw(ax: Axes, bars: list[_Bar], score: float) -> None:
    """The bars, each from where the one above ends, and the score below."""
    amounts = np.asarray([bar.amount for bar in bars])
    ends = np.cumsum(amounts)
    starts = np.concatenate([[0.0], ends[:-1]])
    ax.axvline(0.0, color=style.GREY, linewidth=0.8, zorder=1)
    for k, (start, amount) in enumerate(zip(starts.tolist(), amounts.tolist(), strict=True)):
        colour = style.GREY if k == 0 else (style.BLUE if amount > 0 else style.VERMILION)
        hatch = "" if amount > 0 or k == 0 else "////"
        look: Any = {"color": colour, "hatch": hatch, "edgecolor": ax.get_facecolor()}
        ax.barh(k, amount, 0.66, left=start, gid="contribution", linewidth=0.0, **look)
        below = k + 1
        ax.plot([start + amount] * 2, [k - 0.33, below + 0.33], color=style.GREY, linewidth=0.8)
    ax.barh(len(bars), score, 0.66, facecolor="none", edgecolor=style.ink(), gid="score")
    low, high = min(0.0, ends.min()), max(0.0, ends.max())
    room = min(0.4, _AMOUNT / (0.55 * style.width(ax))) * (high - low) or 1.0
    ax.set_xlim(low - room, high + room)
    for k, (start, amount) in enumerate(zip(starts.tolist(), amounts.tolist(), strict=True)):
        _write(ax, k, (start, start + amount), amount)
    _write(ax, len(bars), (0.0, score), score)
    ax.set_yticks(range(len(bars) + 1), [*(bar.name for bar in bars), "score"])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set_ylim(len(bars) + 0.6, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _write(ax: Axes, place: int, ends: tuple[float, float], amount: float) -> None:
    """An amount as text at the end of its bar."""
    goes_up = amount >= 0
    ax.annotate(
        f"{amount:+.3g}".replace("-", "−") if amount else "0",
        (max(ends) if goes_up else min(ends), place),
        xytext=(4 if goes_up else -4, 0),
        textcoords="offset points",
        ha="left" if goes_up else "right",
        va="center",
        fontsize="x-small",
        color=style.ink(),
    )


def _prediction(model: StumpEnsemble, row: _Row) -> str:
    """The class that is predicted, and its probability."""
    probability = float(row.probabilities[model.classes.index(row.predicted)])
    text = f"{probability:.3f}" if probability < 0.9995 else "> 0.999"
    return f"predicted: {inputs.class_name(row.predicted)}, probability {text}"
