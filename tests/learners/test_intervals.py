"""Intervals as weak learner: as exact as stumps, the same everywhere, and treated like them."""

from __future__ import annotations

import functools
import math
import re

import numpy as np
import pytest
from awkward_tables import ABOUT_LIBRARIES, made
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from models_by_hand import bits, scores_by_hand, skip_if_costly, skip_if_lacking, trained

from gpustump import (
    AdaBoostClassifier,
    Interval,
    Stump,
    StumpEnsemble,
    boost,
    fit_interval,
    fit_stump,
)

N_ROUNDS = 8
NAMES = ABOUT_LIBRARIES[::5]
"""A fifth of the tables on which stumps are compared: weights, tables and rounds are the same."""


@functools.cache
def reference(name: str) -> StumpEnsemble:
    return trained(NUMPY, made(name), N_ROUNDS, None, weak_learner="interval")


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


@pytest.mark.parametrize("name", NAMES)
def test_models_and_scores_are_the_same_in_every_library_and_by_hand(backend: Backend, name: str):
    data = made(name)
    skip_if_lacking(backend, data)
    skip_if_costly(backend, NAMES.index(name))
    model = trained(backend, data, N_ROUNDS, None, weak_learner="interval")
    assert model.members == reference(name).members
    assert model.digest() == reference(name).digest()
    decision = model.decision_function(backend.asarray(data.X))
    assert bits(backend.to_numpy(decision)) == bits(scores_by_hand(model, data.X))


def test_the_data_compared_make_intervals_as_well_as_stumps():
    kinds = [type(s) for name in NAMES for s in reference(name).members[0].stumps]
    assert kinds.count(Interval) > 10
    assert kinds.count(Stump) > 2


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(1, 3))
def test_an_interval_is_never_worse_than_the_best_stump_and_else_is_it(seed, n_samples, n_features):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n_samples, n_features)).astype(np.float32)
    y, weights = rng.choice([-1, 1], size=n_samples), rng.integers(1, 5, size=n_samples)
    y[:2] = [1, -1]
    stump, interval = fit_stump(X, y, weights), fit_interval(X, y, weights)
    assert interval.error <= stump.error
    if interval.error < stump.error or stump.is_constant:
        return  # of equally good ones, constants come last
    if interval.feature == stump.feature:
        assert interval == stump


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


@pytest.mark.parametrize("done", [1, 12])
def test_resumed_rounds_are_those_of_an_uninterrupted_run(backend: Backend, done: int):
    skip_if_costly(backend, done)
    X, y, model = boosted()
    run = boost(backend.asarray(X), backend.asarray(y), n_rounds=12, weak_learner="interval")
    member = model.members[0]
    run.resume(member.stumps[:done], member.votes[:done])
    assert [record.stump for record in run] == list(member.stumps[done:])
    assert run.model.digest() == model.digest()


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


def test_the_estimator_boosts_intervals_stops_early_and_goes_on_with_them():
    X, y, model = boosted()
    whole = AdaBoostClassifier(n_estimators=12, weak_learner="interval").fit(X, y)
    parts = AdaBoostClassifier(n_estimators=5, weak_learner="interval", warm_start=True).fit(X, y)
    parts.set_params(n_estimators=12).fit(X, y)
    assert whole.model_.digest() == parts.model_.digest() == model.digest()
    fitted = AdaBoostClassifier(
        n_estimators=100, weak_learner="interval", n_iter_no_change=5, random_state=0
    ).fit(X, y)
    assert fitted.stop_reasons_ == ("early",)
    assert len(fitted.held_out_errors_[0]) == fitted.model_.n_rounds + 5
    fitted = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)
    fitted.set_params(n_estimators=8, weak_learner="interval").fit(X, y)
    kinds = [type(stump) for stump in fitted.model_.members[0].stumps]
    assert kinds[:4] == [Stump] * 4
    assert Interval in kinds[4:]
    assert fitted.rounds_[0][-1].training_error == np.mean(fitted.predict(X) != y)
    for bad in ("tree", "Stump", None, 1, ["stump"]):
        with pytest.raises(ValueError, match="weak_learner must be 'stump' or 'interval'"):
            boost(X, y, weak_learner=bad)
        with pytest.raises(ValueError, match="weak_learner must be"):
            AdaBoostClassifier(weak_learner=bad).fit(X, y)


@pytest.mark.parametrize("kernels", ["reference", "sorted", "coded"])
def test_a_limit_of_memory_does_not_move_the_model(monkeypatch, kernels):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 3)).astype(np.float32)
    y = np.where(np.abs(X[:, 0]) + rng.normal(size=len(X)) < 0.8, 1, -1)
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    with pytest.raises(ValueError, match="takes at least") as refused:
        boost(X, y, weak_learner="interval", max_memory=1000)
    least = int(re.search(r"at least (\d+) bytes", str(refused.value))[1])
    runs = [
        boost(X, y, weak_learner="interval", n_rounds=4, max_memory=limit)
        for limit in (None, least, 2 * least)
    ]
    assert len({(len(list(run)), run.model.digest()) for run in runs}) == 1
