"""All thresholds of a sorted table, for rounds that are made in batches."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.source_table import Source, plain

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


def thresholds_of(source: Source, order: np.ndarray, n_present: np.ndarray) -> np.ndarray:
    """See `sorted_table.SortedTable.thresholds`."""
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
