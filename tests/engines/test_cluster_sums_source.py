"""The pieces of a search through shards: each is what brute force over all samples finds."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import spread_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import Case, signs, start
from spread_tables import Spread, SpreadTable, Together

from gpustump.engines.cluster import state, sums_source
from gpustump.engines.cluster.questions import BY_VALUE, Shard
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.cluster.shards import answer, shard_of
from gpustump.engines.cluster.sums_source import _shifts
from gpustump.engines.integer_weights import (
    fitting_exponent,
    safe_exponent,
    scaled_total,
    unit_exponent,
)

KEYS = st.integers(-(2**63) + 1, 2**63 - 2)
WEIGHTS = st.floats(1e-300, 1e300) | st.floats(0.5, 2.0)


@given(st.lists(st.tuples(KEYS, KEYS, st.integers(1, 600)), min_size=1, max_size=30))
def test_a_range_is_cut_into_few_units_but_at_least_two(drawn):
    low, high = (np.asarray([f(a, b) for a, b, _ in drawn]) for f in (min, max))
    size = np.asarray([own for *_, own in drawn])
    shifts = _shifts(low, high, size)
    for a, b, n, shift in zip(low.tolist(), high.tolist(), size.tolist(), shifts, strict=True):
        n_units = 1 + ((b - a) >> max(0, int(shift)))
        if shift == BY_VALUE:
            assert n <= sums_source._LISTED
            assert b - a >= 2**sums_source._UNIT_BITS
        else:
            assert (
                min(b - a + 1, 2 ** (sums_source._UNIT_BITS - 1))
                <= n_units
                <= 2**sums_source._UNIT_BITS
            )
            assert shift == 0 or n > sums_source._LISTED
    n = 4000  # many ranges are cut into fewer units each, but into two at least
    low = np.arange(n, dtype=np.int64) * 2**20
    shift = _shifts(low, low + 2**20 - 1, np.full(n, 200))
    assert n * 2 ** (20 - shift[0]) <= sums_source._UNITS < n * 2 ** (21 - shift[0])
    assert (_shifts(low, low + 2**20 - 1, np.full(n, 4)) == BY_VALUE).all()
    assert not _shifts(np.zeros(10**5, int), np.ones(10**5, int), np.full(10**5, 9)).any()


@settings(max_examples=40)
@given(st.data(), st.lists(WEIGHTS, min_size=1, max_size=50), st.integers(1, 11))
def test_any_split_of_the_weights_gives_their_unit(data, drawn, n_copies):
    weights = np.asarray(drawn)
    owner = np.asarray(data.draw(st.lists(st.integers(0, 3), min_size=50)))[: len(weights)]
    parts = [weights[owner == shard] for shard in range(4)]
    classes = np.arange(len(weights)) % 3
    shards = [
        Samples(own[np.newaxis], classes[owner == shard], own) for shard, own in enumerate(parts)
    ]
    n_integers = len(weights) * n_copies
    safe = safe_exponent(max(own.largest_weight() for own in shards), n_integers)
    totals = [own.scaled_total(safe) for own in shards]
    assert sum(totals) == scaled_total(weights, safe)
    assert fitting_exponent(safe, sum(totals) * n_copies, n_integers) == unit_exponent(
        weights, n_copies
    )
    by_class = Samples(weights[np.newaxis], classes, weights).class_weights(safe, 3)
    asked = [answer(shard_of(own, "numpy"), "class_weights", (safe, 3)) for own in shards]
    assert np.sum(asked, axis=0).tolist() == by_class
    assert sum(by_class) == sum(totals)


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
