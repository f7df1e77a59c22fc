"""What the searches for the best cut have in common: the host's side of `search.cuh`.

A search is queued after the pass over the samples, and the copy of its result after the search. The
host takes part only if the search needs a sorted order that is not on the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.category_search import CategorySums
from gpustump.engines.contract import Cut, constant_cut, sign_of
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.category_sums import SumsByCategory
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.layout import PLACE_BITS
from gpustump.engines.cuda.losses import LossPass
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.cuda.update_pass import UpdatePass
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition

NO_SCORE = -(2**63)
"""The score of a round without any cut."""


class Sizes(NamedTuple):
    """The `Sizes` of `search.cuh`: how bins are cut into pieces.

    Attributes
    ----------
    least : int
        The fewest samples of a piece.
    most : int
        The most pieces of a bin; 0 for no limit.
    """

    least: int
    most: int


OF_SIGNS = Sizes(layout.SIGNED_PIECE, layout.MOST_PIECES)
"""In the searches for classic stumps and intervals."""


class Found(NamedTuple):
    """The `Result` of `search.cuh` and the words after it: what a round sends to the host.

    Attributes
    ----------
    score : int
        That of the best cut; `NO_SCORE` if there is none.
    feature : int
    position : int
    after : int or None
        As in `Cut`: None for a stump.
    detail : int
        What the search notes of the cut: a polarity, or the number of a piece.
    missing : int
        The sum of the feature's missing values.
    n_wanted : int
        How many features' sorted orders are needed.
    signed_weight, weight, error, smallest : int
        The `Sums` of `common.cuh`.
    beside : tuple of (ndarray, ndarray)
        The `Neighbours` of the cut and, for an interval, of its lower cut: the two samples on its
        sides, -1 if the table already knows their values; and the bytes of the values, eight for
        each, (16,) of uint8.
    rest : ndarray (n_words,) of int64
    """

    score: int
    feature: int
    position: int
    after: int | None
    detail: int
    missing: int
    n_wanted: int
    signed_weight: int
    weight: int
    error: int
    smallest: int
    beside: tuple[tuple[np.ndarray, np.ndarray], ...]
    rest: np.ndarray

    @classmethod
    def read(cls, words: np.ndarray) -> Found:
        """From the words of the record and those after it, (n_words,) of int64."""
        n_words = layout.RESULT.itemsize // 8
        record = layout.read(words[:n_words].reshape(1, -1), layout.RESULT)[0]
        (score, feature, place, detail), missing, n_wanted, sums, beside = record.item()
        signed_weight, weight, error, smallest = sums
        above, position = divmod(place, 1 << PLACE_BITS)  # one integer for both cuts
        after = above - 1 if above else None
        return cls(
            score, feature, position, after, detail, missing, n_wanted,
            signed_weight, weight, error, smallest, beside, words[n_words:],
        )  # fmt: skip


class Search(ABC):
    """A run's arrays for searching on the device, and the last round's result.

    Parameters
    ----------
    table : CudaTable
    update : UpdatePass or LossPass
        The pass over the samples that comes before.
    objective : Objective
    pieces : Sizes
        How bins are cut into pieces.
    n_more : int
        How many words come between the result's record and the sums over categories.
    """

    def __init__(
        self,
        table: CudaTable,
        update: UpdatePass | LossPass,
        objective: Objective,
        *,
        pieces: Sizes,
        n_more: int = 0,
    ) -> None:
        device, n_slots = table.device, len(table.bins)
        self._table, self._device = table, device
        self._n_pieces = n_pieces_of(table.bins.records, pieces)
        self._bounds = device.xp.zeros(n_slots, dtype=np.int64)
        self._edges = layout.zeros(device, table.n_features, layout.EDGE)
        self._counts = layout.zeros(device, 1, layout.COUNTS)
        self._listed = layout.zeros(device, n_slots, layout.LISTED)
        self._pieces = layout.zeros(device, self._n_pieces, layout.PIECE_OF_BIN)
        self._wanted = device.xp.zeros(table.n_features, dtype=np.uint32)
        n_words = layout.RESULT.itemsize // 8
        self._by_category = SumsByCategory(table, update.histograms, objective.n_outputs)
        n_all = n_words + n_more + self._by_category.n_words
        self._n_more = n_more
        self._result = device.xp.zeros(n_all, dtype=np.int64)
        self._more = self._result[n_words:]
        self._directions = device.array(objective.directions)
        self._source = layout.on_device(device, table.source.record())
        self._prepared, self._round = self._records(update.sums, pieces)
        self._sent = device.pinned(self._result.nbytes).view(np.int64)
        self._pending: Callable[[], None] | None = None
        self._found: Found

    def queue(self) -> None:
        """Queue a search after an update pass."""
        self._by_category.queue(self._more[self._n_more :])
        self._queue_weighing()
        self._queue_looking()

    def expect(self) -> None:
        """Call this when a search, and all that comes before it, has been queued."""
        self._pending = self._device.waiter()

    def found(self) -> Found:
        """The last round's result. Waits for it, and provides sorted orders that it needs."""
        if self._pending is not None:
            with self._device.active():
                found = self._arrived(self._pending)
                while found.n_wanted:
                    wanted = np.flatnonzero(self._device.sent(self._wanted)())
                    self._table.orders.provide(wanted.tolist())
                    self._wanted[...] = 0
                    self._counts[...] = 0  # of a search that was interrupted
                    self._queue_looking()
                    self.expect()
                    found = self._arrived(self._pending)
            self._note_values(found)
            self._found, self._pending = found, None
        return self._found

    def category_sums(self, n_numbers: int = layout.N_CODES) -> np.ndarray:
        """See `engines.category_table.SummingState`."""
        return self._by_category.read(self.found().rest[self._n_more :], n_numbers)

    @abstractmethod
    def best_cut(self) -> Cut:
        """The last round's largest cut, in the order of `Cut`."""

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> list[np.ndarray | None]:
        """The sums over each hypothesis's regions; None where all samples have to be added up."""
        return [self._sums_of_set(hypothesis) for hypothesis in hypotheses]

    def _sums_of_set(self, hypothesis: Partition) -> np.ndarray | None:
        """The sums over the regions of a split of a categorical feature; None for others."""
        if not self._table.has_categories_of(hypothesis):
            return None
        features = [*self._table.categories]
        own = self.category_sums()[features.index(hypothesis.feature)]
        return CategorySums(hypothesis.feature, own).in_regions(hypothesis)

    def _arrived(self, wait: Callable[[], None]) -> Found:
        wait()
        return Found.read(self._sent.copy())  # the next result comes to the same place

    def _queue_looking(self) -> None:
        """Queue the search of the bins that may hold a better cut, and the copy of the result.

        The caller calls `expect` afterwards: launches can be recorded, waiting cannot.
        """
        device, table = self._device, self._table
        device.launch(
            "list_bins", blocks_for(len(table.bins), device), THREADS, self._prepared, self._round,
            self._listed, self._pieces, shared=layout.BEST.itemsize * THREADS,
        )  # fmt: skip
        self._queue_scan(blocks_for(self._n_pieces * THREADS, device))  # a block for each piece
        device.download(self._result, self._sent)

    @abstractmethod
    def _queue_weighing(self) -> None:
        """Queue the kernel that computes the bounds of all bins, and the best edges."""

    @abstractmethod
    def _queue_scan(self, n_blocks: int) -> None:
        """Queue the kernels that search the listed bins, and write the best cut."""

    def _records(self, sums: Array, pieces: Sizes) -> tuple[np.ndarray, np.ndarray]:
        """The `PreparedTable` and the `Round` of `search.cuh`; their arrays are never moved."""
        table, address = self._table, self._device.address
        prepared = layout.record(
            layout.PREPARED_TABLE,
            features=address(table.features_on_device),
            bins=address(table.bins_on_device),
            orders=address(table.orders.addresses),
            source=address(self._source),
            n_features=table.n_features,
            n_bins=len(table.bins),
        )
        of_round = layout.record(
            layout.ROUND,
            bounds=address(self._bounds),
            edges=address(self._edges),
            wanted=address(self._wanted),
            result=address(self._result),
            counts=address(self._counts),
            sums=address(sums),
            pieces=pieces,
            directions=address(self._directions) if len(self._directions) else 0,
        )
        return prepared, of_round

    def _note_values(self, found: Found) -> None:
        """Tell the table the values on both sides of the cuts inside bins."""
        source, dtype = self._table.source, np.dtype(self._table.source.dtype)
        for position, (samples, words) in zip(
            (found.position, found.after), found.beside, strict=True
        ):
            if position is None or found.score == NO_SCORE or samples[0] < 0:
                continue
            if source.on_device is None:
                values = source.host_values(found.feature, samples)
            else:
                values = words.reshape(2, 8)[:, : dtype.itemsize].copy().view(dtype)[:, 0]
            self._table.note_values(found.feature, position, values)


class SearchWithSigns(Search):
    """The search of a run with discrete votes of one output, for stumps or intervals.

    Parameters
    ----------
    table : CudaTable
    update : UpdatePass
    objective : Objective
    """

    def __init__(self, table: CudaTable, update: UpdatePass, objective: Objective) -> None:
        super().__init__(table, update, objective, pieces=OF_SIGNS)
        self._update = update
        self._profiles = layout.zeros(table.device, len(table.bins), layout.PROFILE)

    def best_cut(self) -> Cut:
        """The last round's largest cut, in the order of `Cut`."""
        found = self.found()
        constant = constant_cut(found.signed_weight)
        if found.score == NO_SCORE:
            return constant
        missing = sign_of(found.missing or found.signed_weight)
        cut = Cut(found.feature, found.position, found.detail, missing, found.score, found.after)
        return max(cut, constant)


def n_pieces_of(bins: np.ndarray, pieces: Sizes) -> int:
    """How many pieces all bins are cut into if all of them are searched; at least one."""
    n_inside = bins["n_inside"][bins["has_cuts"] > 0]
    size = np.full(len(n_inside), pieces.least)
    if pieces.most:
        size = np.maximum(size, -(-n_inside // pieces.most))
    return max(1, int(np.sum(-(-(n_inside - 1) // size))))
