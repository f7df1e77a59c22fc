"""Runs of boosting with votes of every kind, on samples drawn for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import rounds
from backends import NUMPY, Backend
from rounds import trainer

from gpustump import Boosting, arrays
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.engines.reference import table as reference_table

KINDS = {name: kind for name, kind in rounds.KINDS.items() if rounds.quantity_of(name) is None}
"""Kinds of votes for classes, and for how many outputs."""


class Samples(NamedTuple):
    """Samples of a run.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
    y : ndarray (n_samples,)
        -1.0 or 1.0; with more outputs than one the number of the class.
    weights : ndarray (n_samples,) of float64
    n_outputs : int
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    n_outputs: int

    def sign(self, number: int, output: int) -> int:
        """The label of a sample for an output."""
        if self.n_outputs == 1:
            return int(self.y[number])
        return 1 if self.y[number] == output else -1


def kinds(*votes: str) -> list[str]:
    """The kinds with these votes."""
    return [kind for kind, (own, _) in KINDS.items() if own in votes]


def drawn_samples(kind: str, seed: int, l2: float = 0.0) -> tuple[VoteSettings, Samples]:
    """50 samples of 4 features, some values missing, some tied, and small integer weights."""
    votes, n_outputs = KINDS[kind]
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 4))
    place = np.argsort(np.argsort(X[:, 0] - X[:, 1] ** 2 + random.normal(scale=0.7, size=50)))
    X[:, 2] = np.round(X[:, 2])
    X[random.random(X.shape) < 0.15] = np.nan
    weights = random.integers(1, 9, size=50).astype(np.float64)
    y = np.where(place < 25, -1.0, 1.0) if n_outputs == 1 else place * n_outputs // 50
    return VoteSettings(votes, 1.0, l2), Samples(X, y, weights, n_outputs)


def boosting(
    settings: VoteSettings,
    samples: Samples,
    *,
    n_rounds: int = 12,
    backend: Backend | None = None,
) -> Boosting:
    """A run on the reference engine."""
    backend = backend or NUMPY
    X, y, weights = map(backend.asarray, (samples.X, samples.y, samples.weights))
    with arrays.computing_on(X):
        votes = settings.votes(weights, samples.n_outputs)
        table = reference_table.prepare(X)
    return Boosting(trainer(table), y, weights, votes=votes, n_rounds=n_rounds)


def facts(run: Boosting) -> tuple[Any, ...]:
    """All records of a run, and why it ended."""
    return (*run, run.stop_reason)
