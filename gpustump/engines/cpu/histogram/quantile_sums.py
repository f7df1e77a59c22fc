"""The sums over all bins in a run of quantile loss, updated by what each step changes.

A step changes the gradients of those samples only whose residuals get another sign. These are
listed and added up, so the sums stay exact. How far the sum at a cut inside a bin may be from those
at the edges follows as in `residual_sums`, where no sample of a majority moves. The positive
gradients of a bin add up to at most the level times its weight, its negative ones to the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.changes import Changes  # noqa: F401  # a signature names it
from gpustump.engines.cpu.histogram.residual_sums import ResidualSums
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.residual_slices import advance
from gpustump.engines.cpu.loss.terms import SampleSums, Terms  # noqa: F401  # a signature names it
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.objective import Objective

if TYPE_CHECKING:
    from gpustump.engines.cpu.loss.quantile_loss import QuantileLoss

_AT_ONCE = 8192
"""How many samples' gradients are compared at once."""


class QuantileSums(ResidualSums):
    """The sums of one run; see `ResidualSums`."""

    def __init__(self, table: CodedTable, loss: Loss, objective: Objective) -> None:
        super().__init__(table, loss, objective)
        self._stays_exact = True

    def _listed(
        self, loss: Loss, step: Step, regions: np.ndarray, found: np.ndarray
    ) -> tuple[float, float]:
        own, (changes,) = cast("QuantileLoss", loss), self._changes
        given = own.numbers[0], self._terms, own.units, own.level, regions, np.asarray(step.votes)
        self._table.team.run(_advance, len(found), *given, changes, found)
        return 0.0, 1.0 + 2.0**-40  # slopes of large weights are rounded

    def _limits(self, total: SampleSums, n_samples: int) -> tuple[float, float, float]:
        level = self._objective.level
        return float(total.numbers[1]) + n_samples, level, 1.0 - level


@parallel(
    "void(int64, float64[::1], Terms, float64[::1], float64, uint8[::1], float64[:, ::1], Changes,"
    " int64[:, ::1])"
)
def _advance(piece, residuals, terms, units, level, regions, votes, changes, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples, and list those whose gradients rise at the front, and those
    whose gradients fall at the back; `sums` are those of `Loss._updating`."""
    begin, gradient = piece * changes.piece, terms.gradient[0]
    stop, before = min(begin + changes.piece, len(regions)), np.empty(_AT_ONCE, np.int64)
    front, back = np.uint64(begin), np.uint64(stop - 1)
    for start in range(begin, stop, _AT_ONCE):
        end = min(start + _AT_ONCE, stop)
        before[: end - start] = gradient[start:end]
        advance(residuals, terms.gradient, units, level, regions, votes, start, end, sums[piece])
        for i in range(start, end):
            change = gradient[i] - before[i - start]
            place = front if change > 0 else back  # where nothing stands, if there is no change
            changes.sample[place] = i - begin
            changes.amount[place] = change
            front += np.uint64(change > 0)
            back -= np.uint64(change < 0)
    changes.n_front[piece] = front - np.uint64(begin)
    changes.n_back[piece] = np.uint64(stop - 1) - back
