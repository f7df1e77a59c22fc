"""A round of discrete votes of one output in one pass: the samples' integers, and sums over bins.

Discrete votes multiply the weights of the samples that they get wrong; the others keep their
integers, except in a few rounds, in which all weights are divided by a power of two. So only the
changes are added to the histograms, chunk by chunk, while a chunk is in the cache. Since they are
integers, the sums are exactly those of all samples added up anew, after any number of rounds.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.histograms import (  # noqa: F401  # a signature names Lanes
    CHUNK,
    Lanes,
    TeamHistograms,
    add_chunk,
    clear_column,
    next_piece,
    nothing_listed,
)
from gpustump.engines.cpu.loss.exponential_loss import advance_piece
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.terms import SampleSums
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.columns import Columns, Histograms


def update(
    loss: Loss,
    step: Step,
    regions: np.ndarray,
    columns: Columns,
    histograms: TeamHistograms,
) -> SampleSums:
    """Update all samples by a step, and add their changes to the histograms.

    Parameters
    ----------
    loss : Loss
        The exponential loss of one output.
    step : Step
    regions : ndarray (n_samples,) of uint8
    columns : Columns
    histograms : TeamHistograms

    Returns
    -------
    SampleSums
    """
    votes, factors = np.array(step.votes), np.array(step.factors)
    samples = (loss.numbers, loss.scores, loss.terms.gradient, loss.units, regions, votes, factors)
    sums = np.zeros((histograms.n_pieces, 3), dtype=np.int64)
    histograms.change(_update, *samples, columns, sums)
    return SampleSums(sums.sum(axis=0))


@inner("void(int64[::1], int64[::1], int64[::1], uint8[::1])")
def _compare(before, now, growth, kind):  # type: ignore[no-untyped-def]
    """By how much the sizes of integers grew; 0 where they did not, 1 for negative ones, else 2."""
    for k in range(len(now)):
        by = abs(now[k]) - abs(before[k])
        growth[k] = by
        kind[k] = np.uint8(by != 0) << np.uint8(now[k] > 0)


@inner("void(int64[::1], uint8[::1], Listed)")
def _list_changed(growth, kind, listed):  # type: ignore[no-untyped-def]
    """List the samples of a chunk whose integers changed."""
    index, amount = listed.sample[: len(kind)], listed.amount[: len(kind)]
    front, back = np.uint64(0), np.uint64(len(kind) - 1)
    for k in range(len(kind)):
        own = np.uint64(kind[k])
        place = back if own == 1 else front
        index[place] = k
        amount[place] = growth[k]
        front += own >> np.uint64(1)
        back -= own & np.uint64(1)
    listed.n_front[0] = front
    listed.n_back[0] = len(kind) - 1 - np.int64(back)


@parallel(
    "void(int64, float64[:, ::1], float64[:, ::1], int64[:, ::1], float64[::1], uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], Columns, int64[:, ::1], Lanes)"
)
def _update(  # type: ignore[no-untyped-def]
    lane, weights, scores, gradient, units, regions, votes, factors, columns, sums, lanes
):
    """Update pieces of the samples; positive ones are added to the first plane."""
    n_samples, every = len(regions), np.arange(len(columns.wide) + len(columns.narrow))
    piece = next_piece(lanes, -1)
    if lane > 0 and piece >= len(sums):
        return
    lanes.is_used[lane] = 1
    histograms = Histograms(lanes.wide[lane], lanes.narrow[lane])
    if lane > 0:
        for column in every:
            clear_column(histograms, column)
    listed = nothing_listed(False)
    before, growth = np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.int64)
    kind = np.empty(CHUNK, dtype=np.uint8)
    while piece < len(sums):
        for start in range(piece * lanes.size, min((piece + 1) * lanes.size, n_samples), CHUNK):
            here, now = regions[start : start + CHUNK], gradient[0][start : start + CHUNK]
            for k in range(len(now)):
                before[k] = now[k]
            own = (weights, scores, gradient, units)
            advance_piece(*own, here, votes, factors, start, sums[piece])
            _compare(before, now, growth, kind)
            _list_changed(growth, kind[: len(now)], listed)
            add_chunk(columns, histograms, 0, every, start, listed)
        piece = next_piece(lanes, piece)
