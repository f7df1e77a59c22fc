"""Sparse tables on a cluster give the model of one machine; predictions stay lazy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clusters import WATCHED, check_equal, clone, cut, fitted_here, lose_one

import gpustump.dask
from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)

N, RNG = 240, np.random.default_rng(0)
X = np.where(RNG.random((N, 8)) < 0.2, RNG.normal(size=(N, 8)).round(1), 0.0)
X[RNG.random((N, 8)) < 0.03] = np.nan
SIGNAL = np.nan_to_num(X) @ RNG.normal(size=8) + 0.3 * RNG.normal(size=N)
WEIGHTS = RNG.integers(0, 3, N) * 0.7
TWO, THREE = SIGNAL > 0, np.digitize(SIGNAL, [-0.3, 0.3])
ESTIMATORS: dict[str, tuple[Any, np.ndarray]] = {
    "discrete": (AdaBoostClassifier(n_estimators=9, class_weight="balanced"), TWO),
    "newton": (LogitBoostClassifier(n_estimators=9, n_iter_no_change=3, random_state=1), THREE),
    "quantity": (StumpBoostingRegressor(n_estimators=9), SIGNAL),
    "glass box": (GlassBoxClassifier(n_estimators=9, n_bags=2, random_state=3), TWO),
}
CUTS = [(N,), (100, 140), (0, 1, 79, 160)]


def sparse(values: np.ndarray, *sizes: int, kind: Callable[..., Any] = sp.csr_matrix) -> Any:
    return cut(values, *sizes).map_blocks(kind)


TABLE = sparse(X, 100, 140), cut(TWO, 100, 140)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_sparse_table_gives_the_model_of_one_machine(name: str, threads: Any) -> None:
    estimator, y = ESTIMATORS[name]
    watched = (X[:60], y[:60], WEIGHTS[:60] + 1) if name == "newton" else ()
    here = fitted_here(estimator, (sp.csr_matrix(X), y, WEIGHTS), watched)
    check_equal(here, fitted_here(estimator, (X, y, WEIGHTS), watched))
    for sizes, kind in zip(CUTS, (sp.csr_matrix, sp.csc_array, sp.coo_array), strict=True):
        own = dict(zip(WATCHED, (cut(part, 20, 40) for part in watched), strict=False))
        data = sparse(X, *sizes, kind=kind), cut(y, *sizes), cut(WEIGHTS, N // 2, N // 2)
        there = gpustump.dask.fit(clone(estimator), *data, client=threads, **own)
        check_equal(there, here)
        assert there.get_params() == estimator.get_params()
        assert str(there.cluster_).startswith("one worker")


def test_initial_scores_of_classes_come_along(threads: Any) -> None:
    scores = np.stack([SIGNAL, -SIGNAL, 0.0 * SIGNAL], axis=1)
    here = LogitBoostClassifier(n_estimators=5, device="cpu")
    here.fit(X, THREE, init_score=scores)
    data, known = (sparse(X, 100, 140), cut(THREE, 100, 140)), cut(scores, N // 2, N // 2)
    there = gpustump.dask.fit(clone(here), *data, init_score=known, client=threads)
    check_equal(there, here)
    found = gpustump.dask.predict_proba(there, data[0], init_score=known).compute()
    assert np.array_equal(found, here.predict_proba(X, init_score=scores))


def test_a_warm_start_goes_on_from_the_earlier_rounds(threads: Any) -> None:
    there = AdaBoostClassifier(n_estimators=4, warm_start=True)
    for n_rounds in (4, 9):
        gpustump.dask.fit(there.set_params(n_estimators=n_rounds), *TABLE, client=threads)
    check_equal(there, fitted_here(AdaBoostClassifier(n_estimators=9), (X, TWO)))


@pytest.mark.parametrize("name", ["newton", "quantity"])
def test_predictions_of_sparse_blocks_are_lazy_and_those_of_one_machine(name: str) -> None:
    estimator, y = ESTIMATORS[name]
    here, table = fitted_here(estimator, (X, y)), sparse(X, *CUTS[2])
    for method in ("predict",) if name == "quantity" else ("predict_proba", "decision_function"):
        for given in (table, table.rechunk((80, 3))):
            found = getattr(gpustump.dask, method)(here, given)
            assert isinstance(found, da.Array)
            np.testing.assert_array_equal(found.compute(), getattr(here, method)(X))
    assert gpustump.dask.score(here, table, cut(y, N)) == pytest.approx(here.score(X, y))


def test_another_worker_trains_if_one_is_lost(few: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inner, workers = AdaBoostClassifier.fit, []
    here = fitted_here(AdaBoostClassifier(n_estimators=9), (X, TWO))

    def losing(*data: Any, **how: Any) -> Any:
        workers.append(distributed.get_worker().address)
        if len(workers) == 1:
            lose_one(few, random.Random(0), workers)
        return inner(*data, **how)

    monkeypatch.setattr(AdaBoostClassifier, "fit", losing)
    there = gpustump.dask.fit(AdaBoostClassifier(n_estimators=9), *TABLE, client=few)
    assert len(set(workers)) == 2
    check_equal(there, here)


def test_a_frame_of_sparse_columns_keeps_its_names(threads: Any) -> None:
    frame = pd.DataFrame(np.nan_to_num(X), columns=list("abcdefgh")).astype(
        pd.SparseDtype(float, 0)
    )
    here = AdaBoostClassifier(n_estimators=9).fit(frame, TWO)
    table, labels = (dd.from_pandas(own, npartitions=3) for own in (frame, pd.Series(TWO)))
    there = gpustump.dask.fit(AdaBoostClassifier(n_estimators=9), table, labels, client=threads)
    check_equal(there, here)
    assert list(there.feature_names_in_) == list(frame.columns)
    found = gpustump.dask.predict(there, table)
    np.testing.assert_array_equal(found.compute(), here.predict(frame))


UNKNOWN = da.from_delayed(dask.delayed(sp.csr_matrix)(X), X.shape, dtype=float)
ADA = AdaBoostClassifier
REFUSED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], str]] = {
    "callback": (ADA(callback=print), TABLE, {}, "callback is for the process that calls fit"),
    "checkpoint": (ADA(checkpoint="a"), TABLE, {}, "checkpoint is for the process that calls fit"),
    "y in memory": (ADA(), (TABLE[0], TWO), {}, "y must be a Dask array or frame"),
    "unknown": (ADA(), (UNKNOWN, cut(TWO, N)), {}, "partition is sparse, and Dask does not know"),
    "only watched": (
        ADA(), (cut(X, N), cut(TWO, N)), {"X_val": TABLE[0], "y_val": TABLE[1]},
        "if only rows to watch are sparse, make these dense",
    ),
    "dense": (
        ADA(), (cut(X, N), cut(TWO, N)), {"init_score": cut(SIGNAL, N)},
        "init_score is for quantities here; of classes, for one machine",
    ),
    "from the worker": (ADA(votes="own"), TABLE, {}, "votes must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_on_is_refused(name: str, threads: Any) -> None:
    estimator, data, watched, text = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=text):
        gpustump.dask.fit(estimator, *data, client=threads, **watched)
    assert not hasattr(estimator, "model_")
