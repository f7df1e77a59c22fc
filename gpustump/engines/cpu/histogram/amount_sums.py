"""The sums over all bins in a run of Poisson or gamma loss, as sums of amounts.

A search takes sums of gradients, positive and negative ones, and of Hessians (see
`slices`). Here the first plane has the sums of what is observed, the second one those of what is
expected, and the third and fourth ones are the same again: so the first two differ by the sum of
the gradients, and the last two add up to that of the Hessians.

One of the amounts never changes. The other one is a weight which a step multiplies by a factor in
each region, as under the exponential loss, so its sums are followed in the same way (`estimates`).
And as there, the shares of both amounts left of a cut inside a bin hardly move (`split.skew`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.histogram.estimates import Expected, Move
from gpustump.engines.cpu.histogram.histograms import CHUNK
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.ratio_loss import RatioLoss
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.objective import Objective

_NO_SECOND = np.zeros((0, 0), dtype=np.int64)
_AS_WEIGHTS = Objective(gain="real")
"""The search whose sums are those of weights, here all of one label."""


class AmountSums:
    """The sums of one run; see `split_search.Bins`.

    Parameters
    ----------
    table : CodedTable
    loss : RatioLoss

    Attributes
    ----------
    sums : ndarray (4, n_slots) of int64
        As of the last call of `look`.
    error : ndarray (4, n_slots) of float64
        The largest error of each sum.
    is_exact : bool
        Whether all sums are exact.
    """

    spread = np.zeros(0)

    def __init__(self, table: CodedTable, loss: RatioLoss) -> None:
        self._loss, self._team = loss, table.team
        self._amounts = np.empty((1, table.n_samples), dtype=np.int64)  # those that move
        self._moving = BinSums(table, Terms(self._amounts, _NO_SECOND), _AS_WEIGHTS)
        self._plane = 1 if loss.sign > 0 else 0  # their plane
        stays = Terms(loss.numbers[1:].astype(np.int64), _NO_SECOND)
        fixed = BinSums(table, stays, _AS_WEIGHTS)
        fixed.add_up()
        fixed.look()
        self.is_exact = True
        self.sums = np.stack([fixed.sums[0]] * 4)
        self.error = np.zeros(self.sums.shape)

    def look(self) -> Expected:
        """Update the sums; returns what they would be if all samples had followed the majority."""
        expected = self._moving.look()
        self._take()
        sums, error = self.sums.copy(), np.zeros_like(self.error)
        sums[self._plane :: 2], error[self._plane :: 2] = expected.sums[0], expected.error[0]
        return Expected(sums, error)

    def renew(self, features: np.ndarray) -> np.ndarray:
        """Add up some features anew; returns all features that share their columns, in order."""
        renewed = self._moving.renew(features)
        self._take()
        return renewed

    def add_up(self) -> None:
        """Add up all samples anew."""
        self._set_moving()
        self._moving.add_up()
        self.is_exact = True

    def take_step(self, loss: Loss, step: Step, regions: np.ndarray) -> None:
        """It never updates samples and sums at once; see `HistogramSums.take_step`."""

    def expect(self, move: Move, *, follows: bool) -> None:
        """Note what a step does to the majority; see `BinSums.expect`."""
        self._moving.expect(self._of_weights(move), follows=follows)

    def follow(self, advance: Callable[[], None], regions: np.ndarray, move: Move) -> None:
        """Update the sums by a step that is expected; see `BinSums.follow`."""

        def advance_both() -> None:
            advance()
            self._set_moving()

        self._moving.follow(advance_both, regions, self._of_weights(move))
        self.is_exact = False

    def _set_moving(self) -> None:
        """Write the amounts that move, from the terms."""
        gradient, hessian = self._loss.terms
        n_pieces, size = self._team.pieces(gradient.shape[1], CHUNK)
        amounts = self._amounts
        self._team.run(_set_moving, n_pieces, gradient, hessian, self._loss.sign, size, amounts)

    def _take(self) -> None:
        moving, plane = self._moving, self._plane
        self.sums[plane::2], self.error[plane::2] = moving.sums[0], moving.error[0]

    def _of_weights(self, move: Move) -> Move:
        """The same move for weights that all have the label +1."""
        return move._replace(factor=np.asarray([move.factor[self._plane], 1.0]))


@parallel("void(int64, int64[:, ::1], int64[:, ::1], int64, int64, int64[:, ::1])")
def _set_moving(piece, gradient, hessian, sign, size, amounts):  # type: ignore[no-untyped-def]
    """Write the amounts that move, from the signed differences and the sums of both amounts."""
    low = piece * size
    high = low + size
    one, both, own = gradient[0, low:high], hessian[0, low:high], amounts[0, low:high]
    for i in range(len(own)):
        own[i] = (both[i] - sign * one[i]) >> 1
