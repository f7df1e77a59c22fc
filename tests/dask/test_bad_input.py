"""Data that cannot be trained on are refused with a message that says what to do; nothing is left
behind on the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from clusters import WATCHED, client_of, closed, cut, fitted, spread
from sklearn.exceptions import NotFittedError

import gpustump.dask
from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    Member,
    StumpBoostingRegressor,
    StumpEnsemble,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
TABLE, LABELS = cut(X, 30, 30, 30), cut(Y, 30, 30, 30)


def parts(values: Any) -> Any:
    return cut(np.asarray(values), 30, 30, 30)


def lazily(values: np.ndarray) -> Any:
    """An array whose dtype Dask does not know."""
    return da.from_delayed(dask.delayed(np.asarray)(values), values.shape, dtype=object)


def of(kind: Callable[..., Any] = AdaBoostClassifier, **how: Any) -> Any:
    return kind(n_estimators=3, **how)


NONE_OF_Y = da.from_array(Y[:0], chunks=1)
REFUSED: dict[str, tuple[Any, tuple[Any, ...], type[Exception], str]] = {
    "X in memory": (of(), (X, LABELS), TypeError, "X must be a Dask array or frame"),
    "y in memory": (of(), (TABLE, Y), TypeError, "y must be a Dask array or frame"),
    "no y": (of(), (TABLE, None), ValueError, "requires y to be passed"),
    "rows": (of(), (TABLE, cut(Y[:60], 30, 30)), ValueError, "inconsistent numbers of samples"),
    "dimensions": (of(), (da.zeros((90, 3, 2)), LABELS), ValueError, "must have two dimensions"),
    "NaN": (of(), (TABLE, parts(np.where(Y, 1.0, np.nan))), ValueError, "y contains NaN"),
    "text and numbers": (
        of(), (cut(X, 45, 45), da.concatenate([lazily(Y[:45]), lazily(np.full(45, "b"))])),
        TypeError, "y holds text in some partitions and numbers in others",
    ),
    "negative weights": (
        of(), (TABLE, LABELS, parts(X[:, 0])), ValueError, "sample_weight contains negative weights"
    ),
    "weights of zero": (
        of(), (TABLE, LABELS, parts(0.0 * Y)), ValueError, "sample_weight is zero for every sample"
    ),
    "no rows": (of(), (cut(X[:0], 0), NONE_OF_Y), ValueError, r"0 sample\(s\)"),
    "text columns": (
        of(), (dd.from_pandas(pd.DataFrame({"a": ["x", "y"] * 45}), npartitions=3), LABELS),
        ValueError, "columns that do not hold numbers",
    ),
    "partitions": (
        of(), (dd.from_pandas(pd.DataFrame(X), npartitions=3),
        dd.from_pandas(pd.Series(Y), npartitions=2)), ValueError, "X has 3 partitions and y has 2",
    ),
    "an unknown class": (
        of(class_weight={0: 1, 7: 2}), (TABLE, LABELS), ValueError,
        "class_weight names 7, which y does not hold, but not 1",
    ),
    "classes of no weight": (
        of(class_weight={0: 0, 1: 0}), (TABLE, LABELS), ValueError,
        "sample_weight times class_weight is zero for every sample",
    ),
    "infinite weights": (
        of(class_weight={0: 1e300}), (TABLE, LABELS, parts(np.full(90, 1e10))), ValueError,
        "sample_weight times class_weight contains infinite weights",
    ),
    "constrained classes": (
        of(monotonic_cst=[1, 0, 0]), (TABLE, parts(np.arange(90) % 3)), ValueError,
        "monotonic_cst is for two classes",
    ),
    "intervals": (
        of(weak_learner="interval"), (TABLE, LABELS), ValueError,
        "weak_learner='interval' is not for clusters",
    ),
    "one stump": (
        DecisionStumpClassifier(), (TABLE, LABELS), TypeError, "which is fitted on one machine"
    ),
    "a model": (
        StumpEnsemble((Member((), ()),), 3), (TABLE, LABELS), TypeError, "map_partitions"
    ),
    "no estimator": ("AdaBoost", (TABLE, LABELS), TypeError, "estimator must be an AdaBoostClass"),
    "quantiles on GPUs": (
        of(StumpBoostingRegressor, loss="quantile", device="cuda"), (TABLE, LABELS), ValueError,
        "loss='quantile' is not for workers with GPUs: take device='cpu'",
    ),
    "negative counts": (
        of(StumpBoostingRegressor, loss="poisson"), (TABLE, parts(Y - 1.0)), ValueError,
        "y must be 0 or more for loss='poisson'",
    ),
    "quantities of no weight": (
        of(StumpBoostingRegressor), (TABLE, LABELS, parts(0.0 * Y)), ValueError,
        "sample_weight is zero for every sample",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_on_is_refused_in_words(threads, name):
    estimator, given, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        gpustump.dask.fit(estimator, *given, client=threads)
    assert not hasattr(estimator, "model_")


NOTHING = da.from_array(X[:0], chunks=(1, 3))
REFUSED_TO_WATCH: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "in memory": ((X, LABELS), TypeError, "X_val and y_val: X must be a Dask"),
    "rows alone": ((TABLE,), ValueError, "X_val is given, but y_val is not"),
    "no rows": ((NOTHING, NONE_OF_Y), ValueError, r"X_val has 0 sample\(s\)"),
    "features": ((parts(X[:, :2]), LABELS), ValueError, "X_val and y_val: X has 2 features"),
    "a class": ((TABLE, LABELS + 1), ValueError, "y_val holds 2, but the classes of y"),
    "one class": ((TABLE, LABELS * 0), ValueError, "in y_val, but none is of class 1"),
    "no weight": ((TABLE, LABELS, LABELS * 0.0), ValueError, "sample_weight_val is zero"),
    "negative": ((TABLE, LABELS, -1.0 - LABELS), ValueError, "contains negative weights"),
}


@pytest.mark.parametrize("name", REFUSED_TO_WATCH)
def test_bad_rows_to_watch_are_refused_in_words(threads, name):
    given, kind, words = REFUSED_TO_WATCH[name]
    estimator, own = of(scoring="balanced_accuracy"), dict(zip(WATCHED, given, strict=False))
    with pytest.raises(kind, match=words) as e:
        gpustump.dask.fit(estimator, *spread(X, Y), **own, client=threads)
    if name == "negative":
        assert any("in partition 0 of X_val and y_val" in note for note in e.value.__notes__)


def test_partitions_of_unknown_sizes_that_do_not_match_are_refused_by_number(threads):
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    own = [(Y[:20], 1), (Y[20:], 2)]
    labels = dd.concat([dd.from_pandas(pd.Series(y), npartitions=n) for y, n in own])
    with pytest.raises(
        ValueError, match="this partition of X has 30 rows and that of y has 20"
    ) as e:
        gpustump.dask.fit(of(), frame, labels.to_dask_array(), client=threads)
    assert any("in partition 0 of the data" in note for note in e.value.__notes__)


def test_what_cannot_be_predicted_or_scored_is_refused_in_words():
    clf, reg = of(), of(StumpBoostingRegressor).fit(X, Y)
    with pytest.raises(NotFittedError):
        gpustump.dask.predict(clf, TABLE)
    clf.fit(X, Y)
    with pytest.raises(TypeError, match="X must be a Dask array or frame; got ndarray"):
        gpustump.dask.predict(clf, X)
    with pytest.raises(ValueError, match="3 features"):
        gpustump.dask.predict(clf, cut(X[:, :2], 90))
    for method in (gpustump.dask.predict_proba, gpustump.dask.decision_function):
        with pytest.raises(TypeError, match="predicts a quantity: take gpustump"):
            method(reg, TABLE)
    with pytest.raises(TypeError, match="y must be a Dask array or frame; got ndarray"):
        gpustump.dask.score(clf, TABLE, Y)
    for weights, words in (
        (LABELS * 0.0, "sample_weight is zero for every sample"),
        (-1.0 - LABELS, "sample_weight contains negative weights"),
        (parts(Y)[1:] * 1.0, "X and sample_weight have inconsistent numbers of samples: 90 and 89"),
    ):
        for model in (clf, reg):
            with pytest.raises(ValueError, match=words):
                gpustump.dask.score(model, TABLE, LABELS, weights)


def test_a_client_need_not_be_the_current_one_but_must_be_open(monkeypatch):
    client = client_of(n_workers=1, processes=False, is_current=False)
    try:
        assert fitted(client, of(), (X, Y)).cluster_.n_workers == 1
        with client.as_current():
            assert fitted(None, of(), (X, Y)).cluster_.n_workers == 1
    finally:
        closed(client)
    with pytest.raises(ValueError, match="the Dask client is closed"):
        fitted(client, of(), (X, Y))

    def absent() -> None:
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr("distributed.get_client", absent)
    with pytest.raises(ValueError, match="there is no Dask client: make one first"):
        fitted(None, of(), (X, Y))
