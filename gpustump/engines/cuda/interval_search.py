"""The search for the best interval or classic stump, by the kernels of `intervals.cu`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.search import SearchWithSigns
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import UpdatePass
from gpustump.engines.objective import Objective

_RUNNING_BYTES = 2 * 256 * (8 + 2 * layout.RANGE.itemsize)
"""Bytes of shared memory of `weigh_pairs`: running sums, and the ranges before and after a bin."""


class IntervalSearch(SearchWithSigns):
    """The search for intervals and stumps."""

    def __init__(self, table: CudaTable, update: UpdatePass, objective: Objective) -> None:
        super().__init__(table, update, objective)
        device = table.device
        self._slopes = layout.zeros(device, len(table.bins), layout.SLOPES)
        self._slopes_of_pieces = layout.zeros(device, self._n_pieces, layout.SLOPES)
        self._looked = device.xp.zeros(table.n_features, dtype=np.uint32)
        self._pairs = layout.record(
            layout.PAIRS,
            profiles=device.address(self._profiles),
            bins=device.address(self._slopes),
            pieces=device.address(self._slopes_of_pieces),
            looked=device.address(self._looked),
            signed_weights=device.address(update.signed),
            rescale_exponent=update.rescale_at,
        )

    def _queue_weighing(self) -> None:
        self._device.launch(
            "weigh_pairs", self._table.n_features, THREADS, self._update.histograms.sums,
            self._prepared, self._round, self._pairs,
            shared=_RUNNING_BYTES + layout.SLOPES.itemsize * THREADS,
        )  # fmt: skip

    def _queue_scan(self, n_blocks: int) -> None:
        device, full, n_features = self._device, self._device.most_threads, self._table.n_features
        given = (self._prepared, self._round, self._pairs)
        slopes = layout.SLOPES.itemsize * THREADS
        device.launch("scan_pairs", n_blocks, THREADS, self._pieces, *given, shared=slopes)
        n_bins = blocks_for(len(self._table.bins), device)
        device.launch("join_pieces", n_bins, THREADS, self._listed, *given)
        device.launch("pair_up", n_features, THREADS, *given, shared=slopes)
        device.launch("finish_pairs", 1, full, *given, shared=layout.BEST.itemsize * full)
