"""Few samples, discrete votes of one output: the best stump or interval, from all cuts."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Cut, Search, constant_cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.split.cut_sums import left_of_cuts, missing_sums, position_of
from gpustump.engines.cpu.split.found_split import (
    NOTHING,
    STUMP,
    Found,
    as_cut,
    better,
    fields_of,
    sign_for_missing,
)
from gpustump.engines.cpu.table.sorted_table import SortedTable

_KNOWN = "int32[:, ::1], int64[::1], int64[::1], int64, int64[::1]"
"""Types of the first arguments of both searches: order, n_present, units, total, directions."""


class SignedScan:
    """The search of a run of discrete votes for one output.

    Parameters
    ----------
    table : SortedTable
    search : Search
    """

    def __init__(self, table: SortedTable, search: Search) -> None:
        self._table = table
        self._best = {"stump": best_split, "interval": _best_pair}[search.learner]
        self._directions = search.directions
        self._parts = table.parts(1)

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (1, 2)."""
        table, signed = self._table, int(totals[0, 0])
        known = (table.order, table.n_present, terms.first[0], signed, self._directions)
        found = [constant_cut(signed)]

        def search(part: tuple[int, int]) -> None:
            found.append(as_cut(Found(*self._best(*known, *part))))

        table.team.each(search, self._parts)
        return max(found)


@kernel(f"UniTuple(int64, 6)({_KNOWN}, int64, int64)")
def best_split(order, n_present, units, total, directions, low, high):  # type: ignore[no-untyped-def]
    """The best split of features `low` to `high`; `units` are signed weights, `total` their sum.

    A constraint excludes the highest sum, or the lowest one; `directions` may be empty.
    """
    best = NOTHING
    room = np.empty(order.shape[1], dtype=np.int64)
    for j in range(low, high):
        own = order[j]
        missing, _ = missing_sums(own, n_present[j], units)
        present = total - missing
        extra, vote = abs(missing), sign_for_missing(missing, present)
        left = room[: left_of_cuts(own, n_present[j], units, room)]
        highest, lowest = -(1 << 62), 1 << 62
        for i in range(len(left)):
            highest = max(highest, left[i])
            lowest = min(lowest, left[i])
        direction = directions[j] if len(directions) > 0 else 0
        falling = 2 * highest - present if direction <= 0 else -1
        rising = present - 2 * lowest if direction >= 0 else -1
        agreement = -1
        if len(left) > 0 and max(falling, rising) >= 0:
            agreement = max(falling, rising) + extra
        opposed = (present > 0 and missing < 0) or (present < 0 and missing > 0)
        apart = abs(present) + extra if opposed else -1
        if max(agreement, apart) <= best.agreement:
            continue
        if apart > agreement:
            best = Found(apart, j, STUMP, n_present[j] - 1, 1 if present > 0 else -1, vote)
            continue
        number = 0
        polarity = 0
        while polarity == 0:
            score = 2 * left[number] - present
            if direction <= 0 and score + extra == agreement:
                polarity = 1
            elif direction >= 0 and extra - score == agreement:
                polarity = -1
            else:
                number += 1
        best = Found(agreement, j, STUMP, position_of(own, number), polarity, vote)
    return fields_of(best)


@kernel(f"UniTuple(int64, 6)({_KNOWN}, int64, int64)")
def _best_pair(order, n_present, units, total, directions, low, high):  # type: ignore[no-untyped-def]
    """The best interval or split of features `low` to `high`; nothing is constrained."""
    top = 1 << 62
    best = NOTHING
    for j in range(low, high):
        own = order[j]
        present = total
        for k in range(n_present[j], len(own)):
            present -= units[own[k] & 0x7FFFFFFF]
        missing = total - present
        extra, vote = abs(missing), sign_for_missing(missing, present)
        lowest, highest, rise, fall = top, -top, -top, -top
        reached = 0
        for k in range(n_present[j] - 1):
            marked = own[k]
            reached += units[marked & 0x7FFFFFFF]
            if marked >= 0:
                if lowest < top:  # there was a cut before
                    rise = max(rise, reached - lowest)
                    fall = max(fall, highest - reached)
                lowest, highest = min(lowest, reached), max(highest, reached)
        by_stump = -1
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            by_stump = abs(present) + extra
        if highest > -top:
            by_stump = max(by_stump, max(2 * highest - present, present - 2 * lowest) + extra)
        if by_stump > best.agreement:
            best = Found(*best_split(order, n_present, units, total, directions, j, j + 1))
        agreement = max(2 * rise - present, 2 * fall + present) + extra
        if rise == -top or agreement <= best.agreement:
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
                reached += polarity * units[marked & 0x7FFFFFFF]
                if marked < 0:
                    continue
                if lowest < top and reached - lowest == steep:
                    best = better(Found(agreement, j, lowest_at, k, polarity, vote), best)
                    break
                if reached < lowest:
                    lowest, lowest_at = reached, k
    return fields_of(best)
