"""The rounds of boosting: errors, their bounds, and below them edges, normalisers or the log-loss.

What is drawn below the errors depends on the votes: AdaBoost's stumps have edges, its other votes
normalisers, and LogitBoost lowers the log-loss. The errors of a quantity are its losses, and below
them are the scores of the splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.votes import AnyRound, RegionRound, Round
from gpustump.data.labels import check_targets
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.theory import edge_bounds
from gpustump.theory.round_losses import (
    Run,
    errors_of,
    losses_of,
    run_number,
    run_of,
    staged_scores,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Curve:
    """The error after each round, with its name and its look."""

    name: str
    values: np.ndarray
    look: dict[str, Any]


_TRAINING = {"color": style.BLUE, "linestyle": style.DASHES[1], "linewidth": 1.6, "zorder": 4}
_HELD_OUT = {"color": style.VERMILION, "linestyle": style.DASHES[0], "linewidth": 1.8}
_LOG_LOSS = {"color": style.GREEN, "linestyle": style.DASHES[0], "linewidth": 1.8}
_BOUND = {"color": style.BLACK, "linestyle": style.DASHES[2], "linewidth": 1.4}
_BY_EDGES = {"color": style.GREY, "linestyle": style.DASHES[3], "linewidth": 0.9}

_LOW, _TALL = 0.26, 0.42
"""The height of the strip below, as a share of the axes': of edges, and of the log-loss."""

_MARKERS = {"training": "o", "held-out": "s", "bound": "^", "by edges": "v", "log-loss": "D"}
"""Markers of curves with few rounds: a line through one point cannot be seen."""


def error_curve(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the errors by round with the bound on the training error, and a strip below.

    The strip shows, for discrete votes, the edges of the stumps; for other votes of AdaBoost 1 - Z,
    how far each round lowers the bound; for LogitBoost the held-out log-loss by round, or the score
    of each round's split if no held-out samples are known. The error of a quantity is the mean
    squared error or the mean deviance.

    Parameters
    ----------
    estimator : classifier or regressor of gpustump
        Fitted; its `rounds_` are drawn.
    X : array or frame (n_samples, n_features), optional
        Held-out samples, for the losses on them by round. By default, the errors on the samples
        that early stopping held out, if there are any, and their log-loss if it was watched.
    y : array (n_samples,), optional
        Their labels, or targets.
    sample_weight : array (n_samples,), optional
        Their weights.
    label : bool, int, float or str, optional
        With one run for each of more than two classes, the class whose rounds and errors against
        the rest are drawn. If it is not given, only the losses of the whole model on X are drawn:
        edges and bounds belong to one class against the rest. Where all classes share the stumps,
        there is one run and no label.
    ax : matplotlib Axes, optional
        A new figure's by default; the strip below takes a part of it.

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
    shows its first minimum. The minimum of a held-out loss is an optimistic estimate, as it is
    chosen on the same samples: choose the number of rounds on some samples, and test on others.

    The bound is the product of the rounds' normalisers, `Round.training_bound` and
    `RegionRound.training_bound`; Newton votes have none. With AdaBoost's own discrete votes,
    exp(-2 * (g_1**2 + ... + g_t**2)) is a weaker bound from the edges g only [Freund and Schapire
    1997, theorem 6]. The y axis fits the errors; a bound may start above it. The log-loss is that
    of `gpustump.theory.losses_by_round`, the score of a split `RegionRound.score`.

    Pairs of features are learnt after the last round, so the curves do not show what they change.

    The bags of a bagged model have rounds of their own. So only the losses on X are drawn: those of
    the average of the first rounds, which the bags add in turns.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> ax = plots.error_curve(clf, X=[[1.4], [2.8], [4.2]], y=[0, 1, 1])
    >>> ax.lines[0].get_label()
    'training error: last 0, lowest 0 in round 3'
    """
    model = model_of(estimator)
    if not hasattr(estimator, "rounds_"):
        raise TypeError(
            "estimator must be a fitted classifier or regressor of gpustump, which has rounds_ to "
            f"draw; got {type(estimator).__name__}."
        )
    number = _number(model, label, has_samples=X is not None)
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the held-out samples and their labels.")
    if X is None and model.n_bags > 1:
        raise ValueError(
            f"X and y are needed: the model is the average of {model.n_bags} bags, and only the "
            "errors on samples are those of the average. overview draws the rounds of the bags."
        )
    if X is None:
        inputs.check_no_weights(sample_weight)
        held_out = _watched(estimator, number)
    else:
        table = inputs.table_of(estimator, X)
        weights = inputs.weights_of(sample_weight, table)
        if model.is_regression:
            held_out = _HeldOut(_losses_of_quantity(estimator, table, y, weights), np.zeros(0))
        else:
            held_out = _on_samples(run_of(model, number, table, y), table, weights, estimator)
    is_whole = number is None or model.n_bags > 1
    rounds = () if number is None or is_whole else estimator.rounds_[number]
    has_curves = held_out.errors.size > 0 if is_whole else len(rounds) > 0
    is_tall = has_curves and held_out.log_losses.size > 0
    ax = style.tidy_axes(ax, 6.0, 1.6 if not has_curves else 5.2 if is_tall else 4.6)
    if not has_curves:
        nothing = "lowers the loss" if model.is_regression else "is better than chance"
        style.leave_empty(ax, f"no stump {nothing}")
    elif not _are_finite(rounds, held_out):
        style.leave_empty(ax, "losses that are too large to be drawn")
    elif is_whole:
        _draw_whole(ax, held_out, is_share=not model.is_regression)
        every = f"error, all {len(model.classes)} classes"
        is_all = number is None and not model.is_regression
        ax.set_ylabel(every if is_all else _error_of(model, label))
        if model.n_bags > 1:
            ax.figure.axes[-1].set_xlabel(f"round, {model.n_bags} bags in turns")
    else:
        _draw_run(ax, rounds, held_out, is_share=not model.is_regression)
        ax.set_ylabel(_error_of(model, label))
    return style.make_current(ax)


def _are_finite(rounds: Sequence[AnyRound], held_out: _HeldOut) -> bool:
    """Whether all errors are: squares of a quantity may be infinite."""
    errors = [one.training_error for one in rounds]
    return bool(np.isfinite(errors).all() and np.isfinite(held_out.errors).all())


class _HeldOut(NamedTuple):
    """Losses on held-out samples after each round, (n_rounds,); without rounds if unknown."""

    errors: np.ndarray
    log_losses: np.ndarray


def _number(model: StumpEnsemble, label: Label | None, *, has_samples: bool) -> int | None:
    """The run that is drawn; None for the whole of several runs, on samples."""
    if model.is_regression:
        if label is not None:
            raise ValueError(f"label is for classes; the model predicts a quantity; got {label!r}.")
        return 0
    number = run_number(model, label)
    if model.is_binary:
        return model.output_index(label)  # which refuses the first class
    if number is not None or model.is_shared:
        return number or 0
    return None if has_samples else model.member_index(label)


def _watched(estimator: Any, number: int | None) -> _HeldOut:
    """What early stopping watched; it kept the log-loss if that was its score."""
    errors = np.asarray(estimator.held_out_errors_[number])
    is_log_loss = getattr(estimator, "scoring", "") == "neg_log_loss" and _lowers_log_loss(
        estimator
    )
    scores = estimator.held_out_scores_[number] if is_log_loss else ()
    return _HeldOut(errors, 0.0 - np.asarray(scores))


def _on_samples(run: Run, X: Array, weights: IntegerWeights, estimator: Any) -> _HeldOut:
    """The losses on samples; the log-loss only where boosting lowers it."""
    if not _lowers_log_loss(estimator):
        return _HeldOut(errors_of(run, X, weights), np.zeros(0))
    found = losses_of(run, X, weights)
    return _HeldOut(found.errors, found.log_losses)


def _losses_of_quantity(regressor: Any, X: Array, y: Any, weights: IntegerWeights) -> np.ndarray:
    """The mean squared error or the mean deviance after each round, (n_rounds,)."""
    from sklearn.metrics import (
        mean_gamma_deviance,
        mean_poisson_deviance,
        mean_squared_error,
    )

    losses = {
        "squared_error": mean_squared_error,
        "poisson": mean_poisson_deviance,
        "gamma": mean_gamma_deviance,
    }
    loss, model, counts = losses[regressor.loss], regressor.model_, weights.values > 0
    with arrays.computing_on(X):
        true = arrays.to_host(check_targets(y, X))[counts]
    own = weights.values[counts] / weights.total
    staged = (model.quantities_of(s[0][counts]) for s in staged_scores(model.in_rounds, X))
    with np.errstate(over="ignore"):
        return np.asarray([loss(true, predicted, sample_weight=own) for predicted in staged])


def _lowers_log_loss(estimator: Any) -> bool:
    """Whether the votes are Newton steps: these rounds have no normaliser."""
    first = next((one for rounds in estimator.rounds_ for one in rounds), None)
    return first is not None and first.normaliser is None


def _error_of(model: StumpEnsemble, label: Label | None) -> str:
    """Whose error is drawn."""
    if model.is_regression:
        return inputs.ERRORS[model.link]
    if model.is_shared:
        return f"error, all {len(model.classes)} classes"
    name = inputs.score_name(model, label)
    return "error" if model.is_binary else f"error,\n{name} against the rest"


def _draw_whole(ax: Axes, held_out: _HeldOut, *, is_share: bool) -> None:
    """The losses of a model of several runs."""
    curves = [_Curve("held-out", held_out.errors, _HELD_OUT)]
    strip = style.strip_below(ax, _TALL) if held_out.log_losses.size else None
    _draw_errors([ax] if strip is None else [ax, strip], curves)
    _set_top(ax, curves, is_share=is_share)
    handles = ax.get_legend_handles_labels()
    if strip is not None:
        _draw_log_loss(strip, ax, held_out.log_losses)
        handles = _with(handles, strip)
    style.legend_above(ax, *handles, ncols=1)
    style.rounds_axis(strip or ax, len(held_out.errors))


def _draw_run(ax: Axes, rounds: Sequence[AnyRound], held_out: _HeldOut, *, is_share: bool) -> None:
    """A run's errors and bounds, and the strip below them."""
    curves = [_Curve("training", np.asarray([one.training_error for one in rounds]), _TRAINING)]
    if held_out.errors.size:
        curves.append(_Curve("held-out", held_out.errors, _HELD_OUT))
    has_log_loss = held_out.log_losses.size > 0
    strip = style.strip_below(ax, _TALL if has_log_loss else _LOW)
    _draw_errors([ax, strip], curves)
    bounds = _draw_bounds(ax, rounds)
    _set_top(ax, curves, float(bounds.min()) if bounds.size else 0.0, is_share=is_share)
    handles = ax.get_legend_handles_labels()
    if has_log_loss:
        _draw_log_loss(strip, ax, held_out.log_losses)
        handles = _with(handles, strip)
    else:
        _draw_by_votes(strip, rounds)
    style.legend_above(ax, *handles, ncols=1)
    style.rounds_axis(strip, max(len(curve.values) for curve in curves))


def _with(handles: tuple[list[Any], list[str]], strip: Axes) -> tuple[list[Any], list[str]]:
    """The legend's entries, and those of the strip."""
    lines, names = strip.get_legend_handles_labels()
    return handles[0] + lines, handles[1] + names


def _draw_log_loss(strip: Axes, ax: Axes, losses: np.ndarray) -> None:
    """The log-loss below the errors, with its minimum marked in both."""
    at = int(np.argmin(losses))
    text = f"held-out log-loss: last {losses[-1]:.3g}, lowest {losses[at]:.3g} in round {at + 1}"
    _draw_by_round(strip, losses, "log-loss", label=text, **_LOG_LOSS)
    look: Any = {"color": style.GREEN, "mec": ax.get_facecolor(), "clip_on": False}
    strip.plot([at + 1], [losses[at]], _MARKERS["log-loss"], ms=6, zorder=6, **look)
    for one in (ax, strip):
        one.axvline(at + 1, color=style.GREEN, linestyle=style.DASHES[3], linewidth=0.7)
    strip.set_ylim(0, 1.08 * float(losses.max()))
    strip.set_ylabel("log-loss")


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


def _draw_bounds(ax: Axes, rounds: Sequence[AnyRound]) -> np.ndarray:
    """The bound on the training error by round, if there is one, and the weaker one if it holds."""
    if any(one.training_bound is None for one in rounds):
        return np.zeros(0)
    bounds = np.asarray([one.training_bound for one in rounds], dtype=np.float64)
    text = f"{_product_text(rounds[0])}: a bound on the training error"
    _draw_by_round(ax, bounds, "bound", label=text, **style.seen(_BOUND))
    errors = [one.error for one in rounds if isinstance(one, Round)]
    weaker = edge_bounds(errors)
    if errors and (bounds <= weaker * (1 + 1e-9)).all():  # not so with every learning rate
        text = r"from the edges only, $\exp(-2 \sum g_t^2)$: a weaker bound"
        _draw_by_round(ax, weaker, "by edges", label=text, **_BY_EDGES)
    return bounds


def _product_text(first: AnyRound) -> str:
    """What the bound is; with K outputs K/2 times the product."""
    n_outputs = len(first.votes[0]) if isinstance(first, RegionRound) else 1
    times = "" if n_outputs == 1 else f"{n_outputs / 2:g} times the "
    return rf"{times}product of the normalisers, $\prod Z_t$"


def _draw_by_round(ax: Axes, values: np.ndarray, kind: str, **look: Any) -> None:
    marker = _MARKERS[kind] if len(values) < style.LONG else ""
    ax.plot(np.arange(1, len(values) + 1), values, marker=marker, ms=3, **look)


def _set_top(
    ax: Axes, curves: Sequence[_Curve], bound: float = 0.0, *, is_share: bool = True
) -> None:
    """Set the y axis for the errors, with the lowest value of the bound in view.

    `is_share` says that errors are shares of the samples, not losses of a quantity.
    """
    highest = max(float(curve.values.max()) for curve in curves)
    if is_share:
        top = max(2.2 * highest, 1.1 * bound, 0.01)
        ax.set_ylim(0, top if top < 0.6 else 1.0)
    else:
        lowest = min(float(curve.values.min()) for curve in curves)
        is_far = lowest > 0.5 * highest
        bottom = max(0.0, lowest - 0.3 * (highest - lowest)) if is_far else 0.0
        ax.set_ylim(bottom, highest + 0.08 * (highest - bottom) or 1.0)


def _draw_by_votes(strip: Axes, rounds: Sequence[AnyRound]) -> None:
    """Draw a number for each round: its edge, 1 - Z, or the score of its split."""
    values, name = _by_votes(rounds)
    marker = _marker(len(values))
    numbers = np.arange(1, len(values) + 1)
    strip.plot(numbers, values, color=style.ink(), linewidth=0.9, marker=marker, markersize=3)
    # Below -1 a round more than doubles the bound; how much more may be infinite.
    low, high = max(-1.0, min(0.0, *values)), max(0.0, *values)
    strip.set_ylim(1.1 * low, 1.1 * high or 0.1)
    strip.set_ylabel(name)


def _by_votes(rounds: Sequence[AnyRound]) -> tuple[list[float], str]:
    edges = [one.edge for one in rounds if isinstance(one, Round)]
    if edges:
        return edges, "edge $g_t$"
    normalisers = [one.normaliser for one in rounds if one.normaliser is not None]
    if normalisers:
        return [1 - one for one in normalisers], "$1 - Z_t$"
    return [one.score for one in rounds if isinstance(one, RegionRound)], "score of\nthe split"


def _marker(n_rounds: int) -> str:
    """The marker of a curve: points if the rounds are few."""
    return "o" if n_rounds < style.LONG else ""
