"""Runs of boosting with votes of every kind, on samples drawn for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import rounds
from backends import NUMPY, Backend
from rounds import Case, trainer

from gpustump import Boosting, arrays
from gpustump.engines.reference import table as reference_table

KINDS = {name: kind for name, kind in rounds.KINDS.items() if rounds.quantity_of(name) is None}
"""Kinds of votes for classes, and for how many outputs."""


def kinds(*votes: str) -> list[str]:
    """The kinds with these votes."""
    return [kind for kind, (own, _) in KINDS.items() if own in votes]


def drawn_case(kind: str, seed: int, l2: float = 0.0) -> Case:
    """50 samples of 4 features, some values missing, some tied, and small integer weights."""
    votes, n_outputs = KINDS[kind]
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 4))
    place = np.argsort(np.argsort(X[:, 0] - X[:, 1] ** 2 + random.normal(scale=0.7, size=50)))
    X[:, 2] = np.round(X[:, 2])
    X[random.random(X.shape) < 0.15] = np.nan
    weights = random.integers(1, 9, size=50).astype(np.float64)
    y = np.where(place < 25, -1.0, 1.0) if n_outputs == 1 else place * n_outputs // 50
    return Case(X, y, weights, votes=votes, l2=l2, n_outputs=n_outputs)


def boosting(case: Case, *, n_rounds: int = 12, backend: Backend = NUMPY) -> Boosting:
    """A run on the reference engine."""
    X, y, weights = map(backend.asarray, (case.X, case.y, case.weights))
    with arrays.computing_on(X):
        table = reference_table.prepare(X)
    return Boosting(trainer(table), y, weights, votes=case.votes_of_run(), n_rounds=n_rounds)


def facts(run: Boosting) -> tuple[Any, ...]:
    """All records of a run, and why it ended."""
    return (*run, run.stop_reason)
