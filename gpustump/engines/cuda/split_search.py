"""The search for the best split with real, Newton or shared votes, by kernels of `splits.cu`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from gpustump.engines.contract import Cut, split_at
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS
from gpustump.engines.cuda.losses import LossPass
from gpustump.engines.cuda.search import NO_SCORE, Search, Sizes
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.gain import best_constant, exact_score_of
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import FIRST, N_REGIONS, Partition

_WEIGHING_BYTES = 256 * (2 * layout.TRIPLE.itemsize + 2 * 8)
"""Bytes of shared memory of `weigh_...`: running sums, twice, a score and a bound for each bin."""

_SCORING_BYTES = layout.SPLIT_PIECE * 8
"""Bytes of shared memory of `scan_...`: a score for each sample of a piece."""

_PIECE_THREADS = 64
"""Threads of a block that searches a piece."""

_FINISHING_THREADS = 512
"""Threads of the one block of `finish_splits`: as many as its registers allow."""


class SplitSearch(Search):
    """The search of a run.

    Parameters
    ----------
    table : CudaTable
    update : LossPass
    objective : engines.objective.Objective
    """

    def __init__(self, table: CudaTable, update: LossPass, objective: Objective) -> None:
        n_outputs = objective.n_outputs
        super().__init__(
            table,
            update,
            objective,
            pieces=Sizes(layout.SPLIT_PIECE, 0),
            n_more=N_REGIONS * n_outputs * 2,
        )
        device, n_slots, xp = table.device, len(table.bins), table.device.xp
        self._objective, self._votes, self._n_outputs = objective, objective.gain, n_outputs
        self._update = update
        self._left = layout.zeros(device, n_outputs * n_slots, layout.TRIPLE)
        self._noted = xp.full((5, n_outputs, n_slots), np.inf)
        n_pieces = self._n_pieces
        self._sums = layout.zeros(device, n_outputs * n_pieces, layout.TRIPLE)
        self._before = layout.zeros(device, n_outputs * n_pieces, layout.TRIPLE)
        self._skew = xp.zeros((4, n_outputs, n_pieces), dtype=np.float64)
        self._piece_bounds = xp.zeros(n_pieces, dtype=np.int64)
        self._best = layout.zeros(device, n_pieces, layout.BEST)
        self._least = xp.zeros(1, dtype=np.int64)
        self._splits = layout.record(
            layout.SPLITS,
            samples=update.samples[0],
            left=device.address(self._left),
            noted=device.address(self._noted),
            movement=update.movement[0],
            piece_sums=device.address(self._sums),
            piece_before=device.address(self._before),
            piece_skew=device.address(self._skew),
            piece_bounds=device.address(self._piece_bounds),
            piece_best=device.address(self._best),
            least=device.address(self._least),
            regions=device.address(self._more),
            has_hessians=objective.has_hessians,
            most_pieces=n_pieces,
            l2=objective.l2,
        )

    def _queue_weighing(self) -> None:
        self._device.launch(
            f"weigh_{self._votes}", self._table.n_features, THREADS, self._prepared, self._round,
            self._splits, shared=_WEIGHING_BYTES + layout.BEST_EDGE.itemsize * THREADS,
        )  # fmt: skip

    def best_cut(self) -> Cut:
        """The last round's largest cut, in the order of `Cut`."""
        found, sums = self.found(), self._sums_of_best()
        constant = best_constant(sums.sum(axis=0).tolist(), self._objective)
        if found.score == NO_SCORE:
            return constant
        score = exact_score_of(sums.tolist(), self._objective)
        return max(Cut(found.feature, found.position, 0, 0, score), constant)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> list[np.ndarray | None]:
        """The sums over each hypothesis's regions; None where all samples have to be added up.

        Those of the best cut are known, and other cuts are added up by one launch.
        """
        found, cuts = super().sums_over_each(hypotheses), dict[int, Cut]()
        best = self.best_cut()
        split = None if best.position is None else split_at(self._table, best)
        for place, hypothesis in enumerate(hypotheses):
            if hypothesis == split:
                found[place] = self._sums_of_best()
            elif (cut := self._table.cut_of(hypothesis)) is not None:
                cuts[place] = cut
        for place, sums in zip(cuts, self._sums_at([*cuts.values()]), strict=True):
            found[place] = sums
        return found

    def _sums_at(self, cuts: Sequence[Cut]) -> list[np.ndarray]:
        """The sums over the regions of some cuts of features that are not categorical."""
        orders, found = self._table.orders, list[np.ndarray]()
        with self._device.active():
            while len(found) < len(cuts):
                left = cuts[len(found) :]
                orders.provide(list(dict.fromkeys(cut.feature for cut in left)))
                ready = list(itertools.takewhile(lambda cut: orders.hold(cut.feature), left))
                found += self._summed(ready)
        return found

    def _summed(self, cuts: Sequence[Cut]) -> list[np.ndarray]:
        """As `_sums_at`, for features whose orders are on the device."""
        device, xp = self._device, self._device.xp
        places = device.array(np.asarray([(cut.feature, cut.position) for cut in cuts]))
        sums = xp.zeros((len(cuts), self._n_more), dtype=np.int64)
        device.launch(
            "sum_cuts", len(cuts), THREADS, places, len(cuts), self._prepared, self._splits, sums,
            shared=layout.TRIPLE.itemsize * THREADS,
        )  # fmt: skip
        return [*device.sent(sums)().reshape(-1, N_REGIONS, self._n_outputs, 2)]

    def _sums_of_best(self) -> np.ndarray:
        """The sums over the regions of the last round's best cut.

        If there is no cut, all samples with a value of the first feature are in the first region.
        If that feature is categorical, the kernels write no sums for it.
        """
        found = self.found()
        by_region = found.rest[: self._n_more].reshape(N_REGIONS, self._n_outputs, 2).copy()
        if found.score == NO_SCORE and 0 in self._table.categories:
            by_region[FIRST] = self.category_sums()[0, ..., :-1].sum(axis=-1)
        return by_region

    def _queue_scan(self, n_blocks: int) -> None:
        device, threads = self._device, min(_FINISHING_THREADS, self._device.most_threads)
        triple = layout.TRIPLE.itemsize
        given = (self._prepared, self._round, self._splits)
        n_small = min(self._n_pieces, n_blocks * THREADS // _PIECE_THREADS)
        room = triple * _PIECE_THREADS
        device.launch(
            "sum_pieces", n_small, _PIECE_THREADS, self._pieces, *given, shared=room
        )  # fmt: skip
        device.launch(
            f"bound_{self._votes}", n_small, _PIECE_THREADS, self._listed, *given, shared=2 * room,
        )  # fmt: skip
        device.launch(
            f"scan_{self._votes}", n_small, _PIECE_THREADS, self._pieces, *given,
            shared=_SCORING_BYTES + 2 * room,
        )  # fmt: skip
        device.launch(
            "finish_splits", 1, threads, self._pieces, self._listed, *given,
            shared=layout.BEST.itemsize * threads,
        )  # fmt: skip
