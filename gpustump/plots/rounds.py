"""The rounds of boosting: errors, what bounds them, and the edges that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.boosting import Round
from gpustump.ensemble import Label, Member, StumpEnsemble
from gpustump.labels import class_numbers
from gpustump.plots import inputs, style
from gpustump.theory import edge_bounds, training_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Curve:
    """An error by round: how it is called and drawn."""

    name: str
    values: np.ndarray
    look: dict[str, Any]


_TRAINING = {"color": style.BLUE, "linestyle": style.DASHES[1], "linewidth": 1.6, "zorder": 4}
_HELD_OUT = {"color": style.VERMILION, "linestyle": style.DASHES[0], "linewidth": 1.8}
_BOUND = {"color": style.BLACK, "linestyle": style.DASHES[2], "linewidth": 1.4}
_BY_EDGES = {"color": style.GREY, "linestyle": style.DASHES[3], "linewidth": 0.9}


def error_curve(
    classifier: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the errors by round, beside the bound on the training error, and the edges below.

    Parameters
    ----------
    classifier : AdaBoostClassifier
        Fitted; its `rounds_` are drawn.
    X : array or frame (n_samples, n_features), optional
        Samples held out, for the error on them by round. Without them, those that early stopping
        held out, if it did.
    y : array (n_samples,), optional
        Their labels.
    sample_weight : array (n_samples,), optional
        What they count.
    label : bool, int, float or str, optional
        With more than two classes, the class whose member's rounds are meant; errors are then its
        own, of the class against the rest.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip of edges takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the errors; the strip's are the figure's newest.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The figure of COS 511, lecture 11, and of Schapire, Freund, Bartlett and Lee (1998), section 1:
    does the held-out error still fall when the training error no longer does? Each curve is marked
    where it first has its least value.

    The bound is the product of the rounds' normalisers, `Round.training_bound`; with AdaBoost's own
    votes, exp(-2 * (g_1**2 + ... + g_t**2)) is a weaker one by the edges g alone [Freund and
    Schapire 1997, theorem 6]. The scale of y is that of the errors; a bound may come in from above.
    """
    model = inputs.model_of(classifier)
    if not hasattr(classifier, "rounds_"):
        raise TypeError(
            f"classifier must be a fitted AdaBoostClassifier, whose rounds_ are drawn; got "
            f"{type(classifier).__name__}."
        )
    number = model.member_index(label)
    rounds = classifier.rounds_[number]
    curves = [_Curve("training", np.asarray([one.training_error for one in rounds]), _TRAINING)]
    held_out = _held_out(classifier, model, number, X, y, sample_weight)
    if held_out.size:
        curves.append(_Curve("held-out", held_out, _HELD_OUT))
    ax = style.tidy_axes(ax, 6.0, 4.6)
    if not rounds:
        style.leave_empty(ax, "no stump is better than chance")
        return ax
    strip = style.strip_below(ax, 0.26)
    _draw_errors(ax, strip, curves, rounds)
    _draw_edges(strip, [one.edge for one in rounds])
    style.rounds_axis(strip, max(len(curve.values) for curve in curves))
    against = "" if model.is_binary else f",\n{inputs.score_name(model, label)} against the rest"
    ax.set_ylabel(f"error{against}")
    return ax


def draw_model(ax: Axes, member: Member) -> None:
    """What a model alone tells of its rounds: each stump's error, and the bound on training's."""
    if not len(member):
        style.leave_empty(ax, "no stump is better than chance")
        return
    errors = [stump.error for stump in member.stumps]
    marker = _marker(len(errors))
    style.chance_line(ax)
    numbers = np.arange(1, len(errors) + 1)
    ax.plot(
        numbers,
        errors,
        color=style.VERMILION,
        linewidth=1.0,
        marker=marker,
        markersize=3,
        label="weighted error of the round's stump",
    )
    if all(error < 1 for error in errors):  # of a model made by hand it may be 1
        bounds = training_bounds(errors, member.votes)
        ax.plot(
            numbers,
            bounds,
            **(_BOUND | {"color": style.BLUE, "linewidth": 1.8}),
            marker="s" if marker else "",
            markersize=3,
            label="bound on the training error",
        )
    ax.set_ylim(0, 1)
    style.rounds_axis(ax, len(errors))


def held_out_errors(
    model: StumpEnsemble, number: int, X: Any, y: Any, sample_weight: Any = None
) -> np.ndarray:
    """A member's error on samples after 1, 2, ... rounds, (n_rounds,) of float64.

    Scores are added up stump by stump, one column at a time. X is an array, not a frame.
    """
    own = 1 if model.is_binary else number
    is_positive = class_numbers(model.classes, y, X) == own
    units = inputs.units_of(sample_weight, X)
    mass = int(units.sum())
    member, columns = model.members[number], dict[int, np.ndarray]()
    score, errors = np.zeros(len(units)), np.zeros(len(member))
    for k, (stump, vote) in enumerate(zip(member.stumps, member.votes, strict=True)):
        if stump.feature not in columns:
            columns[stump.feature] = inputs.column_of(X, stump.feature)
        with np.errstate(all="ignore"):
            score += arrays.to_host(stump.on_values(columns[stump.feature])) * vote
        errors[k] = int(units[(score > 0) != is_positive].sum()) / mass
    return errors


def _held_out(
    classifier: Any, model: StumpEnsemble, number: int, X: Any, y: Any, sample_weight: Any
) -> np.ndarray:
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the held-out samples and their labels.")
    if X is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is given without X; give both, or neither.")
        return np.asarray(classifier.held_out_errors_[number])
    return held_out_errors(model, number, inputs.table_of(classifier, X), y, sample_weight)


def _draw_errors(ax: Axes, strip: Axes, curves: list[_Curve], rounds: Sequence[Round]) -> None:
    """Curves of errors with their least points, and the bounds."""
    n_rounds = len(rounds)
    for curve, size in zip(curves, (9, 6), strict=False):  # one mark does not hide the other
        at = int(np.argmin(curve.values))
        least = float(curve.values[at])
        numbers = np.arange(1, len(curve.values) + 1)
        text = f"{curve.name} error: least {least:.3g}, first in round {at + 1}"
        ax.plot(numbers, curve.values, label=text, marker=_marker(n_rounds), ms=3, **curve.look)
        colour = curve.look["color"]
        ax.plot([at + 1], [least], "o", color=colour, mec="white", ms=size, clip_on=False, zorder=6)
        for axes in (ax, strip):
            axes.axvline(at + 1, color=colour, linewidth=0.7, linestyle=curve.look["linestyle"])
    numbers = np.arange(1, n_rounds + 1)
    bounds = np.asarray([one.training_bound for one in rounds])
    ax.plot(numbers, bounds, label=r"$\prod Z_t$, bounds the training error", **_BOUND)
    weaker = edge_bounds([one.error for one in rounds])
    if (bounds <= weaker * (1 + 1e-9)).all():  # not so with every learning rate
        ax.plot(numbers, weaker, label=r"$\exp(-2 \sum g_t^2)$, weaker", **_BY_EDGES)
    highest = max(float(curve.values.max()) for curve in curves)
    top = max(2.2 * highest, 1.1 * float(bounds.min()), 0.01)
    ax.set_ylim(0, top if top < 0.6 else 1.0)
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)


def _draw_edges(strip: Axes, edges: Sequence[float]) -> None:
    strip.plot(
        np.arange(1, len(edges) + 1),
        edges,
        color=style.BLACK,
        linewidth=0.9,
        marker=_marker(len(edges)),
        markersize=3,
    )
    strip.set_ylim(0, 1.1 * max(edges))
    strip.set_ylabel("edge $g_t$")


def _marker(n_rounds: int) -> str:
    """Few rounds are seen as points."""
    return "o" if n_rounds < style.LONG else ""
