"""Bad parameters and hard data, for every kind of votes: a clear error, or a sound model.

Warnings are errors in these tests, so an overflow or a division by zero anywhere would fail them.
Only those about runs that end early are let pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn
from sklearn.base import BaseEstimator

from gpustump import AdaBoostClassifier, LogitBoostClassifier

pytestmark = pytest.mark.filterwarnings("ignore:.* made no round", "ignore:votes became too large")

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
NEWTON = tuple(name for name in KINDS if name.startswith("newton"))

BAD_PARAMETERS = [
    ("learning_rate", 0, ValueError, "learning_rate must be a finite number above 0; got 0"),
    ("learning_rate", -0.5, ValueError, "got -0.5"),
    ("learning_rate", math.nan, ValueError, "learning_rate must be .*; got nan"),
    ("learning_rate", math.inf, ValueError, "learning_rate must be .*; got inf"),
    ("learning_rate", "high", TypeError, "learning_rate must be .*; got 'high'"),
    ("learning_rate", True, TypeError, "learning_rate must be .*; got True"),
    ("learning_rate", None, TypeError, "learning_rate must be .*; got None"),
    ("n_estimators", 0, ValueError, "n_estimators must be at least 1; got 0"),
    ("n_estimators", 2.5, TypeError, "n_estimators must be a whole number"),
    ("n_estimators", "10", TypeError, "n_estimators must be a whole number"),
    ("multi_class", "ovo", ValueError, "multi_class must be 'one_vs_rest' or 'shared'; got 'ovo'"),
    ("multi_class", None, ValueError, "multi_class must be .*; got None"),
    ("scoring", "auc", ValueError, "scoring must be 'loss', 'accuracy'.*; got 'auc'"),
    ("scoring", max, TypeError, "scoring must be .* not a callable"),
    ("n_iter_no_change", 0, ValueError, "n_iter_no_change must be at least 1"),
    ("tol", -1e-9, ValueError, "tol must be a finite number of at least 0"),
    ("random_state", "seed", ValueError, "random_state must be None, a whole number"),
    ("device", "tpu", ValueError, "device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got 'tpu'"),
    ("callback", 3, TypeError, "callback must be callable or None; got 3"),
    ("verbose", "loud", TypeError, "verbose must be a whole number of at least 0; got 'loud'"),
    ("verbose", -1, ValueError, "verbose must be at least 0; got -1"),
    ("n_jobs", 0, ValueError, "n_jobs must be at least 1"),
    ("max_memory", "much", ValueError, "max_memory must be a number of bytes"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD_PARAMETERS)
@EVERY_KIND
def test_a_bad_parameter_is_named_with_what_was_found(kind, name, value, error, message):
    X, y = drawn(3)
    with pytest.raises(error, match=message):
        KINDS[kind](**{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (AdaBoostClassifier(votes="gentle"), ValueError, "votes must be 'discrete' or 'real'; got"),
        (AdaBoostClassifier(votes="newton"), ValueError, "votes must be 'discrete' or 'real'; got"),
        (AdaBoostClassifier(votes=None), ValueError, "votes must be .*; got None"),
        (
            AdaBoostClassifier(votes="real", weak_learner="interval"),
            ValueError,
            "weak_learner='interval' is for votes='discrete'.*Take weak_learner='stump'",
        ),
        (
            AdaBoostClassifier(multi_class="shared", weak_learner="interval"),
            ValueError,
            "weak_learner='interval' is for .*multi_class='one_vs_rest'",
        ),
        (LogitBoostClassifier(l2_regularization=-1), ValueError, "l2_regularization must be .*-1"),
        (LogitBoostClassifier(l2_regularization=math.nan), ValueError, "l2_reg.* got nan"),
        (LogitBoostClassifier(l2_regularization=math.inf), ValueError, "l2_reg.* got inf"),
        (LogitBoostClassifier(l2_regularization="1"), TypeError, "l2_regularization .* got '1'"),
        (LogitBoostClassifier(l2_regularization=True), TypeError, "l2_reg.* got True"),
        (LogitBoostClassifier(smoothing_rounds=-1), ValueError, "smoothing_rounds must be .*-1"),
        (LogitBoostClassifier(smoothing_rounds=1.5), TypeError, "smoothing_rounds .* got 1.5"),
        (LogitBoostClassifier(smoothing_rounds=True), TypeError, "smoothing_rounds .* got True"),
        (LogitBoostClassifier(smoothing_rounds=None), TypeError, "smoothing_rounds .* got None"),
    ],
)
def test_a_bad_choice_of_votes_is_named_with_what_was_found(
    estimator: BaseEstimator, error, message
):
    X, y = drawn(3)
    with pytest.raises(error, match=message):
        estimator.fit(X, y)


@pytest.mark.parametrize(
    ("y", "weights", "error", "message"),
    [
        (np.arange(120) / 2, None, ValueError, "Unknown label type: continuous"),
        (np.where(np.arange(120) > 3, np.nan, 1.0), None, ValueError, "y contains NaN"),
        (np.arange(119) % 3, None, ValueError, "inconsistent numbers of samples: 120 and 119"),
        (None, np.zeros(120), ValueError, "sample_weight is zero for every sample"),
        (None, -np.ones(120), ValueError, "sample_weight contains negative weights"),
        (None, np.full(120, np.nan), ValueError, "sample_weight contains NaN"),
        (None, np.full(120, np.inf), ValueError, "sample_weight contains infinite weights"),
        (None, np.ones(119), ValueError, "X and sample_weight have inconsistent numbers"),
    ],
)
@EVERY_KIND
def test_bad_labels_and_weights_are_named(kind, y, weights, error, message):
    X, labels = drawn(3)
    with pytest.raises(error, match=message):
        KINDS[kind]().fit(X, labels if y is None else y, weights)


class Hard(NamedTuple):
    """A table on which a formula could fail, with labels and perhaps weights."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None


def _noise(n_classes: int) -> Hard:
    random = np.random.default_rng(1)
    return Hard(random.normal(size=(60, 3)), random.integers(0, n_classes, 60))


def _apart(n_classes: int) -> Hard:
    x = np.linspace(0, 1, 40, endpoint=False)
    return Hard(np.stack([x, np.sin(9 * x)], axis=1), (x * n_classes).astype(int))


def _any_weights(n_classes: int) -> Hard:
    random = np.random.default_rng(2)
    weights = 10.0 ** random.uniform(-300, 300, size=40)
    return Hard(random.normal(size=(40, 3)), np.arange(40) % n_classes, weights)


def _one_heavy_sample(n_classes: int) -> Hard:
    X, y, _ = _any_weights(n_classes)
    return Hard(X, y, np.where(np.arange(40) == 7, 1e300, 1e-300))


def _one_sample_of_a_class(n_classes: int) -> Hard:
    X, y, _ = _noise(n_classes)
    return Hard(X, np.where(np.arange(60) == 4, 9, y))


def _outliers(n_classes: int) -> Hard:
    X, y, _ = _noise(n_classes)
    X[::7] *= 1e307
    X[3, 1], X[4, 1], X[5, 0] = np.inf, -np.inf, 5e-324
    return Hard(X, y)


def _labels_without_reason(n_classes: int) -> Hard:
    """The same sample with every label."""
    X = np.repeat(np.random.default_rng(3).normal(size=(12, 2)), n_classes, axis=0)
    return Hard(X, np.tile(np.arange(n_classes), 12))


_ONE_VALUE_OR_MISSING = np.where(np.arange(20) % 3, 1.0, np.nan)[:, np.newaxis]

HARD: dict[str, Callable[[int], Hard]] = {
    "perfectly separable": _apart,
    "noise": _noise,
    "labels without reason": _labels_without_reason,
    "constant": lambda k: Hard(np.ones((20, 2)), np.arange(20) % k),
    "all missing": lambda k: Hard(np.full((20, 2), np.nan), np.arange(20) % k),
    "one value or missing": lambda k: Hard(_ONE_VALUE_OR_MISSING, np.arange(20) % k),
    "as few samples as classes": lambda k: Hard(np.arange(k, dtype=float)[:, None], np.arange(k)),
    "no difference": lambda k: Hard(np.zeros((k, 1)), np.arange(k)),
    "weights from 1e-300 to 1e300": _any_weights,
    "one heavy sample": _one_heavy_sample,
    "one sample of a class": _one_sample_of_a_class,
    "outliers": _outliers,
}  # fmt: skip


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


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_hard_data_give_a_sound_model_at_any_learning_rate(kind, n_classes, name):
    data = HARD[name](n_classes)
    for rate in (1e-12, 0.3, 50.0, 1e6):
        classifier = KINDS[kind](n_estimators=10, learning_rate=rate)
        check_sound(classifier.fit(data.X, data.y, data.weights), data)


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("kind", "n_classes"), [case for case in CASES if case[0] in NEWTON])
def test_hard_data_give_a_sound_model_at_any_regularization(kind, n_classes, name):
    data = HARD[name](n_classes)
    for rate, l2 in ((0.3, 0.0), (50.0, 0.0), (1.0, 1e-300), (50.0, 1e300), (1e6, 1e-12)):
        classifier = KINDS[kind](n_estimators=10, learning_rate=rate, l2_regularization=l2)
        check_sound(classifier.fit(data.X, data.y, data.weights), data)


def log_loss_of(classifier, data: Hard) -> list[float]:
    """The mean log-loss of the training samples after each round, also below 1e-300."""
    logs = map(classifier.model_.log_probabilities_of, classifier.staged_decision_function(data.X))
    return [-float(own[np.arange(len(data.y)), data.y].mean()) for own in logs]


@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize(("kind", "n_classes"), [case for case in CASES if case[0] in NEWTON])
def test_on_separable_data_the_log_loss_falls_to_nearly_nothing(kind, n_classes, rate, l2):
    data = _apart(n_classes)
    options = {"n_estimators": 200, "learning_rate": rate, "l2_regularization": l2}
    classifier = KINDS[kind](**options).fit(data.X, data.y)
    losses = log_loss_of(classifier, data)
    assert classifier.n_iter_ == 200
    assert max(np.diff(losses)) < 1e-12
    assert losses[-1] < (0.01 if l2 else 1e-8)
    assert classifier.score(data.X, data.y) == 1.0
    check_sound(classifier, data)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "l2", "limit"), [(0.3, 1.0, 0.001), (50.0, 0.0, 0.1)])
@pytest.mark.parametrize(("kind", "n_classes"), [case for case in CASES if case[0] in NEWTON])
def test_on_separable_data_2000_rounds_stay_finite(kind, n_classes, rate, l2, limit):
    data = _apart(n_classes)
    options = {"n_estimators": 2000, "learning_rate": rate, "l2_regularization": l2}
    classifier = KINDS[kind](**options).fit(data.X, data.y)
    assert log_loss_of(classifier, data)[-1] < limit
    check_sound(classifier, data)


def test_2000_rounds_on_separable_data_use_up_the_odds_and_go_on():
    """After some 200 rounds all weights are rounded up to one unit."""
    data = Hard(*(part[::4] for part in _apart(2)[:2]))
    classifier = LogitBoostClassifier(n_estimators=2000, learning_rate=1.0, l2_regularization=0.0)
    scores = classifier.fit(data.X, data.y).decision_function(data.X)
    assert 900 < np.abs(scores).min() <= np.abs(scores).max() < 1100
    assert log_loss_of(classifier, data)[-1] == 0.0


@EVERY_KIND
def test_300_classes_are_told_apart(kind):
    random = np.random.default_rng(0)
    y = np.arange(600) % 300
    X = np.stack([y + random.normal(scale=0.1, size=600), random.normal(size=600)], axis=1)
    classifier = KINDS[kind](n_estimators=2, learning_rate=0.5).fit(X, y)
    assert classifier.predict_proba(X).shape == (600, 300)
    assert classifier.decision_function(X).shape == (600, 300)
    check_sound(classifier, Hard(X, y))
    if kind != "discrete-shared":  # whose first stumps vote against every class
        assert classifier.score(X, y) > 1.5 / 300


@EVERY_KIND
def test_the_order_of_samples_does_not_matter(kind):
    X, y = drawn(3, missing=0.1)
    turned = np.random.default_rng(0).permutation(len(y))
    plain = KINDS[kind](n_estimators=8).fit(X, y)
    assert KINDS[kind](n_estimators=8).fit(X[turned], y[turned]).rounds_ == plain.rounds_


def test_a_stump_with_several_numbers_has_no_single_vote_and_the_error_says_where_they_are():
    X, y = drawn(2)
    classifier = AdaBoostClassifier(votes="real", n_estimators=3).fit(X, y)
    for name in ("estimator_weights_", "estimator_errors_"):
        with pytest.raises(AttributeError, match=r"see rounds_ and model_\.members"):
            getattr(classifier, name)
        assert not hasattr(classifier, name)
    (member,) = classifier.model_.members
    assert tuple(record.stump for record in classifier.rounds_[0]) == member.hypotheses
