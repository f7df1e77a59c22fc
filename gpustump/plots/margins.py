"""Margins: how decidedly the samples are classified, and how that grows with the rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.ensemble import Label
from gpustump.plots import inputs, style
from gpustump.theory import normalised_margins
from gpustump.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDS = (5, 100)
"""After these, and after all of them, as Schapire et al. drew them."""

_LOOKS = (
    {"color": style.BLUE, "linestyle": style.DASHES[0], "linewidth": 1.8},
    {"color": style.VERMILION, "linestyle": style.DASHES[1], "linewidth": 1.6},
    {"color": style.BLACK, "linestyle": style.DASHES[2], "linewidth": 1.6},
    {"color": style.GREEN, "linestyle": style.DASHES[3], "linewidth": 1.4},
    {"color": style.PURPLE, "linestyle": style.DASHES[4], "linewidth": 1.4},
)


def margin_distribution(
    model: Any,
    X: Any,
    y: Any,
    *,
    rounds: Iterable[int] | None = None,
    label: Label | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cumulative distribution of the samples' margins, after some numbers of rounds.

    Parameters
    ----------
    model : AdaBoostClassifier, DecisionStumpClassifier or StumpEnsemble
    X : array or frame (n_samples, n_features)
    y : array (n_samples,)
        Labels of the model's classes.
    rounds : iterable of int, optional
        At most 5 numbers; 5, 100 and all by default, as far as there are so many.
    label : bool, int, float or str, optional
        With more than two classes, the class whose margins against the rest are meant.
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
    Schapire, Freund, Bartlett and Lee (1998), figure 1: the share of the samples with a normalised
    margin (`gpustump.theory.normalised_margins`) of theta or less, for each theta. Left of 0 are
    the samples that the vote gets wrong.
    """
    ensemble = inputs.model_of(model)
    number = ensemble.member_index(label)
    chosen = _chosen(rounds, len(ensemble.members[number]))
    X = inputs.table_of(model, X)
    ax = style.tidy_axes(ax)
    ax.axvline(0.0, color=style.GREY, linewidth=0.8)
    for count, look in reversed(list(zip(chosen[::-1], _LOOKS, strict=False))):
        margins = arrays.to_host(normalised_margins(ensemble.truncated(count), X, y))
        column = margins if ensemble.is_binary else margins[:, number]
        rounds_text = f"{count} round{'s' * (count != 1)}"
        ax.plot(*_corners(column), label=rounds_text, **look)
    ax.set(
        xlim=(-1.01, 1.01), ylim=(0, 1.01), ylabel="share of the samples with that margin or less"
    )
    against = "" if ensemble.is_binary else f", {inputs.score_name(ensemble, label)} against rest"
    ax.set_xlabel(f"normalised margin{against}")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    return ax


def _chosen(rounds: Iterable[int] | None, n_rounds: int) -> list[int]:
    """Numbers of rounds, increasing."""
    if rounds is None:
        return sorted({min(count, n_rounds) for count in (*_ROUNDS, n_rounds)})
    chosen = sorted({check_count(count, "rounds", least=0) for count in rounds})
    if not 1 <= len(chosen) <= len(_LOOKS):
        raise ValueError(f"rounds must be 1 to {len(_LOOKS)} numbers; got {len(chosen)}.")
    if chosen[-1] > n_rounds:
        raise ValueError(f"rounds must be at most {n_rounds}, all there are; got {chosen[-1]}.")
    return chosen


def _corners(margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cumulative distribution from -1 to 1: it rises at each margin."""
    values, counts = np.unique(margins, return_counts=True)
    shares = np.concatenate([[0], np.cumsum(counts)]) / len(margins)
    edges = np.concatenate([[-1.0], values, [1.0]])
    return np.repeat(edges, 2)[1:-1], np.repeat(shares, 2)
