"""One stump or several over two features, as lines: what weak learners make of weighted samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.parameters import check_count
from gpustump.data.signs import check_signs
from gpustump.data.tables import check_table
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.rules import condition
from gpustump.learners.stump import Stump
from gpustump.plots import inputs, limits, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (style.BLACK, style.VERMILION, style.GREEN, style.PURPLE, style.BLUE)
_SHAPES: dict[int, tuple[str, Any]] = {
    1: ("o", style.BLUE),
    -1: ("s", style.tint(style.ORANGE, 0.8)),
}
_ARROW = 0.055
"""How long the arrow to the side of +1 is, in the width of the axes."""

_MEAN, _LEAST, _MOST = 28.0, 2.0, 400.0
"""Areas of points, in square points: of the mean weight, and the limits."""


def stump_lines(
    stumps: Stump | Interval | Iterable[Stump | Interval],
    X: Any = None,
    y: Any = None,
    *,
    sample_weights: Any = None,
    features: Iterable[int] = (0, 1),
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw where stumps cut a plane of two features, and the samples that they were learnt from.

    Parameters
    ----------
    stumps : Stump, Interval, or an iterable of them
        Up to 5, each with its own dashes; arrows point to where it says +1.
    X : array (n_samples, n_features), optional
    y : array (n_samples,), optional
        Labels -1 and +1; given with X.
    sample_weights : array (n_samples,), or a sequence of these, optional
        Areas of the points; None among several stands for equal ones. Further weights, up to one
        for each stump, are drawn as rings around the points, in the stump's own colour and dashes.
    features : two ints
        On the x axis and on the y axis.
    labels : sequence of str, optional
        The stumps' names; by default what they say.
    ax : matplotlib Axes, optional
        A new figure's by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or a stump asks about another feature.
    ImportError
        If Matplotlib is missing.

    Notes
    -----
    A stump is a line at a right angle to its feature's axis [Shalev-Shwartz and Ben-David 2014,
    Understanding Machine Learning, 10.1.1; weak learners under two weightings, as in the toy
    example of Schapire and Freund 2012, Boosting: Foundations and Algorithms, chapter 1]. Values
    too large or too small for Matplotlib are drawn in units of a power of ten, which is then named
    on the axis.
    """
    drawn = _listed(stumps)
    pair = inputs.feature_pair(features, lambda feature: check_count(feature, "features", least=0))
    names = _checked_names(drawn, pair, labels)
    points, signs = _checked_points(X, y, pair)
    weights = _checked_weights(sample_weights, points, len(drawn))
    ax = style.tidy_axes(ax, 5.2, 4.6)
    units = _units(drawn, pair, points)
    if points is not None:
        points = np.stack([limits.in_unit(points[k], units[k]) for k in (0, 1)])
    _set_limits(ax, drawn, pair, points, units)
    known: tuple[list[Any], list[str]] = ([], [])
    if points is not None and signs is not None:
        _draw_points(ax, points, signs, weights)
        known = _point_handles()
    handles = [_draw_stump(ax, stump, pair, units, k, len(drawn)) for k, stump in enumerate(drawn)]
    ax.set_xlabel(f"feature {pair[0]}{limits.unit_text(units[0])}")
    ax.set_ylabel(f"feature {pair[1]}{limits.unit_text(units[1])}")
    style.legend_above(ax, handles + known[0], names + known[1], ncols=2)
    return style.make_current(ax)


def _listed(stumps: Any) -> list[Any]:
    if isinstance(stumps, Stump | Interval):
        return [stumps]
    if not isinstance(stumps, Iterable):
        raise TypeError(
            f"stumps must be a Stump, an Interval, or an iterable of them; got {stumps!r}."
        )
    return list(stumps)


def _checked_names(
    stumps: list[Any], pair: tuple[int, int], labels: Sequence[str] | None
) -> list[str]:
    """What the stumps are called; refuses what cannot be drawn."""
    if not 1 <= len(stumps) <= len(_COLOURS):
        raise ValueError(f"stumps must be 1 to {len(_COLOURS)}; got {len(stumps)}.")
    for k, stump in enumerate(stumps):
        if not isinstance(stump, Stump | Interval):
            raise TypeError(f"stumps[{k}] must be a Stump or an Interval; got {stump!r}.")
        if stump.feature not in pair and not stump.is_constant:
            raise ValueError(
                f"stumps[{k}] asks about feature {stump.feature}, which is none of the features "
                f"{pair}."
            )
    if labels is None:
        return [_rule(stump) for stump in stumps]
    if isinstance(labels, str) or len(labels) != len(stumps):
        raise ValueError(f"labels must be {len(stumps)}, one a stump; got {labels!r}.")
    return [style.words(label, 60) for label in labels]


def _rule(stump: Stump | Interval) -> str:
    if stump.is_constant:
        return f"always {stump.polarity:+d}".replace("-", "−")
    name = f"$x_{{{stump.feature}}}$"
    where = condition(stump, name, number="{:.4g}".format, at_most="≤")
    return f"{stump.polarity:+d} where ".replace("-", "−") + where


def _checked_points(
    X: Any, y: Any, pair: tuple[int, int]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The samples' two values, (2, n_samples), and signs."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the samples and their labels.")
    if X is None:
        return None, None
    X = check_table(X, min_features=max(pair) + 1)
    with arrays.computing_on(X):
        signs = arrays.to_host(check_signs(y, X))
    return np.stack([inputs.column_of(X, feature) for feature in pair]), signs


def _checked_weights(given: Any, points: np.ndarray | None, n_stumps: int) -> list[np.ndarray]:
    """The areas of the points for each weighting, proportional to the weights between limits."""
    if given is None:
        return []
    if points is None:
        raise ValueError("sample_weights is given without X; give both, or neither.")
    is_list = isinstance(given, list | tuple) and len(given) > 0
    host = [_on_host(one) for one in given] if is_list else _on_host(given)
    if is_list:
        is_one = all(one is not None and np.ndim(one) == 0 for one in host)
    else:
        is_one = np.ndim(host) < 2
    weightings = [host] if is_one else list(host)
    if len(weightings) > n_stumps:
        raise ValueError(
            f"sample_weights must be at most {n_stumps}, one a stump; got {len(weightings)}."
        )
    checked = [inputs.weights_of(one, points[0]).values for one in weightings]
    return [np.clip(_MEAN * one / one.mean(), _LEAST, _MOST) for one in checked]


def _on_host(values: Any) -> Any:
    return arrays.to_host(values) if arrays.is_array(values) else values


def _known(
    stumps: list[Stump | Interval], feature: int, values: np.ndarray | None, unit: float
) -> np.ndarray:
    """Where stumps cut a feature, and its values."""
    found = np.asarray([at for s in stumps if s.feature == feature for at in s.thresholds])
    cuts = limits.in_unit(found.astype(np.float64), unit)
    return cuts if values is None else np.concatenate([cuts, values])


def _units(
    stumps: list[Stump | Interval], pair: tuple[int, int], points: np.ndarray | None
) -> tuple[float, float]:
    """What the axes are drawn in."""
    first, second = (
        limits.unit(_known(stumps, feature, None if points is None else points[k], 1.0))
        for k, feature in enumerate(pair)
    )
    return first, second


def _set_limits(
    ax: Axes,
    stumps: list[Stump | Interval],
    pair: tuple[int, int],
    points: np.ndarray | None,
    units: tuple[float, float],
) -> None:
    """All samples and all cuts are in view."""
    for k, feature in enumerate(pair):
        values = _known(stumps, feature, None if points is None else points[k], units[k])
        low, high = limits.span(values, 0.15 if points is None else 0.07)
        (ax.set_ylim if k else ax.set_xlim)(low, high)


def _draw_points(
    ax: Axes, points: np.ndarray, signs: np.ndarray, weights: list[np.ndarray]
) -> None:
    """A shape for each label, as large as its first weight, in rings as large as the others."""
    plain = np.full(len(signs), style.point_area(len(signs)))
    for sign, (marker, face) in _SHAPES.items():
        here = signs == sign
        x, y = points[:, here]
        areas = (weights[0] if weights else plain)[here]
        edge: Any = {"edgecolor": style.ink(), "linewidth": 0.5}
        ax.scatter(x, y, areas, marker=marker, facecolor=face, zorder=3, **edge)
        for k, more in enumerate(weights[1:], start=1):
            ring: Any = {"edgecolor": _COLOURS[k], "linestyle": style.DASHES[k]}
            ax.scatter(
                x, y, more[here], marker=marker, facecolor="none", linewidth=0.8, zorder=4, **ring
            )


def _point_handles() -> tuple[list[Any], list[str]]:
    """What stands for the labels in a legend, whatever the points weigh."""
    from matplotlib.lines import Line2D

    look: Any = {"linestyle": "", "markeredgecolor": style.ink(), "markeredgewidth": 0.5}
    handles = [
        Line2D([], [], marker=marker, markerfacecolor=face, markersize=6, **look)
        for marker, face in _SHAPES.values()
    ]
    return handles, ["label +1", "label −1"]


def _draw_stump(
    ax: Axes,
    stump: Stump | Interval,
    pair: tuple[int, int],
    units: tuple[float, float],
    k: int,
    of: int,
) -> Any:
    """Its lines, and arrows to the side of +1; returns what stands for it in a legend."""
    from matplotlib.lines import Line2D

    look = style.seen({"color": _COLOURS[k], "linestyle": style.DASHES[k], "linewidth": 1.7})
    if stump.is_constant:
        return Line2D([], [], linestyle="")
    is_upright = stump.feature == pair[0]
    unit = units[0] if is_upright else units[1]
    sides = pairwise(signs(stump)[region] for region in stump.slices)
    for at, (below, above) in zip(stump.thresholds, sides, strict=True):
        cut = float(limits.in_unit(np.asarray(at), unit))
        if not np.isfinite(cut):
            continue
        (ax.axvline if is_upright else ax.axhline)(cut, zorder=5, gid=f"stump {k}", **look)
        for along in (0.03 + 0.05 * k, 0.97 - 0.05 * (of - 1 - k)):
            _arrow(
                ax, cut, along, is_upright=is_upright, goes_up=below < above, colour=look["color"]
            )
    return Line2D([], [], **look)


def _arrow(
    ax: Axes, cut: float, along: float, *, is_upright: bool, goes_up: bool, colour: str
) -> None:
    """An arrow from a line to its side of +1; `along` is its place on the line, in axes' widths."""
    limits_ = ax.get_xlim() if is_upright else ax.get_ylim()
    start = (cut - limits_[0]) / (limits_[1] - limits_[0])
    end = start + (_ARROW if goes_up else -_ARROW)
    place = [(at, along) if is_upright else (along, at) for at in (end, start)]
    ax.annotate(
        "",
        xy=place[0],
        xytext=place[1],
        xycoords="axes fraction",
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0},
        zorder=5,
    )
    beyond = end + (0.005 if goes_up else -0.005)
    ax.annotate(
        "+1",
        (beyond, along) if is_upright else (along, beyond),
        xycoords="axes fraction",
        color=colour,
        fontsize="x-small",
        bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
        ha="center" if not is_upright else ("left" if goes_up else "right"),
        va="center" if is_upright else ("bottom" if goes_up else "top"),
        zorder=5,
    )
