"""A sparse table gives what its dense form gives: the model, the fit's record, all predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)

SHARED, APART = {"multi_class": "shared"}, {"multi_class": "one_vs_rest"}
STOPPED = {"n_iter_no_change": 3, "validation_fraction": 0.3}
KINDS: dict[str, tuple[Any, dict[str, Any], int]] = {
    "discrete": (AdaBoostClassifier, STOPPED | {"class_weight": "balanced"}, 2),
    "discrete, apart": (AdaBoostClassifier, APART, 3),
    "real, shared": (AdaBoostClassifier, SHARED | {"votes": "real"}, 3),
    "newton": (LogitBoostClassifier, {"smoothing_rounds": 5, "l2_regularization": 0.0}, 2),
    "newton, shared": (LogitBoostClassifier, SHARED | STOPPED, 3),
    "newton, apart": (LogitBoostClassifier, APART | {"learning_rate": 1.0}, 3),
    "glass box": (GlassBoxClassifier, {"n_bags": 2, "interactions": 2}, 2),
    "squared error": (StumpBoostingRegressor, {"learning_rate": 1.0}, 0),
    "poisson": (StumpBoostingRegressor, {"loss": "poisson", "smoothing_rounds": 5}, 0),
    "gamma": (GlassBoxRegressor, {"loss": "gamma", "n_bags": 2, "interactions": 1}, 0),
}
EXTREME = [1e300, -1e300, 5e-324, -5e-324, np.inf, -np.inf, 3.0, -3.0, 0.1]


def table(rng: np.random.Generator, n_rows: int, n_features: int, dtype: str) -> np.ndarray:
    """Mostly zeros; a column has nothing else, one is missing altogether, and two are equal."""
    shape = n_rows, n_features
    values = rng.choice(EXTREME, shape) if rng.random() < 0.4 else rng.integers(-2, 4, shape) * 1.0
    X = np.where(rng.random(shape) < rng.choice([0.05, 0.3, 0.9]), values, 0.0)
    if dtype.startswith("float"):
        X[rng.random(shape) < 0.05] = X[:, 1] = np.nan
    else:
        X = np.clip(X, 0 if dtype == "uint64" else -9, 9)
    X[:, 0], X[:, 3] = 0.0, X[:, 2]
    with np.errstate(over="ignore"):
        return X.astype(dtype)


def read_only(X: np.ndarray) -> sp.coo_array:
    """The table as SciPy holds it; tests/engines/test_sparse.py tries all forms."""
    found = sp.coo_array(X)
    for own in (found.data, *found.coords):
        own.flags.writeable = False
    return found


@pytest.mark.filterwarnings("ignore:values are missing in features:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_sparse_table_gives_all_that_its_dense_form_gives(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    dtype = ("float64", "float32", "int8", "uint64")[seed]
    X, other = (table(rng, n_rows, 6, dtype) for n_rows in (120, 30))
    signal = np.clip(np.nan_to_num(X.astype(float)), -3, 3) @ rng.normal(size=6)
    signal += 0.3 * rng.normal(size=len(X))
    estimator, how, n_classes = KINDS[kind]
    y = np.exp(signal / 3).round(2) + 0.01
    if n_classes:
        y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    weights = rng.choice([0.0, 1.0, 2.5], len(X)) if seed % 2 else None
    watched = {} if kind.startswith("g") else {"y_val": y[:40]}
    given, seen = read_only(X), read_only(X[:40]) if watched else None
    here = estimator(n_estimators=20, random_state=0, **how)
    here.fit(X, y, weights, **watched, **({"X_val": X[:40]} if watched else {}))
    there = estimator(n_estimators=20, random_state=0, **how)
    there.fit(given, y, weights, **watched, **({"X_val": seen} if watched else {}))
    np.testing.assert_array_equal(given.toarray(), X)
    assert there.model_.digest() == here.model_.digest()
    for name in ("evals_result_", "stop_reasons_", "rounds_", "held_out_errors_"):
        assert str(getattr(there, name)) == str(getattr(here, name)), name
    rows = read_only(other)
    for method in ("predict", "predict_proba", "decision_function", "contribution_importances"):
        if hasattr(here, method):
            found = getattr(there, method)(rows)
            np.testing.assert_array_equal(found, getattr(here, method)(other), err_msg=method)
    for found, wanted in zip(there.staged_predict(rows), here.staged_predict(other), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["discrete", "newton, shared", "glass box", "gamma"])
def test_explanations_of_a_sparse_table_are_the_dense_ones_against_a_row_of_zeros(
    kind: str,
) -> None:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((150, 6)) < 0.3, rng.normal(size=(150, 6)).round(1), 0.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    signal = np.nan_to_num(X) @ rng.normal(size=6)
    estimator, how, n_classes = KINDS[kind]
    y = np.digitize(signal, np.arange(1, n_classes) - 1.5) if n_classes else np.exp(signal)
    model = estimator(n_estimators=20, random_state=0, **how).fit(sp.csr_array(X), y)
    found = model.explain(sp.csr_array(X))
    found = [own.toarray() for own in (found if isinstance(found, list) else [found])]
    zero, dense = model.explain(np.zeros((1, 6))), model.explain(X)
    change = (dense - zero).reshape(len(X), len(found), -1)
    for output, own in enumerate(found):
        np.testing.assert_array_equal(own[:, :-1], change[:, output, :-1])
        wanted = dense.reshape(change.shape)[:, output].sum(axis=1)
        np.testing.assert_array_equal(own.sum(axis=1), wanted)
