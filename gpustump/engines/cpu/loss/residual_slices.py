"""The quantile loss in functions that several kernels call: steps, and the search for quantiles.

Residuals are whole numbers of `VOTE_UNIT`. How their quantiles are found is told in
`engines.quantiles`.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.step_table import VOTE_UNIT

_FEW_BITS = 7
"""The samples of a small table are divided into 2**7 slices at a time."""


@inner(
    "void(float64[::1], int64[:, ::1], float64[::1], float64, uint8[::1], float64[:, ::1], int64,"
    " int64, int64[::1])"
)
def advance(residuals, gradient, units, level, regions, votes, low, high, sums):  # type: ignore[no-untyped-def]
    """Update the samples from `low` to `high`, and add up their `sums`; see `Loss._updating`."""
    on_first, on_second, on_missing = votes[0, 0], votes[1, 0], votes[2, 0]
    differ, unit, total, size, error = len(units) > 1, units[0], 0, 0, 0
    for i in range(low, high):
        region = regions[i]
        vote = on_first if region == 0 else (on_second if region == 1 else on_missing)
        residual = residuals[i] - vote
        residuals[i] = residual
        unit = units[i] if differ else unit
        above = np.rint(unit * level)
        own = above if residual > 0.0 else (above - unit if residual < 0.0 else 0.0)
        gradient[0, i] = np.int64(own)
        total += np.int64(own)
        size += np.int64(unit)
        error += np.int64(np.rint(abs(residual * own)))
    sums[0] += total
    sums[1] += size
    sums[2] += error


@inner(
    "void(float64[::1], float64[::1], uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1])"
)
def add_to_slices(residuals, units, regions, first, shift, low, high, found):  # type: ignore[no-untyped-def]
    """Add the weights of the samples from `low` to `high` to the slices of their regions."""
    differ, unit, n_slices = len(units) > 1, units[0], found.shape[1]
    for i in range(low, high):
        region = regions[i]
        place = (np.int64(residuals[i] / VOTE_UNIT) - first[region]) >> shift
        if 0 <= place < n_slices:
            found[region, place] += np.int64(units[i] if differ else unit)


@inner("void(int64[:, :, ::1], int64[::1], int64, int64[::1], int64[::1])")
def take_slices(room, ranks, shift, below, first):  # type: ignore[no-untyped-def]
    """Go on with the slice of each region that holds its quantile.

    Parameters
    ----------
    room : ndarray (n_pieces, n_regions, n_slices) of int64
        The weight in each slice.
    ranks : ndarray (n_regions,) of int64
    shift : int
        Slices are 2**shift wide.
    below, first : ndarray (n_regions,) of int64
        The weight before the slices, and where they begin; set to those of the slice that is taken.
    """
    for region in range(len(first)):
        for place in range(room.shape[2]):
            upto = below[region]
            for piece in range(len(room)):
                upto += room[piece, region, place]
            if upto >= ranks[region]:
                first[region] += place << shift
                break
            below[region] = upto


@inner("void(float64[::1], float64[::1], uint8[::1], int64[::1], int64[::1])")
def find_quantiles(residuals, units, regions, ranks, first):  # type: ignore[no-untyped-def]
    """Set `first` (n_regions,) to the quantile of each region, in `VOTE_UNIT`, of few samples."""
    least, most = residuals[0], residuals[0]
    for i in range(len(residuals)):
        least, most = min(least, residuals[i]), max(most, residuals[i])
    low, shift = np.int64(least / VOTE_UNIT), 0
    while (np.int64(most / VOTE_UNIT) - low) >> shift > 0:
        shift += 1
    first[:] = low
    below, room = np.zeros(N_REGIONS, np.int64), np.empty((1, N_REGIONS, 1 << _FEW_BITS), np.int64)
    while True:
        shift = max(0, shift - _FEW_BITS)
        room[:] = 0
        add_to_slices(residuals, units, regions, first, shift, 0, len(regions), room[0])
        take_slices(room, ranks, shift, below, first)
        if shift == 0:
            return
