"""The search takes the best cut by the defined scores, under constraints too, and scores have the
same bits everywhere: proved against brute force in Python's own numbers.

The samples' integers are drawn, not computed by a loss: small ones that tie, large ones whose
scores differ in the last bit or not at all. Features are copies and mirror images of each other.
Other engines are compared with the reference by the conformance suite.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from gain_oracle import (
    DRAWS,
    Draw,
    Order,
    Pair,
    Problem,
    Regions,
    best,
    candidates,
    exact_score_of,
    newton_level,
    problem_of,
    real_level,
    score_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import arrays
from gpustump.boosting.votes.exponential import RealVotes
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.engines.contract import NO_CUT, Cut, Totals
from gpustump.engines.gain import Sums, gain_of
from gpustump.engines.gain import score_of as score_of_split
from gpustump.engines.monotone import limit_of
from gpustump.engines.objective import Objective
from gpustump.engines.reference import table as reference_table
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.split_scan import best_split
from gpustump.engines.reference.stump_scan import best_stump

SEARCHES = [
    Objective.of(votes, n_outputs, l2=l2)
    for votes, l2 in (
        ("real", 0.0), ("newton", 0.0), ("newton", 0.7), ("newton", 1e15), ("discrete", 0.0),
    )
    for n_outputs in (1, 3)
]  # fmt: skip
CONSTRAINED = [own for own in SEARCHES if own.n_outputs == 1 and own.l2 < 1e15]
DIRECTIONS = st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5)


def order_of(objective: Objective, problem: Problem) -> Order | None:
    """What the contract says is allowed."""
    if objective.monotone is None:
        return None
    if objective.gain == "discrete":  # the heavier side votes +1
        return Order(lambda pair: pair[0], objective.monotone)
    is_real = objective.gain == "real"
    level = real_level(problem) if is_real else newton_level(objective.l2)
    return Order(level, objective.monotone)


def found(problem: Problem, objective: Objective, block_bytes: int | None = None) -> Cut:
    """What the reference finds, on NumPy."""
    table = reference_table.prepare(np.asarray(problem.rows), block_bytes=block_bytes)
    outputs = [
        Sums(*(np.asarray(part, dtype=np.int64) for part in zip(*own, strict=True)))
        for own in problem.outputs
    ]
    if objective.has_signs:
        return best_stump(table, Integers.of(outputs), objective)
    return best_split(table, Integers.of(outputs), objective)


@pytest.mark.parametrize(
    ("objective", "is_constrained"),
    [*((own, False) for own in SEARCHES), *((own, True) for own in CONSTRAINED)],
    ids=str,
)
@settings(max_examples=40)
@given(draw=DRAWS, directions=DIRECTIONS, block_bytes=st.sampled_from([None, 1, 700]))
def test_the_chosen_cut_is_the_best_allowed_one_by_the_defined_score(
    objective, is_constrained, draw, directions, block_bytes
):
    problem = problem_of(draw, objective.gain, objective.n_outputs)
    if is_constrained:
        objective = replace(objective, monotone=tuple(directions[: draw.n_features]))
    score, expected = best(
        problem, score_of(objective.gain, objective.l2), order_of(objective, problem)
    )
    cut = found(problem, objective, block_bytes)
    assert (cut.feature, cut.position) == (expected.feature, expected.position)
    assert (cut.score, math.copysign(1.0, cut.score)) == (score, math.copysign(1.0, score))
    assert type(cut.score) is (int if objective.gain == "discrete" else float)
    if (
        is_constrained
        and objective.has_signs
        and expected.regions[0][1][1]
        and cut.position is not None
    ):
        assert cut.polarity == -directions[cut.feature] or not directions[cut.feature]


def test_cuts_that_are_level_are_taken_in_the_order_of_the_contract():
    ordered = [
        Cut(9, 0, -1, 1, score=8),  # a larger agreement, whatever the rest
        Cut(0, 1, 1, 1, score=7),
        Cut(0, 1, -1, 1, score=7),  # the polarity +1 first
        Cut(0, 2, 1, 1, score=7),  # the lower position
        Cut(0, 1, 1, 1, score=7, after=0),  # a stump before an interval
        Cut(0, 3, 1, 1, score=7, after=0),
        Cut(0, 2, 1, 1, score=7, after=1),  # the lower first cut
        Cut(1, 0, 1, 1, score=7),  # the lower feature before all of these
        Cut(0, None, 1, 1, score=7),  # a constant last
        Cut(3, 0, 1, 1, score=6),
        Cut(0, 0, 1, 1, score=0),
        NO_CUT,
    ]
    shuffled = np.random.default_rng(0).permutation(ordered)
    assert sorted(shuffled, reverse=True) == ordered


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_the_drawn_problems_hold_scores_that_differ_in_the_last_bit(votes):
    """Otherwise the tests above would say little about ties and rounding."""
    score, exact = score_of(votes), exact_score_of(votes)
    n_neighbours = n_rounded_alike = n_ties = 0
    for seed in range(200):
        problem = problem_of(Draw(seed, 6, 3, 54), votes)
        known = [(score(c.regions), exact(c.regions)) for c in candidates(problem)]
        for number, (one, exactly) in enumerate(known):
            for other, other_exactly in known[:number]:
                n_ties += exactly == other_exactly
                n_neighbours += one != other and abs(one - other) <= 1.5 * math.ulp(one)
                n_rounded_alike += one == other and exactly != other_exactly
    assert min(n_ties, n_rounded_alike) > 20
    assert n_neighbours >= 5


class Found:
    """A table and a state that have found one cut."""

    def __init__(self, left: Pair, right: Pair) -> None:
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
    (free_left,), (free_right,), _ = rule.best(*[Found(left, right)] * 2).region_votes
    assert direction * (free_right - free_left) == -(2.0**-36)
    votes = replace(rule, monotone=(direction,)).best(*[Found(left, right)] * 2).region_votes
    together = rule._vote(left[0] + right[0], left[1] + right[1])
    assert votes == ((together,), (together,), (0.0,))


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_places_behind_the_last_value_where_sums_are_negative_divide_by_no_zero(kind):
    """What lies right of a missing value is minus the missing ones; here it is minus s."""
    total = 2**20
    limit = limit_of(Objective.of(votes=kind, monotone=(1,)), total, 2)
    left, right = (
        Sums(np.asarray([[first]]), np.asarray([[second]]))
        for first, second in ((0, total), (total // 4, -(total // 4)))
    )
    with np.errstate(all="raise"):
        limit.allows(left, right)
    with pytest.raises(ValueError, match="monotone constraints are for stumps with one output"):
        Objective(learner="interval", monotone=(1, 0))
    for rule in (RealVotes(), NewtonVotes(1.0, 1, 0.0, 0)):  # an empty side breaks no constraint
        state = Found((5, 9), (0, 0))
        free, limited = (replace(rule, monotone=own).best(state, state) for own in (None, (1,)))
        assert limited.region_votes == free.region_votes


N_RANDOM = 2000
OF_THREE = [
    Objective.of(votes, 3, l2=l2)
    for votes, l2 in (
        ("discrete", 0.0), ("real", 0.0), ("newton", 0.0), ("newton", 0.3), ("newton", 1e17),
    )
]  # fmt: skip

Outputs = list[tuple[Sums, Sums, Sums]]


def drawn(objective: Objective) -> Outputs:
    """For each output random sums over three regions, up to 2**61, many of them small or 0."""
    random = np.random.default_rng(0)

    def region() -> Sums:
        second = random.integers(0, 2**61, N_RANDOM) >> random.integers(0, 60, N_RANDOM)
        share = np.where(random.random(N_RANDOM) < 0.2, 1.0, random.uniform(-1, 1, N_RANDOM))
        first = np.clip((second * share).astype(np.int64), -second, second)
        if objective.gain != "newton":  # both are sums of the same weights
            first -= np.sign(first) * ((first ^ second) & 1)
            first = np.where((first ^ second) & 1, second, first)
        return Sums(first, second)

    return [(region(), region(), region()) for _ in range(objective.n_outputs)]


def added(outputs: Outputs, objective: Objective):
    """As every engine adds the outputs' parts."""
    first, *others = (gain_of(objective)(*regions) for regions in outputs)
    for part in others:
        first = first + part
    return first


def bits(scores) -> list[int]:
    found = np.asarray(scores)
    return found.tolist() if found.dtype == np.int64 else found.view(np.int64).tolist()


def regions_at(outputs: Outputs, number: int) -> Regions:
    def pair(own: Sums) -> Pair:
        return int(own.gradient[number]), int(own.hessian[number])

    return [(pair(left), pair(right), pair(missing)) for left, right, missing in outputs]


@pytest.mark.parametrize("objective", OF_THREE, ids=str)
def test_scores_have_the_bits_of_pythons_own_floats_in_every_library(objective, backend: Backend):
    outputs = drawn(objective)
    here = [
        tuple(Sums(*(backend.asarray(part) for part in own)) for own in regions)
        for regions in outputs
    ]
    with arrays.computing_on(here[0][0].gradient):
        found = backend.to_numpy(added(here, objective))
    assert found.dtype == (np.int64 if objective.gain == "discrete" else np.float64)
    own = score_of(objective.gain, objective.l2)
    expected = [own(regions_at(outputs, number)) for number in range(N_RANDOM)]
    assert bits(found) == bits(np.asarray(expected, dtype=found.dtype))
    if objective.gain != "discrete":  # conversions round, and scores are not whole numbers
        seconds = np.concatenate([own.hessian for regions in outputs for own in regions])
        assert (seconds > 2**53).sum() > 0.1 * N_RANDOM
        assert (seconds == 0).sum() > 10
        assert len(set(found.tolist())) > 0.99 * N_RANDOM


@pytest.mark.parametrize("objective", OF_THREE, ids=str)
def test_scores_have_these_bits_for_one_split_and_where_jax_compiles_one_function(objective):
    outputs = drawn(objective)
    expected = bits(np.asarray(added(outputs, objective), dtype=np.float64))
    for number in range(0, N_RANDOM, 4):
        sums = list(zip(*regions_at(outputs, number), strict=True))
        assert bits([score_of_split(sums, objective)]) == [expected[number]]
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        given = [[[jax.numpy.asarray(x) for x in own] for own in regions] for regions in outputs]

        def compiled(given):
            return added([tuple(Sums(*own) for own in regions) for regions in given], objective)

        found = np.asarray(jax.jit(compiled)(given))
    assert bits(found) == bits(added(outputs, objective))
