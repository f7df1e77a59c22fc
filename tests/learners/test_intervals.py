"""Intervals as weak learner: as exact as stumps, the same everywhere, and treated like them."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from gpustump import AdaBoostClassifier, Interval, Stump, StumpEnsemble, boost, fit_stump


@functools.cache
def boosted() -> tuple[np.ndarray, np.ndarray, StumpEnsemble]:
    """Labels that depend on whether a value is near zero, and on missing ones; and a model."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.abs(np.nan_to_num(X[:, 1])) + 0.4 * rng.normal(size=300) < 0.7, 1, -1)
    run = boost(X, y, n_rounds=12, weak_learner="interval")
    list(run)
    return X, y, run.model


def test_training_error_is_that_of_the_predictions():
    X, y, model = boosted()
    run = boost(X, y, n_rounds=12, weak_learner="interval")
    for record, decision in zip(run, model.staged_decision_function(X), strict=True):
        assert record.training_error == np.mean((decision > 0) != (y > 0))
        assert record.training_error <= record.training_bound
    X = np.random.default_rng(0).uniform(size=(500, 3))
    y = np.where((X[:, 2] > 0.3) & (X[:, 2] <= 0.6), 1, -1)
    run = boost(X, y, weak_learner="interval")
    (record,) = run
    assert (record.error, record.training_error, run.stop_reason) == (0.0, 0.0, "perfect")
    assert fit_stump(X, y).error > 0.25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 2.0}, "low must be below high"),
        ({"low": math.nan}, "low must be below high"),
        ({"high": math.inf}, "high finite"),
        ({"polarity": 0}, "polarity must be"),
        ({"missing": 2}, "missing must be"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(change, message):
    fields = {"feature": 0, "low": 0.0, "high": 1.0, "polarity": 1, "missing": -1, "error": 0.1}
    with pytest.raises(ValueError, match=message):
        Interval(**(fields | change))


def test_bounds_learnt_in_float64_part_float32_values_as_real_numbers():
    low, high = 0.1, float(np.nextafter(np.float32(0.3), np.float32(0), dtype=np.float32))
    interval = Interval(0, low, high, 1, -1, 0.0)
    values = np.asarray([[0.1], [np.nextafter(np.float32(0.1), np.float32(0))], [0.3], [high]])
    predicted = interval.predict(values.astype(np.float32))
    exact = [1 if low < float(np.float32(v[0])) <= high else -1 for v in values.tolist()]
    assert predicted.tolist() == exact


def test_a_warm_start_may_go_on_with_intervals():
    X, y, model = boosted()
    whole = AdaBoostClassifier(n_estimators=12, weak_learner="interval").fit(X, y)
    assert whole.model_.digest() == model.digest()
    fitted = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)
    fitted.set_params(n_estimators=8, weak_learner="interval").fit(X, y)
    kinds = [type(stump) for stump in fitted.model_.members[0].stumps]
    assert kinds[:4] == [Stump] * 4
    assert Interval in kinds[4:]
    assert fitted.rounds_[0][-1].training_error == np.mean(fitted.predict(X) != y)
