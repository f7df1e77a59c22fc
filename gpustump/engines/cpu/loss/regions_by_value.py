"""The region of each sample under a hypothesis, from the values of its feature.

Shards use this, which know a step's threshold but not its sorted position.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import MISSING, Partition
from gpustump.learners.thresholds import rounded_down

_VALUES_AT_ONCE = 2**18
"""Values whose regions one thread finds at a time."""


def give_by_value(values: np.ndarray, hypothesis: Partition, found: np.ndarray, team: Team) -> None:
    """Write the number of each value's region to `found`; see `learners.hypothesis.regions`.

    Parameters
    ----------
    values : ndarray (n_samples,) of float32 or float64
    hypothesis : Partition
    found : ndarray (n_samples,) of uint8
    team : Team
    """
    dtype = str(values.dtype)
    bits = values.view(dtype.replace("float", "int"))
    ends = arrays.order_keys(rounded_down(np.asarray(hypothesis.thresholds), dtype))
    slices = np.asarray(hypothesis.slices, dtype=np.uint8)
    missing = bits.dtype.type(arrays.missing_key(dtype))
    part_by = _part_in_two if len(ends) == 1 else _part_values
    team.each(
        lambda part: part_by(bits, ends, slices, missing, MISSING, found, *part),
        ranges(len(values), _VALUES_AT_ONCE),
    )


@kernel(
    "void(Array(KEY, 1, 'C', readonly=True), KEY[::1], uint8[::1], KEY, uint8, uint8[::1], int64,"
    " int64)",
    KEY=("int32", "int64"),
)
def _part_values(bits, ends, slices, missing, of_missing, found, low, high):  # type: ignore[no-untyped-def]
    """The numbers of values `low` to `high`, by their bit patterns; see `arrays.order_keys`."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    own, given = bits[low:high], found[low:high]
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
        given[i] = of_missing if is_missing else slices[first]


@kernel(
    "void(Array(KEY, 1, 'C', readonly=True), KEY[::1], uint8[::1], KEY, uint8, uint8[::1], int64,"
    " int64)",
    KEY=("int32", "int64"),
)
def _part_in_two(bits, ends, slices, missing, of_missing, found, low, high):  # type: ignore[no-untyped-def]
    """The same for one threshold, without an inner loop: several values at a time."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    own, given = bits[low:high], found[low:high]
    end, first, second = ends[0], slices[0], slices[1]
    for i in range(len(own)):
        bit = own[i]
        key = bit if bit >= 0 else lowest - bit
        number = first if key <= end else second
        is_missing = (key > infinity) | (key < -infinity)
        given[i] = of_missing if is_missing else number
