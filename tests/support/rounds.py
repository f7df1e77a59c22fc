"""Compiled kernels against the reference, integer by integer, round by round.

Whatever decides how they go about it (threads, bins, how much is kept, how samples are cut into
pieces) must not show in what they return.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from gpustump.boosting.discrete_votes import DiscreteVotes
from gpustump.boosting.votes import Taken
from gpustump.data.parameters import Learner
from gpustump.engines.contract import PreparedTable, agreement, hypothesis_at
from gpustump.engines.reference import table as reference_table
from gpustump.learners.hypothesis import signs as signs_of

Way = tuple[str, PreparedTable]
"""A name, and a table prepared in some way."""


def check_level(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    ways: Iterable[Way],
    *,
    n_rounds: int = 8,
    learning_rate: float = 1.0,
    learner: Learner = "stump",
) -> None:
    """Boost by the reference; every way must be level with it after every step."""
    y = np.asarray(y, dtype=np.float64)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    table, votes = reference_table.prepare(X), DiscreteVotes(learning_rate)
    reference = table.start(y, weights, learner)
    others = [(name, made, made.start(y, weights, learner)) for name, made in ways]
    for number in range(n_rounds):
        cut, totals = reference.best_cut(), reference.totals
        stump = hypothesis_at(table, cut, totals)
        in_regions = list(reference.region_weights(stump))
        assert agreement(in_regions, signs_of(stump)) == cut.agreement
        assert sum(map(sum, in_regions)) == totals.weight
        for name, made, other in others:
            assert other.best_cut() == cut, (name, number)
            assert other.totals == totals, (name, number)
            assert other.smallest_weight() == reference.smallest_weight(), (name, number)
            assert np.array_equal(other.weights, reference.weights), (name, number)
            assert hypothesis_at(made, cut, totals) == stump, (name, number)
        vote = votes.vote(cut.agreement, reference)
        if totals.wrong(cut.agreement) == 0 or vote == 0:
            return
        for name, _, other in others:
            assert list(other.region_weights(stump)) == in_regions, (name, number)
        step = votes.change(Taken(stump, vote, cut.agreement, totals, cut)).step
        for one in [reference, *(other for _, _, other in others)]:
            one.advance(step)


def signs(score: np.ndarray, random: np.random.Generator, noise: float = 1.0) -> np.ndarray:
    y = np.where(score + random.normal(scale=noise, size=len(score)) > np.median(score), 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return y


def with_any_weights(
    seed: int, n_samples: int, dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights over twelve orders of magnitude; some values are missing, some are tied."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4)).astype(dtype)
    X[random.random(X.shape) < random.choice([0.0, 0.2])] = np.nan
    X[:, 1] = np.round(X[:, 1] * 2)
    weights = 10.0 ** random.uniform(-6, 6, size=n_samples)
    return X, signs(np.nan_to_num(X[:, 0].astype(float)), random), weights


def with_duplicated_features() -> tuple[np.ndarray, np.ndarray]:
    """X and y: every feature four times, once turned around."""
    random = np.random.default_rng(4)
    X = random.normal(size=(2000, 2)).astype(np.float32)
    return np.concatenate([X, X[:, ::-1], -X, X], axis=1), signs(X[:, 1], random)


def with_a_heavy_sample(at: int, label: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights: labels change behind one sample that weighs more than all others."""
    x = np.arange(1000, dtype=np.float32)[:, np.newaxis]
    y = np.where(np.arange(1000) <= at, label, -label)
    return x, y, np.where(np.arange(1000) == at, 1e9, 1.0)


def with_features_that_say_nothing() -> tuple[np.ndarray, np.ndarray]:
    """X and y: features that are missing throughout, constant, or one value where not missing."""
    random = np.random.default_rng(7)
    X = random.normal(size=(500, 5))
    X[:, 0], X[:, 2], X[:, 4] = np.nan, 1.0, np.where(random.random(500) < 0.5, np.nan, 3.0)
    return X, signs(np.isnan(X[:, 4]) * 2.0, random)


TABLES = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.tuples(
            st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan, np.inf]), min_size=d, max_size=d),
            st.sampled_from([-1, 1]),
            st.integers(1, 4),
        ),
        min_size=2,
        max_size=30,
    )
)
"""Tables of few values, with labels and weights: full of ties."""


def tied(samples: list[tuple[list[float], int, int]]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """One of `TABLES` as X, y and weights, with both labels."""
    X = np.asarray([values for values, _, _ in samples], dtype=np.float32)
    y = np.asarray([label for _, label, _ in samples])
    y[:2] = [1, -1]
    return X, y, [weight for *_, weight in samples]
