"""What only the CPU engines have: codes, bundles of features, pieces of samples, layouts, threads,
and the thresholds of whole tables for rounds that are made in batches.

Codes are what the scan takes them for: slices of the sorted order, known to be mixed or not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from awkward_tables import DATA, made
from engine_ways import learner_of
from hard_cases import large_case, voting
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import Case, check_facts, facts_of, signs, start

from gpustump import boost
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.engines.cpu.histogram import histograms
from gpustump.engines.cpu.table import bundles, codes, small_bins, sorted_table
from gpustump.engines.cpu.table.codes import CodedTable, Room
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.engines.objective import Objective
from gpustump.engines.reference.table import prepare as sorted_columns
from gpustump.engines.threads import Team


def drawn(seed: int, n_samples: int, kind: str, dtype: str) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = {
        "normal": random.normal(size=n_samples),
        "few": random.integers(0, 5, size=n_samples).astype(float),
        "heavy": np.where(random.random(n_samples) < 0.6, 0.0, random.normal(size=n_samples)),
        "wide": 10.0 ** random.uniform(-30, 30, size=n_samples) * random.choice([-1, 1], n_samples),
        "whole": random.integers(-500, 500, size=n_samples).astype(float),
    }[kind]
    x[random.random(n_samples) < random.choice([0.0, 0.1])] = np.nan
    with np.errstate(over="ignore"):
        return x.astype(dtype)[:, np.newaxis]


def bins_of(made: CodedTable, feature: int) -> np.ndarray:
    """Each sample's bin, by way of the column that the feature is in."""
    slots = made.bundles.by_code(feature, np.arange(made.layout.n_bins[feature] + 1))
    shift = PART_BITS if made.bundles.is_wide[feature] else 0
    return slots[made.codes_of(feature) >> shift]


@settings(max_examples=80)
@given(
    st.integers(0, 10**6),
    st.integers(1, 1500),
    st.sampled_from(["normal", "few", "heavy", "wide", "whole"]),
    st.sampled_from(["float16", "float32", "float64"]),
    st.integers(1, 1022),
)
def test_bins_are_slices_of_the_sorted_order(seed, n_samples, kind, dtype, max_cuts):
    X = drawn(seed, n_samples, kind, dtype)
    made = codes.prepare(X, None, Team(1), room=Room(patience=0), max_cuts=max_cuts)
    if made.bundles.is_wide[0]:
        assert made.parted.prepare(np.asarray([0])).all()
    x, bins, n_bins = X[:, 0], bins_of(made, 0), int(made.layout.n_bins[0])
    missing = np.isnan(x)
    assert (bins[missing] == n_bins).all()
    assert int(made.n_missing[0]) == missing.sum()
    assert n_bins <= max_cuts + 1
    counts = np.bincount(bins[~missing], minlength=n_bins)
    assert (counts > 0).all()
    assert made.layout.offset[:n_bins].tolist() == (np.cumsum(counts) - counts).tolist()
    largest = -np.inf
    for b in range(n_bins):
        inside = x[bins == b]
        assert b == 0 or inside.min() > largest
        largest = inside.max()
        assert made.layout.has_inner_split[b] or inside.min() == inside.max() == made.high[b]
        if made.are_in_order(np.asarray([0]))[0]:
            parts = made.codes_of(0)[bins == b][np.argsort(inside)].astype(int)
            assert (np.diff(parts) >= 0).all()
            stored = made.parted.bin(0, b)
            assert (np.diff(made.codes_of(0)[stored].astype(int)) >= 0).all()
            assert sorted(x[stored]) == sorted(inside)
        samples, values = made.sorted_bin(0, b)
        assert values.tolist() == x[samples].tolist() == np.sort(inside).tolist()
    reference = sorted_columns(X)
    for position in range(int((~missing).sum())):
        assert made.threshold(0, position) == reference.threshold(0, position) or (
            position + 1 < n_samples and np.sort(x)[position] == np.sort(x)[position + 1]
        )


def test_a_bundle_holds_up_to_256_combinations():
    every = np.asarray(np.meshgrid(*[[0, 1]] * 9)).reshape(9, -1).T.astype(np.float32)
    made = codes.prepare(every, None, Team(1))
    assert made.bundles.column.tolist() == [0] * 8 + [1]
    one_hot = np.eye(300, dtype=np.float32)[np.arange(900) % 300]
    made = codes.prepare(one_hot, None, Team(1))
    assert made.columns.n_columns <= -(-300 // bundles._RUN)
    X = large_case("few_values_in_many_features").X
    assert codes.prepare(X, None, Team(1)).columns.n_columns < X.shape[1] / 3


def test_flags_of_a_category_share_a_column_of_a_sorted_table():
    random = np.random.default_rng(0)
    flags = np.eye(40)[random.integers(0, 40, size=2000)]
    X = np.column_stack([random.normal(size=2000), flags, flags[:, ::-1]])
    table = small_bins.divided(sorted_table.prepare(X, None, Team(1)))
    assert table.columns.begin.tolist() == [0, 1, 41, 64, 81]  # 64 features are coded at a time


@pytest.mark.parametrize("name", sorted(DATA))
def test_the_thresholds_of_a_whole_table_are_those_of_its_positions(name):
    X = made(name).X
    table = sorted_table.prepare(X, None, Team(1))
    if table.source.is_half:
        state = start(table, made(name).y * 1.0, np.ones(len(X)), Objective.of("newton"))
        assert state.batch_maker(NewtonVotes(0.3, 1, 0.5, 0).plain, None) is None
        return
    for feature, own in enumerate(table.thresholds):
        for position in np.flatnonzero(table.order[feature] >= 0):
            assert repr(float(own[position])) == repr(table.threshold(feature, int(position)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["discrete", "newton", "shared newton"])
def test_many_rounds_on_many_samples_in_many_pieces(monkeypatch, kind):
    random = np.random.default_rng(9)
    X = random.normal(size=(20_000, 6)).astype(np.float32)
    X[:, 5] = np.round(X[:, 5] * 50)
    y = signs(X[:, 0] + X[:, 1] * X[:, 2], random)
    case = voting(Case.of(X, y, n_rounds=12), kind)
    objective = case.votes_of_run().objective(learner_of(kind))
    for lane, team, max_cuts in ((1, Team(3), 64), (2**14, Team(2), 3)):
        monkeypatch.setattr(histograms, "_LANE_SAMPLES", lane)
        way = f"{max_cuts} cuts", codes.prepare(X, None, team, max_cuts=max_cuts)
        check_facts(facts_of(case, objective.learner), way, (case.y, case.weights, objective))


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
