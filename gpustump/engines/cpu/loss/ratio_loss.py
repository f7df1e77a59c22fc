"""Poisson and gamma loss of a quantity in kernels: see `engines.reference.ratio_loss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.margins import CHUNK
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.integer_weights import FLOOR


class RatioLoss(Loss):
    """The amounts of a run.

    Parameters
    ----------
    targets : ndarray (n_samples,) of float64
        Not negative; above 0 for gamma loss.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    is_poisson : bool
        Otherwise the loss is gamma loss.

    Attributes
    ----------
    numbers : ndarray (2, n_samples) of float64
        The amounts that move, and those that stay.
    sign : int
        1 for Poisson loss, -1 for gamma loss.
    """

    def __init__(self, targets: np.ndarray, units: np.ndarray, *, is_poisson: bool) -> None:
        super().__init__(units, 1)
        self.sign = 1 if is_poisson else -1
        weighted = units * targets
        amounts = (units, np.rint(weighted)) if is_poisson else (weighted, units)
        self.numbers = np.stack(amounts)
        self.terms = Terms(*np.empty((2, 1, len(units)), dtype=np.int64))

    @property
    def weights(self) -> np.ndarray:
        """The sum of both amounts, (n_samples,)."""
        found: np.ndarray = self.numbers[1] + self.numbers[0]
        return found

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return advance, (self.numbers, self.scores, *self.terms, self.sign)


@inner(
    "UniTuple(int64, 3)(float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], int64,"
    " uint8[::1], float64[:], float64[:])"
)
def _multiply(moving, fixed, scores, gradient, hessian, sign, regions, votes, factors):  # type: ignore[no-untyped-def]
    """Compute the next amounts, scores and integers.

    Returns the sums of both integers, and that of the losses.
    """
    on_first, on_second, on_missing = votes[0], votes[1], votes[2]
    by_first, by_second, by_missing = factors[0], factors[1], factors[2]
    total, size, error = 0, 0, 0
    for i in range(len(moving)):
        region = regions[i]
        vote = on_first if region == 0 else (on_second if region == 1 else on_missing)
        own = moving[i] * (by_first if region == 0 else (by_second if region == 1 else by_missing))
        own = own if own > FLOOR else FLOOR
        moving[i] = own
        score = scores[i] + vote
        scores[i] = score
        whole, stays = np.int64(np.ceil(own)), np.int64(fixed[i])
        signed = sign * (stays - whole)
        gradient[i], hessian[i] = signed, stays + whole
        total += signed
        size += stays + whole
        error += whole - sign * np.int64(np.rint(fixed[i] * score))
    return total, size, error


@parallel(
    "void(int64, float64[:, ::1], float64[:, ::1], int64[:, ::1], int64[:, ::1], int64,"
    " uint8[::1], float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def advance(piece, amounts, scores, gradient, hessian, sign, regions, votes, factors, size, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples; see `Loss._updating`."""
    own = factors[:, 0, 0 if sign > 0 else 1]
    high = min((piece + 1) * size, len(regions))
    for start in range(piece * size, high, CHUNK):
        end = min(start + CHUNK, high)
        here = regions[start:end]
        found = _multiply(
            amounts[0, start:end], amounts[1, start:end], scores[0, start:end],
            gradient[0, start:end], hessian[0, start:end], sign, here, votes[:, 0], own,
        )  # fmt: skip
        for k in range(3):
            sums[piece, k] += found[k]
