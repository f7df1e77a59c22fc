"""Fitting again: a warm start is one fit, what it refuses, and interruptions anywhere."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited_fits import FITS, facts_of
from classifiers import CASES, KINDS, drawn
from sklearn.base import clone

import gpustump
from gpustump import (
    AdaBoostClassifier,
    Interval,
    LogitBoostClassifier,
    Stump,
    StumpBoostingRegressor,
)

EVERY_CASE = pytest.mark.parametrize(("kind", "n_classes"), CASES)
PACKAGE = str(Path(gpustump.__file__).parent)

X = np.random.default_rng(0).normal(size=(300, 4))
NOISE = np.random.default_rng(1).integers(0, 2, size=300)


@pytest.mark.parametrize("name", FITS)
def test_a_warm_start_is_one_fit(name):
    recipe = FITS[name]
    how = {"random_state": recipe.unfitted().random_state or 0}
    whole = recipe.fitted(**how).classifier
    parts = recipe.unfitted(**how, warm_start=True)
    n_rounds = whole.n_estimators_
    for n_estimators in (2, 5, n_rounds):
        parts.set_params(n_estimators=n_estimators).fit(*recipe.data, **recipe.more)
    assert facts_of(parts) == facts_of(whole)
    with pytest.raises(ValueError, match=f"n_estimators=1 is less than the {parts.n_iter_} rounds"):
        parts.set_params(n_estimators=1).fit(*recipe.data, **recipe.more)
    assert facts_of(parts) == facts_of(whole)


def test_a_random_state_that_gives_other_samples_at_each_draw_is_drawn_from_once():
    how = {"n_iter_no_change": 3, "validation_fraction": 0.3}
    state = np.random.RandomState(0)
    parts = AdaBoostClassifier(warm_start=True, random_state=state, **how)
    for n_estimators in (4, 8, 12):
        parts.set_params(n_estimators=n_estimators).fit(X, NOISE)
    state = np.random.RandomState(0)
    whole = AdaBoostClassifier(n_estimators=12, random_state=state, **how).fit(X, NOISE)
    assert facts_of(parts) == facts_of(whole)


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
    assert [[(r.stump, r.votes) for r in own[:4]] for own in classifier.rounds_] == rounds
    np.testing.assert_array_equal(list(classifier.staged_decision_function(X))[3], scores)
    anew = KINDS[kind](n_estimators=4).fit(others, labels, weights)
    assert [member.constant.tolist() for member in anew.model_.members] != constants


def test_votes_for_missing_values_that_earlier_rounds_learnt_stay_learnt():
    lacking = X.copy()
    lacking[:50, 0] = np.nan
    classifier = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(lacking, NOISE)
    classifier.set_params(n_estimators=8).fit(X, NOISE)
    assert classifier.model_.missing_learnt == (True, False, False, False)


PLAIN = AdaBoostClassifier()
BAGS = AdaBoostClassifier(n_bags=3, random_state=0)
WATCHING = AdaBoostClassifier(n_iter_no_change=5, random_state=0)
CONSTRAINED = LogitBoostClassifier(monotonic_cst=[1, -1, 0, 1])
Y3 = np.arange(300) % 3
DATA, OF_3, NO_EARLY = (X, NOISE), (X, Y3), np.arange(300) > 50
COUNTS = StumpBoostingRegressor(loss="poisson")
REFUSED: list[tuple[Any, dict[str, Any], tuple[Any, ...], str]] = [
    (KINDS["discrete"](), {"votes": "real"}, OF_3, "discrete votes .*real votes"),
    (KINDS["real"](), {"votes": "discrete"}, OF_3, "real votes .*discrete votes"),
    (KINDS["discrete"](), {"multi_class": "shared"}, OF_3, "'one_vs_rest'.*'shared'"),
    (KINDS["real-shared"](), {"multi_class": "one_vs_rest"}, OF_3, "'shared'.*'one_vs_r"),
    (KINDS["newton"](), {"multi_class": "shared"}, OF_3, "'one_vs_rest'.*'shared'"),
    (KINDS["real"](), {"weak_learner": "interval"}, DATA, "='interval' is for votes="),
    (KINDS["newton"](), {}, (X, NOISE + 1), "must hold those of the earlier fit, 0, 1"),
    (WATCHING, {"scoring": "roc_auc"}, DATA, "scoring is 'roc_auc', and it was 'loss'"),
    (WATCHING, {"validation_fraction": 0.5}, DATA, r"on is 0\.5, and it was 0\.1"),
    (WATCHING, {}, (X, 1 - NOISE), "of positive weight, or their labels, are not"),
    (WATCHING, {}, (X, NOISE, NO_EARLY), "of positive weight, or their labels, are not"),
    (PLAIN, {"n_iter_no_change": 5}, DATA, "trained on: the earlier fit held nothing out"),
    (BAGS, {}, (X, 1 - NOISE), "warm_start=True would hold out samples that were trained on"),
    (BAGS, {"n_bags": 2}, DATA, "n_bags is 2, but with warm_start=True it must be 3"),
    (PLAIN, {"categorical_features": [0]}, DATA, r"categorical_features=None; got \[0\]"),
    (CONSTRAINED, {"monotonic_cst": [1, -1, 1, 1]}, DATA, "be dropped, but not added"),
    (CONSTRAINED, {"monotonic_cst": [-1, -1, 0, 1]}, DATA, "be dropped, but not added"),
    (StumpBoostingRegressor(), {}, (X, 3.0 * NOISE), "in the range of the first fit"),
    (StumpBoostingRegressor(), {"loss": "poisson"}, DATA, "='squared_error'.*='poisson'"),
    (COUNTS, {"loss": "gamma"}, DATA, "='poisson'.*='gamma'"),
    (COUNTS, {}, (X, 1e9 * NOISE), "y, with these weights or exposures, cannot be learnt"),
]


@pytest.mark.parametrize(("before", "changes", "data", "message"), REFUSED)
def test_what_a_warm_start_cannot_go_on_with_is_refused(before, changes, data, message):
    classifier = clone(before).set_params(n_estimators=2, warm_start=True)
    classifier.fit(X, data[1] if data[1] is Y3 else NOISE)
    model = classifier.model_
    with pytest.raises(ValueError, match=message):
        classifier.set_params(n_estimators=4, **changes).fit(*data)
    assert classifier.model_ is model


def test_a_warm_start_may_drop_constraints_and_change_weights_that_stay_positive():
    classifier = clone(CONSTRAINED).set_params(n_estimators=2, warm_start=True).fit(X, NOISE)
    classifier.set_params(n_estimators=4, monotonic_cst=[1, 0, 0, 1]).fit(X, NOISE)
    watching = clone(WATCHING).set_params(n_estimators=4, warm_start=True).fit(X, NOISE)
    watching.set_params(n_estimators=9).fit(X, NOISE, np.linspace(1.0, 2.0, 300))
    watching.set_params(n_iter_no_change=None, n_estimators=12).fit(X, NOISE)
    assert watching.held_out_errors_ == ((),)
    with pytest.raises(ValueError, match="held nothing out"):
        watching.set_params(n_iter_no_change=5, n_estimators=15).fit(X, NOISE)


def interrupted_at(line: int, run: Callable[[], object], where: Callable[[Any], bool]) -> int:
    """Run, and raise KeyboardInterrupt before that line of some functions; how many were passed."""
    passed = 0

    def trace(frame, event, argument):
        if not where(frame.f_code):
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


def test_an_interruption_at_any_line_of_the_end_of_a_fit_leaves_the_old_or_the_new_model_whole():
    y_new, words = np.asarray(["no", "yes", "perhaps"])[Y3], ("no", "perhaps", "yes")
    old = AdaBoostClassifier(n_estimators=2, device="cpu").fit(X[:50, :3], NOISE[:50])

    def at_the_end(code: Any) -> bool:
        return code.co_name in ENDS

    line, passed, outcomes = -1, 0, set()
    while passed >= line:
        line += 1
        classifier = copy.copy(old)
        passed = interrupted_at(line, lambda c=classifier: c.fit(X[:60], y_new[:60]), at_the_end)
        model = classifier.model_
        found = tuple(classifier.classes_.tolist()), model.classes, classifier.n_classes_
        outcomes.add((*found, classifier.n_features_in_, model.n_features, len(classifier.rounds_)))
        classifier.predict(X[:, : classifier.n_features_in_])
    assert line > 30
    assert outcomes == {((0, 1), (0, 1), 2, 3, 3, 1), (words, words, 3, 4, 4, 3)}


ENDS = ("fit", "_fit", "_train", "_take_over", "_attributes", "model_of")


def test_an_interruption_anywhere_leaves_the_old_model_or_the_new_one_whole_and_it_goes_on():
    X, y = drawn(3, n_samples=40, missing=0.1)

    def started():
        how = {"warm_start": True, "n_iter_no_change": 3, "random_state": 0, "device": "cpu"}
        return KINDS["real"](n_estimators=1, **how).fit(X, y).set_params(n_estimators=3)

    def anywhere(code: Any) -> bool:
        return code.co_filename.startswith(PACKAGE)

    old, new = facts_of(started()), facts_of(started().fit(X, y))
    assert old != new
    classifier = started()
    n_lines = interrupted_at(-1, lambda: classifier.fit(X, y), anywhere)
    assert n_lines > 1000
    outcomes = []
    for line in np.random.default_rng(0).integers(0, n_lines, size=12):
        classifier = started()
        interrupted_at(int(line), lambda c=classifier: c.fit(X, y), anywhere)
        outcomes.append(facts_of(classifier))
        assert outcomes[-1] in (old, new), line
        assert facts_of(classifier.fit(X, y)) == new
    assert old in outcomes


def test_a_warm_start_may_go_on_with_intervals():
    random = np.random.default_rng(5)
    X = random.normal(size=(300, 4))
    y = np.abs(X[:, 1]) + 0.4 * random.normal(size=300) < 0.7
    fitted = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)
    fitted.set_params(n_estimators=8, weak_learner="interval").fit(X, y)
    kinds = [type(stump) for stump in fitted.model_.members[0].stumps]
    assert kinds[:4] == [Stump] * 4
    assert Interval in kinds[4:]
    assert fitted.rounds_[0][-1].training_error == np.mean(fitted.predict(X) != y)
