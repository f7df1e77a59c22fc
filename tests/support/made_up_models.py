"""Models and rows made up for tests of predicting: not learnt, so as odd as can be."""

from __future__ import annotations

import numpy as np

from gpustump import Member
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.learners.stump import Stump


def member(
    random: np.random.Generator, n_stumps: int, n_features: int, *, exact: float | bool
) -> Member:
    """Any stumps: some at infinity, some at values that the rows have, some constant.

    `exact` is the share of votes that are multiples of the unit.
    """
    stumps, votes = [], []
    for _ in range(n_stumps):
        threshold = random.choice([random.normal(), np.round(random.normal()), np.inf])
        polarity, missing = random.choice([-1, 1], size=2)
        stumps.append(Stump(random.integers(n_features), threshold, polarity, missing, 0.25))
        vote = random.exponential()
        whole = random.random() < exact
        votes.append(round(vote / VOTE_UNIT) * VOTE_UNIT if whole else vote)
    return Member(tuple(stumps), tuple(votes))


def rows(random: np.random.Generator, n_samples: int, n_features: int, dtype: str) -> np.ndarray:
    X = random.normal(size=(n_samples, n_features)) * random.choice([0.1, 1.0, 30.0])
    X = np.where(random.random(X.shape) < 0.3, np.round(X), X)
    if dtype.startswith("float"):
        X[random.random(X.shape) < 0.1] = np.nan
        X[random.random(X.shape) < 0.05] = -np.inf
        X[random.random(X.shape) < 0.05] = np.inf
        return X.astype(dtype)
    return np.abs(X).clip(0, 100).astype(dtype)


def reference_scores(one: Member, X: np.ndarray) -> np.ndarray:
    """F(x) as the reference adds it up."""
    constant, tables = one.tables
    scores = np.full(len(X), constant)
    for table in tables:
        scores = scores + table.look_up(X[:, table.feature])
    return scores
