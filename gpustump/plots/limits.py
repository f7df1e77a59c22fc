"""Which stretch of a feature a picture shows."""

from __future__ import annotations

import math

import numpy as np

_TAILS = 6.0
"""Tails are cut off where they make the whole so many times as wide as the bulk."""

_LARGEST = 1e150
"""Beyond this, Matplotlib's own arithmetic overflows."""


_SMALLEST = 1e-280
"""Axes that go no further from 0 than this are taken for empty by Matplotlib."""


def unit(values: np.ndarray) -> float:
    """The power of ten to draw a feature in: 1, unless Matplotlib could not draw most of it then.

    Parameters
    ----------
    values : ndarray of float64
        In any order; those that are not finite do not count.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not sizes.size:
        return 1.0
    large = float(np.quantile(sizes, 0.9, method="higher"))
    if _SMALLEST <= large <= _LARGEST:
        return 1.0
    return 10.0 ** max(math.floor(math.log10(large)), -323)


def in_unit(values: np.ndarray, unit: float) -> np.ndarray:
    """Values as they are drawn; infinite where they are out of all proportion to the unit."""
    with np.errstate(over="ignore"):
        return values if unit == 1.0 else values / unit


def unit_text(unit: float) -> str:
    """What is said of it behind a feature's name."""
    return "" if unit == 1.0 else f" (in units of {unit:.0e})"


def span(values: np.ndarray, pad: float) -> tuple[float, float]:
    """From the least finite value to the greatest, and a share of that on both sides.

    Parameters
    ----------
    values : ndarray of float64
        In any order; if none of them is finite, the span is that of 0 and 1.
    pad : float
    """
    finite = _finite(values)
    if not finite.size:
        return -pad, 1.0 + pad
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        margin = abs(low) or 0.5
    else:
        # Where that is all that rounding leaves of a narrow span, at least neighbouring numbers.
        margin = max((high - low) * pad, 8 * float(np.spacing(max(abs(low), abs(high)))))
    return low - margin, high + margin


def bulk(values: np.ndarray, pad: float, *, core: tuple[float, float]) -> tuple[float, float]:
    """As `span`, without tails that would leave the bulk of the values no room.

    `core` are the quantiles between which the bulk lies.
    """
    low, high = span(values, pad)
    finite = _finite(values)
    if finite.size < 3:
        return low, high
    first, last = np.quantile(finite, core)
    width = float(last - first)
    if width == 0.0 or high - low <= _TAILS * width:
        return low, high
    return max(low, float(first) - width / 2), min(high, float(last) + width / 2)


def _finite(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = values[np.abs(values) <= _LARGEST]
    return finite
