"""The samples of a run of pairs, and the search for the best cut of a pair's cells, in kernels.

The definition is `engines.quadrants.best_quadrants`, operation by operation.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Bytes, Floats, Integers, group, inner


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
    cells : ndarray (most_bins, most_bins, 2 * n_outputs) of int64
        The sums over the cells of a pair.
    sums : ndarray (n_quadrants, n_outputs, 2) of int64
    regions : ndarray (CHUNK,) of uint8
    gradient, hessian : ndarray (n_outputs, CHUNK) of int64
        Of some samples.
    """

    cells: Annotated[np.ndarray, "int64[:, :, ::1]"]
    sums: Annotated[np.ndarray, "int64[:, :, ::1]"]
    regions: Bytes
    gradient: Annotated[np.ndarray, "int64[:, ::1]"]
    hessian: Annotated[np.ndarray, "int64[:, ::1]"]


@inner("void(int64[:, :, ::1], int64, int64)")
def run_up(cells, n_rows, n_columns):  # type: ignore[no-untyped-def]
    """Add up along both axes, so that cell (a, b) has the sums over all cells up to it."""
    n_numbers = cells.shape[2]
    for a in range(n_rows):
        for number in range(n_numbers):
            row = 0
            for b in range(n_columns):
                row += cells[a, b, number]
                cells[a, b, number] = row + (cells[a - 1, b, number] if a > 0 else 0)


@inner("float64(int64, int64, float64)")
def _gain(gradient, hessian, l2):  # type: ignore[no-untyped-def]
    """A region's part of a score."""
    divisor = np.float64(hessian) + l2
    gradient = np.float64(gradient)
    return (gradient * gradient) / (divisor if divisor > 1.0 else 1.0)


@inner("float64(int64[:, :, ::1], int64, int64, int64, int64, float64)")
def _score(below, n_rows, n_columns, a, b, l2):  # type: ignore[no-untyped-def]
    """The score of a cut, from running sums; see `quadrants.best_quadrants`."""
    both, one = below[a - 1, b - 1], below[a - 1, n_columns - 1]
    other, total = below[n_rows - 1, b - 1], below[n_rows - 1, n_columns - 1]
    score = 0.0
    for at in range(0, below.shape[2], 2):
        g, h = both[at], both[at + 1]
        g_one, h_one = one[at] - g, one[at + 1] - h
        g_other, h_other = other[at] - g, other[at + 1] - h
        g_rest = total[at] - g - g_one - g_other
        h_rest = total[at + 1] - h - h_one - h_other
        across = _gain(g, h, l2) + _gain(g_rest, h_rest, l2)
        own = across + (_gain(g_one, h_one, l2) + _gain(g_other, h_other, l2))
        score = own if at == 0 else score + own
    return score


@inner("Tuple((int64, int64, float64))(int64[:, :, ::1], int64, int64, float64, int64[:, :])")
def best_cut(below, n_rows, n_columns, l2, candidates):  # type: ignore[no-untyped-def]
    """The best cut and its score, from running sums; of those offered, if there are any."""
    best, best_a, best_b = -1.0, 1, 1
    for at in range(len(candidates)):
        score = _score(below, n_rows, n_columns, candidates[at, 0], candidates[at, 1], l2)
        if score > best:
            best, best_a, best_b = score, candidates[at, 0], candidates[at, 1]
    if len(candidates) > 0:
        return best_a, best_b, best
    for a in range(1, n_rows):
        for b in range(1, n_columns):
            score = _score(below, n_rows, n_columns, a, b, l2)
            if score > best:
                best, best_a, best_b = score, a, b
    return best_a, best_b, best


@inner("void(int64[:, :, ::1], int64, int64, int64, int64, int64[:, :, ::1])")
def sum_quadrants(below, n_rows, n_columns, a, b, sums):  # type: ignore[no-untyped-def]
    """The sums over the regions of a cut, (n_quadrants, n_outputs, 2)."""
    for output in range(sums.shape[1]):
        for which in range(2):
            at = 2 * output + which
            both, one = below[a - 1, b - 1, at], below[a - 1, n_columns - 1, at]
            other, total = below[n_rows - 1, b - 1, at], below[n_rows - 1, n_columns - 1, at]
            sums[0, output, which] = both
            sums[1, output, which] = one - both
            sums[2, output, which] = other - both
            sums[3, output, which] = total - one - other + both
