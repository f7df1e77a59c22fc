"""What is known of every bin: its weight in this round, and how it looked when last looked into.

At the edge between two bins the sum of signed weights on the left, `score_left`, is known. Inside a
bin it can rise above its value at the bin's left edge by no more than the bin's positive weight,
and fall by no more than its negative weight. A bin that was looked into in an earlier round is
known better: there the sum rose by r at most, so now it rises by r and what the positive weight has
grown since. (No sample's integer ever shrinks but by the common powers of two.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.compiling import Integers, group, kernel


@group
class Profile(NamedTuple):
    """What is known of every bin.

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

    positive: Integers
    negative: Integers
    rise: Integers
    fall: Integers
    positive_then: Integers
    negative_then: Integers
    bound: Integers
    present: Integers
    missing: Integers

    @classmethod
    def empty(cls, n_slots: int, n_features: int) -> Profile:
        slots = [np.zeros(n_slots, dtype=np.int64) for _ in range(7)]
        return cls(*slots, *(np.zeros(n_features, dtype=np.int64) for _ in range(2)))

    def forget(self) -> None:
        """As if no bin had been looked into."""
        for known in (self.rise, self.fall, self.positive_then, self.negative_then):
            known[:] = 0

    def halve(self, times: int) -> None:
        """All integers were divided by 2**times and rounded up: keep the bounds valid."""
        for risen in (self.rise, self.fall):
            np.negative(-risen >> times, out=risen)
        for then in (self.positive_then, self.negative_then):
            then >>= times


class WeightedTable(NamedTuple):
    """A coded table under the weights of a round.

    Attributes
    ----------
    table : CodedTable
    signed : ndarray (n_samples,) of float64
        Weights in units of the integers, each with the sign of its label.
    profile : Profile
        What is known of the bins; the search brings it up to date.
    """

    table: CodedTable
    signed: np.ndarray
    profile: Profile


@kernel("UniTuple(int64, 2)(Profile, int64)")
def reach(profile, slot):  # type: ignore[no-untyped-def]
    """How far above its left edge, and how far below it, the sum at a bin's cuts may be."""
    positive, negative = profile.positive[slot], profile.negative[slot]
    up = min(positive, profile.rise[slot] + positive - profile.positive_then[slot])
    up = max(up, -negative)  # holds for every cut; `rise` is far below it if there is none
    down = min(negative, profile.fall[slot] + negative - profile.negative_then[slot])
    return up, max(down, -positive)


@kernel("void(Profile, int64, int64, int64)")
def note(profile, slot, rise, fall):  # type: ignore[no-untyped-def]
    """Note how far the sum rises and falls inside a bin under the weights of this round."""
    profile.rise[slot], profile.fall[slot] = rise, fall
    profile.positive_then[slot] = profile.positive[slot]
    profile.negative_then[slot] = profile.negative[slot]
