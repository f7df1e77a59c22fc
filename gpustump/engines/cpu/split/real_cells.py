"""Real votes: the best cut between cells, and bounds for those inside; see `cell_scores`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cell_scores import (
    EVALUATED,
    Scored,
    add_error,
    add_output,
    best_of_segment,
    error_of_missing,
    largest,
    most_cells,
    outwards,
    run_up,
    set_skew,
    to_keys,
    write_key,
)
from gpustump.engines.cpu.split.monotone_bounds import Limits, direction_of, limit_real
from gpustump.engines.cpu.split.part_bounds import (
    NO_SCORE,
    EdgeSums,
    least_root,
    roots_inside,
    rounded_up,
)


@parallel(EVALUATED)
def evaluate(piece, slices, outside, rules, size, bound, most, scores, places):  # type: ignore[no-untyped-def]
    """See `cell_scores.EVALUATED`."""
    low = piece * size
    high = min(low + size, len(slices.first))
    best, bounds = Scored(NO_SCORE, 0, -1), bound.view(np.float64)
    n_outputs = len(slices.sums) // 2
    is_exact = len(outside.left_error) == 0
    room = most_cells(slices, low, high)
    score, by_positive, by_negative = np.empty(room), np.empty(room), np.empty(room)
    p, n = np.empty(room + 1, dtype=np.int64), np.empty(room + 1, dtype=np.int64)
    at_edge = np.empty(room + 1)
    p_error, n_error = np.zeros(room + 1), np.zeros(room + 1)
    rest_p_error, rest_n_error = np.zeros(room + 1), np.zeros(room + 1)
    for t in range(low, high):
        start, count = slices.first[t], slices.n_cells[t]
        own = bounds[start : start + count]
        own[:] = 0.0
        for k in range(n_outputs):
            plane = 2 * k
            set_skew(slices, k, start, count, by_positive, by_negative)
            run_up(slices.sums[plane], start, outside.left[plane, t], p[: count + 1])
            run_up(slices.sums[plane + 1], start, outside.left[plane + 1, t], n[: count + 1])
            if not is_exact:
                p_error[:], n_error[:], rest_p_error[:], rest_n_error[:] = 0.0, 0.0, 0.0, 0.0
                add_error(slices, outside, plane, t, p_error, rest_p_error)
                add_error(slices, outside, plane + 1, t, n_error, rest_n_error)
            all_p, all_n = outside.present[plane, t], outside.present[plane + 1, t]
            edges = EdgeSums(p, n, all_p, all_n, p_error, n_error, rest_p_error, rest_n_error)
            missing = -least_root(
                outside.missing[plane, t], outside.missing[plane + 1, t],
                error_of_missing(outside, plane, t), error_of_missing(outside, plane + 1, t),
            )  # fmt: skip
            # Without branches, the compiler takes several cells at a time.
            for i in range(count + 1):
                left = -least_root(p[i], n[i], p_error[i], n_error[i])
                right = least_root(all_p - p[i], all_n - n[i], rest_p_error[i], rest_n_error[i])
                at_edge[i] = left - right + missing
            for i in range(count):
                p0, p9, n0, n9 = p[i], p[i + 1], n[i], n[i + 1]
                more_p, more_n = max(p9 - p0, 0), max(n9 - n0, 0)
                p1, n1 = p0 + rounded_up(by_positive[i], more_p), n0
                p2, n2 = p9, n9 - rounded_up(by_positive[i], more_n)
                p3, n3 = p0, n0 + rounded_up(by_negative[i], more_n)
                p4, n4 = p9 - rounded_up(by_negative[i], more_p), n9
                one, two = roots_inside(edges, i, p1, n1), roots_inside(edges, i, p2, n2)
                three, four = roots_inside(edges, i, p3, n3), roots_inside(edges, i, p4, n4)
                corner = missing - min(min(one, two), min(three, four))
                own[i] += max(corner, max(at_edge[i], at_edge[i + 1]))
            direction = direction_of(rules, slices.feature[t])
            if direction != 0:
                limits = Limits(direction, by_positive, by_negative, missing, is_exact)
                limit_real(limits, edges, rules.smoothing, at_edge, own)
            add_output(score[:count], at_edge, k == 0)
        best = best_of_segment(slices, is_exact, score, t, bounds, best)
        if most.shape[1] > 0:
            write_key(most[0], t, outwards(largest(score[:count])))
            write_key(most[1], t, largest(own))
        to_keys(bound[start : start + count])
    write_key(scores, piece, best.score)
    places[piece, 0], places[piece, 1] = best.segment, best.cell
