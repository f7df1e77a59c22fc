"""What a batch of rounds holds: thresholds, and the best of the cuts that a round is offered.

The reference's state makes the same steps, and tells the sums over the regions of every cut; what a
cut is worth, and its votes, follow from these on the host. Whole fits, with sets of categories too,
are in tests/boosting.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from awkward_tables import DATA, made
from hypothesis import given
from hypothesis import strategies as st
from rounds import start

pytest.importorskip("numba")

from inner_functions import callable_from_python

from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.batched_rounds import CandidateSplits
from gpustump.engines.cpu.split import category_sets
from gpustump.engines.cpu.table import sorted_table
from gpustump.engines.gain import exact_score_of
from gpustump.engines.objective import Objective
from gpustump.engines.reference import table as reference
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.split import Split

compared = callable_from_python(category_sets._compared)


class Pair(NamedTuple):
    """A run on a sorted table, which makes rounds in batches, and the same run of the reference."""

    maker: Any
    own: Any
    other: Any
    table: Any
    votes: NewtonVotes

    @classmethod
    def of(cls, random: np.random.Generator, n_outputs: int, monotone: Any = None) -> Pair:
        X = np.round(random.normal(size=(60, 4)), 1)  # with ties
        X[:, 3] = 1.0
        X[random.random(X.shape) < 0.15] = np.nan
        y = random.integers(0, n_outputs, 60) if n_outputs > 1 else random.choice([-1.0, 1.0], 60)
        votes = NewtonVotes(0.3, n_outputs, 0.5, 0, monotone=monotone)
        run = y, random.random(60) + 0.1, votes.objective("stump")
        table = sorted_table.prepare(X, None, Team(1))
        own, other = start(table, *run), start(reference.prepare(X), *run)
        return cls(own.batch_maker(votes.plain, None), own, other, table, votes)

    def best_of(self, offer: list[Split]) -> tuple[float, Split] | None:
        """The best of some splits, the first of equal ones, by the reference's sums."""
        found = []
        for split in offer:
            sums = self.other.region_sums(split).tolist()
            if self._is_allowed(split, sums):
                found.append((exact_score_of(sums, self.own.objective), split))
        return max(found, key=lambda one: one[0], default=None)

    def _is_allowed(self, split: Split, sums: Any) -> bool:
        if self.votes.monotone is None or split.threshold == math.inf:
            return True
        left, right = (
            float(first) / max(float(second) + self.votes.l2, 1.0)
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


def as_arrays(candidates: list[list[Split]]) -> CandidateSplits:
    """Candidates of some rounds as engines take them."""
    features = [[split.feature for split in own] for own in candidates]
    thresholds = [[split.threshold for split in own] for own in candidates]
    return CandidateSplits(np.asarray(features), np.asarray(thresholds))


@pytest.mark.parametrize(("n_outputs", "monotone"), [(1, None), (1, (1, -1, 1, 0)), (3, None)])
def test_the_best_of_the_candidates_is_taken_with_its_votes(n_outputs, monotone):
    random = np.random.default_rng(n_outputs)
    n_rounds = n_refused = 0
    for _ in range(25):
        pair = Pair.of(random, n_outputs, monotone)
        candidates = [drawn_offer(pair, random) for _ in range(6)]
        done = pair.maker.make(6, as_arrays(candidates))
        for number, offer in enumerate(candidates):
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


@pytest.mark.parametrize("name", sorted(DATA))
def test_the_thresholds_of_a_whole_table_are_those_of_its_positions(name):
    X = made(name).X
    table = sorted_table.prepare(X, None, Team(1))
    if table.source.is_half:
        state = start(table, made(name).y * 1.0, np.ones(len(X)), Objective.of("newton"))
        assert state.batch_maker(NewtonVotes(0.3, 1, 0.5, 0).plain, None) is None
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
