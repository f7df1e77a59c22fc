"""Feature importances: shares of the votes, and of the contributions to scores on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.plots import style, terms
from gpustump.plots.shapes import contributions_of, largest
from gpustump.plots.terms import Pair, Samples, Term

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importances(
    model: Any,
    X: Any = None,
    *,
    sample_weight: Any = None,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the shares of features, and of pairs of features, as bars, the largest on top.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
    X : array or frame (n_samples, n_features), optional
        With it, shares of the contributions over its samples are drawn beside the shares of the
        votes, and order the features. If contributions are the same in all rows, a text says so.
    sample_weight : array (n_samples,), optional
        The weights of the samples.
    n_features : int
        How many features and pairs have bars; a text below gives the share of the others.
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
    A pair of features has a share of the contributions, and no votes. A column of text that is one
    feature for each value has the sum of their shares.

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
    samples = terms.samples_of(model, X, sample_weight)
    contributions = contributions_of(ensemble, samples)
    n_bars = min(n_features, len(ensemble.used_features) + len(ensemble.pairs))
    ax = style.tidy_axes(ax, height=1.3 + 0.3 * max(n_bars, 2))
    draw_shares(ax, ensemble, contributions, samples, n_features)
    return style.make_current(ax)


def draw_shares(
    ax: Axes,
    model: StumpEnsemble,
    contributions: np.ndarray,
    samples: Samples | None,
    limit: int,
) -> None:
    """Draw bars for the largest shares of terms."""
    of_votes = terms.votes_of_terms
    kinds = {"votes": (of_votes(model), [of_votes(bag) for bag in model.bag_models])}
    if samples is not None and contributions.any():
        of_bags = [contributions_of(bag, samples) for bag in model.bag_models]
        kinds = {"contributions": (contributions, of_bags), **kinds}
    every = terms.terms_of(model)
    ranking = terms.shares_of(next(iter(kinds.values()))[0], every)
    chosen = largest(ranking, limit)
    if not chosen:
        style.leave_empty(ax, "no feature has votes" if model.pairs else "no feature is used")
        return
    shown = [every[k] for k in chosen]
    _draw_bars(ax, kinds, shown)
    ax.set_yticks(range(len(shown)), [terms.name_of(model, term) for term in shown])
    ax.set_ylim(max(len(shown), 3) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    of = "" if model.has_one_score else ", all classes"
    what = f"share of the votes{of}" if len(kinds) == 1 else f"share{of}"
    rest = _rest(ranking, chosen, every)
    if model.pairs:  # a line is too short for all of it
        what, rest = f"{what} (pairs have no votes)", rest.replace("; ", "\n", 1)
    if samples is not None and len(kinds) == 1:
        style.legend_above(ax, [], [], title="contributions are the same in all rows")
    lines = f"\nlines: {style.bag_text(model.n_bags)}" if model.n_bags > 1 else ""
    ax.set(xticks=[], xlabel=what + rest + lines)


def _draw_bars(
    ax: Axes, kinds: dict[str, tuple[np.ndarray, list[np.ndarray]]], shown: Sequence[Term]
) -> None:
    """A bar for each term and kind of share, with its number; pairs have no votes."""
    looks: dict[str, Any] = {
        "contributions": {"facecolor": style.BLUE, "edgecolor": style.BLUE},
        "votes": {"facecolor": style.tint(style.ORANGE, 0.78), "edgecolor": "#8a6000"},
    }
    height, top = 0.72 / len(kinds), 0.0
    is_pair = np.asarray([isinstance(term, Pair) for term in shown])
    for k, (name, (own, bags)) in enumerate(kinds.items()):
        shares = terms.shares_of(own, shown)
        shares = np.where(is_pair, np.nan, shares) if name == "votes" else shares
        shift = (k - (len(kinds) - 1) / 2) * height
        rows = np.arange(len(shown)) + np.where(is_pair, 0.0, shift)
        look, deviations = {"label": name, "linewidth": 0.6, **looks[name]}, np.zeros(len(shown))
        if bags:
            deviations = np.std([terms.shares_of(one, shown) for one in bags], axis=0, ddof=1)
            look |= {"xerr": deviations, **style.bag_lines()}
        bars = ax.barh(rows, shares, 0.9 * height, **look)
        texts = ["" if np.isnan(share) else style.percent(share) for share in shares]
        ax.bar_label(bars, texts, padding=3, fontsize="x-small")
        top = max(top, float(np.nan_to_num(shares + deviations).max()))
    ax.set_xlim(0, 1.12 * top)
    if len(kinds) > 1:
        style.legend_above(ax, *ax.get_legend_handles_labels())


def _rest(ranking: np.ndarray, chosen: list[int], every: Sequence[Term]) -> str:
    """The share of the features and pairs without a bar, as text."""
    rest = {*np.flatnonzero(ranking > 0).tolist()} - {*chosen}
    if not rest:
        return ""
    left = style.percent(float(1 - ranking[chosen].sum()))
    what = terms.counted_terms([every[k] for k in rest])
    return f"; {len(rest)} more {what} {'have' if len(rest) > 1 else 'has'} {left}"
