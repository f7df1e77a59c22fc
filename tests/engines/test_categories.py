"""Sets of categories: the best ones by brute force, and laws that they follow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gain_oracle import exact_score_of, score_of
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rounds import KINDS, Case, facts_of

from gpustump.engines import category_search
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_search import CategorySums, Groups, SetSearch, _orders
from gpustump.engines.contract import Cut
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import by_region
from gpustump.learners.kinds import OfCategories

each_kind = pytest.mark.parametrize("kind", KINDS)

ONE_OUTPUT = [
    Objective.of("discrete"),
    Objective.of("real"),
    Objective.of("newton", l2=0.0),
    Objective.of("newton", l2=1e6),
]

RANDOM = st.integers(0, 2**32).map(np.random.default_rng)


def drawn_sums(random: np.random.Generator, objective: Objective, most: int = 8) -> CategorySums:
    """Sums of a few categories, small and full of ties, or large; some have missing values."""
    n, top = random.integers(1, most + 1), int(random.choice([3, 40, 2**50]))
    shape = (objective.n_outputs, n + 1)
    second = random.integers(1, top + 1, size=shape)
    first = random.integers(-second, second + 1)
    if objective.gain != "newton":  # sums of the same integers have the same parity
        first, second = 2 * first, 2 * second
    by_number = np.zeros((objective.n_outputs, 2, 301), dtype=np.int64)
    numbers = np.sort(random.choice(300, size=n, replace=False))
    by_number[:, 0, numbers], by_number[:, 1, numbers] = first[:, 1:], second[:, 1:]
    if random.random() < 0.5:
        by_number[:, 0, -1], by_number[:, 1, -1] = first[:, 0], second[:, 0]
    return CategorySums(3, by_number)


def best_set(sums: CategorySums, groups: Groups, objective: Objective) -> Cut | None:
    """The best cut of a single feature."""
    return SetSearch({sums.feature: groups}, objective).best(sums.by_number[np.newaxis])


def apart(sums: CategorySums) -> Groups:
    """Every category by itself."""
    present = np.flatnonzero(sums.by_number[0, 1, :-1])
    return Groups(tuple((number,) for number in present.tolist()))


def regions_of(sums: CategorySums, left: Any, right: Any) -> list[Any]:
    """For each output the sums over left, right and missing, in plain Python."""
    found = []
    for own in sums.by_number.tolist():
        parts = [[sum(row[number] for number in side) for row in own] for side in (left, right)]
        found.append((*map(tuple, parts), (own[0][-1], own[1][-1])))
    return found


def all_sides(numbers: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Every way to send categories left and right, the lowest left."""
    lowest, *others = numbers
    for size in range(len(others)):
        for chosen in itertools.combinations(others, size):
            yield [lowest, *chosen], [other for other in others if other not in chosen]


@pytest.mark.parametrize("objective", ONE_OUTPUT, ids=str)
@hypothesis_settings(max_examples=100)
@given(random=RANDOM)
def test_with_one_output_no_set_is_worth_more_than_the_best_prefix_and_a_constant(
    objective, random
):
    sums = drawn_sums(random, objective)
    groups = apart(sums)
    numbers = [number for (number,) in groups.members]
    exact = exact_score_of(objective.gain, objective.l2)
    rounded = score_of(objective.gain, objective.l2)
    all_left = regions_of(sums, numbers, [])
    both = regions_of(sums, [*numbers, -1], [])
    constant = [(left, (0, 0), (0, 0)) for left, *_ in both]
    candidates = [regions_of(sums, *sides) for sides in all_sides(numbers)]
    if rounded(all_left) > rounded(constant):  # only then it is a split
        candidates.append(all_left)
    cut = best_set(sums, groups, objective)
    assert (cut is None) == (not candidates)
    if cut is None:
        return
    assert cut.categories is not None
    left, right = cut.categories
    assert min(left) < min(right, default=1000)
    regions = regions_of(sums, left, right)
    assert cut.score == rounded(regions)
    assert objective.has_signs or (cut.polarity, cut.missing) == (0, 0)
    if objective.has_signs:
        ((one, other, missing),) = regions
        assert cut.polarity * (one[0] - other[0]) == abs(one[0] - other[0])
        assert cut.missing * missing[0] == abs(missing[0])
    own, best, level = (exact(max(one, key=exact)) for one in ([regions], candidates, [constant]))
    if objective.gain == "discrete":
        assert own == best or level >= best
    else:  # but for the rounding of the scores that are compared
        least = Fraction(best) - abs(Fraction(best)) / 2**49
        assert Fraction(own) >= least or Fraction(level) >= least


@pytest.mark.parametrize("votes", ["discrete", "real", "newton"])
@hypothesis_settings(max_examples=40)
@given(random=RANDOM)
def test_with_several_outputs_it_is_the_best_prefix_of_their_own_orders(votes, random):
    objective = Objective.of(votes, 3, l2=0.5 if votes == "newton" else 0.0)
    sums = drawn_sums(random, objective)
    sums.by_number[:, :, -1] = 0
    numbers = [number for (number,) in apart(sums).members]
    assume(len(numbers) > 1)
    candidates = []
    for first, second in sums.by_number.tolist():
        order = sorted(numbers, key=lambda c, a=first, b=second: (Fraction(a[c], b[c]), c))
        candidates += [(order[:k], order[k:]) for k in range(1, len(order))]
    score = score_of(votes, objective.l2)
    best = max(candidates, key=lambda sides: score(regions_of(sums, *sides)))  # the first of equals
    cut = best_set(sums, apart(sums), objective)
    assert cut is not None
    assert cut.score == score(regions_of(sums, *best))
    assert set(cut.categories or ()) == {tuple(sorted(side)) for side in best}


@given(random=RANDOM)
def test_ratios_that_floats_cannot_tell_apart_are_in_their_exact_order(random):
    n, top = int(random.integers(2, 20)), 2 ** int(random.integers(50, 56))
    first, second = (top + random.integers(-3, 4, size=(1, 2, n))).swapaxes(0, 1)
    (found,) = _orders(np.stack([first, second], axis=1), np.ones((1, n), dtype=np.bool_))
    ratios = [Fraction(int(a), int(b)) for a, b in zip(first[0], second[0], strict=True)]
    assert found.tolist() == sorted(range(n), key=ratios.__getitem__)


@pytest.fixture(scope="module")
def compared():
    """What a kernel that searches for sets compares ratios by."""
    numba = pytest.importorskip("numba")
    from gpustump.engines.cpu.split.category_sets import _compared

    return numba.njit(lambda a, b, c, d: _compared(a, b, c, d))


LARGE, ABOVE_0 = st.integers(-(2**62), 2**62), st.integers(1, 2**62)


@given(a=LARGE, b=ABOVE_0, c=LARGE, d=ABOVE_0, k=st.integers(1, 5), more=st.integers(-1, 1))
def test_kernels_compare_ratios_of_large_sums_exactly(compared, a, b, c, d, k, more):
    small, below = a // 5, b // 5 + 1
    near = (k * small, k * below, small + more, below)
    for one, of_one, other, of_other in [(a, b, c, d), near]:
        x, y = Fraction(one, of_one), Fraction(other, of_other)
        assert compared(one, of_one, other, of_other) == (x > y) - (x < y)


@pytest.mark.parametrize("objective", [*ONE_OUTPUT, Objective.of("real", 3)], ids=str)
@pytest.mark.parametrize("at_once", [300, 2**18])
@given(random=RANDOM)
@hypothesis_settings(max_examples=20)
def test_features_are_searched_together_as_each_by_itself(objective, at_once, random):
    sums = [drawn_sums(random, objective) for _ in range(int(random.integers(1, 5)))]
    sums = [*sums, sums[0]]  # equal scores
    groups = {3 + place: apart(own) for place, own in enumerate(sums)}
    alone = [
        SetSearch({feature: own}, objective).best(of_feature.by_number[np.newaxis])
        for (feature, own), of_feature in zip(groups.items(), sums, strict=True)
    ]
    best = max([cut for cut in alone if cut is not None], default=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(category_search, "_MOST_AT_ONCE", at_once)
        together = SetSearch(groups, objective)
        found = together.best(np.stack([own.by_number for own in sums]))
    assert found == best


@given(counts=st.lists(st.integers(0, 3000), min_size=1, max_size=400))
def test_rare_categories_are_together_and_all_others_alone(counts):
    found = Groups.of(np.asarray([*counts, *[0] * (401 - len(counts))])).members
    together = [own for own in found if len(own) > 1]
    total, present = sum(counts), {number for number, count in enumerate(counts) if count}
    assert {number for own in found for number in own} == present
    assert sum(map(len, found)) == len(present)
    assert [own[0] for own in found] == sorted(own[0] for own in found)
    rare = tuple(c for c in sorted(present) if counts[c] < 10 and counts[c] / total < 0.01)
    assert together == ([rare] if len(rare) > 1 else [])
    if len(present) == 2:
        assert not together


@each_kind
def test_a_feature_of_two_categories_is_split_as_the_numbers_0_and_1(kind):
    random = np.random.default_rng(5)
    X = (random.random((300, 3)) < [0.5, 0.03, 0.2]).astype(np.float64)
    X[random.random(X.shape) < 0.1] = np.nan
    y = np.where(np.nan_to_num(X) @ [1, 2, -1] + random.normal(size=300) > 0.5, 1.0, -1.0)
    case = Case(X, y, np.ones(300), n_rounds=8).voting(kind, 0.5)
    as_numbers, as_sets = (
        facts_of(replace(case, categorical=own), "stump") for own in ((), (0, 1, 2))
    )
    assert len(as_numbers) == len(as_sets)
    for number, own in zip(as_numbers, as_sets, strict=True):
        assert isinstance(own.hypothesis, OfCategories) == (own.cut.position is not None)
        assert own.cut.score == number.cut.score
        assert list(own.region_sums) == list(number.region_sums)
        for value in (0.0, 1.0, np.nan):
            column = np.asarray([value])
            regions = [by_region(fact.hypothesis, column, range(3)) for fact in (own, number)]
            assert regions[0] == regions[1]


@pytest.mark.parametrize("kind", ["discrete", "shared newton"])
@hypothesis_settings(max_examples=15)
@given(random=RANDOM)
def test_other_numbers_for_the_same_categories_part_the_samples_in_the_same_way(kind, random):
    n = 120
    X = np.stack([random.integers(0, 6, n), random.normal(size=n)], axis=1)
    y = np.where(random.normal(size=6)[X[:, 0].astype(int)] + X[:, 1] > 0, 1.0, -1.0)
    y[:2] = [1, -1]
    weights = random.random(n) + 0.1  # sums never tie
    case = Case(X, y, weights, n_rounds=5, categorical=(0,)).voting(kind, 0.5)
    other = np.array(X)
    other[:, 0] = random.permutation(254)[:6][X[:, 0].astype(int)]
    one, same = facts_of(case, "stump"), facts_of(replace(case, X=other), "stump")
    for own, also in zip(one, same, strict=True):
        assert own.cut.score == also.cut.score
        assert own.totals == also.totals
        assert np.array_equal(own.weights, also.weights)


@pytest.mark.parametrize("value", [1000.0, 0.5, np.inf, 1e30, -0.3])
def test_other_values_than_numbers_of_categories_are_refused(value):
    X = np.asarray([[0.0, 0.0], [0.0, value], [0.0, np.nan], [0.0, -3.0]])
    with pytest.raises(
        ValueError, match=r"categorical feature 1 must hold .* got " + re.escape(repr(value))
    ):
        CategoryColumns.of(X, None, (0, 1))
    assert CategoryColumns.of(X, np.asarray([0, 2, 3]), (1,)).numbers.tolist() == [[0, 1, 1]]
