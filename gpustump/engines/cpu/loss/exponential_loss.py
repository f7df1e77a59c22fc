"""The exponential loss in kernels: see `engines.reference.exponential_loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.loss import LossByOutput, by_sample
from gpustump.engines.cpu.loss.margins import CHUNK, add_votes, repeated, units_of_chunk
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.integer_weights import FLOOR


class ExponentialLoss(LossByOutput):
    """The weights of a run, which are its `numbers`.

    Parameters
    ----------
    labels : ndarray (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int
    """

    def __init__(self, labels: np.ndarray, units: np.ndarray, n_outputs: int) -> None:
        super().__init__(labels, units, n_outputs, has_hessians=False)
        self.numbers = np.tile(units, (n_outputs, 1))

    @property
    def weights(self) -> np.ndarray:
        """(n_samples,), or (n_samples, n_outputs) for more outputs than one."""
        return by_sample(self.numbers)

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return advance, (self.numbers, self.scores, self.terms.gradient, self.units)


@inner("UniTuple(int64, 2)(float64[::1], int64[::1], uint8[::1], float64[:, :])")
def _reweight(weights, gradient, regions, factors):  # type: ignore[no-untyped-def]
    """Compute the next weights and integers of an output.

    Returns the sum of the integers, and the sum of their absolute values.
    """
    negative_0, negative_1, negative_2 = factors[0, 0], factors[1, 0], factors[2, 0]
    positive_0, positive_1, positive_2 = factors[0, 1], factors[1, 1], factors[2, 1]
    total, size = 0, 0
    for i in range(len(weights)):
        region, positive = regions[i], gradient[i] > 0
        by_0 = positive_0 if positive else negative_0
        by_1 = positive_1 if positive else negative_1
        by_2 = positive_2 if positive else negative_2
        weight = weights[i] * (by_0 if region == 0 else (by_1 if region == 1 else by_2))
        weight = weight if weight > FLOOR else FLOOR
        weights[i] = weight
        whole = np.int64(np.ceil(weight))
        signed = whole if positive else -whole
        gradient[i] = signed
        total += signed
        size += whole
    return total, size


@inner(
    "void(float64[:, ::1], float64[:, ::1], int64[:, ::1], float64[::1], uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], int64, int64[::1])"
)
def advance_piece(  # type: ignore[no-untyped-def]
    weights, scores, gradient, units, regions, votes, factors, low, sums
):
    """Update the samples from `low` on whose regions are given, and add up their `sums`."""
    room = repeated(units)
    for at in range(0, len(regions), CHUNK):
        here = regions[at : at + CHUNK]
        start, end = low + at, low + at + len(here)
        for output in range(len(weights)):
            total, size = _reweight(
                weights[output][start:end], gradient[output][start:end], here, factors[:, output]
            )
            sums[2 * output] += total
            sums[2 * output + 1] += size
        of_chunk = units_of_chunk(units, room, start, end)
        sums[-1] += add_votes(scores, gradient, here, votes, of_chunk, start, end)


@parallel(
    "void(int64, float64[:, ::1], float64[:, ::1], int64[:, ::1], float64[::1], uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def advance(piece, weights, scores, gradient, units, regions, votes, factors, size, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples; see `Loss._updating`.

    The arguments are plain arrays, as Numba takes microseconds to find the type of a group.
    """
    low = piece * size
    here = regions[low : low + size]
    advance_piece(weights, scores, gradient, units, here, votes, factors, low, sums[piece])
