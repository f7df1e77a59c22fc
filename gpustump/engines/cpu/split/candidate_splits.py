"""The best of a few cuts that a round is offered, from sums over their smaller sides only.

Each cut is a feature and a sorted position, as in `scan`, or a set of categories. The
search of all cuts computes the same scores, and forbids the same cuts.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.engines.batched_rounds import CandidateSplits
from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.split.category_sets import column_of, score_of_set
from gpustump.engines.cpu.split.monotone_bounds import are_in_order, newton_step
from gpustump.engines.cpu.split.split_scores import gain
from gpustump.engines.cpu.table.sorted_table import SortedTable
from gpustump.engines.cpu.table.source_table import (  # noqa: F401  # a signature names Values
    Values,
    key_at,
    plain,
    values_in,
)
from gpustump.learners.thresholds import rounded_down

_SAMPLE = np.uint32(2**31 - 1)
"""Masks the sign bit out."""


def cuts_of(candidates: CandidateSplits, table: SortedTable) -> np.ndarray:
    """Features and sorted positions of offered cuts, (n_rounds, k, 2) of int64.

    To the table all values of a categorical feature are missing, so the position means nothing.
    """
    features, thresholds = candidates.features, candidates.thresholds
    values, rows = plain(table.source.X, table.source.rows)
    dtype = arrays.dtype_name(values)
    ends = arrays.order_keys(rounded_down(thresholds, dtype)).astype(np.int64)
    cuts = np.empty((*features.shape, 2), dtype=np.int64)
    cuts[..., 0] = features
    _set_positions(values_in(values, rows), table.order, table.n_present, ends, cuts)
    return cuts


@kernel("void(Values, int32[:, ::1], int64[::1], int64[:, ::1], int64[:, :, ::1])")
def _set_positions(values, order, n_present, ends, cuts):  # type: ignore[no-untyped-def]
    """Find, for each offered cut, its feature's last sorted position with a key not above `end`."""
    for number in range(len(cuts)):
        for place in range(cuts.shape[1]):
            j, end = cuts[number, place, 0], ends[number, place]
            low, high = 0, n_present[j]
            while low < high:
                middle = (low + high) >> 1
                sample = np.int64(np.uint32(order[j, middle]) & _SAMPLE)
                if key_at(values, sample, j) <= end:
                    low = middle + 1
                else:
                    high = middle
            cuts[number, place, 1] = low - 1


@inner("UniTuple(int64, 2)(int32[::1], int64, int64, int64[::1], int64[::1])")
def _sums(order, low, high, gradient, hessian):  # type: ignore[no-untyped-def]
    """The sums of both integers over the sorted positions from `low` to before `high`."""
    a, b = 0, 0
    for k in range(low, high):
        sample = np.uint32(order[k]) & _SAMPLE
        a += gradient[sample]
        b += hessian[sample]
    return a, b


@inner("UniTuple(int64, 6)(int32[::1], int64, int64, int64[::1], int64[::1], UniTuple(int64, 2))")
def _region_sums(order, n_present, position, gradient, hessian, totals):  # type: ignore[no-untyped-def]
    """The sums of both integers over left, right and missing; only the smaller side is added up."""
    missing = _sums(order, n_present, len(order), gradient, hessian)
    present = (totals[0] - missing[0], totals[1] - missing[1])
    end = position + 1
    if end <= n_present - end:
        left = _sums(order, 0, end, gradient, hessian)
        right = (present[0] - left[0], present[1] - left[1])
    else:
        right = _sums(order, end, n_present, gradient, hessian)
        left = (present[0] - right[0], present[1] - right[1])
    return left[0], left[1], right[0], right[1], missing[0], missing[1]


@inner(
    "float64(int32[::1], int64, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], float64, int64)"
)
def _score(order, n_present, position, gradient, hessian, totals, l2, direction):  # type: ignore[no-untyped-def]
    """What a cut is worth, as `scan` computes it; -1 if a constraint forbids it."""
    score = 0.0  # gains are not negative, so adding to 0 changes none
    for output in range(len(gradient)):
        a, b, c, d, e, f = _region_sums(
            order, n_present, position, gradient[output], hessian[output],
            (totals[output, 0], totals[output, 1]),
        )  # fmt: skip
        score += (gain(a, b, l2) + gain(c, d, l2)) + gain(e, f, l2)
        is_bound = position + 1 < n_present and direction != 0
        if is_bound and not are_in_order(direction, newton_step(a, b, l2), newton_step(c, d, l2)):
            return -1.0
    return score


@inner(
    "Tuple((int64, float64))(int32[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1],"
    " int64[:, ::1], float64, int64[::1], int64[::1], uint16[:, ::1], int64[:, ::1], uint8[:, ::1])"
)
def best_candidate(  # type: ignore[no-untyped-def]
    order, n_present, gradient, hessian, totals, l2, directions, columns, numbers, cuts, sides
):
    """The index of the best of some cuts (k, 2), the first of equal ones, and its score.

    The index is -1 if there are no cuts, and the score -1 if none is allowed. `columns` and
    `numbers` are those of `Sets`; `sides` (k, n_numbers) are the regions of categories.
    """
    found, best = -1, -1.0
    for number in range(len(cuts)):
        j, position = cuts[number, 0], cuts[number, 1]
        column = column_of(columns, j)
        if column >= 0:
            score = score_of_set(numbers[column], sides[number], gradient, hessian, l2)
        else:
            direction = directions[j] if len(directions) > 0 else 0
            score = _score(
                order[j], n_present[j], position, gradient, hessian, totals, l2, direction
            )
        if found < 0 or score > best:
            found, best = number, score
    return found, best
