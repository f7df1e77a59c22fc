"""The one best split for real and for Newton votes: ties, the first round of boosting, bad votes.

That no split is better, and what its regions vote, is proved in tests/theory/test_split_scores.py
and in test_votes_from_the_papers.py.
"""

from __future__ import annotations

import math

import pytest
from rounds import trainer
from vote_runs import drawn_case

from gpustump import Boosting, boost, fit_stump
from gpustump.engines.reference import table as reference_table

SETTINGS = [("real", 0.0), ("newton", 0.0), ("newton", 1.0), ("newton", 7.5)]
EVERY = pytest.mark.parametrize(("votes", "l2"), SETTINGS)


@EVERY
def test_it_is_the_first_round_of_boosting_from_scores_of_0(votes, l2):
    for seed in range(4):
        case = drawn_case(votes, seed, l2)
        X, y, weights = case.X, case.y, case.weights
        found = fit_stump(X, y, weights, votes=votes, l2_regularization=l2)
        table = trainer(reference_table.prepare(X))
        run = Boosting(table, y, weights, votes=case.votes_of_run(), constant=(0.0,))
        record = next(run)
        assert record.stump == found.split
        assert record.votes == tuple((vote,) for vote in found.votes)
        assert record.score == found.score
        assert run.model.members[0].constant.tolist() == [0.0]


SAMPLES = [[0.0], [1.0], [2.0]], [-1, 1, 1]
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
            function(*SAMPLES, **arguments)


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_intervals_are_refused_with_other_votes_than_discrete_ones(votes):
    with pytest.raises(ValueError, match=f"votes='{votes}', weak_learner must be 'stump'"):
        boost(*SAMPLES, votes=votes, weak_learner="interval")
