"""A model that a cluster trains is that of one machine, byte for byte, whatever the partitions."""

from __future__ import annotations

import importlib.util
import os
import pickle
import warnings
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import on_dask
import pandas as pd
import pytest
from awkward_tables import DATA, made
from on_dask import AdaBoostThere, GlassBoxThere, LogitBoostThere
from partitioned_tables import spread
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from gpustump import (
    AdaBoostClassifier,
    DeviceError,
    GlassBoxClassifier,
    LogitBoostClassifier,
    audit,
    dask,
)

LOCAL = {
    AdaBoostThere: AdaBoostClassifier,
    LogitBoostThere: LogitBoostClassifier,
}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (AdaBoostThere, {"votes": "discrete"}),
    (AdaBoostThere, {"votes": "real"}),
    (LogitBoostThere, {}),
]
CLASSES: list[tuple[Any, dict[str, Any]]] = [
    *((kind, {**how, "multi_class": "one_vs_rest"}) for kind, how in KINDS),
    *((kind, {**how, "multi_class": "shared"}) for kind, how in KINDS),
]


def fitted(kind: Any, client: Any, data: Any, **how: Any) -> tuple[Any, Any]:
    """An estimator fitted on a cluster, and the local one on the same rows."""
    X, y, weights = data
    parts = spread(X, y, weights)
    there = kind(client=client, **how).fit(*parts)
    here = LOCAL[kind](**how, device="cpu").fit(X, y, weights)
    return there, here


def check_equal(there: Any, here: Any) -> None:
    assert there.model_.digest() == here.model_.digest()
    assert there.rounds_ == here.rounds_
    assert there.stop_reasons_ == here.stop_reasons_
    assert np.array_equal(there.classes_, here.classes_)


@pytest.mark.filterwarnings("ignore:.* made no round", "ignore:the sample weights are small")
@pytest.mark.parametrize(("number", "name"), list(enumerate(sorted(DATA))))
def test_awkward_tables_make_the_model_of_one_machine(threads, number, name):
    data = made(name)
    kind, how = KINDS[number % len(KINDS)]
    rate = min(data.learning_rate, 1.0)
    there, here = fitted(
        kind, threads, (data.X, data.y, data.sample_weight), n_estimators=6, learning_rate=rate,
        **how,
    )  # fmt: skip
    check_equal(there, here)


@pytest.mark.parametrize(("kind", "how"), KINDS, ids=str)
def test_worker_processes_make_the_model_of_one_machine(processes, kind, how):
    X, y = load_breast_cancer(return_X_y=True)
    there, here = fitted(kind, processes, (X.astype(np.float32), y, None), n_estimators=40, **how)
    check_equal(there, here)
    assert there.cluster_.n_workers in (1, 2)  # as Dask places the partitions


@pytest.mark.parametrize("multi_class", ["shared", "one_vs_rest"])
def test_smoothing_rounds_make_the_model_of_one_machine(threads, multi_class):
    """Which rows are sampled depends on their order in the table, not on the workers that hold
    them."""
    X, y = load_wine(return_X_y=True)
    X = np.round(np.tile(X, (9, 1)) * np.linspace(0.9, 1.1, 9 * len(y))[:, None], 3)
    X[::7, 2], y = np.nan, np.tile(y, 9)
    weights = np.where(np.arange(len(y)) % 5, 1.0, 0.0)
    there, here = fitted(
        LogitBoostThere, threads, (X.astype(np.float32), y, weights), n_estimators=12,
        smoothing_rounds=9, n_iter_no_change=3, random_state=0, multi_class=multi_class,
    )  # fmt: skip
    check_equal(there, here)
    assert there.held_out_scores_ == here.held_out_scores_


@pytest.mark.parametrize(("kind", "how"), KINDS, ids=str)
def test_monotone_constraints_make_the_model_of_one_machine(threads, kind, how):
    X, y = load_breast_cancer(return_X_y=True)
    constraints = np.resize([1, -1, 0], X.shape[1]).tolist()
    there, here = fitted(
        kind, threads, (X, y, None), n_estimators=25, monotonic_cst=constraints, **how
    )
    check_equal(there, here)
    free = LOCAL[kind](n_estimators=25, device="cpu", **how).fit(X, y)
    assert there.model_.digest() != free.model_.digest()
    assert there.estimator.monotonic_cst == constraints


@pytest.mark.parametrize(("kind", "how"), CLASSES, ids=str)
def test_more_classes_make_the_model_of_one_machine(threads, kind, how):
    X, y = load_wine(return_X_y=True)
    names = np.asarray(["barbera", "grignolino", "barolo"])
    weights = np.random.default_rng(0).uniform(0, 3, size=len(y)).round(1)  # some are zero
    there, here = fitted(kind, threads, (X, names[y], weights), n_estimators=9, **how)
    check_equal(there, here)
    assert set(there.classes_) == set(names)


@pytest.mark.parametrize("scoring", ["loss", "balanced_accuracy", "roc_auc"])
@pytest.mark.parametrize(("kind", "how"), [KINDS[0], CLASSES[5], CLASSES[2]], ids=str)
def test_early_stopping_watches_the_same_samples_and_stops_in_the_same_round(
    threads, kind, how, scoring
):
    X, y = load_digits(return_X_y=True)
    if "multi_class" not in how:
        y = y > 4
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    there, here = fitted(
        kind, threads, (X[:700], y[:700], weights[:700]), n_estimators=25, n_iter_no_change=3,
        validation_fraction=0.3, random_state=5, scoring=scoring, **how,
    )  # fmt: skip
    check_equal(there, here)
    assert there.held_out_scores_ == here.held_out_scores_
    assert there.held_out_errors_ == here.held_out_errors_


def test_a_model_of_a_cluster_is_audited_on_one_machine(threads):
    X, y = load_breast_cancer(return_X_y=True)
    how = {"n_estimators": 12, "n_iter_no_change": 3}  # the seed is drawn, and recorded
    there = LogitBoostThere(client=threads, **how).fit(*spread(X, y)[:2])
    found = audit(there.model_, X, y, device="cpu")
    assert found.same
    assert found.notes == ()
    assert type(found.estimator) is LogitBoostClassifier
    assert not audit(there.model_, X[::-1], y, device="cpu").same


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc"])
def test_workers_whose_partitions_are_empty_do_not_disturb_early_stopping(threads, scoring):
    X, y = load_breast_cancer(return_X_y=True)
    sizes = (0, 0, 300, 269)  # four workers, two of them without a row
    how = {"n_estimators": 9, "n_iter_no_change": 4, "random_state": 1, "scoring": scoring}
    there = LogitBoostThere(client=threads, **how).fit(
        da.from_array(X, chunks=(sizes, 30)), da.from_array(y, chunks=(sizes,))
    )
    check_equal(there, LogitBoostClassifier(**how).fit(X, y))


@pytest.mark.parametrize("how", [{}, {"n_iter_no_change": 4, "random_state": 2}], ids=str)
def test_a_warm_start_goes_on_as_on_one_machine(threads, how):
    X, y = load_breast_cancer(return_X_y=True)
    parts = spread(X, y)
    there = LogitBoostThere(client=threads, n_estimators=5, warm_start=True, **how)
    here = LogitBoostClassifier(n_estimators=5, warm_start=True, **how)
    for n_rounds in (5, 9):
        there.set_params(n_estimators=n_rounds).fit(*parts)
        here.set_params(n_estimators=n_rounds).fit(X, y)
        check_equal(there, here)


CLASS_WEIGHTS = ["balanced", {"barbera": 3.0, "grignolino": 0.5}, {"barolo": 0}]


@pytest.mark.parametrize("class_weight", CLASS_WEIGHTS, ids=str)
def test_weights_of_classes_count_the_rows_of_all_partitions(threads, class_weight):
    X, y = load_wine(return_X_y=True)
    names = np.asarray(["barbera", "grignolino", "barolo"])[y]
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    weights[:60] = np.where(weights[:60] == 1, 1e-320, weights[:60])  # counts as zero
    kind, how = CLASSES[CLASS_WEIGHTS.index(class_weight) + 3]
    there, here = fitted(
        kind, threads, (X, names, weights), n_estimators=9, class_weight=class_weight,
        n_iter_no_change=3, random_state=2, **how,
    )  # fmt: skip
    check_equal(there, here)
    assert there.held_out_scores_ == here.held_out_scores_


@pytest.mark.parametrize("scoring", ["loss", "roc_auc"])
@pytest.mark.parametrize(("kind", "how"), [KINDS[0], CLASSES[5]], ids=str)
def test_rows_to_watch_have_partitions_of_their_own(threads, kind, how, scoring):
    X, y = load_wine(return_X_y=True)
    y = y if "multi_class" in how else y > 0
    kept = np.arange(len(y)) % 3 > 0
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    narrow = X[kept].astype(np.float32)  # what is watched is wider than what is trained on
    options = {"n_estimators": 12, "scoring": scoring, **how}
    own = X[~kept], y[~kept], weights[~kept]
    names = ("X_val", "y_val", "sample_weight_val")
    there = kind(client=threads, warm_start=True, **options)
    here = LOCAL[kind](warm_start=True, **options)
    for patience in (None, 2):
        there.set_params(n_iter_no_change=patience, n_estimators=12 if patience is None else 20)
        here.set_params(n_iter_no_change=patience, n_estimators=there.n_estimators)
        there.fit(*spread(narrow, y[kept]), **dict(zip(names, spread(*own, seed=4), strict=True)))
        here.fit(narrow, y[kept], **dict(zip(names, own, strict=True)))
        check_equal(there, here)
        assert there.held_out_scores_ == here.held_out_scores_
        assert there.held_out_errors_ == here.held_out_errors_
    assert str(there.route_).count("5 partitions") == 1


def test_scikit_learn_s_callbacks_are_told_of_the_rounds(threads):
    callbacks = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = load_breast_cancer(return_X_y=True)
    there = AdaBoostThere(client=threads, n_estimators=4)
    there.set_callbacks(callbacks.ProgressBar())
    check_equal(there.fit(*spread(X, y)[:2]), AdaBoostClassifier(n_estimators=4).fit(X, y))


@pytest.mark.filterwarnings("ignore:y holds one class only, 7")
@pytest.mark.parametrize("cls", [AdaBoostThere, LogitBoostThere])
def test_one_class_gives_the_model_of_one_machine(threads, cls):
    X, y = np.arange(90.0).reshape(30, 3), np.full(30, 7)
    there, here = cls(client=threads).fit(*spread(X, y)), LOCAL[cls]().fit(X, y)
    assert there.model_.digest() == here.model_.digest()
    assert there.predict(spread(X, y).X).compute().tolist() == [7] * 30


def test_frames_make_the_model_of_one_machine_and_name_its_features(threads):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "width": rng.normal(size=300).astype(np.float32),
            "count": rng.integers(0, 9, size=300),
            "is_old": rng.random(300) < 0.3,
            "size": pd.Categorical(rng.choice([1, 2, 3], size=300)),
        }
    )
    frame.loc[::7, "width"] = np.nan
    y = pd.Series(np.where(frame["count"] + rng.normal(size=300) > 4, "many", "few"))
    X = dd.from_pandas(frame, npartitions=4)
    with pytest.warns(UserWarning, match="categories of"):
        there = AdaBoostThere(client=threads, n_estimators=8).fit(
            X, dd.from_pandas(y, npartitions=4)
        )
    with pytest.warns(UserWarning, match="categories of"):
        here = AdaBoostClassifier(n_estimators=8).fit(frame, y)
    check_equal(there, here)
    assert list(there.feature_names_in_) == list(frame.columns)
    assert (there.predict(X).compute() == here.predict(frame)).all()


@pytest.mark.parametrize("categorical", [None, "from_dtype"])
def test_columns_of_frames_are_matched_by_name_on_a_cluster(threads, categorical):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    if categorical is not None:
        frame["d"] = rng.choice(["red", "blue"], size=200)
    y = pd.Series((frame["a"] + frame["b"] > 0).astype(int))
    turned = frame[frame.columns[::-1]].assign(other=1.0)
    how = {"n_estimators": 4, "warm_start": True, "categorical_features": categorical}
    there, here = AdaBoostThere(client=threads, **how), AdaBoostClassifier(**how)
    X, other, labels = (dd.from_pandas(own, npartitions=3) for own in (frame, turned, y))
    there.fit(X, labels, X_val=other, y_val=labels)
    here.fit(frame, y, X_val=frame, y_val=y)
    check_equal(there, here)
    assert there.held_out_scores_ == here.held_out_scores_
    there.set_params(n_estimators=7).fit(other, labels)
    check_equal(there, here.set_params(n_estimators=7).fit(frame, y))
    assert (there.decision_function(other).compute() == here.decision_function(frame)).all()
    assert there.score(other, labels) == here.score(frame, y)
    with pytest.raises(ValueError, match="lacks 1 column that the model needs: 'b'"):
        there.predict(X.drop(columns="b"))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_lazy_keep_the_partitions_and_equal_those_of_one_machine(
    threads, n_classes
):
    X, y = load_wine(return_X_y=True)
    y = np.minimum(y, n_classes - 1)
    parts = spread(X, y)
    there = LogitBoostThere(client=threads, n_estimators=9).fit(*parts)
    here = LogitBoostClassifier(n_estimators=9).fit(X, y)
    for method in ("decision_function", "predict", "predict_proba"):
        lazy, wanted = getattr(there, method)(parts.X), getattr(here, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == parts.X.chunks[0]
        assert lazy.dtype == wanted.dtype
        assert np.array_equal(lazy.compute(), wanted)
        assert np.array_equal(getattr(there, method)(X), wanted)  # rows in memory, at once
    assert there.score(parts.X, parts.y) == here.score(X, y)


def test_the_share_of_right_predictions_takes_labels_and_weights_as_fit_does(threads):
    X, y = load_breast_cancer(return_X_y=True)
    weights = np.arange(len(y)) % 4.0
    weights[:300] = 0  # all of a partition's
    table = da.from_array(X, chunks=(200, -1))
    there = AdaBoostThere(client=threads, n_estimators=3)
    there.fit(table, da.from_array(y, chunks=200))
    here = AdaBoostClassifier(n_estimators=3).fit(X, y)
    labels, other = da.from_array(y, chunks=150), da.from_array(weights, chunks=90)
    assert there.score(table, labels, other) == pytest.approx(here.score(X, y, weights))
    frames = (dd.from_pandas(pd.DataFrame(part), npartitions=3) for part in (X, y))
    assert there.score(next(frames).to_dask_array(), next(frames)) == here.score(X, y)
    for bad, words in (
        (da.zeros(len(y)), "sample_weight is zero for every sample"),
        (da.from_array(-weights), "sample_weight contains negative weights"),
        (other[1:], "X and sample_weight have inconsistent numbers of samples: 569 and 568"),
    ):
        with pytest.raises(ValueError, match=words):
            there.score(table, labels, bad)
    with pytest.raises(TypeError, match="y must be a Dask array or frame; got ndarray"):
        there.score(table, y)


def test_chunks_of_unknown_sizes_are_taken_and_predicted(threads):
    X, y = load_breast_cancer(return_X_y=True)
    frame = dd.from_pandas(pd.DataFrame(X).assign(y=y), npartitions=3)
    there = AdaBoostThere(client=threads, n_estimators=5)
    table = frame.drop(columns="y").to_dask_array()
    there.fit(table, frame["y"].to_dask_array())
    check_equal(there, AdaBoostClassifier(n_estimators=5).fit(X, y))
    assert np.array_equal(there.predict(table).compute(), there.estimator.predict(X))


def test_the_model_does_not_depend_on_partitions_or_on_what_shards_compute_with(threads):
    from gpustump.dask import estimators, fitting

    X, y = load_breast_cancer(return_X_y=True)
    digests = set()
    for seed, kind in ((0, "auto"), (1, "arrays"), (2, "kernels")):
        parts = spread(X, y, seed=seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                estimators, "trained_on",
                lambda client, request, kind=kind: fitting.trained_on(
                    client, request._replace(kind=kind)
                ),
            )  # fmt: skip
            found = LogitBoostThere(client=threads, n_estimators=12).fit(*parts)
        digests.add(found.model_.digest())
    assert len(digests) == 1


def test_values_that_do_not_fit_into_memory_go_to_files_that_are_removed(threads, monkeypatch):
    from gpustump.dask import holding

    seen = []
    empty = holding.Store.empty

    def noted(store, shape, dtype):
        found = empty(store, shape, dtype)
        seen.append(isinstance(found, np.memmap))
        return found

    monkeypatch.setattr(holding.Store, "empty", noted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = X[:, 0] + rng.normal(size=4000) > 0
    limit = 4000 * (2 * 20 + 130)  # room for codes and vectors, not for values of 8 bytes
    there = AdaBoostThere(client=threads, n_estimators=9, max_memory=limit)
    there.fit(*spread(X, y))
    check_equal(there, AdaBoostClassifier(n_estimators=9, device="cpu").fit(X, y))
    assert any(seen)
    folders = threads.run(lambda dask_worker: dask_worker.local_directory).values()
    assert not [name for folder in folders for name in os.listdir(folder) if "gpustump" in name]


def test_a_fitted_estimator_is_one_of_one_machine(threads):
    X, y = load_breast_cancer(return_X_y=True)
    clf = AdaBoostClassifier(n_estimators=3)
    assert dask.fit(clf, *spread(X, y)[:2], client=threads) is clf
    kept = pickle.loads(pickle.dumps(clf))
    lazy = dask.predict(kept, da.from_array(X, chunks=(100, -1)))
    assert np.array_equal(lazy.compute(), clf.predict(X))
    assert clf.fit(X, y).model_ == kept.model_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_glass_box_is_that_of_one_machine(threads, n_classes):
    X, y = load_breast_cancer(return_X_y=True) if n_classes == 2 else load_wine(return_X_y=True)
    how = {"n_estimators": 40, "n_bags": 2, "random_state": 3}
    there = GlassBoxThere(client=threads, **how).fit(*spread(X, y)[:2])
    check_equal(there, GlassBoxClassifier(device="cpu", **how).fit(X, y))


def test_traffic_does_not_grow_with_the_rows_and_is_counted(threads):
    rng = np.random.default_rng(0)
    said = []
    for n_rows in (40_000, 160_000):
        X = rng.normal(size=(n_rows, 10)).astype(np.float32)
        y = X[:, 0] + 2 * rng.normal(size=n_rows) > 0
        there = LogitBoostThere(client=threads, n_estimators=8).fit(*spread(X, y))
        said.append(there.cluster_.round_bytes)
        assert there.cluster_.n_messages > 8 * there.cluster_.n_workers
    # Four times the rows have finer bins, up to a limit, and fewer units without a sample.
    assert said[1] < 3 * said[0]
    assert max(said) < 5e5


def test_asking_for_a_gpu_without_cupy_or_an_unknown_device_is_an_error(threads):
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(DeviceError, match="device='cuda' needs CuPy on every worker"):
        AdaBoostThere(client=threads, device="cuda").fit(*spread(X, y))
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'cuda'; got 'tpu'"):
        AdaBoostThere(client=threads, device="tpu").fit(*spread(X, y))


def test_a_cluster_warns_as_one_machine_does_once_for_all_bags(threads):
    X, y = load_wine(return_X_y=True)
    weights = np.full(len(y), 1 / len(y))
    for kind, rate, sample_weight in (
        (AdaBoostThere, 1e6, None),
        (LogitBoostThere, 0.2, weights),
        (LogitBoostThere, 1e-13, weights),
    ):
        how = {"n_estimators": 2, "learning_rate": rate, "n_bags": 2, "random_state": 0}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted(kind, threads, (X, y, sample_weight), **how)
        places = (__file__, on_dask.__file__)
        ours = [str(one.message) for one in caught if one.filename in places]
        assert ours[: len(ours) // 2] == ours[len(ours) // 2 :]
        assert len(ours) == (4 if rate < 1e-9 else 2)
