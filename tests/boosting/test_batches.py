"""The rounds of a run are a collection of their records, however they were made."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from gpustump.boosting.rounds.batches import Batch, Columns, Rounds, joined, terms_of
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.boosting.votes.votes import RegionRound
from gpustump.engines.batched_rounds import MadeRounds
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.split import Split


class Halves(SplitVotes):
    """The scores of records are half of the engine's; rounds have no bound."""

    def recorded(self, score: float, weight: int) -> float:
        return score / 2


def columns(n_rounds: int, n_before: int, *, is_watched: bool = True) -> Columns:
    """Some rounds cut sets of categories: 1 on the left, and 3, or 3 and 4, on the right."""
    random = np.random.default_rng(n_before)
    thresholds = random.choice([0.0, 1.0, np.nan], size=n_rounds)
    sides = np.full((n_rounds, 256), MISSING, dtype=np.uint8)
    sides[:, 1], sides[:, 3] = FIRST, SECOND
    sides[:, 4] = random.choice([SECOND, MISSING], size=n_rounds)
    made = MadeRounds(
        random.integers(3, size=n_rounds),
        thresholds,
        random.normal(size=(n_rounds, 3, 2)),
        random.normal(size=n_rounds),
        random.integers(9, size=n_rounds),
        random.integers(9, size=(n_rounds, 2 if is_watched else 0)),
        random.integers(9, size=(n_rounds, 1 if is_watched else 0)),
        sides,
        random.integers(1, 9, size=n_rounds),
        np.ones(n_rounds),
    )
    return Columns(made, Halves(), first_weight=2, n_before=n_before)


def expected(source: Columns) -> list[RegionRound]:
    """The records, one by one."""
    made, found = source.made, []
    for k in range(len(made.features)):
        feature, threshold = int(made.features[k]), float(made.thresholds[k])
        right = (3, 4) if made.sides[k, 4] == SECOND else (3,)
        is_set = np.isnan(threshold)
        split = CategorySplit(feature, (1,), right) if is_set else Split(feature, threshold)
        votes: Any = tuple(tuple(own) for own in made.votes[k].tolist())
        score, error = float(made.scores[k]) / 2, int(made.error[k]) / 2
        number = source.n_before + k + 1
        found.append(RegionRound(number, split, votes, score, None, error, None))
    return found


@pytest.fixture
def sources() -> list[Columns]:
    return [columns(4, 0), columns(3, 5)]


@pytest.fixture
def rounds(sources: list[Columns]) -> Rounds:
    """Four rounds that were made in batches, an ordinary one, and two of three."""
    one = Batch.of([columns(1, 4).records[0]])
    return Rounds([Batch(sources[0], 0, 4), Batch.of(()), one, Batch(sources[1], 0, 2)])


def test_the_rounds_of_a_run_hold_their_records_in_order(rounds, sources):
    records = (*expected(sources[0]), columns(1, 4).records[0], *expected(sources[1])[:2])
    assert tuple(rounds) == records
    assert [record.number for record in rounds] == [1, 2, 3, 4, 5, 6, 7]
    for kept in (pickle.loads(pickle.dumps(rounds)), copy.deepcopy(rounds)):
        assert type(kept) is tuple
        assert kept == records


@pytest.mark.parametrize("n_rounds", range(9))
def test_the_first_rounds_are_those_of_the_tuple(rounds, n_rounds):
    assert tuple(rounds.first(n_rounds)) == tuple(rounds)[:n_rounds]
    assert len(rounds.first(n_rounds)) == min(n_rounds, 7)


def test_terms_are_those_of_the_records(rounds):
    for known in (rounds, Rounds([Batch.of(tuple(rounds))])):
        hypotheses, votes = terms_of(known)
        assert hypotheses == tuple(record.stump for record in rounds)
        np.testing.assert_array_equal(np.asarray(votes), [record.vote for record in rounds])
    assert joined([]) == ((), ())
    assert terms_of(()) == ((), ())
