"""What changes from round to round, in one place on the device: `Step` of `common.cuh`.

Everything that a round decides is at one address: how the hypothesis divides the samples into
regions and, after that, the numbers of the step. So the kernels' arguments are the same in every
round, and the launches of a round can be recorded once and repeated.

For a cut that the search has found, the codes of its feature tell the region of every sample except
those in the cut's bin. If the cut lies inside the bin, the bin's samples on the left are marked
first. An interval has two such cuts. For a split of categories the region of each code is written
after the numbers of the step. For other hypotheses the region of each sample is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.category_columns import regions_of_numbers
from gpustump.engines.contract import Cut
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.layout import N_CODES, STEP, SUMS, Group
from gpustump.engines.cuda.table import CudaTable, Parting
from gpustump.learners.kinds import OfCategories

_ALL_LEFT = 256
"""Instead of the number of a cut's bin: every sample is on the left."""

_OF_SAMPLES, _OF_CODES = -1, -2
"""Instead of the number of a cut's bin: the region of each sample, or of each code, is given."""


class Steps:
    """The steps of one run, one after the other.

    Streamed codes come in parts (see `codes`). Each part has a record of its own, with its codes
    and samples.

    Parameters
    ----------
    table : CudaTable
    n_words : int
        How many words follow the records: the numbers of a step.

    Attributes
    ----------
    words : ndarray (n_words,) of int64
        The numbers of the next step, to be written before `queue` copies them. They may be viewed
        as other types of eight bytes.
    words_at : int
        Their address on the device.
    """

    def __init__(self, table: CudaTable, n_words: int) -> None:
        device, n_parts = table.device, len(table.codes.spans())
        self._table, self._device = table, device
        self._marks = device.xp.zeros(table.n_samples, dtype=np.uint32)
        n_bytes = n_parts * STEP.itemsize
        at_regions = n_bytes + 8 * n_words
        self._host = device.pinned(at_regions + N_CODES)
        self._host[:] = 0
        self._records = self._host[:n_bytes].view(STEP)
        self._on_device = device.xp.zeros(len(self._host), dtype=np.uint8)
        self.words = self._host[n_bytes:at_regions].view(np.int64)
        self.words_at = device.address(self._on_device) + n_bytes
        self._regions_of_codes = self._host[at_regions:]
        self._regions_at = device.address(self._on_device) + at_regions
        self._group: Group | None = None
        self._regions: Array | None = None
        self._n_done = 0

    def write(
        self, cut: Parting | None, regions: Array | None = None, *, clears: bool = False
    ) -> None:
        """Write the next step. The device must have finished the last one.

        Parameters
        ----------
        cut : Cut, or hypothesis of a categorical feature, or None
            None if it is not known, or if there is no cut. Then `regions` is given, or all samples
            are in the first region.
        regions : array (n_samples,) of uint8, or None
            The region of each sample, if the cut is not known.
        clears : bool
            Whether the histograms are cleared and added up anew.
        """
        self._n_done += 1
        self._regions, self._group = regions, None  # the kernels read regions until they are done
        records = self._records
        records[:] = 0
        records["cut_bin"], records["round"] = _ALL_LEFT, self._n_done
        records["marks"] = self._device.address(self._marks)
        records["n_samples"][0] = self._table.n_samples
        records["clears"][0] = clears
        if regions is not None:
            records["cut_bin"], records["regions"] = _OF_SAMPLES, self._device.address(regions)
        elif isinstance(cut, OfCategories):
            records["cut_bin"], records["regions"] = _OF_CODES, self._regions_at
            self._regions_of_codes[:] = regions_of_numbers(cut, N_CODES)
            self._write_codes(cut.feature)
        elif cut is not None and cut.position is not None:
            self._write_bins(cut, 0 if cut.after is None else cut.after + 1, cut.position)
            self._write_codes(cut.feature)

    def queue(self, kernel: str, *arguments: Any) -> None:
        """Queue the copy of the step to the device, the marks that it needs, and a kernel.

        The kernel takes a record of the step and other arguments. It adds up `Sums`.
        """
        device, codes = self._device, self._table.codes
        device.upload(self._host, self._on_device)
        n_blocks = blocks_for(self._table.n_samples, device)
        device.launch("mark", n_blocks, THREADS, self._on_device)
        at, size = device.address(self._on_device), SUMS.itemsize * THREADS
        if self._group is None or codes.is_resident:
            device.launch(kernel, n_blocks, THREADS, at, *arguments, shared=size)
            return
        for _ in codes.parts_of(self._group):  # each is on the device when it is taken
            device.launch(kernel, n_blocks, THREADS, at, *arguments, shared=size)
            at += STEP.itemsize

    def _write_codes(self, feature: int) -> None:
        """Write where the codes of a feature are."""
        table, records = self._table, self._records
        self._group, place = table.group_of(feature)
        records["width_bits"], records["feature"] = self._group.width_bits, place
        for record, (first, n) in zip(records, table.codes.spans(), strict=True):
            record["codes"] = table.codes.address_of(self._group)
            record["first_sample"] = first
            record["n_samples"] = min(n, table.n_samples - first)

    def _write_bins(self, cut: Cut, first: int, last: int) -> None:
        """Write in which bins the first region begins and ends, and what is to be marked there."""
        table, records = self._table, self._records
        low, low_begin, low_end = table.bins.at(cut.feature, first)
        high, begin, end = table.bins.at(cut.feature, last)
        is_low_inside, is_inside = first > low_begin, last + 1 < end
        records["low_bin"], records["is_low_inside"] = low, is_low_inside
        records["cut_bin"], records["is_inside"] = high, is_inside
        if is_low_inside or is_inside:
            records["order"] = table.orders.address(cut.feature)
        if is_inside:
            records["begin"], records["end"] = max(first, begin), last + 1
        if is_low_inside and not (is_inside and low == high):
            records["low_begin"], records["low_end"] = first, low_end
