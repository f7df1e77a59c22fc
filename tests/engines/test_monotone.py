"""Monotone constraints: the search takes the best cut that they allow, proved against brute force.

The oracle goes through all cuts with Python's own numbers. What is allowed is defined by rounded
levels; the tests with fractions say how far that is from the votes themselves, and that votes are
in order in any case. Other engines are compared with the reference by the conformance suite.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from drawn_problems import DRAWS, problem_of
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import Case, facts_of, with_any_weights
from worth_oracle import (
    Order,
    Problem,
    best,
    candidates,
    exact_newton_level,
    exact_real_level,
    newton_level,
    real_level,
    score_of,
)

from gpustump.boosting.votes.exponential import RealVotes
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.engines.contract import Cut, Search, Totals
from gpustump.engines.integer_weights import SignedWeights
from gpustump.engines.monotone import limit_of
from gpustump.engines.reference import table as reference_table
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.split_scan import best_split
from gpustump.engines.reference.stump_scan import best_stump
from gpustump.engines.worth import Sums, worth_of

DIRECTIONS = st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5)
VOTES = {"real": ("real", 0.0), "newton": ("newton", 0.7), "newton without l2": ("newton", 0.0)}


def constrained(name: str, problem: Problem, directions: list[int]) -> Search:
    votes, l2 = VOTES[name]
    n_features = len(problem.rows[0])
    return Search("stump", votes, 1, l2, tuple(directions[:n_features]))


def order_of(search: Search, problem: Problem, *, exactly: bool = False) -> Order:
    """What the contract says is allowed, by rounded numbers or by fractions."""
    assert search.monotone is not None
    if search.votes == "real":
        level = exact_real_level(problem) if exactly else real_level(problem)
    else:
        level = exact_newton_level(search.l2) if exactly else newton_level(search.l2)
    return Order(level, search.monotone)


def found(problem: Problem, search: Search, block_bytes: int | None = None) -> Cut:
    """What the reference finds, on NumPy."""
    table = reference_table.prepare(np.asarray(problem.rows), block_bytes=block_bytes)
    (pairs,) = problem.outputs
    first, second = (np.asarray(part, dtype=np.int64) for part in zip(*pairs, strict=True))
    integers = Integers.of([Sums(first, second)])
    limit = limit_of(search, int(second.sum()), len(second))
    return best_split(table, integers, worth_of(search), limit)


@pytest.mark.parametrize("name", VOTES)
def test_the_chosen_split_is_the_best_of_those_allowed(name):
    @settings(max_examples=60)
    @given(DRAWS, DIRECTIONS, st.sampled_from([None, 1, 700]))
    def split_is_the_oracles(draw, directions, block_bytes):
        problem = problem_of(draw, Search("stump", VOTES[name][0]))
        search = constrained(name, problem, directions)
        order = order_of(search, problem)
        score, expected = best(problem, score_of(search.votes, search.l2), order)
        cut = found(problem, search, block_bytes)
        assert (cut.feature, cut.position, cut.score) == (
            expected.feature, expected.position, score,
        )  # fmt: skip

    split_is_the_oracles()


@pytest.mark.parametrize("name", VOTES)
@settings(max_examples=80)
@given(draw=DRAWS, directions=DIRECTIONS)
def test_rounding_decides_only_where_levels_differ_by_a_few_units_in_the_last_place(
    name, draw, directions
):
    problem = problem_of(draw, Search("stump", VOTES[name][0]))
    search = constrained(name, problem, directions)
    rounded, exact = order_of(search, problem), order_of(search, problem, exactly=True)
    for one in candidates(problem):
        if rounded.allows(one) != exact.allows(one):
            ((left, right, _),) = one.regions
            low, high = exact.level(left), exact.level(right)
            assert abs(low - high) <= Fraction(1, 2**50) * max(abs(low), abs(high))


def brute_force(x: np.ndarray, units: list[int], direction: int) -> int:
    """The largest agreement of a stump on one feature, or of a constant, in plain Python."""
    total = sum(units)
    missing = sum(u for value, u in zip(x, units, strict=True) if math.isnan(value))
    found = [abs(total), abs(total - missing) + abs(missing)]
    for threshold in sorted({value for value in x if not math.isnan(value)})[:-1]:
        left = sum(u for value, u in zip(x, units, strict=True) if value <= threshold)
        gap = total - missing - 2 * left  # right less left
        allowed = [gap] if direction > 0 else [-gap] if direction < 0 else [gap, -gap]
        found += [own + abs(missing) for own in allowed]
    return max(found)


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.sampled_from([-1, 0, 1]), st.sampled_from([None, 1]))
def test_the_chosen_stump_is_the_best_of_those_allowed(seed, direction, block_bytes):
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(2, 14))
    x = random.choice([0.0, 1.0, 2.0, 3.0, math.inf, math.nan], size=n_samples)
    units = (random.integers(1, 4, n_samples) * random.choice([-1, 1], n_samples)).tolist()
    table = reference_table.prepare(x[:, np.newaxis], block_bytes=block_bytes)
    signed = SignedWeights(np.asarray(units), sum(units), sum(map(abs, units)))
    cut = best_stump(table, signed, np.asarray([direction]))
    assert cut.score == brute_force(x, units, direction)
    is_split = cut.position is not None and cut.position + 1 < np.count_nonzero(x == x)
    if is_split and direction:
        assert cut.polarity == -direction


@settings(max_examples=25)
@given(st.integers(0, 10**6), DIRECTIONS, st.sampled_from(["discrete", "real", "newton"]))
def test_no_round_breaks_a_constraint(seed, directions, kind):
    random = np.random.default_rng(seed)
    case = Case.of(*with_any_weights(seed, 60, "float64"), learning_rate=2.0)
    case = case.voting(kind, float(random.choice([0.0, 1.0]))).constrained(*directions)
    assert case.monotone is not None
    for fact in facts_of(case, "stump"):
        if fact.step is not None and math.isfinite(fact.hypothesis.thresholds[0]):
            (left,), (right,), _ = fact.step.votes
            assert case.monotone[fact.hypothesis.feature] * (right - left) >= 0.0


class Found:
    """A table and a state that have found one cut."""

    def __init__(self, left: tuple[int, int], right: tuple[int, int]) -> None:
        self._sums = [[left], [right], [(0, 0)]]
        weight = left[1] + right[1]
        self.totals = Totals(left[0] + right[0], weight, 0, weight, 10)

    def threshold(self, feature: int, position: int) -> float:
        return 0.5

    def best_cut(self) -> Cut:
        return Cut(0, 4, 0, 0, 1.0)

    def region_sums(self, split: object) -> np.ndarray:
        return np.asarray(self._sums)


@pytest.mark.parametrize("direction", [1, -1])
def test_votes_that_only_rounding_would_put_in_order_are_those_of_both_sides_together(direction):
    """The levels are the same float, and half a unit of votes lies between them."""
    halfway = Fraction(2**35 + 12_345, 2**36)  # a step whose half is between two votes
    low, high = (
        (whole(halfway * second), second)
        for whole, second in ((math.floor, 2**60 + 2**10), (math.ceil, 2**60 + 2**12))
    )
    left, right = (high, low) if direction > 0 else (low, high)
    assert newton_level(0.0)(low) == newton_level(0.0)(high)
    rule = NewtonVotes(1.0, 1, 0.0, 0)
    (free_left,), (free_right,), _ = SplitVotes(rule).best(*[Found(left, right)] * 2).region_votes
    assert direction * (free_right - free_left) == -(2.0**-36)
    votes = SplitVotes(rule, (direction,)).best(*[Found(left, right)] * 2).region_votes
    together = rule._vote(left[0] + right[0], left[1] + right[1])
    assert votes == ((together,), (together,), (0.0,))


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_places_behind_the_last_value_where_sums_are_negative_divide_by_no_zero(kind):
    """What lies right of a missing value is minus the missing ones; here it is minus s."""
    total = 2**20
    limit = limit_of(Search(votes=kind, monotone=(1,)), total, 2)
    left, right = (
        Sums(np.asarray([[first]]), np.asarray([[second]]))
        for first, second in ((0, total), (total // 4, -(total // 4)))
    )
    with np.errstate(all="raise"):
        limit.allows(left, right)
    with pytest.raises(ValueError, match="monotone constraints are for stumps with one output"):
        Search("interval", monotone=(1, 0))
    for rule in (RealVotes(), NewtonVotes(1.0, 1, 0.0, 0)):  # an empty side breaks no constraint
        state = Found((5, 9), (0, 0))
        free, limited = (SplitVotes(rule, own).best(state, state) for own in (None, (1,)))
        assert limited.region_votes == free.region_votes
