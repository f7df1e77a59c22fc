"""Whole numbers and float64 decide votes, factors and normalisers as exact arithmetic does.

The quick ways are compared with the exact ones, which use decimals of 50 digits and fractions, and
the exponentials with decimals of 60 digits, on random numbers and on those next to a decision.
"""

from __future__ import annotations

import decimal
import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump.boosting.votes import discrete as discrete_votes
from gpustump.boosting.votes import exact_numbers
from gpustump.boosting.votes import exponential as exponential_votes
from gpustump.boosting.votes import newton as newton_votes
from gpustump.boosting.votes.exact_numbers import (
    LARGEST,
    ONE,
    exact_newton_vote,
    exponentials,
)
from gpustump.boosting.votes.newton import LARGEST_STEP, NewtonVotes, exact_factors_of, factors_of
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.contract import Totals
from gpustump.engines.integer_weights import TOP
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

DIGITS = decimal.Context(prec=60, Emax=10**9, Emin=-(10**9))

UNITS = st.integers(-(2**40), 2**40) | st.integers(-(2**53), 2**53)
VOTES = UNITS.map(lambda units: units * VOTE_UNIT) | st.sampled_from(
    [0.0, 0.1, VOTE_UNIT, LARGEST, -LARGEST, math.nextafter(LARGEST, 99), VOTES_LIMIT]
)
"""Votes within `LARGEST`, up to the limit, and one that is no multiple of the unit."""

WEIGHTS = st.integers(0, 2**61) | st.integers(0, 1000) | st.sampled_from([2**61, 2**60 - 1])


def exact_vote(votes: NewtonVotes, first: int, second: int) -> float:
    """The vote of a region that is not empty, computed with fractions."""
    return exact_newton_vote(first, second, votes.l2, votes.learning_rate / 2, LARGEST_STEP)


def awkward_units() -> list[int]:
    """Steps of the tables, one unit beside them, and random sizes."""
    draw = random.Random(0)
    steps = [(draw.randrange(2**12) << 28) + own for own in (-1, 0, 1, 2**28 - 1) * 200]
    sizes = [draw.randrange(1 << draw.randint(1, 40)) for _ in range(1000)]
    return [1, 2, 2**40, *(min(max(units, 1), 2**40) for units in steps + sizes)]


def test_exponentials_are_right_within_the_error_that_is_promised():
    promised = Decimal(2) ** -75
    with decimal.localcontext(DIGITS):
        for units in awkward_units():
            x = units * VOTE_UNIT
            exactly = Decimal(x).exp()
            grown, shrunk = exponentials(x)
            assert abs(Decimal(grown) / ONE / exactly - 1) < promised
            assert abs(Decimal(shrunk) / ONE * exactly - 1) < promised
            assert exponentials(-x) == (shrunk, grown)


@st.composite
def taken_splits(draw) -> Taken:
    """Votes and sums over regions of 1 to 3 outputs."""
    n_outputs = draw(st.integers(1, 3))
    many = st.lists(VOTES, min_size=n_outputs, max_size=n_outputs).map(tuple)
    sides = st.tuples(WEIGHTS, WEIGHTS).map(lambda pn: (pn[0] - pn[1], pn[0] + pn[1]))
    sums = [[draw(sides) for _ in range(n_outputs)] for _ in range(3)]
    weight = max(1, sum(second for own in sums for _, second in own))
    totals = Totals(0, weight, 0, 1, draw(st.integers(1, 10**6)))
    return Taken(Split(0, 0.0), (draw(many), draw(many), draw(many)), totals, sums=sums)


@pytest.mark.parametrize("doubt_bits", [50, 56, exact_numbers._DOUBT_BITS])
def test_factors_and_z_are_those_of_decimals_however_much_is_in_doubt(doubt_bits, monkeypatch):
    monkeypatch.setattr(exact_numbers, "_DOUBT_BITS", doubt_bits)

    @settings(max_examples=40)
    @given(taken_splits())
    def check(taken):
        if any(second for own in taken.sums for _, second in own):
            expected = exponential_votes.exact_growth_of(taken)
            assert exponential_votes.growth_of(taken) == expected

    @settings(max_examples=60)
    @given(WEIGHTS, WEIGHTS, st.integers(1, 10**6), VOTES)
    def check_discrete(wrong, right, n_samples, vote):
        totals = Totals(0, max(1, wrong + right), 0, 1, n_samples)
        expected = discrete_votes.exact_growth_of(wrong, totals, vote)
        assert discrete_votes.growth_of(wrong, totals, vote) == expected

    check()
    check_discrete()


@pytest.mark.parametrize("n_samples", [1, 426, 10**6])
def test_rescale_exponents_are_right_where_the_sum_is_a_power_of_two_times_its_bound(n_samples):
    """Votes of 0 keep the sum as it is: a little more of it, and there is one halving more."""
    found = set()
    for power in range(-3, 3):
        limit = math.floor((TOP - 2 * n_samples) * 2.0**power)
        for eighths in range(-128, 129):  # of a unit in the last place, or fewer
            weight = limit + eighths * (limit >> 56)
            sums = [[(weight % 2, weight)], [(0, 0)], [(0, 0)]]
            totals = Totals(0, weight, 0, 1, n_samples)
            taken = Taken(Split(0, 0.0), ((0.0,),) * 3, totals, sums=sums)
            growth = exponential_votes.growth_of(taken)
            assert growth == exponential_votes.exact_growth_of(taken)
            found.add((power, growth.rescale_exponent))
    assert found == {(power, power + over) for power in range(-3, 3) for over in (0, 1)}


@settings(max_examples=200)
@given(
    st.integers(-(2**61), 2**61),
    st.integers(1, 2**61),
    st.sampled_from([0.3, 1.0, 2.5, 1e-14, 5e-324, 1e7, 1.7e308]),
    st.sampled_from([0.0, 0.25, 1.0, 1e15, 2.0**1000]),
)
def test_newton_votes_are_those_of_fractions(first, second, rate, l2):
    votes = NewtonVotes(rate, 1, l2, 0)
    assert votes._vote(first, second) == exact_vote(votes, first, second)


def test_newton_votes_halfway_between_two_multiples_are_even_and_beside_it_the_nearest():
    """A / B is a number of quarters of two units."""
    votes = NewtonVotes(1.0, 1, 0.0, 0)
    for first in range(-41, 42):
        found = votes._vote(first, 2**37) / VOTE_UNIT
        assert found == round(Fraction(first, 4))
    for first in range(-42, 43, 4):  # halfway, and next to it
        for off in (-3, -1, 1, 3):
            near = (first << 20) + off, 2**57
            assert votes._vote(*near) == exact_vote(votes, *near)
            assert votes._vote(*near) / VOTE_UNIT == math.floor(Fraction(first, 4)) + (off > 0)


@settings(max_examples=300)
@given(VOTES)
def test_factors_of_odds_are_those_of_decimals(vote):
    assert factors_of(vote) == exact_factors_of(vote)


def test_votes_of_a_usual_size_hardly_ever_need_decimals(monkeypatch):
    calls = []
    monkeypatch.setattr(newton_votes, "exact_factors_of", calls.append)
    draw = random.Random(1)
    for _ in range(3000):
        factors_of(draw.randrange(-(2**38), 2**38) * VOTE_UNIT)
    assert len(calls) <= 1
