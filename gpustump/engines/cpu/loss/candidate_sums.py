"""Sums over the regions of several splits at once, for rounds that compare only a few given cuts.

The left region of a split and its missing values are added up; the right region has the rest of the
totals. The samples are processed in blocks. In a table that is stored row by row, the values of a
block are close together, so they are read from memory once for all splits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.source_table import Source
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, Partition
from gpustump.learners.thresholds import rounded_down

BLOCK = 512
"""Samples of a block."""

ELEMENTS_AT_ONCE = 2**15
"""Fewer elements than this are not worth another thread."""


def candidate_sums(
    source: Source, splits: Sequence[Partition], terms: Terms, totals: np.ndarray, team: Team
) -> np.ndarray:
    """The sums over the regions of each split, (n_splits, n_regions, n_outputs, 2) of int64.

    Parameters
    ----------
    source : Source
    splits : sequence of Partition
        Each with one threshold; values not above it are on the left.
    terms : Terms
    totals : ndarray (n_outputs, 2) of int64
        The sums over all samples.
    team : Team
    """
    shape = (len(splits), N_REGIONS, len(terms.gradient), 2)
    if not splits:
        return np.zeros(shape, dtype=np.int64)
    values, rows, columns = _values_of(source, [split.feature for split in splits])
    dtype = arrays.dtype_name(values)
    thresholds = np.asarray([split.thresholds[0] for split in splits])
    ends = arrays.order_keys(rounded_down(thresholds, dtype)).astype(np.int64)
    bits = values.view("int" + dtype.removeprefix("float"))
    lowest, infinity = -arrays.missing_key(dtype) - 1, np.asarray(np.inf, dtype)
    limits = lowest, int(infinity.view(bits.dtype))
    n_pieces, size = team.pieces(source.n_samples, max(BLOCK, ELEMENTS_AT_ONCE // len(splits)))
    sums = np.zeros((n_pieces, *shape), dtype=np.int64)
    team.run(_add, n_pieces, bits, rows, columns, ends, *limits, *terms, size, sums)
    return with_rest(sums.sum(axis=0), totals)


def _values_of(
    source: Source, features: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values as float32 or float64, the rows that are samples, and each feature's column there.

    A table of one of these types is not copied.
    """
    if source.is_plain:
        return source.X, source.rows_for_kernels, np.asarray(features, dtype=np.int64)
    picked = np.stack([source.values(feature) for feature in features], axis=1)
    if picked.dtype == np.float16:
        picked = picked.astype(np.float32)
    return picked, np.empty(0, dtype=np.int64), np.arange(len(features), dtype=np.int64)


def with_rest(found: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Set the sums over the right regions, from those over the left ones and missing values."""
    found[:, SECOND] = totals - found[:, FIRST] - found[:, MISSING]
    return found


@inner("UniTuple(int64, 2)(int64[::1], int64[::1], int64[::1])")
def _masked(gradient, hessian, mask):  # type: ignore[no-untyped-def]
    """The sums of both integers where the mask has all bits set.

    If there are no Hessians, the absolute values of the gradients are added up.
    """
    a, b = 0, 0
    if len(hessian) == 0:
        for i in range(len(mask)):
            own = gradient[i] & mask[i]
            a += own
            b += abs(own)
    else:
        for i in range(len(mask)):
            a += gradient[i] & mask[i]
            b += hessian[i] & mask[i]
    return a, b


@inner("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64, int64, int64[:, :, ::1])")
def add_masked(gradient, hessian, left, missing, n_missing, start, sums):  # type: ignore[no-untyped-def]
    """Add up a block of samples from `start` on, given masks of the left and the missing ones."""
    none = np.empty(0, dtype=np.int64)
    end = start + len(left)
    for output in range(len(gradient)):
        here = gradient[output, start:end]
        there = hessian[output, start:end] if len(hessian) > 0 else none
        a, b = _masked(here, there, left)
        sums[0, output, 0] += a
        sums[0, output, 1] += b
        if n_missing > 0:
            a, b = _masked(here, there, missing)
            sums[2, output, 0] += a
            sums[2, output, 1] += b


@parallel(
    "void(int64, Array(BITS, 2, 'A', readonly=True), int64[::1], int64[::1], int64[::1], int64,"
    " int64, int64[:, ::1], int64[:, ::1], int64, int64[:, :, :, :, ::1])",
    BITS=("int32", "int64"),
)
def _add(  # type: ignore[no-untyped-def]
    piece, bits, rows, columns, ends, lowest, infinity, gradient, hessian, size, all_sums
):
    """Add up the left and the missing samples of a piece for each split.

    `ends` holds the largest key on the left of each split; see `arrays.order_keys`.
    """
    sums, low, high = all_sums[piece], piece * size, min((piece + 1) * size, gradient.shape[1])
    keys = np.empty(BLOCK, dtype=np.int64)
    left = np.empty(BLOCK, dtype=np.int64)
    missing = np.empty(BLOCK, dtype=np.int64)
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        for split in range(len(ends)):
            column, end = columns[split], ends[split]
            if len(rows) > 0:
                for i in range(n):
                    keys[i] = bits[rows[start + i], column]
            else:
                for i in range(n):
                    keys[i] = bits[start + i, column]
            n_missing = 0
            for i in range(n):
                key = keys[i]
                key = lowest - key if key < 0 else key
                is_missing = np.int64(abs(key) > infinity)
                n_missing += is_missing
                missing[i] = -is_missing
                left[i] = -(np.int64(key <= end) & (1 - is_missing))
            add_masked(gradient, hessian, left[:n], missing[:n], n_missing, start, sums[split])
