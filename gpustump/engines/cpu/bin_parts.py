"""A closer look at a feature's bins: the weights in parts of them, found with the second byte.

Within a bin the second byte never falls as the values grow, so parts of equal second bytes are
slices of the bin's sorted order, too. Their sums tell how far the running sum can rise and fall in
the bin, and nothing needs to be sorted.
"""

from __future__ import annotations

import threading

import numpy as np

from gpustump.engines.cpu.bin_edges import best_edge_of_weighed
from gpustump.engines.cpu.bin_profile import WeightedTable, note
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.threads import Team, ranges

_PER_PART = 8
"""Samples that a part of a bin should hold, so that clearing the parts is the smaller job."""

_SAMPLES_AT_ONCE = 2**17
"""Fewer samples than this are not worth another thread."""


def is_worth_a_closer_look(
    now: WeightedTable, feature: int, bins: np.ndarray, bounds: np.ndarray, best: int
) -> bool:
    """Whether reading all of the feature's codes may save more than it takes.

    The bins are those whose bounds are above the best agreement. Reading can lower the bound of a
    bin by what its weights have grown since the last look, and by little more. If that will not do,
    the bin must be scanned. It saves sorting, which begins with reading all codes, or looking up
    samples, each of which takes four times as long as reading on.
    """
    table, profile = now.table, now.profile
    slots = table.layout.first[feature] + bins
    positive, negative = profile.positive[slots], profile.negative[slots]
    grown = np.maximum(
        positive - profile.positive_then[slots], negative - profile.negative_then[slots]
    )
    can_fall = 2.0 * grown + np.maximum(positive, negative) / 64
    may_be_ruled_out = bounds - can_fall <= best
    unsorted = ~table.bins.are_sorted(feature)[bins]
    n_saved = int(table.layout.n_inside(slots)[may_be_ruled_out].sum())
    return bool((may_be_ruled_out & unsorted).any()) or 4 * n_saved > table.n_samples


def look_closer(now: WeightedTable, feature: int, team: Team) -> None:
    """Tighten the bounds of all bins of a feature: add up the weights in parts of them."""
    table = now.table
    codes, fine = table.codes_of(feature), table.fine[feature]
    n_parts = 256
    while n_parts > 16 and n_parts * 256 * _PER_PART > table.n_samples:
        n_parts //= 2
    parts = np.zeros((256, n_parts, 2), dtype=np.int64)
    lock = threading.Lock()

    def weigh(part: tuple[int, int]) -> None:
        here = slice(*part)
        own = np.zeros_like(parts)
        _weigh_parts(codes[here], fine[here], now.signed[here], own)
        with lock:
            np.add(parts, own, out=parts)

    fair = -(-table.n_samples // team.size)
    team.each(weigh, ranges(table.n_samples, max(fair, _SAMPLES_AT_ONCE)))
    _note_rises(parts, table.layout, now.profile, feature)
    best_edge_of_weighed(table.layout, now.profile, feature, feature + 1)


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


@kernel("void(int64[:, :, ::1], BinLayout, Profile, int64)")
def _note_rises(parts, layout, profile, feature):  # type: ignore[no-untyped-def]
    """How far the running sum can rise and fall in each bin: by parts, and inside one at most."""
    for b in range(layout.n_bins[feature]):
        reached, up, down = 0, 0, 0
        for part in range(parts.shape[1]):
            up = max(up, reached + parts[b, part, 0])
            down = max(down, parts[b, part, 1] - reached)
            reached += parts[b, part, 0] - parts[b, part, 1]
        note(profile, layout.first[feature] + b, up, down)
