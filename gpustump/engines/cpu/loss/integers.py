"""The integers that follow from a sample's odds or probabilities, in kernels.

A gradient holds its label's sign before, and has it afterwards: it is never 0.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.integer_weights import FLOOR

CEILING = 1.0 / FLOOR
"""The largest odds."""


@inner("UniTuple(int64, 2)(float64[::1], float64[::1], int64[::1], int64[::1])")
def integers_of_odds(odds, units, gradient, hessian):  # type: ignore[no-untyped-def]
    """Set both integers of each sample; returns their sums."""
    total, size = 0, 0
    for i in range(len(odds)):
        below = odds[i] + 1.0
        slope = units[i] * (odds[i] / below)
        whole = np.int64(np.ceil(slope))
        curve = np.int64(np.ceil(slope * (1.0 / below)))
        signed = whole if gradient[i] > 0 else -whole
        gradient[i] = signed
        hessian[i] = curve
        total += signed
        size += curve
    return total, size


@inner("UniTuple(int64, 2)(float64[::1], float64[::1], int64[::1], int64[::1])")
def integers_of_probabilities(probabilities, units, gradient, hessian):  # type: ignore[no-untyped-def]
    """Set both integers, at least 1, of an output of each sample; returns their sums."""
    total, size = 0, 0
    for i in range(len(probabilities)):
        own, positive = probabilities[i], gradient[i] > 0
        rest = 1.0 - own
        slope = np.ceil(units[i] * (rest if positive else own))
        curve = np.ceil((units[i] * own) * rest)
        whole = np.int64(slope if slope > 1.0 else 1.0)
        below = np.int64(curve if curve > 1.0 else 1.0)
        signed = whole if positive else -whole
        gradient[i] = signed
        hessian[i] = below
        total += signed
        size += below
    return total, size
