"""The one best split for real and for Newton votes: ties, the first round of boosting, bad votes.

That no split is better, and what its regions vote, is proved in tests/theory/test_split_scores.py
and in test_votes_from_the_papers.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from gpustump import Boosting, boost, fit_stump
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.engines.contract import Resources, Task
from gpustump.engines.route import prepared

SETTINGS = [("real", 0.0), ("newton", 0.0), ("newton", 1.0), ("newton", 7.5)]
EVERY = pytest.mark.parametrize(("votes", "l2"), SETTINGS)


class Problem(NamedTuple):
    """A table, labels and whole weights."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray


def drawn(seed: int, n_samples: int = 30) -> Problem:
    """Few values, so that there are ties, and missing ones."""
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(n_samples, 3)) * 2) / 2
    X[:, 1] = random.normal(size=n_samples)
    y = np.where(X[:, 0] - X[:, 1] + random.normal(size=n_samples) > 0.5, 1, -1)
    y[:2] = [1, -1]
    X[random.random(X.shape) < random.choice([0.0, 0.3])] = np.nan
    return Problem(X, y, random.integers(1, 6, size=n_samples))


@EVERY
def test_it_is_the_first_round_of_boosting_from_scores_of_0(votes, l2):
    for seed in range(4):
        problem = drawn(seed)
        found = fit_stump(*problem, votes=votes, l2_regularization=l2)
        weights = problem.weights.astype(np.float64)
        settings = VoteSettings(votes, l2_regularization=l2).votes(weights)
        assert isinstance(settings, SplitVotes)
        task = Task(problem.X, len(weights), settings.objective(), 1)
        table = prepared(task, None, Resources())[1]
        run = Boosting(
            table, problem.y.astype(np.float64), weights, votes=settings, constant=(0.0,)
        )
        record = next(run)
        assert record.stump == found.split
        assert record.votes == tuple((vote,) for vote in found.votes)
        assert record.score == found.score
        assert run.model.members[0].constant.tolist() == [0.0]


NEWTON = {"votes": "newton"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"votes": "gentle"}, ValueError, "votes must be 'discrete', 'real' or 'newton'"),
        ({"votes": None}, ValueError, "votes must be 'discrete'"),
        (NEWTON | {"l2_regularization": -1}, ValueError, "l2_reg.* must be a finite .*; got -1"),
        (NEWTON | {"l2_regularization": math.nan}, ValueError, "got nan"),
        (NEWTON | {"l2_regularization": True}, TypeError, "got True"),
        ({"votes": "real", "l2_regularization": 2}, ValueError,
         "l2_regularization is for votes='newton'; got l2_regularization=2.0 and votes='real'"),
        ({"l2_regularization": 0.5}, ValueError, "votes='discrete'. Leave it out"),
    ],
)  # fmt: skip
def test_bad_votes_are_named_by_every_function_that_takes_them(arguments, error, message):
    for function in (fit_stump, boost):
        with pytest.raises(error, match=message):
            function(*drawn(0), **arguments)


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_intervals_are_refused_with_other_votes_than_discrete_ones(votes):
    with pytest.raises(ValueError, match=f"votes='{votes}', weak_learner must be 'stump'"):
        boost(*drawn(0), votes=votes, weak_learner="interval")
