"""The samples of a run of pairs, and the search for the best cut of a pair's cells, in kernels.

The definition is `engines.quadrants.best_quadrants`, operation by operation.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Bytes, Floats, Integers, group, inner
from gpustump.engines.cpu.split.split_scores import gain


@group
class PairSamples(NamedTuple):
    """The samples of a run.

    Attributes
    ----------
    bins : ndarray (n_features, n_samples) of uint8
    n_bins : ndarray (n_features,) of int64
    numbers : ndarray (n_numbers, n_samples) of float64
        What the loss keeps: odds, a probability for each class, residuals; or the amounts that
        move, and in a second row those that stay.
    labels : ndarray (n_samples,) of int64
        -1 or 1, or the number of the class; not used for a quantity.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers.
    sign : int
        1 for Poisson loss, -1 for gamma loss; otherwise not used.
    """

    bins: Annotated[np.ndarray, "uint8[:, ::1]"]
    n_bins: Integers
    numbers: Annotated[np.ndarray, "float64[:, ::1]"]
    labels: Integers
    units: Floats
    sign: int


@group
class Motion(NamedTuple):
    """The step of a pair, and what it does to the samples.

    Attributes
    ----------
    features, cut : ndarray (2,) of int64
        The places of both features, and the cut; a cut of 0 changes nothing.
    votes : ndarray (n_quadrants, n_outputs) of float64
    factors : ndarray (n_quadrants, n_outputs, 2) of float64
    """

    features: Integers
    cut: Integers
    votes: Annotated[np.ndarray, "float64[:, ::1]"]
    factors: Annotated[np.ndarray, "float64[:, :, ::1]"]


@group
class PairRoom(NamedTuple):
    """What a pass over the samples writes to.

    Attributes
    ----------
    cells : ndarray (most_bins, 2 * n_outputs, most_bins) of int64
        The sums over the cells of a pair, first those of the gradients.
    flat : ndarray (most_bins * 2 * n_outputs * most_bins,) of int64
        The same array in one row.
    places : ndarray (CHUNK,) of uint32
        Where in it the sums of a sample's cell are.
    scores : ndarray (most_bins,) of float64
    sums : ndarray (n_quadrants, n_outputs, 2) of int64
    regions : ndarray (CHUNK,) of uint8
    gradient, hessian : ndarray (n_outputs, CHUNK) of int64
        Of some samples.
    """

    cells: Annotated[np.ndarray, "int64[:, :, ::1]"]
    flat: Integers
    places: Annotated[np.ndarray, "uint32[::1]"]
    scores: Floats
    sums: Annotated[np.ndarray, "int64[:, :, ::1]"]
    regions: Bytes
    gradient: Annotated[np.ndarray, "int64[:, ::1]"]
    hessian: Annotated[np.ndarray, "int64[:, ::1]"]


@inner("void(int64[:, :, ::1], int64, int64)")
def _run_up(cells, n_rows, n_columns):  # type: ignore[no-untyped-def]
    """Add up along both axes, so that cell (a, b) has the sums over all cells up to it."""
    for a in range(n_rows):
        for number in range(cells.shape[1]):
            row = 0
            for b in range(n_columns):
                row += cells[a, number, b]
                cells[a, number, b] = row + (cells[a - 1, number, b] if a > 0 else 0)


@inner(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64, int64, int64, int64, float64,"
    " float64[::1])"
)
def _add_scores(g, h, g_other, h_other, g_one, h_one, g_all, h_all, l2, scores):  # type: ignore[no-untyped-def]
    """Add an output's part of the scores of cuts (a, b) with one a.

    Given are the sums over the region below both a and b, over all below b, all below a, and all.
    """
    for b in range(len(g)):
        g_below, h_below = g_one - g[b], h_one - h[b]
        g_beside, h_beside = g_other[b] - g[b], h_other[b] - h[b]
        g_rest, h_rest = g_all - g_one - g_beside, h_all - h_one - h_beside
        across = gain(g[b], h[b], l2) + gain(g_rest, h_rest, l2)
        scores[b] += across + (gain(g_below, h_below, l2) + gain(g_beside, h_beside, l2))


@inner("void(int64[:, :, ::1], int64, int64, int64, int64, int64, float64, float64[::1])")
def _score_cuts(below, n_rows, n_columns, a, low, high, l2, scores):  # type: ignore[no-untyped-def]
    """Set the scores of the cuts (a, b) for b from `low` to `high` - 1, from running sums; see
    `quadrants.best_quadrants`."""
    row, every, own, last = below[a - 1], below[n_rows - 1], slice(low - 1, high - 1), n_columns - 1
    scores[: high - low] = 0.0
    for g in range(0, below.shape[1], 2):
        h = g + 1
        _add_scores(
            row[g, own], row[h, own], every[g, own], every[h, own], row[g, last], row[h, last],
            every[g, last], every[h, last], l2, scores,
        )  # fmt: skip


@inner("Tuple((int64, int64, float64))(PairRoom, int64, int64, float64, int64[:, ::1])")
def best_cut(room, n_rows, n_columns, l2, candidates):  # type: ignore[no-untyped-def]
    """The best cut and its score; of the cuts that are offered, if there are any.

    The sums over the cells become running sums.
    """
    _run_up(room.cells, n_rows, n_columns)
    best, best_a, best_b, scores = -1.0, 1, 1, room.scores
    for at in range(len(candidates)):
        a, b = candidates[at, 0], candidates[at, 1]
        _score_cuts(room.cells, n_rows, n_columns, a, b, b + 1, l2, scores)
        if scores[0] > best:
            best, best_a, best_b = scores[0], a, b
    if len(candidates) > 0:
        return best_a, best_b, best
    for a in range(1, n_rows):
        _score_cuts(room.cells, n_rows, n_columns, a, 1, n_columns, l2, scores)
        for b in range(1, n_columns):
            if scores[b - 1] > best:
                best, best_a, best_b = scores[b - 1], a, b
    return best_a, best_b, best


@inner("void(PairRoom, int64, int64, int64, int64)")
def sum_quadrants(room, n_rows, n_columns, a, b):  # type: ignore[no-untyped-def]
    """Set the sums over the regions of a cut."""
    below, sums = room.cells, room.sums
    for output in range(sums.shape[1]):
        for which in range(2):
            at = 2 * output + which
            both, one = below[a - 1, at, b - 1], below[a - 1, at, n_columns - 1]
            other, every = below[n_rows - 1, at, b - 1], below[n_rows - 1, at, n_columns - 1]
            sums[0, output, which] = both
            sums[1, output, which] = one - both
            sums[2, output, which] = other - both
            sums[3, output, which] = every - one - other + both
