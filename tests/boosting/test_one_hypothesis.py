"""The one best split for real and for Newton votes, against every split there is.

The scores and the votes are computed again from their definitions, in fractions and decimals, for
every feature and every threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from gpustump import Boosting, VotedSplit, boost, fit_stump
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.engines.contract import Resources, Task
from gpustump.engines.route import prepared
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT

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


def regions(column: np.ndarray, threshold: float | None) -> list[np.ndarray]:
    """Which samples are left, right and missing; all of them are left of None."""
    if threshold is None:
        return [
            np.full(len(column), True),
            np.full(len(column), False),
            np.full(len(column), False),
        ]
    missing = np.isnan(column)
    return [~missing & (column <= threshold), ~missing & (column > threshold), missing]


def every_split(X: np.ndarray) -> Iterator[tuple[int, float | None]]:
    """Features with thresholds: values, which stand for all thresholds up to the next one."""
    yield 0, None
    for feature, column in enumerate(X.T):
        present = np.unique(column[~np.isnan(column)])
        last = len(present) if np.isnan(column).any() else len(present) - 1
        for value in present[:last]:
            yield feature, float(value)


def weights_of(problem: Problem, chosen: np.ndarray) -> tuple[int, int]:
    """The weight of the labels +1 and -1 in a region."""
    return tuple(int(problem.weights[chosen & (problem.y == label)].sum()) for label in (1, -1))


def score_of(problem: Problem, split: tuple[int, float | None], votes: str, l2: float) -> float:
    """What a split is worth, by the definition in `RegionRound`."""
    feature, threshold = split
    total = 0.0
    for chosen in regions(problem.X[:, feature], threshold):
        positive, negative = weights_of(problem, chosen)
        if votes == "real":
            total -= math.sqrt(positive * negative) / int(problem.weights.sum())
        elif positive + negative:
            first = Fraction(positive - negative, 2)  # every probability is one half
            second = Fraction(positive + negative, 4)
            total += float(first * first / (second + Fraction(l2)))
    return total


def votes_of(problem: Problem, split: tuple[int, float | None], votes: str, l2: float):
    """What the regions vote, by definition."""
    feature, threshold = split
    found = []
    for chosen in regions(problem.X[:, feature], threshold):
        positive, negative = weights_of(problem, chosen)
        if votes == "real":
            smoothing = Fraction(int(problem.weights.sum()), 2 * len(problem.y))
            with localcontext() as context:
                context.prec = 40
                odds = (positive + smoothing) / (negative + smoothing)
                found.append(float((Decimal(odds.numerator) / Decimal(odds.denominator)).ln() / 2))
        elif positive + negative == 0:
            found.append(0.0)
        else:
            first, second = Fraction(positive - negative, 2), Fraction(positive + negative, 4)
            found.append(float(first / (second + Fraction(l2)) / 2))
    return [found[0]] * 3 if threshold is None else found


@EVERY
@pytest.mark.parametrize("seed", range(8))
def test_no_split_is_better_and_its_votes_are_those_of_the_definition(votes, l2, seed):
    problem = drawn(seed)
    found = fit_stump(*problem, votes=votes, l2_regularization=l2)
    assert isinstance(found, VotedSplit)
    best = max(score_of(problem, split, votes, l2) for split in every_split(problem.X))
    is_constant = math.isinf(found.split.threshold) and len(set(found.votes)) == 1
    own = (found.split.feature, None if is_constant else found.split.threshold)
    assert score_of(problem, own, votes, l2) == pytest.approx(best, rel=1e-12)
    assert found.score == pytest.approx(best, rel=1e-12)
    expected = votes_of(problem, own, votes, l2)
    assert found.votes == pytest.approx(expected, abs=0.51 * VOTE_UNIT, rel=1e-14)


@EVERY
def test_of_equal_splits_it_is_that_of_the_lowest_feature_and_threshold(votes, l2):
    x = np.asarray([0.0, 1.0, 2.0, 3.0])
    y = np.asarray([1, -1, -1, 1])  # the cuts after 0 and after 2 are worth the same
    found = fit_stump(np.stack([x, x], axis=1), y, votes=votes, l2_regularization=l2)
    assert found.split == Split(0, 0.5)


@EVERY
def test_it_is_the_first_round_of_boosting_from_scores_of_0(votes, l2):
    for seed in range(4):
        problem = drawn(seed)
        found = fit_stump(*problem, votes=votes, l2_regularization=l2)
        weights = problem.weights.astype(np.float64)
        settings = VoteSettings(votes, l2_regularization=l2).votes(weights)
        assert isinstance(settings, SplitVotes)
        task = Task(problem.X, len(weights), settings.search(), 1)
        table = prepared(task, None, Resources())[1]
        run = Boosting(
            table, problem.y.astype(np.float64), weights, votes=settings, constant=(0.0,)
        )
        record = next(run)
        assert record.stump == found.split
        assert record.votes == tuple((vote,) for vote in found.votes)
        assert record.score == found.score
        assert run.model.members[0].constant.tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"votes": "gentle"}, ValueError, "votes must be 'discrete', 'real' or 'newton'"),
        ({"votes": None}, ValueError, "votes must be 'discrete'"),
        (
            {"votes": "newton", "l2_regularization": -1},
            ValueError,
            "l2_regularization must be a finite number of at least 0; got -1",
        ),
        ({"votes": "newton", "l2_regularization": math.nan}, ValueError, "got nan"),
        ({"votes": "newton", "l2_regularization": "1"}, TypeError, "got '1'"),
        ({"votes": "newton", "l2_regularization": True}, TypeError, "got True"),
        (
            {"votes": "real", "l2_regularization": 2},
            ValueError,
            "l2_regularization is for votes='newton'; got l2_regularization=2.0 and votes='real'",
        ),
        ({"l2_regularization": 0.5}, ValueError, "votes='discrete'. Leave it out"),
    ],
)
def test_bad_votes_are_named_by_every_function_that_takes_them(arguments, error, message):
    problem = drawn(0)
    for function in (fit_stump, boost):
        with pytest.raises(error, match=message):
            function(*problem, **arguments)


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_intervals_are_refused_with_other_votes_than_discrete_ones(votes):
    with pytest.raises(ValueError, match=f"votes='{votes}', weak_learner must be 'stump'"):
        boost(*drawn(0), votes=votes, weak_learner="interval")
