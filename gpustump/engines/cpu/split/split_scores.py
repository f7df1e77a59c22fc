"""What a region adds to a score: the formulas of `gpustump.engines.gain`, for the kernels.

Each operation is one of IEEE arithmetic, in the order that is defined there, and kernels are
compiled without contraction; so the bits are those of the reference. The parts of an output are
added as (left + right) + missing, then output after output.
"""

from __future__ import annotations

import math

from gpustump.engines.cpu.runtime.compiling import inner


@inner("float64(int64, int64)")
def root(positive, negative):  # type: ignore[no-untyped-def]
    """Real votes: sqrt(P * N)."""
    return math.sqrt(float(positive) * float(negative))


@inner("float64(int64, int64)")
def minus_root(gradient, hessian):  # type: ignore[no-untyped-def]
    """The same with the other sign, from the sums of the gradients and of the Hessians."""
    return -root((hessian + gradient) >> 1, (hessian - gradient) >> 1)


@inner("float64(int64, int64, float64)")
def gain(gradient, hessian, l2):  # type: ignore[no-untyped-def]
    """Newton votes: gradient**2 / (hessian + l2)."""
    x = float(gradient)
    return (x * x) / max(float(hessian) + l2, 1.0)
