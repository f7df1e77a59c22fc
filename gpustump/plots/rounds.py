"""The rounds of boosting: errors, what bounds them, and the edges that they come from."""

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
from gpustump.theory import edge_bounds, training_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Curve:
    """An error by round: how it is called and drawn."""

    name: str
    values: np.ndarray
    look: dict[str, Any]


@dataclass(frozen=True)
class _Coded:
    """A feature of samples as the places of its values among the thresholds of a model.

    Attributes
    ----------
    ends : ndarray (k + 1,) of float64
        A value for each step, its upper end, and NaN for missing ones.
    steps : ndarray (n_samples,) of the narrowest unsigned integers that hold k
        Which of them stands for each sample.
    """

    ends: np.ndarray
    steps: np.ndarray


_TRAINING = {"color": style.BLUE, "linestyle": style.DASHES[1], "linewidth": 1.6, "zorder": 4}
_HELD_OUT = {"color": style.VERMILION, "linestyle": style.DASHES[0], "linewidth": 1.8}
_BOUND = {"color": style.BLACK, "linestyle": style.DASHES[2], "linewidth": 1.4}
_BY_EDGES = {"color": style.GREY, "linestyle": style.DASHES[3], "linewidth": 0.9}

_MARKERS = {"training": "o", "held-out": "s", "bound": "^", "by edges": "v"}
"""Of curves with few rounds; a line of one point would not be seen."""


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
        own, of the class against the rest. If it is left out, the error of the whole model on X is
        drawn alone: no edges and no bound, as those are the members' own.
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
    where it first has its least value. The least held-out error was picked on the samples that it
    is the error of, so it is optimistic: choose rounds on some samples, and judge on others.

    The bound is the product of the rounds' normalisers, `Round.training_bound`; with AdaBoost's own
    votes, exp(-2 * (g_1**2 + ... + g_t**2)) is a weaker one by the edges g alone [Freund and
    Schapire 1997, theorem 6]. The scale of y is that of the errors; a bound may come in from above.
    """
    model = model_of(classifier)
    if not hasattr(classifier, "rounds_"):
        raise TypeError(
            f"classifier must be a fitted AdaBoostClassifier, whose rounds_ are drawn; got "
            f"{type(classifier).__name__}."
        )
    is_of_all = label is None and X is not None and not model.is_binary
    number = None if is_of_all else model.member_index(label)
    held_out = _held_out(classifier, model, number, X, y, sample_weight)
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
    model: StumpEnsemble, number: int | None, X: Array, y: Any, sample_weight: Any = None
) -> np.ndarray:
    """The error on samples after 1, 2, ... rounds, (n_rounds,) of float64.

    Of a member, or of the whole model if `number` is None. X is an array, not a frame.
    """
    members = model.members if number is None else (model.members[number],)
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
    """Scores after 1, 2, ... rounds, (n_members, n_samples), in an array that is used again.

    They are added up stump by stump, as `StumpEnsemble.staged_decision_function` does it, so they
    are the same to the last bit; but each column is compared with thresholds once only.
    """
    columns = _coded_columns(members, X)
    scores = np.zeros((len(members), X.shape[0]))
    for k in range(max(map(len, members))):
        for member, score in zip(members, scores, strict=True):
            if k >= len(member):
                continue
            stump, vote = member.stumps[k], member.votes[k]
            if stump.is_constant:
                score += stump.polarity * vote
            else:
                column = columns[stump.feature]
                with np.errstate(all="ignore"):
                    votes = predicted_signs(stump, column.ends) * vote
                score += votes[column.steps]
        yield scores


def _coded_columns(members: Sequence[Member], X: Array) -> dict[int, _Coded]:
    """Each feature in use, by the thresholds of all members, one column after the other."""
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


def _held_out(
    classifier: Any, model: StumpEnsemble, number: int | None, X: Any, y: Any, sample_weight: Any
) -> np.ndarray:
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the held-out samples and their labels.")
    if X is None:
        inputs.weights_if_any(sample_weight, None)
        return np.asarray(classifier.held_out_errors_[number])
    return held_out_errors(model, number, inputs.table_of(classifier, X), y, sample_weight)


def _draw_errors(axes: Sequence[Axes], curves: Sequence[_Curve]) -> None:
    """Curves of errors with their least points, which all axes show."""
    ax = axes[0]
    for curve, size in zip(curves, (9, 6), strict=False):  # one mark does not hide the other
        at = int(np.argmin(curve.values))
        least, last = float(curve.values[at]), float(curve.values[-1])
        _draw_by_round(
            ax,
            curve.values,
            curve.name,
            label=f"{curve.name} error: {last:.3g} at the end, least {least:.3g} in round {at + 1}",
            **curve.look,
        )
        look: Any = {"color": curve.look["color"], "mec": ax.get_facecolor(), "clip_on": False}
        ax.plot([at + 1], [least], _MARKERS[curve.name], ms=size, zorder=6, **look)
        for one in axes:
            look = {"color": curve.look["color"], "linestyle": curve.look["linestyle"]}
            one.axvline(at + 1, linewidth=0.7, **look)


def _draw_bounds(ax: Axes, rounds: Sequence[Round]) -> np.ndarray:
    """The bound on the training error by round, and the weaker one where it holds."""
    bounds = np.asarray([one.training_bound for one in rounds])
    text = r"product of the normalisers, $\prod Z_t$: bounds the training error"
    _draw_by_round(ax, bounds, "bound", label=text, **style.seen(_BOUND))
    weaker = edge_bounds([one.error for one in rounds])
    if (bounds <= weaker * (1 + 1e-9)).all():  # not so with every learning rate
        text = r"by the edges alone, $\exp(-2 \sum g_t^2)$: weaker"
        _draw_by_round(ax, weaker, "by edges", label=text, **_BY_EDGES)
    return bounds


def _draw_by_round(ax: Axes, values: np.ndarray, kind: str, **look: Any) -> None:
    marker = _MARKERS[kind] if len(values) < style.LONG else ""
    ax.plot(np.arange(1, len(values) + 1), values, marker=marker, ms=3, **look)


def _set_top(ax: Axes, curves: Sequence[_Curve], bound: float = 0.0) -> None:
    """The scale of errors; a bound is in view at its least at any rate."""
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
    """Few rounds are seen as points."""
    return "o" if n_rounds < style.LONG else ""
