"""The curve that a round minimises, or for Newton votes maximises, over a feature's thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.parameters import VoteKind, check_count, check_real, check_vote_kind
from gpustump.data.tables import check_table
from gpustump.plots import limits, style
from gpustump.theory.loss_curve import Losses, weighted_losses
from gpustump.theory.split_scores import SplitScores, split_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": style.BLUE, "linestyle": style.DASHES[0], "linewidth": 1.6},
    {"color": style.VERMILION, "linestyle": style.DASHES[1], "linewidth": 1.6},
)
_UNSPLIT: dict[str, Any] = {
    "color": style.GREY, "linestyle": style.DASHES[2], "linewidth": 1.2, "zorder": 1,
}  # fmt: skip


class _Line(NamedTuple):
    """A curve: its name in the legend, and its height between each two values, (k + 1,)."""

    name: str
    heights: np.ndarray


class _Best(NamedTuple):
    """What training chooses: its threshold, its height, and its text in the legend."""

    threshold: float
    height: float
    text: str


@dataclass(frozen=True)
class _Drawn:
    """What is drawn over a feature's values.

    Attributes
    ----------
    name : str
        Of the y axis.
    values : ndarray (k,) of float64
        The distinct values.
    lines : tuple of _Line
    best : _Best
    view : (float, float)
        The limits of the y axis.
    unsplit : float or None
        The height without a split; None if the line of chance is drawn in its place.
    """

    name: str
    values: np.ndarray
    lines: tuple[_Line, ...]
    best: _Best
    view: tuple[float, float]
    unsplit: float | None


def weighted_loss(
    X: Any,
    y: Any,
    feature: int,
    *,
    sample_weight: Any = None,
    votes: VoteKind = "discrete",
    l2_regularization: float = 0.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the error, normaliser or gain of a split of a feature as a function of its threshold.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    feature : int
        The split's column of X, from 0.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.
    votes : "discrete", "real" or "newton"
        What the regions vote, as for `fit_stump`. "discrete": a stump's weighted error is drawn,
        for both polarities. "real": the normaliser Z. "newton": the gain, whose maximum training
        takes.
    l2_regularization : float
        For Newton votes, as for `fit_stump`.
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
    F_j(b) of Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, 10.1.1, from
    `gpustump.theory.weighted_losses`; Z and the gain are those of `gpustump.theory.split_scores`.
    The curve is exact, with steps at the values of the samples. Long tails are cut off, and a text
    counts the values there. The mark is the split that training chooses on this feature. If all
    values are on one side of it, or it is out of view, the mark is at the edge. For real and Newton
    votes the legend says what its regions vote. Values too large or too small for Matplotlib
    are drawn in units of a power of ten, which the axis names.

    Examples
    --------
    >>> from gpustump import plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [-1, -1, 1, -1, 1]
    >>> ax = plots.weighted_loss(X, y, feature=0)
    >>> ax.get_legend().get_texts()[-1].get_text()
    'minimum: 0.2, at b = 2.5, polarity −1'
    """
    X = check_table(X)
    index = check_count(feature, "feature", least=0)
    if index >= X.shape[1]:
        raise ValueError(f"feature must be below {X.shape[1]}, the width of X; got {feature!r}.")
    l2 = check_real(l2_regularization, "l2_regularization", least=0.0)
    column = X[:, index]
    if check_vote_kind(votes) == "discrete":
        drawn = _of_signs(weighted_losses(column, y, sample_weight))
    else:
        drawn = _of_votes(split_scores(column, y, sample_weight, votes=votes, l2_regularization=l2))
    ax = style.tidy_axes(ax)
    unit = limits.unit(drawn.values)
    values = limits.in_unit(drawn.values, unit)
    low, high = limits.bulk(values, 0.08)
    if drawn.unsplit is None:
        style.chance_line(ax)
    else:
        ax.axhline(drawn.unsplit, gid="unsplit", label="without a split", **_UNSPLIT)
    for line, look in zip(drawn.lines, _LOOKS, strict=False):
        ax.plot(*_corners(values, line.heights, low, high), label=line.name, **look)
    ax.set(xlim=(low, high), ylim=drawn.view, ylabel=drawn.name)
    ax.set_xlabel(f"threshold b on feature {index}{limits.unit_text(unit)}")
    at = float(np.clip(limits.in_unit(np.asarray(drawn.best.threshold), unit), low, high))
    look = {"color": style.ink(), "linestyle": "", "clip_on": False, "zorder": 5}
    ax.plot([at], [drawn.best.height], marker="o", label=drawn.best.text, gid="least", **look)
    style.whole_ticks(ax.xaxis, is_whole=limits.is_whole(values, (low, high)))
    if beyond := int(((values < low) | (values > high)).sum()):
        text = f"{beyond} value{'s' * (beyond > 1)} beyond"
        style.note(ax, text, x=1.0, y=1.01, ha="right", va="bottom", fontsize="x-small")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    return style.make_current(ax)


def _of_signs(found: Losses) -> _Drawn:
    """The weighted errors of stumps with both polarities."""
    threshold, polarity, error = found.least()
    text = f"minimum: {error:.4g}, {_place(threshold)}, polarity {polarity:+d}"
    lines = tuple(
        _Line(f"polarity {sign}: predicts {sign} where x ≤ b", errors)
        for sign, errors in (("+1", found.errors), ("−1", found.opposite_errors))
    )
    best = _Best(threshold, error, text.replace("-", "−"))
    return _Drawn("weighted error", found.values, lines, best, (0.0, 1.0), None)


def _of_votes(found: SplitScores) -> _Drawn:
    """The normaliser of real votes, or the gain of Newton votes."""
    is_real = found.kind == "real"
    factor = -2.0 if is_real else 1.0
    heights, best = factor * found.scores, found.best
    text = f"{'minimum' if is_real else 'maximum'}: {factor * best.score:.4g}, "
    text += f"{_place(best.threshold)};\n{_votes_text(best.votes)}"
    if best.is_constant:
        text = f"best without a split; vote {best.votes[0]:+.3g}"
    name = "normaliser $Z$ of real votes" if is_real else "gain of Newton votes"
    mark = _Best(best.threshold, factor * best.score, text.replace("-", "−"))
    unsplit = factor * found.constant
    low, high = float(heights.min()), max(float(heights.max()), unsplit)
    room = 0.1 * (high - low) or 0.1
    view = (max(0.0, low - 3 * room), high + room) if is_real else (0.0, high + room)
    lines = (_Line(name, heights),)
    return _Drawn(name, found.values, lines, mark, view, unsplit)


def _votes_text(votes: tuple[float, float, float]) -> str:
    """What the regions vote; without missing values, their region votes 0."""
    left, right, missing = votes
    text = f"votes {left:+.3g} at b or below, {right:+.3g} above"
    return f"{text}, {missing:+.3g} missing" if missing else text


def _place(threshold: float) -> str:
    return f"at b = {threshold:.6g}" if np.isfinite(threshold) else "constant"


def _corners(
    values: np.ndarray, errors: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the loss curve, which has a step at each value, between two limits."""
    inside = (values > low) & (values < high)
    first = int((values <= low).sum())
    edges = np.concatenate([[low], values[inside], [high]])
    return style.corners(edges, errors[first : first + int(inside.sum()) + 1])
