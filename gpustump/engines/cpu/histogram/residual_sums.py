"""The sums over all bins in a run of squared loss, updated by what each step changes.

A step subtracts a vote from the residuals of each region. So it changes the sum G of a bin's
gradients by minus the vote of the largest region, the *majority*, times the bin's sum H of weights,
which never changes; and by the rest for each sample of the other regions, the *minority*, which are
listed and added up. If all weights are one power of two that makes all products with residuals
whole numbers, sums stay exact. Otherwise each sample's gradient is rounded, and the sums are
estimates that are off by a few units for each sample and step.

A search also asks how far the sum at a cut inside a bin may be from those at the bin's edges. Let
the cut have the sum A of gradients and the sum B of weights on its left in the bin. The
*spread* D of a bin bounds abs(A - B G / H). A step that moves all samples of a bin alike does not
change A - B G / H, as A and G lose the same vote times B and H. What the minority adds to a bin
changes it: let amounts of one sign add up to F, and none be more than m times its weight. Then a
cut with the weight B on its left has at most min(F, m B) of them there, so A - B G / H changes by
at most F (1 - F / (m H)). So

    min(G, 0) - D <= A <= max(G, 0) + D.

With Q, the sum of all weighted squared residuals, abs(A) is also at most sqrt(H Q), by the
inequality of Cauchy and Schwarz. The parts of a bin that a search has asked for tell its spread
anew (`split.spread`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.histogram.changes import Changes, list_others
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.terms import SampleSums
from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.integer_weights import TOP
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.step_table import VOTE_UNIT

_UNIT_BITS = 36
"""`VOTE_UNIT` is 2**-36."""

_AT_ONCE = 8192
"""How many samples' regions are read at once."""

_OUTWARDS = 2.0**-40
"""By what share bounds in floating point are widened."""

_OF_SAMPLE, _OF_PRODUCT = 4.0, 2.0**-50
"""More than the rounding of a sample's gradients before and after a step, in units; and than
the relative error of the products in them."""


class ResidualSums(BinSums):
    """The sums of one run.

    Parameters
    ----------
    table : CodedTable
    loss : Loss
        The run's samples, of squared loss.
    objective : Objective

    Attributes
    ----------
    spread : ndarray (n_slots,) of float64
        That of each bin.
    """

    def __init__(self, table: CodedTable, loss: Loss, objective: Objective) -> None:
        super().__init__(table, loss.terms, objective)
        self._loss = loss
        unit = int(loss.units[0])
        self._stays_exact = len(loss.units) == 1 and unit % 2**_UNIT_BITS == 0
        self.spread = np.zeros(self.sums.shape[1])

    def step(
        self, step: Step, advance: Callable[[int, int], np.ndarray], regions: np.ndarray
    ) -> SampleSums:
        """Update the samples and the sums by a step; returns the sums over all samples.

        Parameters
        ----------
        step : Step
        advance : callable
            See `Loss.advancing`.
        regions : ndarray (n_samples,) of uint8
        """
        self.look()
        counts = np.zeros(N_REGIONS, dtype=np.int64)
        _count(regions, counts)
        majority = int(np.argmax(counts))
        votes = np.asarray(step.votes)[:, 0]
        total = SampleSums.of(self._listed(advance, regions, votes, majority))
        words = self._added()
        squares = float(total.numbers[-1]) + len(regions)
        most = float(np.abs(votes - votes[majority]).max())
        largest = _move(
            self.sums, self.error[0], self.spread, words, self._n_inside, votes[majority], most,
            self._stays_exact, squares, self._table.layout.first,
        )  # fmt: skip
        self.is_exact = self._stays_exact
        if largest >= TOP:  # sums of bounds may overflow
            self.add_up(lambda low, high: None)
        return total

    def _listed(
        self,
        advance: Callable[[int, int], np.ndarray],
        regions: np.ndarray,
        votes: np.ndarray,
        majority: int,
    ) -> list[np.ndarray]:
        """Update all samples, and list those of the minority with what they add besides."""
        columns, team, (gradient,) = self._table.columns, self._table.team, self._terms.gradient
        if not self._changes:
            self._changes = [Changes.empty(columns.n_samples, team)]
        (changes,) = self._changes
        size, found = changes.piece, list[np.ndarray]()
        grows = (votes < votes[majority]).astype(np.uint8)

        def take(piece: int) -> None:
            _list_before(gradient, regions, majority, grows, piece, changes)
            low, high = piece * size, min((piece + 1) * size, columns.n_samples)
            found.append(advance(low, high))
            _add_after(gradient, self._loss.units, votes[majority], piece, changes)

        team.each(take, range(len(changes.n_front)))
        return found

    def _take_sums(self) -> None:
        super()._take_sums()
        self._note(np.arange(self._table.n_features), np.full_like(self.spread, np.inf))

    def _renew(self, columns: np.ndarray, features: np.ndarray) -> None:
        super()._renew(columns, features)
        self._note(features, self.spread)

    def _note(self, features: np.ndarray, spread: np.ndarray) -> None:
        """Note what sums of positive and of negative samples say of some features."""
        for feature in features.tolist():
            own = self._slots(feature)
            sums = self.sums[:, own]
            sums[2] += sums[3]
            sums[3] = 0
            self.spread[own] = np.minimum(spread[own], np.maximum(sums[0], sums[1]))


@kernel("void(uint8[::1], int64[::1])")
def _count(regions, counts):  # type: ignore[no-untyped-def]
    """Count the samples of each region."""
    second, missing = 0, 0
    for i in range(len(regions)):
        second += np.int64(regions[i] == 1)
        missing += np.int64(regions[i] == 2)
    counts[0], counts[1], counts[2] = len(regions) - second - missing, second, missing


@kernel("void(int64[::1], uint8[::1], int64, uint8[::1], int64, Changes)")
def _list_before(gradient, regions, majority, grows, piece, changes):  # type: ignore[no-untyped-def]
    """List a piece's samples of the minority with minus their gradients before the step.

    `grows` (n_regions,) says which regions' samples are listed at the front.
    """
    begin = piece * changes.piece
    stop = min(begin + changes.piece, len(gradient))
    found = np.empty(_AT_ONCE + 1, dtype=np.uint16)
    front, back = np.uint64(begin), np.uint64(stop - 1)
    for start in range(begin, stop, _AT_ONCE):
        here = regions[start : min(start + _AT_ONCE, stop)]
        for k in range(list_others(here, np.uint8(majority), found)):
            i = start + np.int64(found[k])
            is_front = np.uint64(grows[regions[i]])
            place = front if is_front else back
            changes.sample[place] = i - begin
            changes.amount[place] = -gradient[i]
            front += is_front
            back -= np.uint64(1) - is_front
    changes.n_front[piece] = front - np.uint64(begin)
    changes.n_back[piece] = np.uint64(stop - 1) - back


@kernel("void(int64[::1], float64[::1], float64, int64, Changes)")
def _add_after(gradient, units, vote, piece, changes):  # type: ignore[no-untyped-def]
    """Make the amounts what a step adds besides the majority's vote."""
    begin = piece * changes.piece
    stop = min(begin + changes.piece, len(gradient))
    differ, by = len(units) > 1, np.int64(np.rint(units[0] * vote))
    for part in range(2):
        low = begin if part == 0 else stop - changes.n_back[piece]
        high = begin + changes.n_front[piece] if part == 0 else stop
        for place in range(low, high):
            i = np.uint64(begin) + np.uint64(changes.sample[place])
            own = np.int64(np.rint(units[i] * vote)) if differ else by
            changes.amount[place] += gradient[i] + own


@inner("float64(float64, float64, int64)")
def _most_of(hessian, squares, n_inside):  # type: ignore[no-untyped-def]
    """The most that the absolute gradients of a bin may add up to."""
    return np.sqrt(hessian * squares) * (1.0 + _OUTWARDS) + n_inside + 1.0


@kernel(
    "float64(int64[:, ::1], float64[::1], float64[::1], int64[:, ::1], int64[::1], float64,"
    " float64, boolean, float64, int64[::1])"
)
def _move(sums, error, spread, words, n_inside, vote, most_apart, stays_exact, squares, first):  # type: ignore[no-untyped-def]
    """Update the sums over slots, and what is known of them, by a step.

    Returns the most that the first two planes add up to for a feature.

    Parameters
    ----------
    sums : ndarray (n_planes, n_slots) of int64
        The planes of `slices`. The first two differ by the sum of the gradients, and bound how
        far the sum at a cut may be above that at the left edge, and below it.
    error, spread : ndarray (n_slots,) of float64
    words : ndarray (2, n_slots) of int64
        What the minority adds: samples that were listed at the front, and at the back.
    n_inside : ndarray (n_slots,) of int64
    vote : float
        The majority's.
    most_apart : float
        The most by which another vote differs from it.
    stays_exact : bool
    squares : float
        At least the sum of all weighted squared residuals after the step.
    first : ndarray (n_features,) of int64
        See `BinLayout`.
    """
    units = np.int64(vote / VOTE_UNIT)
    for s in range(sums.shape[1]):
        hessian = sums[2, s]
        grown, fallen = abs(float(words[0, s])), abs(float(words[1, s]))
        room = most_apart * float(hessian) + 1.0
        moved = grown * max(0.0, 1.0 - grown / room) + fallen * max(0.0, 1.0 - fallen / room)
        most = _most_of(float(hessian), squares, n_inside[s])
        if stays_exact:
            lost = (hessian >> _UNIT_BITS) * units
        else:
            lost = np.int64(np.rint(float(hessian) * vote))
            rounding = most + abs(vote) * float(hessian) + grown + fallen
            rounding = rounding * _OF_PRODUCT + _OF_SAMPLE * (n_inside[s] + 1.0)
            error[s] = (error[s] + rounding) * (1.0 + _OUTWARDS)
            moved = moved * (1.0 + _OUTWARDS) + rounding
        total = sums[0, s] - sums[1, s] + words[0, s] + words[1, s] - lost
        own = spread[s] = (spread[s] + moved) * (1.0 + _OUTWARDS)
        above = min(float(max(total, 0)) + own, most) * (1.0 + _OUTWARDS)
        below = min(float(max(-total, 0)) + own, most) * (1.0 + _OUTWARDS)
        sums[0, s] = max(np.int64(above) + 1, np.int64(below) + 1 + total)
        sums[1, s] = sums[0, s] - total
    largest = 0.0
    for j in range(len(first)):
        above, below = 0.0, 0.0
        for s in range(first[j], first[j + 1] if j + 1 < len(first) else sums.shape[1]):
            above += float(sums[0, s])
            below += float(sums[1, s])
        largest = max(largest, above + below)
    return largest
