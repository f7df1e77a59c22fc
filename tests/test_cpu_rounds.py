"""The CPU kernels against the reference, integer by integer, round by round.

Whatever decides how the kernels go about it (threads, bins, the second byte, how much is kept, how
samples are cut into pieces) must not show in what they return.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import (
    TABLES,
    check_level,
    signs,
    tied,
    with_a_heavy_sample,
    with_any_weights,
    with_duplicated_features,
    with_features_that_say_nothing,
)

from gpustump import boost
from gpustump.engines.cpu import codes, direct
from gpustump.engines.cpu import state as coded
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.sorted_bins import SortedBins
from gpustump.engines.threads import Team


def with_wide_positions(made: CodedTable) -> CodedTable:
    """As a table of 2**31 samples and more would be."""
    bins = SortedBins(made.source, made.layout, made.codes, made.bundles.column, None, "int64")
    return dataclasses.replace(made, bins=bins)


def ways(X: np.ndarray, max_cuts: int = 254) -> Iterator[tuple[str, Any]]:
    """Tables for the kernels, in every way that they can be made."""
    yield "direct", direct.prepare(X, None, Team(1))
    yield "direct, 3 threads", direct.prepare(X, None, Team(3))
    yield "coded", codes.prepare(X, None, Team(1), max_cuts=max_cuts)
    yield "coded, 3 threads", codes.prepare(X, None, Team(3), max_cuts=max_cuts)
    yield "coarsely", codes.prepare(X, None, Team(2), finely=False, max_cuts=max_cuts)
    yield "few bins", codes.prepare(X, None, Team(2), max_cuts=3)
    yield "one bin", codes.prepare(X, None, Team(1), finely=False, max_cuts=1)
    yield "nothing kept", codes.prepare(X, None, Team(2), budget=0, max_cuts=max_cuts)
    yield "wide", with_wide_positions(codes.prepare(X, None, Team(1), max_cuts=max_cuts))


def check(
    X: np.ndarray,
    y: np.ndarray,
    weights: Any = None,
    *,
    max_cuts: int = 254,
    learner: str = "stump",
    **how: Any,
) -> None:
    """Boost by the reference; every way must be level with it after every step."""
    check_level(X, y, weights, ways(X, max_cuts), learner=learner, **how)


either = pytest.mark.parametrize("learner", ["stump", "interval"])


@settings(max_examples=150)
@given(TABLES, st.sampled_from(["stump", "interval"]))
def test_ties_everywhere_are_broken_alike(samples, learner):
    check(*tied(samples), learner=learner)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(20, 400),
    st.sampled_from(["float16", "float32", "float64"]),
    st.sampled_from(["stump", "interval"]),
)
def test_any_values_and_weights_give_the_references_integers(seed, n_samples, dtype, learner):
    check(*with_any_weights(seed, n_samples, dtype), max_cuts=8, learner=learner)


@pytest.mark.parametrize("order", ["as drawn", "sorted", "reversed"])
def test_sorted_and_reversed_samples(order):
    random = np.random.default_rng(3)
    X = random.normal(size=(3000, 3)).astype(np.float32)
    y = signs(X[:, 0] + X[:, 1], random)
    by = {"as drawn": np.arange(3000), "sorted": np.argsort(X[:, 0])}
    by["reversed"] = by["sorted"][::-1]
    check(np.ascontiguousarray(X[by[order]]), y[by[order]], max_cuts=32)


@either
def test_of_duplicated_features_the_lowest_wins(learner):
    check(*with_duplicated_features(), max_cuts=16, learner=learner)


@either
def test_one_sample_may_dominate(learner):
    random = np.random.default_rng(5)
    X = random.normal(size=(2500, 3)).astype(np.float32)
    weights = np.where(np.arange(2500) == 77, 1e15, 1.0)
    check(X, signs(X[:, 0], random), weights, max_cuts=20, learner=learner)


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("at", [0, 61, 62, 63, 100, 499, 500, 999])
@either
def test_a_heavy_sample_may_stand_anywhere_in_its_bin(label, at, learner):
    """Its weight alone may be most of all 62 bits, with the best cut right behind it."""
    x, y, weights = with_a_heavy_sample(at, label)
    check(x, y, weights, learner=learner)
    noise = np.random.default_rng(at).random(1000) < 0.2
    check(
        x,
        np.where(noise & (np.arange(1000) != at), -y, y),
        weights,
        learning_rate=3.0,
        learner=learner,
    )


@either
def test_the_best_cut_may_hide_in_a_bin_whose_edges_look_poor(learner):
    """Labels alternate in blocks about the bins' middles: at every edge the sums are level."""
    n_bins, inside = 8, 400
    x = np.arange(n_bins * inside, dtype=np.float32)[:, np.newaxis]
    y = np.where(np.arange(n_bins * inside) % inside < inside // 2, 1.0, -1.0)
    y[3 * inside : 3 * inside + inside // 2 + 3] = 1.0  # one of them holds a little more
    check(x, y, max_cuts=n_bins, n_rounds=12, learner=learner)
    random = np.random.default_rng(0)
    shuffled = random.permutation(len(y))
    check(
        np.ascontiguousarray(x[shuffled]),
        y[shuffled],
        max_cuts=n_bins,
        n_rounds=12,
        learner=learner,
    )


@either
def test_few_values_in_many_features_share_bytes(learner):
    random = np.random.default_rng(6)
    flags = (random.random((3000, 20)) < 0.3).astype(np.float32)
    kinds = random.integers(0, 30, size=3000)
    one_hot = (kinds[:, np.newaxis] == np.arange(30)).astype(np.float32)
    small = random.integers(0, 7, size=(3000, 5)).astype(np.float32)
    small[random.random(small.shape) < 0.2] = np.nan
    X = np.concatenate([flags, one_hot, random.normal(size=(3000, 2)), small], axis=1)
    X = X.astype(np.float32)
    made = codes.prepare(X, None, Team(1))
    assert len(made.codes) < X.shape[1] / 3
    check(
        X,
        signs(flags[:, 3] + one_hot[:, 4] + np.nan_to_num(small[:, 0]) / 4, random),
        learner=learner,
    )


@either
def test_features_that_say_nothing(learner):
    check(*with_features_that_say_nothing(), max_cuts=16, learner=learner)
    check(np.full((40, 2), np.nan), np.where(np.arange(40) < 15, 1.0, -1.0), learner=learner)


@pytest.mark.parametrize("learning_rate", [0.1, 3.0])
@either
def test_bounds_hold_when_weights_are_halved_often_or_never(learning_rate, learner):
    random = np.random.default_rng(8)
    X = random.normal(size=(1500, 3)).astype(np.float32)
    check(
        X,
        signs(X[:, 0], random),
        max_cuts=16,
        n_rounds=25,
        learning_rate=learning_rate,
        learner=learner,
    )


@pytest.mark.slow
@either
def test_many_rounds_on_many_samples_in_many_pieces(monkeypatch, learner):
    random = np.random.default_rng(9)
    X = random.normal(size=(40_000, 6)).astype(np.float32)
    X[:, 5] = np.round(X[:, 5] * 50)
    y = signs(X[:, 0] + X[:, 1] * X[:, 2], random)
    monkeypatch.setattr(coded, "_PIECE", coded.CHUNK)
    check(X, y, n_rounds=30, max_cuts=64, learner=learner)


def test_rows_are_left_out_as_if_they_were_not_there():
    random = np.random.default_rng(10)
    X = random.normal(size=(4000, 3)).astype(np.float32)
    y, weights = signs(X[:, 0], random), random.integers(0, 3, size=4000).astype(np.float64)
    kept = np.flatnonzero(weights)
    models = []
    for kernels in ("reference", "direct", "coded"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GPUSTUMP_KERNELS", kernels)
            for given in ((X, y, weights), (X[kept], y[kept], weights[kept])):
                run = boost(*given, n_rounds=10)
                list(run)
                models.append(run.model.digest())
    assert len(set(models)) == 1


@pytest.mark.parametrize("kernels", ["direct", "coded"])
@pytest.mark.parametrize(
    "layout", ["read-only", "by columns", "every second row", "reversed", "not aligned", "mapped"]
)
def test_the_layout_of_the_table_does_not_matter(monkeypatch, tmp_path, kernels, layout):
    random = np.random.default_rng(11)
    X = random.normal(size=(600, 4)).astype(np.float32)
    y = signs(X[:, 0], random)
    table = X
    if layout == "read-only":
        table = X.copy()
        table.flags.writeable = False
    elif layout == "by columns":
        table = np.asfortranarray(X)
    elif layout == "every second row":
        table = np.repeat(X, 2, axis=0)[::2]
    elif layout == "reversed":
        table = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    elif layout == "not aligned":
        table = np.frombuffer(b"." + X.tobytes(), dtype=np.float32, offset=1).reshape(X.shape)
    else:
        np.save(tmp_path / "table.npy", X)
        table = np.load(tmp_path / "table.npy", mmap_mode="r")
    expected, found = [], []
    for this, kept, how in ((X, expected, "reference"), (table, found, kernels)):
        monkeypatch.setenv("GPUSTUMP_KERNELS", how)
        run = boost(this, y, n_rounds=6)
        kept.extend(run)
        assert (run.model.decision_function(this) == run.model.decision_function(X)).all()
    assert found == expected


@pytest.mark.parametrize(
    ("kernels", "step"),
    [
        ("coded", "gpustump.engines.cpu.state.votes_by_code"),
        ("coded", "gpustump.engines.cpu.state.advance"),
        ("coded", "gpustump.engines.cpu.state.add"),
        ("direct", "gpustump.engines.cpu.direct._vote"),
        ("direct", "gpustump.engines.cpu.direct._step"),
        ("reference", "gpustump.engines.reference.state.reweighted"),
    ],
)
def test_an_interrupted_round_is_not_gone_on_from(monkeypatch, kernels, step):
    """The stump may be counted by then, and its votes or the next weights not."""
    random = np.random.default_rng(12)
    X = random.normal(size=(500, 2)).astype(np.float32)
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    run = boost(X, signs(X[:, 0], random))
    next(run)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(run)
    for go_on in (lambda: next(run), lambda: run.replay([], [])):
        with pytest.raises(RuntimeError, match="start anew"):
            go_on()


def test_runs_in_several_threads_do_not_disturb_each_other(monkeypatch):
    random = np.random.default_rng(13)
    X = random.normal(size=(5000, 4)).astype(np.float32)
    y = signs(X[:, 0], random)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    digests: list[str] = []

    def train() -> None:
        run = boost(X, y, n_rounds=15, n_jobs=2)
        list(run)
        digests.append(run.model.digest())

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 4
    assert len(set(digests)) == 1
