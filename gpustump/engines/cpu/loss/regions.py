"""The region of each sample under a hypothesis: from values, or from sorted positions.

In batches of rounds on a sorted table, the regions of a cut are ranges of its feature's order.
Coded tables have `coded_regions`.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.keys import KEYS, as_keys, count
from gpustump.engines.cpu.table.source_table import codable
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition
from gpustump.learners.thresholds import rounded_down

SAMPLES_AT_ONCE = 2**15
"""Finding the regions of fewer samples is not worth another thread."""

_TILE = 2048
"""Samples whose keys stay in the nearest cache."""


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
    ends = np.asarray([*hypothesis.thresholds, np.inf])  # only NaN is above infinity
    ends = arrays.order_keys(codable(rounded_down(ends, arrays.dtype_name(values))))
    slices = np.asarray([*hypothesis.slices, MISSING], dtype=np.uint8)
    bits = np.require(codable(values), requirements=["A"]).view(ends.dtype)
    n_pieces, size = team.pieces(len(values), SAMPLES_AT_ONCE)
    team.run(_mark_values, n_pieces, bits, ends, slices, found, size)


@inner("void(int32[::1], int64, int64, uint8[::1])")
def mark_by_position(order, n_present, position, regions):  # type: ignore[no-untyped-def]
    """Write the regions of all samples, given in sorted order, under the cut after a position."""
    for k in range(len(order)):
        sample = order[k] & 0x7FFFFFFF
        if k < n_present:
            regions[sample] = FIRST if k <= position else SECOND
        else:
            regions[sample] = MISSING


@parallel(
    "void(int64, Array(KEY, 1, 'A', readonly=True), KEY[::1], uint8[::1], uint8[::1], int64)",
    KEY=KEYS,
)
def _mark_values(piece, bits, ends, slices, found, size):  # type: ignore[no-untyped-def]
    """The regions of a piece of the values, by their bit patterns.

    A value's place among the `ends`, of which the last one is infinity, tells its slice.
    """
    low, high = piece * size, min((piece + 1) * size, len(found))
    all_keys, all_places = np.empty(_TILE, dtype=ends.dtype), np.empty(_TILE, dtype=np.uint32)
    for start in range(low, high, _TILE):
        own = found[start : min(start + _TILE, high)]
        keys, places = all_keys[: len(own)], all_places[: len(own)]
        as_keys(bits[start : start + len(own)], keys)
        places[:] = 0
        count(keys, ends, 1, places)
        for i in range(len(own)):
            own[i] = slices[places[i]]
