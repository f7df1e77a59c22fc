"""The rounds of boosting: errors with their bounds, and below them edges, normalisers or losses.

What is drawn below the errors depends on the votes: AdaBoost's stumps have edges, its other votes
normalisers, and LogitBoost lowers the log-loss. The errors of a quantity are its losses, and below
them are the scores of the splits. The last part is the panel of `overview`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.votes import AnyRound, RegionRound, Round
from gpustump.data.labels import check_targets
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.model.ensemble import Label, StumpEnsemble, model_of
from gpustump.model.members import Member, RegionMember
from gpustump.plots import style, terms
from gpustump.plots.panels import DrawnScore
from gpustump.theory import edge_bounds, training_bounds
from gpustump.theory.losses import losses_of, run_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRAINING = {"color": style.BLUE, "linestyle": style.DASHES[1], "linewidth": 1.6, "zorder": 4}
_HELD_OUT = {"color": style.VERMILION, "linestyle": style.DASHES[0], "linewidth": 1.8}
_LOG_LOSS = {"color": style.GREEN, "linestyle": style.DASHES[0], "linewidth": 1.8}
_BOUND = {"linestyle": style.DASHES[2], "linewidth": 1.4}
_BY_EDGES = {"color": style.GREY, "linestyle": style.DASHES[3], "linewidth": 0.9}

_LOW, _TALL = 0.26, 0.42
"""The height of the strip below, as a share of the axes': of edges, and of the log-loss."""

_SIZE = "half the range of the round's votes"


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
    of its loss: of squares, of pinball losses, or the deviance.

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
    Nor do losses on X count what is known of its samples beforehand; of counts with exposures give
    the rates as y, and the exposures as sample_weight.

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
    samples = terms.samples_of(estimator, X, sample_weight)
    errors, log_losses = _held_out(estimator, number, samples, y)
    rounds = () if number is None or model.n_bags > 1 else estimator.rounds_[number]
    curves = {"training": np.asarray([one.training_error for one in rounds]), "held-out": errors}
    curves = {name: values for name, values in curves.items() if len(values)}
    ax = style.tidy_axes(ax, 6.0, 1.6 if not curves else 5.2 if log_losses.size else 4.6)
    if not curves:
        nothing = "lowers the loss" if model.is_regression else "is better than chance"
        style.leave_empty(ax, f"no stump {nothing}")
    elif not all(np.isfinite(values).all() for values in curves.values()):
        style.leave_empty(ax, "losses that are too large to be drawn")
    else:
        _draw(ax, curves, log_losses, rounds, is_share=not model.is_regression)
        name = f", all {len(model.classes)} classes"
        if number is not None and not model.is_shared:
            whose = terms.score_name(model, label)
            name = "" if model.has_one_score else f",\n{whose} against the rest"
        ax.set_ylabel(terms.ERRORS.get(model.link, f"error{name}"))
        if model.n_bags > 1:
            ax.figure.axes[-1].set_xlabel(f"round, {model.n_bags} bags in turns")
    return style.make_current(ax)


def _number(model: StumpEnsemble, label: Label | None, *, has_samples: bool) -> int | None:
    """The run that is drawn; None for the whole of several runs, on samples."""
    if model.has_one_score:
        return model.output_index(label)  # which refuses a label of none, or of the first class
    number = run_number(model, label)
    if model.is_shared:
        return 0
    return number if has_samples else model.member_index(label)


def _held_out(
    estimator: Any, number: int | None, samples: terms.Samples | None, y: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The errors and log-losses after each round, on samples or as early stopping watched them:
    (n_rounds,) each, or (0,) if they are not known.

    The log-loss is known only where boosting lowers it, as Newton steps do, which have no
    normaliser; of early stopping, if it was the score.
    """
    model = estimator.model_
    first = next((one for rounds in estimator.rounds_ for one in rounds), None)
    is_newton = first is not None and first.normaliser is None
    if samples is None:
        is_watched = is_newton and getattr(estimator, "scoring", "") == "neg_log_loss"
        scores = estimator.held_out_scores_[number] if is_watched else ()
        return np.asarray(estimator.held_out_errors_[number]), 0.0 - np.asarray(scores)
    X, _, weights = samples
    if model.is_regression:
        return _losses_of_quantity(estimator, X, y, weights), np.zeros(0)
    found = losses_of(model, number, X, y, weights)
    return found.errors, found.log_losses if is_newton else np.zeros(0)


def _losses_of_quantity(regressor: Any, X: Array, y: Any, weights: IntegerWeights) -> np.ndarray:
    """The mean error or the mean deviance after each round, (n_rounds,)."""
    from sklearn import metrics

    pinball = functools.partial(metrics.mean_pinball_loss, alpha=regressor.quantile)
    losses = {
        "squared_error": metrics.mean_squared_error,
        "quantile": pinball,
        "poisson": metrics.mean_poisson_deviance,
        "gamma": metrics.mean_gamma_deviance,
    }
    loss, model, counts = losses[regressor.loss], regressor.model_, weights.values > 0
    with arrays.computing_on(X):
        true = arrays.to_host(check_targets(y, X))[counts]
    own = weights.values[counts] / weights.total
    scores = map(arrays.to_host, model.in_rounds.staged_scores(X))
    staged = (model.quantities_of(own[counts, 0]) for own in scores)
    with np.errstate(over="ignore"):
        return np.asarray([loss(true, predicted, sample_weight=own) for predicted in staged])


def _draw(
    ax: Axes,
    curves: dict[str, np.ndarray],
    log_losses: np.ndarray,
    rounds: Sequence[AnyRound],
    *,
    is_share: bool,
) -> None:
    """Errors and bounds, and the strip below them; without rounds there are errors only.

    `is_share` says that errors are shares of the samples, not losses of a quantity.
    """
    strip = None
    if log_losses.size or rounds:
        strip = style.strip_below(ax, _TALL if log_losses.size else _LOW)
    looks = {"training": (_TRAINING, "o", 9), "held-out": (_HELD_OUT, "s", 6)}
    for name, values in curves.items():
        look, marker, size = looks[name]  # one mark does not hide the other
        _draw_curve(ax, values, f"{name} error", look, marker, size)
    bounds = _draw_bounds(ax, rounds)
    _set_top(ax, np.concatenate([*curves.values()]), bounds, is_share=is_share)
    handles, names = ax.get_legend_handles_labels()
    if strip is not None and log_losses.size:
        _draw_curve(strip, log_losses, "held-out log-loss", _LOG_LOSS, "D", 6)
        strip.set(ylim=(0, 1.08 * float(log_losses.max())), ylabel="log-loss")
        more = strip.get_legend_handles_labels()
        handles, names = handles + more[0], names + more[1]
    elif strip is not None:
        numbers, text = _by_votes(rounds)
        style.plot_rounds(strip, numbers, color=style.ink(), linewidth=0.9)
        # Below -1 a round more than doubles the bound; how much more may be infinite.
        low, high = max(-1.0, min(0.0, *numbers)), max(0.0, *numbers)
        strip.set(ylim=(1.1 * low, 1.1 * high or 0.1), ylabel=text)
    style.legend_above(ax, handles, names, ncols=1)
    style.rounds_axis(strip or ax, max(map(len, curves.values())))


def _draw_curve(
    ax: Axes, values: np.ndarray, name: str, look: dict[str, Any], marker: str, size: int
) -> None:
    """A curve with a mark at its first minimum."""
    at = int(np.argmin(values))
    text = f"{name}: last {values[-1]:.3g}, lowest {values[at]:.3g} in round {at + 1}"
    style.plot_rounds(ax, values, marker=marker, label=text, **look)
    own: Any = {"color": look["color"], "mec": ax.get_facecolor(), "clip_on": False, "zorder": 6}
    ax.plot([at + 1], [values[at]], marker, ms=size, **own)


def _draw_bounds(ax: Axes, rounds: Sequence[AnyRound]) -> np.ndarray:
    """The bound on the training error by round, if there is one, and the weaker one if it holds."""
    bounds = np.asarray([one.training_bound for one in rounds if one.training_bound is not None])
    if not bounds.size:
        return bounds
    first = rounds[0]
    n_outputs = len(first.votes[0]) if isinstance(first, RegionRound) else 1
    times = "" if n_outputs == 1 else f"{n_outputs / 2:g} times the "
    text = rf"{times}product of the normalisers, $\prod Z_t$: a bound on the training error"
    style.plot_rounds(ax, bounds, marker="^", label=text, color=style.ink(), **_BOUND)
    errors = [one.error for one in rounds if isinstance(one, Round)]
    weaker = edge_bounds(errors)
    if errors and (bounds <= weaker * (1 + 1e-9)).all():  # not so with every learning rate
        text = r"from the edges only, $\exp(-2 \sum g_t^2)$: a weaker bound"
        style.plot_rounds(ax, weaker, marker="v", label=text, **_BY_EDGES)
    return bounds


def _set_top(ax: Axes, errors: np.ndarray, bounds: np.ndarray, *, is_share: bool) -> None:
    """Set the y axis for the errors, with the lowest value of the bound in view."""
    low, high = float(errors.min()), float(errors.max())
    if is_share:
        top = max(2.2 * high, 1.1 * float(bounds.min(initial=1.0)) * bool(bounds.size), 0.01)
        ax.set_ylim(0, top if top < 0.6 else 1.0)
    else:
        bottom = max(0.0, low - 0.3 * (high - low)) if low > 0.5 * high else 0.0
        ax.set_ylim(bottom, high + 0.08 * (high - bottom) or 1.0)


def _by_votes(rounds: Sequence[AnyRound]) -> tuple[list[float], str]:
    """A number for each round, and its name: its edge, 1 - Z, or the score of its split."""
    edges = [one.edge for one in rounds if isinstance(one, Round)]
    if edges:
        return edges, "edge $g_t$"
    normalisers = [one.normaliser for one in rounds if one.normaliser is not None]
    if normalisers:
        return [1 - one for one in normalisers], "$1 - Z_t$"
    return [one.score for one in rounds if isinstance(one, RegionRound)], "score of\nthe split"


def draw_rounds(
    ax: Axes,
    model: StumpEnsemble,
    scores: Sequence[DrawnScore],
    records: Sequence[Sequence[AnyRound]] | None,
) -> None:
    """Draw a number for each round: a line for each run, on the page of `overview`.

    A model of discrete votes stores each stump's error, from which the bound on the training error
    follows. Where regions have votes of their own, a model stores the votes only; the records of a
    classifier's rounds, its `rounds_`, have the training error and, with AdaBoost's votes, the
    bound. The average of bags has no rounds of its own: drawn are the median of the bags, and a
    band from the least to the largest, of those bags that have the round. Their records stand bag
    after bag.
    """
    drawn = {0: scores[0]} if model.is_shared else {model.member_index(s.label): s for s in scores}
    bags = model.bag_models or (model,)
    what, n_rounds = "", 0
    for number, score in drawn.items():
        found = []
        for bag, own in enumerate(bags):
            run = None if records is None else records[bag * len(model.members) + number]
            values, name = _of_rounds(own.members[number], run, model.link)
            if len(values):
                found.append(np.asarray(values, dtype=np.float64))
                what = name
        if found:
            n_rounds = max(n_rounds, *map(len, found))
            look = {**score.look, "label": score.name}
            _draw_bags(ax, found, look if len(drawn) > 1 else look | {"color": style.BLUE})
    if not what:
        style.leave_empty(ax, "no stump is better than chance")
        return
    ax.set_ylim(0, 1.0 if what.startswith("bound") else None)
    whose = "" if model.has_one_score else ",\neach class against the rest"
    if model.is_shared:
        whose = f",\nall {len(model.classes)} classes"
    elif len(drawn) == 1 and whose:
        whose = f",\n{scores[0].name} against rest"
    of_bags = f",\nmedian and range of {len(bags)} bags" if len(bags) > 1 else ""
    ax.set_ylabel(f"{what}{whose}{of_bags}", fontsize="small" if whose and of_bags else None)
    if len(drawn) > 1:
        style.legend_above(ax, *ax.get_legend_handles_labels())
    style.rounds_axis(ax, n_rounds)


def _of_rounds(
    member: Member | RegionMember, run: Sequence[AnyRound] | None, link: str
) -> tuple[Any, str]:
    """What is drawn of one run, and its name."""
    if isinstance(member, Member):
        errors = [stump.error for stump in member.stumps]  # 1 in a model made by hand
        is_bounded = bool(errors) and max(errors) < 1
        found = training_bounds(errors, member.votes) if is_bounded else ()
        return found, "bound on the training error"
    if not run:
        return member.term_importances, _SIZE
    bounds = [one.training_bound for one in run if one.training_bound is not None]
    if bounds:
        return bounds, "bound on the training error"
    return [one.training_error for one in run], terms.ERRORS.get(link, "training error")


def _draw_bags(ax: Axes, runs: Sequence[np.ndarray], look: dict[str, Any]) -> None:
    """One run as a line, or the median of several with a band."""
    by_round = np.full((len(runs), max(map(len, runs))), np.nan)
    for row, own in zip(by_round, runs, strict=True):
        row[: len(own)] = own
    if len(runs) > 1:
        low, high = np.nanmin(by_round, axis=0), np.nanmax(by_round, axis=0)
        style.fill_band(ax, np.arange(1, len(low) + 1), low, high, look["color"])
    style.plot_rounds(ax, np.nanmedian(by_round, axis=0), **look)
