"""The kernels' votes and factors are those of exact arithmetic, or in doubt.

Exponentials are compared with decimals of 60 digits, votes and factors with `NewtonVotes` and
`SplitVotes`, which decide in fractions and decimals where floats could be wrong.
"""

from __future__ import annotations

import decimal
import math
import random
from decimal import Decimal

import numpy as np
import pytest

pytest.importorskip("numba")

from gpustump.boosting.newton_votes import NewtonVotes, exact_factors_of, exact_vote
from gpustump.boosting.split_votes import SplitVotes
from gpustump.boosting.votes import Taken
from gpustump.engines.contract import Totals
from gpustump.engines.cpu import certain_votes, exact_powers
from gpustump.engines.cpu.exact_powers import LARGEST, certain_power, powers
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT

DIGITS = decimal.Context(prec=60)
LAST = LARGEST << 36
TOTALS = Totals(0, 1, 0, 1, 1)


def units_of_exponents() -> list[int]:
    """The ends of the range, steps of the tables, one unit beside them, and random sizes."""
    draw = random.Random(0)
    steps = [(draw.randrange(-(2**12), 2**12) << 28) + own for own in (-1, 0, 1, 2**28 - 1) * 100]
    sizes = [draw.choice([-1, 1]) * draw.randrange(1 << draw.randint(1, 40)) for _ in range(2000)]
    return [0, 1, -1, LAST, -LAST, *(min(max(units, -LAST), LAST) for units in steps + sizes)]


def test_exponentials_are_right_within_the_error_that_is_promised():
    with decimal.localcontext(DIGITS):
        for units in units_of_exponents():
            found, rest = exact_powers._exponential(units, powers())
            exactly = (Decimal(units) / 2**36).exp()
            assert abs((Decimal(found) + Decimal(rest)) / exactly - 1) < Decimal(2) ** -75
            assert found + rest == found


def test_powers_that_are_certain_are_the_nearest_floats_and_few_are_not():
    numbers = [units * VOTE_UNIT for units in units_of_exponents()]
    found = [certain_power(x, powers()) for x in numbers]
    assert [x for x, own in zip(numbers, found, strict=True) if math.isnan(own)] == []
    assert found == [exact_factors_of(x)[0] for x in numbers]


@pytest.mark.parametrize("x", [LARGEST + VOTE_UNIT, -LARGEST - VOTE_UNIT, math.inf, math.nan])
def test_powers_beyond_the_tables_are_in_doubt(x):
    assert math.isnan(certain_power(x, powers()))


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
    assert in_doubt > 100


def drawn_sums(draw: random.Random, n_outputs: int) -> list[list[tuple[int, int]]]:
    """Sums over three regions; some are empty, some votes are at their bound."""
    top = 1 << draw.randint(1, 61)

    def one() -> tuple[int, int]:
        second = draw.choice([0, draw.randrange(top), draw.randrange(1 + top // 1000)])
        widest = min(max(1, second * draw.choice([1, 4, 40])), 2**61)
        return (draw.randint(-widest, widest) if second else 0, second)

    return [[one() for _ in range(n_outputs)] for _ in range(3)]


def votes_in_kernel(votes: NewtonVotes, sums: list[list[tuple[int, int]]], direction: int = 0):
    found = np.empty((3, votes.n_outputs))
    given = np.asarray(sums, dtype=np.int64)
    return certain_votes.set_votes(given, votes.plain, direction, found), found


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_votes_that_are_certain_are_the_hosts_in_the_order_that_constraints_ask_for(n_outputs):
    draw = random.Random(n_outputs)
    n_certain = n_pooled = 0
    for _ in range(3000):
        rate, l2 = draw.choice([1e-9, 0.01, 0.1, 0.3, 1.0]), draw.choice([0.0, 1.0, 2.0**50])
        votes, sums = NewtonVotes(rate, n_outputs, l2, 0), drawn_sums(draw, n_outputs)
        direction = draw.choice([-1, 0, 1]) if n_outputs == 1 else 0
        is_certain, found = votes_in_kernel(votes, sums, direction)
        split_votes = SplitVotes(votes, (direction,) if n_outputs == 1 else None)
        expected = split_votes._of_split(0, sums, TOTALS)
        n_pooled += expected != votes.votes_of(sums, TOTALS)
        if is_certain:
            assert repr(found.tolist()) == repr([list(own) for own in expected])  # also -0.0
            n_certain += 1
        else:
            assert np.isnan(found).any() or not np.any(expected)
    assert n_certain > 1500
    assert n_pooled > 100 or n_outputs > 1


def test_votes_near_the_middle_of_two_multiples_are_in_doubt():
    n_units = 123456789
    for off in (-1, 0, 1):
        first = (2 * n_units + 1) * 2**23 + off  # over 2**60: half a unit beyond a multiple
        votes = NewtonVotes(2.0, 1, 0.0, 0)
        is_certain, _ = votes_in_kernel(votes, [[(first, 2**60)], [(1, 1)], [(0, 0)]])
        assert exact_vote(votes, first, 2**60) / VOTE_UNIT in (n_units, n_units + 1)
        assert not is_certain


def test_votes_that_are_all_zero_are_no_ordinary_round():
    is_certain, found = votes_in_kernel(NewtonVotes(0.1, 1, 0.0, 0), [[(0, 9)], [(0, 9)], [(0, 0)]])
    assert not is_certain
    assert not found.any()


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_factors_are_the_hosts(n_outputs):
    draw = random.Random(n_outputs)
    votes = NewtonVotes(0.1, n_outputs, 1.0, 0)
    n_certain = 0
    for _ in range(500):
        scale = 1 << draw.randint(1, 38)
        own = [[draw.randint(-scale, scale) * VOTE_UNIT for _ in range(n_outputs)] for _ in "LRM"]
        found = np.empty((3, n_outputs, 2))
        is_certain = certain_votes.set_factors(np.asarray(own), powers(), found)
        taken = Taken(Split(0, 0.0), tuple(map(tuple, own)), TOTALS)
        expected = [list(map(list, one)) for one in votes.change(taken).step.factors]
        assert found.tolist() == expected or not is_certain
        n_certain += is_certain
    assert n_certain > 480  # exp(2**-26) and the like are next to the middle of two floats


def test_factors_of_votes_beyond_the_tables_are_in_doubt():
    found = np.empty((3, 1, 2))
    own = np.asarray([[0.5], [-9.0], [0.0]])
    assert not certain_votes.set_factors(own, powers(), found)
