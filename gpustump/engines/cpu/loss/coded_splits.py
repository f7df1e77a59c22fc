"""Sums over the regions of several splits of a coded table at once, mostly from codes.

Only for the samples of the bin that a threshold lies in must the values be read; see
`coded_regions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.loss.candidate_sums import (
    BLOCK,
    ELEMENTS_AT_ONCE,
    add_masked,
    candidate_sums,
    with_rest,
)
from gpustump.engines.cpu.loss.coded_regions import ASK, largest_on_left, regions_by_code
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS, WIDE_BINS
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, Partition


def coded_sums(
    table: CodedTable, splits: Sequence[Partition], terms: Terms, totals: np.ndarray
) -> np.ndarray:
    """What `candidate_sums` returns, for splits of features that are not categorical."""
    if not (splits and table.source.is_plain):
        return candidate_sums(table.source, splits, terms, totals, table.team)
    features = np.asarray([split.feature for split in splits], dtype=np.int64)
    by_code = np.zeros((len(splits), WIDE_BINS), dtype=np.uint8)
    for own, split in zip(by_code, splits, strict=True):
        known = regions_by_code(table, split)
        own[: len(known)] = known
    ends = arrays.order_keys(np.asarray([largest_on_left(table, split) for split in splits]))
    bits, rows, lowest = table.source.bits
    about = (
        bits, rows, features, ends.astype(np.int64), lowest, *table.columns,
        table.bundles.column[features].astype(np.int64),
        table.bundles.is_wide[features].astype(np.uint8), by_code,
    )  # fmt: skip
    at_once = max(BLOCK, ELEMENTS_AT_ONCE // len(splits))
    n_pieces, size = table.team.pieces(table.n_samples, at_once)
    sums = np.zeros((n_pieces, len(splits), N_REGIONS, len(terms.gradient), 2), dtype=np.int64)
    table.team.run(_add, n_pieces, *about, *terms, size, sums)
    return with_rest(sums.sum(axis=0), totals)


@inner(
    "void(Array(BITS, 2, 'A', readonly=True), int64[::1], int64, int64, int64, int64, uint8[::1])",
    BITS=("int32", "int64"),
)
def _ask(bits, rows, feature, end, lowest, start, region):  # type: ignore[no-untyped-def]
    """Find the regions of those samples of a block whose codes do not tell them, from values."""
    for i in range(len(region)):
        if region[i] == ASK:
            row = rows[start + i] if len(rows) > 0 else start + i
            key = np.int64(bits[row, feature])
            key = lowest - key if key < 0 else key
            region[i] = FIRST if key <= end else SECOND


@parallel(
    "void(int64, Array(BITS, 2, 'A', readonly=True), int64[::1], int64[::1], int64[::1], int64,"
    " uint16[:, ::1], uint8[:, ::1], int64[::1], uint8[::1], uint8[:, ::1],"
    " int64[:, ::1], int64[:, ::1], int64, int64[:, :, :, :, ::1])",
    BITS=("int32", "int64"),
)
def _add(  # type: ignore[no-untyped-def]
    piece, bits, rows, features, ends, lowest, wide, narrow, columns, is_wide, by_code,
    gradient, hessian, size, all_sums,
):  # fmt: skip
    """Add up the left and the missing samples of a piece for each split."""
    sums, low, high = all_sums[piece], piece * size, min((piece + 1) * size, gradient.shape[1])
    all_regions = np.empty(BLOCK, dtype=np.uint8)
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
                n_asked += np.int64(region[i] == ASK)
            if n_asked > 0:
                _ask(bits, rows, features[split], ends[split], lowest, start, region)
            n_missing = 0
            for i in range(n):
                is_missing = np.int64(region[i] == MISSING)
                n_missing += is_missing
                missing[i] = -is_missing
                left[i] = -np.int64(region[i] == FIRST)
            add_masked(gradient, hessian, left[:n], missing[:n], n_missing, start, sums[split])
