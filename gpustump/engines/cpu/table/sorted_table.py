"""Every feature of a table sorted whole, and divided into bins if the table is of medium size.

The order of a feature has four bytes for each sample; the sign bit is set if the next sample has
the same value, so that there is no cut between the two. Bins are stretches of the order, and each
sample has a code of one byte for each feature: the number of its bin.

Features most of whose samples are in one bin, such as the flags of a category, share a column of
codes with their neighbours as long as no sample is outside that bin in two of them. The sums over
that bin are what those over the others leave of the total.

[This is the exclusive feature bundling of LightGBM (Ke et al. 2017, section 4), without conflicts.]
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, inner, kernel
from gpustump.engines.cpu.table.cuts import spread
from gpustump.engines.cpu.table.source_table import Source, plain
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import Partition
from gpustump.learners.thresholds import midpoint

ELEMENTS_AT_ONCE = 2**17
"""Fewer elements than this are not worth another thread."""

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


MOST_BINS = 254
"""The most bins of a feature. The code after that of the last bin is for missing values."""

PER_BIN = 16
"""Samples of a bin, unless that makes too many bins. With smaller bins, the scores at edges take
longer than the searches inside bins that they save."""

_FEATURES_AT_ONCE = 64
"""How many neighbouring features one thread codes, so that they can share columns."""

_FEWEST_BINS = 16
"""How many bins a feature may have at least, however few samples there are."""


@group
class SortedColumns(NamedTuple):
    """The features of a sorted table, as kernels take them.

    Attributes
    ----------
    order : ndarray (n_features, n_samples) of int32
        Samples by increasing value, missing ones last, with the sign bit as said above.
    n_present : ndarray (n_features,) of int64
    begin : ndarray (n_columns + 1,) of int64
        The first feature of each column; last, n_features. Without bins every feature is a column.
    codes : ndarray (n_features, n_samples) of uint8
        The columns of codes; each is in the row of its first feature. Of no rows without bins; then
        the fields below mean nothing.
    n_codes : ndarray (n_features,) of int64
        All codes of a column are below this, in the row of its first feature.
    n_bins : ndarray (n_features,) of int64
    offset : ndarray (n_features, most_bins + 1) of int64
        The sorted position where each bin begins; after the last one, `n_present`.
    is_open : ndarray (n_features, most_bins) of uint8
        Whether a bin has several values, so that there are cuts inside.
    majority : ndarray (n_features,) of int64
        The bin, or `n_bins` for missing values, that holds most samples; -1 if none does. It has no
        code of its own.
    first_code : ndarray (n_features,) of int64
        The code of the first bin that has one; those of the others, and that of missing values,
        follow.
    has_open : ndarray (n_features,) of uint8
        Whether one of a feature's bins has.
    most_open : int
        The largest number of samples in such a bin.
    """

    order: Annotated[np.ndarray, "int32[:, ::1]"]
    n_present: Integers
    begin: Integers
    codes: Annotated[np.ndarray, "uint8[:, ::1]"]
    n_codes: Integers
    n_bins: Integers
    offset: Annotated[np.ndarray, "int64[:, ::1]"]
    is_open: Annotated[np.ndarray, "uint8[:, ::1]"]
    majority: Integers
    first_code: Integers
    has_open: Bytes
    most_open: int


@dataclass(frozen=True)
class SortedTable:
    """A feature table, sorted.

    Attributes
    ----------
    source : Source
        The caller's own table.
    columns : SortedColumns
    team : Team
    """

    source: Source
    columns: SortedColumns
    team: Team
    note: ClassVar[str | None] = None

    @property
    def order(self) -> np.ndarray:
        return self.columns.order

    @property
    def n_present(self) -> np.ndarray:
        return self.columns.n_present

    @property
    def has_bins(self) -> bool:
        """Whether features are divided into bins."""
        return len(self.columns.codes) > 0

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """All results of `threshold`, (n_features, n_samples) of float64; not for float16."""
        return _thresholds_of(self.source, self.order, self.n_present)

    @functools.cached_property
    def _working(self) -> type[np.generic]:
        """The type in which values are compared."""
        return self.source.working_dtype.type

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.source.X

    @property
    def n_samples(self) -> int:
        return int(self.order.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.order.shape[0])

    @property
    def n_missing(self) -> np.ndarray:
        return self.n_samples - self.n_present

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.source.values(feature)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_present[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def has_cut(self, cut: Cut, hypothesis: Partition) -> bool:
        """Whether a stump or split has the same regions as a cut."""
        if cut.after is not None or hypothesis.feature != cut.feature:
            return False
        if cut.position is None or cut.position + 1 >= self.n_present[cut.feature]:
            return hypothesis.thresholds == (math.inf,)
        low, high = (float(self._value(cut.feature, cut.position + step)) for step in (0, 1))
        return len(hypothesis.thresholds) == 1 and low <= hypothesis.thresholds[0] < high

    def _value(self, feature: int, position: int) -> Any:
        sample = int(self.order[feature, position] & _SAMPLE)
        row = sample if self.source.rows is None else int(self.source.rows[sample])
        return self._working(self.X[row, feature])


def prepare(
    X: np.ndarray,
    rows: np.ndarray | None,
    team: Team,
    categorical: tuple[int, ...] = (),
    *,
    most_bins: int = 1,
    per_bin: int = PER_BIN,
) -> SortedTable:
    """Sort a table (n_samples, n_features), and divide its features into bins.

    Parameters
    ----------
    X : ndarray
    rows : ndarray of int64 or None
    team : Team
    categorical : tuple of int
        See `contract.Task`.
    most_bins : int
        The most bins of a feature, at most `MOST_BINS`; 1 for none.
    per_bin : int
        About how many samples a bin should hold at least.
    """
    source = Source(X, rows, categorical)
    n_samples, n_features = source.n_samples, source.n_features
    limit = min(most_bins, max(_FEWEST_BINS, n_samples // per_bin))
    columns = SortedColumns(
        np.empty((n_features, n_samples), dtype=np.int32),
        np.empty(n_features, dtype=np.int64),
        np.arange(n_features + 1),
        np.empty((n_features if limit > 1 else 0, n_samples), dtype=np.uint8),
        np.zeros(n_features, dtype=np.int64),
        np.empty(n_features, dtype=np.int64),
        np.zeros((n_features, limit + 1), dtype=np.int64),
        np.zeros((n_features, limit), dtype=np.uint8),
        np.full(n_features, -1),
        np.zeros(n_features, dtype=np.int64),
        np.zeros(n_features, dtype=np.uint8),
        0,
    )
    most_open = [0]

    def sort(part: tuple[int, int]) -> None:
        here = slice(*part)
        block = source.block(slice(None), here)
        values = np.ascontiguousarray(arrays.as_working(block).T)
        keys = arrays.order_keys(values)
        if keys.dtype.itemsize <= 4:  # key and sample in one integer: sorting those is quickest
            both = (keys.astype(np.int64) << 32) | np.arange(n_samples)
            both.sort(axis=1)
            samples, keys = (both & _SAMPLE).astype(np.int32), both >> 32
        else:
            samples = np.argsort(keys, axis=1).astype(np.int32)
            keys = np.take_along_axis(keys, samples, axis=1)
        lacks = keys == arrays.missing_key(arrays.dtype_name(values))
        samples[:, :-1][keys[:, 1:] == keys[:, :-1]] |= ~_SAMPLE
        columns.order[here] = samples
        columns.n_present[here] = n_samples - np.count_nonzero(lacks, axis=1)
        if limit > 1:
            most_open.append(_divide(columns, limit, *part))

    team.each(sort, ranges(n_features, max(1, ELEMENTS_AT_ONCE // n_samples)))
    if limit > 1:
        team.each(lambda part: _code(columns, *part), ranges(n_features, _FEATURES_AT_ONCE))
        begin = np.append(np.flatnonzero(columns.n_codes), n_features)
        columns = columns._replace(begin=begin, most_open=max(most_open))
    return SortedTable(source, columns, team)


@kernel("int64(SortedColumns, int64, int64, int64)")
def _divide(columns, limit, low, high):  # type: ignore[no-untyped-def]
    """Divide features `low` to `high` into at most `limit` bins; returns `most_open`."""
    most_open = 0
    counts = np.empty(columns.order.shape[1], dtype=np.int64)
    chosen = np.empty(limit, dtype=np.int64)
    for j in range(low, high):
        order, n_present, offset = columns.order[j], columns.n_present[j], columns.offset[j]
        n_values, begin = 0, 0
        for k in range(n_present):
            if k + 1 == n_present or order[k] >= 0:
                counts[n_values] = k + 1 - begin
                n_values += 1
                begin = k + 1
        if n_values > limit:
            n_bins = spread(counts[:n_values], limit, chosen)
        else:
            n_bins = n_values
            for value in range(n_values):
                chosen[value] = value
        columns.n_bins[j] = n_bins
        value, position = 0, 0
        for b in range(n_bins):
            offset[b], first = position, value
            while value <= chosen[b]:
                position += counts[value]
                value += 1
            if value - first > 1:
                columns.is_open[j, b] = columns.has_open[j] = 1
                most_open = max(most_open, position - offset[b])
        offset[n_bins] = n_present
        for b in range(n_bins + 1):
            end = offset[b + 1] if b < n_bins else len(order)
            if 2 * (end - offset[b]) > len(order):
                columns.majority[j] = b
    return most_open


@inner("boolean(SortedColumns, int64, int64)")
def _fits(columns, j, first):  # type: ignore[no-untyped-def]
    """Whether a feature can share the column whose first feature is `first`."""
    majority, n_bins, offset = columns.majority[j], columns.n_bins[j], columns.offset[j]
    if columns.majority[first] < 0 or majority < 0:
        return False
    if columns.n_codes[first] + n_bins > 256:  # a code has one byte
        return False
    order, codes = columns.order[j], columns.codes[first]
    for b in range(n_bins + 1):
        if b != majority:
            for k in range(offset[b], offset[b + 1] if b < n_bins else len(order)):
                if codes[np.uint32(order[k]) & np.uint32(_SAMPLE)] > 0:
                    return False
    return True


@kernel("void(SortedColumns, int64, int64)")
def _code(columns, low, high):  # type: ignore[no-untyped-def]
    """Write the codes of features `low` to `high`."""
    first = low
    for j in range(low, high):
        order, majority, n_bins = columns.order[j], columns.majority[j], columns.n_bins[j]
        offset = columns.offset[j]
        if j == low or not _fits(columns, j, first):
            first = j
            columns.n_codes[j] = 1 if majority >= 0 else 0
            if majority >= 0:
                columns.codes[j, :] = 0
        codes, code = columns.codes[first], columns.n_codes[first]
        columns.first_code[j] = code
        for b in range(n_bins + 1):
            if b != majority:
                for k in range(offset[b], offset[b + 1] if b < n_bins else len(order)):
                    codes[np.uint32(order[k]) & np.uint32(_SAMPLE)] = code
                code += 1
        columns.n_codes[first] = code


def _thresholds_of(source: Source, order: np.ndarray, n_present: np.ndarray) -> np.ndarray:
    """The thresholds after all sorted positions, (n_features, n_samples) of float64."""
    found = np.empty(order.shape)
    values, rows = plain(source.X, source.rows)
    _set_thresholds(values, rows, order, n_present, values.dtype.type(2.0), found)
    return found


@kernel(
    "void(Array(FLOAT, 2, 'A', readonly=True), int64[::1], int32[:, ::1], int64[::1], FLOAT,"
    " float64[:, ::1])",
    FLOAT=("float32", "float64"),
)
def _set_thresholds(values, rows, order, n_present, two, thresholds):  # type: ignore[no-untyped-def]
    """Compute `learners.thresholds.midpoint` after each sorted position, in the values' type."""
    for j in range(len(order)):
        thresholds[j, :] = np.inf
        for k in range(n_present[j] - 1):
            one, next_one = order[j, k] & _SAMPLE, order[j, k + 1] & _SAMPLE
            low = values[rows[one] if len(rows) > 0 else one, j]
            high = values[rows[next_one] if len(rows) > 0 else next_one, j]
            middle = (low + high) / two
            is_between = low <= middle and middle < high
            thresholds[j, k] = np.float64(middle if is_between else low) + 0.0
