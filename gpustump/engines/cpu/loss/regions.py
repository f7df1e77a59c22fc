"""The region of each sample under a hypothesis: from sorted positions, or from values.

In a sorted table the regions of a cut are ranges of its feature's order. Those of a hypothesis that
no search has just found follow from the values. Coded tables have `coded_regions`.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition
from gpustump.learners.thresholds import rounded_down

SAMPLES_AT_ONCE = 2**15
"""Finding the regions of fewer samples is not worth another thread."""


def mark_by_value(values: np.ndarray, hypothesis: Partition, found: np.ndarray, team: Team) -> None:
    """Write the number of each sample's region; see `learners.hypothesis.regions`.

    Parameters
    ----------
    values : ndarray (n_samples,)
        The feature's values, in the dtype in which they are compared.
    hypothesis : Partition
    found : ndarray (n_samples,) of uint8
    team : Team
    """
    thresholds = rounded_down(np.asarray(hypothesis.thresholds), arrays.dtype_name(values))
    if values.dtype == np.float16:  # kernels do not have that type; this is exact
        values, thresholds = values.astype(np.float32), thresholds.astype(np.float32)
    dtype = str(values.dtype)
    bits = np.require(values, requirements=["C", "A"]).view(dtype.replace("float", "int"))
    ends, slices = arrays.order_keys(thresholds), np.asarray(hypothesis.slices, dtype=np.uint8)
    missing = bits.dtype.type(arrays.missing_key(dtype))
    mark = _mark_in_two if len(ends) == 1 else _mark_values
    n_pieces, size = team.pieces(len(values), SAMPLES_AT_ONCE)
    team.run(mark, n_pieces, bits, ends, slices, missing, found, size)


@kernel("void(int32[::1], int64, int64, int64, uint8[::1])")
def mark_by_position(order, n_present, after, position, regions):  # type: ignore[no-untyped-def]
    """Write the regions of all samples, given in sorted order; see `Cut` for the positions."""
    for k in range(len(order)):
        sample = order[k] & 0x7FFFFFFF
        if k < n_present:
            regions[sample] = FIRST if after < k <= position else SECOND
        else:
            regions[sample] = MISSING


_OF_VALUES = (
    "void(int64, Array(KEY, 1, 'C', readonly=True), KEY[::1], uint8[::1], KEY, uint8[::1], int64)"
)


@parallel(_OF_VALUES, KEY=("int32", "int64"))
def _mark_values(piece, bits, ends, slices, missing, found, size):  # type: ignore[no-untyped-def]
    """The regions of a piece of the values, by their bit patterns; see `arrays.order_keys`."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    low = piece * size
    own, given = bits[low : low + size], found[low : low + size]
    for i in range(len(own)):
        bit = own[i]
        key = bit if bit >= 0 else lowest - bit
        first, after = 0, len(ends)  # sets of categories have hundreds of ends
        while first < after:
            middle = (first + after) // 2
            if key <= ends[middle]:
                after = middle
            else:
                first = middle + 1
        is_missing = key > infinity or key < -infinity
        given[i] = MISSING if is_missing else slices[first]


@parallel(_OF_VALUES, KEY=("int32", "int64"))
def _mark_in_two(piece, bits, ends, slices, missing, found, size):  # type: ignore[no-untyped-def]
    """The same for one threshold, without an inner loop: several values at a time."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    low = piece * size
    own, given = bits[low : low + size], found[low : low + size]
    end, first, second = ends[0], slices[0], slices[1]
    for i in range(len(own)):
        bit = own[i]
        key = bit if bit >= 0 else lowest - bit
        region = first if key <= end else second
        is_missing = (key > infinity) | (key < -infinity)
        given[i] = np.uint8(MISSING) if is_missing else region
