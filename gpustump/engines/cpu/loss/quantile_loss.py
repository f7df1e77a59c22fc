"""The quantile loss of a quantity in kernels: see `engines.reference.quantile_loss`.

Residuals are not sorted to find their quantiles: see `engines.quantiles`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpustump.engines.cpu.loss.residual_slices import add_to_slices, advance, take_slices
from gpustump.engines.cpu.loss.squared_loss import SquaredLoss
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.quantiles import SLICE_BITS
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.step_table import VOTE_UNIT

_SAMPLES_AT_ONCE = 2**14
"""Fewer samples than this are not worth another thread."""


class QuantileLoss(SquaredLoss):
    """The residuals of a run, which are its `numbers`.

    Parameters
    ----------
    targets, units : ndarray (n_samples,) of float64
        As for `SquaredLoss`.
    level : float

    Attributes
    ----------
    level : float
    """

    def __init__(self, targets: np.ndarray, units: np.ndarray, level: float) -> None:
        super().__init__(targets, units)
        self.level = level

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _advance, (self.numbers[0], *self.terms, self.units, self.level)

    def quantiles(self, regions: np.ndarray, ranks: Sequence[int], team: Team) -> list[float]:
        """The quantile of the residuals in each region, (n_samples,) of uint8."""
        residuals = self.numbers[0]
        least, most = (int(end / VOTE_UNIT) for end in (residuals.min(), residuals.max()))
        n_pieces, size = team.pieces(len(regions), _SAMPLES_AT_ONCE)
        room = np.empty((n_pieces, N_REGIONS, 2**SLICE_BITS), dtype=np.int64)
        found, shift = np.full(N_REGIONS, least), (most - least).bit_length()
        given = residuals, self.units, regions, np.asarray(ranks), shift, size, room, found
        team.run(_select, n_pieces, *given)
        pairs = zip(found.tolist(), ranks, strict=True)
        return [own * VOTE_UNIT if rank else 0.0 for own, rank in pairs]

    def slices(self, regions: np.ndarray, first: np.ndarray, shift: int, team: Team) -> np.ndarray:
        """The weight of the residuals in each slice, (n_regions, n_slices) of int64.

        The slices of a region begin at its `first`, in `VOTE_UNIT`, and are 2**shift wide.
        """
        n_pieces, size = team.pieces(len(regions), _SAMPLES_AT_ONCE)
        found = np.zeros((n_pieces, N_REGIONS, 2**SLICE_BITS), dtype=np.int64)
        given = self.numbers[0], self.units, regions, first, shift, size, found
        team.run(_weigh, n_pieces, *given)
        total: np.ndarray = found.sum(axis=0)
        return total


@parallel(
    "void(int64, float64[::1], int64[:, ::1], int64[:, ::1], float64[::1], float64, uint8[::1],"
    " float64[:, ::1], float64[:, :, ::1], int64, int64[:, ::1])"
)
def _advance(  # type: ignore[no-untyped-def]
    piece, residuals, gradient, hessian, units, level, regions, votes, factors, size, sums
):
    """Update a piece of the samples; see `Loss._updating`."""
    low = piece * size
    high = min(low + size, len(regions))
    advance(residuals, gradient, units, level, regions, votes, low, high, sums[piece])


@parallel(
    "void(int64, float64[::1], float64[::1], uint8[::1], int64[::1], int64, int64,"
    " int64[:, :, ::1])"
)
def _weigh(piece, residuals, units, regions, first, shift, size, found):  # type: ignore[no-untyped-def]
    """Add up the weights in each slice of a piece of the samples; see `QuantileLoss.slices`."""
    low = piece * size
    high = min(low + size, len(regions))
    add_to_slices(residuals, units, regions, first, shift, low, high, found[piece])


@kernel(
    "void(int64[::1], int64, float64[::1], float64[::1], uint8[::1], int64[::1], int64, int64,"
    " int64[:, :, ::1], int64[::1])"
)
def _select(crew, n_pieces, residuals, units, regions, ranks, shift, size, room, first):  # type: ignore[no-untyped-def]
    """Find the quantile of each region, in `VOTE_UNIT`.

    Parameters
    ----------
    crew, n_pieces
        See `crew.parallel`.
    residuals, units, regions
        See `QuantileLoss`.
    ranks : ndarray (n_regions,) of int64
    shift : int
        Residuals are fewer than 2**shift above the least one.
    size : int
        How many samples a piece has.
    room : ndarray (n_pieces, n_regions, n_slices) of int64
    first : ndarray (n_regions,) of int64
        At first the least residual, and then the quantile.
    """
    below = np.zeros(len(first), dtype=np.int64)
    while True:
        shift = max(0, shift - SLICE_BITS)
        room[:] = 0
        _weigh(crew, n_pieces, residuals, units, regions, first, shift, size, room)
        take_slices(room, ranks, shift, below, first)
        if shift == 0:
            return
