"""Tables of exponentials, from which engines compute what votes multiply by.

An exponential is computed as the sum of two floats. The host makes the tables, by decimal
arithmetic; kernels multiply their entries (`cpu/rounds/exact_powers.py`, `cuda/powers.cuh`).
"""

from __future__ import annotations

import decimal
import functools
from decimal import Decimal
from typing import Annotated, NamedTuple

import numpy as np

LARGEST = 16
"""Largest absolute value of the numbers whose exponentials kernels compute."""

DOUBT = 2.0**-73
"""More than the relative error of what kernels compute from the tables: 2**-75."""


class Powers(NamedTuple):
    """Tables of exponentials, each as the nearest float and the rounding error.

    Attributes
    ----------
    whole : ndarray (2 * LARGEST + 1, 2) of float64
        exp(i) for i from -LARGEST on.
    parts : ndarray (256, 2) of float64
        exp(k/256).
    doubt : float
        Bound of the relative error of results.
    """

    whole: Annotated[np.ndarray, "float64[:, ::1]"]
    parts: Annotated[np.ndarray, "float64[:, ::1]"]
    doubt: float


@functools.cache
def powers() -> Powers:
    """The tables, made once."""
    with decimal.localcontext(decimal.Context(prec=50, rounding=decimal.ROUND_HALF_EVEN)):
        whole = [_in_two(Decimal(i).exp()) for i in range(-LARGEST, LARGEST + 1)]
        parts = [_in_two((Decimal(k) / 256).exp()) for k in range(256)]
    return Powers(np.asarray(whole), np.asarray(parts), DOUBT)


def _in_two(exactly: Decimal) -> tuple[float, float]:
    nearest = float(exactly)
    return nearest, float(exactly - Decimal(nearest))
