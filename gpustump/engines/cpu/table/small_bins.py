"""A sorted table divided into bins of few samples, if it is of medium size.

Bins are slices of a feature's order, and each sample has a code of one byte for each feature: the
number of its bin.

Features most of whose samples are in one bin, such as the flags of a category, share a column of
codes with their neighbours as long as no sample is outside that bin in two of them. The sums over
that bin are what those over the others leave of the total.

[This is the exclusive feature bundling of LightGBM (Ke et al. 2017, section 4), without conflicts.]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.table.cuts import spread
from gpustump.engines.cpu.table.sorted_table import ELEMENTS_AT_ONCE, SAMPLE, SortedTable
from gpustump.engines.threads import ranges

MOST_BINS, PER_BIN = 254, 16
"""The most bins of a feature; and the samples of a bin, unless that makes too many bins. The code
after that of the last bin is for missing values. With smaller bins, the scores at edges take longer
than the searches inside bins that they save."""

OF_ONE_OUTPUT = 128, 32
"""The same for one output, where few bins are searched, as their limits are remembered."""

_FEATURES_AT_ONCE = 64
"""How many neighbouring features one thread codes, so that they can share columns."""

_FEWEST_BINS = 16
"""How many bins a feature may have at least, however few samples there are."""


def divided(table: SortedTable, most_bins: int = MOST_BINS, per_bin: int = PER_BIN) -> SortedTable:
    """A table without bins, divided.

    Parameters
    ----------
    table : SortedTable
    most_bins : int
        The most bins of a feature, from 2 to `MOST_BINS`.
    per_bin : int
        About how many samples a bin should hold at least.
    """
    n_samples, n_features = table.n_samples, table.n_features
    limit = min(most_bins, max(_FEWEST_BINS, n_samples // per_bin))
    columns = table.columns._replace(
        codes=np.empty((n_features, n_samples), dtype=np.uint8),
        n_codes=np.zeros(n_features, dtype=np.int64),
        n_bins=np.empty(n_features, dtype=np.int64),
        offset=np.zeros((n_features, limit + 1), dtype=np.int64),
        is_open=np.zeros((n_features, limit), dtype=np.uint8),
        majority=np.full(n_features, -1),
        first_code=np.zeros(n_features, dtype=np.int64),
        has_open=np.zeros(n_features, dtype=np.uint8),
    )
    most_open = [0]
    table.team.each(
        lambda part: most_open.append(_divide(columns, limit, *part)),
        ranges(n_features, max(1, ELEMENTS_AT_ONCE // n_samples)),
    )
    table.team.each(lambda part: _code(columns, *part), ranges(n_features, _FEATURES_AT_ONCE))
    begin = np.append(np.flatnonzero(columns.n_codes), n_features)
    return replace(table, columns=columns._replace(begin=begin, most_open=max(most_open)))


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
                if codes[np.uint32(order[k]) & np.uint32(SAMPLE)] > 0:
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
                    codes[np.uint32(order[k]) & np.uint32(SAMPLE)] = code
                code += 1
        columns.n_codes[first] = code
