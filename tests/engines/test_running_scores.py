"""Scores that grow term by term, by the CPU kernels and by array operations: the same bits."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import rows as made_up_rows

from gpustump import Interval, Split, Stump
from gpustump.engines.cpu.predict import running_scores as on_cpu
from gpustump.engines.reference import running_scores as reference
from gpustump.learners.hypothesis import Partition
from gpustump.learners.step_table import VOTE_UNIT

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint16", "int32", "int64", "uint64"]


def partition(random: np.random.Generator, n_features: int) -> Partition:
    """Any stump, split or interval; some ends are values that the rows have."""
    feature = int(random.integers(n_features))
    low = random.choice([random.normal(), np.round(random.normal()), -np.inf, 0.0, -0.0])
    high = low + random.exponential() if np.isfinite(low) else random.normal()
    kind = random.integers(3)
    if kind == 0:
        return Interval(feature, low, high, 1, -1, 0.25)
    threshold = random.choice([low, high, np.inf])
    return Stump(feature, threshold, -1, 1, 0.25) if kind == 1 else Split(feature, threshold)


def votes(random: np.random.Generator, n_outputs: int) -> np.ndarray:
    """Votes of three regions, none of them for some outputs."""
    found = np.rint(random.normal(size=(3, n_outputs)) / VOTE_UNIT) * VOTE_UNIT
    found[:, random.random(n_outputs) < 0.2] = 0.0
    return found


@settings(max_examples=150)
@given(
    st.integers(0, 10**6),
    st.sampled_from(DTYPES),
    st.sampled_from(["C", "F", "every second row"]),
    st.booleans(),
    st.integers(1, 3),
)
def test_kernels_add_the_votes_that_array_operations_add(seed, dtype, order, all_rows, threads):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 1400)), int(random.choice([1, 2, 4, 70]))
    X = made_up_rows(random, n_samples, n_features, dtype)
    X = np.repeat(X, 2, axis=0)[::2] if order == "every second row" else np.asarray(X, order=order)
    some = np.flatnonzero(random.random(n_samples) < 0.4)
    chosen = None if all_rows or not len(some) else some
    constant = random.normal(size=int(random.integers(1, 5))).tolist()
    keeps_values = bool(random.random() < 0.8)
    ours = on_cpu.RunningScores(X, chosen, constant, threads, keeps_values=keeps_values)
    theirs = reference.RunningScores(X, chosen, constant)
    for _ in range(6):
        first = int(random.integers(len(constant)))
        own = votes(random, int(random.integers(1, len(constant) - first + 1)))
        term = partition(random, min(n_features, 3))
        ours.add(term, own, first)
        theirs.add(term, own, first)
        assert ours.now().tobytes() == theirs.now().tobytes()


def test_values_are_kept_only_where_rows_are_wide_and_only_within_their_limit(monkeypatch):
    random = np.random.default_rng(3)
    X = random.normal(size=(1000, 40))
    monkeypatch.setattr(on_cpu, "_KEPT_BYTES", 2 * X[:, 0].nbytes)
    kept = []
    for table, keeps_values in ((X, True), (np.asfortranarray(X), True), (X, False)):
        ours = on_cpu.RunningScores(table, None, [0.0], keeps_values=keeps_values)
        theirs = reference.RunningScores(table, None, [0.0])
        for feature in (0, 7, 9, 0, 9, 30):
            for scores in (ours, theirs):
                scores.add(Split(feature, 0.1), np.array([[0.5], [-0.25], [0.0]]))
            assert (ours.now() == theirs.now()).all()
        kept.append(sorted(ours._kept))
    assert kept == [[0, 7], [], []]


def test_rows_in_many_pieces_on_many_threads_are_each_scored_once(monkeypatch):
    monkeypatch.setattr(on_cpu, "_PIECE", 700)
    random = np.random.default_rng(0)
    X = made_up_rows(random, 5000, 3, "float32")
    ours = on_cpu.RunningScores(X, None, [0.5, -1.0], 3)
    theirs = reference.RunningScores(X, None, [0.5, -1.0])
    for scores in (ours, theirs):
        scores.add(Split(1, 0.25), np.arange(6.0).reshape(3, 2))
    assert (ours.now() == theirs.now()).all()


def test_a_copy_stays_as_it_was_when_a_term_is_added():
    for of in (on_cpu.RunningScores, reference.RunningScores):
        scores = of(np.zeros((4, 1)), None, [1.0])
        before = scores.copy()
        scores.add(Split(0, 0.5), np.asarray([[2.0], [0.0], [0.0]]))
        assert before.tolist() == [[1.0]] * 4
        assert scores.now().tolist() == [[3.0]] * 4
