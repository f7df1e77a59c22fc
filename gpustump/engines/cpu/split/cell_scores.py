"""The best cut between cells, and bounds for the cuts inside them: what all kinds of votes share.

The left sums of a cut are those before the segment plus those of the cells up to it. Inside a cell
they lie between those at its edges: the positive sum has grown by a share of the cell's positive
sum, from 0 to 1, and the negative one by another share. So the two sums lie in a rectangle. If it
is known how far one share may be ahead of the other, they lie in a band around its diagonal.
Agreements are linear in the sums. The scores of real and of Newton votes are convex (sqrt is
concave, x**2 / y is convex for y > 0), and a convex function is largest at a corner [Boyd and
Vandenberghe 2004, section 3.1]. So the corners of the band bound every cut inside, output by
output. Bounds computed in floating point are rounded outwards by far more than their error.

The end of a segment is no cut here: it is the edge of a larger cell, or comes after all values.

Where sums are estimates, the scores at edges are replaced by the most that they may be, and a
cell's bound holds for the cut at its right edge, too. The errors of bins add up, so the error of a
left sum grows from the left edge of a cell to its right edge: inside the cell it is no larger than
at the right edge. Likewise the error of a right sum is no larger than at the left edge. If the
array `most` (2, n_segments) is not empty, the most that a score may be at the edges of a segment's
cells is written to its first row, and the largest bound of these cells to its second one.

A monotone constraint forbids some of the cuts. Forbidden cuts at edges do not count; inside a cell,
only the allowed part of the band counts (`monotone_bounds`).

Each kind of votes has a file of its own, whose `evaluate` is compiled when it is first needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import group, inner
from gpustump.engines.cpu.split.cut_scores import key_of
from gpustump.engines.cpu.split.part_bounds import NO_SCORE, OUTWARDS
from gpustump.engines.cpu.split.slices import Outside, Slices  # noqa: F401  # named by signatures

NO_AGREEMENT = -1
"""Less than every agreement."""

EVALUATED = (
    "void(int64, Slices, Outside, Rules, int64, int64[::1], int64[:, ::1], int64[::1],"
    " int64[:, ::1])"
)
"""Types of the arguments of `evaluate`. Of each piece, `size` segments, it evaluates the cells, and
writes the fields of `Scored`. Scores and bounds are written as keys; see `cut_scores`."""


@inner("void(int64[::1])")
def to_keys(scores):  # type: ignore[no-untyped-def]
    """Replace the bits of floats by their keys."""
    for i in range(len(scores)):
        scores[i] = key_of(scores[i])


@inner("void(int64[::1], int64, float64)")
def write_key(keys, place, score):  # type: ignore[no-untyped-def]
    """Write the key of a score to a place."""
    keys.view(np.float64)[place] = score
    to_keys(keys[place : place + 1])


@group
class Scored(NamedTuple):
    """The best cut between cells; `cell` is -1 if there is none.

    Attributes
    ----------
    score : float
        For discrete votes an int.
    segment, cell : int
        The cut is at the right edge of this cell.
    """

    score: float
    segment: int
    cell: int


@inner("boolean(Slices, int64, int64, int64, int64)")
def is_earlier(slices, segment, cell, other, other_cell):  # type: ignore[no-untyped-def]
    """Whether the first of two cuts of equal scores wins, in the order of `contract.Cut`."""
    one, two = slices.feature[segment], slices.feature[other]
    return one < two or (one == two and slices.last[cell] < slices.last[other_cell])


@inner("void(Slices, int64, int64, int64, float64[::1], float64[::1])")
def set_skew(slices, output, start, count, by_positive, by_negative):  # type: ignore[no-untyped-def]
    """How far one share may be ahead of the other, cell by cell: by 1 if nothing is known."""
    for i in range(count):
        by_positive[i], by_negative[i] = 1.0, 1.0
    if len(slices.skew) > 0:
        for i in range(count):
            by_positive[i] = slices.skew[2 * output, start + i]
            by_negative[i] = slices.skew[2 * output + 1, start + i]


@inner("int64(Slices, int64, int64)")
def most_cells(slices, low, high):  # type: ignore[no-untyped-def]
    """The largest number of cells in one of the segments `low` to `high`."""
    most = 0
    for t in range(low, high):
        most = max(most, slices.n_cells[t])
    return most


@inner("void(int64[::1], int64, int64, int64[::1])")
def run_up(sums, start, left, total):  # type: ignore[no-untyped-def]
    """Write the sums at the edges of cells to `total`; `left` is that at the first edge."""
    total[0] = left
    for i in range(len(total) - 1):
        total[i + 1] = total[i] + sums[start + i]


@inner("void(Slices, Outside, int64, int64, float64[::1], float64[::1])")
def add_error(slices, outside, plane, t, left, right):  # type: ignore[no-untyped-def]
    """Add how far the sums left and right of each edge of a segment are off, edge by edge."""
    start, count = slices.first[t], slices.n_cells[t]
    before, behind = outside.left_error[plane, t], outside.right_error[plane, t]
    left[0] += before
    right[count] += behind
    for i in range(count):
        if len(slices.error) > 0:  # only of what is outside if those of the cells are exact
            before += slices.error[plane, start + i]
            behind += slices.error[plane, start + count - 1 - i]
        left[i + 1] += before
        right[count - 1 - i] += behind


@inner("float64(Outside, int64, int64)")
def error_of_missing(outside, plane, t):  # type: ignore[no-untyped-def]
    return outside.missing_error[plane, t] if len(outside.missing_error) > 0 else 0.0


@inner("float64(float64)")
def outwards(score):  # type: ignore[no-untyped-def]
    """A bound computed in floating point, rounded outwards."""
    return score + abs(score) * OUTWARDS if score > NO_SCORE else NO_SCORE


@inner("float64(float64[::1])")
def largest(numbers):  # type: ignore[no-untyped-def]
    found = NO_SCORE
    for i in range(len(numbers)):
        found = max(found, numbers[i])
    return found


@inner("Scored(Slices, boolean, float64[::1], int64, float64[::1], Scored)")
def best_of_segment(slices, is_exact, score, t, bound, best):  # type: ignore[no-untyped-def]
    """The better of the best cut so far and those of segment `t`; widens the bounds."""
    start, count = slices.first[t], slices.n_cells[t]
    for i in range(count):
        u = start + i
        at_most = bound[u] if slices.is_open[u] else (NO_SCORE if is_exact else score[i])
        bound[u] = outwards(at_most)
        if score[i] < best.score or i + 1 == count or score[i] == NO_SCORE:
            continue
        is_tie = score[i] == best.score
        if is_tie and not is_earlier(slices, t, u, best.segment, best.cell):
            continue
        best = Scored(score[i], t, u)
    return best


@inner("void(float64[::1], float64[::1], boolean)")
def add_output(score, at_edge, is_first):  # type: ignore[no-untyped-def]
    """Add an output's part to the score at the right edge of each cell; the first one sets it."""
    for i in range(len(score)):
        score[i] = at_edge[i + 1] if is_first else score[i] + at_edge[i + 1]
