"""Laws for the results of every kind of fit: scores, contributions, copies, weights, frames.

The models are tested elsewhere; here each result is compared with another one that must be the same
number.
"""

from __future__ import annotations

import functools
import pickle

import joblib
import numpy as np
import pytest
from audited_fits import FITS, facts_of
from backends import Backend
from classifiers import CASES, KINDS, TWO_CLASSES, drawn
from numpy.testing import assert_array_equal
from sklearn.base import clone

from gpustump import StumpEnsemble

EVERY_FIT = pytest.mark.parametrize("name", FITS)
EVERY_CASE = pytest.mark.parametrize(("kind", "n_classes"), CASES)


@functools.cache
def fitted(name: str):
    """The estimator of one of the fits; with a fixed seed, so that its copies draw alike."""
    recipe = FITS[name]
    return recipe.fitted(random_state=recipe.unfitted().random_state or 0).classifier


@EVERY_FIT
def test_contributions_add_up_bit_for_bit_and_are_the_shape_functions(name):
    estimator, model, X = fitted(name), fitted(name).model_, FITS[name].data[0]
    parts, scores = estimator.explain(X), model.decision_function(X)
    assert parts.shape == (*scores.shape, 5 + len(model.pairs))
    assert_array_equal(parts.sum(axis=-1), scores)
    assert_array_equal(parts[..., ::-1].cumsum(axis=-1)[..., -1], scores)  # in any order
    for number, label in enumerate(estimator.classes_ if parts.ndim == 3 else [None]):
        own = parts if parts.ndim == 2 else parts[:, number]
        for feature in range(4):
            shape = estimator.shape_function(feature, label=label)
            assert_array_equal(shape.look_up(X[:, feature]), own[:, feature])
        for at, pair in enumerate(model.pairs):
            assert_array_equal(pair.look_up(X)[:, number], own[:, 4 + at])


@EVERY_FIT
def test_copies_are_the_same_estimator(name, tmp_path):
    estimator, recipe = fitted(name), FITS[name]
    joblib.dump(estimator, tmp_path / "estimator")
    estimator.model_.save(tmp_path / "model.json")
    for copied in (
        pickle.loads(pickle.dumps(estimator)),
        joblib.load(tmp_path / "estimator"),
        clone(estimator).fit(*recipe.data, **recipe.more),
        type(estimator)(**estimator.get_params()).fit(*recipe.data, **recipe.more),
    ):
        assert copied.get_params() == estimator.get_params()
        assert facts_of(copied) == facts_of(estimator)
        assert_array_equal(copied.predict(recipe.data[0]), estimator.predict(recipe.data[0]))
    loaded = StumpEnsemble.load(tmp_path / "model.json")
    assert loaded == estimator.model_
    assert loaded.digest() == estimator.model_.digest()
    assert_array_equal(loaded.predict(recipe.data[0]), estimator.predict(recipe.data[0]))


@EVERY_CASE
def test_staged_answers_are_those_of_shorter_fits(kind, n_classes):
    X, y = drawn(n_classes)
    classifier = KINDS[kind](n_estimators=6).fit(X, y)
    staged = zip(
        classifier.staged_decision_function(X),
        classifier.staged_predict(X),
        classifier.staged_predict_proba(X),
        classifier.staged_score(X, y),
        strict=True,
    )
    for number, (scores, labels, shares, accuracy) in enumerate(staged, start=1):
        shorter = KINDS[kind](n_estimators=number).fit(X, y)
        assert_array_equal(scores, shorter.decision_function(X))
        assert_array_equal(labels, shorter.predict(X))
        assert_array_equal(shares, shorter.predict_proba(X))
        assert accuracy == shorter.score(X, y) == np.mean(labels == y)
    assert number == 6


@pytest.mark.parametrize(("kind", "n_classes"), [("discrete-shared", 3), ("newton-shared", 3)])
def test_every_library_gets_the_same_model_and_answers_in_kind(backend: Backend, kind, n_classes):
    X, y = drawn(n_classes, n_samples=40, missing=0.1)
    plain = KINDS[kind](n_estimators=4).fit(X, y)
    there = backend.asarray(X)
    classifier = KINDS[kind](n_estimators=4).fit(there, backend.asarray(y))
    assert classifier.model_.digest() == plain.model_.digest()
    assert classifier.rounds_ == plain.rounds_
    for answer in ("decision_function", "predict"):
        found = getattr(classifier, answer)(there)
        assert backend.owns(found)
        assert_array_equal(backend.to_numpy(found), getattr(plain, answer)(X))


@pytest.mark.parametrize(
    ("kind", "n_classes"), [case for case in CASES if not case[0].startswith("discrete")]
)
def test_where_no_value_was_missing_in_training_a_missing_value_gets_no_vote(kind, n_classes):
    """Discrete votes have a sign in every region: they vote there as the majority does."""
    X, y = drawn(n_classes)
    classifier = KINDS[kind](n_estimators=10).fit(X, y)
    votes = classifier.explain(np.full((1, 4), np.nan))[..., :-1]
    assert_array_equal(votes, np.zeros_like(votes))


@pytest.mark.parametrize("kind", TWO_CLASSES)
def test_two_classes_do_not_ask_how_classes_share_stumps(kind):
    X, y = drawn(2)
    shared, alone = (
        KINDS[kind](n_estimators=5, multi_class=how).fit(X, y) for how in ("shared", "one_vs_rest")
    )
    assert shared.model_.digest() == alone.model_.digest()
