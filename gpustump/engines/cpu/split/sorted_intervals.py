"""Discrete votes on a sorted table: the best interval or stump, from all pairs of cuts."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Cut, constant_cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.found_split import (
    NOTHING,
    STUMP,
    Found,
    as_cut,
    better,
    fields_of,
    sign_for_missing,
)
from gpustump.engines.cpu.table.sorted_table import ELEMENTS_AT_ONCE, SAMPLE, SortedTable


class SortedIntervals:
    """The search of a run on a sorted table for its best intervals.

    Parameters
    ----------
    table : SortedTable
    """

    def __init__(self, table: SortedTable) -> None:
        self._table = table

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (1, 2)."""
        table, signed = self._table, int(totals[0, 0])
        n_pieces, size = table.team.pieces(
            table.n_features, max(1, ELEMENTS_AT_ONCE // table.n_samples)
        )
        found = np.empty((n_pieces, len(NOTHING)), dtype=np.int64)
        own = (table.order, table.n_present, terms.gradient[0], signed, size, found)
        table.team.run(_search, n_pieces, *own)
        return max(constant_cut(signed), *(as_cut(Found(*one)) for one in found.tolist()))


@inner("Found(int32[::1], int64[::1], int64, int64, int64, int64)")
def _first_stump(order, units, present, missing, agreement, feature):  # type: ignore[no-untyped-def]
    """The first stump with an agreement, from the samples of a feature that have a value."""
    extra, vote = abs(missing), sign_for_missing(missing, present)
    reached = 0
    for k in range(len(order) - 1):
        marked = order[k]
        reached += units[marked & SAMPLE]
        score = 2 * reached - present
        if marked >= 0 and abs(score) + extra == agreement:
            return Found(agreement, feature, STUMP, k, 1 if score >= 0 else -1, vote)
    return Found(agreement, feature, STUMP, len(order) - 1, 1 if present > 0 else -1, vote)


@inner("UniTuple(int64, 5)(int32[::1], int64[::1])")
def _extremes(order, units):  # type: ignore[no-untyped-def]
    """The lowest and the highest sum left of a cut, the largest rise and fall from a cut to a later
    one, and how many cuts there are, at most 2.

    No branch depends on where cuts are, which a processor could not predict.
    """
    n = len(order) - 1
    reached, k, is_cut = 0, 0, False
    while k < n and not is_cut:
        reached += units[np.uint64(order[k] & SAMPLE)]
        is_cut = order[k] >= 0
        k += 1
    if not is_cut:
        return 0, 0, 0, 0, 0
    last, lowest, highest, rise, fall, n_cuts = reached, reached, reached, 0, 0, 1
    while k < n and n_cuts == 1:  # to the second one, which makes the first rise and fall
        reached += units[np.uint64(order[k] & SAMPLE)]
        if order[k] >= 0:
            rise, fall, last, n_cuts = reached - last, last - reached, reached, 2
        k += 1
    for marked in order[k:n]:
        reached += units[np.uint64(marked & SAMPLE)]
        is_cut = marked >= 0
        low, high = min(lowest, last), max(highest, last)
        lowest, highest = low if is_cut else lowest, high if is_cut else highest
        up, down = reached - lowest, highest - reached
        rise = up if is_cut and up > rise else rise
        fall = down if is_cut and down > fall else fall
        last = reached if is_cut else last
    return min(lowest, last), max(highest, last), rise, fall, n_cuts


@inner("UniTuple(int64, 6)(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64)")
def _best_interval(order, n_present, units, total, low, high):  # type: ignore[no-untyped-def]
    """The best interval or stump of features `low` to `high`; nothing is constrained.

    `units` are signed weights, `total` their sum.
    """
    top = 1 << 62
    best = NOTHING
    for j in range(low, high):
        own, missing = order[j, : n_present[j]], 0
        for marked in order[j, n_present[j] :]:
            missing += units[np.uint64(marked & SAMPLE)]
        present = total - missing
        extra, vote = abs(missing), sign_for_missing(missing, present)
        lowest, highest, rise, fall, n_cuts = _extremes(own, units)
        by_stump = -1
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            by_stump = abs(present) + extra
        if n_cuts > 0:
            by_stump = max(by_stump, max(2 * highest - present, present - 2 * lowest) + extra)
        if by_stump > best.agreement:
            best = _first_stump(own, units, present, missing, by_stump, j)
        agreement = max(2 * rise - present, 2 * fall + present) + extra
        if n_cuts < 2 or agreement <= best.agreement:
            continue
        for polarity in (1, -1):
            steep = rise if polarity > 0 else fall
            if 2 * steep - polarity * present + extra < agreement:
                continue
            # The pair with the first upper cut has the first lower cut; see `interval_scan`.
            lowest, lowest_at = top, -1
            reached = 0
            for k in range(n_present[j] - 1):
                marked = own[k]
                reached += polarity * units[marked & SAMPLE]
                if marked < 0:
                    continue
                if lowest < top and reached - lowest == steep:
                    best = better(Found(agreement, j, lowest_at, k, polarity, vote), best)
                    break
                if reached < lowest:
                    lowest, lowest_at = reached, k
    return fields_of(best)


@parallel("void(int64, int32[:, ::1], int64[::1], int64[::1], int64, int64, int64[:, ::1])")
def _search(piece, order, n_present, units, total, size, found):  # type: ignore[no-untyped-def]
    """Write the fields of the best interval or stump of a piece of the features."""
    low = piece * size
    own = _best_interval(order, n_present, units, total, low, min(low + size, len(order)))
    for k in range(len(own)):
        found[piece, k] = own[k]
