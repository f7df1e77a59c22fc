"""The limits, units and scale of an axis that shows a feature's values."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_TAILS = 6.0
"""Tails are cut off if all values span more than this many times the width of the bulk."""

_FEW, _TAILS_OF_FEW = 20, 40.0
"""Of fewer values than this, such as the thresholds of a small model, each one counts: their tails
are cut off only if they are longer."""

_BULK = (0.05, 0.95)
"""The quantiles between which the bulk of the values lies."""

_LARGEST = 1e150
"""Larger values overflow in Matplotlib's own arithmetic."""

_LONG = 1e5
"""Larger whole numbers are written with a power of ten."""

_SMALLEST = 1e-280
"""Matplotlib treats an axis with only smaller values as empty."""

_SQUEEZED = 0.1
"""Half of the values in a smaller share of the axis than this: the axis becomes logarithmic."""

_DURATIONS = {" (days)": 86400.0, " (hours)": 3600.0, " (minutes)": 60.0}


class View(NamedTuple):
    """The part of an axis that is shown, and its scale.

    Attributes
    ----------
    low, high : float
    scale : str
        As Matplotlib calls it: "linear", "log" or "asinh", which is linear near 0 and logarithmic
        beyond.
    linear_width : float
        Of "asinh": about where the linear part ends.
    """

    low: float
    high: float
    scale: str = "linear"
    linear_width: float = 1.0

    @property
    def note(self) -> str:
        """The scale as text to put after a feature's name; empty if it is linear."""
        notes = {"log": " (log scale)", "asinh": " (log scale, linear near 0)"}
        return notes.get(self.scale, "")


def unit(values: np.ndarray) -> float:
    """The power of ten that a feature's values are divided by.

    It is 1 unless most of the values are too large or too small for Matplotlib.

    Parameters
    ----------
    values : ndarray of float64
        In any order; those that are not finite are ignored.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not sizes.size:
        return 1.0
    large = float(np.quantile(sizes, 0.9, method="higher"))
    if _SMALLEST <= large <= _LARGEST:
        return 1.0
    return 10.0 ** max(math.floor(math.log10(large)), -323)


def in_unit(values: np.ndarray, unit: float) -> np.ndarray:
    """Values divided by the unit; infinite where the quotient overflows."""
    with np.errstate(over="ignore"):
        return values if unit == 1.0 else values / unit


def unit_of_kind(values: np.ndarray, kind: str) -> tuple[float, str]:
    """What values of a kind, as `data.columns` names it, are divided by, and its text as below.

    Datetimes are drawn in days, as Matplotlib draws dates; durations in the largest unit of which
    half of them have two or more.
    """
    if kind == "datetime":
        return 86400.0, ""
    if kind == "duration":
        sizes = np.abs(_finite(values))
        usual = float(np.median(sizes)) if sizes.size else 0.0
        for text, seconds in _DURATIONS.items():
            if usual >= 2 * seconds:
                return seconds, text
        return 1.0, " (seconds)"
    found = unit(values)
    return found, unit_text(found)


def unit_text(unit: float) -> str:
    """The unit as text to put after a feature's name; empty for 1."""
    return "" if unit == 1.0 else f" (in units of {unit:.0e})"


def span(values: np.ndarray, pad: float) -> tuple[float, float]:
    """Limits that show all finite values.

    Parameters
    ----------
    values : ndarray of float64
        In any order; if none of them is finite, the limits are those for 0 and 1.
    pad : float
        The room on both sides, as a share of the values' span.
    """
    finite = _finite(values)
    if not finite.size:
        return -pad, 1.0 + pad
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        margin = abs(low) or 0.5
    else:
        # In a very narrow span the room must be at least a few neighbouring floats.
        margin = max((high - low) * pad, 8 * float(np.spacing(max(abs(low), abs(high)))))
    return low - margin, high + margin


def bulk(values: np.ndarray, pad: float) -> tuple[float, float]:
    """Limits that show all finite values, but cut off long tails.

    Without its tails, an axis shows nine tenths of the values in half of its width or more.

    Parameters
    ----------
    values : ndarray of float64
    pad : float
        As for `span`.
    """
    low, high = span(values, pad)
    finite = _finite(values)
    if finite.size < 3:
        return low, high
    # The quantiles are values themselves: between two values, one outlier among few would count.
    first = float(np.quantile(finite, _BULK[0], method="higher"))
    last = float(np.quantile(finite, _BULK[1], method="lower"))
    width = last - first
    if width <= 0.0:
        return _bulk_beside(first, finite, pad, (low, high))
    longest = _TAILS if finite.size >= _FEW else _TAILS_OF_FEW
    if high - low <= longest * width:
        return low, high
    # Where nothing is cut off, the room is a share of what is shown, not of the tails.
    first, last = first - width / 2, last + width / 2
    room = pad * (min(last, high) - max(first, low))
    return max(float(finite.min()) - room, first), min(float(finite.max()) + room, last)


def readable(values: np.ndarray, pad: float, few: int) -> View:
    """Limits as those of `bulk`, on a logarithmic scale if that spreads the values.

    Skewed values stand in a corner of a linear axis, however it is cut: of a lognormal feature
    half are below the median, and its mean is many times that.

    Parameters
    ----------
    values : ndarray of float64
    pad : float
        As for `span`.
    few : int
        With at most this many distinct values in view the scale is linear.
    """
    linear = bulk(values, pad)
    finite = _finite(values)
    distinct = np.unique(finite)
    usual = _densest_half(distinct, linear)
    n_inside = np.count_nonzero((distinct >= linear[0]) & (distinct <= linear[1]))
    if n_inside <= few or usual >= _SQUEEZED:
        return View(*linear)
    if distinct[0] > 0.0:
        low, high = bulk(np.log(finite), pad)
        found = View(float(np.exp(low)), float(np.exp(high)), "log")
        spread = _densest_half(np.log(distinct), (low, high))
    else:
        width = float(np.quantile(np.abs(distinct[distinct != 0.0]), 0.1))
        low, high = bulk(np.arcsinh(finite / width), pad)
        found = View(float(width * np.sinh(low)), float(width * np.sinh(high)), "asinh", width)
        spread = _densest_half(np.arcsinh(distinct / width), (low, high))
    return found if spread >= 2 * usual else View(*linear)


def _densest_half(values: np.ndarray, view: tuple[float, float]) -> float:
    """The smallest share of the view that holds half of the increasing values in it."""
    inside = values[(values >= view[0]) & (values <= view[1])]
    half = len(inside) // 2
    if not half:
        return 1.0
    return float((inside[half:] - inside[: len(inside) - half]).min()) / (view[1] - view[0])


def _bulk_beside(
    usual: float, finite: np.ndarray, pad: float, whole: tuple[float, float]
) -> tuple[float, float]:
    """The limits if most values are the same one, such as 0: by the bulk of the others."""
    others = finite[finite != usual]
    low, high = bulk(others, pad)
    if (low, high) == span(others, pad):
        return whole
    return max(whole[0], min(low, usual)), min(whole[1], max(high, usual))


def is_whole(values: np.ndarray, view: tuple[float, float]) -> bool:
    """Whether the values in view, one at least, are whole numbers short enough for tick labels."""
    inside = values[(values >= view[0]) & (values <= view[1])]
    is_short = max(map(abs, view)) < _LONG
    return inside.size > 0 and is_short and bool((inside == np.floor(inside)).all())


def are_between_whole(thresholds: np.ndarray, view: tuple[float, float]) -> bool:
    """Whether the thresholds in view may be midpoints of whole numbers, at least two apart."""
    return view[1] - view[0] >= 2 and is_whole(2 * thresholds, (2 * view[0], 2 * view[1]))


def _finite(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = values[np.abs(values) <= _LARGEST]
    return finite
