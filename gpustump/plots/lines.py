"""One stump or several as lines in the plane of two features, with the weighted samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.data.labels import check_signs
from gpustump.data.parameters import check_count
from gpustump.data.tables import check_table
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import condition
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
"""The length of an arrow to the side of +1, as a share of the axes' width."""

_MEAN, _SMALLEST, _LARGEST = 28.0, 2.0, 400.0
"""Areas of points, in square points: for the mean weight, and the limits."""


@dataclass(frozen=True)
class _Samples:
    """The samples in the plane of two features.

    Attributes
    ----------
    points : ndarray (2, n_samples) of float64
        Each sample's two values.
    labels : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    areas : list of ndarray (n_samples,)
        The points' areas under each weighting; empty if no weights are given.
    """

    points: np.ndarray
    labels: np.ndarray
    areas: list[np.ndarray]


@dataclass(frozen=True)
class _Plane:
    """The axes of two features, and the units that they are drawn in."""

    ax: Axes
    pair: tuple[int, int]
    units: tuple[float, float]


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
    """Draw the thresholds of stumps in the plane of two features, and the samples.

    Parameters
    ----------
    stumps : Stump, Interval, or an iterable of them
        Up to 5, each with its own dashes; arrows point to the side where it predicts +1.
    X : array (n_samples, n_features), optional
    y : array (n_samples,), optional
        Labels -1 and +1; given with X.
    sample_weights : array (n_samples,), or a sequence of these, optional
        The areas of the points. None in a sequence stands for equal weights. The weights after the
        first, up to one for each stump, are drawn as rings around the points, with the stump's
        colour and dashes.
    features : two ints
        On the x axis and on the y axis.
    labels : sequence of str, optional
        The stumps' names; by default their rules.
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
    Algorithms, chapter 1, draw weak learners under several weightings in this way. Values too large
    or too small for Matplotlib are drawn in units of a power of ten, which the axis names.

    Examples
    --------
    >>> from gpustump import boost, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [-1, -1, 1, -1, 1]
    >>> stumps = [record.stump for record in boost(X, y, n_rounds=2)]
    >>> ax = plots.stump_lines(stumps, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['−1 where $x_{0}$ ≤ 2.5', '−1 where $x_{0}$ ≤ 4.5', 'label +1', 'label −1']
    """
    drawn = _listed(stumps)
    pair = inputs.feature_pair(features, lambda feature: check_count(feature, "features", least=0))
    names = _checked_names(drawn, pair, labels)
    samples = _checked_samples(X, y, sample_weights, pair, len(drawn))
    plane = _plane_of(style.tidy_axes(ax, 5.2, 4.6), pair, drawn, samples)
    if samples is not None:
        _draw_samples(plane, samples)
    handles, texts = ([], []) if samples is None else _point_handles()
    shifts = [(0.03 + 0.05 * k, 0.97 - 0.05 * (len(drawn) - 1 - k)) for k in range(len(drawn))]
    lines = [_draw_stump(plane, k, *of) for k, of in enumerate(zip(drawn, shifts, strict=True))]
    style.legend_above(plane.ax, lines + handles, names + texts, ncols=2)
    return style.make_current(plane.ax)


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
    """The stumps' names, after checking that the stumps can be drawn."""
    if not 1 <= len(stumps) <= len(_COLOURS):
        raise ValueError(f"stumps must be 1 to {len(_COLOURS)}; got {len(stumps)}.")
    for k, stump in enumerate(stumps):
        if not isinstance(stump, Stump | Interval):
            raise TypeError(f"stumps[{k}] must be a Stump or an Interval; got {stump!r}.")
        if stump.feature not in pair and not stump.is_constant:
            raise ValueError(
                f"stumps[{k}] is on feature {stump.feature}, which is none of the features {pair}."
            )
    if labels is None:
        return [_rule(stump) for stump in stumps]
    if isinstance(labels, str) or len(labels) != len(stumps):
        raise ValueError(f"labels must be {len(stumps)}, one for each stump; got {labels!r}.")
    return [style.words(label, 60) for label in labels]


def _rule(stump: Stump | Interval) -> str:
    """What a stump predicts, for the legend."""
    if stump.is_constant:
        return f"always {stump.polarity:+d}".replace("-", "−")
    name = f"$x_{{{stump.feature}}}$"
    where = condition(stump, name, number="{:.6g}".format, at_most="≤")
    return f"{stump.polarity:+d} where ".replace("-", "−") + where


def _checked_samples(
    X: Any, y: Any, sample_weights: Any, pair: tuple[int, int], n_stumps: int
) -> _Samples | None:
    """The samples to draw; None if none are given."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: the samples and their labels.")
    if X is None:
        if sample_weights is not None:
            raise ValueError("sample_weights is given without X; give both, or neither.")
        return None
    X = check_table(X, min_features=max(pair) + 1)
    with arrays.computing_on(X):
        labels = arrays.to_host(check_signs(y, X))
    points = np.stack([inputs.column_of(X, feature) for feature in pair])
    weightings = [] if sample_weights is None else _weightings(sample_weights)
    if len(weightings) > n_stumps:
        raise ValueError(
            f"sample_weights must be at most {n_stumps}, one for each stump; got {len(weightings)}."
        )
    return _Samples(points, labels, [_areas(one, points[0]) for one in weightings])


def _weightings(given: Any) -> list[Any]:
    """A list of weight vectors, from one vector or a sequence of them."""
    if isinstance(given, list | tuple) and len(given) > 0:
        host = [_on_host(one) for one in given]
        is_one = all(one is not None and np.ndim(one) == 0 for one in host)
        return [host] if is_one else host
    host = _on_host(given)
    return [host] if np.ndim(host) < 2 else list(host)


def _on_host(values: Any) -> Any:
    return arrays.to_host(values) if arrays.is_array(values) else values


def _areas(sample_weight: Any, values: np.ndarray) -> np.ndarray:
    """Areas of points, proportional to the weights between the limits."""
    weights = inputs.weights_of(sample_weight, values).values
    areas: np.ndarray = np.clip(_MEAN * weights / weights.mean(), _SMALLEST, _LARGEST)
    return areas


def _plane_of(
    ax: Axes, pair: tuple[int, int], stumps: list[Stump | Interval], samples: _Samples | None
) -> _Plane:
    """Axes with all samples and all thresholds in view."""
    units = []
    for k, feature in enumerate(pair):
        cuts = [at for stump in stumps if stump.feature == feature for at in stump.thresholds]
        known = np.asarray(cuts, dtype=np.float64)
        if samples is not None:
            known = np.concatenate([known, samples.points[k]])
        unit = limits.unit(known)
        view = limits.span(limits.in_unit(known, unit), 0.15 if samples is None else 0.07)
        (ax.set_ylim if k else ax.set_xlim)(*view)
        (ax.set_ylabel if k else ax.set_xlabel)(f"feature {feature}{limits.unit_text(unit)}")
        if samples is not None:
            axis = ax.yaxis if k else ax.xaxis
            style.whole_ticks(axis, is_whole=limits.is_whole(samples.points[k], view))
        units.append(unit)
    return _Plane(ax, pair, (units[0], units[1]))


def _draw_samples(plane: _Plane, samples: _Samples) -> None:
    """A point for each sample with a shape for its label, and a ring for each further weighting."""
    points = np.stack([limits.in_unit(samples.points[k], plane.units[k]) for k in (0, 1)])
    n_samples = len(samples.labels)
    areas = samples.areas or [np.full(n_samples, style.point_area(n_samples))]
    for sign, (marker, face) in _SHAPES.items():
        here = samples.labels == sign
        x, y = points[:, here]
        edge: Any = {"edgecolor": style.ink(), "linewidth": 0.5}
        plane.ax.scatter(x, y, areas[0][here], marker=marker, facecolor=face, zorder=3, **edge)
        for k, more in enumerate(areas[1:], start=1):
            ring: Any = {"edgecolor": _COLOURS[k], "linestyle": style.DASHES[k], "linewidth": 0.8}
            plane.ax.scatter(x, y, more[here], marker=marker, facecolor="none", zorder=4, **ring)


def _point_handles() -> tuple[list[Any], list[str]]:
    """Legend entries for the labels, of one size for all weights."""
    from matplotlib.lines import Line2D

    look: Any = {"linestyle": "", "markeredgecolor": style.ink(), "markeredgewidth": 0.5}
    handles = [
        Line2D([], [], marker=marker, markerfacecolor=face, markersize=6, **look)
        for marker, face in _SHAPES.values()
    ]
    return handles, ["label +1", "label −1"]


def _draw_stump(plane: _Plane, k: int, stump: Stump | Interval, places: tuple[float, float]) -> Any:
    """The lines of stump k, and arrows at some places along them; returns its legend entry."""
    from matplotlib.lines import Line2D

    look = style.seen({"color": _COLOURS[k], "linestyle": style.DASHES[k], "linewidth": 1.7})
    if stump.is_constant:
        return Line2D([], [], linestyle="")
    axis = plane.pair.index(stump.feature)
    draw = plane.ax.axhline if axis else plane.ax.axvline
    sides = pairwise(signs(stump)[region] for region in stump.slices)
    for at, (below, above) in zip(stump.thresholds, sides, strict=True):
        cut = float(limits.in_unit(np.asarray(at), plane.units[axis]))
        if not np.isfinite(cut):
            continue
        draw(cut, zorder=5, gid=f"stump {k}", **look)
        for along in places:
            arrow = _Arrow(axis, cut, along, goes_up=below < above)
            arrow.draw(plane.ax, look["color"])
    return Line2D([], [], **look)


@dataclass(frozen=True)
class _Arrow:
    """An arrow from a line to its side of +1.

    Attributes
    ----------
    axis : int
        0 for the x axis, which an upright line crosses; 1 for the y axis.
    cut : float
        Where the line crosses the axis.
    along : float
        The arrow's place on the line, as a share of the axes' size.
    goes_up : bool
        Whether it points to larger values.
    """

    axis: int
    cut: float
    along: float
    goes_up: bool

    def draw(self, ax: Axes, colour: str) -> None:
        low, high = ax.get_ylim() if self.axis else ax.get_xlim()
        start = (self.cut - low) / (high - low)
        way = 1 if self.goes_up else -1
        look: Any = {"xycoords": "axes fraction", "zorder": 5}
        head = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0}
        end = start + way * _ARROW
        ax.annotate("", xy=self._point(end), xytext=self._point(start), arrowprops=head, **look)
        paper = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
        if self.axis:
            aligned = {"ha": "center", "va": "bottom" if self.goes_up else "top"}
        else:
            aligned = {"ha": "left" if self.goes_up else "right", "va": "center"}
        look |= {"color": colour, "fontsize": "x-small", "bbox": paper, **aligned}
        ax.annotate("+1", self._point(end + way * 0.005), **look)

    def _point(self, across: float) -> tuple[float, float]:
        """A point beside the line, in shares of the axes' width and height."""
        return (self.along, across) if self.axis else (across, self.along)
