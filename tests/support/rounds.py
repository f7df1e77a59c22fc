"""Engines against the reference, integer by integer, round by round.

Threads, bins, how much is kept, how samples are cut into pieces: none of it may change what an
engine returns. `check_level` compares prepared tables, and the functions below it draw samples that
are hard on searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpustump.boosting.discrete_votes import DiscreteVotes
from gpustump.boosting.votes import Taken
from gpustump.data.parameters import Learner
from gpustump.engines.contract import (
    Cut,
    PreparedTable,
    RegionSums,
    Search,
    State,
    Step,
    Totals,
    agreement,
    hypothesis_at,
)
from gpustump.engines.reference import table as reference_table
from gpustump.learners.hypothesis import signs as signs_of
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump

Way = tuple[str, PreparedTable]
"""A name, and a table prepared in some way."""


@dataclass(frozen=True)
class Case:
    """Samples and how to boost on them.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    weights : ndarray (n_samples,) of float64
        Positive.
    rows : ndarray (n_samples,) of int64, or None
        The rows of X that take part; None for all of them.
    learning_rate : float
    n_rounds : int
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    rows: np.ndarray | None = None
    learning_rate: float = 1.0
    n_rounds: int = 8

    @classmethod
    def of(cls, X: np.ndarray, y: Any, weights: Any = None, **how: Any) -> Case:
        """From labels and weights of any type; equal weights by default."""
        y = np.asarray(y, dtype=np.float64)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(X, y, weights, **how)


@dataclass(frozen=True)
class Facts:
    """What the reference knows at the beginning of a round, and what the round then does.

    `hypothesis` holds the thresholds of the cut. `step` is None where boosting ends.
    """

    cut: Cut
    totals: Totals
    smallest_weight: int
    weights: np.ndarray
    hypothesis: Stump | Interval
    region_sums: RegionSums
    step: Step | None


def facts_of(case: Case, learner: Learner) -> list[Facts]:
    """Every round of the reference on NumPy, in blocks of the default size."""
    table, votes = (
        reference_table.prepare(case.X, rows=case.rows),
        DiscreteVotes(case.learning_rate),
    )
    state = table.start(case.y, case.weights, Search(learner))
    found: list[Facts] = []
    while len(found) < case.n_rounds:
        cut, totals = state.best_cut(), state.totals
        hypothesis = hypothesis_at(table, cut, totals)
        in_regions = list(state.region_sums(hypothesis))
        assert agreement(in_regions, signs_of(hypothesis)) == cut.agreement
        assert sum(second for ((_, second),) in in_regions) == totals.weight
        vote, step = votes.vote(cut.agreement, state), None
        if totals.wrong(cut.agreement) != 0 and vote != 0:
            step = votes.change(Taken(hypothesis, vote, totals, cut.agreement, cut=cut)).step
        smallest, weights = state.smallest_weight(), np.array(state.weights)
        found.append(Facts(cut, totals, smallest, weights, hypothesis, in_regions, step))
        if step is None:
            break
        state.advance(step)
    return found


def check_facts(
    facts: Sequence[Facts],
    name: str,
    table: PreparedTable,
    state: State,
    to_numpy: Callable[[Any], np.ndarray] = np.asarray,
) -> None:
    """A state just started must know the same facts in every round."""
    for number, fact in enumerate(facts):
        where = f"{name}, round {number}"
        assert state.best_cut() == fact.cut, where
        assert state.totals == fact.totals, where
        assert state.smallest_weight() == fact.smallest_weight, where
        assert np.array_equal(to_numpy(state.weights), fact.weights), where
        assert hypothesis_at(table, fact.cut, fact.totals) == fact.hypothesis, where
        assert list(state.region_sums(fact.hypothesis)) == fact.region_sums, where
        if fact.step is not None:
            state.advance(fact.step)


def check_level(
    X: np.ndarray,
    y: Any,
    weights: Any,
    ways: Iterable[Way],
    *,
    learner: Learner = "stump",
    **how: Any,
) -> None:
    """Boost by the reference; every way must be level with it after every step."""
    case = Case.of(X, y, weights, **how)
    facts = facts_of(case, learner)
    for name, table in ways:
        check_facts(facts, name, table, table.start(case.y, case.weights, Search(learner)))


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
