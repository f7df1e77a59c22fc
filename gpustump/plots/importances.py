"""Feature importances: shares of the votes, and of the contributions to scores on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.plots import inputs, spread, style
from gpustump.plots.columns import (
    Groups,
    Pair,
    Term,
    counted_terms,
    name_of,
    shares_of,
    terms_of,
)
from gpustump.plots.panels import percent
from gpustump.plots.shapes import contributions_of, largest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Contributions(NamedTuple):
    """The shares of features and pairs in the contributions over some samples."""

    shares: np.ndarray
    samples: inputs.Samples


class _Kind(NamedTuple):
    """The terms' shares of one kind, and their standard deviations over the bags; 0 without bags.

    Both are ndarrays (n_terms,) of float64. A share is NaN if a term can have none of this kind.
    """

    shares: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(cls, shares: np.ndarray, bags: np.ndarray | None, terms: Sequence[Term]) -> _Kind:
        """From the shares of features and pairs, and from those that each bag gives."""
        found = shares_of(shares, terms)
        return cls(found, np.zeros_like(found) if bags is None else spread.of_terms(bags, terms))

    def without_pairs(self, terms: Sequence[Term]) -> _Kind:
        """The same where pairs have no share."""
        is_pair = np.asarray([isinstance(term, Pair) for term in terms], dtype=bool)
        return _Kind(np.where(is_pair, np.nan, self.shares), self.deviations)

    def picked(self, chosen: list[int]) -> _Kind:
        """Some of the terms, in this order."""
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
    """Draw the shares of features, and of pairs of features, as bars, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array or frame (n_samples, n_features), optional
        With it, shares of the contributions over its samples are drawn beside the shares of the
        votes, and order the features. If contributions are the same in all rows, a text says so.
    sample_weight : array (n_samples,), optional
        The weights of the samples.
    n_features : int
        How many features and pairs have bars; a text below gives the share of the others.
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
    A pair of features has a share of the contributions, and no votes.

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
    terms = terms_of(ensemble, groups)
    samples = inputs.samples_of(model, X, sample_weight)
    contributions = contributions_of(ensemble, samples)
    ranking = contributions if contributions.any() else spread.votes_of_terms(ensemble)
    n_bars = len(largest(shares_of(ranking, terms), n_features))
    ax = style.tidy_axes(ax, height=1.3 + 0.3 * max(n_bars, 2))
    over = None if samples is None else Contributions(contributions, samples)
    draw_shares(ax, ensemble, over, terms, n_features)
    return style.make_current(ax)


def draw_shares(
    ax: Axes,
    model: StumpEnsemble,
    contributions: Contributions | None,
    terms: Sequence[Term],
    n_terms: int,
) -> None:
    """Draw bars for the terms' shares; `contributions` is None if there are no samples."""
    kinds = _kinds(model, contributions, terms)
    ranking = np.nan_to_num(next(iter(kinds.values())).shares)
    chosen = largest(ranking, n_terms)
    if not chosen:
        style.leave_empty(ax, "no feature has votes" if model.pairs else "no feature is used")
        return
    _bars(ax, {name: kind.picked(chosen) for name, kind in kinds.items()})
    names = [name_of(model, terms[k]) for k in chosen]
    ax.set_yticks(range(len(chosen)), names)
    ax.set_ylim(max(len(chosen), 3) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    of = "" if model.has_one_score else ", all classes"
    what = f"share of the votes{of}" if len(kinds) == 1 else f"share{of}"
    rest = _rest(ranking, chosen, terms)
    if model.pairs:  # a line is too short for all of it
        what, rest = f"{what} (pairs have no votes)", rest.replace("; ", "\n", 1)
    if contributions is not None and len(kinds) == 1:
        style.legend_above(ax, [], [], title="contributions are the same in all rows")
    lines = f"\nlines: {spread.caption(model.n_bags)}" if model.n_bags > 1 else ""
    ax.set(xticks=[], xlabel=what + rest + lines)


def _kinds(
    model: StumpEnsemble, contributions: Contributions | None, terms: Sequence[Term]
) -> dict[str, _Kind]:
    """What is drawn: shares of the contributions, if any differ, and shares of the votes."""
    votes = _Kind.of(spread.votes_of_terms(model), spread.vote_shares(model), terms)
    kinds = {"votes": votes.without_pairs(terms)}
    if contributions is None or not contributions.shares.any():
        return kinds
    shares, samples = contributions
    of_bags = spread.contribution_shares(model, samples.X, samples.sample_weight)
    return {"contributions": _Kind.of(shares, of_bags, terms), **kinds}


def _bars(ax: Axes, kinds: dict[str, _Kind]) -> None:
    """A bar for each feature and kind of share, with its number."""
    looks: dict[str, Any] = {
        "contributions": {"facecolor": style.BLUE, "edgecolor": style.BLUE},
        "votes": {"facecolor": style.tint(style.ORANGE, 0.78), "edgecolor": "#8a6000"},
    }
    height = 0.72 / len(kinds)
    is_alone = np.isnan([kind.shares for kind in kinds.values()]).any(axis=0)
    for k, (name, (shares, deviations)) in enumerate(kinds.items()):
        shift = (k - (len(kinds) - 1) / 2) * height
        rows = np.arange(len(shares)) + np.where(is_alone, 0.0, shift)
        look = {"label": name, "linewidth": 0.6, **looks[name]}
        if deviations.any():
            look |= {"xerr": deviations, **spread.line_look()}
        bars = ax.barh(rows, shares, 0.9 * height, **look)
        texts = ["" if np.isnan(share) else percent(share) for share in shares]
        ax.bar_label(bars, texts, padding=3, fontsize="x-small")
    ends = np.concatenate([kind.shares + kind.deviations for kind in kinds.values()])
    ax.set_xlim(0, 1.12 * np.nanmax(ends))
    if len(kinds) > 1:
        style.legend_above(ax, *ax.get_legend_handles_labels())


def _rest(ranking: np.ndarray, chosen: list[int], terms: Sequence[Term]) -> str:
    """The share of the features and pairs without a bar, as text."""
    rest = {*np.flatnonzero(ranking > 0).tolist()} - {*chosen}
    if not rest:
        return ""
    left = percent(float(1 - ranking[chosen].sum()))
    what = counted_terms([terms[k] for k in rest]).removeprefix("other ")
    return f"; {len(rest)} more {what} {'have' if len(rest) > 1 else 'has'} {left}"
