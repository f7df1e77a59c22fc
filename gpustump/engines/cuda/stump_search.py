"""The search for the best classic stump, by the kernels of `search.cu`."""

from __future__ import annotations

from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS
from gpustump.engines.cuda.search import SearchWithSigns
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import UpdatePass
from gpustump.engines.objective import Objective

_RUNNING_BYTES = 2 * 256 * 8
"""Bytes of shared memory for the running sums of `weigh`."""


class StumpSearch(SearchWithSigns):
    """The search for stumps."""

    def __init__(self, table: CudaTable, update: UpdatePass, objective: Objective) -> None:
        super().__init__(table, update, objective)
        self._extremes = layout.zeros(table.device, self._n_pieces, layout.EXTREMES)

    def _queue_weighing(self) -> None:
        self._device.launch(
            "weigh", self._table.n_features, THREADS, self._update.histograms.sums, self._prepared,
            self._round, self._profiles, self._update.rescale_at,
            shared=_RUNNING_BYTES + layout.BEST_EDGE.itemsize * THREADS,
        )  # fmt: skip

    def _queue_scan(self, n_blocks: int) -> None:
        device, full = self._device, self._device.most_threads
        device.launch(
            "scan", n_blocks, THREADS, self._pieces, self._prepared, self._round,
            self._update.signed, self._extremes, shared=layout.EXTREMES.itemsize * THREADS,
        )  # fmt: skip
        device.launch(
            "finish", 1, full, self._listed, self._extremes, self._prepared, self._round,
            self._profiles, shared=layout.BEST.itemsize * full,
        )  # fmt: skip
