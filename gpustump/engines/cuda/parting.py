"""How a step's hypothesis parts the samples, as the kernels take it: `Parting` of `common.cuh`.

A cut that the search has found is known by its bin: the codes of its feature tell the region of
every sample but those in the bin, and where the cut lies inside the bin, its samples on the left
are marked first. Of other hypotheses the region of each sample is given.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.layout import CUT_CODES, PARTING, record
from gpustump.engines.cuda.table import CudaTable

_ALL_LEFT = 256
"""Instead of a cut's bin: every sample is on the left."""

_REGIONS_GIVEN = -1
"""Instead of a cut's bin: the regions are given."""


class Partings:
    """The partings of one run, one for each step.

    Parameters
    ----------
    table : CudaTable
    """

    def __init__(self, table: CudaTable) -> None:
        self._table, self._device = table, table.device
        self._marks = table.device.xp.zeros(table.n_samples, dtype=np.uint32)
        self._n_done = 0

    def of(self, cut: Cut | None, regions: Array | None = None) -> np.ndarray:
        """The record; queues the marks that it needs.

        Parameters
        ----------
        cut : Cut or None
            None if there is none: all samples are in the first region, unless regions are given.
        regions : array (n_samples,) of uint8, or None
            Given if the cut is not known. The caller keeps it until the kernels are done.
        """
        self._n_done += 1
        given, bin_, is_inside = 0, _ALL_LEFT, False
        if regions is not None:
            given, bin_ = self._device.address(regions), _REGIONS_GIVEN
        elif cut is not None and cut.position is not None:
            bin_, begin, end = self._table.bins.at(cut.feature, cut.position)
            is_inside = cut.position + 1 < end
            if is_inside:
                self._mark(cut.feature, begin, cut.position + 1)
        return record(
            PARTING,
            regions=given,
            cut_bin=bin_,
            is_inside=is_inside,
            round=self._n_done,
            marks=self._device.address(self._marks),
        )

    def codes_of(self, cut: Cut | None) -> Iterator[tuple[np.ndarray, int]]:
        """The codes of the cut's feature, part by part: `CutCodes`, and how many samples."""
        table = self._table
        if cut is None or cut.position is None:  # the kernels read no codes
            yield _cut_codes(0, 0, 0, 0, table.n_samples), table.n_samples
            return
        group, place = table.group_of(cut.feature)
        for part in table.codes.parts_of(group):
            n_samples = min(part.n, table.n_samples - part.first)
            address = self._device.address(part.codes)
            codes = _cut_codes(address, group.width_bits, place, part.first, n_samples)
            yield codes, n_samples

    def _mark(self, feature: int, begin: int, end: int) -> None:
        """Mark the samples between two sorted positions: a bin's samples on the left of the cut."""
        order = self._table.orders.address(feature)
        self._device.launch(
            "mark", blocks_for(end - begin, self._device), THREADS, order, begin, end,
            self._n_done, self._marks,
        )  # fmt: skip


def _cut_codes(
    codes: int, width_bits: int, feature: int, first_sample: int, n_samples: int
) -> np.ndarray:
    return record(
        CUT_CODES,
        codes=codes,
        width_bits=width_bits,
        feature=feature,
        first_sample=first_sample,
        n_samples=n_samples,
    )
