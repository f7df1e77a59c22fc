"""What only the CPU engines have: bundles of features, pieces of samples, layouts, threads."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from hard_cases import large_case
from inner_functions import callable_from_python
from rounds import check_level, signs

from gpustump import arrays, boost
from gpustump.engines.cpu.histogram import histograms
from gpustump.engines.cpu.predict import running_scores
from gpustump.engines.cpu.table import codes
from gpustump.engines.threads import Team
from gpustump.learners.thresholds import rounded_down


def test_few_values_in_many_features_share_bytes():
    X = large_case("few_values_in_many_features").X
    assert codes.prepare(X, None, Team(1)).columns.n_columns < X.shape[1] / 3


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["stump", "interval"])
def test_many_rounds_on_many_samples_in_many_pieces(monkeypatch, learner):
    random = np.random.default_rng(9)
    X = random.normal(size=(40_000, 6)).astype(np.float32)
    X[:, 5] = np.round(X[:, 5] * 50)
    y = signs(X[:, 0] + X[:, 1] * X[:, 2], random)
    monkeypatch.setattr(histograms, "_PIECE", histograms.CHUNK)
    monkeypatch.setattr(histograms, "_PIECE_ALONE", histograms.CHUNK)
    ways = [
        ("one thread", codes.prepare(X, None, Team(1), max_cuts=64)),
        ("3 threads", codes.prepare(X, None, Team(3), max_cuts=64)),
        ("3 cuts", codes.prepare(X, None, Team(2), max_cuts=3)),
    ]
    check_level(X, y, None, ways, n_rounds=20, learner=learner)


def test_rows_are_left_out_as_if_they_were_not_there():
    random = np.random.default_rng(10)
    X = random.normal(size=(4000, 3)).astype(np.float32)
    y, weights = signs(X[:, 0], random), random.integers(0, 3, size=4000).astype(np.float64)
    kept = np.flatnonzero(weights)
    models = []
    for kernels in ("reference", "sorted", "coded"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GPUSTUMP_KERNELS", kernels)
            for given in ((X, y, weights), (X[kept], y[kept], weights[kept])):
                run = boost(*given, n_rounds=10)
                list(run)
                models.append(run.model.digest())
    assert len(set(models)) == 1


@pytest.mark.parametrize("kernels", ["sorted", "coded"])
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


@settings(max_examples=50)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5))
@example([0.0, -0.0, 1e-46, -1e-46, 3.5e38, -3.5e38, math.inf, -math.inf, 5e-324])
def test_running_scores_compare_with_the_thresholds_rounded_down_to_the_datas_dtype(thresholds):
    set_ends = callable_from_python(running_scores.set_ends)
    for dtype, integer in ((np.float32, np.int32), (np.float64, np.int64)):
        ends = np.empty(len(thresholds) + 1, dtype=integer)
        set_ends(np.asarray(thresholds), ends)
        wanted = [*rounded_down(np.asarray(thresholds), np.dtype(dtype).name), np.inf]
        assert ends.tolist() == arrays.order_keys(np.asarray(wanted, dtype=dtype)).tolist()
