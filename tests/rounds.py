"""Compiled kernels against the reference, integer by integer, round by round.

Whatever decides how they go about it (threads, bins, how much is kept, how samples are cut into
pieces) must not show in what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpustump import columns
from gpustump.boosting import odds_and_normaliser, vote_of
from gpustump.distribution import ArrayDistribution, Distribution, Factors
from gpustump.stump import Stump
from gpustump.weights import factors

Way = tuple[str, Any, Callable[[Any, np.ndarray, np.ndarray], Distribution]]
"""A name, columns made in some way, and what a run on them begins with."""


def check_level(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    ways: Iterable[Way],
    *,
    n_rounds: int = 8,
    learning_rate: float = 1.0,
) -> None:
    """Boost by the reference; every way must be level with it after every step."""
    y = np.asarray(y, dtype=np.float64)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    table = columns.prepare(X)
    reference = ArrayDistribution(table, y, weights)
    others = [(name, made, begin(made, y, weights)) for name, made, begin in ways]
    for number in range(n_rounds):
        cut = reference.best_cut()
        threshold = np.inf if cut.position is None else table.threshold(cut.feature, cut.position)
        for name, made, other in others:
            assert other.best_cut() == cut, (name, number)
            assert (other.total, other.mass) == (reference.total, reference.mass), (name, number)
            assert other.lightest() == reference.lightest(), (name, number)
            assert np.array_equal(other.weights, reference.weights), (name, number)
            assert other.training_error == reference.training_error, (name, number)
            if cut.position is not None:
                assert made.threshold(cut.feature, cut.position) == threshold, (name, number)
        wrong = (reference.mass - cut.agreement) // 2
        if wrong == 0 or (vote := vote_of(wrong, reference.mass, learning_rate)) == 0:
            return
        stump = Stump(cut.feature, threshold, cut.polarity, cut.missing, wrong / reference.mass)
        for name, _, other in [("reference", table, reference), *others]:
            assert other.agreement_of(stump) == cut.agreement, (name, number)
        by = Factors(
            *factors(
                odds_and_normaliser(wrong, reference.mass, vote)[0],
                correct_mass=reference.mass - wrong,
                wrong_mass=wrong,
                n_samples=len(y),
            )
        )
        for _, _, one in [("reference", table, reference), *others]:
            one.advance(stump, cut, vote, by)


def signs(score: np.ndarray, random: np.random.Generator, noise: float = 1.0) -> np.ndarray:
    y = np.where(score + random.normal(scale=noise, size=len(score)) > np.median(score), 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return y


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
