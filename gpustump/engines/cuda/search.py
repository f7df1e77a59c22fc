"""From histograms to the best cut, as `search.cu` does it, and what of it comes to the host.

The search is queued behind the sweep, and its result behind the search. Only where a sorted order
is asked for that is not on the device does the host have a part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.sweep import Change, Sweep
from gpustump.engines.cuda.table import CudaTable

_RUNNING_BYTES = 2 * 256 * 8
"""Of shared memory, for the running sums of `weigh`."""

_MOST_HALVINGS = 63
"""More leave no more of an integer, and a shift by 64 is not defined."""


class Found(NamedTuple):
    """What a round sends: the `Result` of `search.cu`.

    `samples` and `values`, two words each, belong to a cut inside a bin.
    """

    agreement: int
    feature: int
    position: int
    polarity: int
    missing: int
    n_wanted: int
    total: int
    mass: int
    mistaken: int
    least: int
    samples: np.ndarray
    values: np.ndarray

    @classmethod
    def read(cls, words: np.ndarray) -> Found:
        """From words of eight bytes."""
        return cls._make([*words[:10].tolist(), words[10:12], words[12:14]])


class Search:
    """What is known of a run's bins on the device, and the last round's result.

    Parameters
    ----------
    columns : CudaTable
    """

    def __init__(self, columns: CudaTable) -> None:
        device = columns.device
        n_slots, n_features = len(columns.bins), columns.n_features
        n_pieces = _n_pieces(columns.bins.facts)

        def words(*shape: int) -> Array:
            return device.xp.zeros(shape, dtype=np.int64)

        self._columns, self._device = columns, device
        self._profile, self._edges = words(n_slots, layout.PROFILE), words(n_features, layout.EDGE)
        self._counts, self._listed = words(layout.COUNTS), words(n_slots, layout.LISTED)
        self._pieces = words(n_pieces, layout.PIECE_WORDS)
        self._extremes = words(n_pieces, layout.EXTREMES)
        self._wanted = device.xp.zeros(n_features, dtype=np.uint32)
        self._result = words(layout.RESULT)
        self._table = device.array(columns.table.description())
        self._pending: Callable[[], np.ndarray] | None = None
        self._found: Found

    def queue(self, sweep: Sweep, change: Change) -> None:
        """Queue a search behind a sweep that made this change."""
        columns = self._columns
        discrete = change.discrete
        is_known = change.halvings >= 0 and discrete.grown >= discrete.kept
        halvings = min(change.halvings, _MOST_HALVINGS) if is_known else -1
        self._device.launch(
            "weigh", columns.n_features, THREADS, sweep.histograms, columns.features_there,
            columns.bins_there, columns.n_features, halvings, self._profile, self._edges,
            self._counts, self._wanted, sweep.sums, self._result,
            shared=_RUNNING_BYTES + 8 * layout.BEST_EDGE * THREADS,
        )  # fmt: skip
        self._queue_looking(sweep)

    def found(self, sweep: Sweep) -> Found:
        """The last round's result, once it is there and nothing is wanted any more."""
        if self._pending is not None:
            with self._device.active():
                found = Found.read(self._pending())
                while found.n_wanted:
                    wanted = np.flatnonzero(self._device.sent(self._wanted)())
                    self._columns.orders.provide(wanted.tolist())
                    self._device.clear(self._wanted)
                    self._device.clear(self._counts)  # of a search that was interrupted
                    self._queue_looking(sweep)
                    found = Found.read(self._pending())
            self._note_values(found)
            self._found, self._pending = found, None
        return self._found

    def _queue_looking(self, sweep: Sweep) -> None:
        """Queue a look into the bins that may hold a better cut, and the sending of the result."""
        launch, columns = self._device.launch, self._columns
        n_features, n_bins = columns.n_features, len(columns.bins)
        addresses, full = columns.orders.addresses, self._device.most_threads
        n_blocks = blocks_for(len(self._pieces) * THREADS, self._device)  # a block to a piece
        launch(
            "list_bins", blocks_for(n_bins, self._device), THREADS, columns.bins_there, n_bins,
            self._edges, n_features, addresses, self._profile, self._result, self._counts,
            self._listed, self._pieces, self._wanted, shared=8 * layout.BEST * THREADS,
        )  # fmt: skip
        launch(
            "scan", n_blocks, THREADS, self._pieces, self._counts, columns.bins_there, addresses,
            sweep.signed, self._extremes, shared=8 * layout.EXTREMES * THREADS,
        )  # fmt: skip
        launch(
            "finish", 1, full, self._listed, self._counts, self._extremes, columns.bins_there,
            self._edges, n_features, addresses, self._table, self._profile, self._result,
            shared=8 * layout.BEST * full,
        )  # fmt: skip
        self._pending = self._device.sent(self._result)

    def _note_values(self, found: Found) -> None:
        """Tell the columns the values on both sides of a cut inside a bin."""
        columns, table = self._columns, self._columns.table
        if found.agreement < 0 or found.samples[0] < 0:
            return
        if table.there is None:
            values = table.host_values(found.feature, found.samples)
        else:
            dtype = np.dtype(table.dtype)
            both = found.values.view(np.uint8).reshape(2, 8)
            values = both[:, : dtype.itemsize].copy().view(dtype)[:, 0]
        columns.note_values(found.feature, found.position, values)


def _n_pieces(facts: np.ndarray) -> int:
    """How many pieces all bins are cut into if all of them are scanned; at least one."""
    n_inside = facts[facts[:, 3] > 0, 1]
    size = np.maximum(layout.PIECE, -(-n_inside // layout.MOST_PIECES))
    return max(1, int(np.sum(-(-(n_inside - 1) // size))))
