"""Bagged fits: the average of plain fits of the same shares, for any number of threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from backends import Backend
from classifiers import CASES, KINDS, drawn

from gpustump import GlassBoxClassifier, LogitBoostClassifier
from gpustump.boosting.rounds import bags as bagging
from gpustump.data import parameters
from gpustump.model.bags import averaged

HOW = {"n_estimators": 12, "n_iter_no_change": 3, "validation_fraction": 0.2}


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_the_model_is_the_average_of_plain_fits_that_hold_out_the_same(kind, n_classes):
    X, y = drawn(n_classes, missing=0.1)
    bagged = KINDS[kind](**HOW, n_bags=3, random_state=7).fit(X, y)
    state = np.random.RandomState(7)
    single = [KINDS[kind](**HOW, random_state=state).fit(X, y) for _ in range(3)]
    members, owners = averaged([fit.model_.members for fit in single])
    assert bagged.model_.members == members
    assert bagged.model_.bags == owners
    assert bagged.rounds_ == tuple(run for fit in single for run in fit.rounds_)
    assert bagged.stop_reasons_ == tuple(why for fit in single for why in fit.stop_reasons_)
    assert bagged.held_out_scores_ == tuple(r for fit in single for r in fit.held_out_scores_)
    assert bagged.n_iter_ == max(fit.n_iter_ for fit in single)
    assert len({fit.model_.digest() for fit in single}) == 3


def test_without_early_stopping_each_bag_makes_all_rounds_on_its_share():
    X, y = drawn()
    how: dict[str, Any] = {"n_estimators": 6, "validation_fraction": 0.25}
    bagged = LogitBoostClassifier(**how, n_bags=2, random_state=1).fit(X, y)
    state = np.random.RandomState(1)
    never = [
        LogitBoostClassifier(**how, n_iter_no_change=10, random_state=state).fit(X, y)
        for _ in range(2)
    ]
    assert bagged.model_.bags.sizes == ((6, 6),)
    assert bagged.held_out_scores_ == ((), ())
    for own, watched in zip(bagged.rounds_, (fit.rounds_[0] for fit in never), strict=True):
        assert own[: len(watched)] == watched


@pytest.mark.parametrize("kind", ["newton-shared"])
def test_every_number_of_threads_and_every_library_gives_the_same_model(backend: Backend, kind):
    X, y = drawn(3, n_samples=60)
    how = HOW | {"n_estimators": 3, "n_bags": 2, "random_state": 0}
    plain = KINDS[kind](**how, n_jobs=1).fit(X, y)
    there = KINDS[kind](**how).fit(backend.asarray(X), backend.asarray(y))
    assert there.model_.digest() == plain.model_.digest()
    assert there.model_.bags == plain.model_.bags
    low, high = there.predict_proba_interval(backend.asarray(X))
    assert backend.owns(low)
    assert backend.owns(high)


@pytest.mark.parametrize(
    ("n_classes", "few_samples", "n_bags"), [(2, 40, 12), (2, 39, 6), (3, 40, 6)]
)
def test_bags_that_are_not_counted_depend_on_classes_and_samples(
    monkeypatch, n_classes, few_samples, n_bags
):
    """40 of 60 rows have a weight; the others do not count."""
    monkeypatch.setattr(parameters, "FEW_SAMPLES", few_samples)
    X, y = drawn(n_classes, n_samples=60)
    weights = np.tile([1.0, 0.0, 2.0], 20)
    how = HOW | {"random_state": 0}
    usual = GlassBoxClassifier(**how).fit(X, y, weights)
    counted = GlassBoxClassifier(**how, n_bags=n_bags).fit(X, y, weights)
    assert usual.model_.n_bags == n_bags
    assert usual.model_.digest() == counted.model_.digest()


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_an_error_in_one_bag_ends_all_and_leaves_no_model_and_no_thread(monkeypatch, problem):
    X, y = drawn()
    train, lock, calls = bagging.train, threading.Lock(), []

    def fails_once(*given: Any, **named: Any) -> Any:
        with lock:
            calls.append(given)
            is_second = len(calls) == 2
        if is_second:
            raise problem("in a bag")
        return train(*given, **named)

    monkeypatch.setattr(bagging, "_SMALL", 0)
    monkeypatch.setattr(bagging, "_MEDIUM", 0)
    monkeypatch.setattr(bagging, "train", fails_once)
    fit = LogitBoostClassifier(n_estimators=100_000, learning_rate=1e-6, n_bags=8, n_jobs=2)
    with pytest.raises(problem, match="in a bag"):
        fit.fit(X, y)
    assert not hasattr(fit, "model_")
    assert len(calls) < 8
    assert not [one for one in threading.enumerate() if one.name.startswith("gpustump-bag")]
