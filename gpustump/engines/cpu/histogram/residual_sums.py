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
anew (`split.split_search`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.histogram.changes import Changes, list_others
from gpustump.engines.cpu.histogram.estimates import counts_of_regions
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.squared_loss import advance_piece
from gpustump.engines.cpu.loss.terms import SampleSums, Terms  # noqa: F401  # a signature names it
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.integer_weights import TOP
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.step_table import UNIT_BITS, VOTE_UNIT

_AT_ONCE = 8192
"""How many samples' regions are read at once."""

_FEATURES_AT_ONCE = 4
"""Updating the sums over the slots of fewer features is not worth another thread."""

_OUTWARDS = 2.0**-40
"""By what share bounds in floating point are widened."""

_ANY = 2.0**200
"""A bound of residuals that bounds none."""

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

    """

    def __init__(self, table: CodedTable, loss: Loss, objective: Objective) -> None:
        super().__init__(table, loss.terms, objective)
        unit = int(loss.units[0])
        self._stays_exact = len(loss.units) == 1 and unit % 2**UNIT_BITS == 0
        self.spread = np.zeros(self.sums.shape[1])

    def take_step(self, loss: Loss, step: Step, regions: np.ndarray) -> SampleSums:
        """Update the samples and the sums by a step; returns the sums over all samples."""
        self.look()
        team, first = self._table.team, self._table.layout.first
        if not self._changes:
            self._changes = [Changes.empty(len(regions), team)]
        found = np.zeros((len(self._changes[0].n_front), 3), dtype=np.int64)
        vote, apart = self._listed(loss, step, regions, found)
        total, words = SampleSums(found.sum(axis=0)), self._added()
        about = (vote, apart, self._stays_exact, *self._limits(total, len(regions)))
        n_parts, size = team.pieces(len(first), _FEATURES_AT_ONCE)
        most, known = np.empty(len(first)), (words, self._n_inside, first)
        team.run(_move, n_parts, self.sums, self.error[0], self.spread, *known, *about, size, most)
        self.is_exact = self._stays_exact
        if most.max() >= TOP:  # sums of bounds may overflow
            self.add_up()
        return total

    def _listed(
        self, loss: Loss, step: Step, regions: np.ndarray, found: np.ndarray
    ) -> tuple[float, float]:
        """Update the samples, and list what is to be added for some; their sums are `found`.

        Returns the vote of the others, and the most that a listed amount is times its weight.
        """
        majority = int(np.argmax(self._counts(step, regions)))
        votes, (changes,) = np.asarray(step.votes), self._changes
        grows = (votes < votes[majority])[:, 0].astype(np.uint8)
        samples = (loss.numbers[0], self._terms, loss.units, regions)
        given = *samples, votes, majority, grows, changes, found
        self._table.team.run(_advance, len(found), *given)
        return float(votes[majority, 0]), float(np.abs(votes - votes[majority]).max())

    def _limits(self, total: SampleSums, n_samples: int) -> tuple[float, float, float]:
        """At least the sum of all weighted squares of what gradients are times their weights; and
        the most that positive and negative ones may be."""
        return float(total.numbers[-1]) + n_samples, _ANY, _ANY

    def _counts(self, step: Step, regions: np.ndarray) -> Sequence[int]:
        """How many samples lie in each region of a step."""
        if step.cut is None:
            found: list[int] = np.bincount(regions, minlength=N_REGIONS).tolist()
            return found
        return counts_of_regions(self._table.n_samples, self._table.n_missing, step.cut)

    def _take_sums(self) -> None:
        super()._take_sums()
        self._note(np.arange(self._table.n_features), np.full_like(self.spread, np.inf))

    def _renew(self, columns: np.ndarray, features: np.ndarray) -> None:
        super()._renew(columns, features)
        self._note(features, self.spread)

    def _note(self, features: np.ndarray, spread: np.ndarray) -> None:
        """Note what sums of positive and of negative samples say of some features."""
        for feature in features.tolist():
            own = self._table.layout.all_slots(feature)
            sums = self.sums[:, own]
            sums[2] += sums[3]
            sums[3] = 0
            self.spread[own] = np.minimum(spread[own], np.maximum(sums[0], sums[1]))


@parallel(
    "void(int64, float64[::1], Terms, float64[::1], uint8[::1], float64[:, ::1], int64, uint8[::1],"
    " Changes, int64[:, ::1])"
)
def _advance(piece, residuals, terms, units, regions, votes, majority, grows, changes, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples, and list those of the minority, with what they add besides
    the majority's vote.

    `grows` (n_regions,) says which regions' samples are listed at the front. `sums` are those of
    `Loss._updating`.
    """
    begin, gradient, vote = piece * changes.piece, terms.gradient[0], votes[majority, 0]
    stop = min(begin + changes.piece, len(regions))
    differ, by = len(units) > 1, np.int64(np.rint(units[0] * vote))
    others, before = np.empty(_AT_ONCE + 1, np.uint16), np.empty(_AT_ONCE, np.int64)
    front, back = np.uint64(begin), np.uint64(stop - 1)
    for start in range(begin, stop, _AT_ONCE):
        here = regions[start : min(start + _AT_ONCE, stop)]
        n_others = list_others(here, np.uint8(majority), others)
        for k in range(n_others):
            before[k] = gradient[np.uint64(start) + np.uint64(others[k])]
        own = (residuals, terms.gradient, terms.hessian, units)
        advance_piece(*own, here, votes, start, sums[piece])
        for k in range(n_others):
            i = np.uint64(start) + np.uint64(others[k])
            is_front = np.uint64(grows[regions[i]])
            place = front if is_front else back
            own = np.int64(np.rint(units[i] * vote)) if differ else by
            changes.sample[place] = i - np.uint64(begin)
            changes.amount[place] = gradient[i] - before[k] + own
            front += is_front
            back -= np.uint64(1) - is_front
    changes.n_front[piece] = front - np.uint64(begin)
    changes.n_back[piece] = np.uint64(stop - 1) - back


@inner("float64(float64, float64, float64, int64)")
def _most_of(hessian, squares, steepest, n_inside):  # type: ignore[no-untyped-def]
    """The most that the positive gradients of a bin, or the negative ones, may add up to."""
    most = min(np.sqrt(hessian * squares), steepest * hessian)
    return most * (1.0 + _OUTWARDS) + n_inside + 1.0


@parallel(
    "void(int64, int64[:, ::1], float64[::1], float64[::1], int64[:, ::1], int64[::1], int64[::1],"
    " float64, float64, boolean, float64, float64, float64, int64, float64[::1])"
)
def _move(  # type: ignore[no-untyped-def]
    piece, sums, error, spread, words, n_inside, first, vote, most_apart, stays_exact, squares,
    upwards, downwards, size, most,
):  # fmt: skip
    """Update the sums over the slots of a piece of the features, and what is known of them.

    Parameters
    ----------
    sums : ndarray (n_planes, n_slots) of int64
        The planes of `slices`. The first two differ by the sum of the gradients, and bound how
        far the sum at a cut may be above that at the left edge, and below it.
    error, spread : ndarray (n_slots,) of float64
    words : ndarray (2, n_slots) of int64
        What the minority adds: samples that were listed at the front, and at the back.
    n_inside : ndarray (n_slots,) of int64
    first : ndarray (n_features,) of int64
        See `BinLayout`.
    vote : float
        The majority's.
    most_apart : float
        The most by which another vote differs from it.
    stays_exact : bool
    squares, upwards, downwards : float
        After the step; see `ResidualSums._limits`.
    size : int
        Features of a piece.
    most : ndarray (n_features,) of float64
        Set to the most that the first two planes add up to.
    """
    units = np.int64(vote / VOTE_UNIT)
    for j in range(piece * size, min((piece + 1) * size, len(first))):
        start, end = first[j], first[j + 1] if j + 1 < len(first) else sums.shape[1]
        above, below, hessians = sums[0, start:end], sums[1, start:end], sums[2, start:end]
        grow, fall = words[0, start:end], words[1, start:end]
        inside, own_error, own_spread = n_inside[start:end], error[start:end], spread[start:end]
        for s in range(len(above)):
            hessian = hessians[s]
            grown, fallen = abs(float(grow[s])), abs(float(fall[s]))
            room = most_apart * float(hessian) + 1.0
            moved = grown * max(0.0, 1.0 - grown / room) + fallen * max(0.0, 1.0 - fallen / room)
            most_up = _most_of(float(hessian), squares, upwards, inside[s])
            most_down = _most_of(float(hessian), squares, downwards, inside[s])
            if stays_exact:
                lost = (hessian >> UNIT_BITS) * units
            else:
                lost = np.int64(np.rint(float(hessian) * vote))
                rounding = most_up + abs(vote) * float(hessian) + grown + fallen
                rounding = rounding * _OF_PRODUCT + _OF_SAMPLE * (inside[s] + 1.0)
                own_error[s] = (own_error[s] + rounding) * (1.0 + _OUTWARDS)
                moved = moved * (1.0 + _OUTWARDS) + rounding
            total = above[s] - below[s] + grow[s] + fall[s] - lost
            own = own_spread[s] = (own_spread[s] + moved) * (1.0 + _OUTWARDS)
            up = min(float(max(total, 0)) + own, most_up) * (1.0 + _OUTWARDS)
            down = min(float(max(-total, 0)) + own, most_down) * (1.0 + _OUTWARDS)
            above[s] = max(np.int64(up) + 1, np.int64(down) + 1 + total)
            below[s] = above[s] - total
        of_feature = 0.0
        for s in range(len(above)):
            of_feature += float(above[s]) + float(below[s])
        most[j] = of_feature
