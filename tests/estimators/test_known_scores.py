"""Classifiers whose samples have known scores: `init_score`, in fits and in predictions.

Engines are compared in tests/engines/test_conformance.py, those of quantities in
test_counts_and_costs.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp, softmax
from sklearn.metrics import log_loss

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.boosting.rounds.known_scores import exponential_of, in_vote_units

N_CLASSES = (2, 3)

each_number_of_classes = pytest.mark.parametrize("n_classes", N_CLASSES)


def drawn(n_classes: int, seed: int = 0, n_samples: int = 500):
    """X (n_samples, 4), classes, and known scores: what X does not say of the classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4)).astype(np.float32)
    shape = (n_samples, n_classes) if n_classes > 2 else (n_samples,)
    known = random.normal(scale=2.0, size=shape)
    if n_classes == 2:
        y = random.random(n_samples) < expit(known + 2.0 * X[:, 0] - 1.0 * (X[:, 1] > 0))
        return X, y.astype(int), known
    logits = known + np.column_stack([2.0 * X[:, 0], 1.0 * (X[:, 1] > 0), np.zeros(n_samples)])
    return X, (logits + random.gumbel(size=shape)).argmax(axis=1), known


def probabilities(scores: np.ndarray) -> np.ndarray:
    if scores.ndim == 1:
        return np.column_stack([expit(-2.0 * scores), expit(2.0 * scores)])
    return softmax(2.0 * scores, axis=1)


@each_number_of_classes
def test_the_constant_and_the_votes_are_newton_steps_from_the_known_scores(n_classes):
    X, y, known = drawn(n_classes)
    weights = np.random.default_rng(1).integers(1, 5, size=len(y)).astype(float)
    how = {"n_estimators": 8, "learning_rate": 0.5, "l2_regularization": 5.0}
    clf = LogitBoostClassifier(**how).fit(X, y, weights, init_score=known)
    scores = known / 2.0
    is_own = np.arange(n_classes) == y[:, np.newaxis]

    def step(rows: np.ndarray, l2: float = 5.0) -> np.ndarray:
        """For each output, half of the sum of gradients over that of Hessians and lambda."""
        p = probabilities(scores)
        apart = (weights[:, np.newaxis] * (is_own - p))[rows].sum(axis=0)
        both = (weights[:, np.newaxis] * p * (1.0 - p))[rows].sum(axis=0)
        return (apart / (both + l2) / 2.0)[1 if n_classes == 2 else slice(None)]

    (member,), (rounds,) = clf.model_.members, clf.rounds_
    assert_allclose(np.squeeze(member.constant), step(np.full(len(y), True), l2=0.0), rtol=1e-7)
    scores = scores + np.squeeze(member.constant)
    for one in rounds:
        is_left = X[:, one.stump.feature] <= one.stump.threshold
        votes = np.squeeze([0.5 * step(is_left), 0.5 * step(~is_left)])
        assert_allclose(np.squeeze(one.votes[:2]), votes, rtol=1e-6)
        scores = scores + votes[np.where(is_left, 0, 1)]
        wrong = probabilities(scores).argmax(axis=1) != y
        assert one.training_error == np.average(wrong, weights=weights)


@each_number_of_classes
@pytest.mark.parametrize("multi_class", ["shared", "one_vs_rest"])
def test_known_scores_are_half_of_init_score_and_count_in_every_prediction(n_classes, multi_class):
    X, y, known = drawn(n_classes)
    clf = LogitBoostClassifier(n_estimators=20, multi_class=multi_class)
    clf.fit(X, y, init_score=known)
    scores = clf.decision_function(X) + in_vote_units(known / 2.0)
    assert_array_equal(clf.decision_function(X, init_score=known), scores)
    expected = clf.model_.probabilities_of(scores)
    assert_array_equal(clf.predict_proba(X, init_score=known), expected)
    assert_array_equal(clf.predict(X, init_score=known), expected.argmax(axis=1))
    assert_allclose(clf.predict_log_proba(X, init_score=known), np.log(expected), rtol=1e-9)
    assert clf.score(X, y, init_score=known) == (expected.argmax(axis=1) == y).mean()
    assert clf.score(X, y, init_score=known) > clf.score(X, y)
    *others, last = clf.staged_predict_proba(X, init_score=known)
    assert_array_equal(last, expected)
    assert len(others) == 19
    *_, last = clf.staged_score(X, y, init_score=known)
    assert last == clf.score(X, y, init_score=known)
    plain = LogitBoostClassifier(n_estimators=20, multi_class=multi_class).fit(X, y)
    assert log_loss(y, expected) < log_loss(y, plain.predict_proba(X)) - 0.1


@each_number_of_classes
def test_the_range_of_probabilities_counts_known_scores(n_classes):
    X, y, known = drawn(n_classes)
    clf = LogitBoostClassifier(n_estimators=5, n_bags=3, random_state=0)
    clf.fit(X, y, init_score=known)
    low, high = clf.predict_proba_interval(X, 1.0, init_score=known)
    of_bags = [
        bag.probabilities_of(bag.decision_function(X) + in_vote_units(known / 2.0))
        for bag in clf.model_.bag_models
    ]
    assert_array_equal(low, np.min(of_bags, axis=0))
    assert_array_equal(high, np.max(of_bags, axis=0))


@pytest.mark.parametrize("votes", ["discrete", "real"])
def test_adaboost_with_known_scores_makes_the_rounds_of_reweighted_samples(votes):
    X, y, known = drawn(2)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=len(y))
    asked = AdaBoostClassifier(n_estimators=20, votes=votes)
    factors = exponential_of(-np.where(y == 1, 1.0, -1.0) * in_vote_units(known / 2.0))
    assert_allclose(factors, np.exp(np.where(y == 1, -0.5, 0.5) * known), rtol=1e-9)
    digest = asked.fit(X, y, weights, init_score=known).model_.digest()
    assert digest == asked.fit(X, y, weights * factors).model_.digest()


def test_each_class_against_the_rest_has_known_scores_of_its_own():
    X, y, known = drawn(3)
    for kind in (LogitBoostClassifier, AdaBoostClassifier):
        asked = kind(n_estimators=5, multi_class="one_vs_rest")
        members = asked.fit(X, y, init_score=known).model_.members
        for number, member in enumerate(members):
            alone = asked.fit(X, y == number, init_score=known[:, number]).model_
            assert member == alone.members[0]


@each_number_of_classes
def test_the_scores_of_watched_rows_start_from_theirs(n_classes):
    X, y, known = drawn(n_classes, n_samples=900)
    train, watched = slice(0, 600), slice(600, None)
    clf = LogitBoostClassifier(n_estimators=15)
    clf.fit(
        X[train], y[train], init_score=known[train],
        X_val=X[watched], y_val=y[watched], init_score_val=known[watched],
    )  # fmt: skip
    predicted = clf.predict_proba(X[watched], init_score=known[watched])
    assert clf.held_out_scores_[0][-1] == pytest.approx(-log_loss(y[watched], predicted), abs=1e-6)
    wrong = clf.predict(X[watched], init_score=known[watched]) != y[watched]
    assert clf.held_out_errors_[0][-1] == pytest.approx(wrong.mean())


def test_extreme_known_scores_leave_probabilities_that_are_numbers():
    X, y, _ = drawn(3)
    known = np.where(np.arange(3) == y[:, np.newaxis], -600.0, 600.0)  # all are far wrong
    clf = LogitBoostClassifier(n_estimators=30, learning_rate=1.0).fit(X, y, init_score=known)
    predicted = clf.predict_log_proba(X, init_score=known)
    assert np.isfinite(predicted).all()
    assert_allclose(logsumexp(predicted, axis=1), 0.0, atol=1e-9)


def test_predictions_refuse_known_scores_as_fits_do():
    X, y, known = drawn(3)
    clf = LogitBoostClassifier(n_estimators=2).fit(X, y, init_score=known)
    for given, message in (
        (known[1:], "inconsistent numbers of samples"),
        (known[:, 0], "a column for each of the 3 classes"),
        (np.where(known > 1, np.nan, known), "init_score must be finite; got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.predict(X, init_score=given)


@pytest.mark.filterwarnings("ignore:y holds one class only")
def test_one_class_is_predicted_with_certainty_whatever_is_known():
    X, _, known = drawn(2)
    clf = LogitBoostClassifier(n_estimators=2).fit(X, np.full(len(X), 7), init_score=known)
    assert clf.predict_proba(X, init_score=known).tolist() == [[1.0]] * len(X)
    assert clf.predict(X, init_score=known).tolist() == [7] * len(X)
