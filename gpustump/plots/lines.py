"""The theory in pictures: stumps as lines in the plane of two features, and the curve that a round
minimises, or for Newton votes maximises, over the thresholds of one feature."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.labels import check_signs
from gpustump.data.parameters import VoteKind, check_count, check_vote_kind
from gpustump.data.tables import check_table
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import condition
from gpustump.learners.stump import Stump
from gpustump.plots import axis, style, terms
from gpustump.theory import Losses, SplitScores, split_scores, weighted_losses
from gpustump.theory.arguments import weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHAPES: dict[int, tuple[str, Any]] = {
    1: ("o", style.BLUE),
    -1: ("s", style.tint(style.ORANGE, 0.8)),
}
_ARROW = 0.055
"""The length of an arrow to the side of +1, as a share of the axes' width."""

_MOST = 5
"""The most stumps in one picture."""

_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": style.BLUE, "linestyle": style.DASHES[0], "linewidth": 1.6},
    {"color": style.VERMILION, "linestyle": style.DASHES[1], "linewidth": 1.6},
)


def stump_lines(
    stumps: Stump | Interval | Iterable[Stump | Interval],
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    features: Iterable[int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Draw the thresholds of stumps in the plane of two features, and the weighted samples.

    Parameters
    ----------
    stumps : Stump, Interval, or an iterable of them
        Up to 5, each with its own dashes; arrows point to the side where it predicts +1.
    X : array (n_samples, n_features), optional
    y : array (n_samples,), optional
        Labels -1 and +1; given with X.
    sample_weight : array (n_samples,), optional
        The areas of the points. Several weightings are pictures side by side, each on its own `ax`.
    features : two ints
        On the x axis and on the y axis.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or a stump is on another feature.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    A stump is a line at a right angle to its feature's axis [Shalev-Shwartz and Ben-David 2014,
    Understanding Machine Learning, 10.1.1]. Schapire and Freund (2012), Boosting: Foundations and
    Algorithms, chapter 1, draw weak learners under several weightings in this way.

    Examples
    --------
    >>> from gpustump import boost, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [-1, -1, 1, -1, 1]
    >>> stumps = [record.stump for record in boost(X, y, n_rounds=2)]
    >>> ax = plots.stump_lines(stumps, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['−1 where $x_{0}$ ≤ 2.5', '−1 where $x_{0}$ ≤ 4.5', 'label +1', 'label −1']
    """
    drawn = [stumps] if isinstance(stumps, Stump | Interval) else terms.several(stumps)
    pair = terms.two_features(features, lambda feature: check_count(feature, "features", least=0))
    _check_stumps(drawn, pair)
    if (X is None) != (y is None) or (X is None and sample_weight is not None):
        raise ValueError("X and y must be given together, and sample_weight with them.")
    points = np.zeros((2, 0))
    if X is not None:
        X = check_table(X, min_features=max(pair) + 1)
        with arrays.computing_on(X):
            labels = arrays.to_host(check_signs(y, X))
        weights = weights_of(sample_weight, X).values
        points = np.stack([terms.column_of(X, feature) for feature in pair])
    ax = style.tidy_axes(ax, 5.2, 4.6)
    for k, feature in enumerate(pair):
        cuts = [at for stump in drawn if stump.feature == feature for at in stump.thresholds]
        known = np.concatenate([np.asarray(cuts, dtype=np.float64), points[k]])
        view = axis.span(known, 0.15 if X is None else 0.07)
        of_axis = ax.yaxis if k else ax.xaxis
        (ax.set_ylim if k else ax.set_xlim)(view.low, view.high)
        axis.set_ticks(of_axis, "number", 6, is_whole=axis.is_whole(points[k], view))
        of_axis.set_label_text(f"feature {feature}")
    samples = ([], []) if X is None else _draw_samples(ax, points, labels, weights)
    shifts = [(0.03 + 0.05 * k, 0.97 - 0.05 * (len(drawn) - 1 - k)) for k in range(len(drawn))]
    looks = style.line_looks(_MOST)
    lines = [
        _draw_stump(ax, stump, pair, along, look)
        for stump, along, look in zip(drawn, shifts, looks, strict=False)
    ]
    style.legend_above(ax, lines + samples[0], [*map(_rule, drawn), *samples[1]], ncols=2)
    return style.make_current(ax)


def _check_stumps(stumps: list[Any], pair: tuple[int, int]) -> None:
    if not 1 <= len(stumps) <= _MOST:
        raise ValueError(f"stumps must be 1 to {_MOST}; got {len(stumps)}.")
    for k, stump in enumerate(stumps):
        if not isinstance(stump, Stump | Interval):
            raise TypeError(f"stumps[{k}] must be a Stump or an Interval; got {stump!r}.")
        if stump.feature not in pair and not stump.is_constant:
            raise ValueError(
                f"stumps[{k}] is on feature {stump.feature}, which is none of the features {pair}."
            )


def _rule(stump: Stump | Interval) -> str:
    """What a stump predicts, for the legend."""
    if stump.is_constant:
        return f"always {stump.polarity:+d}".replace("-", "−")
    name = f"$x_{{{stump.feature}}}$"
    where = condition(stump, name, number="{:.6g}".format, at_most="≤")
    return f"{stump.polarity:+d} where {where}".replace("-", "−")


def _draw_samples(
    ax: Axes, points: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[list[Any], list[str]]:
    """A point for each sample, with a shape for its label; entries for the legend."""
    from matplotlib.lines import Line2D

    usual = style.point_area(len(labels))
    areas = np.clip(usual * weights / weights.mean(), 2.0, 400.0)
    edge: Any = {"edgecolor": style.ink(), "linewidth": 0.5}
    look: Any = {"linestyle": "", "markeredgecolor": style.ink(), "markeredgewidth": 0.5}
    handles = []
    for sign, (marker, face) in _SHAPES.items():
        here = (labels == sign) & np.isfinite(points).all(axis=0)
        x, z = points[:, here]
        ax.scatter(x, z, areas[here], marker=marker, facecolor=face, zorder=3, **edge)
        handles.append(Line2D([], [], marker=marker, markerfacecolor=face, markersize=6, **look))
    return handles, ["label +1", "label −1"]


def _draw_stump(
    ax: Axes,
    stump: Stump | Interval,
    pair: tuple[int, int],
    along: tuple[float, float],
    look: dict[str, Any],
) -> Any:
    """The lines of a stump, and arrows at some places along them; returns its legend entry."""
    from matplotlib.lines import Line2D

    if stump.is_constant:
        return Line2D([], [], linestyle="")
    is_level = stump.feature == pair[1]
    low, high = ax.get_ylim() if is_level else ax.get_xlim()
    sides = pairwise(signs(stump)[region] for region in stump.slices)
    paper = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
    for cut, (below, above) in zip(stump.thresholds, sides, strict=True):
        if not low <= cut <= high:  # infinite, or so large that it is out of view
            continue
        (ax.axhline if is_level else ax.axvline)(cut, zorder=5, gid="stump", **look)
        start, way = (cut - low) / (high - low), 1 if below < above else -1
        arrow = {"arrowstyle": "<|-", "color": look["color"], "linewidth": 1.1, "shrinkB": 0}
        how: Any = {"ha": "center", "va": "bottom" if way > 0 else "top"}
        if not is_level:
            how = {"ha": "left" if way > 0 else "right", "va": "center"}
        how |= {"xycoords": "axes fraction", "fontsize": "x-small", "color": look["color"]}
        for place in along:
            ends = [
                (place, at) if is_level else (at, place) for at in (start, start + way * _ARROW)
            ]
            text: Any = {"xytext": ends[1], "arrowprops": arrow, "bbox": paper, "zorder": 5}
            ax.annotate("+1", ends[0], **text, **how)
    return Line2D([], [], **look)


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
    votes the legend says what its regions vote.

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
    column = X[:, index]
    found: Losses | SplitScores
    if check_vote_kind(votes) == "discrete":
        found = weighted_losses(column, y, sample_weight)
        threshold, polarity, height = found.least()
        text = f"minimum: {height:.4g}, {_place(threshold)}, polarity {polarity:+d}"
        curves = {
            "polarity +1: predicts +1 where x ≤ b": found.errors,
            "polarity −1: predicts −1 where x ≤ b": found.opposite_errors,
        }
        name, level, level_text, limits = "weighted error", 0.5, "chance", (0.0, 1.0)
    else:
        how: Any = {"votes": votes, "l2_regularization": l2_regularization}
        found = split_scores(column, y, sample_weight, **how)
        is_real = votes == "real"
        name = "normaliser $Z$ of real votes" if is_real else "gain of Newton votes"
        factor, threshold = -2.0 if is_real else 1.0, found.best.split.threshold
        heights, height = factor * found.scores, factor * found.best.score
        curves, level, level_text = {name: heights}, factor * found.constant, "without a split"
        text = f"{'minimum' if is_real else 'maximum'}: {height:.4g}, {_voted(found)}"
        if found.best.score == found.constant and not np.isfinite(threshold):
            text = f"best without a split; vote {found.best.votes[0]:+.3g}"
        low, high = float(heights.min()), max(float(heights.max()), level)
        room = 0.1 * (high - low) or 0.1
        limits = (max(0.0, low - 3 * room) if is_real else 0.0), high + room
    ax = style.tidy_axes(ax)
    view = axis.bulk(found.values, 0.08)
    grey: Any = {"color": style.GREY, "linestyle": style.DASHES[2], "linewidth": 1.2, "zorder": 1}
    ax.axhline(level, gid="level", label=level_text, **grey)
    for (label, heights), look in zip(curves.items(), _LOOKS, strict=False):
        ax.plot(*style.corners(found.values, heights, (view.low, view.high)), label=label, **look)
    ax.set(xlim=(view.low, view.high), ylim=limits, ylabel=name)
    at = float(np.clip(threshold, view.low, view.high))
    mark: Any = {"color": style.ink(), "linestyle": "", "clip_on": False, "zorder": 5}
    ax.plot([at], [height], marker="o", label=text.replace("-", "−"), gid="best", **mark)
    axis.set_ticks(ax.xaxis, "number", 6, is_whole=axis.is_whole(found.values, view))
    ax.set_xlabel(f"threshold b on feature {index}")
    if beyond := int((~view.shows(found.values)).sum()):
        text = f"{beyond} value{'s' * (beyond > 1)} beyond"
        style.note(ax, text, x=1.0, y=1.01, ha="right", va="bottom", fontsize="x-small")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    return style.make_current(ax)


def _voted(found: SplitScores) -> str:
    """Where the best split is, and what its regions vote."""
    left, right, missing = found.best.votes
    if not np.isfinite(found.best.split.threshold):
        return f"missing values apart;\nvotes {left:+.3g}, {missing:+.3g} missing"
    where = _place(found.best.split.threshold)
    text = f"{where};\nvotes {left:+.3g} at b or below, {right:+.3g} above"
    return text + (f", {missing:+.3g} missing" if missing else "")


def _place(threshold: float) -> str:
    return f"at b = {threshold:.6g}" if np.isfinite(threshold) else "constant"
