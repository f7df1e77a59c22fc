"""The two integers of each sample and output in a round, as kernels take them, and their sums."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.contract import Totals
from gpustump.engines.cpu.runtime.compiling import group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS

_SAMPLES_AT_ONCE = 2**15
"""Fewer samples than this are not worth another thread."""


@group
class Terms(NamedTuple):
    """What a round adds up; see `gpustump.engines.gain`.

    Attributes
    ----------
    gradient : ndarray (n_outputs, n_samples) of int64
        Signed.
    hessian : ndarray (n_outputs, n_samples) of int64
        Of shape (0, 0) if the Hessians are the absolute values of the gradients.
    """

    gradient: Annotated[np.ndarray, "int64[:, ::1]"]
    hessian: Annotated[np.ndarray, "int64[:, ::1]"]


class SampleSums(NamedTuple):
    """Sums over all samples.

    Attributes
    ----------
    numbers : ndarray (2 * n_outputs + 1,) of int64
        For each output the sums of the gradients and of the Hessians; then the error, see
        `contract.Totals`.
    """

    numbers: np.ndarray

    @property
    def by_output(self) -> np.ndarray:
        """The sums of the gradients and of the Hessians, (n_outputs, 2) of int64."""
        return self.numbers[:-1].reshape(-1, 2)

    def totals(self, first_weight: int, n_samples: int) -> Totals:
        """The same over all outputs."""
        *numbers, error = self.numbers.tolist()
        return Totals(sum(numbers[::2]), sum(numbers[1::2]), error, first_weight, n_samples)


def region_sums(terms: Terms, regions: np.ndarray, team: Team) -> np.ndarray:
    """The sums over each region.

    Parameters
    ----------
    terms : Terms
    regions : ndarray (n_samples,) of uint8
        `learners.hypothesis.FIRST`, `SECOND` or `MISSING`.
    team : Team

    Returns
    -------
    ndarray (n_regions, n_outputs, 2) of int64
        The sums of the gradients and of the Hessians.
    """
    n_pieces, size = team.pieces(len(regions), _SAMPLES_AT_ONCE)
    sums = np.zeros((n_pieces, N_REGIONS, len(terms.gradient), 2), dtype=np.int64)
    team.run(sum_regions, n_pieces, *terms, regions, size, sums)
    found: np.ndarray = sums.sum(axis=0)
    return found


@inner("UniTuple(int64, 6)(int64[::1], int64[::1], uint8[::1])")
def _sums_of_one(gradient, hessian, regions):  # type: ignore[no-untyped-def]
    """For each region the sum of the gradients, and that of the absolute values of `hessian`."""
    a0, b0, a1, b1, a2, b2 = 0, 0, 0, 0, 0, 0
    for i in range(len(gradient)):
        region, own, size = regions[i], gradient[i], abs(hessian[i])
        a0 += own if region == 0 else 0
        b0 += size if region == 0 else 0
        a1 += own if region == 1 else 0
        b1 += size if region == 1 else 0
        a2 += own if region == 2 else 0
        b2 += size if region == 2 else 0
    return a0, b0, a1, b1, a2, b2


@parallel("void(int64, int64[:, ::1], int64[:, ::1], uint8[::1], int64, int64[:, :, :, ::1])")
def sum_regions(piece, gradient, hessian, regions, size, sums):  # type: ignore[no-untyped-def]
    """Add up a piece of the samples, whose Hessians are the gradients' sizes if there are none."""
    here = slice(piece * size, (piece + 1) * size)
    for output in range(len(gradient)):
        own = gradient[output][here]
        other = hessian[output][here] if len(hessian) > 0 else own
        found = _sums_of_one(own, other, regions[here])
        for place in range(6):
            sums[piece, place >> 1, output, place & 1] += found[place]
