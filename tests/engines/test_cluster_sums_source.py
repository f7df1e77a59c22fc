"""How much the shards of a table send."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import spread_tables
from rounds import Case, signs, start
from spread_tables import Spread, SpreadTable, Together

from gpustump.engines.cluster import state
from gpustump.engines.cluster.questions import Shard


class Weighed(Together):
    """Shards whose answers in a round are weighed as messages."""

    n_bytes = 0

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        answers = super().ask(method, *arguments)
        self.n_bytes += max(len(pickle.dumps(own)) for own in answers)
        return answers


def most_bytes(
    n_copies: int, kind: str, max_cuts: int | None, monkeypatch: pytest.MonkeyPatch
) -> int:
    """The most that a shard sends in one of a few rounds, for 40 features.

    The table holds 10 000 samples so many times, no two of them quite the same.
    """
    made: list[Weighed] = []

    def together(shards: Sequence[Shard]) -> Weighed:
        made.append(Weighed(shards))
        return made[-1]

    monkeypatch.setattr(spread_tables, "Together", together)
    random = np.random.default_rng(0)
    X = random.standard_normal((10_000, 40), dtype=np.float32)
    y = np.tile(signs(np.abs(X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3], random), n_copies)
    X = np.tile(X, (n_copies, 1))
    X += np.float32(0.001) * random.standard_normal(X.shape, dtype=np.float32)
    case = Case.of(X, y, learning_rate=0.3).voting(kind, 1.0)
    votes = case.votes_of_run()
    table = SpreadTable(X, None, Spread(("kernels",) * 2, max_cuts=max_cuts))
    state = start(table, case.y, case.weights, votes.objective("stump"))
    found = 0
    for _ in range(4):
        made[0].n_bytes = 0
        taken = votes.found(table, state)
        state.advance(votes.change(taken).step)
        found = max(found, made[0].n_bytes)
    return found


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_what_shards_send_in_a_round_does_not_grow_with_the_rows(kind, monkeypatch):
    monkeypatch.setattr(state, "_LEAST_CODES", 0)
    # Units that hold no sample are not sent: of few samples some, of many hardly any.
    few, many = (most_bytes(n, kind, 60, monkeypatch) for n in (1, 10))
    assert many < 1.5 * few
    assert most_bytes(10, kind, None, monkeypatch) < 2e6
