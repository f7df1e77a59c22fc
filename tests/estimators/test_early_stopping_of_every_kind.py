"""Early stopping with every kind of votes: what is watched, when it ends, what is kept.

The held-out scores are computed again with scikit-learn's metrics, from models that were fitted
without early stopping on the samples that were left.
"""

from __future__ import annotations

import numpy as np
import pytest
from classifiers import CASES, KINDS, SHARED, drawn
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import train_test_split

from gpustump.data.parameters import SCORINGS

PATIENCE = 4
WATCHING = {
    "n_estimators": 60,
    "n_iter_no_change": PATIENCE,
    "validation_fraction": 0.4,
    "random_state": 5,
}


def parts_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The samples that are trained on and those that are watched."""
    seed = int(np.random.RandomState(WATCHING["random_state"]).randint(2**31 - 1))
    kept, watched = train_test_split(
        np.arange(len(y)), test_size=WATCHING["validation_fraction"], stratify=y, random_state=seed
    )
    return np.sort(kept), np.sort(watched)


def margins(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """y F for each sample and output."""
    if scores.ndim == 1:
        return np.where(y == 1, 1, -1) * scores
    return np.where(y[:, np.newaxis] == np.arange(scores.shape[1]), 1, -1) * scores


def expected_score(scoring: str, y: np.ndarray, stage: dict, kind: str) -> float:
    """A score of held-out samples by its definition."""
    scores, shares = stage["scores"], stage["shares"]
    if scoring == "accuracy":
        return accuracy_score(y, stage["labels"])
    if scoring == "balanced_accuracy":
        return balanced_accuracy_score(y, stage["labels"])
    if scoring == "roc_auc":
        if scores.ndim == 1:
            return roc_auc_score(y, scores)
        return float(np.mean([roc_auc_score(y == k, scores[:, k]) for k in range(3)]))
    if scoring == "neg_log_loss":
        return -log_loss(y, shares)
    if scoring == "neg_exponential_loss":
        return -float(np.exp(-margins(y, scores)).mean())
    if kind == "newton-shared" and scores.ndim == 2:
        own = scores[np.arange(len(y)), y]
        return -float((np.log(np.exp(scores).sum(axis=1)) - own).mean())
    return -float(np.log1p(np.exp(-margins(y, scores))).mean())


ONE_RUN = [("discrete", 2), ("real", 2), ("newton", 2)] + [(kind, 3) for kind in SHARED]


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize(("kind", "n_classes"), ONE_RUN)
def test_held_out_scores_are_those_of_models_of_the_other_samples(kind, n_classes, scoring):
    X, y = drawn(n_classes, n_samples=150, missing=0.05, seed=3)
    stopped = KINDS[kind](scoring=scoring, **WATCHING).fit(X, y)
    (scores,), (errors,), (reason,) = (
        stopped.held_out_scores_, stopped.held_out_errors_, stopped.stop_reasons_,
    )  # fmt: skip
    best = stopped.n_iter_
    assert best == int(np.argmax(scores)) + 1 == len(stopped.rounds_[0])
    assert reason == ("early" if len(scores) < WATCHING["n_estimators"] else "limit")
    assert len(scores) == len(errors) == min(best + PATIENCE, WATCHING["n_estimators"])

    kept, watched = parts_of(y)
    free = KINDS[kind](n_estimators=len(scores)).fit(X[kept], y[kept])
    assert stopped.rounds_[0] == free.rounds_[0][:best]
    stages = zip(
        free.staged_decision_function(X[watched]),
        free.staged_predict(X[watched]),
        free.staged_predict_proba(X[watched]),
        strict=True,
    )
    for number, (own, labels, shares) in enumerate(stages):
        stage = {"scores": own, "labels": labels, "shares": shares}
        expected = expected_score(scoring, y[watched], stage, kind)
        assert scores[number] == pytest.approx(expected, rel=1e-12, abs=3 * 2.0**-24), number
        assert errors[number] == pytest.approx(np.mean(labels != y[watched]), abs=1e-15)


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_one_class_against_the_rest_is_watched_by_itself(kind):
    X, y = drawn(3, n_samples=150, seed=3)
    stopped = KINDS[kind](**WATCHING).fit(X, y)
    kept, watched = parts_of(y)
    assert len(stopped.rounds_) == 3
    for number, (rounds, scores) in enumerate(
        zip(stopped.rounds_, stopped.held_out_scores_, strict=True)
    ):
        assert len(rounds) == int(np.argmax(scores)) + 1
        alone = KINDS[kind](n_estimators=len(scores)).fit(X[kept], y[kept] == number)
        assert rounds == alone.rounds_[0][: len(rounds)]
        staged = alone.staged_decision_function(X[watched])
        y_watched = (y[watched] == number).astype(int)
        expected = [
            expected_score(
                stopped.scoring,
                y_watched,
                {"scores": own, "shares": alone.model_.probabilities_of(own)},
                kind,
            )
            for own in staged
        ]
        np.testing.assert_allclose(scores, expected, atol=2.0**-24)


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_held_out_samples_of_some_weight_count_by_it(kind, n_classes):
    X, y = drawn(n_classes, n_samples=150, seed=3)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, len(y))
    stopped = KINDS[kind](**(WATCHING | {"scoring": "accuracy"})).fit(X, y, weights)
    kept, watched = parts_of(y)
    number = stopped.n_iter_
    free = KINDS[kind](n_estimators=number).fit(X[kept], y[kept], weights[kept])
    if len(stopped.rounds_) > 1:  # each run ends where it likes
        scores = free.decision_function(X[watched])
        right = (scores > 0) == (y[watched][:, np.newaxis] == free.classes_)
        found = np.average(right, axis=0, weights=weights[watched])
        at_end = [number - 1 if len(own) >= number else None for own in stopped.held_out_scores_]
        assert any(at is not None for at in at_end)
        for own, at, expected in zip(stopped.held_out_scores_, at_end, found, strict=True):
            assert at is None or own[at] == pytest.approx(expected, abs=1e-12)
        return
    expected = accuracy_score(y[watched], free.predict(X[watched]), sample_weight=weights[watched])
    assert stopped.held_out_scores_[0][number - 1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_a_tolerance_stops_no_later_and_keeps_a_round_that_gained_that_much(kind, n_classes):
    X, y = drawn(n_classes, n_samples=150, seed=3)
    exact = KINDS[kind](**WATCHING).fit(X, y)
    coarse = KINDS[kind](**WATCHING, tol=0.02).fit(X, y)
    for own, other in zip(coarse.held_out_scores_, exact.held_out_scores_, strict=True):
        assert own == other[: len(own)]
    for rounds, scores in zip(coarse.rounds_, coarse.held_out_scores_, strict=True):
        assert max(scores) <= scores[len(rounds) - 1] + 0.02
