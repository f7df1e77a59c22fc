"""The search for splits takes the best cut by the defined scores: proved against brute force.

The samples' integers are drawn, not computed by a loss: small ones that tie, large ones whose
scores differ in the last bit or not at all. Features are copies and mirror images of each other.
The chosen cut is also compared with the exact scores: rounding costs a few units in the last place.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from drawn_problems import DRAWS, Draw, problem_of
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from worth_oracle import UNIT, Problem, best, candidates, exact_score_of, score_of

from gpustump.engines.contract import Cut, Search
from gpustump.engines.reference import table as reference_table
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.split_scan import best_split
from gpustump.engines.worth import Sums, worth_of

SEARCHES = [
    Search("stump", votes, n_outputs, l2)
    for votes, l2 in (
        ("real", 0.0), ("newton", 0.0), ("newton", 0.7), ("newton", 1e15), ("discrete", 0.0),
    )
    for n_outputs in (1, 3, 11)
]  # fmt: skip
TOP = 2**62


def found(problem: Problem, search: Search, block_bytes: int | None = None) -> Cut:
    """What the package finds, on NumPy."""
    table = reference_table.prepare(np.asarray(problem.rows), block_bytes=block_bytes)
    outputs = [
        Sums(*(np.asarray(part, dtype=np.int64) for part in zip(*own, strict=True)))
        for own in problem.outputs
    ]
    return best_split(table, Integers.of(outputs), worth_of(search))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_the_chosen_cut_is_the_best_by_the_defined_score(search):
    @hypothesis_settings(max_examples=40)
    @given(DRAWS, st.sampled_from([None, 1, 700]))
    def cut_is_the_oracles(draw, block_bytes):
        problem = problem_of(draw, search)
        score, expected = best(problem, score_of(search.votes, search.l2))
        cut = found(problem, search, block_bytes)
        assert (cut.feature, cut.position) == (expected.feature, expected.position)
        assert (cut.score, math.copysign(1.0, cut.score)) == (score, math.copysign(1.0, score))
        assert type(cut.score) is (int if search.votes == "discrete" else float)

    cut_is_the_oracles()


def largest_error(search: Search) -> Fraction:
    """Twice the relative rounding error of a score, to first order and a little more.

    Real: 1 for each conversion and 1 for the product, halved by the root, and 1 for the root.
    Newton: 3 for the square, 2 for the denominator, 1 for the quotient. Then 2 additions for the
    regions and 1 for each further output. All terms have one sign, so errors do not grow.
    """
    if search.votes == "discrete":
        return Fraction(0)
    of_region = Fraction(5, 2) if search.votes == "real" else Fraction(6)
    return 2 * (of_region + 2 + search.n_outputs - 1) * UNIT * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_the_exact_score_of_the_chosen_cut_is_within_rounding_of_the_exact_best(search):
    exact = exact_score_of(search.votes, search.l2)

    @hypothesis_settings(max_examples=25)
    @given(DRAWS)
    def cut_is_nearly_the_best(draw):
        problem = problem_of(draw, search)
        cut = found(problem, search)
        scores = {(c.feature, c.position): Fraction(exact(c.regions)) for c in candidates(problem)}
        largest = max(scores.values())
        assert largest - scores[cut.feature, cut.position] <= largest_error(search) * abs(largest)

    cut_is_nearly_the_best()


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_the_drawn_problems_hold_scores_that_differ_in_the_last_bit(votes):
    """Otherwise the tests above would say little about ties and rounding."""
    search = Search("stump", votes, 1, 0.0)
    score = score_of(votes)
    exact = exact_score_of(votes)
    n_neighbours = n_rounded_alike = n_ties = 0
    for seed in range(200):
        problem = problem_of(Draw(seed, 6, 3, 54), search)
        known = [(score(c.regions), exact(c.regions)) for c in candidates(problem)]
        for number, (one, exactly) in enumerate(known):
            for other, other_exactly in known[:number]:
                n_ties += exactly == other_exactly
                n_neighbours += one != other and abs(one - other) <= 1.5 * math.ulp(one)
                n_rounded_alike += one == other and exactly != other_exactly
    assert min(n_ties, n_rounded_alike) > 20
    assert n_neighbours >= 5


def test_of_scores_that_differ_in_the_last_bits_the_larger_wins_whatever_the_order_of_features():
    """Two features with one cut each: sqrt(ab) + sqrt(cd) against sqrt(ad) + sqrt(cb)."""
    search, score, n_found = Search("stump", "real", 1), score_of("real"), 0
    for offset in range(1, 100):
        a, b, c, d = 2**58, 2**58 + 3, 2**58 + (1 << 34) + 977 * offset, 2**58 + (1 << 33)
        pairs = [(a, a), (-b, b), (-d, d), (c, c)]
        rows = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        one, other, _ = (score(x.regions) for x in candidates(Problem(rows, [pairs])))
        if one == other or abs(one - other) > 2 * math.ulp(one):
            continue
        n_found += 1
        first = found(Problem(rows, [pairs]), search)
        second = found(Problem([row[::-1] for row in rows], [pairs]), search)
        assert first.score == second.score == max(one, other)
        assert first.feature == 1 - second.feature == (one < other)
    assert n_found > 10
