"""The softmax loss of several classes in kernels: see `engines.reference.softmax_loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.integers import integers_of_probabilities
from gpustump.engines.cpu.loss.loss import LossByOutput, by_sample
from gpustump.engines.cpu.loss.margins import CHUNK, add_votes, repeated, units_of_chunk
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.integer_weights import FLOOR, LEAST_PRODUCT


class SoftmaxLoss(LossByOutput):
    """The probabilities of a run, which are its `numbers`.

    Parameters
    ----------
    labels : ndarray (n_samples,) of int64
        The number of each sample's class.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int
    """

    def __init__(self, labels: np.ndarray, units: np.ndarray, n_outputs: int) -> None:
        super().__init__(labels, units, n_outputs, has_hessians=True)
        self.numbers = np.full((n_outputs, len(labels)), 1.0 / n_outputs)

    @property
    def weights(self) -> np.ndarray:
        """weight * p * (1 - p), (n_samples, n_outputs)."""
        own = self.numbers
        return by_sample(self.units * own * (1.0 - own))

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return advance, (moves, self.numbers, self.scores, *self.terms, self.units)


@inner("void(float64[::1], uint8[::1], float64[:], float64[::1])")
def _grow(probabilities, regions, factors, total):  # type: ignore[no-untyped-def]
    by_0, by_1, by_2 = factors[0], factors[1], factors[2]
    for i in range(len(probabilities)):
        region = regions[i]
        grown = probabilities[i] * (by_0 if region == 0 else (by_1 if region == 1 else by_2))
        grown = grown if grown > LEAST_PRODUCT else LEAST_PRODUCT
        probabilities[i] = grown
        total[i] += grown


@inner("void(float64[::1], float64[::1])")
def _divide(probabilities, total):  # type: ignore[no-untyped-def]
    for i in range(len(probabilities)):
        own = probabilities[i] / total[i]
        probabilities[i] = own if own > FLOOR else FLOOR


@inner("void(float64[:, ::1], uint8[::1], float64[:, :, ::1], int64, int64)")
def _multiply(probabilities, regions, factors, start, end):  # type: ignore[no-untyped-def]
    """Compute the next probabilities of a chunk: products, divided by their sum in class order."""
    total = np.zeros(end - start)  # adding to 0 changes no product
    for output in range(len(probabilities)):
        _grow(probabilities[output][start:end], regions, factors[:, output, 1], total)
    for output in range(len(probabilities)):
        _divide(probabilities[output][start:end], total)


@parallel(
    "void(int64, boolean, float64[:, ::1], float64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " float64[::1], uint8[::1], float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def advance(  # type: ignore[no-untyped-def]
    piece, moves, own, scores, gradient, hessian, units, regions, votes, factors, size, all_sums
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
        if moves:
            _multiply(own, here, factors, start, end)
        for output in range(len(own)):
            total, weight = integers_of_probabilities(
                own[output][start:end],
                of_chunk,
                gradient[output][start:end],
                hessian[output][start:end],
            )
            sums[2 * output] += total
            sums[2 * output + 1] += weight
        sums[-1] += add_votes(scores, gradient, here, votes, of_chunk, start, end)
