"""Bad input and hard data: a clear error that leaves the fitted model alone, or a sound model.

Warnings are errors in these tests, so an overflow or a division by zero anywhere would fail them.
Only those about runs that end early are let pass.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from classifiers import CASES, KINDS, drawn
from sklearn.tree import DecisionTreeClassifier

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore:.* made no round", "ignore:votes became too large")

NEWTON = tuple(name for name in KINDS if name.startswith("newton"))

X, Y = drawn()
Y3 = drawn(3)[1]
FRAME = pd.DataFrame(X, columns=list("abcd"))
AT_MOST_3 = np.arange(120) > 3


def objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


@functools.cache
def fitted(cls: type) -> Any:
    quick = {"n_estimators": 2, "device": "cpu", "random_state": 0}
    if cls().n_bags is None:
        quick |= {"n_bags": 2, "interactions": 0}
    return cls(**quick).fit(X, Y)


def check_refused(cls: type, changes: Any, message: str, *data: Any, **more: Any) -> None:
    """A fit with changed parameters, or with these data, is refused; the model stays as it was."""
    estimator = copy.copy(fitted(cls)).set_params(**changes)
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(*data, **more)
    assert estimator.model_ is fitted(cls).model_


FLAWED = {
    "learning_rate": [(0, "must be a finite number above 0; got 0")],
    "n_estimators": [(0, "must be at least 1; got 0")],
    "multi_class": [
        ("ovo", "must be 'one_vs_rest' or 'shared'; got 'ovo'"), (None, "must be .*; got None"),
    ],
    "scoring": [
        ("auc", "must be 'loss', 'accuracy', 'neg_log_loss', 'roc_auc' or 'balanced_accuracy'; "
                "got 'auc'"),
        (None, "must be 'loss'.*got None"), (max, "must be one of 'loss'.*finished classifier"),
    ],
    "l2_regularization": [(-1, "at least 0; got -1"), (math.nan, "got nan")],
    "smoothing_rounds": [(-1, "at least 0; got -1")],
    "n_iter_no_change": [(0, "must be at least 1")],
    "validation_fraction": [(1.0, "must be")],
    "n_bags": [(0, "must be"), (2.5, "must be")],
    "tol": [(-1e-9, "must be a finite number of at least 0")],
    "random_state": [
        ("seed", "must be None, a whole number.*; got 'seed'"), (-1, "must be .*; got -1"),
    ],
    "device": [
        ("tpu", "must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got 'tpu'"), (None, "must be"),
    ],
    "callback": [(3, "must be callable or None; got 3")],
    "verbose": [
        ("loud", "must be a whole number of at least 0; got 'loud'"), (-1, "at least 0; got -1"),
    ],
    "n_jobs": [(0, "must be at least 1")],
    "max_memory": [("much", "must be a number of bytes")],
    "block_bytes": [(0, "must be at least 1")],
    "checkpoint": [
        (3, "must be None, the name of a file or a gpustump.Checkpoint; got 3"),
    ],
    "votes": [
        ("gentle", "must be 'discrete' or 'real'; got"), ("newton", "must be 'discrete' or"),
        (None, "got None"),
    ],
    "weak_learner": [(["stump"], r"must be 'stump' or 'interval'; got \['stump")],
    "estimator": [
        (100, "must be None"), (DecisionTreeClassifier(), "must be None.*got DecisionTree"),
        (DecisionTreeClassifier(max_depth=1, min_samples_leaf=5, max_features=1),
         "must be None.*, with 'max_features', 'min_samples_leaf' of its own"),
        (DecisionTreeClassifier(max_depth=1, class_weight={0: 1}), "with 'class_weight' of its"),
        (DecisionTreeClassifier(max_leaf_nodes=2, monotonic_cst=[1, 0, 0, 0]),
         "with 'monotonic_cst' of its"),
    ],
    "class_weight": [
        ("balance", "must be None, 'balanced' or a dict .*; got 'balance'"),
        (2.0, "must be None, 'balanced' or a dict .*; got 2.0"),
        ({0: -1}, r"\[0\] must be a finite number of at least 0; got -1"),
        ({"a": np.nan}, r"\['a'\] must be .*; got nan"), ({0: "1"}, r"\[0\] must be .*; got '1'"),
        ({0: 1, 7: 2}, "names 7, which y does not hold, but not 1, which y"),
    ],
    "monotonic_cst": [
        ([1, 0], "has 2 values, but X has 4 features"),
        ([1, 0, 2, 0], r"\[2\] must be -1, 0 or 1; got 2"),
        ([[1, 0, 0, 0]], "must be a sequence of -1, 0 or 1, one for each"),
        ("1000", "must be a sequence of -1, 0 or 1, one for each"),
        ({"a": 1}, ".*the features of X have no names"),
    ],
    "categorical_features": [
        ("colour", "must be None, 'from_dtype' or an array-like of bool, int or str, got: 'colo"),
        ([0.5], r"must be .* or an array-like of bool, int or str, got: \[0.5\]"),
        ([[1]], "must be .* or an array-like of bool, int or str"),
        ([True], r"set as a boolean mask must have shape \(n_features,\), got: \(1,\) for 4 feat"),
        ([4], "X has 4 features, 0 to 3; got 4"), ([-5], "0 to 3; got -5"),
        (["a"], "names 'a', but the features of X have no names"),
    ],
}  # fmt: skip
"""Values that each estimator with such a parameter refuses; messages begin with its name.

Numbers that are none, or out of range, are refused in tests/data/test_validation.py.
"""

ESTIMATORS = (
    *(AdaBoostClassifier, LogitBoostClassifier, GlassBoxClassifier),
    *(StumpBoostingRegressor, GlassBoxRegressor),
)


@pytest.mark.parametrize(
    ("cls", "name"),
    [(cls, name) for cls in ESTIMATORS for name in FLAWED if name in cls().get_params()],
)
def test_a_bad_parameter_is_named_with_what_was_found(cls, name):
    for value, message in FLAWED[name]:
        changes = {name: value}
        if name == "validation_fraction":
            changes["n_iter_no_change"] = 5
        check_refused(cls, changes, f"{name}.*{message}", X, Y)


INTERVAL, REGRESSOR = {"weak_learner": "interval"}, StumpBoostingRegressor
QUANTILE = {"loss": "quantile"}


@pytest.mark.parametrize(
    ("cls", "changes", "message"),
    [
        (AdaBoostClassifier, {"votes": "real", **INTERVAL},
         "weak_learner='interval' is for votes='discrete'.*Take weak_learner='stump'"),
        (AdaBoostClassifier, {"multi_class": "shared", **INTERVAL},
         "weak_learner='interval' is for .*multi_class='one_vs_rest'"),
        (AdaBoostClassifier, {"monotonic_cst": [1, 0, 0, 0], **INTERVAL},
         "monotonic_cst is for stumps"),
        (AdaBoostClassifier, {"n_iter_no_change": 5, "validation_fraction": 1e-9},
         "validation_fraction=1e-09 of 120 samples"),
        (AdaBoostClassifier, {"n_bags": 2, "validation_fraction": 0.001},
         "validation_fraction=0.001 of 120 samples"),
        (REGRESSOR, {"loss": "absolute_error"}, "loss must be 'squared_error', 'quantile', 'poiss"),
        (REGRESSOR, {**QUANTILE, "quantile": 1}, "quantile must be below 1; got 1"),
        (REGRESSOR, {**QUANTILE, "quantile": "0.9"}, "quantile must be a finite number above 0"),
        (REGRESSOR, {**QUANTILE, "interactions": "2x"}, "interactions must be 0 for loss='quanti"),
        (REGRESSOR, {**QUANTILE, "monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst is not for loss="),
        (REGRESSOR, {"learning_rate": 1.5}, "learning_rate must be at most 1"),
        (LogitBoostClassifier, {"monotonic_cst": {"aa": 1}},
         "'aa', which X does not have. Did you mean 'a'"),
        (LogitBoostClassifier, {"monotonic_cst": {"b": 3}}, "must be -1, 0 or 1"),
        (LogitBoostClassifier, {"categorical_features": ["size"]},
         "names 'size', which X does not have"),
    ],
)  # fmt: skip
def test_a_bad_choice_is_named(cls, changes, message):
    check_refused(cls, changes, message, FRAME, Y)


LABELS = {
    "too few": (Y[:-1], "X and y have inconsistent numbers of samples: 120 and 119"),
    "two columns": (np.stack([Y, Y], axis=1), r"y must have one dimension.*\(120, 2\)"),
    "NaN": (np.where(AT_MOST_3, np.nan, Y), "y contains NaN, the first at index 4"),
    "None": (np.where(AT_MOST_3, None, Y), "y contains NaN or None, the first at index 4"),
    "infinity": (np.where(AT_MOST_3, np.inf, Y), "y contains infinity"),
    "a quantity": (Y + 0.5, r"Unknown label type: continuous. y holds \d.5;"),
    "complex numbers": (Y + 1j, "y has dtype complex128"),
    "bytes alone": (np.where(Y == 1, b"yes", b"no"), "y has dtype"),
    "none": (None, "y to be passed"),
    "text and numbers": (objects([1, "a"] * 60), "y holds objects of the types int, str; labels"),
    "tuples": (objects([(1, 2), (3, 4)] * 60), "y holds objects of the types tuple; labels may"),
    "wide integers": (objects([1, 2**64] * 60), "y holds integers of more than 64 bits"),
    "wide range": (objects([-1, 2**63] * 60), "y holds integers of more than 64 bits"),
    "None in objects": (objects([1, None] * 60), "y contains NaN or None, the first at index 1"),
    "NaN in text": (["a", float("nan"), "b"] * 40, "y contains NaN or None, .* index 1"),
    "NA": (pd.Series([True, None] * 60, dtype="boolean"), "y contains NaN or None, .* index 1"),
}
WEIGHTS = {
    "too few": (np.ones(3), "X and sample_weight have inconsistent numbers of samples: 120 and 3"),
    "zero": (np.zeros(120), "sample_weight is zero for every sample"),
}
TABLES = {
    "no samples": (X[:0], r"X has 0 sample\(s\)"),
    "a vector": (X[:, 0], "X must have two dimensions"),
}
"""All that may be wrong with weights and tables is tried in tests/data/test_validation.py."""
QUANTITIES = {
    "text": (["a", "b", "c"] * 40, "real numbers"),
    "NaN": ([1.0, np.nan, 2.0] * 40, "y contains NaN, the first at index 1"),
    "infinity": ([1.0, 2.0, np.inf] * 40, "y contains infinity, the first at index 2"),
    "too large": ([1.0, 2.0, 1e305] * 40, r"2\*\*1000 or more, the first at index 2"),
    "too few": ([1.0, 2.0], "inconsistent numbers of samples: 120 and 2"),
    "several": ([[1.0, 2.0]] * 120, "several targets for a sample are not supported"),
    "none": (None, "requires y to be passed"),
}


@pytest.mark.parametrize("cls", [AdaBoostClassifier, GlassBoxClassifier, StumpBoostingRegressor])
def test_bad_data_is_refused_by_name(cls):
    is_quantity = cls is StumpBoostingRegressor
    for y, message in (QUANTITIES if is_quantity else LABELS).values():
        check_refused(cls, {}, message, X, y)
    for weights, message in WEIGHTS.values():
        check_refused(cls, {}, message, X, Y, weights)
    for table, message in TABLES.values():
        check_refused(cls, {}, message, table, Y[: len(table)])
    if not is_quantity:
        heavy = "sample_weight times class_weight contains infinite weights"
        check_refused(cls, {"class_weight": {1: 1e300}}, heavy, X, Y, np.full(120, 1e10))


KNOWN, TWO = np.linspace(-3.0, 3.0, 120), np.ones((120, 2))
COUNT, COST, QUANTITY = {"loss": "poisson"}, {"loss": "gamma"}, {"loss": "squared_error"}
TINY = {"sample_weight": np.where(Y, 1e-25, 1.0)}
OF_QUANTITIES: list[tuple[dict[str, str], Any, dict[str, Any], str]] = [
    (COUNT, Y - 1, {}, "y must be 0 or more for loss='poisson'; got -1.0 at index"),
    (COUNT, 0 * Y, {}, "y is 0 for every sample"),
    (COST, Y, {}, "y must be above 0 for loss='gamma'; got 0.0 at index"),
    (COST, Y + 1, {"exposure": Y + 1}, "exposure is for counts, loss='poisson'"),
    (QUANTITY, Y, {"exposure": Y + 1}, "exposure is for counts"),
    (COUNT, Y, {"exposure": Y}, "exposure must be above 0; got 0.0"),
    (COUNT, Y, {"exposure": [1, 1]}, "exposure"),
    (COUNT, Y, {"init_score": KNOWN * np.nan}, "init_score must be finite; got nan"),
    (COUNT, Y, {"init_score": KNOWN * 1e4}, "init_score must be from -600 to 600"),
    (COUNT, Y, {"exposure_val": [1]}, "exposure_val is given, but X_val is not"),
    (COUNT, Y, {"exposure": Y + 1, "X_val": X, "y_val": Y},
     "exposure is given, but exposure_val is not.*ones"),
    (COUNT, np.where(Y, 0, 9e15), {"exposure": Y + 1e-300}, "must be below 2"),
    (COUNT, Y, TINY, "cannot be learnt exactly"),
]  # fmt: skip
OF_CLASSES: list[tuple[Any, dict[str, Any], str]] = [
    (Y, {"init_score": KNOWN[:-1]}, "inconsistent numbers of samples"),
    (Y, {"init_score": np.where(Y, np.nan, KNOWN)}, "init_score must be finite; got nan"),
    (Y, {"init_score": KNOWN * 1e4}, "init_score must be from -600 to 600; got"),
    (Y, {"init_score": TWO}, r"init_score must have one dimension.* its shape is \(120, 2\)\.$"),
    (Y3, {"init_score": TWO}, "a column for each of the 3 classes"),
    (Y3, {"init_score": KNOWN}, "a column for each of the 3 classes"),
    (Y3, {"init_score": np.ones((119, 3))}, "inconsistent numbers of samples"),
    (Y, {"init_score_val": KNOWN}, "init_score_val is given, but X_val is not"),
    (Y, {"init_score": KNOWN, "X_val": X, "y_val": Y},
     "init_score is given, but init_score_val is not.*zeros"),
]  # fmt: skip


def test_what_is_known_beforehand_is_refused_by_name():
    for changes, y, more, message in OF_QUANTITIES:
        check_refused(StumpBoostingRegressor, changes, message, X, y, **more)
    for y, more, message in OF_CLASSES:
        check_refused(LogitBoostClassifier, {}, message, X, y, **more)
    shared, message = {"multi_class": "shared"}, "Take one of them, or multi_class='one_vs_rest'"
    check_refused(AdaBoostClassifier, shared, message, X, Y3, init_score=np.ones((120, 3)))


def rows(X_val: Any, y_val: Any, sample_weight_val: Any = None) -> dict[str, Any]:
    return {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}


WATCHED = {
    "labels alone": (rows(None, Y), "y_val is given, but X_val is not"),
    "rows alone": (rows(X, None), "X_val is given, but y_val is not"),
    "weights alone": (rows(None, None, Y), "sample_weight_val is given, but X_val is not"),
    "features": (rows(X[:, :3], Y), "X_val: X has 3 features, but .* is expecting 4"),
    "names": (rows(FRAME.rename(columns={"a": "z"}), Y), "X_val: X lacks 1 column .* needs: 'a'"),
    "no rows": (rows(X[:0], Y[:0]), r"X_val: .*0 sample\(s\)"),
    "text": (rows(FRAME.astype({"a": str}), Y), "X_val: .*column 'a' held numbers in training, b"),
    "lengths": (rows(X, Y[:9]), "y_val: X and y have inconsistent numbers .* 120 and 9"),
    "NaN": (rows(X, np.where(Y == 1, np.nan, Y)), "y_val: y contains NaN"),
    "class": (rows(X, Y + 1), "y_val: y holds 2 at index .*, which is none of the"),
    "weights": (rows(X, Y, -1.0 * (Y + 1)), "sample_weight_val contains negative weights"),
    "no weight": (rows(X, Y, 0 * Y), "sample_weight_val is zero for every sample"),
}


@pytest.mark.parametrize("name", WATCHED)
def test_bad_rows_to_watch_are_named(name):
    more, message = WATCHED[name]
    table = FRAME if isinstance(more["X_val"], pd.DataFrame) else X
    for cls in (AdaBoostClassifier, LogitBoostClassifier):
        check_refused(cls, {}, message, table, Y, **more)


class Hard(NamedTuple):
    """A table on which a formula could fail, with labels and perhaps weights."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None


def hard_tables(k: int) -> dict[str, Hard]:
    """Tables of k classes, by what is hard about them."""
    random = np.random.default_rng(1)
    X, y = random.normal(size=(60, 3)), np.arange(60) % k
    x = np.linspace(0, 1, 40, endpoint=False)
    far = X.copy()
    far[::7] *= 1e307
    far[3, 1], far[4, 1], far[5, 0] = np.inf, -np.inf, 5e-324
    one_or_missing = np.where(np.arange(20) % 3, 1.0, np.nan)[:, np.newaxis]
    return {
        "perfectly separable": Hard(np.stack([x, np.sin(9 * x)], axis=1), (x * k).astype(int)),
        "noise": Hard(X, random.integers(0, k, 60)),
        "the same sample with every label": Hard(np.repeat(X[:12], k, axis=0), y[: 12 * k]),
        "constant": Hard(np.ones((20, 2)), y[:20]),
        "all missing": Hard(np.full((20, 2), np.nan), y[:20]),
        "one value or missing": Hard(one_or_missing, y[:20]),
        "as few samples as classes": Hard(np.arange(k, dtype=float)[:, np.newaxis], y[:k]),
        "no difference": Hard(np.zeros((k, 1)), y[:k]),
        "weights from 1e-300 to 1e300": Hard(X, y, 10.0 ** random.uniform(-300, 300, size=60)),
        "one heavy sample": Hard(X, y, np.where(np.arange(60) == 7, 1e300, 1e-300)),
        "one sample of a class": Hard(X, np.where(np.arange(60) == 4, 9, y)),
        "outliers": Hard(far, y),
    }


def check_sound(classifier, data: Hard) -> None:
    """All its predictions are finite and consistent."""
    scores = classifier.decision_function(data.X)
    shares = classifier.predict_proba(data.X)
    assert np.isfinite(scores).all()
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert not np.isnan(classifier.predict_log_proba(data.X)).any()
    np.testing.assert_array_equal(classifier.explain(data.X).sum(axis=-1), scores)
    assert np.isfinite(classifier.feature_importances_).all()
    for rounds in classifier.rounds_:
        numbers = [(r.training_error, *np.ravel(r.vote)) for r in rounds]
        assert np.isfinite(np.asarray(numbers, dtype=float)).all()
    assert set(classifier.stop_reasons_) <= {
        "limit", "no edge", "perfect", "small vote", "large votes",
    }  # fmt: skip


RATES = [1e-12, 0.3, 50.0, 1e6]
NEWTON_STEPS = [(0.3, 0.0), (50.0, 0.0), (1.0, 1e-300), (50.0, 1e300), (1e6, 1e-12)]


@pytest.mark.parametrize("name", hard_tables(2))
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_hard_data_give_a_sound_model_at_any_learning_rate_and_regularization(
    kind, n_classes, name
):
    data = hard_tables(n_classes)[name]
    steps = [(rate, {}) for rate in RATES]
    steps += [(rate, {"l2_regularization": l2}) for rate, l2 in NEWTON_STEPS if kind in NEWTON]
    for rate, more in steps:
        classifier = KINDS[kind](n_estimators=10, learning_rate=rate, **more)
        check_sound(classifier.fit(data.X, data.y, data.weights), data)


def test_2000_rounds_on_separable_data_use_up_the_odds_and_go_on():
    """After some 200 rounds all weights are rounded up to one unit."""
    data = Hard(*(part[::4] for part in hard_tables(2)["perfectly separable"][:2]))
    classifier = LogitBoostClassifier(n_estimators=2000, learning_rate=1.0, l2_regularization=0.0)
    scores = classifier.fit(data.X, data.y).decision_function(data.X)
    assert 900 < np.abs(scores).min() <= np.abs(scores).max() < 1100
    logs = classifier.predict_log_proba(data.X)
    assert not logs[np.arange(len(data.y)), data.y].any()


def test_a_stump_with_several_numbers_has_no_single_vote_and_the_error_says_where_they_are():
    X, y = drawn(2)
    classifier = AdaBoostClassifier(votes="real", n_estimators=3).fit(X, y)
    for name in ("estimator_weights_", "estimator_errors_"):
        with pytest.raises(AttributeError, match=r"see rounds_ and model_\.members"):
            getattr(classifier, name)
        assert not hasattr(classifier, name)
    (member,) = classifier.model_.members
    assert tuple(record.stump for record in classifier.rounds_[0]) == member.hypotheses
