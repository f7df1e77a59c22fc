"""Feature importances: shares of the votes, and of the contributions to scores on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.plots import inputs, style
from gpustump.plots.columns import Column, Groups, columns_of, name_of, shares_of
from gpustump.plots.panels import percent
from gpustump.plots.shapes import contributions_of, largest, top

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """
    ensemble = model_of(model)
    check_count(n_features, "n_features")
    columns = columns_of(ensemble, groups)
    samples = inputs.samples_of(model, X, sample_weight)
    contributions = contributions_of(ensemble, samples)
    n_bars = len(top(ensemble, contributions, columns, n_features))
    ax = style.tidy_axes(ax, height=1.3 + 0.3 * max(n_bars, 2))
    draw_shares(ax, ensemble, None if samples is None else contributions, columns, n_features)
    return style.make_current(ax)


def draw_shares(
    ax: Axes,
    model: StumpEnsemble,
    contributions: np.ndarray | None,
    columns: Sequence[Column],
    n_columns: int,
) -> None:
    """Bars for the columns' shares; `contributions` is None if there are no samples."""
    kinds = {"votes": shares_of(model.feature_importances(), columns)}
    if contributions is not None and contributions.any():
        kinds = {"contributions": shares_of(contributions, columns), **kinds}
    ranking = next(iter(kinds.values()))
    chosen = largest(ranking, n_columns)
    if not chosen:
        style.leave_empty(ax, "no feature is used")
        return
    _bars(ax, {kind: shares[chosen] for kind, shares in kinds.items()})
    names = [name_of(model, columns[k]) for k in chosen]
    ax.set_yticks(range(len(chosen)), names)
    ax.set_ylim(max(len(chosen), 3) - 0.45, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["bottom"].set_visible(False)
    of = "" if model.is_binary else ", all classes"
    what = f"share of the votes{of}" if len(kinds) == 1 else f"share{of}"
    if contributions is not None and len(kinds) == 1:
        style.legend_above(ax, [], [], title="contributions are the same in all rows")
    ax.set(xticks=[], xlabel=what + _rest(ranking, chosen))


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
    """The share of the features without a bar, as text."""
    rest = int((ranking > 0).sum()) - len(chosen)
    if rest <= 0:
        return ""
    left = percent(float(1 - ranking[chosen].sum()))
    return f"; {rest} more feature{'s have' if rest > 1 else ' has'} {left}"
