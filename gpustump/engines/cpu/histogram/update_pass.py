"""A round of discrete votes of one output in one pass: the samples' integers, and sums over bins.

Discrete votes multiply the weights of the samples that they get wrong; the others keep their
integers, except in a few rounds, in which all weights are divided by a power of two. So only the
changes are added to the histograms, chunk by chunk, while a chunk is in the cache. Since they are
integers, the sums are exactly those of all samples added up anew, after any number of rounds.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.histograms import (
    CHUNK,
    Listed,
    TeamHistograms,
    add_chunk,
    pieces_of,
)
from gpustump.engines.cpu.loss.exponential_loss import advance
from gpustump.engines.cpu.loss.loss import LossByOutput
from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.table.columns import Columns, Histograms
from gpustump.engines.threads import Shared, Team


def update(
    loss: LossByOutput,
    step: Step,
    regions: np.ndarray,
    columns: Columns,
    histograms: TeamHistograms,
    team: Team,
) -> list[np.ndarray]:
    """Update all samples by a step, and add their changes to the histograms.

    Parameters
    ----------
    loss : LossByOutput
        The exponential loss of one output.
    step : Step
    regions : ndarray (n_samples,) of uint8
    columns : Columns
    histograms : TeamHistograms
    team : Team

    Returns
    -------
    list of ndarray (3,) of int64
        The numbers of `terms.SampleSums` for each piece of the samples.
    """
    votes, factors = np.array(step.votes), np.array(step.factors)
    samples = (loss.numbers, loss.scores, loss.terms.gradient, loss.units, regions, votes, factors)
    pieces, found = Shared(pieces_of(columns.n_samples, team)), list[np.ndarray]()

    def take(own: Histograms) -> None:
        for piece in pieces:
            sums = np.zeros(3, dtype=np.int64)
            _update(*samples, columns, own, *piece, sums)
            found.append(sums)

    histograms.add(take)
    return found


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
        amount[place, 0] = growth[k]
        front += own >> np.uint64(1)
        back -= own & np.uint64(1)
    listed.n_front[0] = front
    listed.n_back[0] = len(kind) - 1 - np.int64(back)


@kernel(
    "void(float64[:, ::1], float64[:, ::1], int64[:, ::1], float64[::1], uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], Columns, Histograms, int64, int64, int64[::1])"
)
def _update(  # type: ignore[no-untyped-def]
    weights, scores, gradient, units, regions, votes, factors, columns, histograms, low, high, sums
):
    """Update samples `low` to `high`, whole chunks; positive ones are added to the first plane."""
    listed = Listed(
        np.empty(CHUNK, dtype=np.uint16), np.empty((CHUNK, 1), dtype=np.int64),
        np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64),
    )  # fmt: skip
    before, growth = np.empty(CHUNK, dtype=np.int64), np.empty(CHUNK, dtype=np.int64)
    kind = np.empty(CHUNK, dtype=np.uint8)
    n_columns = len(columns.wide) + len(columns.narrow)
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        now = gradient[0][start:end]
        for k in range(len(now)):
            before[k] = now[k]
        advance(weights, scores, gradient, units, regions[start:end], votes, factors, start, sums)
        _compare(before, now, growth, kind)
        _list_changed(growth, kind[: len(now)], listed)
        add_chunk(columns, histograms, 0, 0, n_columns, start, listed, 0)
