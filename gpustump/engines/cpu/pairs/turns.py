"""Turns of many pairs in kernels, for a loss that says what a step does to its samples.

A turn needs one pass over the samples for each pair: the pass changes what the loss keeps of a
sample by the step of the pair before, computes both integers anew, and adds them to the cells of
the next pair. Then the best cut is found, its votes and factors follow (`rounds`), and the next
pass begins. All numbers are those of `reference.pairs`, bit for bit. If a vote or a factor is in
doubt, the caller makes that step.

Each loss has kernels of its own, so that a first fit compiles no others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpustump.engines.cpu.pairs.cells import best_cut, sum_quadrants
from gpustump.engines.cpu.rounds.certain_factors import are_certain
from gpustump.engines.cpu.rounds.certain_votes import Whole, vote_of_region
from gpustump.engines.cpu.runtime.compiling import inner, kernel

LOSS_PASS = "void(PairSamples, Motion, uint8[::1], int64, int64, int64[:, ::1], int64[:, ::1])"
"""What a loss does to samples `begin` to `end`, given their regions: it changes them by a step, if
the step has a cut, and sets both integers of each output, in rows."""

SET_FACTORS = "void(float64[:, ::1], VoteRule, Powers, float64[:, :, ::1])"
"""What the numbers of a loss are multiplied by; see `rounds.certain_factors`."""

CHUNK = 1024
"""Samples whose integers stay in the nearest cache."""


@inner("void(uint8[::1], uint8[::1], int64, int64, uint8[::1])")
def _set_regions(first, second, a, b, regions):  # type: ignore[no-untyped-def]
    """Set the quadrant of each sample; see `quadrants.quadrants_of`."""
    low, high = np.uint8(a), np.uint8(b)
    for i in range(len(first)):
        regions[i] = 2 * np.uint8(first[i] >= low) + np.uint8(second[i] >= high)


@inner("void(uint8[::1], uint8[::1], PairRoom)")
def _add(first, second, room):  # type: ignore[no-untyped-def]
    """Add samples' integers to the cells of their bins."""
    flat, places = room.flat, room.places
    side, width = np.uint32(room.cells.shape[2]), np.uint32(room.cells.shape[1])
    for i in range(len(first)):
        places[i] = np.uint32(first[i]) * (width * side) + np.uint32(second[i])
    for output in range(len(room.gradient)):
        gradient, hessian = room.gradient[output], room.hessian[output]
        here, below = np.uint64(2 * output) * np.uint64(side), np.uint64(side)
        for i in range(len(first)):
            place = here + np.uint64(places[i])
            flat[place] += gradient[i]
            flat[place + below] += hessian[i]


@kernel("void(uint8[:, ::1], int64[:, ::1], int64[:, ::1], float64[:, :, ::1], float64[:, ::1])")
def add_steps(bins, pairs, places, votes, scores):  # type: ignore[no-untyped-def]
    """Add what the regions of each pair's step vote to the scores (n_outputs, n_samples)."""
    for at in range(len(pairs)):
        a, b = places[at, 0], places[at, 1]
        if a > 0:
            first, second = bins[pairs[at, 0]], bins[pairs[at, 1]]
            for output in range(len(scores)):
                own = scores[output]
                low, beside = votes[at, 0, output], votes[at, 1, output]
                below, high = votes[at, 2, output], votes[at, 3, output]
                for i in range(len(own)):
                    if first[i] < a:
                        own[i] += low if second[i] < b else beside
                    else:
                        own[i] += below if second[i] < b else high


def turns_by(loss_pass: Any, set_factors: Any) -> Any:
    """The kernel that takes turns with a loss.

    Parameters
    ----------
    loss_pass : inner function
        As `LOSS_PASS` says.
    set_factors : inner function
        As `SET_FACTORS` says.
    """

    @inner("void(PairSamples, Motion, int64, int64, PairRoom)")
    def pass_over(samples, motion, j, k, room):  # type: ignore[no-untyped-def]
        """Change all samples by a step, and add their integers to the cells of a pair; for j = -1
        the step is all."""
        first, second = samples.bins[motion.features[0]], samples.bins[motion.features[1]]
        a, b, regions = motion.cut[0], motion.cut[1], room.regions
        if j >= 0:
            room.cells[:] = 0
        for begin in range(0, len(samples.units), CHUNK):
            end = min(begin + CHUNK, len(samples.units))
            if a > 0:
                _set_regions(first[begin:end], second[begin:end], a, b, regions)
            loss_pass(samples, motion, regions, begin, end, room.gradient, room.hessian)
            if j >= 0:
                own, other = samples.bins[j, begin:end], samples.bins[k, begin:end]
                _add(own, other, room)

    @inner("int64(PairRoom, VoteRule, Powers, Motion)")
    def decide(room, rule, tables, motion):  # type: ignore[no-untyped-def]
        """Set votes and factors; returns -1 if one is in doubt, 0 if all votes are 0, else 1."""
        whole, is_any, sums, votes = Whole(0, 0), 0, room.sums, motion.votes
        for region in range(len(votes)):
            for output in range(votes.shape[1]):
                vote = vote_of_region(sums[region, output, 0], sums[region, output, 1], rule, whole)
                if math.isnan(vote):
                    return -1
                votes[region, output] = vote
                is_any = 1 if vote != 0.0 else is_any
        if is_any == 0:
            return 0
        set_factors(votes, rule, tables, motion.factors)
        return 1 if are_certain(motion.factors) else -1

    @kernel(
        "int64(PairSamples, Motion, PairRoom, int64[:, ::1], int64[:, :, ::1], int64, VoteRule,"
        " Powers, int64[:, ::1], float64[:, :, ::1], float64[::1])"
    )
    def take_turns(  # type: ignore[no-untyped-def]
        samples, motion, room, pairs, candidates, at, rule, tables, places, votes, scores
    ):
        """Make the steps of pairs from number `at` on, after the one that is given; returns the
        first that is not made, and leaves the running sums over the cells of its pair, or of the
        last one.

        `scores` (n_pairs,) are set to those of the best cuts.
        """
        while at < len(pairs):
            j, k = pairs[at, 0], pairs[at, 1]
            n_rows, n_columns = samples.n_bins[j], samples.n_bins[k]
            pass_over(samples, motion, j, k, room)
            motion.cut[0] = 0  # nothing is left to change
            a, b, scores[at] = best_cut(room, n_rows, n_columns, rule.l2, candidates[at])
            sum_quadrants(room, n_rows, n_columns, a, b)
            found = decide(room, rule, tables, motion)
            if found < 0:
                return at
            if found > 0:
                motion.features[0], motion.features[1] = j, k
                motion.cut[0], motion.cut[1] = a, b
                places[at, 0], places[at, 1] = a, b
                for region in range(len(motion.votes)):
                    for output in range(motion.votes.shape[1]):
                        votes[at, region, output] = motion.votes[region, output]
            at += 1
        if motion.cut[0] > 0:
            pass_over(samples, motion, -1, -1, room)
        return at

    return take_turns
