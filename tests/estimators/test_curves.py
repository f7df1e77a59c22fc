"""Curves by data set and metric: those of the models after each round."""

from __future__ import annotations

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score

X, _ = drawn(2, n_samples=150, seed=3)
NAMES = np.asarray(["red", "blue", "green"])


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_curves_are_those_of_the_models_after_each_round(kind, n_classes):
    _, numbers = drawn(n_classes, n_samples=150, seed=3)
    y = NAMES[numbers]
    classifier = KINDS[kind](n_estimators=6, scoring="balanced_accuracy")
    classifier.fit(X[:90], y[:90], X_val=X[90:], y_val=y[90:])
    curves = classifier.evals_result_
    assert {name: set(own) for name, own in curves.items()} == {
        "training": {"error"},
        "validation": {"balanced_accuracy", "error"},
    }
    runs = [None] if len(classifier.rounds_) == 1 else classifier.classes_.tolist()
    for label in runs:
        rows = {"training": slice(90), "validation": slice(90, None)}
        for name, metric in (("training", "error"), ("validation", "error"), ("validation", None)):
            curve = curves[name][metric or "balanced_accuracy"]
            own = curve if label is None else curve[label]
            assert isinstance(own, list)
            truth = y[rows[name]] if label is None else y[rows[name]] == label
            staged = classifier.staged_predict(X[rows[name]])
            if label is not None:
                at = runs.index(label)
                staged = (
                    scores[:, at] > 0
                    for scores in classifier.staged_decision_function(X[rows[name]])
                )
            expected = [
                np.mean(found != truth) if metric else balanced_accuracy_score(truth, found)
                for found in staged
            ]
            np.testing.assert_allclose(own, expected[: len(own)], atol=1e-12)


def test_only_what_was_watched_has_a_curve_by_the_score_of_the_fit():
    _, y = drawn(2, n_samples=150, seed=3)
    classifier = KINDS["newton"](n_estimators=30, n_iter_no_change=3, random_state=1)
    with pytest.raises(NotFittedError):
        classifier.evals_result_  # noqa: B018
    classifier.fit(X, y).set_params(scoring="accuracy")
    curves = classifier.evals_result_
    assert curves["validation"]["neg_log_loss"] == list(classifier.held_out_scores_[0])
    assert len(curves["training"]["error"]) == classifier.n_iter_
    assert set(classifier.set_params(n_iter_no_change=None).fit(X, y).evals_result_) == {"training"}


def test_every_bag_has_curves_of_its_own():
    _, y = drawn(2, n_samples=150, seed=3)
    options = {"n_estimators": 5, "n_bags": 2, "random_state": 0}
    plain = KINDS["newton"](**options).fit(X, y)
    assert list(plain.evals_result_) == ["training of bag 1", "training of bag 2"]
    classifier = KINDS["newton"](n_iter_no_change=3, **options).fit(X, y)
    curves = classifier.evals_result_
    for bag, (rounds, scores) in enumerate(
        zip(classifier.rounds_, classifier.held_out_scores_, strict=True), start=1
    ):
        errors = [one.training_error for one in rounds]
        assert curves[f"training of bag {bag}"] == {"error": errors}
        assert curves[f"validation of bag {bag}"]["neg_log_loss"] == list(scores)
