"""The best split: the best edge, then a scan of the bins that may hold a better cut.

Bins whose bound is below the best agreement found cannot hold the answer. The others are scanned,
sample by sample, in sorted order, features of the highest bounds first. Bounds are those of
`bin_profile`.

Ties are broken by the order of `contract.Cut`, so the answer is the same in whatever order bins are
looked into.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from gpustump.engines.contract import NO_CUT, Cut
from gpustump.engines.cpu.bin_edges import FEATURES_AT_ONCE, best_edge
from gpustump.engines.cpu.bin_parts import is_worth_a_closer_look, look_closer
from gpustump.engines.cpu.bin_profile import WeightedTable, note
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.found_split import NOTHING, STUMP, Found, as_cut, better, sign_for_missing
from gpustump.engines.cpu.sorted_bins import POSITIONS
from gpustump.engines.threads import Team, ranges


def best_split(now: WeightedTable, histograms: np.ndarray) -> Cut:
    """The best split of all features; `NO_CUT` if no feature has one.

    Parameters
    ----------
    now : WeightedTable
        Its profile is brought up to date.
    histograms : ndarray (2, n_columns, 256) of int64
        The weight at each code, of positive and of negative samples.
    """
    table, profile = now.table, now.profile
    found: list[Cut] = []

    def weigh(part: tuple[int, int]) -> None:
        edge = best_edge(histograms, table.bundles, table.layout, profile, *part)
        found.append(as_cut(edge))

    table.team.each(weigh, ranges(table.n_features, FEATURES_AT_ONCE))
    return _look_inside(now, max(found, default=NO_CUT))


def each_promising(features: list[int], look: Callable[[int, Team], None], team: Team) -> None:
    """Look into features, the most promising first, with all threads for one or one for each."""
    if len(features) <= 2 * team.size:
        for feature in features:
            look(feature, team)
    else:
        team.each(lambda feature: look(feature, Team(1)), features)


def _look_inside(now: WeightedTable, best: Cut) -> Cut:
    """Scan the bins that may hold a better cut than the best edge."""
    table, profile = now.table, now.profile
    lock = threading.Lock()

    def look(feature: int, team: Team) -> None:
        nonlocal best
        bins = _may_win(now, feature, best)
        bounds = profile.bound[table.layout.first[feature] + bins]
        if len(table.fine[feature]) and is_worth_a_closer_look(
            now, feature, bins, bounds, best.agreement
        ):
            look_closer(now, feature, team)
            bins = _may_win(now, feature, best)
        if not len(bins):
            return
        in_order = table.bins.sorted_bins(feature, bins)
        found = _scan(in_order, table.layout, profile, feature, now.signed)
        if found.agreement >= best.agreement:
            with lock:
                best = max(best, as_cut(found))

    each_promising(_promising(now, best.agreement), look, table.team)
    return best


def _promising(now: WeightedTable, agreement: int) -> list[int]:
    """The features with a bin whose bound is not below an agreement, highest bounds first."""
    bound = now.profile.bound
    slots = np.flatnonzero(bound >= agreement)
    features = np.searchsorted(now.table.layout.first, slots, side="right") - 1
    highest: dict[int, int] = {}
    for feature, value in zip(features.tolist(), bound[slots].tolist(), strict=True):
        highest[feature] = max(value, highest.get(feature, -1))
    return sorted(highest, key=lambda feature: -highest[feature])


def _may_win(now: WeightedTable, feature: int, best: Cut) -> np.ndarray:
    """Which bins of a feature may hold a cut that comes before the best one."""
    layout = now.table.layout
    slots = layout.slots(feature)
    bound = now.profile.bound[slots]
    if best.position is None or feature > best.feature:
        wins = bound > best.agreement
    elif feature < best.feature:
        wins = bound >= best.agreement
    else:
        is_lower = layout.offset[slots] < best.position
        wins = (bound > best.agreement) | ((bound == best.agreement) & is_lower)
    return np.flatnonzero(wins & (layout.has_inner_split[slots] > 0))


@kernel("Found(SortedSamples, BinLayout, Profile, int64, float64[::1])", POSITION=POSITIONS)
def _scan(in_order, layout, profile, feature, signed):  # type: ignore[no-untyped-def]
    """The best cut inside these bins of a feature; notes how far the sum rose and fell there."""
    order, offset = in_order.order, layout.offset
    present, missing = profile.present[feature], profile.missing[feature]
    vote = sign_for_missing(missing, present)
    best = NOTHING
    left = 0
    done = layout.first[feature]
    for t in range(len(in_order.bins)):
        s = layout.first[feature] + in_order.bins[t]
        start = in_order.starts[t]
        ahead = offset[s] - start  # from a place in `order` to the sorted position
        while done < s:
            left += profile.positive[done] - profile.negative[done]
            done += 1
        highest, lowest = -(1 << 62), 1 << 62
        highest_at, lowest_at = -1, -1
        reached = 0
        for k in range(start, start + offset[s + 1] - offset[s] - 1):
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
        note(profile, s, highest, -lowest)
        if highest_at < 0:
            continue
        for_left = 2 * (left + highest) - present + abs(missing)
        best = better(Found(for_left, feature, STUMP, highest_at, 1, vote), best)
        for_right = present - 2 * (left + lowest) + abs(missing)
        best = better(Found(for_right, feature, STUMP, lowest_at, -1, vote), best)
    return best
