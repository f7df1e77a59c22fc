"""The rounds of boosting: errors, their bounds, and the edges of the stumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes import Round
from gpustump.data.labels import class_numbers
from gpustump.learners.hypothesis import predicted_signs
from gpustump.learners.step_table import StepTable
from gpustump.model.ensemble import Label, Member, StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.plots.panels import DrawnScore
from gpustump.theory import edge_bounds, training_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Curve:
    """The error after each round, with its name and its look."""

    name: str
    values: np.ndarray
    look: dict[str, Any]


@dataclass(frozen=True)
class _Coded:
    """A feature's values as numbers of steps between a model's thresholds.

    Attributes
    ----------
    ends : ndarray (k + 1,) of float64
        The upper end of each step, and NaN for missing values.
    steps : ndarray (n_samples,) of the narrowest unsigned integers that hold k
        The step of each sample.
    """

    ends: np.ndarray
    steps: np.ndarray


_TRAINING = {"color": style.BLUE, "linestyle": style.DASHES[1], "linewidth": 1.6, "zorder": 4}
_HELD_OUT = {"color": style.VERMILION, "linestyle": style.DASHES[0], "linewidth": 1.8}
_BOUND = {"color": style.BLACK, "linestyle": style.DASHES[2], "linewidth": 1.4}
_BY_EDGES = {"color": style.GREY, "linestyle": style.DASHES[3], "linewidth": 0.9}

_MARKERS = {"training": "o", "held-out": "s", "bound": "^", "by edges": "v"}
"""Markers of curves with few rounds: a line through one point cannot be seen."""


def error_curve(
    classifier: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the errors by round with the bound on the training error, and the edges below.

    Parameters
    ----------
    classifier : AdaBoostClassifier
        Fitted; its `rounds_` are drawn.
    X : array or frame (n_samples, n_features), optional
        Held-out samples, for the error on them by round. By default, the errors on the samples that
        early stopping held out, if there are any.
    y : array (n_samples,), optional
        Their labels.
    sample_weight : array (n_samples,), optional
        Their weights.
    label : bool, int, float or str, optional
        With more than two classes, the class whose rounds and errors against the rest are drawn. If
        it is not given, only the error of the whole model on X is drawn: edges and bounds belong to
        one class against the rest.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip of edges takes a part of it.

    Returns
    -------
    matplotlib Axes
        Those of the errors. The figure's last Axes are those of the strip.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    The figure of COS 511, lecture 11, and of Schapire, Freund, Bartlett and Lee (1998), section 1:
    does the held-out error still fall when the training error no longer does? A mark on each curve
    shows its first minimum. The minimum of the held-out error is an optimistic estimate, as it is
    chosen on the same samples: choose the number of rounds on some samples, and test on others.

    The bound is the product of the rounds' normalisers, `Round.training_bound`. With AdaBoost's own
    votes, exp(-2 * (g_1**2 + ... + g_t**2)) is a weaker bound from the edges g only [Freund and
    Schapire 1997, theorem 6]. The y axis fits the errors; a bound may start above it.
    """
    model = model_of(classifier)
    if not hasattr(classifier, "rounds_"):
        raise TypeError(
            f"classifier must be a fitted AdaBoostClassifier, which has rounds_ to draw; got "
            f"{type(classifier).__name__}."
        )
    is_of_all = label is None and X is not None and not model.is_binary
    number = None if is_of_all else model.member_index(label)
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the held-out samples and their labels.")
    if X is None:
        inputs.check_no_weights(sample_weight)
        held_out = np.asarray(classifier.held_out_errors_[number])
    else:
        table = inputs.table_of(classifier, X)
        held_out = held_out_errors(model, number, table, y, sample_weight)
    rounds = () if number is None else classifier.rounds_[number]
    has_curves = held_out.size > 0 if number is None else len(rounds) > 0
    ax = style.tidy_axes(ax, 6.0, 4.6 if has_curves else 1.6)
    if not has_curves:
        style.leave_empty(ax, "no stump is better than chance")
    elif number is None:
        _draw_whole(ax, held_out)
        ax.set_ylabel(f"error, all {len(model.classes)} classes")
    else:
        _draw_member(ax, rounds, held_out)
        name = inputs.score_name(model, label)
        ax.set_ylabel("error" if model.is_binary else f"error,\n{name} against the rest")
    return style.make_current(ax)


def _draw_whole(ax: Axes, held_out: np.ndarray) -> None:
    """The error of a model of several members."""
    curves = [_Curve("held-out", held_out, _HELD_OUT)]
    _draw_errors([ax], curves)
    _set_top(ax, curves)
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    style.rounds_axis(ax, len(held_out))


def _draw_member(ax: Axes, rounds: Sequence[Round], held_out: np.ndarray) -> None:
    """A member's errors, bounds and edges."""
    curves = [_Curve("training", np.asarray([one.training_error for one in rounds]), _TRAINING)]
    if held_out.size:
        curves.append(_Curve("held-out", held_out, _HELD_OUT))
    strip = style.strip_below(ax, 0.26)
    _draw_errors([ax, strip], curves)
    bounds = _draw_bounds(ax, rounds)
    _set_top(ax, curves, float(bounds.min()))
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    _draw_edges(strip, [one.edge for one in rounds])
    style.rounds_axis(strip, max(len(curve.values) for curve in curves))


def draw_model(ax: Axes, member: Member) -> None:
    """Each stump's weighted error, and the bound on the training error, from a model alone."""
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
    if all(error < 1 for error in errors):  # in a model made by hand one may be 1
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


def draw_class_bounds(ax: Axes, model: StumpEnsemble, scores: Sequence[DrawnScore]) -> None:
    """The bounds on the training errors of several classes, each against the rest."""
    members = [model.discrete_members[model.member_index(score.label)] for score in scores]
    n_rounds = max(map(len, members))
    if not n_rounds:
        style.leave_empty(ax, "no stump is better than chance")
        return
    for score, member in zip(scores, members, strict=True):
        errors = [stump.error for stump in member.stumps]
        if errors and all(error < 1 for error in errors):
            bounds = training_bounds(errors, member.votes)
            look = score.look | {"marker": _marker(len(errors)), "markersize": 3}
            ax.plot(np.arange(1, len(errors) + 1), bounds, label=score.name, **look)
    ax.set_ylim(0, 1)
    ax.set_ylabel("bound on the training error,\neach class against the rest")
    style.rounds_axis(ax, n_rounds)


def held_out_errors(
    model: StumpEnsemble, number: int | None, X: Array, y: Any, sample_weight: Any = None
) -> np.ndarray:
    """The weighted error on samples after 1, 2, ... rounds.

    Parameters
    ----------
    model : StumpEnsemble
    number : int or None
        The member whose error it is, of its class against the rest; None for the whole model.
    X : array (n_samples, n_features)
    y : array (n_samples,)
    sample_weight : array (n_samples,), optional

    Returns
    -------
    ndarray (n_rounds,) of float64
    """
    members = model.discrete_members if number is None else (model.discrete_members[number],)
    true = class_numbers(model.classes, y, X)
    if number is not None:
        true = (true == (1 if model.is_binary else number)).astype(np.int64)
    weights = inputs.weights_of(sample_weight, X)
    predictions = (
        scores[0] > 0 if len(scores) == 1 else np.argmax(scores, axis=0)
        for scores in _staged_scores(members, X)
    )
    return np.asarray([weights.share(predicted != true) for predicted in predictions])


def _staged_scores(members: Sequence[Member], X: Array) -> Iterator[np.ndarray]:
    """Scores after 1, 2, ... rounds, (n_members, n_samples); every item is the same array.

    They are added up stump by stump as in `StumpEnsemble.staged_decision_function`, so they are the
    same to the last bit. But each column is compared with the thresholds only once.
    """
    columns = _coded_columns(members, X)
    scores = np.zeros((len(members), X.shape[0]))
    for k in range(max(map(len, members))):
        for member, score in zip(members, scores, strict=True):
            if k >= len(member):
                continue
            stump, vote = member.stumps[k], member.votes[k]
            if stump.is_constant or vote == 0.0:  # of a vote of 0 there may be no step table
                score += stump.polarity * vote
            else:
                column = columns[stump.feature]
                with np.errstate(all="ignore"):
                    votes = predicted_signs(stump, column.ends) * vote
                score += votes[column.steps]
        yield scores


def _coded_columns(members: Sequence[Member], X: Array) -> dict[int, _Coded]:
    """Each feature in use as steps between the thresholds of all members."""
    found = dict[int, list[np.ndarray]]()
    for member in members:
        for table in member.tables[1]:
            found.setdefault(table.feature, []).append(table.thresholds)
    return {feature: _coded(X, feature, np.concatenate(of)) for feature, of in found.items()}


def _coded(X: Array, feature: int, thresholds: np.ndarray) -> _Coded:
    ends = np.unique(thresholds)
    with arrays.computing_on(X), np.errstate(all="ignore"):
        steps = arrays.to_host(
            StepTable(feature, ends, np.zeros(len(ends)), 0.0).steps_of(X[:, feature])
        )
    return _Coded(np.append(ends, np.nan), steps.astype(np.min_scalar_type(len(ends))))


def _draw_errors(axes: Sequence[Axes], curves: Sequence[_Curve]) -> None:
    """Curves of errors with marks at their minima, and lines at the minima on all axes."""
    ax = axes[0]
    for curve, size in zip(curves, (9, 6), strict=False):  # one mark does not hide the other
        at = int(np.argmin(curve.values))
        lowest, last = float(curve.values[at]), float(curve.values[-1])
        _draw_by_round(
            ax,
            curve.values,
            curve.name,
            label=f"{curve.name} error: last {last:.3g}, lowest {lowest:.3g} in round {at + 1}",
            **curve.look,
        )
        look: Any = {"color": curve.look["color"], "mec": ax.get_facecolor(), "clip_on": False}
        ax.plot([at + 1], [lowest], _MARKERS[curve.name], ms=size, zorder=6, **look)
        for one in axes:
            look = {"color": curve.look["color"], "linestyle": curve.look["linestyle"]}
            one.axvline(at + 1, linewidth=0.7, **look)


def _draw_bounds(ax: Axes, rounds: Sequence[Round]) -> np.ndarray:
    """The bound on the training error by round, and the weaker bound if it holds."""
    bounds = np.asarray([one.training_bound for one in rounds])
    text = r"product of the normalisers, $\prod Z_t$: a bound on the training error"
    _draw_by_round(ax, bounds, "bound", label=text, **style.seen(_BOUND))
    weaker = edge_bounds([one.error for one in rounds])
    if (bounds <= weaker * (1 + 1e-9)).all():  # not so with every learning rate
        text = r"from the edges only, $\exp(-2 \sum g_t^2)$: a weaker bound"
        _draw_by_round(ax, weaker, "by edges", label=text, **_BY_EDGES)
    return bounds


def _draw_by_round(ax: Axes, values: np.ndarray, kind: str, **look: Any) -> None:
    marker = _MARKERS[kind] if len(values) < style.LONG else ""
    ax.plot(np.arange(1, len(values) + 1), values, marker=marker, ms=3, **look)


def _set_top(ax: Axes, curves: Sequence[_Curve], bound: float = 0.0) -> None:
    """Set the y axis for the errors, with the lowest value of the bound in view."""
    highest = max(float(curve.values.max()) for curve in curves)
    top = max(2.2 * highest, 1.1 * bound, 0.01)
    ax.set_ylim(0, top if top < 0.6 else 1.0)


def _draw_edges(strip: Axes, edges: Sequence[float]) -> None:
    strip.plot(
        np.arange(1, len(edges) + 1),
        edges,
        color=style.ink(),
        linewidth=0.9,
        marker=_marker(len(edges)),
        markersize=3,
    )
    strip.set_ylim(0, 1.1 * max(edges))
    strip.set_ylabel("edge $g_t$")


def _marker(n_rounds: int) -> str:
    """The marker of a curve: points if the rounds are few."""
    return "o" if n_rounds < style.LONG else ""
