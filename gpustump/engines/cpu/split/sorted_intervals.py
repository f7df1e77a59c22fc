"""Discrete votes on a sorted table: the best interval or stump, from all pairs of cuts."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import NO_CUT, Cut, constant_cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cut_sums import left_of_cuts, missing_sums, position_of
from gpustump.engines.cpu.table.sorted_table import ELEMENTS_AT_ONCE, SortedTable

_TOP = 1 << 62
"""Above all sums."""

_STUMP = -1
"""In kernels, `after` of a stump's cut: less than any position, so stumps come before intervals."""

# A hypothesis is a tuple here, larger if it is better, in the order of `contract.Cut`: agreement,
# minus the feature, minus `after`, minus `position`, polarity; then the sign of missing values.


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
        found = np.empty((n_pieces, 6), dtype=np.int64)
        own = (table.order, table.n_present, terms.gradient[0], signed, size, found)
        table.team.run(_search, n_pieces, *own)
        return max(constant_cut(signed), *(_as_cut(*one) for one in found.tolist()))


def _as_cut(
    agreement: int, feature: int, after: int, position: int, polarity: int, missing: int
) -> Cut:
    """The cut of a tuple; `NO_CUT` if there is none."""
    if agreement < 0:
        return NO_CUT
    before = None if -after == _STUMP else -after
    return Cut(-feature, -position, polarity, missing, agreement, before)


@inner("UniTuple(int64, 4)(int64[::1])")
def _extremes(left):  # type: ignore[no-untyped-def]
    """The lowest and highest sum left of some cuts; the steepest rise from a cut to a later one,
    and the steepest fall."""
    lowest, highest, rise, fall = left[0], left[0], -_TOP, -_TOP
    for i in range(1, len(left)):
        own = left[i]
        rise, fall = max(rise, own - lowest), max(fall, highest - own)
        lowest, highest = min(lowest, own), max(highest, own)
    return lowest, highest, rise, fall


@inner("UniTuple(int64, 6)(int32[::1], int64[::1], int64, int64, int64, int64, int64)")
def _first_stump(order, left, present, extra, agreement, feature, vote):  # type: ignore[no-untyped-def]
    """The first stump with an agreement, from the sums left of a feature's cuts."""
    for i in range(len(left)):
        fall = 2 * left[i] - present
        if abs(fall) + extra == agreement:
            at = position_of(order, i)
            return agreement, -feature, -_STUMP, -at, 1 if fall >= 0 else -1, vote
    return agreement, -feature, -_STUMP, 1 - len(order), 1 if present > 0 else -1, vote


@inner(
    "UniTuple(int64, 6)(int32[::1], int64[::1], int64, int64, int64, int64, int64,"
    " UniTuple(int64, 6))"
)
def _better_pair(order, left, steep, polarity, agreement, feature, vote, best):  # type: ignore[no-untyped-def]
    """The better of the best split and the first pair of cuts between which sums rise so steeply.

    With the polarity -1, they fall. The pair with the first upper cut has the first lower cut; see
    `interval_scan`.
    """
    lowest, lowest_at = polarity * left[0], 0
    for i in range(1, len(left)):
        own = polarity * left[i]
        if own - lowest == steep:
            after, at = position_of(order, lowest_at), position_of(order, i)
            found = (agreement, -feature, -after, -at, polarity, vote)
            return found if found > best else best
        if own < lowest:
            lowest, lowest_at = own, i
    return best


@inner("UniTuple(int64, 6)(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64)")
def _best_interval(order, n_present, units, total, low, high):  # type: ignore[no-untyped-def]
    """The best interval or stump of features `low` to `high`; nothing is constrained.

    `units` are signed weights, `total` their sum.
    """
    best, room = (-1, 0, -_STUMP, 0, 1, 1), np.empty(order.shape[1], dtype=np.int64)
    for j in range(low, high):
        own = order[j, : n_present[j]]
        missing, _ = missing_sums(order[j], n_present[j], units)
        present = total - missing
        # Missing values get the sign of their heavier label, or that of all samples if equal.
        extra, vote = abs(missing), 1 if missing > 0 or (missing == 0 and present >= 0) else -1
        left = room[: left_of_cuts(own, n_present[j] - 1, units, 0, room)]
        by_stump, rise, fall = -1, -_TOP, -_TOP
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            by_stump = abs(present) + extra
        if len(left) > 0:
            lowest, highest, rise, fall = _extremes(left)
            by_stump = max(by_stump, max(2 * highest - present, present - 2 * lowest) + extra)
        if by_stump > best[0]:
            best = _first_stump(own, left, present, extra, by_stump, j, vote)
        if len(left) < 2:
            continue
        for polarity in (1, -1):
            steep = rise if polarity > 0 else fall
            agreement = 2 * steep - polarity * present + extra
            if agreement > best[0] or (agreement == best[0] and -j == best[1]):
                best = _better_pair(own, left, steep, polarity, agreement, j, vote, best)
    return best


@parallel("void(int64, int32[:, ::1], int64[::1], int64[::1], int64, int64, int64[:, ::1])")
def _search(piece, order, n_present, units, total, size, found):  # type: ignore[no-untyped-def]
    """Write the fields of the best interval or stump of a piece of the features."""
    low = piece * size
    own = _best_interval(order, n_present, units, total, low, min(low + size, len(order)))
    for k in range(len(own)):
        found[piece, k] = own[k]
