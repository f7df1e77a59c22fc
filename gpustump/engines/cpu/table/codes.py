"""Each value as a code: bins that are slices of its feature's sorted order, and parts of bins.

A bin holds the values above one cut and up to the next; see `cuts`. The search returns the same
integers whatever the cuts are: they decide how often it must search inside a bin, not what it
finds. While values are coded it is noted which bins hold more than one value; inside the others
there is no cut.

Features of many values get codes of two bytes: the number of one of up to 1023 bins, and that of
one of its 64 parts. With the parts, the sums inside a bin are known more finely without sorting it.

The table is read once, a tile of rows and features at a time, so it may be a file larger than the
memory; two bytes for each element are stored, or one.
"""

from __future__ import annotations

import functools
import math
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.runtime.compiling import group, inner, kernel
from gpustump.engines.cpu.table import bundles
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import NARROW_BINS, PART_BITS, WIDE_BINS, Columns, Uncoded
from gpustump.engines.cpu.table.cuts import Cuts, cuts_of
from gpustump.engines.cpu.table.keys import KEYS
from gpustump.engines.cpu.table.rows_by_code import PartedSamples, list_bins
from gpustump.engines.cpu.table.source_table import Source, codable
from gpustump.engines.threads import Team, ranges
from gpustump.learners.thresholds import midpoint

NARROW_CUTS, WIDE_CUTS = NARROW_BINS - 2, WIDE_BINS - 2
"""The most cuts of a feature. The codes up to the number of cuts are bins, and the next one is for
missing values."""

_PER_BIN, _PER_FINE_BIN = 64, 384
"""The fewest samples in a bin for which bins save time. The second number is for more bins than
`NARROW_CUTS`, since their sums take more of the cache."""

_PATIENCE_OF_SHARD = 40
"""Finding the samples of some bins among the codes of a feature takes a twentieth to a fortieth of
the time in which they are sorted by bins: the order's memory is new."""

_NO_LOW = np.int64(2**63 - 1)

_TILE = (4096, 64)
"""Rows and features that are read and coded at once: a megabyte of float32."""


class Room(NamedTuple):
    """The memory that the codes of a table, and orders of its samples, may take.

    Attributes
    ----------
    finely : bool
        Whether features of many values get codes of two bytes.
    parted : bool
        Whether their samples may be stored in the order of their codes, four bytes for each.
    patience : int
        See `rows_by_code.PartedSamples`.
    """

    finely: bool = True
    parted: bool = True
    patience: int = 6


SHARD = Room(patience=_PATIENCE_OF_SHARD)
"""For a shard of a larger table, which is asked for whole bins."""


@dataclass(frozen=True)
class CodedTable:
    """A feature table as codes.

    Attributes
    ----------
    source : Source
        The caller's own table.
    columns : Columns
    bundles : Bundles
        Which column a feature is in, and which bin each code there stands for.
    layout : BinLayout
        The slots of all bins.
    high : ndarray (n_slots,) of float64
        A bin's largest value, NaN if it is not known.
    n_missing : ndarray (n_features,) of int64
    team : Team
    parted : PartedSamples or None
        The samples of features in the order of their codes; None if memory is too short.
    """

    source: Source
    columns: Columns
    bundles: Bundles
    layout: BinLayout
    high: np.ndarray
    n_missing: np.ndarray
    team: Team
    parted: PartedSamples | None = field(repr=False)
    _bins_by_value: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, repr=False
    )
    _last_cut: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.source.X

    @functools.cached_property
    def n_samples(self) -> int:
        return self.source.n_samples

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @functools.cached_property
    def feature_of_slot(self) -> np.ndarray:
        """The feature of each slot, (n_slots,) of int64."""
        return self.layout.feature_of(np.arange(len(self.layout.offset)))

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.source.values(feature)

    def codes_of(self, feature: int) -> np.ndarray:
        """The column of codes (n_samples,) that a feature is in."""
        column = int(self.bundles.column[feature])
        found: np.ndarray = (
            self.columns.wide if self.bundles.is_wide[feature] else self.columns.narrow
        )[column]
        return found

    def are_in_order(self, features: np.ndarray) -> np.ndarray:
        """Which of some features' samples are stored in the order of their codes, (n,) of bool.

        Those that have been asked for often are put in that order now.
        """
        if self.parted is None:
            return np.zeros(len(features), dtype=bool)
        return self.parted.prepare(features)

    def list_bins(
        self, feature: int, bins: np.ndarray, begin: np.ndarray, found: np.ndarray
    ) -> None:
        """Write the samples of some bins to `found`, in their own order, each from `begin` on."""
        by_bin = np.full(int(self.layout.n_bins[feature]) + 1, -1)
        by_bin[bins] = np.arange(len(bins))
        shift = PART_BITS * int(self.bundles.is_wide[feature])
        list_bins(
            self.codes_of(feature), shift, self.bundles.by_code(feature, by_bin), begin, found
        )

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_samples - self.n_missing[feature]:
            return math.inf
        known = self._last_cut.get((feature, position))
        if known is None:
            known = midpoint(self._value(feature, position), self._value(feature, position + 1))
            self._last_cut.clear()  # a round asks for its cut several times
            self._last_cut[feature, position] = known
        return known

    def below(self, feature: int, bin_: int, threshold: float) -> np.ndarray:
        """The samples of a bin whose values are not above a threshold, in any order."""
        for (of, position), last in [*self._last_cut.items()]:
            is_known = of == feature and last == threshold and self._sample_at(of, position) >= 0
            if is_known and self.layout.bin_at(feature, position) == bin_:
                assert self.parted is not None
                before = int(self.layout.offset[self.layout.first[feature] + bin_])
                return self.parted.bin(feature, bin_)[: position + 1 - before]
        samples, values = self.sorted_bin(feature, bin_)
        found: np.ndarray = samples[: np.searchsorted(values, threshold, side="right")]
        return found

    def _sample_at(self, feature: int, position: int) -> int:
        """The sample at a sorted position; -1 if the order of the samples does not show it."""
        return -1 if self.parted is None else self.parted.sample_at(feature, position)

    def sorted_bin(self, feature: int, bin_: int) -> tuple[np.ndarray, np.ndarray]:
        """The samples of a bin by increasing value, and these values."""
        known = self._bins_by_value.get((feature, bin_))
        if known is None:
            one = np.asarray([feature])
            if self.are_in_order(one)[0]:
                assert self.parted is not None
                samples = self.parted.bin(feature, bin_)
            else:
                (n_inside,) = self.layout.n_inside(self.layout.first[one] + bin_)
                samples = np.empty(n_inside, dtype=np.int32)
                self.list_bins(feature, np.asarray([bin_]), np.zeros(1, np.int64), samples)
            values = self.source.picked(samples, feature)
            order = np.argsort(values)
            known = samples[order], values[order]
            self._bins_by_value.clear()  # a round asks for the bin of its cut several times
            self._bins_by_value[feature, bin_] = known
        return known

    def _value(self, feature: int, position: int) -> Any:
        bin_ = self.layout.bin_at(feature, position)
        slot = self.layout.first[feature] + bin_
        if not self.layout.has_inner_split[slot]:
            return self.high[slot].astype(self.source.working_dtype)
        sample = self._sample_at(feature, position)
        if sample >= 0:
            return self.source.picked(np.asarray([sample]), feature)[0]
        return self.sorted_bin(feature, bin_)[1][position - int(self.layout.offset[slot])]


def prepare(
    X: np.ndarray,
    rows: np.ndarray | None,
    team: Team,
    *,
    room: Room | None = None,
    max_cuts: int = WIDE_CUTS,
    categorical: tuple[int, ...] = (),
) -> CodedTable:
    """Code a table.

    Parameters
    ----------
    X : ndarray (n_samples_given, n_features)
    rows : ndarray (n_samples,) of int64, or None
        Use only these rows.
    team : Team
    room : Room, optional
        By default all that saves time.
    max_cuts : int
        The most cuts of a feature.
    categorical : tuple of int
        As for `contract.Task`.
    """
    source, room = Source(X, rows, categorical), room or Room()
    most = WIDE_CUTS if room.finely else NARROW_CUTS
    limit = min(max_cuts, most, useful_cuts(source.n_samples))
    at_once = _TILE[1] * team.size
    # Many cuts are chosen from many values, so for fewer features at once.
    few = [slice(*part) for part in ranges(source.n_features, at_once // (4 if room.finely else 1))]
    cuts = [own for block in few for own in cuts_of(source, block, limit, team)]
    coded = _Coded.empty(source, cuts, finely=room.finely)
    _code_all(source, coded, team)
    return _table_of(source, coded, coded.layout(), team, room)


def prepare_by_cuts(source: Source, cuts: list[Cuts], team: Team) -> tuple[CodedTable, Extremes]:
    """Code a table that is a shard of a larger one, whose bins are common to all shards.

    Its layout has a slot for each bin that there may be, so some slots may hold no sample.

    Parameters
    ----------
    source : Source
    cuts : list of Cuts
        The common cuts of each feature.
    team : Team
    """
    coded = _Coded.empty(source, cuts, finely=True, has_extremes=True)
    _code_all(source, coded, team)
    layout = coded.layout(drops_empty=False)
    table = _table_of(source, coded, layout, team, SHARD)
    return table, coded.extremes_in(layout)


def useful_cuts(n_samples: int) -> int:
    """Up to how many cuts of a feature save time; at most `WIDE_CUTS`."""
    useful = max(min(n_samples // _PER_BIN, NARROW_CUTS), n_samples // _PER_FINE_BIN)
    return min(WIDE_CUTS, max(16, useful))


def _table_of(
    source: Source, coded: _Coded, layout: BinLayout, team: Team, room: Room
) -> CodedTable:
    columns, bundled = bundles.join(coded.codes, layout, coded.n_missing, team)
    return CodedTable(
        source=source,
        columns=columns,
        bundles=bundled,
        layout=layout,
        high=coded.largest_values(layout, source.working_dtype),
        n_missing=coded.n_missing,
        team=team,
        parted=PartedSamples(columns.wide, bundled, layout, team, room.patience)
        if room.parted
        else None,
    )


class Extremes(NamedTuple):
    """The smallest and the largest key in each slot, (n_slots,) of int64; see `arrays.order_keys`.

    In an empty slot the first is above the second.
    """

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class _Coded:
    """What is known of the features that have been coded, each of them by itself.

    Attributes
    ----------
    codes : Uncoded
    cuts : list of Cuts
    counts : list of ndarray of int64
        For each feature, how many samples are in each bin.
    is_mixed : list of ndarray of uint8
        Whether the bins have more than one value.
    low, high : list of ndarray of int64
        The smallest and the largest key in each bin; in an empty bin the largest and the smallest
        int64. Empty lists if they are not needed.
    """

    codes: Uncoded
    cuts: list[Cuts]
    counts: list[np.ndarray]
    is_mixed: list[np.ndarray]
    low: list[np.ndarray]
    high: list[np.ndarray]

    @classmethod
    def empty(
        cls, source: Source, cuts: list[Cuts], *, finely: bool, has_extremes: bool = False
    ) -> _Coded:
        n_cuts = np.asarray([len(own.keys) for own in cuts], dtype=np.int64)
        is_crowded = np.asarray([own.is_crowded for own in cuts], dtype=bool)
        is_wide = (is_crowded & finely) | (n_cuts > NARROW_CUTS)
        row = np.where(is_wide, np.cumsum(is_wide), np.cumsum(~is_wide)) - 1
        n_wide, n_samples = int(is_wide.sum()), source.n_samples
        wide = np.empty((n_wide, n_samples), dtype=np.uint16)
        narrow = np.empty((len(cuts) - n_wide, n_samples), dtype=np.uint8)
        n_bins = [WIDE_BINS if own else NARROW_BINS for own in is_wide]
        return cls(
            Uncoded(wide, narrow, is_wide, row, n_cuts),
            cuts,
            [np.zeros(n, dtype=np.int64) for n in n_bins],
            [np.zeros(n, dtype=np.uint8) for n in n_bins],
            [np.full(n, _NO_LOW) for n in n_bins] if has_extremes else [],
            [np.full(n, -_NO_LOW - 1) for n in n_bins] if has_extremes else [],
        )

    @property
    def n_missing(self) -> np.ndarray:
        found = zip(self.counts, self.codes.n_cuts, strict=True)
        return np.asarray([own[n + 1] for own, n in found], dtype=np.int64)

    def layout(self, *, drops_empty: bool = True) -> BinLayout:
        """Slots for all bins, and for the missing values of each feature.

        Above the last cut there is one more bin; if it is empty and `drops_empty`, it has no slot.
        """
        n_cuts, n_missing = self.codes.n_cuts, self.n_missing
        n_above = np.asarray([own[n] for own, n in zip(self.counts, n_cuts, strict=True)])
        n_bins = n_cuts + (n_above > 0) if drops_empty else n_cuts + 1
        first = np.concatenate([[0], np.cumsum(n_bins + 1)])
        counts = np.zeros(first[-1], dtype=np.int64)
        has_inner_split = np.zeros(first[-1], dtype=np.uint8)
        for j, n in enumerate(n_bins):
            slots = slice(first[j], first[j] + n)
            counts[slots], has_inner_split[slots] = self.counts[j][:n], self.is_mixed[j][:n]
            counts[slots.stop] = n_missing[j]
        offset = np.cumsum(counts) - counts
        offset -= np.repeat(offset[first[:-1]], n_bins + 1)
        last = np.append(offset[1:], 0) - 1
        return BinLayout(first[:-1].copy(), n_bins, offset, last, has_inner_split)

    def extremes_in(self, layout: BinLayout) -> Extremes:
        """The smallest and the largest key in each slot."""
        low, high = (np.empty(len(layout.offset), dtype=np.int64) for _ in range(2))
        for j, n_bins in enumerate(layout.n_bins):
            slots = slice(layout.first[j], layout.first[j] + n_bins + 1)
            low[slots], high[slots] = self.low[j][: n_bins + 1], self.high[j][: n_bins + 1]
        return Extremes(low, high)

    def largest_values(self, layout: BinLayout, dtype: np.dtype) -> np.ndarray:
        """The largest value of each bin that ends at a cut; NaN for the other slots."""
        high = np.full(len(layout.offset), np.nan)
        for first, own in zip(layout.first, self.cuts, strict=True):
            high[first : first + len(own.keys)] = arrays.floats_of(own.keys).astype(dtype)
        return high


def _code_all(source: Source, coded: _Coded, team: Team) -> None:
    """Code all features, some at a time."""
    for part in ranges(source.n_features, _TILE[1] * team.size):
        _code(source, slice(*part), coded, team)


def _code(source: Source, part: slice, coded: _Coded, team: Team) -> None:
    """Code some features, whose cuts are known."""
    bits = codable(source.X[:1, part]).dtype.str.replace("f", "i")
    cuts = np.full((part.stop - part.start, WIDE_BINS), np.iinfo(bits).max, dtype=bits)
    for row, own in zip(cuts, coded.cuts[part], strict=True):
        row[: len(own.keys)] = own.keys
    lock = threading.Lock()

    def tile(corner: tuple[tuple[int, int], tuple[int, int]]) -> None:
        (start, end), (low, high) = corner
        features = range(part.start + low, part.start + high)
        block = source.block(slice(start, end), slice(features.start, features.stop))
        view = codable(block).view(bits)
        if not view.flags.aligned:
            view = view.copy()
        seen = _Seen.empty(len(features), has_extremes=bool(coded.low))
        _code_tile(view, cuts[low:high], features.start, start, coded.codes, seen)
        with lock:
            for k, feature in enumerate(features):
                n_bins = len(coded.counts[feature])
                coded.counts[feature] += seen.counts[k, :n_bins]
                coded.is_mixed[feature] |= seen.is_mixed[k, :n_bins]
                if coded.low:
                    low_keys, high_keys = coded.low[feature], coded.high[feature]
                    np.minimum(low_keys, seen.low[k, :n_bins], out=low_keys)
                    np.maximum(high_keys, seen.high[k, :n_bins], out=high_keys)

    columns = ranges(part.stop - part.start, _TILE[1])
    team.each(tile, [(r, f) for r in ranges(source.n_samples, _TILE[0]) for f in columns])


@group
class _Seen(NamedTuple):
    """What the values of a tile show of the bins of its features; see `_Coded`.

    Attributes
    ----------
    counts : ndarray (n_features, WIDE_BINS) of int64
    is_mixed : ndarray (n_features, WIDE_BINS) of uint8
    low, high : ndarray (n_features, WIDE_BINS) of int64
        Of shape (0, 0) if they are not needed.
    """

    counts: Annotated[np.ndarray, "int64[:, ::1]"]
    is_mixed: Annotated[np.ndarray, "uint8[:, ::1]"]
    low: Annotated[np.ndarray, "int64[:, ::1]"]
    high: Annotated[np.ndarray, "int64[:, ::1]"]

    @classmethod
    def empty(cls, n_features: int, *, has_extremes: bool) -> _Seen:
        """With nothing seen yet."""
        shape = n_features, WIDE_BINS
        of_extremes = shape if has_extremes else (0, 0)
        low, high = np.full(of_extremes, _NO_LOW), np.full(of_extremes, -_NO_LOW - 1)
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.uint8), low, high)


@inner(
    "void(Array(KEY, 2, 'A', readonly=True), int64, KEY[::1], int64, KEY[::1], uint16[::1],"
    " int64[::1], uint8[::1])",
    KEY=KEYS,
)
def _find_bins(bits, j, cuts, n_cuts, keys, bins, counts, is_mixed):  # type: ignore[no-untyped-def]
    """Find the bins of column `j` of a block: for each value the number of cuts below it.

    `bits` are the bit patterns of floats; their keys, as in `arrays.order_keys`, are written to
    `keys`. The samples of each bin are added to `counts`, and bins with more than one value are
    marked in `is_mixed`. All samples make one step of the binary search before any makes the next,
    so that there are no branches, and the processor need not wait for the result of a step.
    """
    n_samples = len(bins)
    highest = cuts[len(cuts) - 1]  # the key of NaN
    lowest = -highest - 1
    infinity = 0x7F800000 if highest == 0x7FFFFFFF else 0x7FF0000000000000
    below = np.empty(n_samples, dtype=np.uint32)
    for i in range(n_samples):
        bit = bits[i, j]
        keys[i] = bit if bit >= 0 else lowest - bit
        below[i] = 0
    step = np.uint32(1)
    while step <= n_cuts:
        step <<= np.uint32(1)
    step >>= np.uint32(1)
    while step > 0:
        for i in range(n_samples):
            at = below[i]
            below[i] = at + step * np.uint32(cuts[at + step - np.uint32(1)] < keys[i])
        step >>= np.uint32(1)
    for i in range(n_samples):
        key, bin_ = keys[i], below[i]
        if key > infinity or key < -infinity:
            bin_ = np.uint32(n_cuts + 1)
        elif cuts[bin_] != key:
            is_mixed[bin_] = 1
        bins[i] = bin_
        counts[bin_] += 1


@inner("void(KEY[::1], KEY[::1], int64, uint16[::1], uint16[::1])", KEY=KEYS)
def _add_parts(keys, cuts, n_cuts, bins, codes):  # type: ignore[no-untyped-def]
    """Write codes of two bytes: the bin, and its part, which never decreases as keys grow."""
    low, scale = np.zeros(WIDE_BINS), np.zeros(WIDE_BINS)  # bins without two cuts stay whole
    most = np.float64((1 << PART_BITS) - 1)
    for b in range(1, n_cuts):
        low[b] = cuts[b - 1]
        width = np.float64(cuts[b]) - low[b]
        scale[b] = most / width if width > 0.0 else 0.0  # keys of 64 bits may round together
    for i in range(len(keys)):
        b = bins[i]
        part = np.int32((keys[i] - low[b]) * scale[b])
        codes[i] = (b << np.uint16(PART_BITS)) | np.uint16(part)


@kernel(
    "void(Array(KEY, 2, 'A', readonly=True), KEY[:, ::1], int64, int64, Uncoded, _Seen)", KEY=KEYS
)
def _code_tile(bits, cuts, first, start, codes, seen):  # type: ignore[no-untyped-def]
    """Code a tile, given as bit patterns of floats; it begins at a feature and a sample."""
    n_samples = len(bits)
    keys, bins = np.empty(n_samples, dtype=bits.dtype), np.empty(n_samples, dtype=np.uint16)
    for k in range(bits.shape[1]):
        n_cuts, row = codes.n_cuts[first + k], codes.row[first + k]
        _find_bins(bits, k, cuts[k], n_cuts, keys, bins, seen.counts[k], seen.is_mixed[k])
        if len(seen.low) > 0:
            for i in range(n_samples):
                b, key = np.uint64(bins[i]), np.int64(keys[i])
                seen.low[k, b] = min(seen.low[k, b], key)
                seen.high[k, b] = max(seen.high[k, b], key)
        if codes.is_wide[first + k]:
            _add_parts(keys, cuts[k], n_cuts, bins, codes.wide[row, start : start + n_samples])
        else:
            own = codes.narrow[row, start : start + n_samples]
            for i in range(n_samples):
                own[i] = bins[i]
