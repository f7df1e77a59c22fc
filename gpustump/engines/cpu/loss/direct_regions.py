"""The region of each sample under a cut of a sorted feature."""

from __future__ import annotations

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND


@kernel("void(int32[::1], int64, int64, int64, uint8[::1])")
def mark(order, n_present, after, position, regions):  # type: ignore[no-untyped-def]
    """Write the regions of all samples, given in sorted order; see `Found` for the positions."""
    for k in range(len(order)):
        sample = order[k] & 0x7FFFFFFF
        if k < n_present:
            regions[sample] = FIRST if after < k <= position else SECOND
        else:
            regions[sample] = MISSING
