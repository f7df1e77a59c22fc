"""The kernels' votes, factors and normalisers are those of exact arithmetic, or in doubt.

Exponentials are compared with decimals of 60 digits, all else with the votes objects of boosting,
which decide in fractions and decimals where floats could be wrong.
"""

from __future__ import annotations

import decimal
import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import numba

from gpustump.boosting.votes import discrete as discrete_votes
from gpustump.boosting.votes import exponential as exponential_votes
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.exact_numbers import exact_newton_vote
from gpustump.boosting.votes.exponential import RealVotes, SharedDiscreteVotes
from gpustump.boosting.votes.newton import (
    LARGEST_STEP,
    NewtonVotes,
    SquaredVotes,
    exact_factors_of,
)
from gpustump.boosting.votes.quantile import QuantileVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.batched_rounds import NEWTON_DOUBT
from gpustump.engines.contract import Totals
from gpustump.engines.cpu.rounds import certain_factors, certain_votes, exact_powers
from gpustump.engines.cpu.rounds.certain_votes import Whole
from gpustump.engines.powers import LARGEST, powers
from gpustump.engines.quantiles import level_of, rank_of
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT


def callable_from_python(inner: Any) -> Any:
    """A function that calls an `inner` one, which only kernels can."""
    return numba.njit(lambda *arguments: inner(*arguments))


set_factors = callable_from_python(certain_factors.set_factors)
certain_power = callable_from_python(exact_powers.certain_power)
exponential_of = callable_from_python(exact_powers.exponential_of)
set_votes = callable_from_python(certain_votes.set_votes)
set_votes_of_quantiles = callable_from_python(certain_votes.set_votes_of_quantiles)
rank_in_kernel = callable_from_python(certain_votes.rank_of)

DIGITS = decimal.Context(prec=60)
LAST = LARGEST << 36
TOTALS = Totals(0, 1, 0, 1, 1)
N_SAMPLES = 1000
NO_SUMS, ALL = np.zeros((3, 1, 2), dtype=np.int64), Whole(1, 1)


def exact_vote(votes: NewtonVotes, first: int, second: int) -> float:
    """The vote of a region that is not empty, computed with fractions."""
    return exact_newton_vote(first, second, votes.l2, votes.learning_rate / 2, LARGEST_STEP)


def units_of_exponents() -> list[int]:
    """The ends of the range, steps of the tables, one unit beside them, and random sizes."""
    draw = random.Random(0)
    steps = [(draw.randrange(-(2**12), 2**12) << 28) + own for own in (-1, 0, 1, 2**28 - 1) * 40]
    sizes = [draw.choice([-1, 1]) * draw.randrange(1 << draw.randint(1, 40)) for _ in range(800)]
    return [0, 1, -1, LAST, -LAST, *(min(max(units, -LAST), LAST) for units in steps + sizes)]


def test_exponentials_are_right_within_the_error_that_is_promised():
    with decimal.localcontext(DIGITS):
        for units in units_of_exponents():
            found, rest = exponential_of(units, powers())
            exactly = (Decimal(units) / 2**36).exp()
            assert abs((Decimal(found) + Decimal(rest)) / exactly - 1) < Decimal(2) ** -75
            assert found + rest == found


def test_powers_that_are_certain_are_the_nearest_floats_and_few_are_not():
    numbers = [units * VOTE_UNIT for units in units_of_exponents()]
    found = [certain_power(x, powers()) for x in numbers]
    assert [x for x, own in zip(numbers, found, strict=True) if math.isnan(own)] == []
    assert found == [exact_factors_of(x)[0] for x in numbers]
    for x in (LARGEST + VOTE_UNIT, -LARGEST - VOTE_UNIT, math.inf, math.nan):
        assert math.isnan(certain_power(x, powers()))  # beyond the tables


def test_no_power_near_the_middle_of_two_floats_is_taken_for_certain():
    """With a larger error allowed for, just those in whose range there is a middle."""
    allowed = 2.0**-57
    in_doubt = 0
    with decimal.localcontext(DIGITS):
        for units in units_of_exponents():
            x = units * VOTE_UNIT
            found = certain_power(x, powers()._replace(doubt=allowed))
            exactly = (Decimal(units) / 2**36).exp()
            low, high = (float(exactly * (1 + sign * Decimal(allowed))) for sign in (-1, 1))
            assert math.isnan(found) == (low != high)
            in_doubt += low != high
    assert in_doubt > 40


def drawn_sums(draw: random.Random, n_outputs: int) -> list[list[tuple[int, int]]]:
    """Sums over three regions; some are empty, some votes are at their bound."""
    top = 1 << draw.randint(1, 61)

    def one() -> tuple[int, int]:
        second = draw.choice([0, draw.randrange(top), draw.randrange(1 + top // 1000)])
        widest = min(max(1, second * draw.choice([1, 4, 40])), 2**61)
        return (draw.randint(-widest, widest) if second else 0, second)

    return [[one() for _ in range(n_outputs)] for _ in range(3)]


def votes_in_kernel(votes: Any, sums: list[list[tuple[int, int]]], direction: int = 0):
    found = np.empty((3, votes.n_outputs))
    given = np.asarray(sums, dtype=np.int64)
    whole = Whole(sum(second for own in sums for _, second in own), N_SAMPLES * votes.n_outputs)
    return set_votes(given, votes.plain, whole, direction, found), found


def test_votes_in_the_middle_of_two_multiples_are_in_doubt_and_those_beside_it_are_not():
    n_units = 123456789
    for off in (-1, 0, 1):
        first = (2 * n_units + 1) * 2**23 + off  # over 2**60: half a unit beyond a multiple
        votes = NewtonVotes(2.0, 1, 0.0, 0)
        is_certain, found = votes_in_kernel(votes, [[(first, 2**60)], [(1, 1)], [(0, 0)]])
        expected = exact_vote(votes, first, 2**60)
        assert expected / VOTE_UNIT in (n_units, n_units + 1)
        assert is_certain == (off != 0)
        assert found[0, 0] == expected or off == 0
    is_certain, found = votes_in_kernel(NewtonVotes(0.1, 1, 0.0, 0), [[(0, 9)], [(0, 9)], [(0, 0)]])
    assert not is_certain  # all zero: no ordinary round
    assert not found.any()


def test_votes_of_few_samples_are_certain_unless_they_are_in_the_middle():
    """Of squared loss: a learning rate of 0.3 times half a residual is often next to a middle."""
    draw = random.Random(0)
    one = 2**36  # a sample's Hessian
    votes = SquaredVotes(0.3, 1, float(one), 36)
    n_near = 0
    for _ in range(2000):
        own = draw.randint(-(2**38), 2**38), draw.choice([1, 3, 4]) * one
        is_certain, found = votes_in_kernel(votes, [[own], [(5, one)], [(0, 0)]])
        units = Fraction(own[0], own[1] + one) * Fraction(0.3) / Fraction(VOTE_UNIT)
        from_middle = abs(units - math.floor(units) - Fraction(1, 2))
        assert is_certain == (from_middle != 0)
        assert found[0, 0] == round(units) * VOTE_UNIT or not is_certain
        n_near += from_middle < abs(units) * Fraction(NEWTON_DOUBT)
    assert n_near > 40


@pytest.mark.parametrize("rate", [0.5, 0.3, 2.0**-30, 1.0])
def test_votes_of_quantiles_are_the_hosts_in_the_middle_of_two_multiples_too(rate):
    draw = random.Random(1)
    votes, found = QuantileVotes(rate, level=0.7), np.empty((3, 1))
    given = np.asarray([[[0, 5]], [[0, 0]], [[0, 7]]])
    for _ in range(500):
        units = draw.randint(-(2 ** draw.randint(1, 52)), 2**52), 3, draw.randint(-9, 9)
        is_any = set_votes_of_quantiles(given, np.asarray(units), votes.plain, found)
        left, _, apart = (votes._shrunk(own * VOTE_UNIT) for own in units)
        assert found[:, 0].tolist() == [left, 0.0, apart]
        assert is_any == bool(left or apart)


def test_ranks_are_exact():
    draw = random.Random(2)
    for _ in range(2000):
        level = level_of(draw.choice([draw.random(), 0.5, 1e-12, 1 - 1e-9]))
        weight = draw.randrange(1, 2 ** draw.randint(1, 62))
        exactly = math.ceil(Fraction(level) * weight)
        assert rank_in_kernel(level, weight) == rank_of(level, weight) == exactly


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_factors_are_the_hosts(n_outputs):
    draw = random.Random(n_outputs)
    votes = NewtonVotes(0.1, n_outputs, 1.0, 0)
    n_certain = 0
    for _ in range(500):
        scale = 1 << draw.randint(1, 38)
        own = [[draw.randint(-scale, scale) * VOTE_UNIT for _ in range(n_outputs)] for _ in "LRM"]
        found = np.empty((3, n_outputs, 2))
        is_certain = set_factors(NO_SUMS, np.asarray(own), votes.plain, ALL, powers(), found) == 1.0
        taken = Taken(Split(0, 0.0), tuple(map(tuple, own)), TOTALS)
        expected = [list(map(list, one)) for one in votes.change(taken).step.factors]
        assert found.tolist() == expected or not is_certain
        n_certain += is_certain
    assert n_certain > 480  # exp(2**-26) and the like are next to the middle of two floats


def drawn_weights(draw: random.Random, n_outputs: int) -> list[list[tuple[int, int]]]:
    """The same for weights: the second sums are those of the first ones without signs."""
    top = draw.choice([4, 1000, 2**40, 2**61 // (3 * n_outputs)])
    sides = [draw.choice([0, draw.randrange(top), draw.randrange(1 + top // 50)]) for _ in range(6)]
    by_output = [sides, *([draw.randrange(top) for _ in range(6)] for _ in range(n_outputs - 1))]
    return [[(own[r] - own[r + 3], own[r] + own[r + 3]) for own in by_output] for r in range(3)]


def is_perfect(votes: Any, sums: list[list[tuple[int, int]]]) -> bool:
    nothing = ((0.0,) * votes.n_outputs,) * 3
    taken = Taken(Split(0, 0.0), nothing, TOTALS, sums=sums)
    if isinstance(votes, RealVotes):
        return votes.is_perfect(taken)
    return SharedDiscreteVotes(1.0, votes.n_outputs).is_perfect(taken)


def drawn_votes(draw: random.Random, kind: type, n_outputs: int) -> tuple[Any, Any]:
    """A rule for votes, and sums for it."""
    if kind is NewtonVotes:
        rate, l2 = draw.choice([1e-9, 0.01, 0.1, 0.3, 1.0]), draw.choice([0.0, 1.0, 2.0**50])
        return NewtonVotes(rate, n_outputs, l2, 0), drawn_sums(draw, n_outputs)
    return kind(draw.choice([1e-9, 0.1, 1.0, 3.0]), n_outputs), drawn_weights(draw, n_outputs)


@pytest.mark.parametrize("kind", [NewtonVotes, RealVotes, SharedDiscreteVotes])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_votes_that_are_certain_are_the_hosts_in_the_order_that_constraints_ask_for(
    kind, n_outputs
):
    """And so are factors under the exponential loss, of discrete votes with several outputs: those
    with one have factors of their own; see below."""
    draw = random.Random(n_outputs)
    is_newton, may_be_constrained = kind is NewtonVotes, kind is not SharedDiscreteVotes
    has_factors = kind is RealVotes or (n_outputs > 1 and not is_newton)
    n_certain = n_pooled = n_perfect = n_factors = 0
    for _ in range(1500):
        votes, sums = drawn_votes(draw, kind, n_outputs)
        weight = sum(second for own in sums for _, second in own)
        totals = TOTALS if is_newton else Totals(0, weight, 0, 1, N_SAMPLES)
        direction = draw.choice([-1, 0, 1]) if n_outputs == 1 and may_be_constrained else 0
        is_certain, found = votes_in_kernel(votes, sums, direction)
        if not is_newton and (weight == 0 or is_perfect(votes, sums)):
            assert not is_certain
            n_perfect += 1
            continue
        split_votes = replace(votes, monotone=(direction,) if n_outputs == 1 else None)
        expected = split_votes._of_split(0, sums, totals)
        n_pooled += expected != votes.votes_of(sums, totals)
        if not is_certain:
            assert np.isnan(found).any() or not np.any(expected)
            continue
        n_certain += 1
        assert repr(found.tolist()) == repr([list(own) for own in expected])  # also -0.0
        if has_factors and abs(found).max() <= LARGEST:
            taken = Taken(Split(0, 0.0), expected, totals, sums=sums)
            factors, _, normaliser = exponential_votes.exact_growth_of(taken)
            own = np.empty((3, n_outputs, 2))
            whole = Whole(weight, N_SAMPLES * n_outputs)
            given = (np.asarray(sums, dtype=np.int64), found, votes.plain, whole, powers(), own)
            if math.isnan(set_factors(*given)):
                continue
            assert set_factors(*given) == normaliser
            assert own.tolist() == [list(map(list, one)) for one in factors]
            n_factors += 1
    assert n_certain > 750
    assert n_perfect > 0 or is_newton
    assert n_factors > 700 or not has_factors
    assert n_pooled > 50 or not may_be_constrained or n_outputs > 1


def test_signs_that_a_constraint_asks_for_are_given_where_both_sides_are_equal():
    for direction in (-1, 1):
        sums = np.asarray([[(3, 9)], [(3, 5)], [(-7, 8)]], dtype=np.int64)
        found, whole = np.empty((3, 1)), Whole(22, 9)
        assert set_votes(sums, DiscreteVotes().plain, whole, direction, found)
        assert np.sign(found[:, 0]).tolist() == [-direction, direction, -1.0]
    sums[1] = 0  # nothing is on the right
    set_votes(sums, DiscreteVotes().plain, whole, 1, found)
    assert np.sign(found[:, 0]).tolist() == [1.0, -1.0, -1.0]


def test_factors_and_normalisers_of_discrete_votes_are_the_hosts():
    draw, n_certain = random.Random(1), 0
    for _ in range(1500):
        sums = drawn_weights(draw, 1)
        weight = sum(second for own in sums for _, second in own)
        votes = DiscreteVotes(draw.choice([1e-9, 0.1, 1.0]))
        found, factors = np.empty((3, 1)), np.empty((3, 1, 2))
        given, whole = np.asarray(sums, dtype=np.int64), Whole(weight, N_SAMPLES)
        if not weight or not set_votes(given, votes.plain, whole, 0, found):
            continue
        alpha, sign = abs(found[0, 0]), np.sign(found[:, 0])
        agreed = sum(int(s) * own[0][0] for s, own in zip(sign, sums, strict=True))
        totals = Totals(0, weight, 0, 1, N_SAMPLES)
        wrong = (weight - agreed) // 2
        grown, rescale_exponent, normaliser = discrete_votes.exact_growth_of(wrong, totals, alpha)
        own = set_factors(given, found, votes.plain, whole, powers(), factors)
        if math.isnan(own):
            continue
        n_certain += 1
        kept = 2.0**-rescale_exponent
        assert own == normaliser
        pairs = [[grown, kept] if s > 0 else [kept, grown] for s in sign]
        assert factors[:, 0].tolist() == pairs
    assert n_certain > 1000


@pytest.mark.parametrize(
    ("off", "factor"), [(-(2**30), 1.0), (-(2**10), None), (0, None), (2**10, None), (2**30, 0.5)]
)
def test_sums_next_to_the_bound_of_the_integers_are_left_to_the_host(off, factor):
    weight = 2**62 - 2 * N_SAMPLES + off
    sums = np.asarray([[(0, weight)], [(0, 0)], [(0, 0)]], dtype=np.int64)
    votes, factors = np.zeros((3, 1)), np.empty((3, 1, 2))
    whole = Whole(weight, N_SAMPLES)
    found = set_factors(sums, votes, RealVotes().plain, whole, powers(), factors)
    assert math.isnan(found) == (factor is None)
    assert factor is None or factors.tolist() == [[[factor, factor]]] * 3
