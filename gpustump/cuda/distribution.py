"""D_t on the device: signed weights, scores and histograms of one boosting run, advanced together.

This is `gpustump.distribution.Distribution` for a device's columns: the same integers as the
reference in every round. Nothing but those integers comes to the host, in one copy a round.
`advance` queues all that follows from a stump, the search for the next one included, and returns;
whoever asks for a result waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.cuda.codes import Part
from gpustump.cuda.columns import DeviceColumns
from gpustump.cuda.layout import column_bits, padded, table_bytes
from gpustump.distribution import Factors
from gpustump.scan import Cut, sign_of
from gpustump.stump import Stump
from gpustump.weights import TOP, in_units

_THREADS = 256
"""Of a block, but for `add`, whose blocks fill a processor each, and `finish`, which is one."""

_BLOCKS_A_PROCESSOR = 8

_ALL = 256
"""Instead of a cut's bin: every sample is on the left."""

_BY_VOTES = -1
"""Instead of a cut's bin: the votes are given."""

_PIECE, _MOST_PIECES = 2048, 32
"""As in `search.cu`: the samples of a bin that a block scans, and at most so many pieces."""

_PROFILE, _EDGE, _COUNTS, _EXTREMES, _LISTED, _PIECE_WORDS = 8, 5, 3, 5, 2, 1
"""Words of eight bytes in the structures of `search.cu`."""

_MOST_HALVINGS = 63
"""More leave no more of an integer, and a shift by 64 is not defined."""

_RUNNING_BYTES = 2 * 256 * 8
"""Of shared memory, for the running sums of `weigh`."""


_ARRAYS = (
    "_masses", "_signed", "_scores", "_change", "_marks", "_votes", "_histograms", "_profile",
    "_edges", "_counts", "_wanted", "_sums", "_listed", "_pieces", "_extremes", "_result", "_table",
)  # fmt: skip
"""What a run holds on the device."""


class _Result(NamedTuple):
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
    def read(cls, words: np.ndarray) -> _Result:
        """From words of eight bytes."""
        return cls._make([*words[:10].tolist(), words[10:12], words[12:14]])


_RESULT = 14
"""Words of it."""


class CudaDistribution:
    """The state of one run.

    Parameters
    ----------
    columns : DeviceColumns
    y : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.
    """

    def __init__(self, columns: DeviceColumns, y: Array, sample_weight: Array) -> None:
        self._columns, self._device = columns, columns.device
        self._orders = columns.orders
        self._round = 0
        self._pending: Callable[[], np.ndarray] | None = None
        self._found: _Result
        self._votes: Array
        with self._device.active():
            self._orders.making_room(lambda: self._allocate(y, sample_weight))
            self._queue(None, _ALL, (1, 1), 0.0, Factors(1.0, 1.0, 0), anew=True)
            self._first_mass = self.mass

    @property
    def total(self) -> int:
        """The integers' sum, each with the sign of its label."""
        return self._latest().total

    @property
    def mass(self) -> int:
        """The sum of their absolute values."""
        return self._latest().mass

    @property
    def training_error(self) -> float:
        """Share of the first round's weight that the ensemble gets wrong."""
        return self._latest().mistaken / self._first_mass

    @property
    def weights(self) -> Array:
        """Float64 weights, (n_samples,); see `Distribution.weights`."""
        with self._device.active():
            return self._device.xp.abs(self._signed)

    def lightest(self) -> int:
        """The smallest integer weight."""
        return self._latest().least

    def best_cut(self) -> Cut:
        """The cut of largest agreement; see `scan.best_cut`."""
        found = self._latest()
        if abs(found.total) > found.agreement:  # always so if there is no split
            return Cut(0, None, sign_of(found.total), sign_of(found.total), abs(found.total))
        missing = sign_of(found.missing or found.total)
        return Cut(found.feature, found.position, found.polarity, missing, found.agreement)

    def agreement_of(self, stump: Stump) -> int:
        """The weight that a stump gets right less what it gets wrong."""
        with self._device.active():
            signs = self._predicted(stump)
            xp = arrays.namespace_of(signs)
            units = xp.astype(xp.ceil(xp.abs(self._signed)), xp.int64)
            agrees = (signs > 0) == (self._signed > 0)
            return int(xp.sum(xp.where(agrees, units, -units)))

    def advance(self, stump: Stump, cut: Cut | None, vote: float, factors: Factors) -> None:
        """Take a stump into the ensemble; see `Distribution.advance`."""
        self._round += 1
        with self._device.active():
            anew = factors.halvings != 0
            if cut is None:
                self._votes = self._predicted(stump).astype(np.int8)
                self._queue(None, _BY_VOTES, (1, 1), vote, factors, anew=anew)
            elif cut.position is None:
                self._queue(None, _ALL, (cut.polarity, cut.missing), vote, factors, anew=anew)
            else:
                says = (cut.polarity, cut.missing)
                bin_ = self._columns.bins.at(cut.feature, cut.position)
                self._queue(cut, bin_, says, vote, factors, anew=anew)

    def _allocate(self, y: Array, sample_weight: Array) -> None:
        for name in _ARRAYS:  # of an attempt for which memory was too short
            self.__dict__.pop(name, None)
        columns, device, xp = self._columns, self._device, self._device.xp
        y, weights = device.array(y), in_units(device.array(sample_weight))
        lightest, heaviest = float(weights.min()), float(weights.max())
        self._equal_mass = int(lightest)
        self._masses = weights.astype(np.int64) if lightest < heaviest else None
        self._signed = weights * y
        del weights
        n_samples = columns.n_samples
        self._scores = xp.zeros(n_samples, dtype=np.float64)
        self._change = xp.zeros(padded(n_samples), dtype=np.int64)
        self._marks = xp.zeros(n_samples, dtype=np.uint32)
        self._votes = xp.zeros(1, dtype=np.int8)
        n_slots, n_features = len(columns.bins), columns.n_features
        self._histograms = xp.zeros((n_features, 2, 256), dtype=np.int64)
        self._profile = xp.zeros((n_slots, _PROFILE), dtype=np.int64)
        self._edges = xp.zeros((n_features, _EDGE), dtype=np.int64)
        self._counts = xp.zeros(_COUNTS, dtype=np.int64)
        self._wanted = xp.zeros(n_features, dtype=np.uint32)
        self._sums = device.array(np.asarray([0, 0, 0, TOP]))
        n_pieces = _n_pieces(columns.bins.facts)
        self._listed = xp.zeros((n_slots, _LISTED), dtype=np.int64)
        self._pieces = xp.zeros((n_pieces, _PIECE_WORDS), dtype=np.int64)
        self._extremes = xp.zeros((n_pieces, _EXTREMES), dtype=np.int64)
        self._result = xp.zeros(_RESULT, dtype=np.int64)
        self._table = device.array(columns.table.description())

    def _predicted(self, stump: Stump) -> Array:
        """What a stump says of every sample, -1.0 or 1.0, on the device."""
        return self._device.array(stump.on_values(self._columns.values(stump.feature)))

    def _queue(
        self,
        cut: Cut | None,
        bin_: int,
        says: tuple[int, int],
        vote: float,
        factors: Factors,
        *,
        anew: bool,
    ) -> None:
        """Queue a whole round: next weights and scores, the histograms' change, and the search.

        `says` is the vote of the left side and of what is missing.
        """
        launch, columns = self._device.launch, self._columns
        is_parted = cut is not None and self._marked(cut, bin_)
        if anew:
            self._device.clear(self._histograms)
        state = (
            self._signed, self._scores, 0 if self._masses is None else self._masses,
            self._equal_mass, self._change, self._sums,
        )  # fmt: skip
        for part, width_bits, place in self._parts_with(cut):
            n = min(part.n, columns.n_samples - part.first)
            launch(
                "advance", self._grid(n), _THREADS, part.codes, width_bits, place, self._votes,
                bin_, int(is_parted), *says, self._marks, self._round, vote, factors.grown,
                factors.kept, int(anew), part.first, n, *state, shared=32 * _THREADS,
            )  # fmt: skip
        device, bits = self._device, column_bits(self._device)
        for part in columns.codes.parts():
            launch(
                f"add_{1 << bits}", part.grid, device.most_threads, part.codes, part.groups,
                part.n_groups, self._change, part.first, part.n, self._histograms,
                shared=table_bytes(bits),
            )  # fmt: skip
        is_known = factors.halvings >= 0 and factors.grown >= factors.kept
        halvings = min(factors.halvings, _MOST_HALVINGS) if is_known else -1
        launch(
            "weigh", columns.n_features, _THREADS, self._histograms, columns.features_there,
            columns.bins_there, columns.n_features, halvings,
            self._profile, self._edges, self._counts, self._wanted, self._sums, self._result,
            shared=_RUNNING_BYTES + 24 * _THREADS,
        )  # fmt: skip
        self._search()

    def _search(self) -> None:
        """Queue the search of the bins, and the sending of what it finds."""
        launch, columns = self._device.launch, self._columns
        n_features, n_bins = columns.n_features, len(columns.bins)
        addresses = self._orders.addresses
        most = _BLOCKS_A_PROCESSOR * self._device.n_processors
        launch(
            "list_bins", min(-(-n_bins // _THREADS), most), _THREADS, columns.bins_there, n_bins,
            self._edges, n_features, addresses, self._profile, self._result, self._counts,
            self._listed, self._pieces, self._wanted, shared=32 * _THREADS,
        )  # fmt: skip
        launch(
            "scan", min(len(self._pieces), most), _THREADS, self._pieces, self._counts,
            columns.bins_there, addresses, self._signed, self._extremes, shared=40 * _THREADS,
        )  # fmt: skip
        launch(
            "finish", 1, self._device.most_threads, self._listed, self._counts, self._extremes,
            columns.bins_there, self._edges, n_features, addresses, self._table, self._profile,
            self._result, shared=32 * self._device.most_threads,
        )  # fmt: skip
        self._pending = self._device.sent(self._result)

    def _latest(self) -> _Result:
        """The round's integers, once they are there and nothing is wanted any more."""
        if self._pending is not None:
            with self._device.active():
                found = _Result.read(self._pending())
                while found.n_wanted:
                    self._orders.provide(np.flatnonzero(self._device.sent(self._wanted)()).tolist())
                    self._device.clear(self._wanted)
                    self._device.clear(self._counts)  # of a search that was interrupted
                    self._search()
                    found = _Result.read(self._pending())
            self._note_values(found)
            self._found, self._pending = found, None
        return self._found

    def _note_values(self, found: _Result) -> None:
        """Tell the columns the values on both sides of a cut inside a bin."""
        columns = self._columns
        if found.agreement < 0 or found.samples[0] < 0:
            return
        if columns.table.there is None:
            values = columns.table.host_values(found.feature, found.samples)
        else:
            dtype = np.dtype(columns.table.dtype)
            both = found.values.view(np.uint8).reshape(2, 8)
            values = both[:, : dtype.itemsize].copy().view(dtype)[:, 0]
        columns.note_values(found.feature, found.position, values)

    def _marked(self, cut: Cut, bin_: int) -> bool:
        """Mark the left side of a cut inside a bin; whether it is one."""
        assert cut.position is not None
        begin, end = self._columns.bins.begin_and_end(cut.feature, bin_)
        if cut.position + 1 == end:
            return False
        order, n = self._orders.address(cut.feature), cut.position + 1 - begin
        self._device.launch(
            "mark", self._grid(n), _THREADS, order, begin, begin + n, self._round, self._marks
        )
        return True

    def _parts_with(self, cut: Cut | None) -> Iterator[tuple[Part, int, int]]:
        """The codes of the cut's feature, part by part: with their width and its place there."""
        columns = self._columns
        if cut is None:
            whole = Part(self._votes, self._votes, 0, 0, 0, columns.n_samples)
            yield whole, 0, 0  # no codes are looked at
            return
        group, place = columns.group_of(cut.feature)
        for part in columns.codes.parts_of(group):
            yield part, group.width_bits, place

    def _grid(self, n: int) -> int:
        return max(1, min(-(-n // _THREADS), _BLOCKS_A_PROCESSOR * self._device.n_processors))


def _n_pieces(facts: np.ndarray) -> int:
    """How many pieces all bins are cut into if all of them are scanned; at least one."""
    n_inside = facts[facts[:, 3] > 0, 1]
    size = np.maximum(_PIECE, -(-n_inside // _MOST_PIECES))
    return max(1, int(np.sum(-(-(n_inside - 1) // size))))
