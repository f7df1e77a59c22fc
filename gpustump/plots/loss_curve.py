"""The loss curve of a stump: its weighted error over all thresholds of a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.data.parameters import check_count
from gpustump.data.tables import check_table
from gpustump.plots import limits, style
from gpustump.theory.loss_curve import Losses, weighted_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weighted_loss(
    X: Any, y: Any, feature: int, *, sample_weight: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw a stump's weighted error as a function of its threshold, for both polarities.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    feature : int
        The stump's column of X, from 0.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.
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
    `gpustump.losses.weighted_losses`. It is exact, with steps at the values of the samples. Long
    tails are cut off, and a text counts the values there. The mark is the stump that training
    chooses on this feature; if all values are on one side of it, or it is out of view, the mark is
    at the edge. Values too large or too small for Matplotlib are drawn in units of a power of ten,
    which the axis names.
    """
    X = check_table(X)
    index = check_count(feature, "feature", least=0)
    if index >= X.shape[1]:
        raise ValueError(f"feature must be below {X.shape[1]}, the width of X; got {feature!r}.")
    found = weighted_losses(X[:, index], y, sample_weight)
    ax = style.tidy_axes(ax)
    unit = limits.unit(found.values)
    values = limits.in_unit(found.values, unit)
    low, high = limits.bulk(values, 0.08)
    style.chance_line(ax)
    for polarity, errors, colour, dashes in (
        ("+1", found.errors, style.BLUE, style.DASHES[0]),
        ("−1", found.opposite_errors, style.VERMILION, style.DASHES[1]),
    ):
        ax.plot(
            *_corners(values, errors, low, high),
            color=colour,
            linestyle=dashes,
            linewidth=1.6,
            label=f"polarity {polarity}: predicts {polarity} where x ≤ b",
        )
    ax.set(xlim=(low, high), ylim=(0, 1), ylabel="weighted error")
    ax.set_xlabel(f"threshold b on feature {index}{limits.unit_text(unit)}")
    _mark_least(ax, found, unit, (low, high))
    style.whole_ticks(ax.xaxis, is_whole=limits.is_whole(values, (low, high)))
    if beyond := int(((values < low) | (values > high)).sum()):
        text = f"{beyond} value{'s' * (beyond > 1)} beyond"
        style.note(ax, text, x=1.0, y=1.01, ha="right", va="bottom", fontsize="x-small")
    style.legend_above(ax, *ax.get_legend_handles_labels(), ncols=1)
    return style.make_current(ax)


def _corners(
    values: np.ndarray, errors: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the loss curve, which has a step at each value, between two limits."""
    inside = (values > low) & (values < high)
    first = int((values <= low).sum())
    edges = np.concatenate([[low], values[inside], [high]])
    return style.corners(edges, errors[first : first + int(inside.sum()) + 1])


def _mark_least(ax: Axes, found: Losses, unit: float, view: tuple[float, float]) -> None:
    """A point at the minimum, with an entry in the legend."""
    threshold, polarity, error = found.least()
    where = f"at b = {threshold:.6g}" if np.isfinite(threshold) else "constant"
    text = f"minimum: {error:.4g}, {where}, polarity {polarity:+d}".replace("-", "−")
    at = float(np.clip(limits.in_unit(np.asarray(threshold), unit), *view))
    look: Any = {"color": style.ink(), "linestyle": "", "clip_on": False, "zorder": 5}
    ax.plot([at], [error], marker="o", label=text, gid="least", **look)
