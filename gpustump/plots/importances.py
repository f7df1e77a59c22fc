"""Which features matter: by votes, and by what the votes come to on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.plots import inputs, style
from gpustump.plots.shapes import importances_of, percent, top
from gpustump.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importances(model: Any, X: Any = None, *, n_features: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the features' shares as bars, the largest on top.

    Parameters
    ----------
    model : AdaBoostClassifier, DecisionStumpClassifier or StumpEnsemble
    X : array or frame (n_samples, n_features), optional
        With it, shares of the contributions over its samples stand beside the shares of the votes,
        and order the features.
    n_features : int
        How many features have bars; what is left to the others is said below.
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
    `StumpEnsemble.feature_importances`: the sum of a feature's votes, as a share.
    `StumpEnsemble.contribution_importances`: the mean absolute deviation of its contributions, as a
    share. Votes may cancel out, or part few samples; contributions show what comes of them.
    """
    ensemble = inputs.model_of(model)
    check_count(n_features, "n_features")
    kinds = {"votes": ensemble.feature_importances()}
    if X is not None:
        kinds = {"contributions": importances_of(model, ensemble, X), **kinds}
    ranking = next(iter(kinds.values()))
    chosen = top(ranking, n_features)
    ax = style.tidy_axes(ax, height=1.3 + 0.3 * max(len(chosen), 2))
    if not chosen:
        style.leave_empty(ax, "no feature is used")
        return ax
    _bars(ax, {kind: shares[chosen] for kind, shares in kinds.items()})
    names = [inputs.feature_name(ensemble, index) for index in chosen]
    ax.set_yticks(range(len(chosen)), names)
    ax.set_ylim(max(len(chosen), 3) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    of = "" if ensemble.is_binary else ", all classes"
    what = f"share of the votes{of}" if X is None else f"share{of}"
    ax.set(xticks=[], xlabel=what + _rest(ranking, chosen))
    return ax


def _bars(ax: Axes, kinds: dict[str, np.ndarray]) -> None:
    """A bar for each feature and kind of share, with its number."""
    looks: dict[str, Any] = {
        "contributions": {"facecolor": style.BLUE, "edgecolor": style.BLUE},
        "votes": {"facecolor": style.tint(style.ORANGE, 0.78), "edgecolor": "#8a6000"},
    }
    height = 0.72 / len(kinds)
    for k, (kind, shares) in enumerate(kinds.items()):
        rows = np.arange(len(shares)) + (k - (len(kinds) - 1) / 2) * height
        bars = ax.barh(rows, shares, 0.9 * height, label=kind, linewidth=0.6, **looks[kind])
        texts = [percent(share) for share in shares]
        ax.bar_label(bars, texts, padding=3, fontsize="x-small")
    ax.set_xlim(0, 1.12 * max(shares.max() for shares in kinds.values()))
    if len(kinds) > 1:
        style.legend_above(ax, *ax.get_legend_handles_labels())


def _rest(ranking: np.ndarray, chosen: list[int]) -> str:
    """What the features without a bar have."""
    rest = int((ranking > 0).sum()) - len(chosen)
    if rest <= 0:
        return ""
    left = percent(float(1 - ranking[chosen].sum()))
    return f"; {rest} more feature{'s have' if rest > 1 else ' has'} {left}"
