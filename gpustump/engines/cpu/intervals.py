"""The best interval from histograms: pairs of edges exactly, bounds for the rest, scans at need.

This is `search` for pairs of cuts. `score_left` is known at the edges between bins; inside a bin it
lies between two bounds. So does its rise from a cut in one bin to a cut in another, or at an edge:
at most from the lower bound of the first to the upper bound of the second. Bins that have no part
in a rise or fall that could beat the best pair known are left alone. The others are scanned, those
of the highest bounds first, which tightens the bounds of all pairs that they are part of.

What is found is the best of stumps and intervals, by `interval_scan`'s order of ties. A stump is
searched for first; from there on it is one more candidate, that wins ties on its own feature.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.search import (
    FEATURES_AT_ONCE,
    Best,
    Profile,
    best_split,
    is_worth_a_closer_look,
    look_closer,
    reach,
)
from gpustump.engines.threads import Team, ranges

_STUMP = 1
"""In place of the position before an interval, negative: so stumps are larger than intervals."""

_BINS_AT_ONCE = 4
"""Promising bins are scanned half by half, but not fewer than so many."""

_SUMMARY = 10
"""Integers about a scanned bin; see `_scan_bins`."""


class BestPair(NamedTuple):
    """The best hypothesis so far; tuples compare in the order of the contract.

    `agreement`, less than 0 if there is none; then the feature, the sorted positions before and at
    the end of the interval, negative, so that lower ones are larger; and the polarity. A stump has
    1 for the position before.
    """

    agreement: int
    minus_feature: int
    minus_after: int
    minus_position: int
    polarity: int

    @property
    def after(self) -> int | None:
        """The sorted position before the interval; None for a stump."""
        return None if self.minus_after == _STUMP else -self.minus_after


def as_pair(split: Best) -> BestPair:
    """A stump among intervals."""
    return BestPair(*split[:2], _STUMP, *split[2:])


_NOTHING = BestPair(-1, 0, 0, 0, 1)


def best_pair(
    columns: CodedTable, histograms: np.ndarray, signed: np.ndarray, profile: Profile
) -> BestPair:
    """The best interval or split of all features; parameters as for `search.best_split`."""
    bests = [as_pair(best_split(columns, histograms, signed, profile))]
    bounds = np.full(columns.n_features, -1)

    def weigh(part: tuple[int, int]) -> None:
        found = np.asarray(_NOTHING, dtype=np.int64)
        _pairs_of_edges(
            columns.first, columns.n_bins, columns.offset, columns.impure, *_known(profile),
            profile.present, profile.missing, bounds, *part, found,
        )  # fmt: skip
        bests.append(BestPair(*map(int, found)))

    columns.team.each(weigh, ranges(columns.n_features, FEATURES_AT_ONCE))
    return _look_inside(columns, signed, profile, bounds, max(bests))


def _known(profile: Profile) -> tuple[np.ndarray, ...]:
    """What is known of each bin, as the kernels below take it."""
    return (
        profile.positive, profile.negative, profile.rise, profile.fall, profile.positive_then,
        profile.negative_then,
    )  # fmt: skip


def _look_inside(
    columns: CodedTable, signed: np.ndarray, profile: Profile, bounds: np.ndarray, best: BestPair
) -> BestPair:
    """Scan the bins that may be part of a better pair than the best one."""
    lock = threading.Lock()

    def look(feature: int, team: Team) -> None:
        nonlocal best
        n_bins = int(columns.n_bins[feature])
        first = columns.first[feature]
        known = [of_all[first : first + n_bins] for of_all in _known(profile)]
        impure, offset = columns.impure[first:][:n_bins], columns.offset[first:][: n_bins + 1]
        present, missing = profile.present[feature], profile.missing[feature]
        scanned, summary = np.zeros(n_bins, np.uint8), np.zeros((n_bins, _SUMMARY), np.int64)
        bound = np.empty(n_bins, dtype=np.int64)
        has_looked_closer = not len(columns.fine[feature])
        while True:
            _bounds_of_bins(impure, *known, present, missing, scanned, bound)
            bins = _may_win(bound, feature, best)
            if not len(bins):
                return
            if not has_looked_closer:
                has_looked_closer = True
                if is_worth_a_closer_look(
                    columns, profile, feature, bins, bound[bins], best.agreement
                ):
                    look_closer(columns, signed, profile, feature, team)
                    continue
            order, starts = columns.bins.sorted_bins(columns, feature, bins)
            _scan_bins(order, starts, bins, offset, *known, signed, scanned, summary)
            found = np.asarray(_NOTHING, dtype=np.int64)
            _best_of_scanned(offset, *known[:2], scanned, summary, present, missing, feature, found)
            with lock:
                best = max(best, BestPair(*map(int, found)))

    promising = np.flatnonzero(bounds >= best.agreement)
    in_turn = promising[np.argsort(-bounds[promising], kind="stable")].tolist()
    if len(in_turn) <= 2 * columns.team.size:  # all threads for one feature, then for the next
        for feature in in_turn:
            look(feature, columns.team)
    else:
        columns.team.each(lambda feature: look(feature, Team(1)), in_turn)
    return best


def _may_win(bound: np.ndarray, feature: int, best: BestPair) -> np.ndarray:
    """The better half of a feature's bins that may be part of a pair that comes before the best."""
    is_before = feature < -best.minus_feature
    is_beside = feature == -best.minus_feature and best.minus_after != _STUMP
    # An equally good pair may have lower positions.
    bins = np.flatnonzero(bound >= best.agreement + (0 if is_before or is_beside else 1))
    if len(bins) <= _BINS_AT_ONCE:
        return bins
    n_taken = max(_BINS_AT_ONCE, len(bins) // 2)
    return np.sort(bins[np.argsort(-bound[bins], kind="stable")[:n_taken]])


@kernel("void(int64[::1], int64, int64, int64, int64, int64)")
def _consider(best, agreement, feature, after, position, polarity):  # type: ignore[no-untyped-def]
    """Take a pair of cuts if it comes before the best one."""
    wins = agreement > best[0]
    if agreement == best[0]:
        wins = -feature > best[1]
        if -feature == best[1]:
            wins = -after > best[2] or (-after == best[2] and -position > best[3])
    if wins:
        best[0], best[1], best[2], best[3], best[4] = (
            agreement,
            -feature,
            -after,
            -position,
            polarity,
        )


@kernel(
    "void(uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64, int64, uint8[::1], int64[::1])"
)
def _bounds_of_bins(  # type: ignore[no-untyped-def]
    impure, positive, negative, rise, fall, positive_then, negative_then, present, missing, scanned,
    bound,
):  # fmt: skip
    """No pair with a cut inside a bin agrees better; -1 for a bin that was scanned or has none."""
    top = 1 << 62
    extra, n_bins = abs(missing), len(impure)
    left, least, most = 0, top, -top
    for b in range(n_bins):  # pairs that end in the bin, and those within it
        bound[b] = -1
        if b > 0:
            least, most = min(least, left), max(most, left)
        if impure[b]:
            up, down = reach(
                positive[b], negative[b], rise[b], fall[b], positive_then[b], negative_then[b]
            )
            if not scanned[b]:
                steep_rise, steep_fall = min(positive[b], up + down), min(negative[b], up + down)
                if least < top:
                    steep_rise = max(steep_rise, left + up - least)
                    steep_fall = max(steep_fall, most - left + down)
                bound[b] = max(2 * steep_rise - present, 2 * steep_fall + present) + extra
            least, most = min(least, left - down), max(most, left + up)
        left += positive[b] - negative[b]
    least, most = top, -top
    for b in range(n_bins - 1, -1, -1):  # pairs that begin in it
        if b < n_bins - 1:  # `left` is the sum at its right edge
            least, most = min(least, left), max(most, left)
        left -= positive[b] - negative[b]
        if impure[b]:
            up, down = reach(
                positive[b], negative[b], rise[b], fall[b], positive_then[b], negative_then[b]
            )
            if not scanned[b] and least < top:
                steep_rise, steep_fall = most - left + down, left + up - least
                steep = max(2 * steep_rise - present, 2 * steep_fall + present) + extra
                bound[b] = max(bound[b], steep)
            least, most = min(least, left - down), max(most, left + up)


@kernel(
    *(
        f"void({position}[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
        " int64[::1], int64[::1], int64[::1], int64[::1], float64[::1], uint8[::1], int64[:, ::1])"
        for position in ("int32", "int64")
    )
)
def _scan_bins(  # type: ignore[no-untyped-def]
    order, starts, bins, offset, positive, negative, rise, fall, positive_then, negative_then,
    signed, scanned, summary,
):  # fmt: skip
    """Look into bins of a feature, whose arrays begin with its first bin.

    Sums are counted from a bin's left edge. Its summary: the highest at a cut inside and that
    position; the lowest; the steepest rise from cut to cut, the position before it and that at its
    end; the steepest fall. What there is not is at most -2**62, or at least 2**62.
    """
    top = 1 << 62
    for t in range(len(bins)):
        b = bins[t]
        ahead = offset[b] - starts[t]  # from a place in `order` to the sorted position
        highest, lowest, highest_at, lowest_at = -top, top, -1, -1
        steep_rise, rise_after, rise_at = -top, -1, -1
        steep_fall, fall_after, fall_at = -top, -1, -1
        reached = 0
        for k in range(starts[t], starts[t] + offset[b + 1] - offset[b] - 1):
            marked = order[np.uint64(k)]
            sample = marked & 0x7FFFFFFF if order.itemsize == 4 else marked & 0x7FFFFFFFFFFFFFFF
            weight = signed[np.uint64(sample)]
            units = np.int64(np.ceil(abs(weight)))
            reached += units if weight > 0.0 else -units
            if marked < 0:
                continue
            if lowest < top:
                if reached - lowest > steep_rise:
                    steep_rise, rise_after, rise_at = reached - lowest, lowest_at, k + ahead
                if highest - reached > steep_fall:
                    steep_fall, fall_after, fall_at = highest - reached, highest_at, k + ahead
            if reached > highest:
                highest, highest_at = reached, k + ahead
            if reached < lowest:
                lowest, lowest_at = reached, k + ahead
        rise[b], fall[b] = highest, -lowest
        positive_then[b], negative_then[b] = positive[b], negative[b]
        scanned[b] = 1
        summary[b, 0], summary[b, 1], summary[b, 2], summary[b, 3] = (
            highest, highest_at, lowest, lowest_at,
        )  # fmt: skip
        summary[b, 4], summary[b, 5], summary[b, 6] = steep_rise, rise_after, rise_at
        summary[b, 7], summary[b, 8], summary[b, 9] = steep_fall, fall_after, fall_at


@kernel(
    "void(int64[::1], int64[::1], int64[::1], uint8[::1], int64[:, ::1], int64, int64, int64,"
    " int64[::1])"
)
def _best_of_scanned(  # type: ignore[no-untyped-def]
    offset, positive, negative, scanned, summary, present, missing, feature, found
):
    """The best pair of a feature's edges and of the cuts inside bins that were scanned."""
    top = 1 << 62
    extra = abs(missing)
    left, lowest, highest, lowest_at, highest_at = 0, top, -top, -1, -1
    for b in range(len(scanned)):
        if b > 0:
            at = offset[b] - 1
            if lowest < top:
                agreement = 2 * (left - lowest) - present + extra
                _consider(found, agreement, feature, lowest_at, at, 1)
                agreement = 2 * (highest - left) + present + extra
                _consider(found, agreement, feature, highest_at, at, -1)
            if left < lowest:
                lowest, lowest_at = left, at
            if left > highest:
                highest, highest_at = left, at
        if scanned[b] and summary[b, 1] >= 0:
            up, up_at, low, low_at = summary[b, 0], summary[b, 1], summary[b, 2], summary[b, 3]
            if lowest < top:
                agreement = 2 * (left + up - lowest) - present + extra
                _consider(found, agreement, feature, lowest_at, up_at, 1)
                agreement = 2 * (highest - left - low) + present + extra
                _consider(found, agreement, feature, highest_at, low_at, -1)
            if summary[b, 5] >= 0:
                agreement = 2 * summary[b, 4] - present + extra
                _consider(found, agreement, feature, summary[b, 5], summary[b, 6], 1)
                agreement = 2 * summary[b, 7] + present + extra
                _consider(found, agreement, feature, summary[b, 8], summary[b, 9], -1)
            if left + low < lowest:
                lowest, lowest_at = left + low, low_at
            if left + up > highest:
                highest, highest_at = left + up, up_at
        left += positive[b] - negative[b]


@kernel(
    "void(int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64,"
    " int64[::1])"
)
def _pairs_of_edges(  # type: ignore[no-untyped-def]
    first, n_bins, offset, impure, positive, negative, rise, fall, positive_then, negative_then,
    present, missing, bounds, low, high, found,
):  # fmt: skip
    """The best pair of edges of features `low` to `high`; bounds for a feature's other pairs."""
    scanned, summary = np.zeros(256, np.uint8), np.empty((256, _SUMMARY), np.int64)
    of_bins = np.empty(256, np.int64)
    for j in range(low, high):
        at, end, n = first[j], first[j] + n_bins[j], n_bins[j]
        _best_of_scanned(
            offset[at : end + 1], positive[at:end], negative[at:end], scanned[:n], summary,
            present[j], missing[j], j, found,
        )  # fmt: skip
        _bounds_of_bins(
            impure[at:end], positive[at:end], negative[at:end], rise[at:end], fall[at:end],
            positive_then[at:end], negative_then[at:end], present[j], missing[j], scanned[:n],
            of_bins[:n],
        )  # fmt: skip
        bounds[j] = -1
        for b in range(n):
            bounds[j] = max(bounds[j], of_bins[b])
