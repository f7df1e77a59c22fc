"""What votes multiply the samples' numbers by, in kernels: odds, probabilities or weights.

The definitions are those of `boosting.votes.newton`, `boosting.votes.exponential` and
`boosting.votes.discrete`. Factors, and the normaliser Z of the exponential loss, are defined as the
float64 nearest to an exact number. They are computed as sums of two floats; if these cannot decide
which float is the nearest, the kernels return NaN, and the host decides with more digits.
"""

from __future__ import annotations

import math

import numpy as np

from gpustump.engines.batched_rounds import CLASSES, DISCRETE, NEWTON, POISSON, QUANTILE, SQUARED
from gpustump.engines.cpu.rounds.certain_votes import Whole  # noqa: F401  # signatures name it
from gpustump.engines.cpu.rounds.exact_powers import (
    UNITS,
    certain_power,
    certain_sum,
    exponential_of,
    product,
    quotient,
    sum_of,
    two_floats,
)
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.integer_weights import LEAST_RESCALE, NEAR_A_POWER, TOP
from gpustump.engines.powers import LARGEST
from gpustump.learners.hypothesis import FIRST

_DOUBT = 2.0**-72
"""More than the relative error of the sum of products in `_new_weight`, and of its quotient."""


@inner("void(float64[:, ::1], VoteRule, Powers, float64[:, :, ::1])")
def set_factors_of_odds(votes, rule, tables, factors):  # type: ignore[no-untyped-def]
    """Newton votes: factors of odds, or of probabilities; NaN if they are in doubt."""
    n_outputs = votes.shape[1]
    for region in range(len(votes)):
        largest = votes[region, 0]
        for output in range(1, n_outputs):
            largest = max(largest, votes[region, output])
        for output in range(n_outputs):
            vote = votes[region, output]
            if n_outputs == 1:  # odds: for the label -1, and for the label +1
                factors[region, output, 0] = certain_power(2.0 * vote, tables)
                factors[region, output, 1] = certain_power(-2.0 * vote, tables)
            else:  # probabilities, whatever the label
                factor = certain_power(2.0 * (vote - largest), tables)
                factors[region, output, 0] = factors[region, output, 1] = factor


@inner("void(float64[:, ::1], VoteRule, Powers, float64[:, :, ::1])")
def set_factors_of_amounts(votes, rule, tables, factors):  # type: ignore[no-untyped-def]
    """Poisson and gamma loss: factors of the amounts that move; NaN if they are in doubt."""
    for region in range(len(votes)):
        vote = votes[region, 0]
        factor = certain_power(vote if rule.target == POISSON else -vote, tables)
        factors[region, 0, 0] = factors[region, 0, 1] = factor


@inner("boolean(float64[:, :, ::1])")
def are_certain(factors):  # type: ignore[no-untyped-def]
    """Whether no factor is in doubt."""
    for region in range(len(factors)):
        for output in range(factors.shape[1]):
            if math.isnan(factors[region, output, 0] + factors[region, output, 1]):
                return False
    return True


@inner("UniTuple(float64, 2)(int64[:, :, ::1], float64[:, ::1], Powers)")
def _new_weight(sums, votes, tables):  # type: ignore[no-untyped-def]
    """The sum of all weights, each multiplied by exp(-y v), as the sum of two floats."""
    total, rest = 0.0, 0.0
    for region in range(len(votes)):
        for output in range(sums.shape[1]):
            gradient, hessian = sums[region, output, 0], sums[region, output, 1]
            units = np.int64(votes[region, output] * UNITS)
            for sign in (-1, 1):
                of_label, of_label_rest = two_floats((hessian + sign * gradient) // 2)
                by, by_rest = exponential_of(-sign * units, tables)
                own, own_rest = product(of_label, of_label_rest, by, by_rest)
                total, rest = sum_of(total, rest, own, own_rest)
    return total, rest


@inner("int64(float64, int64)")
def _rescale_exponent(bound, n_integers):  # type: ignore[no-untyped-def]
    """What `integer_weights.rescale_if_certain` returns; a large number in place of None."""
    fraction, rescale_exponent = math.frexp(bound / float(TOP - 2 * n_integers))
    if not 0.5 + NEAR_A_POWER < fraction < 1.0 - NEAR_A_POWER:
        return TOP
    return max(np.int64(rescale_exponent), LEAST_RESCALE)


@inner("float64(int64[:, :, ::1], float64[:, ::1], Whole, boolean, Powers, float64[:, :, ::1])")
def _set_factors_of_weights(sums, votes, whole, has_signs, tables, factors):  # type: ignore[no-untyped-def]
    """The exponential loss: set the factors, NaN if they are in doubt; returns the normaliser.

    The weights of samples that signs get right are not multiplied, but for a power of two.
    """
    for region in range(len(votes)):
        for output in range(votes.shape[1]):
            if abs(votes[region, output]) > LARGEST:
                return math.nan
    total, rest = _new_weight(sums, votes, tables)
    alpha = votes[FIRST, 0] if votes[FIRST, 0] > 0.0 else -votes[FIRST, 0]
    bound = total * certain_power(alpha, tables) if has_signs else total
    rescale_exponent = _rescale_exponent(bound, whole.n_integers)
    if rescale_exponent == TOP:
        return math.nan
    by = math.ldexp(1.0, -rescale_exponent)
    grown = certain_power(2.0 * alpha, tables) * by
    for region in range(len(votes)):
        for output in range(votes.shape[1]):
            vote, own = votes[region, output], factors[region, output]
            if has_signs:
                own[0], own[1] = (grown, by) if vote > 0.0 else (by, grown)
            else:  # for the label -1, and for the label +1
                own[0] = certain_power(vote, tables) * by
                own[1] = certain_power(-vote, tables) * by
    return certain_sum(*quotient(total, rest, whole.weight), _DOUBT)


@inner("float64(int64[:, :, ::1], float64[:, ::1], VoteRule, Whole, Powers, float64[:, :, ::1])")
def set_factors(sums, votes, rule, whole, tables, factors):  # type: ignore[no-untyped-def]
    """Set the factors of the samples' numbers, as in `contract.Step`.

    Parameters
    ----------
    sums : ndarray (n_regions, n_outputs, 2) of int64
    votes : ndarray (n_regions, n_outputs) of float64
    rule : VoteRule
    whole : Whole
    tables : Powers
    factors : ndarray (n_regions, n_outputs, 2) of float64

    Returns
    -------
    float
        The normaliser, 1 for Newton votes; NaN if it, or a factor, is in doubt.
    """
    if rule.target in (SQUARED, QUANTILE):  # no number is multiplied
        return 1.0
    normaliser = 1.0
    if rule.target != CLASSES:
        set_factors_of_amounts(votes, rule, tables, factors)
    elif rule.kind == NEWTON:
        set_factors_of_odds(votes, rule, tables, factors)
    else:
        has_signs = rule.kind == DISCRETE and votes.shape[1] == 1
        normaliser = _set_factors_of_weights(sums, votes, whole, has_signs, tables, factors)
    return normaliser if are_certain(factors) else math.nan
