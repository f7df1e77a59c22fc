"""The search for the best split with real, Newton or shared votes, by kernels of `splits.cu`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.category_columns import NO_CATEGORY
from gpustump.engines.contract import RegionSums
from gpustump.engines.contract import Search as Wanted
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS
from gpustump.engines.cuda.losses import LossSweep
from gpustump.engines.cuda.search import NO_SCORE, Search
from gpustump.engines.cuda.table import CudaTable
from gpustump.learners.hypothesis import FIRST, N_REGIONS

_WEIGHING_BYTES = 256 * (2 * layout.TRIPLE.itemsize + 2 * 8)
"""Bytes of shared memory of `weigh_...`: running sums, twice, a score and a bound for each bin."""

_SCORING_BYTES = layout.PIECE * 8
"""Bytes of shared memory of `scan_...`: a score for each sample of a piece."""

_FINISHING_THREADS = 512
"""Threads of the one block of `finish_splits`: as many as its registers allow."""


class SplitSearch(Search):
    """The search of a run.

    Parameters
    ----------
    table : CudaTable
    sweep : LossSweep
    wanted : engines.contract.Search
    """

    def __init__(self, table: CudaTable, sweep: LossSweep, wanted: Wanted) -> None:
        n_outputs = wanted.n_outputs
        n_more = N_REGIONS * n_outputs * 2
        super().__init__(
            table,
            sweep.sums,
            sweep.histograms,
            n_outputs=n_outputs,
            n_more=n_more,
            directions=wanted.directions,
        )
        device, n_slots, xp = table.device, len(table.bins), table.device.xp
        self._votes, self._n_outputs = wanted.votes, n_outputs
        self._sweep = sweep
        self._left = layout.zeros(device, n_outputs * n_slots, layout.TRIPLE)
        self._noted = xp.full((2, n_outputs, n_slots), np.inf)
        n_pieces = self._n_pieces
        self._sums = layout.zeros(device, n_outputs * n_pieces, layout.TRIPLE)
        self._before = layout.zeros(device, n_outputs * n_pieces, layout.TRIPLE)
        self._ahead = xp.zeros((2, n_outputs, n_pieces), dtype=np.float64)
        self._piece_bounds = xp.zeros(n_pieces, dtype=np.int64)
        self._best = layout.zeros(device, n_pieces, layout.BEST)
        self._least = xp.zeros(1, dtype=np.int64)
        self._splits = layout.record(
            layout.SPLITS,
            samples=sweep.samples[0],
            left=device.address(self._left),
            noted=device.address(self._noted),
            movement=sweep.movement[0],
            piece_sums=device.address(self._sums),
            piece_before=device.address(self._before),
            piece_ahead=device.address(self._ahead),
            piece_bounds=device.address(self._piece_bounds),
            piece_best=device.address(self._best),
            least=device.address(self._least),
            regions=device.address(self._more),
            has_second=wanted.votes == "newton",
            most_pieces=n_pieces,
            l2=wanted.l2,
        )

    def _queue_weighing(self) -> None:
        self._device.launch(
            f"weigh_{self._votes}", self._table.n_features, THREADS, self._prepared, self._round,
            self._splits, shared=_WEIGHING_BYTES + layout.BEST_EDGE.itemsize * THREADS,
        )  # fmt: skip

    def region_sums(self) -> RegionSums:
        """The sums over the regions of the last round's best cut.

        If there is no cut, all samples with a value of the first feature are in the first region.
        If that feature is categorical, the kernels write no sums for it.
        """
        found = self.found()
        by_region = found.rest[: self._n_more].reshape(N_REGIONS, self._n_outputs, 2).copy()
        if found.best.score == NO_SCORE and 0 in self._table.categories:
            by_region[FIRST] = self.category_sums()[0, ..., :NO_CATEGORY].sum(axis=-1)
        return [[(first, second) for first, second in own] for own in by_region.tolist()]

    def _queue_scan(self, n_blocks: int) -> None:
        device, threads = self._device, min(_FINISHING_THREADS, self._device.most_threads)
        triple = layout.TRIPLE.itemsize
        given = (self._prepared, self._round, self._splits)
        device.launch(
            "sum_pieces", n_blocks, THREADS, self._pieces, *given, shared=triple * THREADS
        )
        device.launch(
            f"bound_{self._votes}", n_blocks, THREADS, self._listed, *given,
            shared=2 * triple * THREADS,
        )  # fmt: skip
        device.launch(
            f"scan_{self._votes}", n_blocks, THREADS, self._pieces, *given,
            shared=_SCORING_BYTES + 2 * triple * THREADS,
        )  # fmt: skip
        device.launch(
            "finish_splits", 1, threads, self._pieces, self._listed, *given,
            shared=layout.BEST.itemsize * threads,
        )  # fmt: skip
