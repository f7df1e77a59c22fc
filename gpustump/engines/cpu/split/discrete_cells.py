"""Discrete votes: the best cut between cells, and bounds for those inside; see `cell_scores`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cell_scores import (
    EVALUATED,
    NO_AGREEMENT,
    add_error,
    error_of_missing,
    is_earlier,
    most_cells,
    set_skew,
)
from gpustump.engines.cpu.split.monotone_bounds import direction_of
from gpustump.engines.cpu.split.part_bounds import OUTWARDS, reach
from gpustump.engines.integer_weights import TOP


@parallel(EVALUATED)
def evaluate(piece, slices, outside, rules, size, bound, most, scores, places):  # type: ignore[no-untyped-def]
    """See `cell_scores.EVALUATED`.

    The left side has the sign -1 where a constraint is 1, and the other way round.
    """
    low = piece * size
    high = min(low + size, len(slices.first))
    best, best_segment, best_cell = NO_AGREEMENT, 0, -1
    n_outputs = len(slices.sums) // 2
    is_exact = len(outside.left_error) == 0
    room = most_cells(slices, low, high)
    by_positive, by_negative = np.empty(room), np.empty(room)
    left_error, right_error = np.zeros(room + 1), np.zeros(room + 1)
    for t in range(low, high):
        start, count = slices.first[t], slices.n_cells[t]
        score = np.zeros(count, dtype=np.int64)
        bound[start : start + count] = 0
        left_error[:], right_error[:] = 0.0, 0.0
        missing_error = 0.0
        direction = direction_of(rules, slices.feature[t])  # 0 unless sums are exact
        for k in range(n_outputs):
            if not is_exact:
                for plane in (2 * k, 2 * k + 1):
                    add_error(slices, outside, plane, t, left_error, right_error)
                    missing_error += error_of_missing(outside, plane, t)
            set_skew(slices, k, start, count, by_positive, by_negative)
            positive, negative = slices.sums[2 * k], slices.sums[2 * k + 1]
            present = outside.present[2 * k, t] - outside.present[2 * k + 1, t]
            extra = abs(outside.missing[2 * k, t] - outside.missing[2 * k + 1, t])
            left = outside.left[2 * k, t] - outside.left[2 * k + 1, t]
            for i in range(count):
                u = start + i
                if slices.is_open[u]:
                    up, down = reach(
                        by_positive[i], by_negative[i], max(positive[u], 0), max(negative[u], 0)
                    )
                    highest, lowest = 2 * (left + up) - present, present - 2 * (left - down)
                    inside = max(highest, lowest)
                    if direction != 0:
                        inside = lowest if direction > 0 else highest
                    bound[u] += inside + extra
                left += positive[u] - negative[u]
                fall = 2 * left - present
                score[i] += abs(fall) + extra
                if direction * fall > 0:
                    score[i] = NO_AGREEMENT
        at_edge, anywhere = NO_AGREEMENT, NO_AGREEMENT
        for i in range(count):
            u = start + i
            if not is_exact:
                at_most = max(score[i], bound[u])
                error = left_error[i + 1] + right_error[i] + missing_error
                bound[u] = min(float(TOP), (float(at_most) + error) * (1.0 + OUTWARDS))
                own = min(float(TOP), (float(score[i]) + error) * (1.0 + OUTWARDS))
                at_edge, anywhere = max(at_edge, np.int64(own)), max(anywhere, bound[u])
            elif not slices.is_open[u]:
                bound[u] = NO_AGREEMENT
            if score[i] < best or i + 1 == count or score[i] == NO_AGREEMENT:
                continue
            if score[i] == best and not is_earlier(slices, t, u, best_segment, best_cell):
                continue
            best, best_segment, best_cell = score[i], t, u
        if most.shape[1] > 0:
            most[0, t], most[1, t] = at_edge, anywhere
    scores[piece], places[piece, 0], places[piece, 1] = best, best_segment, best_cell
