"""The search for the best cut, as `search.cu` does it, and the result that the host reads.

A search is queued behind the sweep, and the copy of its result behind the search. The host takes
part only where a sorted order is needed that is not on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.sweep import Change, Sweep
from gpustump.engines.cuda.table import CudaTable

_RUNNING_BYTES = 2 * 256 * 8
"""Bytes of shared memory for the running sums of `weigh`."""

_MOST_HALVINGS = 63
"""After more halvings nothing is left of an integer, and a shift by 64 bits is not defined."""


class Best(NamedTuple):
    """The `Best` of `search.cu`: a cut; its agreement is -1 if there is none."""

    agreement: int
    feature: int
    position: int
    polarity: int


class Sums(NamedTuple):
    """The `Sums` of `common.cuh`."""

    signed_weight: int
    weight: int
    misclassified: int
    smallest: int


class Found(NamedTuple):
    """The `Result` of `search.cu`: what a round sends to the host.

    `samples` (2,) and `values` (16,) of uint8 belong to a cut inside a bin.
    """

    best: Best
    missing: int
    n_wanted: int
    sums: Sums
    samples: np.ndarray
    values: np.ndarray

    @classmethod
    def read(cls, words: np.ndarray) -> Found:
        """From the record's words, (1, words) of int64."""
        best, missing, n_wanted, sums, samples, values = layout.read(words, layout.RESULT)[0].item()
        return cls(Best(*best), missing, n_wanted, Sums(*sums), samples, values)


class Search:
    """What is known of a run's bins on the device, and the last round's result.

    Parameters
    ----------
    table : CudaTable
    """

    def __init__(self, table: CudaTable) -> None:
        device, n_slots = table.device, len(table.bins)
        n_pieces = _n_pieces(table.bins.records)
        self._table, self._device = table, device
        self._profiles = layout.zeros(device, n_slots, layout.PROFILE)
        self._edges = layout.zeros(device, table.n_features, layout.EDGE)
        self._counts = layout.zeros(device, 1, layout.COUNTS)
        self._listed = layout.zeros(device, n_slots, layout.LISTED)
        self._pieces = layout.zeros(device, n_pieces, layout.PIECE_OF_BIN)
        self._extremes = layout.zeros(device, n_pieces, layout.EXTREMES)
        self._wanted = device.xp.zeros(table.n_features, dtype=np.uint32)
        self._result = layout.zeros(device, 1, layout.RESULT)
        self._source = layout.on_device(device, table.source.record())
        self._prepared, self._round = self._records()
        self._pending: Callable[[], np.ndarray] | None = None
        self._found: Found

    def queue(self, sweep: Sweep, change: Change) -> None:
        """Queue a search behind a sweep that made this change."""
        discrete = change.discrete
        is_known = change.halvings >= 0 and discrete.grown >= discrete.kept
        halvings = min(change.halvings, _MOST_HALVINGS) if is_known else -1
        self._device.launch(
            "weigh", self._table.n_features, THREADS, sweep.histograms, self._prepared, self._round,
            halvings, self._counts, sweep.sums,
            shared=_RUNNING_BYTES + layout.BEST_EDGE.itemsize * THREADS,
        )  # fmt: skip
        self._queue_looking(sweep)

    def found(self, sweep: Sweep) -> Found:
        """The last round's result. Waits for it, and provides the sorted orders that it needs."""
        if self._pending is not None:
            with self._device.active():
                found = Found.read(self._pending())
                while found.n_wanted:
                    wanted = np.flatnonzero(self._device.sent(self._wanted)())
                    self._table.orders.provide(wanted.tolist())
                    self._device.clear(self._wanted)
                    self._device.clear(self._counts)  # of a search that was interrupted
                    self._queue_looking(sweep)
                    found = Found.read(self._pending())
            self._note_values(found)
            self._found, self._pending = found, None
        return self._found

    def _queue_looking(self, sweep: Sweep) -> None:
        """Queue a scan of the bins that may hold a better cut, and the copy of the result."""
        device, table = self._device, self._table
        full = device.most_threads
        n_blocks = blocks_for(len(self._pieces) * THREADS, device)  # a block for each piece
        device.launch(
            "list_bins", blocks_for(len(table.bins), device), THREADS, self._prepared, self._round,
            self._counts, self._listed, self._pieces, shared=layout.BEST.itemsize * THREADS,
        )  # fmt: skip
        device.launch(
            "scan", n_blocks, THREADS, self._pieces, self._counts, self._prepared, sweep.signed,
            self._extremes, shared=layout.EXTREMES.itemsize * THREADS,
        )  # fmt: skip
        device.launch(
            "finish", 1, full, self._listed, self._counts, self._extremes, self._prepared,
            self._round, shared=layout.BEST.itemsize * full,
        )  # fmt: skip
        self._pending = device.sent(self._result)

    def _records(self) -> tuple[np.ndarray, np.ndarray]:
        """The `PreparedTable` and the `Round` of `search.cu`; their arrays stay where they are."""
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
            profiles=address(self._profiles),
            edges=address(self._edges),
            wanted=address(self._wanted),
            result=address(self._result),
        )
        return prepared, of_round

    def _note_values(self, found: Found) -> None:
        """Tell the table the values on both sides of a cut inside a bin."""
        best, source = found.best, self._table.source
        if best.agreement < 0 or found.samples[0] < 0:
            return
        if source.on_device is None:
            values = source.host_values(best.feature, found.samples)
        else:
            dtype = np.dtype(source.dtype)
            both = found.values.reshape(2, 8)
            values = both[:, : dtype.itemsize].copy().view(dtype)[:, 0]
        self._table.note_values(best.feature, best.position, values)


def _n_pieces(bins: np.ndarray) -> int:
    """How many pieces all bins are cut into if all of them are scanned; at least one."""
    n_inside = bins["n_inside"][bins["has_cuts"] > 0]
    size = np.maximum(layout.PIECE, -(-n_inside // layout.MOST_PIECES))
    return max(1, int(np.sum(-(-(n_inside - 1) // size))))
