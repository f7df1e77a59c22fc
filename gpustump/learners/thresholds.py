"""Thresholds: computed between two values in training, and rounded to the data's dtype later."""

from __future__ import annotations

from typing import Any

import numpy as np


def rounded_down(thresholds: np.ndarray, dtype: str) -> np.ndarray:
    """For each threshold (k,) of float64 the largest value of a dtype that is not above it.

    A value of that dtype is at most the rounded threshold exactly if it is at most the original
    one, so data can be compared in its own dtype.
    """
    with np.errstate(all="ignore"):
        nearest = thresholds.astype(dtype)
        below = np.nextafter(nearest, np.asarray(-np.inf, dtype=dtype))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest)


def midpoint(low: Any, high: Any) -> float:
    """A threshold t with low <= t < high: the midpoint, computed in the values' own dtype.

    If the midpoint rounds up to `high`, overflows or is undefined, the threshold is `low`. So
    comparing with it always separates the samples where the scan separated them.
    """
    with np.errstate(all="ignore"):
        middle = (low + high) / low.dtype.type(2)
    return float(middle if low <= middle < high else low) + 0.0  # turns minus zero into zero


def midpoints(values: np.ndarray) -> np.ndarray:
    """The `midpoint` of each of k increasing values and the next, (k - 1,) of float64."""
    low, high = values[:-1], values[1:]
    with np.errstate(all="ignore"):
        middle = (low + high) / values.dtype.type(2)
    return np.where((low <= middle) & (middle < high), middle, low).astype(np.float64) + 0.0
