"""Feature importances: shares of the votes, and of the contributions to scores on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.plots import inputs, spread, style
from gpustump.plots.columns import Column, Groups, columns_of, name_of, shares_of
from gpustump.plots.panels import percent
from gpustump.plots.shapes import contributions_of, largest, top

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Contributions(NamedTuple):
    """The features' shares of the contributions over some samples."""

    shares: np.ndarray
    samples: inputs.Samples


class _Kind(NamedTuple):
    """The columns' shares of one kind, and their standard deviations over the bags; 0 without bags.

    Both are ndarrays (n_columns,) of float64.
    """

    shares: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(cls, shares: np.ndarray, bags: np.ndarray | None, columns: Sequence[Column]) -> _Kind:
        """From the features' shares, and from those that each bag gives."""
        found = shares_of(shares, columns)
        return cls(
            found, np.zeros_like(found) if bags is None else spread.of_columns(bags, columns)
        )

    def picked(self, chosen: list[int]) -> _Kind:
        """Some of the columns, in this order."""
        return _Kind(self.shares[chosen], self.deviations[chosen])


def importances(
    model: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    n_features: int = 10,
    groups: Groups | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the features' shares as bars, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features), optional
        With it, shares of the contributions over its samples are drawn beside the shares of the
        votes, and order the features. If contributions are the same in all rows, a text says so.
    sample_weight : array (n_samples,), optional
        The weights of the samples.
    n_features : int
        How many features have bars; a text below gives the share of the others.
    groups : mapping, optional
        Categories, as for `shape_functions`. One has the sum of its features' shares.
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
    `StumpEnsemble.feature_importances`: a feature's share of the absolute votes.
    `StumpEnsemble.contribution_importances`: its share of the mean absolute deviation of
    contributions. Votes may cancel out, or concern few samples; contributions show their effect.

    For a bagged model, a line at the end of each bar reaches one standard deviation over the bags
    to both sides.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = LogitBoostClassifier(n_estimators=10).fit(X, y)
    >>> ax = plots.importances(clf, X)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['feature 0', 'feature 1']
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    columns = columns_of(ensemble, groups)
    samples = inputs.samples_of(model, X, sample_weight)
    contributions = contributions_of(ensemble, samples)
    n_bars = len(top(ensemble, contributions, columns, n_features))
    ax = style.tidy_axes(ax, height=1.3 + 0.3 * max(n_bars, 2))
    over = None if samples is None else Contributions(contributions, samples)
    draw_shares(ax, ensemble, over, columns, n_features)
    return style.make_current(ax)


def draw_shares(
    ax: Axes,
    model: StumpEnsemble,
    contributions: Contributions | None,
    columns: Sequence[Column],
    n_columns: int,
) -> None:
    """Draw bars for the columns' shares; `contributions` is None if there are no samples."""
    kinds = _kinds(model, contributions, columns)
    ranking = next(iter(kinds.values())).shares
    chosen = largest(ranking, n_columns)
    if not chosen:
        style.leave_empty(ax, "no feature is used")
        return
    _bars(ax, {name: kind.picked(chosen) for name, kind in kinds.items()})
    names = [name_of(model, columns[k]) for k in chosen]
    ax.set_yticks(range(len(chosen)), names)
    ax.set_ylim(max(len(chosen), 3) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    of = "" if model.has_one_score else ", all classes"
    what = f"share of the votes{of}" if len(kinds) == 1 else f"share{of}"
    if contributions is not None and len(kinds) == 1:
        style.legend_above(ax, [], [], title="contributions are the same in all rows")
    lines = f"\nlines: {spread.caption(model.n_bags)}" if model.n_bags > 1 else ""
    ax.set(xticks=[], xlabel=what + _rest(ranking, chosen) + lines)


def _kinds(
    model: StumpEnsemble, contributions: Contributions | None, columns: Sequence[Column]
) -> dict[str, _Kind]:
    """What is drawn: shares of the contributions, if any differ, and shares of the votes."""
    votes = spread.vote_shares(model)
    kinds = {"votes": _Kind.of(model.feature_importances(), votes, columns)}
    if contributions is None or not contributions.shares.any():
        return kinds
    shares, samples = contributions
    of_bags = spread.contribution_shares(model, samples.X, samples.sample_weight)
    return {"contributions": _Kind.of(shares, of_bags, columns), **kinds}


def _bars(ax: Axes, kinds: dict[str, _Kind]) -> None:
    """A bar for each feature and kind of share, with its number."""
    looks: dict[str, Any] = {
        "contributions": {"facecolor": style.BLUE, "edgecolor": style.BLUE},
        "votes": {"facecolor": style.tint(style.ORANGE, 0.78), "edgecolor": "#8a6000"},
    }
    height = 0.72 / len(kinds)
    for k, (name, (shares, deviations)) in enumerate(kinds.items()):
        rows = np.arange(len(shares)) + (k - (len(kinds) - 1) / 2) * height
        look = {"label": name, "linewidth": 0.6, **looks[name]}
        if deviations.any():
            look |= {"xerr": deviations, **spread.line_look()}
        bars = ax.barh(rows, shares, 0.9 * height, **look)
        texts = [percent(share) for share in shares]
        ax.bar_label(bars, texts, padding=3, fontsize="x-small")
    ax.set_xlim(0, 1.12 * max((kind.shares + kind.deviations).max() for kind in kinds.values()))
    if len(kinds) > 1:
        style.legend_above(ax, *ax.get_legend_handles_labels())


def _rest(ranking: np.ndarray, chosen: list[int]) -> str:
    """The share of the features without a bar, as text."""
    rest = int((ranking > 0).sum()) - len(chosen)
    if rest <= 0:
        return ""
    left = percent(float(1 - ranking[chosen].sum()))
    return f"; {rest} more feature{'s have' if rest > 1 else ' has'} {left}"
