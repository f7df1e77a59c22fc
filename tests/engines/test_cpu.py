"""What only the CPU engines have: bundles of features, pieces of samples, layouts, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from engine_ways import learner_of
from hard_cases import large_case, voting
from rounds import Case, check_facts, facts_of, signs

from gpustump import boost
from gpustump.engines.cpu.histogram import histograms
from gpustump.engines.cpu.table import codes, sorted_table
from gpustump.engines.threads import Team


def test_few_values_in_many_features_share_bytes():
    X = large_case("few_values_in_many_features").X
    assert codes.prepare(X, None, Team(1)).columns.n_columns < X.shape[1] / 3


def test_flags_of_a_category_share_a_column_of_a_sorted_table():
    random = np.random.default_rng(0)
    flags = np.eye(40)[random.integers(0, 40, size=2000)]
    X = np.column_stack([random.normal(size=2000), flags, flags[:, ::-1]])
    table = sorted_table.prepare(X, None, Team(1), most_bins=sorted_table.MOST_BINS)
    assert table.columns.begin.tolist() == [0, 1, 41, 64, 81]  # 64 features are coded at a time


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["discrete", "interval", "newton", "shared newton"])
def test_many_rounds_on_many_samples_in_many_pieces(monkeypatch, kind):
    random = np.random.default_rng(9)
    X = random.normal(size=(20_000, 6)).astype(np.float32)
    X[:, 5] = np.round(X[:, 5] * 50)
    y = signs(X[:, 0] + X[:, 1] * X[:, 2], random)
    monkeypatch.setattr(histograms, "_PIECE", histograms.CHUNK)
    monkeypatch.setattr(histograms, "_PIECE_ALONE", histograms.CHUNK)
    ways = [
        ("3 threads", codes.prepare(X, None, Team(3), max_cuts=64)),
        ("3 cuts", codes.prepare(X, None, Team(2), max_cuts=3)),
    ]
    case = voting(Case.of(X, y, n_rounds=12), kind)
    search = case.votes_of_run().search(learner_of(kind))
    for way in ways:
        check_facts(facts_of(case, search.learner), way, (case.y, case.weights, search))


def models_of(monkeypatch: pytest.MonkeyPatch, X: Any, y: np.ndarray, *weights: np.ndarray) -> set:
    """Digests of the models that all engines of this machine train."""
    digests = set()
    for kernels in ("reference", "sorted", "coded"):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        run = boost(X, y, *weights, n_rounds=8)
        list(run)
        digests.add(run.model.digest())
    return digests


def test_rows_without_weight_are_as_if_not_there_and_no_layout_or_library_matters(
    monkeypatch, tmp_path
):
    random = np.random.default_rng(10)
    X = random.normal(size=(1000, 4)).astype(np.float32)
    y, weights = signs(X[:, 0], random), random.integers(0, 3, size=1000).astype(np.float64)
    kept = np.flatnonzero(weights)
    one = models_of(monkeypatch, X, y, weights)
    assert len(one) == 1
    assert models_of(monkeypatch, X[kept], y[kept], weights[kept]) == one
    np.save(tmp_path / "table.npy", X)
    read_only = X.copy()
    read_only.flags.writeable = False
    for table in (
        read_only,
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        np.frombuffer(b"." + X.tobytes(), dtype=np.float32, offset=1).reshape(X.shape),
        np.load(tmp_path / "table.npy", mmap_mode="r"),
    ):
        assert models_of(monkeypatch, table, y, weights) == one
    torch = pytest.importorskip("torch")
    tensors = [torch.asarray(own) for own in (X, y, weights)]
    assert models_of(monkeypatch, *tensors) == one


@pytest.mark.parametrize(
    ("kernels", "step"),
    [
        ("coded", "gpustump.engines.cpu.loss.regions.give_by_code"),
        ("coded", "gpustump.engines.cpu.histogram.update_pass._update"),
        ("coded", "gpustump.engines.cpu.histogram.bin_sums.update"),
        ("sorted", "gpustump.engines.cpu.loss.exponential_loss.advance"),
        ("reference", "gpustump.engines.reference.exponential_loss.reweighted"),
    ],
)
def test_an_interrupted_round_is_not_gone_on_from(monkeypatch, kernels, step):
    """The stump may be counted by then, and its votes or the next weights not."""
    random = np.random.default_rng(12)
    X = random.normal(size=(500, 2)).astype(np.float32)
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    run = boost(X, signs(X[:, 0], random), n_jobs=2)
    next(run)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(run)
    for go_on in (lambda: next(run), lambda: run.resume([], [])):
        with pytest.raises(RuntimeError, match="start anew"):
            go_on()


def test_runs_in_several_threads_do_not_disturb_each_other(monkeypatch):
    random = np.random.default_rng(13)
    X = random.normal(size=(5000, 4)).astype(np.float32)
    y = signs(X[:, 0], random)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")

    def train(_: int) -> str:
        run = boost(X, y, n_rounds=15, n_jobs=2)
        list(run)
        return run.model.digest()

    with ThreadPoolExecutor(4) as pool:
        digests = list(pool.map(train, range(4)))
    assert len(set(digests)) == 1
