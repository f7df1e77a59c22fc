"""The votes of a round in kernels, from the sums over its regions.

The definitions are those of `boosting.votes.newton`, `boosting.votes.exponential` and
`boosting.votes.discrete`. A vote is defined as the multiple of its unit nearest to an exact number.
If float arithmetic cannot decide which multiple is the nearest, the kernels return NaN or False,
and the host decides with more digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import DISCRETE, NEWTON, VoteRule
from gpustump.engines.cpu.rounds.exact_powers import product, sum_of, two_floats
from gpustump.engines.cpu.runtime.compiling import group, inner
from gpustump.engines.quantiles import LEVEL_BITS
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND
from gpustump.learners.step_table import VOTE_UNIT

_MOST_UNITS = 2.0**40

_OF_PRODUCTS = 2.0**-46
"""How large the error of a vote by products of two floats each is, as a share of that by one: less
than 2**-100 in place of 2**-50."""

group(VoteRule)


@group
class Whole(NamedTuple):
    """All samples of a round.

    Attributes
    ----------
    weight : int
        The sum of the Hessians of all samples and outputs.
    n_integers : int
        How many there are.
    """

    weight: int
    n_integers: int


@inner("float64(float64, float64)")
def _certain(units, doubt):  # type: ignore[no-untyped-def]
    """The vote of so many units, which may be off by `doubt`; NaN if it is in doubt."""
    nearest = np.rint(units)
    is_certain = abs(units) < _MOST_UNITS and abs(units - nearest) + doubt < 0.5
    return nearest * VOTE_UNIT + 0.0 if is_certain else math.nan  # turns minus zero into zero


@inner("float64(float64, float64, VoteRule)")
def _vote_of_odds(one, other, rule):  # type: ignore[no-untyped-def]
    """The vote of two weights above 0, each of which was rounded up to four times."""
    log_odds = math.log(one / other)
    return _certain(log_odds * rule.scale, (1.0 + abs(log_odds)) * rule.scale * rule.doubt)


@inner("float64(float64, int64, int64, VoteRule)")
def _vote_by_products(units, gradient, hessian, rule):  # type: ignore[no-untyped-def]
    """The Newton vote of about so many units, near the middle of two multiples; NaN in the middle.

    A learning rate such as 0.3 is not far from a fraction, so for a region of few samples, each of
    which has the same Hessian, the middle is often near.
    """
    middle = math.floor(units) + 0.5
    x, x_rest = product(*two_floats(gradient), rule.scale, 0.0)
    y, y_rest = product(middle, 0.0, *sum_of(*two_floats(hessian), rule.l2, 0.0))
    ahead, doubt = (x - y) + (x_rest - y_rest), rule.doubt * _OF_PRODUCTS
    is_certain = abs(middle) < _MOST_UNITS and abs(ahead) > abs(x) * doubt
    nearest = middle + (0.5 if ahead > 0.0 else -0.5)
    return nearest * VOTE_UNIT + 0.0 if is_certain else math.nan


@inner("float64(int64, int64, VoteRule, Whole)")
def vote_of_region(gradient, hessian, rule, whole):  # type: ignore[no-untyped-def]
    """The real or Newton vote of a region with these sums; NaN if it is in doubt."""
    if hessian == 0:  # an empty region
        return 0.0
    if rule.kind == NEWTON:
        step = float(gradient) / (float(hessian) + rule.l2)
        units = min(max(step, -rule.largest_step), rule.largest_step) * rule.scale
        vote = _certain(units, abs(units) * rule.doubt)
        if math.isnan(vote) and 2.0 * abs(step) < rule.largest_step:
            vote = _vote_by_products(units, gradient, hessian, rule)
        return vote
    by, smoothing = float(whole.n_integers), float(whole.weight)
    positive = float(hessian + gradient) * by + smoothing
    return _vote_of_odds(positive, float(hessian - gradient) * by + smoothing, rule)


@inner("boolean(int64[:, :, ::1], VoteRule, Whole, int64, float64[:, ::1])")
def _set_votes_of_regions(sums, rule, whole, direction, votes):  # type: ignore[no-untyped-def]
    """Set real or Newton votes; returns whether all of them are certain."""
    is_certain = True
    for region in range(N_REGIONS):
        for output in range(sums.shape[1]):
            vote = vote_of_region(sums[region, output, 0], sums[region, output, 1], rule, whole)
            votes[region, output] = vote
            is_certain &= not math.isnan(vote)
    left, right = sums[FIRST, 0], sums[SECOND, 0]
    rise = direction * (votes[SECOND, 0] - votes[FIRST, 0]) if direction != 0 else 0.0
    if rise < 0.0 and left[1] > 0 and right[1] > 0:  # an empty side breaks no constraint
        both = vote_of_region(left[0] + right[0], left[1] + right[1], rule, whole)
        votes[FIRST, 0] = votes[SECOND, 0] = both
        is_certain &= not math.isnan(both)
    return is_certain


@inner("float64(int64, VoteRule)")
def _vote_of_quantile(quantile, rule):  # type: ignore[no-untyped-def]
    """The multiple of a unit nearest to `rule.scale` times so many units; of two the even one."""
    units, rest = product(float(quantile), 0.0, rule.scale, 0.0)  # exactly their sum
    nearest = np.rint(units)
    beside = units - nearest
    if beside == 0.5 and rest > 0.0:
        nearest += 1.0
    if beside == -0.5 and rest < 0.0:
        nearest -= 1.0
    return nearest * VOTE_UNIT + 0.0


@inner("int64(float64, int64)")
def rank_of(level, weight):  # type: ignore[no-untyped-def]
    """The same as `engines.quantiles.rank_of`, in 64 bits."""
    share, mask = np.int64(level * 2.0**LEVEL_BITS), (1 << LEVEL_BITS) - 1
    return share * (weight >> LEVEL_BITS) + ((share * (weight & mask) + mask) >> LEVEL_BITS)


@inner("boolean(int64[:, :, ::1], int64[::1], VoteRule, float64[:, ::1])")
def set_votes_of_quantiles(sums, quantiles, rule, votes):  # type: ignore[no-untyped-def]
    """Set votes by the regions' quantiles, in units; returns whether any is not 0."""
    is_any = False
    for region in range(N_REGIONS):
        is_empty = sums[region, 0, 1] == 0
        votes[region, 0] = 0.0 if is_empty else _vote_of_quantile(quantiles[region], rule)
        is_any |= votes[region, 0] != 0.0
    return is_any


@inner("boolean(int64[:, :, ::1], VoteRule, Whole, int64, float64[:, ::1])")
def _set_votes_of_signs(sums, rule, whole, direction, votes):  # type: ignore[no-untyped-def]
    """Set discrete votes; returns whether they are certain. False, too, if no sign is wrong."""
    agreed = 0
    for output in range(sums.shape[1]):
        left, right, apart = (
            sums[FIRST, output, 0],
            sums[SECOND, output, 0],
            sums[MISSING, output, 0],
        )
        agreed += abs(left - right) + abs(apart)
        sign = 1.0 if left >= right else -1.0
        if direction != 0 and sums[SECOND, output, 1] > 0:  # an empty side breaks no constraint
            sign = -float(direction)
        votes[FIRST, output], votes[SECOND, output] = sign, -sign
        of_missing = apart if apart != 0 else left + right
        votes[MISSING, output] = 1.0 if of_missing >= 0 else -1.0
    wrong = (whole.weight - agreed) // 2
    if wrong == 0:
        return False
    alpha = _vote_of_odds(float(whole.weight - wrong), float(wrong), rule)
    votes *= alpha
    return not math.isnan(alpha)


@inner("boolean(int64[:, :, ::1])")
def _has_one_label_a_region(sums):  # type: ignore[no-untyped-def]
    """Whether every region holds one label only, for every output."""
    found = True
    for region in range(N_REGIONS):
        for output in range(sums.shape[1]):
            found &= abs(sums[region, output, 0]) == sums[region, output, 1]
    return found


@inner("boolean(int64[:, :, ::1], VoteRule, Whole, int64, float64[:, ::1])")
def set_votes(sums, rule, whole, direction, votes):  # type: ignore[no-untyped-def]
    """Set the votes of a split's regions.

    Parameters
    ----------
    sums : ndarray (n_regions, n_outputs, 2) of int64
    rule : VoteRule
    whole : Whole
    direction : int
        The feature's constraint, 1, -1 or 0. Real and Newton votes out of order are replaced by the
        vote that left and right would have as one region.
    votes : ndarray (n_regions, n_outputs) of float64

    Returns
    -------
    bool
        Whether the round is ordinary: all votes are certain, at least one is not 0, and under the
        exponential loss the round is not perfect.
    """
    if rule.kind == DISCRETE:
        is_ordinary = _set_votes_of_signs(sums, rule, whole, direction, votes)
    else:
        is_ordinary = _set_votes_of_regions(sums, rule, whole, direction, votes)
        is_ordinary &= rule.kind == NEWTON or not _has_one_label_a_region(sums)
    is_any = False
    for region in range(N_REGIONS):
        for output in range(sums.shape[1]):
            is_any |= votes[region, output] != 0.0
    return is_ordinary and is_any


@inner("boolean(float64[:, ::1])")
def says_nothing_of_missing(votes):  # type: ignore[no-untyped-def]
    """Whether the left region and missing values have the same votes, as in a constant."""
    is_same = True
    for output in range(votes.shape[1]):
        is_same &= votes[FIRST, output] == votes[MISSING, output]
    return is_same
