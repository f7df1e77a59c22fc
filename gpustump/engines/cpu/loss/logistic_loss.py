"""The logistic loss of two classes in kernels: see `engines.reference.logistic_loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.integers import CEILING, integers_of_odds
from gpustump.engines.cpu.loss.loss import LossByOutput
from gpustump.engines.cpu.loss.margins import CHUNK, add_votes, repeated, units_of_chunk
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.integer_weights import FLOOR


class LogisticLoss(LossByOutput):
    """The odds of a run, which are its `numbers`.

    Parameters
    ----------
    labels : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    """

    def __init__(self, labels: np.ndarray, units: np.ndarray) -> None:
        super().__init__(labels, units, 1, has_hessians=True)
        self.numbers = np.ones((1, len(labels)))

    @property
    def weights(self) -> np.ndarray:
        """weight * w * (1 - w), (n_samples,), where w is the probability of the wrong label."""
        odds = self.numbers[0]
        below = odds + 1.0
        found: np.ndarray = self.units * (odds / below) * (1.0 / below)
        return found

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return advance, (self.numbers[0], self.scores, *self.terms, self.units)


@inner("void(float64[::1], int64[::1], uint8[::1], float64[:, :])")
def _multiply(odds, gradient, regions, factors):  # type: ignore[no-untyped-def]
    """Compute the next odds, between `FLOOR` and `CEILING`: no library flushes these to zero."""
    negative_0, negative_1, negative_2 = factors[0, 0], factors[1, 0], factors[2, 0]
    positive_0, positive_1, positive_2 = factors[0, 1], factors[1, 1], factors[2, 1]
    for i in range(len(odds)):
        region, positive = regions[i], gradient[i] > 0
        by_0 = positive_0 if positive else negative_0
        by_1 = positive_1 if positive else negative_1
        by_2 = positive_2 if positive else negative_2
        own = odds[i] * (by_0 if region == 0 else (by_1 if region == 1 else by_2))
        own = own if own < CEILING else CEILING
        odds[i] = own if own > FLOOR else FLOOR


@parallel(
    "void(int64, float64[::1], float64[:, ::1], int64[:, ::1], int64[:, ::1], float64[::1],"
    " uint8[::1], float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def advance(  # type: ignore[no-untyped-def]
    piece, odds, scores, gradient, hessian, units, regions, votes, factors, size, all_sums
):
    """Update a piece of the samples; see `Loss._updating`.

    The arguments are plain arrays, as Numba takes microseconds to find the type of a group.
    """
    room, sums = repeated(units), all_sums[piece]
    high = min((piece + 1) * size, len(regions))
    for start in range(piece * size, high, CHUNK):
        end = min(start + CHUNK, high)
        here = regions[start:end]
        of_chunk = units_of_chunk(units, room, start, end)
        _multiply(odds[start:end], gradient[0][start:end], here, factors[:, 0])
        total, weight = integers_of_odds(
            odds[start:end], of_chunk, gradient[0][start:end], hessian[0][start:end]
        )
        sums[0] += total
        sums[1] += weight
        sums[2] += add_votes(scores, gradient, here, votes, of_chunk, start, end)
