"""The regions of a coded table's samples in splits at given thresholds, mostly from their codes.

A threshold lies between two bins or inside one. Only for the samples of that one bin must the
values be read. This saves time because the values of a feature are far apart in memory: they lie in
as many lines of the cache as there are samples.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.engines.contract import RegionSums
from gpustump.engines.cpu.loss.offered_sums import BLOCK, add_masked, as_sums, offered_sums
from gpustump.engines.cpu.loss.regions import votes_by_code
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS, WIDE_BINS
from gpustump.engines.threads import ranges
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, Partition
from gpustump.learners.thresholds import rounded_down

_ASK = 3
"""Instead of a region: it depends on the value."""

_SAMPLES_AT_ONCE, _ELEMENTS_AT_ONCE = 2**18, 2**17
"""Fewer samples, or elements, than this are not worth another thread."""


def is_coded(table: CodedTable, hypothesis: Partition) -> bool:
    """Whether a hypothesis has one threshold, of a feature whose codes tell its values."""
    one = len(hypothesis.thresholds) == 1
    return one and hypothesis.feature not in table.source.categorical


def mark_by_codes(table: CodedTable, split: Partition, found: np.ndarray) -> None:
    """Give each sample the number of its region.

    Parameters
    ----------
    table : CodedTable
    split : Partition
        See `is_coded`.
    found : ndarray (n_samples,) of uint8
    """
    feature = split.feature
    codes, by_code = table.codes_of(feature), regions_by_code(table, split)
    shift = PART_BITS if table.bundles.is_wide[feature] else 0
    table.team.each(
        lambda part: votes_by_code(codes, shift, by_code, found.view(np.int8), *part),
        ranges(table.n_samples, _SAMPLES_AT_ONCE),
    )
    if _ASK in by_code:
        asked = np.flatnonzero(found == _ASK)
        is_left = table.source.picked(asked, feature) <= comparable(table, split)
        found[asked] = np.where(is_left, FIRST, SECOND)


def comparable(table: CodedTable, split: Partition) -> np.generic:
    """The largest value of the table's type that is on the left."""
    dtype = str(table.source.working_dtype)
    largest: np.generic = rounded_down(np.asarray(split.thresholds), dtype)[0]
    return largest


def regions_by_code(table: CodedTable, split: Partition) -> np.ndarray:
    """The region of each bin of a wide column, or code of another one, of int8; see `_ASK`."""
    feature, threshold = split.feature, split.thresholds[0]
    slots = table.layout.slots(feature)
    n_bins = slots.stop - slots.start
    by_slot = np.full(n_bins + 1, SECOND, dtype=np.int8)
    if table.n_missing[feature]:
        by_slot[n_bins] = MISSING
    if threshold == math.inf:
        by_slot[:n_bins] = FIRST
    else:
        high = table.high[slots]
        n_known = n_bins - int(np.isnan(high).sum())  # the largest value of the last one is not
        n_left = int(np.searchsorted(high[:n_known], threshold, side="right"))
        by_slot[:n_left] = FIRST
        has_several = n_left < n_bins and table.layout.has_inner_split[slots.start + n_left]
        if has_several or n_known <= n_left < n_bins:
            by_slot[n_left] = _ASK
    return table.bundles.by_code(feature, by_slot)


def coded_sums(
    table: CodedTable, splits: Sequence[Partition], terms: Terms, totals: np.ndarray
) -> list[RegionSums]:
    """What `offered_sums` returns, for splits of features that are not categorical."""
    if not (splits and table.source.is_plain):
        return offered_sums(table.source, splits, terms, totals, table.team)
    features = np.asarray([split.feature for split in splits], dtype=np.int64)
    by_code = np.zeros((len(splits), WIDE_BINS), dtype=np.int8)
    for own, split in zip(by_code, splits, strict=True):
        known = regions_by_code(table, split)
        own[: len(known)] = known
    ends = arrays.order_keys(np.asarray([comparable(table, split) for split in splits]))
    bits, rows, lowest = table.source.bits
    about = (
        bits, rows, features, ends.astype(np.int64), lowest, *table.columns,
        table.bundles.column[features].astype(np.int64),
        table.bundles.is_wide[features].astype(np.uint8), by_code,
    )  # fmt: skip
    parts: list[np.ndarray] = []

    def add(piece: tuple[int, int]) -> None:
        sums = np.zeros((len(splits), N_REGIONS, len(terms.first), 2), dtype=np.int64)
        _add(*about, *terms, *piece, sums)
        parts.append(sums)

    at_once = max(BLOCK, _ELEMENTS_AT_ONCE // len(splits))
    table.team.each(add, ranges(table.n_samples, at_once))
    return as_sums(functools.reduce(operator.add, parts), totals)


@kernel(
    "void(Array(BITS, 2, 'A', readonly=True), int64[::1], int64, int64, int64, int64, int8[::1])",
    BITS=("int32", "int64"),
)
def _ask(bits, rows, feature, end, lowest, start, region):  # type: ignore[no-untyped-def]
    """Find the regions of those samples of a block whose codes do not tell them, from values."""
    for i in range(len(region)):
        if region[i] == _ASK:
            row = rows[start + i] if len(rows) > 0 else start + i
            key = np.int64(bits[row, feature])
            key = lowest - key if key < 0 else key
            region[i] = FIRST if key <= end else SECOND


@kernel(
    "void(Array(BITS, 2, 'A', readonly=True), int64[::1], int64[::1], int64[::1], int64,"
    " uint16[:, ::1], uint8[:, ::1], int64[::1], uint8[::1], int8[:, ::1],"
    " int64[:, ::1], int64[:, ::1], int64, int64, int64[:, :, :, ::1])",
    BITS=("int32", "int64"),
)
def _add(  # type: ignore[no-untyped-def]
    bits, rows, features, ends, lowest, wide, narrow, columns, is_wide, by_code,
    first, second, low, high, sums,
):  # fmt: skip
    """Add up the left and the missing samples from `low` to `high` of each split."""
    all_regions = np.empty(BLOCK, dtype=np.int8)
    left = np.empty(BLOCK, dtype=np.int64)
    missing = np.empty(BLOCK, dtype=np.int64)
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        region = all_regions[:n]
        for split in range(len(features)):
            column, known = columns[split], by_code[split]
            if is_wide[split]:
                for i in range(n):
                    region[i] = known[wide[column, start + i] >> PART_BITS]
            else:
                for i in range(n):
                    region[i] = known[narrow[column, start + i]]
            n_asked = 0
            for i in range(n):
                n_asked += np.int64(region[i] == _ASK)
            if n_asked > 0:
                _ask(bits, rows, features[split], ends[split], lowest, start, region)
            n_missing = 0
            for i in range(n):
                is_missing = np.int64(region[i] == MISSING)
                n_missing += is_missing
                missing[i] = -is_missing
                left[i] = -np.int64(region[i] == FIRST)
            add_masked(first, second, left[:n], missing[:n], n_missing, start, sums[split])
