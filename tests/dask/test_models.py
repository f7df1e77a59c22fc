"""A model that a cluster trains is that of one machine, byte for byte, whatever the partitions."""

from __future__ import annotations

import functools
import gc
import importlib.util
import itertools
import os
import pathlib
import pickle
import warnings
from typing import Any

import clusters
import cuda_on_cpu
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from audited_fits import Interrupted, Interrupting
from awkward_tables import made
from classifiers import drawn
from clusters import (
    WATCHED,
    check_equal,
    clone,
    cut,
    fitted,
    fitted_here,
    spread,
)
from cuda_on_cpu import OnCpu

from gpustump import (
    AdaBoostClassifier,
    DeviceError,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    audit,
    dask,
)
from gpustump.data import parameters
from gpustump.engines.cluster import shards, state

N = 240


def tables() -> dict[str, Any]:
    """X with missing values and a column of categories' numbers, targets and weights, some 0."""
    X, y = drawn(3, n_samples=N, missing=0.1)
    X[:, 2] = np.nan_to_num(np.round(X[:, 2] * 2)) % 7
    weights = np.random.default_rng(0).integers(0, 3, N) * 0.7
    rng, mean = np.random.default_rng(7), np.exp(np.nan_to_num(np.sin(2 * X[:, 0]) + X[:, 1] / 2))
    targets = {
        "one": np.full(N, 7),
        "two": y > 0,
        "three": np.asarray(["barbera", "grignolino", "barolo"])[y],
        "squared_error": 1e6 + 50.0 * mean + rng.normal(size=N),
        "quantile": 1e6 + 50.0 * mean + rng.normal(size=N),
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(2.0, mean),
    }
    return {name: (X, own, weights) for name, own in targets.items()}


TABLES = tables()
ADA, REAL = functools.partial(AdaBoostClassifier, n_estimators=12), {"votes": "real"}
NEWTON = functools.partial(LogitBoostClassifier, n_estimators=12)
SHARED, APART = {"multi_class": "shared"}, {"multi_class": "one_vs_rest"}
STOPPED = {"n_iter_no_change": 3, "random_state": 5, "validation_fraction": 0.3}
RANKED, BALANCED = {"scoring": "roc_auc"}, {"scoring": "balanced_accuracy"}
BAGS = {"n_bags": 3, "n_estimators": 7, "random_state": 4, "validation_fraction": 0.25}
MONOTONE = {"monotonic_cst": [-1, -1, 0, 1]}

CASES: dict[str, tuple[Any, str, bool]] = {
    "discrete, one class": (ADA(), "one", False),
    "discrete": (ADA(), "two", False),
    "real": (ADA(**REAL, class_weight={False: 5}), "two", False),
    "newton": (NEWTON(), "two", False),
    "discrete, constrained": (ADA(**MONOTONE), "two", False),
    "newton, constrained": (NEWTON(**MONOTONE), "two", False),
    "discrete, apart": (ADA(**APART, class_weight={"barolo": 0}, **STOPPED), "three", False),
    "discrete, shared": (ADA(**SHARED, class_weight="balanced", **STOPPED), "three", False),
    "real, shared": (
        ADA(**REAL, **SHARED, class_weight={"barbera": 3.0, "grignolino": 0.5}, **STOPPED),
        "three", False,
    ),
    "newton, apart": (NEWTON(**APART, categorical_features=[2]), "three", False),
    "discrete, ranked": (ADA(**STOPPED, **RANKED), "two", False),
    "newton, balanced": (NEWTON(**STOPPED, **BALANCED), "three", False),
    "newton, ranked": (NEWTON(**STOPPED, **RANKED), "three", False),
    "apart, smoothed": (NEWTON(smoothing_rounds=9, **APART, **STOPPED), "three", False),
    "real, watching": (ADA(**REAL, **SHARED, n_iter_no_change=2, **RANKED), "three", True),
    "newton, watching": (NEWTON(n_iter_no_change=2), "three", True),
    "bags, ranked": (NEWTON(**BAGS, **APART, **RANKED, n_iter_no_change=2), "three", True),
    "bags, smoothed": (NEWTON(**BAGS, smoothing_rounds=5, n_iter_no_change=3), "three", True),
    "bags, categories": (
        NEWTON(**BAGS, categorical_features=[2], n_iter_no_change=3), "three", False,
    ),
    "glass box": (GlassBoxClassifier(n_estimators=15, n_bags=2, random_state=3), "three", True),
}  # fmt: skip
for _loss, _names in {
    "squared_error": ("stopped", "glass box"),
    "quantile": ("stopped", "watching", "glass box"),
    "poisson": ("watching", "constrained"),
    "gamma": ("stopped", "constrained", "glass box"),
}.items():
    _of = {"loss": _loss, "n_estimators": 10}
    _stop = {"n_estimators": 30, "n_iter_no_change": 4, "tol": 1e-4, "random_state": 0}
    _bags = {"n_bags": 3, "random_state": 2, "smoothing_rounds": 5}
    _cases = {
        "stopped": (StumpBoostingRegressor(**_of | _stop), _loss, False),
        "watching": (
            StumpBoostingRegressor(**_of, l2_regularization=3.0, n_iter_no_change=5), _loss, True
        ),
        "constrained": (StumpBoostingRegressor(**_of, **MONOTONE), _loss, False),
        "glass box": (GlassBoxRegressor(**_of, **_bags), _loss, False),
    }  # fmt: skip
    CASES |= {f"{_loss}, {_name}": _cases[_name] for _name in _names}


def case_of(name: str) -> tuple[Any, Any, Any]:
    """An estimator, what it is trained on, and what it watches.

    What is watched is wider than what is trained on, which has no weights in some cases.
    """
    estimator, table, is_watching = CASES[name]
    X, y, weights = TABLES[table]
    if not is_watching:
        return estimator, (X, y, None if "constrained" in name else weights), ()
    kept = np.arange(N) % 3 > 0
    data = X[kept].astype(np.float32), y[kept], weights[kept]
    return estimator, data, (X[~kept], y[~kept], weights[~kept])


@pytest.mark.filterwarnings("ignore:the sample weights", "ignore:y holds one class only, 7")
@pytest.mark.parametrize("name", CASES)
def test_any_partitions_on_any_workers_make_the_model_of_one_machine(threads, name):
    estimator, data, watched = case_of(name)
    here = fitted_here(estimator, data, watched)
    there = fitted(threads, estimator, data, watched, seed=list(CASES).index(name))
    check_equal(there, here)
    if estimator.monotonic_cst is not None:
        free = fitted_here(clone(estimator).set_params(monotonic_cst=None), data)
        assert free.model_.digest() != here.model_.digest()


@pytest.mark.parametrize("name", ["real, shared", "newton, watching", "gamma, glass box"])
def test_worker_processes_make_the_model_of_one_machine(processes, name):
    estimator, data, watched = case_of(name)
    here, there = fitted_here(estimator, data, watched), fitted(processes, estimator, data, watched)
    check_equal(there, here)
    assert there.cluster_.n_workers in (1, 2)  # as Dask places the partitions
    lazy = dask.predict(there, cut(data[0], len(data[0])))
    assert np.array_equal(lazy.compute(), here.predict(data[0]))


AWKWARD = (
    "a_feature_wholly_missing", "booleans", "float16_with_missing_and_infinite", "infinities",
    "int64_beyond_2_to_53", "int8", "near_overflow", "only_constant_features", "subnormal_float32",
    "subnormal_float32_weights", "two_samples", "weights_near_overflow",
    "weights_over_600_orders_of_magnitude", "zero_weights",
)  # fmt: skip
"""Tables whose dtypes, weights or features partitions might treat in another way. (The engine that
searches shards is tested on all awkward tables in tests/engines.)"""


@pytest.mark.filterwarnings("ignore:.* made no round", "ignore:the sample weights are small")
@pytest.mark.parametrize(("number", "name"), list(enumerate(AWKWARD)))
def test_awkward_tables_make_the_model_of_one_machine(threads, number, name):
    own = made(name)
    kind, how = [(ADA, {}), (ADA, REAL), (NEWTON, {})][number % 3]
    estimator = kind(n_estimators=6, learning_rate=min(own.learning_rate, 1.0), **how)
    data = own.X, own.y, own.sample_weight
    check_equal(fitted(threads, estimator, data), fitted_here(estimator, data))


def test_workers_whose_partitions_are_empty_do_not_disturb_early_stopping(threads):
    """Also all rows on one worker, and a label that only one worker sees."""
    X, y, _ = TABLES["three"]
    y = np.where(np.arange(N) < 10, "rare", y)
    for how, sizes in itertools.product(({}, RANKED), ((0, 0, 10, 230), (240,))):
        estimator = NEWTON(n_estimators=6, **STOPPED, **how)
        there = dask.fit(estimator, cut(X, *sizes), cut(y, *sizes), client=threads)
        check_equal(there, fitted_here(estimator, (X, y)))
        assert ("one worker" in str(there.route_)) == (there.cluster_.n_workers == 1)


def test_bags_that_are_not_counted_are_as_many_as_on_one_machine(threads, monkeypatch):
    """160 of 240 rows have a weight; the others do not count."""
    monkeypatch.setattr(parameters, "FEW_SAMPLES", 160)
    X, y, _ = TABLES["two"]
    data, estimator = (X, y, np.tile([1.0, 0.0, 2.0], 80)), NEWTON(n_estimators=2, random_state=4)
    there = fitted(threads, estimator.set_params(n_bags=None), data)
    check_equal(there, fitted_here(estimator, data))
    assert there.model_.n_bags == 12


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_what_is_known_beforehand_counts_as_on_one_machine(threads, loss):
    X, y, weights = TABLES[loss]
    rng = np.random.default_rng(1)
    known = {"init_score": rng.normal(size=N)}
    if loss == "poisson":
        known["exposure"] = rng.uniform(0.1, 3.0, N)
    named = {f"{name}_val": own[::3] for name, own in known.items()}
    given, other = {"X": X, "y": y} | known, {"X_val": X[::3], "y_val": y[::3]} | named
    here = StumpBoostingRegressor(loss=loss, n_estimators=12, n_iter_no_change=4, device="cpu")
    here.fit(sample_weight=weights, **given, **other)
    arrays = dict(zip(given, spread(*given.values()), strict=True))
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x").assign(y=y, **known), 3)
    series = {"X": frame[[f"x{j}" for j in range(X.shape[1])]]}
    series |= {name: frame[name] for name in given if name != "X"}
    own = dict(zip(other, spread(*other.values(), seed=4), strict=True))
    there = dask.fit(clone(here), sample_weight=spread(weights)[0], client=threads, **arrays, **own)
    check_equal(there, here)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the frame has names
        for own in arrays, series:
            assert dask.score(there, **own) == here.score(**given)
            del own["y"]
            predicted = dask.predict(there, **own).compute()
            assert np.array_equal(predicted, here.predict(X, **known))


WARM: dict[str, tuple[Any, str, tuple[dict[str, Any], ...]]] = {
    "stopped": (NEWTON(**STOPPED), "three", ({"n_estimators": 5}, {"n_estimators": 9})),
    "watching": (
        ADA(**RANKED), "two", ({"n_estimators": 8}, {"n_estimators": 15, "n_iter_no_change": 2})
    ),
    "bags": (NEWTON(**BAGS, n_iter_no_change=20), "three", ({}, {"n_estimators": 9})),
    "quantity": (
        StumpBoostingRegressor(), "squared_error", ({"n_estimators": 5}, {"n_estimators": 9})
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_goes_on_as_on_one_machine_from_fits_of_either_kind(threads, name):
    estimator, table, steps = WARM[name]
    X, y, weights = TABLES[table]
    own = dict(zip(WATCHED, (X[::3], y[::3]), strict=False))
    parts = dict(zip(own, spread(*own.values()), strict=True))
    if name != "watching":
        own = parts = {}
    there, here, mixed = (clone(estimator).set_params(warm_start=True) for _ in range(3))
    mixed.set_params(**steps[0]).fit(X, y, weights, **own)
    for step in steps:
        data = spread(X, y, weights, seed=len(step))
        dask.fit(there.set_params(**step), *data, client=threads, **parts)
        here.set_params(**step).fit(X, y, weights, **own)
        check_equal(there, here)
    check_equal(dask.fit(mixed.set_params(**steps[1]), *data, client=threads, **parts), here)
    if name == "bags":
        with pytest.raises(ValueError, match="n_bags is 2, but with warm_start=True it must be 3"):
            dask.fit(there.set_params(n_bags=2), *data, client=threads)


CHECKPOINTED: dict[str, tuple[Any, str, bool]] = {
    "discrete": (ADA(n_estimators=9, class_weight="balanced"), "three", True),
    "bags": (ADA(**BAGS | {"n_estimators": 9}, **REAL, **SHARED), "three", False),
    "drawn seeds": (NEWTON(**BAGS | {"random_state": None}, n_iter_no_change=20), "two", False),
    "quantity": (StumpBoostingRegressor(loss="gamma", n_estimators=9), "gamma", True),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_a_fit_goes_on_from_a_checkpoint_on_another_cluster_and_on_one_machine(
    threads, name, tmp_path
):
    estimator, table, is_watching = CHECKPOINTED[name]
    X, y, weights = data = TABLES[table]
    watched = (X[::2], y[::2], weights[::2]) if is_watching else ()
    path, made = tmp_path / "run.json", list[Any]()
    keeping = clone(estimator).set_params(checkpoint=path)
    for after, seed in ((3, 0), (2, 1)):
        stopped = clone(keeping).set_params(callback=Interrupting(after + 1))
        with pytest.raises(Interrupted):
            fitted(threads, stopped, data, watched, seed=seed)
    with pytest.raises(Interrupted):
        fitted_here(clone(keeping).set_params(callback=Interrupting(3)), data, watched)
    before = path.read_bytes()
    there = fitted(threads, keeping.set_params(callback=made.append), data, watched, seed=2)
    assert made[0].number == (1 if name == "drawn seeds" else 8)
    path.write_bytes(before)
    check_equal(fitted_here(keeping, data, watched), there)
    if name != "drawn seeds":
        check_equal(there, fitted_here(estimator, data, watched))


def test_a_model_is_audited_and_other_data_than_its_checkpoint_s_are_refused(threads, tmp_path):
    X, y, weights = TABLES["two"]
    estimator = ADA(n_estimators=4, n_iter_no_change=3, checkpoint=tmp_path / "run.json")
    model = fitted(threads, estimator, (X, y, weights)).model_  # the seed is drawn
    found = audit(model, X, y, weights, device="cpu")
    assert found.same
    assert (found.notes, found.data_differences) == ((), ())
    assert not audit(model, X[::-1], y, weights[::-1], device="cpu").same
    before = (tmp_path / "run.json").read_bytes()
    cell, label, weight = X.copy(), y.copy(), weights.copy()
    cell[130, 3], label[20], weight[:] = 9.0, ~y[20], 1.0
    for data, message in (
        ((cell, y, weights), "the values of feature 3 differ"),
        ((X, label, weights), "the target differs"),
        ((X, y, weight), "the sample weights differ"),
        ((X.astype(np.float32), y, weights), "dtype of X was 'float64', and is 'float32' now"),
        ((X[:-1], y[:-1], weights[:-1]), "the table has 239 rows instead of 240"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(threads, estimator, data)
    assert (tmp_path / "run.json").read_bytes() == before


def test_scikit_learn_s_callbacks_are_told_of_the_rounds(threads):
    callbacks = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    estimator = ADA(n_estimators=4)
    estimator.set_callbacks(callbacks.ProgressBar())
    dask.fit(estimator, *spread(*TABLES["two"]), client=threads)
    check_equal(estimator, fitted_here(ADA(n_estimators=4), TABLES["two"]))


@pytest.mark.parametrize("table", ["three", "squared_error"])
def test_predictions_are_lazy_keep_the_partitions_and_equal_those_of_one_machine(threads, table):
    X, y, weights = TABLES[table]
    is_quantity = table == "squared_error"
    here = (StumpBoostingRegressor if is_quantity else NEWTON)(n_estimators=9).fit(X, y)
    clf = pickle.loads(pickle.dumps(here))
    parts = spread(X, y, weights, seed=2)
    methods = ("predict",) if is_quantity else ("predict", "predict_proba", "decision_function")
    for method in methods:
        lazy, wanted = getattr(dask, method)(clf, parts[0]), getattr(here, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == parts[0].chunks[0]
        assert lazy.dtype == wanted.dtype
        assert np.array_equal(lazy.compute(), wanted)
    assert dask.score(clf, *parts) == pytest.approx(here.score(X, y, weights), rel=1e-12)
    frames = [dd.from_pandas(pd.DataFrame({"a": own}), npartitions=3) for own in (y, weights)]
    table = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()  # of unknown sizes
    assert dask.score(clf, table, *frames) == pytest.approx(here.score(X, y, weights), rel=1e-12)
    assert np.array_equal(dask.predict(clf, table).compute(), here.predict(X))


def test_chunks_of_unknown_sizes_and_chunks_of_columns_are_taken(threads):
    X, y, _ = TABLES["two"]
    frame = dd.from_pandas(pd.DataFrame(X).assign(y=y), npartitions=3)
    table, labels = frame.drop(columns="y").to_dask_array(), frame["y"].to_dask_array()
    here = fitted_here(ADA(n_estimators=5), (X, y))
    check_equal(dask.fit(ADA(n_estimators=5), table, labels, client=threads), here)
    check_equal(
        dask.fit(ADA(n_estimators=5), da.from_array(X, chunks=(80, 2)), cut(y, 120, 120)), here
    )


def test_values_that_do_not_fit_into_memory_go_to_files_that_leave_nothing_behind(threads):
    X = np.random.default_rng(0).normal(size=(4000, 20))
    data = X, X[:, 0] + X[:, 1] ** 2 > 1
    limit = 4000 * (2 * 20 + 130)  # room for codes and vectors, not for values of 8 bytes
    there = fitted(threads, ADA(n_estimators=5, max_memory=limit), data)
    assert there.model_.digest() == fitted_here(ADA(n_estimators=5), data).model_.digest()
    assert "their values are in files" in str(there.route_)
    gc.collect()
    maps = pathlib.Path("/proc/self/maps")  # the workers are threads of this process
    assert not maps.exists() or "worker-" not in maps.read_text()
    folders = threads.run(lambda dask_worker: dask_worker.local_directory).values()
    assert not [name for folder in folders for name in os.listdir(folder) if "gpustump" in name]


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_traffic_does_not_grow_with_the_rows_and_is_counted(threads, votes, monkeypatch):
    monkeypatch.setattr(state, "_LEAST_CODES", 0)
    rng, said = np.random.default_rng(0), []
    for n_rows in (20_000, 80_000):
        X = rng.normal(size=(n_rows, 10)).astype(np.float32)
        estimator = NEWTON(n_estimators=4) if votes == "newton" else ADA(n_estimators=4, **REAL)
        there = fitted(threads, estimator, (X, X[:, 0] + 2 * X[:, 1] ** 3 > 0))
        said.append(there.cluster_.round_bytes)
        assert there.cluster_.n_messages > 4 * there.cluster_.n_workers
    # Four times the rows have finer bins, up to a limit, and fewer units without a sample.
    assert said[1] < 3 * said[0]
    assert max(said) < 5e5


@pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason="the kernels cannot be built here")
@pytest.mark.parametrize(
    ("estimator", "targets", "how"),
    [
        (ADA(), "two", {}),
        (NEWTON(**SHARED, categorical_features=[2]), "three", STOPPED),
        (StumpBoostingRegressor(n_estimators=12), "squared_error", {}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_workers_with_gpus_train_the_same_model_by_the_cuda_kernels(
    threads, estimator, targets, how, monkeypatch
):
    """Here with a stand-in for their GPUs, which runs the kernels on the CPU."""
    there = OnCpu()
    monkeypatch.setattr(shards, "usable_device", lambda place: there)
    asked = clone(estimator).set_params(**how)
    here = fitted_here(asked, TABLES[targets])
    check_equal(fitted(threads, clone(asked).set_params(device="cuda"), TABLES[targets]), here)
    assert {"code_feature", "add_staged", "add_cells"} <= set(there.launched)


@pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason="the kernels cannot be built here")
def test_workers_whose_gpus_have_no_room_for_their_rows_say_so(threads, monkeypatch):
    there = OnCpu(n_bytes=1000)
    monkeypatch.setattr(shards, "usable_device", lambda place: there)
    with pytest.raises(DeviceError, match="cuda:0 has too little memory"):
        fitted(threads, ADA(device="cuda"), TABLES["two"])


def test_asking_for_a_gpu_without_cupy_or_an_unknown_device_is_an_error(threads):
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    data = TABLES["two"]
    with pytest.raises(DeviceError, match=r"CuPy is not installed.*\non the worker"):
        fitted(threads, ADA(device="cuda"), data)
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'cuda'; got 'tpu'"):
        fitted(threads, ADA(device="tpu"), data)


def test_a_cluster_warns_as_one_machine_does_once_for_all_bags(threads):
    X, y, _ = TABLES["three"]
    weights, two = np.full(N, 1 / N), {"n_estimators": 2, "n_bags": 2, "random_state": 0}
    lone = np.where(np.arange(N) == 11, "one", y)
    for estimator, data, n_warnings in (
        (ADA(**two, learning_rate=1e6), (X, y), 1),
        (NEWTON(**two), (X, y, weights), 1),
        (NEWTON(**two), (X, lone), 1),  # a class of one sample
        (ADA(n_estimators=1), (np.arange(30.0)[:, None], np.arange(30) % 16), 1),  # many classes
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_equal(fitted(threads, estimator, data), fitted_here(estimator, data))
        ours = [str(one.message) for one in caught if one.filename == clusters.__file__]
        assert ours[: len(ours) // 2] == ours[len(ours) // 2 :]
        assert len(ours) == 2 * n_warnings


def test_a_later_fit_on_one_machine_says_nothing_of_a_cluster(threads):
    X, y = drawn(2)
    given = ADA()
    own = dask.fit(given, cut(X, len(X)), cut(y, len(y)), client=threads)
    assert own is given
    assert own.cluster_.n_workers == 1
    assert not hasattr(own.fit(X, y), "cluster_")
