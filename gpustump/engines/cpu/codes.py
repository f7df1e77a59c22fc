"""Each value as one byte: bins that are slices of its feature's sorted order.

A bin holds the values above one cut and up to the next; see `cuts`. Wherever the cuts fall, the
search returns the same integers: they decide how often it must look inside a bin, not what it
finds. While values are coded it is noted which bins hold more than one value; there is no cut
inside the others.

Features of many values get a second byte: where in its bin a value lies. With it, a bin can be
looked at more closely without being sorted.

The table is read once, a tile of rows and features at a time, so it may be a file larger than the
memory; what stays is one byte per element, or two.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Search
from gpustump.engines.cpu import bundles
from gpustump.engines.cpu.bin_layout import BinLayout
from gpustump.engines.cpu.bundles import Bundles
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.cuts import Cuts, codable, cuts_of
from gpustump.engines.cpu.sorted_bins import SortedBins
from gpustump.engines.cpu.source_table import Source
from gpustump.engines.threads import Team, ranges
from gpustump.learners.thresholds import midpoint

if TYPE_CHECKING:
    from gpustump.engines.cpu.state import CodedState

LIMIT = 254
"""Most cuts of a feature: codes up to it are bins, 255 is left for what is missing."""

_PER_BIN = 64
"""Fewer samples than this in a bin cost more to look up than to scan."""

_TILE = (4096, 64)
"""Rows and features that are read and coded at once: a megabyte of float32."""


@dataclass(frozen=True)
class CodedTable:
    """A feature table as byte codes.

    Attributes
    ----------
    source : Source
        The caller's own table.
    codes : ndarray (n_columns, n_samples) of uint8
        A column belongs to one feature, or to a bundle of them.
    fine : list of ndarray of uint8
        For each feature, where in its bin a sample lies; empty for features of few values.
    bundles : Bundles
        Which column a feature is in, and which bin each code there stands for.
    layout : BinLayout
        The slots of all bins.
    high : ndarray (n_slots,) of float64
        A bin's largest value, NaN if it is not known.
    n_missing : ndarray (n_features,) of int64
    team : Team
    bins : SortedBins
        Sorted positions of the bins that have been looked into.
    """

    source: Source
    codes: np.ndarray
    fine: list[np.ndarray]
    bundles: Bundles
    layout: BinLayout
    high: np.ndarray
    n_missing: np.ndarray
    team: Team
    bins: SortedBins = field(repr=False)
    note: ClassVar[str | None] = None

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.source.X

    @property
    def n_samples(self) -> int:
        return self.source.n_samples

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.source.values(feature)

    def codes_of(self, feature: int) -> np.ndarray:
        """The column of codes (n_samples,) that a feature is in."""
        column: np.ndarray = self.codes[self.bundles.column[feature]]
        return column

    def start(self, labels: Array, sample_weight: Array, search: Search) -> CodedState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        from gpustump.engines.cpu.state import CodedState  # which is made of tables

        if not search.has_signs:
            raise ValueError(f"the CPU kernels know discrete votes of one output; got {search}.")
        return CodedState(self, arrays.to_host(labels), arrays.to_host(sample_weight), search)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold behind a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_samples - self.n_missing[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def _value(self, feature: int, position: int) -> Any:
        bin_ = self.layout.bin_at(feature, position)
        slot = self.layout.first[feature] + bin_
        if not self.layout.has_inner_split[slot]:
            return self.high[slot].astype(self.source.working_dtype)
        at = position - int(self.layout.offset[slot])
        sample = self.bins.sorted_bin(feature, bin_)[at : at + 1]
        return self.source.picked(sample, feature)[0]


def prepare(
    X: np.ndarray,
    rows: np.ndarray | None,
    team: Team,
    *,
    finely: bool = True,
    budget: int | None = None,
    max_cuts: int = LIMIT,
) -> CodedTable:
    """Code a table.

    Parameters
    ----------
    X : ndarray (n_samples, n_features)
    rows : ndarray (n_rows,) of int64, or None
        Take only these rows.
    team : Team
    finely : bool
        Whether features of many values get a second byte.
    budget : int, optional
        Bytes that sorted bins may take.
    max_cuts : int
        Most cuts of a feature, up to `LIMIT`.
    """
    source = Source(X, rows)
    limit = min(max_cuts, max(16, source.n_samples // _PER_BIN))
    coded = _Coded.empty(source)
    for start, end in ranges(source.n_features, _TILE[1] * team.size):
        features = slice(start, end)
        coded.add(cuts_of(source, features, limit, team), finely)
        _code(source, features, coded, team)
    layout = coded.layout()
    codes, bundled = bundles.join(coded.codes, coded.n_cuts, layout, coded.n_missing, team)
    return CodedTable(
        source=source,
        codes=codes,
        fine=coded.fine,
        bundles=bundled,
        layout=layout,
        high=coded.largest_values(layout, source.working_dtype),
        n_missing=coded.n_missing,
        team=team,
        bins=SortedBins(source, layout, codes, bundled.column, budget),
    )


@dataclass(frozen=True)
class _Coded:
    """What is known of the features that have been coded, each of them by itself.

    Attributes
    ----------
    codes : ndarray (n_features, n_samples) of uint8
    fine : list of ndarray of uint8
    cuts : list of Cuts
    counts : ndarray (n_features, 256) of int64
        How many samples have each code.
    is_mixed : ndarray (n_features, 256) of uint8
        Whether they have more than one value.
    """

    codes: np.ndarray
    fine: list[np.ndarray]
    cuts: list[Cuts]
    counts: np.ndarray
    is_mixed: np.ndarray

    @classmethod
    def empty(cls, source: Source) -> _Coded:
        codes = np.empty((source.n_features, source.n_samples), dtype=np.uint8)
        counts = np.zeros((source.n_features, 256), dtype=np.int64)
        return cls(codes, [], [], counts, np.zeros((source.n_features, 256), dtype=np.uint8))

    def add(self, cuts: list[Cuts], finely: bool) -> None:
        """Note the next features' cuts; make room for their second bytes."""
        n_samples = self.codes.shape[1]
        for own in cuts:
            n_fine = n_samples if own.is_crowded and finely else 0
            self.fine.append(np.empty(n_fine, dtype=np.uint8))
            self.cuts.append(own)

    @property
    def n_cuts(self) -> np.ndarray:
        return np.asarray([len(own.keys) for own in self.cuts], dtype=np.int64)

    @property
    def n_missing(self) -> np.ndarray:
        counts: np.ndarray = self.counts[np.arange(len(self.counts)), self.n_cuts + 1]
        return counts

    def layout(self) -> BinLayout:
        """Slots for all bins that hold a sample, and for what each feature lacks."""
        n_cuts, n_missing = self.n_cuts, self.n_missing
        # Above the last cut there is one more bin, unless that is the largest value of all.
        n_bins = n_cuts + (self.counts[np.arange(len(n_cuts)), n_cuts] > 0)
        first = np.concatenate([[0], np.cumsum(n_bins + 1)])
        counts = np.zeros(first[-1], dtype=np.int64)
        has_inner_split = np.zeros(first[-1], dtype=np.uint8)
        for j, n in enumerate(n_bins):
            slots = slice(first[j], first[j] + n)
            counts[slots], has_inner_split[slots] = self.counts[j, :n], self.is_mixed[j, :n]
            counts[slots.stop] = n_missing[j]
        offset = np.cumsum(counts) - counts
        offset -= np.repeat(offset[first[:-1]], n_bins + 1)
        return BinLayout(first[:-1].copy(), n_bins, offset, has_inner_split)

    def largest_values(self, layout: BinLayout, dtype: np.dtype) -> np.ndarray:
        """The largest value of each bin that ends at a cut; NaN for the other slots."""
        high = np.full(len(layout.offset), np.nan)
        for first, own in zip(layout.first, self.cuts, strict=True):
            high[first : first + len(own.keys)] = _floats(own.keys, dtype)
        return high


def _code(source: Source, part: slice, coded: _Coded, team: Team) -> None:
    """Code some features, whose cuts are known."""
    bits = codable(source.X[:1, part]).dtype.str.replace("f", "i")
    n_features = part.stop - part.start
    cuts = np.full((n_features, 256), np.iinfo(bits).max, dtype=bits)
    for row, own in zip(cuts, coded.cuts[part], strict=True):
        row[: len(own.keys)] = own.keys
    n_cuts = coded.n_cuts[part]
    codes, fine = coded.codes[part], coded.fine[part]
    lock = threading.Lock()

    def tile(corner: tuple[tuple[int, int], tuple[int, int]]) -> None:
        (start, end), (low, high) = corner
        block = source.block(slice(start, end), slice(part.start + low, part.start + high))
        view = codable(block).view(bits)
        if not view.flags.aligned:
            view = view.copy()
        counts = np.zeros((high - low, 256), dtype=np.int64)
        is_mixed = np.zeros((high - low, 256), dtype=np.uint8)
        keys = np.empty(end - start, dtype=bits)
        for k, j in enumerate(range(low, high)):
            own = codes[j, start:end]
            _code_column(view, k, cuts[j], n_cuts[j], own, counts[k], is_mixed[k], keys)
            if len(fine[j]):
                _code_finely(keys, cuts[j], n_cuts[j], own, fine[j][start:end])
        with lock:
            coded.counts[part][low:high] += counts
            coded.is_mixed[part][low:high] |= is_mixed

    features = ranges(n_features, _TILE[1])
    team.each(tile, [(r, f) for r in ranges(source.n_samples, _TILE[0]) for f in features])


@kernel(
    "void(Array(KEY, 2, 'A', readonly=True), int64, KEY[::1], int64, uint8[::1], int64[::1],"
    " uint8[::1], KEY[::1])",
    KEY=("int32", "int64"),
)
def _code_column(bits, j, cuts, n_cuts, codes, counts, is_mixed, keys):  # type: ignore[no-untyped-def]
    """The codes of column `j` of a block: how many cuts lie below each value.

    `bits` are the bit patterns of floats; their keys, as in `arrays.order_keys`, are written to
    `keys`. `counts` tells how many samples each code has, `is_mixed` which codes hold more than
    one value. All samples take one step of the binary search before any takes the next, so that
    there are no branches and no waiting.
    """
    n_samples = len(codes)
    highest = cuts[255]  # the key of NaN
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
        key, code = keys[i], below[i]
        if key > infinity or key < -infinity:
            code = np.uint32(n_cuts + 1)
        elif cuts[code] != key:
            is_mixed[code] = 1
        codes[i] = code
        counts[code] += 1


@kernel("void(KEY[::1], KEY[::1], int64, uint8[::1], uint8[::1])", KEY=("int32", "int64"))
def _code_finely(keys, cuts, n_cuts, codes, fine):  # type: ignore[no-untyped-def]
    """Where in its bin each key lies, from 0 to 255; within a bin this never falls as keys grow."""
    low, scale = np.zeros(256), np.zeros(256)  # bins without two cuts stay whole
    for b in range(1, n_cuts):
        low[b] = cuts[b - 1]
        width = np.float64(cuts[b]) - low[b]
        scale[b] = 255.0 / width if width > 0.0 else 0.0  # keys of 64 bits may round together
    for i in range(len(keys)):
        code = codes[i]
        fine[i] = np.uint8(np.int32((keys[i] - low[code]) * scale[code]))


def _floats(keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Keys back as the floats, in float64, that they were made from."""
    lowest = np.iinfo(keys.dtype).min
    bits = np.where(keys < 0, lowest - keys, keys)
    return bits.view(keys.dtype.str.replace("i", "f")).astype(dtype).astype(np.float64)
