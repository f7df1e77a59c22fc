"""Thresholds: between two values when they are learnt, and in the data's dtype when compared."""

from __future__ import annotations

from typing import Any

import numpy as np


def rounded_down(thresholds: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 thresholds as the largest values of a dtype that are not above them.

    A value of that dtype is at most the rounded threshold exactly if it is at most the original,
    so data need not be widened to be compared.
    """
    with np.errstate(all="ignore"):
        nearest = thresholds.astype(dtype)
        below = np.nextafter(nearest, np.asarray(-np.inf, dtype=dtype))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest)


def midpoint(low: Any, high: Any) -> float:
    """A threshold between two values, computed in their own dtype.

    Where the midpoint rounds up to the higher value, overflows or is undefined, it is the lower one
    itself, so that comparing with it always parts the samples just where the scan did.
    """
    with np.errstate(all="ignore"):
        middle = (low + high) / low.dtype.type(2)
    return float(middle if low <= middle < high else low) + 0.0  # one zero, never minus zero


def midpoints(values: np.ndarray) -> np.ndarray:
    """The `midpoint` of each of k increasing values and the next, (k - 1,) of float64."""
    low, high = values[:-1], values[1:]
    with np.errstate(all="ignore"):
        middle = (low + high) / values.dtype.type(2)
    return np.where((low <= middle) & (middle < high), middle, low).astype(np.float64) + 0.0
