"""Which fits warn that they are not what was asked for, and which do not.

Warnings are errors in all tests, so a fit that should not warn needs no more than to be made.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)

EVERY_CASE = pytest.mark.parametrize(("kind", "n_classes"), CASES)


def said(fit: Any) -> tuple[Any, list[str]]:
    """What a fit returns, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit()
    assert {one.filename for one in caught} <= {__file__}  # they point to the caller
    return found, [str(one.message) for one in caught]


@pytest.mark.parametrize("n_bags", [1, 3])
@EVERY_CASE
def test_votes_that_are_too_large_or_0_in_the_first_round_give_one_warning(kind, n_classes, n_bags):
    X, y = drawn(n_classes)
    how = {"n_estimators": 4, "n_bags": n_bags, "random_state": 0, "device": "cpu"}
    fit, (message,) = said(lambda: KINDS[kind](learning_rate=1e6, **how).fit(X, y))
    runs = len(fit.rounds_)
    assert fit.n_iter_ == 0
    assert f"{'the fit' if runs == 1 else f'{runs} of {runs} runs'} ended after 0 rounds" in message
    assert message.endswith("Take a smaller learning_rate than 1e+06.")
    fit, (message,) = said(lambda: KINDS[kind](learning_rate=1e-13, **how).fit(X, y))
    assert fit.n_iter_ == 0
    assert "made no round, as all votes round to 0: learning_rate=1e-13 is too small" in message
    assert ("or l2_regularization=" in message) == kind.startswith("newton")
    if kind.startswith("newton"):
        _, (message,) = said(lambda: KINDS[kind](**how).fit(X, y, np.full(len(y), 1 / len(y))))
        assert "the sample weights are small" in message


def test_votes_that_become_too_large_are_told_with_the_rounds_that_were_made():
    X, y = drawn(3, n_samples=200)
    classifier = KINDS["newton"](n_estimators=50, learning_rate=2000.0, device="cpu")
    fit, (message,) = said(lambda: classifier.fit(X, y))
    done = sorted(map(len, fit.rounds_))
    assert 0 < done[0] < done[-1] < 50
    assert f"3 of 3 runs ended after {done[0]} to {done[-1]} rounds" in message


@EVERY_CASE
def test_features_that_say_nothing_give_one_warning(kind, n_classes):
    X, y = np.ones((30, 2)), np.arange(30) % n_classes
    fit, found = said(lambda: KINDS[kind](n_estimators=4, device="cpu").fit(X, y))
    assert [text for text in found if "no cut of any feature" in text] == found
    assert len(found) == (fit.n_iter_ == 0)
    assert found or all("inf" in str(run[0].stump) for run in fit.rounds_)  # a constant is a round


def test_a_fit_that_ends_as_it_should_does_not_warn():
    X, y = drawn(2)
    apart = (X[:, 0] > 0).astype(int)
    perfect = AdaBoostClassifier().fit(X, apart)
    assert perfect.stop_reasons_ == ("perfect",)
    early = LogitBoostClassifier(n_iter_no_change=2, random_state=0).fit(X, y)
    assert early.stop_reasons_ == ("early",)
    called = AdaBoostClassifier(callback=lambda record: True).fit(X, y)
    assert called.stop_reasons_ == ("callback",)
    learnt = LogitBoostClassifier(n_estimators=500, learning_rate=1.0).fit(X[:9], apart[:9])
    assert learnt.stop_reasons_ in (("limit",), ("small vote",))


BREAST_CANCER = load_breast_cancer(return_X_y=True)


@pytest.mark.filterwarnings("ignore:the fit made no round, as all votes round to 0")
@pytest.mark.parametrize("scale", [1 / 569, 1e-12, 1e-300])
def test_small_weights_are_told_and_both_ways_out_are_right(scale):
    X, y = BREAST_CANCER
    train, rest = slice(0, None, 2), slice(1, None, 2)

    def loss(weights: Any, **how: Any) -> float:
        fit = LogitBoostClassifier(device="cpu", **how).fit(X[train], y[train], weights)
        return log_loss(y[rest], fit.predict_proba(X[rest]))

    n = len(y[train])
    wanted = loss(None)
    weights = np.full(n, scale)
    with pytest.warns(UserWarning, match="weights are small against l2_regularization=3") as caught:
        worse = loss(weights)
    assert worse > 2 * wanted
    message = str(caught[0].message)
    assert f"their mean is {scale:.3g}" in message
    assert loss(weights / weights.mean()) == pytest.approx(wanted, rel=1e-6)
    advice = float(re.search(r"take l2_regularization=(.*)\.", message)[1])  # type: ignore[index]
    assert loss(weights, l2_regularization=advice) == pytest.approx(wanted, rel=0.02)


def test_the_preset_class_weights_and_the_unit_of_counts_count_too():
    X, y = drawn(3)
    small, how = np.full(len(y), 1 / len(y)), {"n_estimators": 2, "device": "cpu"}
    with pytest.warns(UserWarning, match=r"small against l2_regularization=0\.1"):
        GlassBoxClassifier(n_bags=1, interactions=0, random_state=0, **how).fit(X, y, small)
    with pytest.warns(UserWarning, match="small against l2_regularization=3"):
        LogitBoostClassifier(class_weight=dict.fromkeys(range(3), 0.001), **how).fit(X, y)
    counts = StumpBoostingRegressor(loss="poisson", l2_regularization=100.0, **how)
    with pytest.warns(UserWarning, match="small against l2_regularization=100, which"):
        counts.fit(X, y, exposure=np.full(len(y), 0.02))


def test_usual_weights_and_small_tables_do_not_warn():
    X, y = drawn(2, n_samples=500)
    how, random = {"n_estimators": 3, "device": "cpu"}, np.random.default_rng(0)
    for weights in (None, [1, 2, 1, 1, 1]):
        LogitBoostClassifier(**how).fit(X[:5], [0, 1, 0, 1, 1], weights)
    for weights in (y + 1.0, y + 1e6, np.where(y == 0, 0.2, 0.8), random.random(500)):
        LogitBoostClassifier(**how).fit(X, y, weights)
        LogitBoostClassifier(**how).fit(X[:20], y[:20], weights[:20])
    large, labels = drawn(2, n_samples=20_000)
    LogitBoostClassifier(**how).fit(large, labels, np.full(20_000, 0.01))  # many, if small
    for weights in (np.full(500, 1 / 500), np.full(500, 1e-300)):
        AdaBoostClassifier(**how).fit(X, y, weights)
        for l2 in (0.0, float(weights[0])):
            LogitBoostClassifier(l2_regularization=l2, **how).fit(X, y, weights)
