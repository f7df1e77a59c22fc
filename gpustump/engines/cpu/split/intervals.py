"""The best interval: pairs of edges exactly, bounds for the other pairs, and scans where needed.

An interval is a pair of cuts, and its score follows from the rise or fall of `score_left` between
them. `score_left` is known at the edges between bins; inside a bin it lies between two bounds. So
the rise from one cut to another is at most the upper bound at the second less the lower bound at
the first. Bins that cannot be part of a better pair than the best one so far are skipped. The
others are scanned, those of the highest bounds first; each scan tightens the bounds of all pairs
with an end in the bin.

At the edge between two bins `score_left` is known. Inside a bin it can rise above its value at the
bin's left edge by no more than the bin's positive weight, and fall by no more than its negative
weight. For a bin that was searched in an earlier round there is a better bound: if the sum rose by
at most r then, it rises by at most r plus the growth of the bin's positive weight since. (Samples'
integers shrink only by powers of two common to all.)

The result is the best of stumps and intervals, in the order of `contract.Cut`. The best stump is
found first, and is then compared with the intervals.
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import Cut, Step
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel, record
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.found_split import (
    NOTHING,
    Found,
    as_cut,
    better,
    fields_of,
    sign_for_missing,
)
from gpustump.engines.cpu.split.search import Edges
from gpustump.engines.cpu.split.slices import Slices  # noqa: F401  # a signature names it
from gpustump.engines.cpu.split.sums_source import CodedSums
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import WIDE_BINS
from gpustump.engines.cpu.table.rows_by_code import POSITIONS

_FEATURES_AT_ONCE = 16
"""For how many features a thread compares pairs of edges at a time."""

_BINS_AT_ONCE = 4
"""The more promising half of the bins is scanned at a time, but at least this many."""

_NO_CUT = -(1 << 62)
"""Below all sums."""

_SCANNED = record(
    "Scanned",
    "is_scanned",
    "highest", "highest_at",
    "lowest", "lowest_at",
    "rise", "rise_after", "rise_at",
    "fall", "fall_after", "fall_at",
)  # fmt: skip
"""A bin that has been scanned: the sums at the cuts inside it, counted from its left edge.

The highest sum and its sorted position; the same for the lowest sum; the steepest rise from cut to
cut, with the positions of both cuts; the same for the steepest fall. Without such cuts the sums are
-2**62 (2**62 for the lowest), and the positions -1.
"""


@group
class Around(NamedTuple):
    """The sums of signed weights over the samples with and without a value of each feature.

    Attributes
    ----------
    present, missing : ndarray (n_features,) of int64
    """

    present: Integers
    missing: Integers


@group
class Profile(NamedTuple):
    """What is known of every bin: arrays (n_slots,) of int64.

    Attributes
    ----------
    positive, negative : ndarray
        The weight of its samples labelled +1 and -1 in this round.
    rise, fall : ndarray
        The most that `score_left` rose above its value at the bin's left edge, and fell below it,
        at cuts inside the bin. Negative if it was below (or above) at all of them; -2**62 if there
        is no cut.
    positive_then, negative_then : ndarray
        The bin's weights when `rise` and `fall` were found.
    """

    positive: Integers
    negative: Integers
    rise: Integers
    fall: Integers
    positive_then: Integers
    negative_then: Integers

    @classmethod
    def empty(cls, n_slots: int) -> Profile:
        return cls(*(np.zeros(n_slots, dtype=np.int64) for _ in range(6)))

    def follow(self, step: Step) -> None:
        """Prepare for a step, which is about to change the weights."""
        if step.rescale_exponent < 0 or min(
            by for own in step.factors for by in own[0]
        ) < math.ldexp(1.0, -step.rescale_exponent):
            self._forget()
        elif step.rescale_exponent > 0:
            self._halve(step.rescale_exponent)

    def _forget(self) -> None:
        """Drop what searches have found."""
        for known in (self.rise, self.fall, self.positive_then, self.negative_then):
            known[:] = 0

    def _halve(self, times: int) -> None:
        """All integers were divided by 2**times and rounded up: keep the bounds valid."""
        for risen in (self.rise, self.fall):
            np.negative(-risen >> times, out=risen)
        for then in (self.positive_then, self.negative_then):
            then >>= times


@inner("UniTuple(int64, 2)(Profile, int64)")
def _reach(profile, slot):  # type: ignore[no-untyped-def]
    """How far above its value at a bin's left edge, and how far below, `score_left` may be."""
    positive, negative = profile.positive[slot], profile.negative[slot]
    up = min(positive, profile.rise[slot] + positive - profile.positive_then[slot])
    up = max(up, -negative)  # holds for every cut; `rise` is far below it if there is none
    down = min(negative, profile.fall[slot] + negative - profile.negative_then[slot])
    return up, max(down, -positive)


@inner("void(Profile, int64, int64, int64)")
def _note(profile, slot, rise, fall):  # type: ignore[no-untyped-def]
    """Note how far the sum rises and falls inside a bin under the weights of this round."""
    profile.rise[slot], profile.fall[slot] = rise, fall
    profile.positive_then[slot] = profile.positive[slot]
    profile.negative_then[slot] = profile.negative[slot]


@kernel("void(Profile, int64[::1], Slices)")
def _note_cells(profile, slots, slices):  # type: ignore[no-untyped-def]
    """Note how far the sum rises and falls in some bins whose cells are known."""
    for t in range(len(slots)):
        reached, up, down = 0, _NO_CUT, _NO_CUT
        end = slices.first[t] + slices.n_cells[t]
        for u in range(slices.first[t], end):
            if slices.is_open[u]:
                up, down = (
                    max(up, reached + slices.sums[0, u]),
                    max(down, slices.sums[1, u] - reached),
                )
            reached += slices.sums[0, u] - slices.sums[1, u]
            if u + 1 < end:
                up, down = max(up, reached), max(down, -reached)
        _note(profile, slots[t], up, down)


class IntervalSearch:
    """The search of one run for the best interval.

    Parameters
    ----------
    table : CodedTable
    source : CodedSums
        It answers questions about parts of bins.
    terms : Terms
        The run's integers; the arrays are overwritten in every round.
    """

    def __init__(self, table: CodedTable, source: CodedSums, terms: Terms) -> None:
        self._table, self._source, self._terms = table, source, terms
        self._profile = Profile.empty(len(table.layout.offset))

    def best(self, sums: np.ndarray, best: Cut) -> Cut:
        """The best interval or split of all features.

        Parameters
        ----------
        sums : ndarray (2, n_slots) of int64
            The weights of positive and of negative samples in each slot.
        best : Cut
            The best split.
        """
        table = self._table
        outside = Edges.of(sums, table.layout, np.arange(table.n_features)).outside
        self._profile = self._profile._replace(positive=sums[0], negative=sums[1])
        around = Around(
            outside.present[0] - outside.present[1], outside.missing[0] - outside.missing[1]
        )
        bounds = np.full(table.n_features, -1)
        n_pieces, size = table.team.pieces(table.n_features, _FEATURES_AT_ONCE)
        found = np.empty((n_pieces, len(NOTHING)), dtype=np.int64)
        own = (table.layout, self._profile, around, bounds, size, found)
        table.team.run(_best_pair_of_edges, n_pieces, *own)
        pairs = (as_cut(Found(*one)) for one in found.tolist())
        return self._look_inside(around, bounds, max(best, *pairs))

    def follow(self, step: Step) -> None:
        """Prepare for a step, which is about to change the weights."""
        self._profile.follow(step)

    def _look_inside(self, around: Around, bounds: np.ndarray, best: Cut) -> Cut:
        """Scan the bins that may be part of a better pair than the best one."""
        table, layout, profile = self._table, self._table.layout, self._profile
        signed = self._terms.gradient[0]
        lock = threading.Lock()

        def look(feature: int) -> None:
            nonlocal best
            n_bins = int(layout.n_bins[feature])
            scanned = np.zeros(n_bins, dtype=_SCANNED)
            bound = np.empty(n_bins, dtype=np.int64)
            has_looked_closer = not table.has_parts(feature)
            while True:
                _bound_bins(layout, profile, around, feature, scanned, bound)
                bins = _may_win(bound, feature, best)
                if not len(bins):
                    return
                if not has_looked_closer:
                    has_looked_closer = True
                    slots = layout.first[feature] + bins
                    for answer in self._source.parts(slots, np.full(len(bins), feature)):
                        _note_cells(profile, answer.slots, answer.slices)
                    continue
                in_order = table.bins.sorted_bins(feature, bins)
                _scan_bins(in_order, layout, profile, feature, signed, scanned)
                found = Found(*_best_of_scanned(layout, profile, around, feature, scanned))
                if found.agreement >= best.agreement:
                    with lock:
                        best = max(best, as_cut(found))

        promising = np.flatnonzero(bounds >= best.agreement)
        table.team.each(look, promising[np.argsort(-bounds[promising], kind="stable")].tolist())
        return best


def _may_win(bound: np.ndarray, feature: int, best: Cut) -> np.ndarray:
    """The more promising half of a feature's bins that may be part of a better pair."""
    is_before = best.position is None or feature < best.feature  # all pairs come before a constant
    is_beside = feature == best.feature and best.after is not None
    # An equally good pair may have lower positions.
    bins = np.flatnonzero(bound >= best.agreement + (0 if is_before or is_beside else 1))
    if len(bins) <= _BINS_AT_ONCE:
        return bins
    n_taken = max(_BINS_AT_ONCE, len(bins) // 2)
    return np.sort(bins[np.argsort(-bound[bins], kind="stable")[:n_taken]])


@kernel("void(BinLayout, Profile, Around, int64, Scanned[::1], int64[::1])")
def _bound_bins(layout, profile, around, feature, scanned, bound):  # type: ignore[no-untyped-def]
    """Bound the agreement of pairs with a cut inside each bin; -1 if scanned, or without cuts."""
    top = 1 << 62
    first, n_bins = layout.first[feature], layout.n_bins[feature]
    positive, negative = profile.positive, profile.negative
    present, extra = around.present[feature], abs(around.missing[feature])
    left, least, most = 0, top, -top
    for b in range(n_bins):  # pairs that end in the bin, and those within it
        s = first + b
        bound[b] = -1
        if b > 0:
            least, most = min(least, left), max(most, left)
        if layout.has_inner_split[s]:
            up, down = _reach(profile, s)
            if not scanned[b].is_scanned:
                rise, fall = min(positive[s], up + down), min(negative[s], up + down)
                if least < top:
                    rise, fall = max(rise, left + up - least), max(fall, most - left + down)
                bound[b] = max(2 * rise - present, 2 * fall + present) + extra
            least, most = min(least, left - down), max(most, left + up)
        left += positive[s] - negative[s]
    least, most = top, -top
    for b in range(n_bins - 1, -1, -1):  # pairs that begin in it
        s = first + b
        if b < n_bins - 1:  # `left` is the sum at its right edge
            least, most = min(least, left), max(most, left)
        left -= positive[s] - negative[s]
        if layout.has_inner_split[s]:
            up, down = _reach(profile, s)
            if not scanned[b].is_scanned and least < top:
                rise, fall = most - left + down, left + up - least
                steep = max(2 * rise - present, 2 * fall + present) + extra
                bound[b] = max(bound[b], steep)
            least, most = min(least, left - down), max(most, left + up)


@kernel(
    "void(SortedSamples, BinLayout, Profile, int64, int64[::1], Scanned[::1])",
    POSITION=POSITIONS,
)
def _scan_bins(in_order, layout, profile, feature, signed, scanned):  # type: ignore[no-untyped-def]
    """Scan bins of a feature: fill their records, and note how far the sum rose and fell."""
    top = 1 << 62
    order, offset = in_order.order, layout.offset
    for t in range(len(in_order.bins)):
        b = in_order.bins[t]
        s, start = layout.first[feature] + b, in_order.starts[t]
        ahead = offset[s] - start  # from a place in `order` to the sorted position
        highest, lowest, highest_at, lowest_at = -top, top, -1, -1
        rise, rise_after, rise_at = -top, -1, -1
        fall, fall_after, fall_at = -top, -1, -1
        reached = 0
        for k in range(start, start + offset[s + 1] - offset[s] - 1):
            marked = order[np.uint64(k)]
            sample = marked & 0x7FFFFFFF if order.itemsize == 4 else marked & 0x7FFFFFFFFFFFFFFF
            reached += signed[np.uint64(sample)]
            if marked < 0:
                continue
            if lowest < top:
                if reached - lowest > rise:
                    rise, rise_after, rise_at = reached - lowest, lowest_at, k + ahead
                if highest - reached > fall:
                    fall, fall_after, fall_at = highest - reached, highest_at, k + ahead
            if reached > highest:
                highest, highest_at = reached, k + ahead
            if reached < lowest:
                lowest, lowest_at = reached, k + ahead
        _note(profile, s, highest, -lowest)
        own = scanned[b]
        own.is_scanned = 1
        own.highest, own.highest_at = highest, highest_at
        own.lowest, own.lowest_at = lowest, lowest_at
        own.rise, own.rise_after, own.rise_at = rise, rise_after, rise_at
        own.fall, own.fall_after, own.fall_at = fall, fall_after, fall_at


@kernel("UniTuple(int64, 6)(BinLayout, Profile, Around, int64, Scanned[::1])")
def _best_of_scanned(layout, profile, around, feature, scanned):  # type: ignore[no-untyped-def]
    """The best pair of a feature's edges and of the cuts inside bins that were scanned."""
    top = 1 << 62
    first, offset = layout.first[feature], layout.offset
    present, missing = around.present[feature], around.missing[feature]
    vote = sign_for_missing(missing, present)
    for_rise, for_fall = abs(missing) - present, abs(missing) + present
    best = NOTHING
    left, lowest, highest, lowest_at, highest_at = 0, top, -top, -1, -1
    for b in range(layout.n_bins[feature]):
        if b > 0:
            at = offset[first + b] - 1
            if lowest < top:
                agreement = 2 * (left - lowest) + for_rise
                best = better(Found(agreement, feature, lowest_at, at, 1, vote), best)
                agreement = 2 * (highest - left) + for_fall
                best = better(Found(agreement, feature, highest_at, at, -1, vote), best)
            if left < lowest:
                lowest, lowest_at = left, at
            if left > highest:
                highest, highest_at = left, at
        own = scanned[b]
        if own.is_scanned and own.highest_at >= 0:
            if lowest < top:
                agreement = 2 * (left + own.highest - lowest) + for_rise
                best = better(Found(agreement, feature, lowest_at, own.highest_at, 1, vote), best)
                agreement = 2 * (highest - left - own.lowest) + for_fall
                best = better(Found(agreement, feature, highest_at, own.lowest_at, -1, vote), best)
            if own.rise_after >= 0:
                agreement = 2 * own.rise + for_rise
                pair = Found(agreement, feature, own.rise_after, own.rise_at, 1, vote)
                best = better(pair, best)
                agreement = 2 * own.fall + for_fall
                pair = Found(agreement, feature, own.fall_after, own.fall_at, -1, vote)
                best = better(pair, best)
            if left + own.lowest < lowest:
                lowest, lowest_at = left + own.lowest, own.lowest_at
            if left + own.highest > highest:
                highest, highest_at = left + own.highest, own.highest_at
        left += profile.positive[first + b] - profile.negative[first + b]
    return fields_of(best)


@parallel("void(int64, BinLayout, Profile, Around, int64[::1], int64, int64[:, ::1])")
def _best_pair_of_edges(piece, layout, profile, around, bounds, size, found):  # type: ignore[no-untyped-def]
    """The best pair of edges of a piece of the features; bounds for a feature's other pairs."""
    best = NOTHING
    scanned = np.zeros(WIDE_BINS, dtype=_SCANNED)
    bound = np.empty(WIDE_BINS, dtype=np.int64)
    for j in range(piece * size, min((piece + 1) * size, len(bounds))):
        best = better(Found(*_best_of_scanned(layout, profile, around, j, scanned)), best)
        _bound_bins(layout, profile, around, j, scanned, bound)
        bounds[j] = -1
        for b in range(layout.n_bins[j]):
            bounds[j] = max(bounds[j], bound[b])
    fields = fields_of(best)
    for k in range(len(fields)):
        found[piece, k] = fields[k]
