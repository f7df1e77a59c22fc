"""The squared loss of a quantity in kernels: see `engines.reference.squared_loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.margins import CHUNK, repeated, units_of_chunk
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel


class SquaredLoss(Loss):
    """The residuals of a run, which are its `numbers`.

    Parameters
    ----------
    targets : ndarray (n_samples,) of float64
        Whole multiples of `VOTE_UNIT` from -1 to 1.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    """

    def __init__(self, targets: np.ndarray, units: np.ndarray) -> None:
        super().__init__(units, 1)
        self.numbers = np.array([targets], dtype=np.float64)
        hessian = units.astype(np.int64).reshape(1, -1)  # the weights, in all rounds
        self.terms = Terms(np.empty_like(hessian), hessian)

    @property
    def weights(self) -> np.ndarray:
        """The weights in units of the integers, (n_samples,)."""
        found: np.ndarray = self.terms.hessian[0].astype(np.float64)
        return found

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return advance, (self.numbers[0], *self.terms, self.units)


@inner("UniTuple(int64, 3)(float64[::1], float64[::1], uint8[::1], float64[:], int64[::1])")
def _subtract(residuals, units, regions, votes, gradient):  # type: ignore[no-untyped-def]
    """Compute the next residuals and gradients.

    Returns the sums of both integers, and that of the weighted squares.
    """
    on_first, on_second, on_missing = votes[0], votes[1], votes[2]
    total, size, error = 0, 0, 0
    for i in range(len(residuals)):
        region = regions[i]
        vote = on_first if region == 0 else (on_second if region == 1 else on_missing)
        residual = residuals[i] - vote
        residuals[i] = residual
        whole = np.int64(np.rint(units[i] * residual))
        gradient[i] = whole
        total += whole
        size += np.int64(units[i])
        error += np.int64(np.rint(units[i] * (residual * residual)))
    return total, size, error


@inner(
    "void(float64[::1], int64[:, ::1], int64[:, ::1], float64[::1], uint8[::1], float64[:, ::1],"
    " int64, int64[::1])"
)
def advance_piece(residuals, gradient, hessian, units, regions, votes, low, sums):  # type: ignore[no-untyped-def]
    """Update the samples from `low` on whose regions are given, and add up their `sums`."""
    room = repeated(units)
    for at in range(0, len(regions), CHUNK):
        here = regions[at : at + CHUNK]
        start, end = low + at, low + at + len(here)
        of_chunk = units_of_chunk(units, room, start, end)
        found = _subtract(residuals[start:end], of_chunk, here, votes[:, 0], gradient[0, start:end])
        for k in range(3):
            sums[k] += found[k]


@parallel(
    "void(int64, float64[::1], int64[:, ::1], int64[:, ::1], float64[::1], uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def advance(piece, residuals, gradient, hessian, units, regions, votes, factors, size, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples; see `Loss._updating`. A vote of 0 moves no residual."""
    low = piece * size
    here = regions[low : low + size]
    advance_piece(residuals, gradient, hessian, units, here, votes, low, sums[piece])
