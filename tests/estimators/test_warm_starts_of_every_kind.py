"""Warm starts and interruptions with every kind of votes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from backends import Backend
from classifiers import CASES, KINDS, SHARED, drawn

import gpustump

EVERY_CASE = pytest.mark.parametrize(("kind", "n_classes"), CASES)
PACKAGE = str(Path(gpustump.__file__).parent)


@EVERY_CASE
@pytest.mark.parametrize("steps", [(1, 9), (4, 5, 9)])
def test_a_warm_start_makes_the_rounds_of_an_uninterrupted_run(kind, n_classes, steps):
    X, y = drawn(n_classes, missing=0.1)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    whole = KINDS[kind](n_estimators=9).fit(X, y, weights)
    parts = KINDS[kind](warm_start=True)
    for n_estimators in steps:
        parts.set_params(n_estimators=n_estimators).fit(X, y, weights)
        assert parts.n_iter_ == n_estimators
    assert parts.rounds_ == whole.rounds_
    assert parts.model_.digest() == whole.model_.digest()


@pytest.mark.parametrize(
    ("kind", "n_classes"), [("real", 2), ("newton", 2)] + [(kind, 3) for kind in SHARED]
)
def test_every_backend_resumes_to_the_same_digest(backend: Backend, kind, n_classes):
    X, y = drawn(n_classes, n_samples=40, missing=0.1)
    whole = KINDS[kind](n_estimators=4).fit(X, y)
    there = backend.asarray(X), backend.asarray(y)
    parts = KINDS[kind](n_estimators=2, warm_start=True).fit(*there)
    parts.set_params(n_estimators=4).fit(*there)
    assert parts.rounds_ == whole.rounds_
    assert parts.model_.digest() == whole.model_.digest()


@EVERY_CASE
def test_the_learning_rate_may_change_and_earlier_rounds_keep_their_votes(kind, n_classes):
    X, y = drawn(n_classes)
    classifier = KINDS[kind](n_estimators=4, learning_rate=0.5, warm_start=True).fit(X, y)
    before = classifier.rounds_
    classifier.set_params(n_estimators=8, learning_rate=0.05).fit(X, y)
    for own, earlier in zip(classifier.rounds_, before, strict=True):
        assert own[:4] == earlier
        sizes = [np.abs(np.asarray(record.vote)).max() for record in own]
        assert max(sizes[4:]) < max(sizes[:4]) / 3


@EVERY_CASE
def test_a_warm_start_can_only_grow(kind, n_classes):
    X, y = drawn(n_classes)
    classifier = KINDS[kind](n_estimators=4, warm_start=True).fit(X, y)
    before = classifier.model_.digest()
    with pytest.raises(ValueError, match="n_estimators=3 is less than the 4 rounds"):
        classifier.set_params(n_estimators=3).fit(X, y)
    assert classifier.model_.digest() == before
    assert classifier.set_params(n_estimators=4).fit(X, y).model_.digest() == before


CHANGES = [
    ("discrete", {"votes": "real"}, "discrete votes .*real votes"),
    ("real", {"votes": "discrete"}, "real votes .*discrete votes"),
    ("discrete", {"multi_class": "shared"}, "multi_class='one_vs_rest'.*multi_class='shared'"),
    ("real-shared", {"multi_class": "one_vs_rest"}, "'shared'.*multi_class='one_vs_rest'"),
    ("newton-shared", {"multi_class": "one_vs_rest"}, "'shared'.*multi_class='one_vs_rest'"),
    ("newton", {"multi_class": "shared"}, "multi_class='one_vs_rest'.*multi_class='shared'"),
]


@pytest.mark.parametrize(("kind", "change", "message"), CHANGES)
def test_other_votes_or_other_runs_are_refused(kind, change, message):
    X, y = drawn(3)
    classifier = KINDS[kind](n_estimators=2, warm_start=True).fit(X, y)
    before = classifier.model_.digest()
    with pytest.raises(ValueError, match=f"warm_start=True goes on from rounds of .*{message}"):
        classifier.set_params(n_estimators=4, **change).fit(X, y)
    assert classifier.model_.digest() == before


@pytest.mark.parametrize("kind", [name for name in KINDS if not name.startswith("newton")])
def test_two_classes_may_be_shared_or_not_from_one_start_to_the_next(kind):
    X, y = drawn(2)
    whole = KINDS[kind](n_estimators=5).fit(X, y)
    parts = KINDS[kind](n_estimators=2, multi_class="shared", warm_start=True).fit(X, y)
    parts.set_params(n_estimators=5, multi_class="one_vs_rest").fit(X, y)
    assert parts.rounds_ == whole.rounds_


@pytest.mark.parametrize(
    ("kind", "n_classes"), [("newton", 2), ("newton", 3), ("newton-shared", 3)]
)
def test_a_warm_start_on_other_data_keeps_the_constant_and_the_rounds(kind, n_classes):
    X, y = drawn(n_classes)
    others, labels = drawn(n_classes, seed=8)
    weights = np.where(labels == 0, 5.0, 1.0)  # other shares of the classes
    classifier = KINDS[kind](n_estimators=4, warm_start=True).fit(X, y)
    constants = [member.constant.tolist() for member in classifier.model_.members]
    rounds = [[(r.stump, r.votes) for r in own] for own in classifier.rounds_]
    scores = classifier.decision_function(X)
    classifier.set_params(n_estimators=8).fit(others, labels, weights)
    assert [member.constant.tolist() for member in classifier.model_.members] == constants
    kept = [[(r.stump, r.votes) for r in own[:4]] for own in classifier.rounds_]
    assert kept == rounds
    staged = list(classifier.staged_decision_function(X))
    np.testing.assert_array_equal(staged[3], scores)
    anew = KINDS[kind](n_estimators=4).fit(others, labels, weights)
    assert [member.constant.tolist() for member in anew.model_.members] != constants


def test_intervals_do_not_follow_real_votes():
    X, y = drawn(2)
    classifier = KINDS["real"](n_estimators=2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="weak_learner='interval' is for votes='discrete'"):
        classifier.set_params(n_estimators=4, weak_learner="interval").fit(X, y)


def interrupted_at(line: int, run: Callable[[], object]) -> int:
    """Run, and raise KeyboardInterrupt before that line of the package. Returns how many were
    passed."""
    passed = 0

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None

        def by_line(frame, event, argument):
            nonlocal passed
            if event == "line":
                if passed == line:
                    raise KeyboardInterrupt
                passed += 1
            return by_line

        return by_line

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        assert passed == line
    finally:
        sys.settrace(before)
    return passed


@pytest.mark.parametrize("kind", ["real", "newton-shared"])
def test_an_interruption_anywhere_leaves_the_old_model_or_the_new_one_whole(kind):
    X, y = drawn(3, n_samples=40, missing=0.1)
    options = {"warm_start": True, "n_iter_no_change": 3, "random_state": 0}

    def started():
        earlier = KINDS[kind](n_estimators=1, device="cpu", **options).fit(X, y)
        return earlier.set_params(n_estimators=3)

    def facts(classifier):
        return (
            classifier.model_.digest(),
            classifier.rounds_,
            classifier.held_out_scores_,
            classifier.stop_reasons_,
            classifier.classes_.tolist(),
            classifier.predict(X).tolist(),
        )

    old, new = facts(started()), facts(started().fit(X, y))
    assert old != new
    classifier = started()
    n_lines = interrupted_at(-1, lambda: classifier.fit(X, y))
    assert n_lines > 1000
    outcomes = []
    for line in np.random.default_rng(0).integers(0, n_lines, size=30):
        classifier = started()
        interrupted_at(int(line), lambda c=classifier: c.fit(X, y))
        outcomes.append(facts(classifier))
        assert outcomes[-1] in (old, new), line
        assert facts(classifier.fit(X, y)) == new  # and it can go on from there
    assert old in outcomes
