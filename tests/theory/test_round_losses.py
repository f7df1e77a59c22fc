"""Losses by round, bounds of every kind of votes: against SciPy, scikit-learn and definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import Backend
from made_up_models import region_model, rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble
from gpustump.theory import losses_by_round

MODELS = {
    "discrete": AdaBoostClassifier(n_estimators=12, device="cpu"),
    "real": AdaBoostClassifier(n_estimators=12, votes="real", device="cpu"),
    "shared discrete": AdaBoostClassifier(n_estimators=12, multi_class="shared", device="cpu"),
    "shared real": AdaBoostClassifier(
        n_estimators=12, votes="real", multi_class="shared", device="cpu"
    ),
    "logistic": LogitBoostClassifier(n_estimators=12, device="cpu"),
    "logistic, each class": LogitBoostClassifier(
        n_estimators=12, multi_class="one_vs_rest", device="cpu"
    ),
}
ADABOOST = [name for name in MODELS if "logistic" not in name]


def noisy_iris(n_classes: int):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X = np.round(X + rng.normal(scale=0.7, size=X.shape), 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    kept = y > 0 if n_classes == 2 else y >= 0
    return X[kept], y[kept], rng.uniform(0.1, 3.0, size=len(y))[kept]


def fitted(name: str, n_classes: int, *, weighted: bool = False):
    X, y, weights = noisy_iris(n_classes)
    weights = weights if weighted else np.ones(len(y))
    return MODELS[name].fit(X, y, weights), X, y, weights


def probabilities(model: StumpEnsemble, scores: np.ndarray) -> np.ndarray:
    if scores.ndim == 1:
        return np.stack([expit(-2 * scores), expit(2 * scores)], axis=1)
    if model.link == "softmax":
        return softmax(2 * scores, axis=1)
    each = expit(2 * scores)
    return each / each.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_scikit_learns_and_scipys_after_every_round(name, n_classes):
    clf, X, y, weights = fitted(name, n_classes, weighted=True)
    weights[::6] = 0.0
    model = clf.model_
    found = losses_by_round(clf, X, y, weights)
    staged = list(model.staged_decision_function(X))
    assert len(found.errors) == len(found.log_losses) == len(staged) == model.n_rounds
    for k, scores in enumerate(staged):
        p = probabilities(model, scores)
        assert found.log_losses[k] == pytest.approx(log_loss(y, p, sample_weight=weights))
        wrong = model.labels_of(scores) != y
        assert found.errors[k] == pytest.approx(np.average(wrong, weights=weights), abs=1e-14)
        outputs = scores.reshape(len(y), -1)
        sign = np.where(y[:, None] == np.asarray(model.classes)[-outputs.shape[1] :], 1, -1)
        each = np.exp(-sign * outputs).mean(axis=1)
        assert found.exponential_losses[k] == pytest.approx(np.average(each, weights=weights))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ADABOOST)
def test_on_the_training_samples_the_bound_is_the_product_of_the_normalisers(
    name, n_classes, weighted
):
    clf, X, y, weights = fitted(name, n_classes, weighted=weighted)
    found = losses_by_round(clf, X, y, weights)
    products = [np.asarray([one.training_bound for one in rounds]) for rounds in clf.rounds_]
    if len(products) == 1:
        assert_allclose(products[0], found.bounds, rtol=1e-10)
    else:  # half of the sum over the classes
        assert_allclose(np.sum(products, axis=0) / 2, found.bounds, rtol=1e-10)
        for label, own in zip(clf.classes_, products, strict=True):
            one = losses_by_round(clf, X, y, weights, label=label)
            assert_allclose(own, one.bounds, rtol=1e-10)
    assert (found.errors <= found.bounds).all()


def test_a_class_against_the_rest_has_losses_of_its_own():
    clf, X, y, _ = fitted("logistic, each class", 3)
    found = losses_by_round(clf, X, y, label=1)
    scores = [scores[:, 1] for scores in clf.staged_decision_function(X)]
    losses = [log_loss(y == 1, expit(2 * own)) for own in scores]
    assert_allclose(found.log_losses, losses)
    assert_array_equal(found.errors, [np.mean((own > 0) != (y == 1)) for own in scores])
    assert found.n_outputs == 1


def test_losses_are_the_same_in_every_library(backend: Backend):
    random = np.random.default_rng(5)
    model = region_model(random, 8, 2, 3, shared=True, link="softmax")
    X, y = rows(random, 30, 2, "float32"), random.integers(0, 3, 30)
    here, there = losses_by_round(model, X, y), losses_by_round(model, backend.asarray(X), y)
    for name in ("errors", "log_losses", "exponential_losses"):
        assert_array_equal(getattr(there, name), getattr(here, name))


def test_large_scores_have_finite_log_losses_and_infinite_exponential_ones():
    model = region_model(np.random.default_rng(0), 1, 1)
    (member,) = model.members
    large = type(member)(member.splits, np.full((1, 3, 1), 2000.0), [0.0])
    found = losses_by_round(StumpEnsemble((large,), 1, (0, 1)), [[0.0]], [0])
    assert found.log_losses.tolist() == [4000.0]
    assert found.exponential_losses.tolist() == [math.inf]


def test_what_has_no_class_of_its_own_is_refused():
    clf, X, y, _ = fitted("logistic", 3)
    with pytest.raises(ValueError, match="label must be left out, as all classes share the stumps"):
        losses_by_round(clf, X, y, label=1)
    with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
        losses_by_round(fitted("real", 3)[0], X, y, label=7)
    with pytest.raises(ValueError, match="none of the model's classes"):
        losses_by_round(clf, X, y + 5)
