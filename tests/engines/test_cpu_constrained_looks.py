"""What the coded engine looks into where constraints forbid the best cuts: hardly anything more.

Counted are the questions that a search asks, which do not depend on the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from trainers import start

pytest.importorskip("numba")

from rounds import Case, first_step

from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.split.sums_source import CodedSums
from gpustump.engines.cpu.table import codes
from gpustump.engines.threads import Team

KINDS = ("discrete", "real", "newton")
N_ROUNDS = 40


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many units are asked about, by feature, and how many features are added up anew."""
    counts: Counter[str] = Counter()
    parts, samples, renew = CodedSums.parts, CodedSums.samples, BinSums.renew

    def count(answer) -> None:
        slices = answer.slices
        for feature, n_units in zip(slices.feature.tolist(), slices.n_units.tolist(), strict=True):
            counts[f"feature {feature}"] += n_units

    def counted_parts(self, *about) -> Iterator:
        for answer in parts(self, *about):
            count(answer)
            yield answer

    def counted_samples(self, *about):
        answer = samples(self, *about)
        count(answer)
        return answer

    def counted_renew(self, features):
        found = renew(self, features)
        counts["renewed"] += len(found)
        return found

    monkeypatch.setattr(CodedSums, "parts", counted_parts)
    monkeypatch.setattr(CodedSums, "samples", counted_samples)
    monkeypatch.setattr(BinSums, "renew", counted_renew)
    return counts


def boosted(case: Case) -> None:
    """Boost on a coded table."""
    table, votes = codes.prepare(case.X, None, Team(1)), case.votes_of_run()
    state = start(table, case.y, case.weights, votes.search("stump"))
    if (step := first_step(case, votes, state)) is not None:
        state.advance(step)
    for _ in range(N_ROUNDS):
        taken = votes.found(table, state)
        assert not isinstance(taken, str)
        state.advance(votes.change(taken).step)


def of(asked: Counter[str], *features: int) -> int:
    return sum(asked[f"feature {feature}"] for feature in features)


@pytest.mark.parametrize("kind", KINDS)
def test_features_whose_good_cuts_are_forbidden_are_hardly_looked_into(kind, asked):
    """Two features fall where they must rise; each alone says more than all others together."""
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 6)).astype(np.float32)
    score = 0.2 * X[:, 2:].sum(axis=1) - 2.0 * (X[:, 0] + X[:, 1])
    y = np.where(score + random.normal(size=len(X)) > 0, 1.0, -1.0)
    case = Case.of(X, y, learning_rate=0.3).voting(kind, 1.0 if kind == "newton" else 0.0)
    boosted(case.constrained(1, 1, 0, 0, 0, 0))
    assert of(asked, 0, 1) < 0.02 * of(asked, 2, 3, 4, 5)
    assert asked["renewed"] < 3 * N_ROUNDS  # of 6 features


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_rise_and_fall_take_little_more_looks_than_without_constraints(kind, asked):
    """Allowed and forbidden cuts take turns on every feature."""
    random = np.random.default_rng(1)
    X = random.normal(size=(20_000, 4)).astype(np.float32)
    score = np.sin(7 * X).sum(axis=1) + 0.5 * X.sum(axis=1)
    y = np.where(score + random.normal(size=len(X)) > 0, 1.0, -1.0)
    case = Case.of(X, y, learning_rate=0.3).voting(kind, 1.0 if kind == "newton" else 0.0)
    boosted(case)
    free = of(asked, 0, 1, 2, 3)
    asked.clear()
    boosted(case.constrained(1))
    assert of(asked, 0, 1, 2, 3) < 2 * free
    assert asked["renewed"] < 3 * N_ROUNDS
