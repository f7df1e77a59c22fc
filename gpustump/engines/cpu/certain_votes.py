"""Newton votes in kernels, and the factors by which they multiply odds and probabilities.

The definitions are those of `boosting.newton_votes` and `boosting.split_votes`. A vote or factor is
defined as the representable number nearest to an exact one. If float64 arithmetic cannot decide
which number is the nearest, the kernels return NaN or False, and the host decides with more digits.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.ahead import NewtonRule
from gpustump.engines.cpu.compiling import group, kernel
from gpustump.engines.cpu.exact_powers import certain_power
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND
from gpustump.learners.step_table import VOTE_UNIT

_MOST_UNITS = 2.0**40

group(NewtonRule)


@kernel("float64(int64, int64, NewtonRule)")
def _certain_vote(first, second, rule):  # type: ignore[no-untyped-def]
    """The vote of a region with these sums; NaN if it is in doubt."""
    if second == 0:  # an empty region
        return 0.0
    step = float(first) / (float(second) + rule.l2)
    units = min(max(step, -rule.largest_step), rule.largest_step) * rule.scale
    nearest = np.rint(units)
    is_certain = abs(units) < _MOST_UNITS and abs(units - nearest) + abs(units) * rule.doubt < 0.5
    return nearest * VOTE_UNIT + 0.0 if is_certain else math.nan  # turns minus zero into zero


@kernel("boolean(int64[:, :, ::1], NewtonRule, int64, float64[:, ::1])")
def set_votes(sums, rule, direction, votes):  # type: ignore[no-untyped-def]
    """Set the votes of a split's regions.

    Parameters
    ----------
    sums : ndarray (n_regions, n_outputs, 2) of int64
    rule : NewtonRule
    direction : int
        The feature's constraint, 1, -1 or 0. Votes out of order are replaced by the vote that left
        and right would have as one region.
    votes : ndarray (n_regions, n_outputs) of float64

    Returns
    -------
    bool
        Whether all of them are certain, and at least one is not 0.
    """
    is_certain, is_any = True, False
    for region in range(N_REGIONS):
        for output in range(sums.shape[1]):
            vote = _certain_vote(sums[region, output, 0], sums[region, output, 1], rule)
            votes[region, output] = vote
            is_certain &= not math.isnan(vote)
    left, right = sums[FIRST, 0], sums[SECOND, 0]
    rise = direction * (votes[SECOND, 0] - votes[FIRST, 0]) if direction != 0 else 0.0
    if rise < 0.0 and left[1] > 0 and right[1] > 0:  # an empty side breaks no constraint
        both = _certain_vote(left[0] + right[0], left[1] + right[1], rule)
        votes[FIRST, 0] = votes[SECOND, 0] = both
        is_certain &= not math.isnan(both)
    for region in range(N_REGIONS):
        for output in range(sums.shape[1]):
            is_any |= votes[region, output] != 0.0
    return is_certain and is_any


@kernel("boolean(float64[:, ::1], Powers, float64[:, :, ::1])")
def set_factors(votes, tables, factors):  # type: ignore[no-untyped-def]
    """Set the factors of the samples' numbers, as in `contract.Step`.

    Returns
    -------
    bool
        Whether all of them are certain.
    """
    n_outputs, is_certain = votes.shape[1], True
    for region in range(N_REGIONS):
        largest = votes[region].max()
        for output in range(n_outputs):
            vote = votes[region, output]
            if n_outputs == 1:  # odds: for the label -1, and for the label +1
                negative = certain_power(2.0 * vote, tables)
                positive = certain_power(-2.0 * vote, tables)
            else:  # probabilities, whatever the label
                negative = positive = certain_power(2.0 * (vote - largest), tables)
            factors[region, output, 0] = negative
            factors[region, output, 1] = positive
            is_certain &= not (math.isnan(negative) or math.isnan(positive))
    return is_certain


@kernel("boolean(float64[:, ::1])")
def says_nothing_of_missing(votes):  # type: ignore[no-untyped-def]
    """Whether the left region and missing values have the same votes, as in a constant."""
    is_same = True
    for output in range(votes.shape[1]):
        is_same &= votes[FIRST, output] == votes[MISSING, output]
    return is_same
