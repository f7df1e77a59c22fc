"""Each value as one byte: bins that are slices of its feature's sorted order.

A bin holds the values above one cut and up to the next. Cuts are values of a sample of the rows,
about equally many of them between two, so nothing is sorted but the sample; values that fill a bin
of their own get one. Wherever they fall, the scan returns the same integers: cuts decide how
often it must look inside a bin, not what it finds. While values are coded it is noted which bins
hold a single value ("pure"): there is no cut inside those.

Features of many values get a second byte: whereabouts in its bin a value lies. It lets a bin be
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
from gpustump.data.parameters import Learner
from gpustump.engines.cpu import bundles
from gpustump.engines.cpu.bins import Bins
from gpustump.engines.cpu.bundles import Bundles
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.threads import Team, ranges
from gpustump.learners.thresholds import midpoint

if TYPE_CHECKING:
    from gpustump.engines.cpu.state import CodedState

LIMIT = 254
"""Most cuts of a feature: codes up to it are bins, 255 is left for what is missing."""

_SAMPLE = 2**14
"""Rows whose values decide where the cuts fall: 64 for each bin."""

_PER_BIN = 64
"""Fewer samples than this in a bin cost more to look up than to scan."""

_TILE = (4096, 64)
"""Rows and features that are read and coded at once: a megabyte of float32."""


_NO_ROWS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class CodedTable:
    """A feature table as byte codes.

    Bins are numbered through: those of feature j are `first[j]`, `first[j] + 1`, ... in order of
    their values, `n_bins[j]` of them, none empty; then comes a slot for what is missing.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
        The caller's own table.
    rows : ndarray (n_samples,) of int64, or None
    n_samples, n_features : int
    codes : ndarray (n_columns, n_samples) of uint8
        A column belongs to one feature, or to a bundle of them.
    fine : list of ndarray of uint8
        For each feature, where in its bin a sample lies; empty for features of few values.
    bundles : Bundles
        Which column a feature is in, and which bin each code there stands for.
    first, n_bins : ndarray (n_features,) of int64
    impure : ndarray (n_slots,) of uint8
        Whether a bin holds more than one value, and so may hide a cut.
    offset : ndarray (n_slots,) of int64
        Sorted position of a bin's first sample; of a missing slot's too.
    high : ndarray (n_slots,) of float64
        A bin's largest value, NaN if it is not known.
    n_missing : ndarray (n_features,) of int64
    team : Team
    bins : Bins
        Sorted positions of the bins that have been looked into.
    """

    X: np.ndarray
    rows: np.ndarray | None
    n_samples: int
    n_features: int
    codes: np.ndarray
    fine: list[np.ndarray]
    bundles: Bundles
    first: np.ndarray
    n_bins: np.ndarray
    impure: np.ndarray
    offset: np.ndarray
    high: np.ndarray
    n_missing: np.ndarray
    team: Team
    bins: Bins = field(repr=False)
    note: ClassVar[str | None] = None

    @property
    def rows_for_kernels(self) -> np.ndarray:
        """`rows`, or none at all if all of them take part."""
        return _NO_ROWS if self.rows is None else self.rows

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        values: np.ndarray = arrays.as_working(_rows_of(self.X, self.rows, feature))
        return values

    def start(self, labels: Array, sample_weight: Array, learner: Learner) -> CodedState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        from gpustump.engines.cpu.state import CodedState  # which is made of tables

        return CodedState(self, arrays.to_host(labels), arrays.to_host(sample_weight), learner)

    def bin_at(self, feature: int, position: int) -> int:
        """The bin of a feature that holds a sorted position."""
        first = self.first[feature]
        offsets = self.offset[first : first + self.n_bins[feature]]
        return int(np.searchsorted(offsets, position, side="right")) - 1

    def threshold(self, feature: int, position: int) -> float:
        """The threshold of the cut after a sorted position; see `Columns.threshold`."""
        if position + 1 >= self.n_samples - self.n_missing[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def _value(self, feature: int, position: int) -> Any:
        bin_ = self.bin_at(feature, position)
        slot = self.first[feature] + bin_
        dtype = arrays.working_dtype(arrays.dtype_name(self.X))
        if not self.impure[slot]:
            return self.high[slot].astype(dtype)
        at = position - int(self.offset[slot])
        sample = self.bins.sorted_bin(self, feature, bin_)[at : at + 1]
        return arrays.as_working(_rows_of(self.X, _picked(self.rows, sample), feature))[0]


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
    n_samples = X.shape[0] if rows is None else rows.shape[0]
    n_features = X.shape[1]
    limit = min(max_cuts, max(16, n_samples // _PER_BIN))
    codes = np.empty((n_features, n_samples), dtype=np.uint8)
    fine: list[np.ndarray] = []
    cuts: list[np.ndarray] = []
    counts = np.empty((n_features, 256), dtype=np.int64)
    impure = np.empty((n_features, 256), dtype=np.uint8)
    for start, end in ranges(n_features, _TILE[1] * team.size):
        part = slice(start, end)
        found, crowded = _cuts(X, rows, part, limit, team)
        fine_here = [np.empty(n_samples if c and finely else 0, dtype=np.uint8) for c in crowded]
        _code(X, rows, part, found, codes[part], fine_here, counts[part], impure[part], team)
        cuts.extend(found)
        fine.extend(fine_here)
    n_cuts = np.asarray([len(c) for c in cuts], dtype=np.int64)
    each = np.arange(n_features)
    # Above the last cut there is one more bin, unless that is the largest value of all.
    n_bins = n_cuts + (counts[each, n_cuts] > 0)
    n_missing = counts[each, n_cuts + 1].copy()
    first = np.concatenate([[0], np.cumsum(n_bins + 1)])
    high = np.full(first[-1], np.nan)
    slot_counts = np.zeros(first[-1], dtype=np.int64)
    slot_impure = np.zeros(first[-1], dtype=np.uint8)
    dtype = np.dtype(arrays.working_dtype(arrays.dtype_name(X)))
    for j in range(n_features):
        at = first[j]
        slot_counts[at : at + n_bins[j]] = counts[j, : n_bins[j]]
        slot_counts[at + n_bins[j]] = n_missing[j]
        slot_impure[at : at + n_bins[j]] = impure[j, : n_bins[j]]
        high[at : at + n_cuts[j]] = _floats(cuts[j], dtype)
    offset = np.cumsum(slot_counts) - slot_counts
    offset -= np.repeat(offset[first[:-1]], n_bins + 1)
    codes, bundled = bundles.join(codes, n_cuts, n_bins, n_missing, slot_impure, first, team)
    return CodedTable(
        X=X,
        rows=rows,
        n_samples=n_samples,
        n_features=n_features,
        codes=codes,
        fine=fine,
        bundles=bundled,
        first=first[:-1].copy(),
        n_bins=n_bins,
        impure=slot_impure,
        offset=offset,
        high=high,
        n_missing=n_missing,
        team=team,
        bins=Bins(n_samples, budget),
    )


def _cuts(
    X: np.ndarray, rows: np.ndarray | None, part: slice, limit: int, team: Team
) -> tuple[list[np.ndarray], list[bool]]:
    """The keys of the cuts of some features, increasing, from a sample of the rows.

    And of each feature, whether the sample holds more values than there may be cuts.
    """
    n_samples = X.shape[0] if rows is None else rows.shape[0]
    if n_samples <= _SAMPLE:
        sample = np.arange(n_samples)
    else:  # one row drawn from each of so many equal stretches: the same ones in every run
        stretch = n_samples / _SAMPLE
        drawn = np.random.default_rng(0).random(_SAMPLE)
        sample = ((np.arange(_SAMPLE) + drawn) * stretch).astype(np.int64)
    keys = arrays.order_keys(_codable(X[_picked(rows, sample), part]))
    n_features = keys.shape[1]
    found: list[np.ndarray] = [keys[:0, 0]] * n_features
    crowded = [False] * n_features

    def look(j: int) -> None:
        column = np.sort(keys[:, j])
        column = column[: np.searchsorted(column, _missing(column.dtype))]
        values, counts = np.unique(column, return_counts=True)
        if len(values) > limit:
            chosen = np.empty(limit, dtype=np.int64)
            values = values[chosen[: _spread(counts, limit, chosen)]]
            crowded[j] = True
        found[j] = values

    team.each(look, range(n_features))
    return found, crowded


@kernel("int64(int64[::1], int64, int64[::1])")
def _spread(counts, limit, chosen):  # type: ignore[no-untyped-def]
    """Choose so many of the distinct values as cuts, the samples spread evenly between them.

    A value that fills a bin alone is cut off from those below it too.
    """
    left = counts.sum()
    n_chosen = 0
    pending = 0
    last = len(counts) - 1
    for k in range(last):
        free = limit - 1 - n_chosen  # the last value is always a cut
        if free < 1:
            break
        fair = max(1, left // (free + 1))
        if counts[k] >= 2 and counts[k] >= fair:
            if pending > 0 and free >= 2:
                chosen[n_chosen] = k - 1
                n_chosen += 1
            chosen[n_chosen] = k
            n_chosen += 1
            left -= pending + counts[k]
            pending = 0
        else:
            pending += counts[k]
            if pending >= fair:
                chosen[n_chosen] = k
                n_chosen += 1
                left -= pending
                pending = 0
    chosen[n_chosen] = last
    return n_chosen + 1


def _code(
    X: np.ndarray,
    rows: np.ndarray | None,
    part: slice,
    cuts: list[np.ndarray],
    codes: np.ndarray,
    fine: list[np.ndarray],
    counts: np.ndarray,
    impure: np.ndarray,
    team: Team,
) -> None:
    """Fill the codes of some features, how many samples each has, and which hold two values."""
    counts[:] = 0
    impure[:] = 0
    bits = _codable(X[:1, part]).dtype.str.replace("f", "i")
    table = np.full((len(cuts), 256), np.iinfo(bits).max, dtype=bits)
    for j, found in enumerate(cuts):
        table[j, : len(found)] = found
    n_cuts = np.asarray([len(found) for found in cuts], dtype=np.int64)
    lock = threading.Lock()

    def tile(corner: tuple[tuple[int, int], tuple[int, int]]) -> None:
        (start, end), (low, high) = corner
        mine = slice(part.start + low, part.start + high)
        block = X[start:end, mine] if rows is None else X[rows[start:end], mine]
        view = _codable(block).view(bits)
        if not view.flags.aligned:
            view = view.copy()
        n_here = np.zeros((high - low, 256), dtype=np.int64)
        impure_here = np.zeros((high - low, 256), dtype=np.uint8)
        keys = np.empty(end - start, dtype=bits)
        for j in range(low, high):
            _code_column(
                view, j - low, table[j], n_cuts[j], codes[j, start:end], n_here[j - low],
                impure_here[j - low], keys,
            )  # fmt: skip
            if len(fine[j]):
                _code_finely(keys, table[j], n_cuts[j], codes[j, start:end], fine[j][start:end])
        with lock:
            counts[low:high] += n_here
            impure[low:high] |= impure_here

    n_samples = codes.shape[1]
    features = ranges(len(cuts), _TILE[1])
    team.each(tile, [(r, f) for r in ranges(n_samples, _TILE[0]) for f in features])


@kernel(
    "void(Array(int32, 2, 'A', readonly=True), int64, int32[::1], int64, uint8[::1], int64[::1],"
    " uint8[::1], int32[::1])",
    "void(Array(int64, 2, 'A', readonly=True), int64, int64[::1], int64, uint8[::1], int64[::1],"
    " uint8[::1], int64[::1])",
)
def _code_column(bits, j, cuts, n_cuts, codes, counts, impure, keys):  # type: ignore[no-untyped-def]
    """Codes of a column of floats' bit patterns: how many cuts lie below each value.

    Bits become keys as in `arrays.order_keys`, left in `keys`. The search takes every sample a
    step further before the next step, so that it is free of branches and of waiting.
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
            impure[code] = 1
        codes[i] = code
        counts[code] += 1


@kernel(
    "void(int32[::1], int32[::1], int64, uint8[::1], uint8[::1])",
    "void(int64[::1], int64[::1], int64, uint8[::1], uint8[::1])",
)
def _code_finely(keys, cuts, n_cuts, codes, fine):  # type: ignore[no-untyped-def]
    """Where in its bin each key lies, from 0 to 255; in between, it never falls as keys grow."""
    low, scale = np.zeros(256), np.zeros(256)  # bins without two cuts stay whole
    for b in range(1, n_cuts):
        low[b] = cuts[b - 1]
        width = np.float64(cuts[b]) - low[b]
        scale[b] = 255.0 / width if width > 0.0 else 0.0  # keys of 64 bits may round together
    for i in range(len(keys)):
        code = codes[i]
        fine[i] = np.uint8(np.int32((keys[i] - low[code]) * scale[code]))


def _codable(values: np.ndarray) -> np.ndarray:
    """Values as float32 or float64, without loss."""
    values = arrays.as_working(values)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _missing(dtype: np.dtype) -> int:
    return int(np.iinfo(dtype).max)


def _floats(keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Keys back as the floats, in float64, that they were made from."""
    lowest = np.iinfo(keys.dtype).min
    bits = np.where(keys < 0, lowest - keys, keys)
    return bits.view(keys.dtype.str.replace("i", "f")).astype(dtype).astype(np.float64)


def _picked(rows: np.ndarray | None, samples: np.ndarray) -> np.ndarray:
    return samples if rows is None else rows[samples]


def _rows_of(X: np.ndarray, rows: np.ndarray | None, feature: int) -> np.ndarray:
    column: np.ndarray = X[:, feature] if rows is None else X[rows, feature]
    return column
