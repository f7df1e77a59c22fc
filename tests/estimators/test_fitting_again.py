"""Fitting an estimator again: warm starts, interruptions, and what changes in between."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble
from gpustump.boosting.early_stopping import EarlyStopping, Stopping
from gpustump.boosting.held_out_scores import HeldOut, scorer
from gpustump.boosting.judging import Judgement, LocalJudge
from gpustump.engines.integer_weights import IntegerWeights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
NOISE = RNG.integers(0, 2, size=300)


def watching(**changes) -> AdaBoostClassifier:
    parameters = {"n_estimators": 20, "warm_start": True, "random_state": 0, "n_iter_no_change": 5}
    return AdaBoostClassifier(**(parameters | changes))


def test_a_warm_start_does_not_begin_to_watch_samples_that_it_was_trained_on():
    classifier = watching(n_iter_no_change=None).fit(X, NOISE)
    before = classifier.model_.digest()
    classifier.set_params(n_iter_no_change=5, n_estimators=40)
    with pytest.raises(ValueError, match="trained on: the earlier fit held nothing out"):
        classifier.fit(X, NOISE)
    assert classifier.model_.digest() == before


def test_a_warm_start_does_not_begin_to_watch_again_after_a_fit_that_held_nothing_out():
    classifier = watching().fit(X, NOISE)
    classifier.set_params(n_iter_no_change=None, n_estimators=30).fit(X, NOISE)
    assert classifier.held_out_errors_ == ((),)
    classifier.set_params(n_iter_no_change=5, n_estimators=40)
    with pytest.raises(ValueError, match="held nothing out"):
        classifier.fit(X, NOISE)


def test_a_warm_start_does_not_watch_a_larger_share():
    classifier = watching().fit(X, NOISE).set_params(validation_fraction=0.5, n_estimators=40)
    with pytest.raises(ValueError, match=r"validation_fraction is 0\.5, and it was 0\.1"):
        classifier.fit(X, NOISE)


def test_a_warm_start_does_not_watch_other_samples_when_weights_turn_to_zero():
    weights = np.where(np.arange(300) < 50, 0.0, 1.0)
    classifier = watching().fit(X, NOISE).set_params(n_estimators=40)
    with pytest.raises(ValueError, match="samples of positive weight, or their labels, are not"):
        classifier.fit(X, NOISE, weights)
    with pytest.raises(ValueError, match="samples of positive weight, or their labels, are not"):
        classifier.fit(X, 1 - NOISE)


def test_a_warm_start_may_change_weights_that_stay_positive():
    classifier = watching().fit(X, NOISE).set_params(n_estimators=40)
    n_before = len(classifier.rounds_[0])
    classifier.fit(X, NOISE, np.linspace(1.0, 2.0, 300))
    assert len(classifier.rounds_[0]) >= n_before


def test_held_out_scores_belong_to_the_rounds_after_a_warm_start():
    once = watching(n_estimators=40, n_iter_no_change=40).fit(X, NOISE)
    classifier = watching(n_iter_no_change=40).fit(X, NOISE)
    kept = len(classifier.rounds_[0])
    classifier.set_params(n_estimators=40).fit(X, NOISE)
    assert classifier.held_out_errors_ == once.held_out_errors_
    (scores,) = classifier.held_out_scores_
    assert scores == once.held_out_scores_[0]
    assert len(classifier.rounds_[0]) == int(np.argmax(scores)) + 1 >= kept


def test_a_warm_start_does_not_go_on_with_another_score():
    classifier = watching().fit(X, NOISE)
    before = classifier.model_.digest()
    classifier.set_params(n_estimators=40, scoring="roc_auc")
    with pytest.raises(ValueError, match="scoring is 'roc_auc', and it was 'loss'"):
        classifier.fit(X, NOISE)
    assert classifier.model_.digest() == before
    classifier.set_params(scoring="loss").fit(X, NOISE)


def test_an_earlier_rounds_held_out_score_is_worked_out_once():
    class Counting(LocalJudge):
        n_scores = 0

        def judged(self) -> Judgement:
            self.n_scores += 1
            return super().judged()

    stumps = [Stump(0, float(at), 1, 1, 0.4) for at in range(8)]
    signs = np.where(NOISE, 1.0, -1.0)
    held_out = HeldOut(signs, IntegerWeights.of(np.ones(300)))
    judge = Counting(X, None, held_out, scorer("loss", held_out))
    watch = EarlyStopping(judge, Stopping(patience=3))
    watch.resume(stumps, [0.5] * 8)
    assert judge.n_scores == 1
    assert watch.best_round == 8


def interrupted_at(step: int, run) -> bool:
    """Run, and raise KeyboardInterrupt when that many lines of the room of estimators are done."""
    left = step

    def trace(frame, event, argument):
        if Path(frame.f_code.co_filename).parent.name != "estimators":
            return None

        def by_line(frame, event, argument):
            nonlocal left
            if event == "line":
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            return by_line

        return by_line(frame, event, argument)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interruption_at_any_line_leaves_the_old_model_or_the_new_one_whole():
    y_old, y_new = NOISE, np.asarray(["no", "yes", "perhaps"])[np.arange(300) % 3]
    step, outcomes = 0, set()
    while True:
        classifier = AdaBoostClassifier(n_estimators=2, device="cpu").fit(X[:, :3], y_old)
        was_interrupted = interrupted_at(step, lambda c=classifier: c.fit(X, y_new))
        found = (
            tuple(classifier.classes_.tolist()),
            classifier.model_.classes,
            classifier.n_classes_,
            classifier.n_features_in_,
            classifier.model_.n_features,
            len(classifier.rounds_),
        )
        outcomes.add(found)
        classifier.predict(X[:, : classifier.n_features_in_])
        if not was_interrupted:
            break
        step += 1
    assert step > 40
    words = ("no", "perhaps", "yes")
    assert outcomes == {((0, 1), (0, 1), 2, 3, 3, 1), (words, words, 3, 4, 4, 3)}


def test_what_was_fitted_does_not_change_with_the_parameters():
    classifier = AdaBoostClassifier(n_estimators=5, learning_rate=0.5).fit(X, NOISE)
    votes, errors = classifier.estimator_weights_, classifier.estimator_errors_
    classifier.set_params(n_estimators=50)
    assert np.array_equal(classifier.estimator_weights_, votes)
    assert np.array_equal(classifier.estimator_errors_, errors)
    assert votes.shape == (5,)


def test_shares_of_votes_add_up_to_1_with_negative_votes():
    stumps = tuple(Stump(feature, 0.0, 1, 1, 0.4) for feature in (0, 1, 0))
    model = StumpEnsemble((Member(stumps, (0.5, -0.5, 0.25)),), n_features=3)
    shares = model.feature_importances()
    assert math.fsum(shares) == 1.0
    assert shares.tolist() == [0.6, 0.4, 0.0]
