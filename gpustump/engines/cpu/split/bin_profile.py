"""What is kept of each bin for discrete votes: how far the sum of signed weights rises inside it.

At the edge between two bins the sum of signed weights on the left, `score_left`, is known. Inside a
bin it can rise above its value at the bin's left edge by no more than the bin's positive weight,
and fall by no more than its negative weight. For a bin that was searched in an earlier round there
is a better bound: if the sum rose by at most r then, it rises by at most r plus the growth of the
bin's positive weight since. (Samples' integers shrink only by powers of two common to all.)

For other votes all weights rise and fall, and something else is kept: see `drift`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Integers, group, kernel
from gpustump.engines.cpu.split.slices import Slices  # noqa: F401  # a signature names it

_NO_CUT = -(1 << 62)


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

    def forget(self) -> None:
        """Drop what searches have found."""
        for known in (self.rise, self.fall, self.positive_then, self.negative_then):
            known[:] = 0

    def halve(self, times: int) -> None:
        """All integers were divided by 2**times and rounded up: keep the bounds valid."""
        for risen in (self.rise, self.fall):
            np.negative(-risen >> times, out=risen)
        for then in (self.positive_then, self.negative_then):
            then >>= times


@kernel("UniTuple(int64, 2)(Profile, int64)")
def reach(profile, slot):  # type: ignore[no-untyped-def]
    """How far above its value at a bin's left edge, and how far below, `score_left` may be."""
    positive, negative = profile.positive[slot], profile.negative[slot]
    up = min(positive, profile.rise[slot] + positive - profile.positive_then[slot])
    up = max(up, -negative)  # holds for every cut; `rise` is far below it if there is none
    down = min(negative, profile.fall[slot] + negative - profile.negative_then[slot])
    return up, max(down, -positive)


@kernel("void(Profile, int64, int64, int64[::1], int64[::1])")
def reach_all(profile, low, high, up, down):  # type: ignore[no-untyped-def]
    """The same for the slots from `low` to `high`."""
    for slot in range(low, high):
        up[slot], down[slot] = reach(profile, slot)


@kernel("void(Profile, int64, int64, int64)")
def note(profile, slot, rise, fall):  # type: ignore[no-untyped-def]
    """Note how far the sum rises and falls inside a bin under the weights of this round."""
    profile.rise[slot], profile.fall[slot] = rise, fall
    profile.positive_then[slot] = profile.positive[slot]
    profile.negative_then[slot] = profile.negative[slot]


@kernel("void(Profile, int64[::1], Slices)")
def note_units(profile, slots, slices):  # type: ignore[no-untyped-def]
    """Note how far the sum rises and falls in some bins whose units are known."""
    for t in range(len(slots)):
        reached, up, down = 0, _NO_CUT, _NO_CUT
        end = slices.first[t] + slices.n_units[t]
        for u in range(slices.first[t], end):
            if slices.is_open[u]:
                up, down = max(up, reached + slices.up[u]), max(down, slices.down[u] - reached)
            reached += slices.sums[0, u] - slices.sums[1, u]
            if u + 1 < end:
                up, down = max(up, reached), max(down, -reached)
        note(profile, slots[t], up, down)
