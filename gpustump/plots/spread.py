"""How far the bags of a model differ: bands around steps, lines at the ends of bars, a caption.

All of them reach one standard deviation over the bags to both sides. That tells how much a model
depends on which samples were drawn for training, not how often it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.model.ensemble import StumpEnsemble
from gpustump.plots import style
from gpustump.plots.columns import Term, places_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALPHA = 0.25
"""How much of a band's colour is seen: the lines of other classes show through it."""


def caption(n_bags: int) -> str:
    """What bands and lines are, as the legend says it."""
    return f"± 1 standard deviation over {n_bags} bags"


def line_look() -> dict[str, Any]:
    """The look of a line at the end of a bar, as `bar` and `barh` take it."""
    own = {"elinewidth": 0.9, "capsize": 2.0, "gid": "spread"}
    return {"ecolor": style.ink(), "error_kw": own}


def fill_band(
    ax: Axes, x: np.ndarray, ends: tuple[np.ndarray, np.ndarray], look: dict[str, Any]
) -> None:
    """A band between two lines of corners, in the colour of the line within it."""
    own: dict[str, Any] = {"alpha": _ALPHA, "linewidth": 0.0, "gid": "band"}
    ax.fill_between(x, ends[0], ends[1], color=look["color"], **own)


def handle(colour: str, *, is_band: bool) -> Any:
    """What stands beside the caption in a legend: a band, or a line with two ends."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if is_band:
        return Patch(facecolor=colour, alpha=_ALPHA, linewidth=0.0)
    return Line2D([], [], color=style.ink(), linewidth=0.9, marker="|", markersize=5)


def of_terms(shares: np.ndarray, terms: Sequence[Term]) -> np.ndarray:
    """The standard deviation of each term's share over the bags, (n_terms,).

    Parameters
    ----------
    shares : ndarray (n_bags, n_features + n_pairs) of float64
    terms : sequence of int, Category or Pair
    """
    sums = [shares[:, list(places_of(term))].sum(axis=1) for term in terms]
    found: np.ndarray = np.std(sums, axis=1, ddof=1)
    return found


def vote_shares(model: StumpEnsemble) -> np.ndarray | None:
    """The `votes_of_terms` of each bag, (n_bags, n_features + n_pairs); None without bags."""
    found = [votes_of_terms(bag) for bag in model.bag_models]
    return np.asarray(found) if found else None


def votes_of_terms(model: StumpEnsemble) -> np.ndarray:
    """The `feature_importances`, and 0 for each pair, as pairs have no stumps."""
    return np.append(model.feature_importances(), np.zeros(len(model.pairs)))


def contribution_shares(model: StumpEnsemble, X: Any, sample_weight: Any) -> np.ndarray | None:
    """The same for `contribution_importances` over a table."""
    found = [bag.contribution_importances(X, sample_weight) for bag in model.bag_models]
    return np.asarray(found) if found else None
