"""From histograms to the best cut: edges exactly, bounds for the rest, and a scan where it matters.

At the edge between two bins the agreement is known. Inside a bin, `score_left` can rise above its
value at the bin's left edge by no more than the bin's positive weight, and fall by no more than its
negative weight. A bin that was looked into in an earlier round is known better: there it rose by r
at most, so now it rises by r and what its positive weight has grown since. (No sample's integer
ever shrinks but by the common powers of two.) Bins whose bound is below the best agreement found
cannot hold the answer. The others are scanned, sample by sample, in sorted order, those of the
highest bounds first.

The order of ties is the contract's: the larger agreement, then the lower feature, then the lower
position; so the answer is the same in whatever order bins are looked into.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.threads import Team, ranges

_PER_PART = 8
"""Samples that a part of a bin should hold, so that clearing the parts is the smaller job."""

_SAMPLES_AT_ONCE = 2**17
"""Fewer samples than this are not worth another thread."""

FEATURES_AT_ONCE = 256
"""So many features' bins are weighed as one piece of work."""


class Best(NamedTuple):
    """The best split so far; tuples compare in the order of the contract.

    `agreement`, less than 0 if there is none; then the feature and the sorted position, negative,
    so that lower ones are larger; and the polarity.
    """

    agreement: int
    minus_feature: int
    minus_position: int
    polarity: int


NOTHING = Best(-1, 0, 0, 1)


@dataclass(frozen=True)
class Profile:
    """What is known of every bin: its weight now, and how it looked when it was last scanned.

    Arrays (n_slots,) of int64, but for `present` and `missing`, (n_features,).

    Attributes
    ----------
    positive, negative : ndarray
        The weight of its samples labelled +1 and -1.
    rise, fall : ndarray
        How far `score_left`, from its value at the bin's left edge, rose and fell at cuts inside
        it, at most; less than 0 if it never did, and 2**62 below if there is no cut.
    positive_then, negative_then : ndarray
        Its weights when that was so.
    bound : ndarray
        No cut inside it has a larger agreement; -1 if there is none.
    present, missing : ndarray
        The sum of signed weights of the samples that have and that lack the feature.
    """

    positive: np.ndarray
    negative: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    positive_then: np.ndarray
    negative_then: np.ndarray
    bound: np.ndarray
    present: np.ndarray
    missing: np.ndarray

    @classmethod
    def empty(cls, columns: CodedTable) -> Profile:
        slots = [np.zeros(len(columns.offset), dtype=np.int64) for _ in range(7)]
        return cls(*slots, *(np.zeros(columns.n_features, dtype=np.int64) for _ in range(2)))

    def forget(self) -> None:
        """As if no bin had been scanned."""
        for known in (self.rise, self.fall, self.positive_then, self.negative_then):
            known[:] = 0

    def halve(self, times: int) -> None:
        """All integers were divided by 2**times and rounded up: keep the bounds valid."""
        for risen in (self.rise, self.fall):
            np.negative(-risen >> times, out=risen)
        for then in (self.positive_then, self.negative_then):
            then >>= times


def best_split(
    columns: CodedTable, histograms: np.ndarray, signed: np.ndarray, profile: Profile
) -> Best:
    """The best split of all features; ``NOTHING`` if no feature has one.

    Parameters
    ----------
    columns : CodedTable
    histograms : ndarray (2, n_columns, 256) of int64
        The weight at each code, of positive and of negative samples.
    signed : ndarray (n_samples,) of float64
        Weights in units of the integers, each with the sign of its label.
    profile : Profile
        Brought up to date.
    """
    bests = [NOTHING]
    bundles = columns.bundles

    def weigh(part: tuple[int, int]) -> None:
        found = np.asarray(NOTHING, dtype=np.int64)
        _bin_weights(
            histograms, bundles.column, bundles.missing_code, bundles.default, bundles.entry,
            bundles.codes, bundles.slots, columns.first, columns.n_bins, profile.positive,
            profile.negative, *part,
        )  # fmt: skip
        _edges(
            columns.first, columns.n_bins, columns.offset, columns.impure, profile.positive,
            profile.negative, profile.rise, profile.fall, profile.positive_then,
            profile.negative_then, profile.bound, profile.present, profile.missing, *part, found,
        )  # fmt: skip
        bests.append(Best(*map(int, found)))

    columns.team.each(weigh, ranges(columns.n_features, FEATURES_AT_ONCE))
    return _look_inside(columns, signed, profile, max(bests))


def _look_inside(columns: CodedTable, signed: np.ndarray, profile: Profile, best: Best) -> Best:
    """Scan the bins that may hold a better cut than the best edge."""
    lock = threading.Lock()

    def look(feature: int, team: Team) -> None:
        nonlocal best
        first = columns.first[feature]
        bins = _may_win(columns, profile, feature, best)
        bounds = profile.bound[first + bins]
        if len(columns.fine[feature]) and is_worth_a_closer_look(
            columns, profile, feature, bins, bounds, best.agreement
        ):
            look_closer(columns, signed, profile, feature, team)
            bins = _may_win(columns, profile, feature, best)
        if not len(bins):
            return
        order, starts = columns.bins.sorted_bins(columns, feature, bins)
        found = np.asarray(NOTHING, dtype=np.int64)
        _scan(
            order, starts, bins, columns.offset, signed, profile.positive, profile.negative,
            profile.rise, profile.fall, profile.positive_then, profile.negative_then, first,
            feature, profile.present[feature], profile.missing[feature], found,
        )  # fmt: skip
        with lock:
            best = max(best, Best(*map(int, found)))

    promising = np.flatnonzero(profile.bound >= best.agreement)
    features = np.searchsorted(columns.first, promising, side="right") - 1
    highest: dict[int, int] = {}
    for feature, bound in zip(features.tolist(), profile.bound[promising].tolist(), strict=True):
        highest[feature] = max(bound, highest.get(feature, -1))
    in_turn = sorted(highest, key=lambda feature: -highest[feature])
    if len(in_turn) <= 2 * columns.team.size:  # all threads for one feature, then for the next
        for feature in in_turn:
            look(feature, columns.team)
    else:
        columns.team.each(lambda feature: look(feature, Team(1)), in_turn)
    return best


def _may_win(columns: CodedTable, profile: Profile, feature: int, best: Best) -> np.ndarray:
    """Which bins of a feature may hold a cut that comes before the best one."""
    slots = slice(columns.first[feature], columns.first[feature] + columns.n_bins[feature])
    bound = profile.bound[slots]
    better = bound > best.agreement
    if feature < -best.minus_feature:
        better = bound >= best.agreement
    elif feature == -best.minus_feature:
        better |= (bound == best.agreement) & (columns.offset[slots] < -best.minus_position)
    return np.flatnonzero(better & (columns.impure[slots] > 0))


def is_worth_a_closer_look(
    columns: CodedTable,
    profile: Profile,
    feature: int,
    bins: np.ndarray,
    bounds: np.ndarray,
    best: int,
) -> bool:
    """Whether reading all of the feature's codes may save more than it takes.

    The bins are those whose bounds are above the best agreement. Reading can lower the bound of a
    bin by what its weights have grown since the last look, and by little more. If that will not do,
    the bin must be scanned. It saves sorting, which begins with reading all codes, or looking up
    samples, each of which takes four times as long as reading on.
    """
    slots = columns.first[feature] + bins
    positive, negative = profile.positive[slots], profile.negative[slots]
    grown = np.maximum(
        positive - profile.positive_then[slots], negative - profile.negative_then[slots]
    )
    can_fall = 2.0 * grown + np.maximum(positive, negative) / 64
    may_be_ruled_out = bounds - can_fall <= best
    unsorted = ~columns.bins.known(columns, feature)[bins]
    n_inside = columns.offset[slots + 1] - columns.offset[slots]
    n_saved = int(n_inside[may_be_ruled_out].sum())
    return bool((may_be_ruled_out & unsorted).any()) or 4 * n_saved > columns.n_samples


def look_closer(
    columns: CodedTable, signed: np.ndarray, profile: Profile, feature: int, team: Team
) -> None:
    """Tighten the bounds of all bins of a feature: add up the weights in parts of them."""
    codes = columns.codes[columns.bundles.column[feature]]
    n_bins = int(columns.n_bins[feature])
    n_parts = 256
    while n_parts > 16 and n_parts * 256 * _PER_PART > columns.n_samples:
        n_parts //= 2
    parts = np.zeros((256, n_parts, 2), dtype=np.int64)
    lock = threading.Lock()

    def weigh(part: tuple[int, int]) -> None:
        here = slice(*part)
        own = np.zeros_like(parts)
        _weigh_parts(codes[here], columns.fine[feature][here], signed[here], own)
        with lock:
            np.add(parts, own, out=parts)

    fair = -(-columns.n_samples // team.size)
    team.each(weigh, ranges(columns.n_samples, max(fair, _SAMPLES_AT_ONCE)))
    _rise_of_parts(
        parts, n_bins, int(columns.first[feature]), profile.positive, profile.negative,
        profile.rise, profile.fall, profile.positive_then, profile.negative_then,
    )  # fmt: skip
    _edges(
        columns.first, columns.n_bins, columns.offset, columns.impure, profile.positive,
        profile.negative, profile.rise, profile.fall, profile.positive_then,
        profile.negative_then, profile.bound, profile.present, profile.missing, feature,
        feature + 1, np.asarray(NOTHING, dtype=np.int64),
    )  # fmt: skip


@kernel("void(uint8[::1], uint8[::1], float64[::1], int64[:, :, ::1])")
def _weigh_parts(codes, fine, signed, parts):  # type: ignore[no-untyped-def]
    """The positive and negative weight in every part, (256, n_parts, 2), of every bin."""
    shift = np.uint8(0)
    while parts.shape[1] << shift < 256:
        shift += np.uint8(1)
    for i in range(len(codes)):
        weight = signed[i]
        part = np.uint64(fine[i] >> shift)
        parts[codes[i], part, np.uint64(weight < 0.0)] += np.int64(np.ceil(abs(weight)))


@kernel(
    "void(int64[:, :, ::1], int64, int64, int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1])"
)
def _rise_of_parts(  # type: ignore[no-untyped-def]
    parts, n_bins, first, positive, negative, rise, fall, positive_then, negative_then
):
    """How far the running sum can rise and fall in each bin: by parts, and inside one at most."""
    for b in range(n_bins):
        s = first + b
        reached, up, down = 0, 0, 0
        for part in range(parts.shape[1]):
            up = max(up, reached + parts[b, part, 0])
            down = max(down, parts[b, part, 1] - reached)
            reached += parts[b, part, 0] - parts[b, part, 1]
        rise[s], fall[s] = up, down
        positive_then[s], negative_then[s] = positive[s], negative[s]


@kernel(
    "void(int64[:, :, ::1], int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], uint8[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64, int64)"
)
def _bin_weights(  # type: ignore[no-untyped-def]
    histograms, column, missing_code, default, entry, codes, slots, first, n_bins, positive,
    negative, low, high,
):  # fmt: skip
    """The weights of the bins of features `low` to `high`, from their columns'."""
    for sign in range(2):
        weights = positive if sign == 0 else negative
        total = histograms[sign, 0].sum()  # that of every column
        for j in range(low, high):
            own = histograms[sign, column[j]]
            at = first[j]
            if default[j] < 0:
                for b in range(n_bins[j]):
                    weights[at + b] = own[b]
                weights[at + n_bins[j]] = own[missing_code[j]]
                continue
            for b in range(n_bins[j] + 1):
                weights[at + b] = 0
            rest = total
            for e in range(entry[j], entry[j + 1]):
                weights[at + slots[e]] += own[codes[e]]
                rest -= own[codes[e]]
            weights[at + default[j]] += rest


@kernel("UniTuple(int64, 2)(int64, int64, int64, int64, int64, int64)")
def reach(positive, negative, rise, fall, positive_then, negative_then):  # type: ignore[no-untyped-def]
    """How far above its left edge, and how far below it, the sum at a bin's cuts may be."""
    up = min(positive, rise + positive - positive_then)
    up = max(up, -negative)  # a bin without a cut says less than nothing
    down = min(negative, fall + negative - negative_then)
    return up, max(down, -positive)


@kernel(
    "void(int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, int64,"
    " int64[::1])"
)
def _edges(  # type: ignore[no-untyped-def]
    first, n_bins, offset, impure, positive, negative, rise, fall, positive_then, negative_then,
    bound, present, missing, low, high, found,
):  # fmt: skip
    """The best edge of features `low` to `high`, and bounds for what lies between the edges."""
    for j in range(low, high):
        at, last = first[j], first[j] + n_bins[j]
        here = 0
        for s in range(at, last):
            here += positive[s] - negative[s]
        lacking = positive[last] - negative[last]
        present[j], missing[j] = here, lacking
        bound[last] = -1
        extra = abs(lacking)
        left = 0
        for s in range(at, last):
            bound[s] = -1
            if impure[s]:
                up, down = reach(
                    positive[s], negative[s], rise[s], fall[s], positive_then[s], negative_then[s]
                )
                bound[s] = max(2 * (left + up) - here, here - 2 * (left - down)) + extra
            left += positive[s] - negative[s]
            agreement = 2 * left - here
            if s + 1 < last and abs(agreement) + extra > found[0]:
                found[0], found[1] = abs(agreement) + extra, -j
                found[2], found[3] = 1 - offset[s + 1], 1 if agreement >= 0 else -1
        # The threshold above all values parts what is present from what is missing.
        opposed = (here > 0 and lacking < 0) or (here < 0 and lacking > 0)
        if opposed and abs(here) + extra > found[0]:
            found[0], found[1] = abs(here) + extra, -j
            found[2], found[3] = 1 - offset[last], 1 if here > 0 else -1


@kernel(
    "void(int32[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64, int64, int64, int64, int64[::1])",
    "void(int64[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64, int64, int64, int64, int64[::1])",
)
def _scan(  # type: ignore[no-untyped-def]
    order, starts, bins, offset, signed, positive, negative, rise, fall, positive_then,
    negative_then, first, feature, present, missing, found,
):  # fmt: skip
    """The best cut inside these bins of a feature; notes how far the sum rose and fell there."""
    left = 0
    done = first
    for t in range(len(bins)):
        s = first + bins[t]
        ahead = offset[s] - starts[t]  # from a place in `order` to the sorted position
        while done < s:
            left += positive[done] - negative[done]
            done += 1
        highest, lowest = -(1 << 62), 1 << 62
        highest_at, lowest_at = -1, -1
        reached = 0
        for k in range(starts[t], starts[t] + offset[s + 1] - offset[s] - 1):
            marked = order[np.uint64(k)]
            sample = marked & 0x7FFFFFFF if order.itemsize == 4 else marked & 0x7FFFFFFFFFFFFFFF
            weight = signed[np.uint64(sample)]
            units = np.int64(np.ceil(abs(weight)))
            reached += units if weight > 0.0 else -units
            if marked >= 0:
                if reached > highest:
                    highest, highest_at = reached, k + ahead
                if reached < lowest:
                    lowest, lowest_at = reached, k + ahead
        rise[s], fall[s] = highest, -lowest
        positive_then[s], negative_then[s] = positive[s], negative[s]
        if highest_at < 0:
            continue
        for polarity in (1, -1):
            at = highest_at if polarity > 0 else lowest_at
            score = left + (highest if polarity > 0 else lowest)
            agreement = polarity * (2 * score - present) + abs(missing)
            if agreement > found[0] or (agreement == found[0] and -at > found[2]):
                found[0], found[1] = agreement, -feature
                found[2], found[3] = -at, polarity
