"""The limits and units of an axis that shows a feature's values."""

from __future__ import annotations

import math

import numpy as np

_TAILS = 6.0
"""Tails are cut off if all values span more than this many times the width of the bulk."""

_BULK = (0.05, 0.95)
"""The quantiles between which the bulk of the values lies."""

_LARGEST = 1e150
"""Larger values overflow in Matplotlib's own arithmetic."""

_LONG = 1e5
"""Larger whole numbers are written with a power of ten."""

_SMALLEST = 1e-280
"""Matplotlib treats an axis with only smaller values as empty."""


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
    if high - low <= _TAILS * width:
        return low, high
    return max(low, first - width / 2), min(high, last + width / 2)


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
