"""The spread of a bin, from the sums over its parts; see `histogram.residual_sums`."""

from __future__ import annotations

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.split.slices import Slices  # noqa: F401  # a signature names it

_OUTWARDS = 2.0**-40
"""By what share a spread is widened."""


@kernel("void(int64[::1], Slices, float64[::1])")
def note_spread(slots, cells, spread):  # type: ignore[no-untyped-def]
    """Lower the spreads of some bins to what the exact sums over their cells say.

    At an edge between cells A - B G / H is known. Inside a cell A differs from that at its left
    edge by no more than its positive or negative gradients add up to, and B by no more than
    its weights.
    """
    up, down, curve, other = cells.sums[0], cells.sums[1], cells.sums[2], cells.sums[3]
    for t in range(len(slots)):
        start, end = cells.first[t], cells.first[t] + cells.n_cells[t]
        gradient, hessian = 0, 0
        for u in range(start, end):
            gradient += up[u] - down[u]
            hessian += curve[u] + other[u]
        slope = float(gradient) / float(max(hessian, 1))
        a, b, most = 0, 0, 0.0
        for u in range(start, end):
            apart, weight = abs(float(a) - slope * float(b)), curve[u] + other[u]
            if cells.is_open[u]:
                inside = float(max(up[u], down[u])) + abs(slope) * float(weight)
                most = max(most, apart + inside)
            a += up[u] - down[u]
            b += weight
            most = max(most, abs(float(a) - slope * float(b)))
        size = abs(float(gradient)) + 1.0  # for the roundings of the products
        found = most * (1.0 + _OUTWARDS) + size * _OUTWARDS
        spread[slots[t]] = min(spread[slots[t]], found)
