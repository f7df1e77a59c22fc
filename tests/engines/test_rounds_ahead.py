"""What a kernel makes ahead: thresholds, and the best of the cuts that a round is offered.

The reference's state makes the same steps, and tells the sums over the regions of every cut; what a
cut is worth, and its votes, follow from these on the host. The best set of categories is that of
the host's search. Whole fits are in tests/boosting.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from awkward_tables import DATA, made
from hypothesis import given, settings
from hypothesis import strategies as st
from trainers import start

pytest.importorskip("numba")

from inner_functions import callable_from_python

from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.ahead import OfferedCuts
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_search import Categories, Groups, SetSearch
from gpustump.engines.contract import Search, split_at
from gpustump.engines.cpu.split import category_sets
from gpustump.engines.cpu.table import sorted_table
from gpustump.engines.reference import table as reference
from gpustump.engines.threads import Team
from gpustump.engines.worth_of_split import exact_score_of
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.split import Split

compared = callable_from_python(category_sets._compared)
sort = callable_from_python(category_sets._sort)
best_set = callable_from_python(category_sets.best_set)


class Pair(NamedTuple):
    """A run on a sorted table, which makes rounds ahead, and the same run of the reference."""

    ahead: Any
    own: Any
    other: Any
    table: Any
    votes: SplitVotes

    @classmethod
    def of(cls, random: np.random.Generator, n_outputs: int, monotone: Any = None) -> Pair:
        X = np.round(random.normal(size=(60, 4)), 1)  # with ties
        X[:, 3] = 1.0
        X[random.random(X.shape) < 0.15] = np.nan
        y = random.integers(0, n_outputs, 60) if n_outputs > 1 else random.choice([-1.0, 1.0], 60)
        votes = SplitVotes(NewtonVotes(0.3, n_outputs, 0.5, 0), monotone)
        run = y, random.random(60) + 0.1, votes.search("stump")
        table = sorted_table.prepare(X, None, Team(1))
        own, other = start(table, *run), start(reference.prepare(X), *run)
        return cls(own.looking_ahead(votes.rule.plain, None), own, other, table, votes)

    def best_of(self, offer: list[Split]) -> tuple[float, Split] | None:
        """The best of some splits, the first of equal ones, by the reference's sums."""
        found = []
        for split in offer:
            sums = self.other.region_sums(split).tolist()
            if self._is_allowed(split, sums):
                found.append((exact_score_of(sums, self.own.search), split))
        return max(found, key=lambda one: one[0], default=None)

    def _is_allowed(self, split: Split, sums: Any) -> bool:
        if self.votes.monotone is None or split.threshold == math.inf:
            return True
        left, right = (
            float(first) / max(float(second) + self.votes.rule.l2, 1.0)
            for ((first, second),) in (sums[FIRST], sums[SECOND])
        )
        return self.votes.monotone[split.feature] * (right - left) >= 0.0

    def step(self, split: Split) -> Taken:
        """Let the reference take a split, with the votes that follow from its sums."""
        sums = self.other.region_sums(split).tolist()
        votes = self.votes._of_split(split.feature, sums, self.other.totals)
        taken = Taken(split, votes, self.other.totals, sums=sums)
        if any(vote for own in votes for vote in own):
            self.other.advance(self.votes.change(taken).step)
        return taken


def drawn_offer(pair: Pair, random: np.random.Generator) -> list[Split]:
    """Splits of two of the four features, at values, between them, and above all of them."""
    offer = []
    for feature in sorted(random.choice(4, 2, replace=False).tolist()):
        values = np.unique(pair.table.values(feature))
        values = values[~np.isnan(values)]
        at = random.choice(values) + random.choice([0.0, 0.01, 0.05])
        is_last = at >= values[-1] or random.random() < 0.1
        offer.append(Split(feature, math.inf if is_last else float(at)))
    return offer


def as_arrays(offers: list[list[Split]]) -> OfferedCuts:
    """Offers of some rounds as engines take them."""
    features = [[split.feature for split in own] for own in offers]
    thresholds = [[split.threshold for split in own] for own in offers]
    return OfferedCuts(np.asarray(features), np.asarray(thresholds))


@pytest.mark.parametrize(("n_outputs", "monotone"), [(1, None), (1, (1, -1, 1, 0)), (3, None)])
def test_the_best_of_the_offered_cuts_is_taken_with_its_votes(n_outputs, monotone):
    random = np.random.default_rng(n_outputs)
    n_rounds = n_refused = 0
    for _ in range(25):
        pair = Pair.of(random, n_outputs, monotone)
        offers = [drawn_offer(pair, random) for _ in range(6)]
        done = pair.ahead.make(6, as_arrays(offers))
        for number, offer in enumerate(offers):
            best = pair.best_of(offer)
            if number == len(done.features):
                assert best is None or is_left_alone(pair.step(best[1]))
                n_refused += 1
                break
            assert best is not None
            score, split = best
            taken = pair.step(split)
            assert Split(done.features[number], done.thresholds[number]) == split
            assert done.scores[number] == score
            assert done.votes[number].tolist() == [list(own) for own in taken.region_votes]
            assert done.error[number] == pair.other.totals.error
            n_rounds += 1
        if len(done.features) == 6:
            assert pair.own.totals == pair.other.totals
            assert pair.own.weights.tolist() == pair.other.weights.tolist()
    assert n_rounds > 50
    assert n_refused > 0 or monotone is None


def is_left_alone(taken: Taken) -> bool:
    """Whether the host has to look at a round: no votes, or those of a constant."""
    votes = taken.region_votes
    is_constant = taken.hypothesis.threshold == math.inf and votes[FIRST] == votes[MISSING]
    return is_constant or not any(vote for own in votes for vote in own)


def test_of_equal_cuts_the_one_of_the_lower_feature_is_taken():
    X = np.asarray([[3.0, 3.0], [2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    y = np.asarray([1.0, -1.0, -1.0, 1.0])  # the cuts behind 0 and 2 are worth the same
    votes = NewtonVotes(0.3, 1, 0.5, 0)
    for thresholds in ([0.5, 2.5], [2.5, 0.5], [0.5, 0.5]):
        state = start(sorted_table.prepare(X, None, Team(1)), y, np.ones(4), votes.search)
        offer = [Split(feature, own) for feature, own in enumerate(thresholds)]
        done = state.looking_ahead(votes.plain, None).make(1, as_arrays([offer]))
        assert (done.features.tolist(), done.thresholds.tolist()) == ([0], thresholds[:1])


def test_rounds_beyond_the_offers_are_free_and_the_sums_go_on():
    pair = Pair.of(np.random.default_rng(0), 1)
    done = pair.ahead.make(5, as_arrays([[Split(0, math.inf)]]))
    assert (done.features[0], done.thresholds[0]) == (0, math.inf)
    pair.step(Split(0, math.inf))
    for number in range(1, 5):
        cut = pair.other.best_cut()
        assert (done.features[number], done.scores[number]) == (cut.feature, cut.score)
        pair.step(split_at(pair.table, cut))


@pytest.mark.parametrize("name", sorted(DATA))
def test_the_thresholds_of_a_whole_table_are_those_of_its_positions(name):
    X = made(name).X
    table = sorted_table.prepare(X, None, Team(1))
    if table.source.is_half:
        state = start(table, made(name).y * 1.0, np.ones(len(X)), Search("stump", "newton"))
        assert state.looking_ahead(NewtonVotes(0.3, 1, 0.5, 0).plain, None) is None
        return
    for feature, own in enumerate(table.thresholds):
        for position in np.flatnonzero(table.order[feature] >= 0):
            assert repr(float(own[position])) == repr(table.threshold(feature, int(position)))


LARGE, ABOVE_0 = st.integers(-(2**62), 2**62), st.integers(1, 2**62)


@given(a=LARGE, b=ABOVE_0, c=LARGE, d=ABOVE_0, k=st.integers(1, 5), more=st.integers(-1, 1))
def test_ratios_of_large_sums_are_compared_exactly(a, b, c, d, k, more):
    small, below = a // 5, b // 5 + 1
    near = (k * small, k * below, small + more, below)
    for one, of_one, other, of_other in [(a, b, c, d), near]:
        x, y = Fraction(one, of_one), Fraction(other, of_other)
        assert compared(one, of_one, other, of_other) == (x > y) - (x < y)


@given(seed=st.integers(0, 2**32))
def test_groups_are_in_the_exact_order_of_their_ratios_then_of_their_numbers(seed):
    random = np.random.default_rng(seed)
    n, top = int(random.integers(1, 20)), int(random.choice([1, 2**30, 2**58]))
    first, second = top + random.integers(0, random.choice([4, 200]), size=(2, n))
    order = random.permutation(n)
    sort(order, first, second, np.empty(n))
    ratios = [Fraction(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    assert order.tolist() == sorted(range(n), key=ratios.__getitem__)


class Columns(NamedTuple):
    """The categories of samples, of the features 1, 3, ..., and their integers for each output."""

    numbers: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def drawn(cls, random: np.random.Generator, n_outputs: int) -> Columns:
        """A few samples of a few categories; integers that tie, or nearly, or are large."""
        n_columns, n_samples = random.integers(1, 4), int(random.integers(1, 60))
        numbers = random.integers(0, random.choice([1, 3, 12]), size=(n_columns, n_samples)) * 20
        numbers[random.random(numbers.shape) < random.choice([0.0, 0.3, 1.0])] = 255
        low, top = [(1, 3), (1, 40), (2**50, 2**50 + 4)][random.integers(3)]
        second = random.integers(low, top, size=(n_outputs, n_samples))
        first = second * random.choice([-1, 1], second.shape) + random.integers(-1, 1, second.shape)
        return cls(numbers.astype(np.uint8), first, second)

    @property
    def counts(self) -> np.ndarray:
        return np.stack([np.bincount(own, minlength=256) for own in self.numbers])

    @property
    def categories(self) -> Categories:
        features = tuple(range(1, 2 * len(self.numbers), 2))
        columns = CategoryColumns(features, self.numbers, self.counts)
        groups = [Groups.of(own) for own in self.counts]
        return Categories(columns, dict(zip(features, groups, strict=True)))

    @property
    def sums(self) -> np.ndarray:
        """By number, (n_columns, n_outputs, 2, 256)."""
        found = np.zeros((len(self.numbers), len(self.first), 2, 256), dtype=np.int64)
        for column, own in enumerate(self.numbers):
            for which, terms in enumerate((self.first, self.second)):
                for output, values in enumerate(terms):
                    np.add.at(found[column, output, which], own, values)
        return found


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("l2", [0.0, 0.5])
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_best_set_is_that_of_the_hosts_search_whatever_was_sorted_before(n_outputs, l2, seed):
    random = np.random.default_rng(seed)
    samples = Columns.drawn(random, n_outputs)
    search = Search("stump", "newton", n_outputs, l2)
    categories = samples.categories
    sets = category_sets.sets_of(categories, 8, n_outputs, None)
    for column, n_groups in enumerate(sets.n_groups):
        for order in sets.orders[column]:
            order[:n_groups] = random.permutation(n_groups)
    sides = np.zeros(256, dtype=np.uint8)
    totals = np.stack([samples.first.sum(axis=1), samples.second.sum(axis=1)], axis=1).tolist()
    constant = exact_score_of([totals, [(0, 0)] * n_outputs, [(0, 0)] * n_outputs], search)
    own = best_set(sets, samples.first, samples.second, l2, constant, sides)
    cut = SetSearch(categories.groups, search).best(samples.sums)
    if cut is None:
        assert own == (-math.inf, -1)
        return
    assert own == (cut.score, cut.feature)
    assert cut.categories is not None
    found = [tuple(np.flatnonzero(sides == side).tolist()) for side in (FIRST, SECOND)]
    assert found == list(cut.categories)
    assert (sides == MISSING).sum() == 256 - sum(map(len, found))
