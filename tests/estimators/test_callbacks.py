"""scikit-learn's own callbacks: which tasks they are told of, and the classifier that they get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn

from gpustump import DeviceError
from gpustump.boosting.rounds.boosting import Boosting

callbacks = pytest.importorskip("sklearn.callback")


class Recorder:
    """Notes each task that begins or ends, and after each round what the classifier predicts for
    X."""

    def __init__(self, stops_after: int = 10**9, fails_after: int = 10**9) -> None:
        self.told: list[tuple[str, tuple[int, ...], str]] = []
        self.scores: list[np.ndarray] = []
        self.metadata: list[Any] = []
        self._stops_after, self._fails_after = stops_after, fails_after

    def setup(self, estimator, context):
        self.told.append(("setup", (), context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", (), context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", self._path(context), context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        path = self._path(context)
        self.told.append(("end", path, context.task_name))
        self.metadata.append(metadata)
        assert len(y) == len(X)
        self.scores.append(fitted_estimator.decision_function(X))
        if context.task_name == "round" and path[-1] + 1 == self._fails_after:
            raise RuntimeError("the callback failed")
        return context.task_name == "round" and path[-1] + 1 >= self._stops_after

    def _path(self, context) -> tuple[int, ...]:
        return () if context.parent is None else (*self._path(context.parent), context.task_id)


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_callbacks_are_told_of_every_round_with_the_classifier_up_to_it(kind, n_classes):
    X, y = drawn(n_classes)
    recorder = Recorder()
    classifier = KINDS[kind](n_estimators=4).set_callbacks(recorder).fit(X, y)
    plain = KINDS[kind](n_estimators=4).fit(X, y)
    assert classifier.model_.digest() == plain.model_.digest()
    assert classifier.rounds_ == plain.rounds_
    told = [("setup", (), "fit"), ("begin", (), "fit")]
    several = len(plain.rounds_) > 1
    for number, rounds in enumerate(plain.rounds_):
        above = (number,) if several else ()
        told += [("begin", above, "class")] * several
        for at in range(len(rounds)):
            path = (*above, at)
            told += [("begin", path, "round"), ("end", path, "round")]
        told += [("end", above, "class")] * several
    assert recorder.told == [*told, ("end", (), "fit"), ("teardown", (), "fit")]
    assert set(map(str, recorder.metadata)) == {"None"}

    np.testing.assert_array_equal(recorder.scores[-1], plain.decision_function(X))
    if not several:
        np.testing.assert_array_equal(recorder.scores[:-1], list(plain.staged_decision_function(X)))
        return
    n_rounds = [len(rounds) for rounds in plain.rounds_]
    after_classes = np.cumsum(np.asarray(n_rounds) + 1) - 1
    for number, at in enumerate(after_classes):  # runs that are done are whole, others are empty
        done = recorder.scores[at][:, : number + 1]
        np.testing.assert_array_equal(done, plain.decision_function(X)[:, : number + 1])
        assert not recorder.scores[at][:, number + 1 :].any()


def test_scikit_learn_s_monitor_logs_the_scores_of_the_staged_models():
    X, y = drawn(3)
    weights = np.random.default_rng(0).uniform(1, 2, len(y))
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    classifier = KINDS["newton-shared"](n_estimators=5).set_callbacks(monitor)
    classifier.fit(X, y, weights)
    logged = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "round"]
    np.testing.assert_allclose(logged, list(classifier.staged_score(X, y, weights)))


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_a_true_answer_ends_the_run(kind, n_classes):
    X, y = drawn(n_classes)
    classifier = KINDS[kind](n_estimators=9).set_callbacks(Recorder(stops_after=3)).fit(X, y)
    assert set(classifier.stop_reasons_) == {"callback"}
    assert classifier.rounds_ == KINDS[kind](n_estimators=3).fit(X, y).rounds_


def test_a_callback_that_fails_leaves_the_fitted_model_alone_and_is_torn_down():
    X, y = drawn(3)
    classifier = KINDS["newton"](n_estimators=2).fit(X, y)
    before = classifier.model_.digest()
    recorder = Recorder(fails_after=3)
    classifier.set_callbacks(recorder).set_params(n_estimators=5)
    with pytest.raises(RuntimeError, match="the callback failed"):
        classifier.fit(X, y)
    assert classifier.model_.digest() == before
    assert recorder.told[-1][0] == "teardown"
    classifier.set_callbacks().fit(X, y)
    assert classifier.n_iter_ == 5


def test_bags_are_tasks_and_the_classifier_is_the_average_of_those_so_far():
    X, y = drawn(3)
    recorder = Recorder()
    options = {"n_estimators": 2, "n_bags": 2, "random_state": 0}
    KINDS["newton"](**options).set_callbacks(recorder).fit(X, y)
    plain = KINDS["newton"](**options).fit(X, y)
    begun = [(path, name) for what, path, name in recorder.told if what == "begin"]
    expected: list[tuple[tuple[int, ...], str]] = [((), "fit")]
    for bag in range(2):
        expected.append(((bag,), "bag"))
        for run in range(3):
            expected.append(((bag, run), "class"))
            expected += [((bag, run, at), "round") for at in range(2)]
    assert begun == expected
    ends = [(path, name) for what, path, name in recorder.told if what == "end"]
    (first, last) = (ends.index(((bag,), "bag")) for bag in range(2))
    bags = [model.decision_function(X) for model in plain.model_.bag_models]
    np.testing.assert_allclose(recorder.scores[first], bags[0], atol=1e-9)
    for at in (last, -1):
        np.testing.assert_array_equal(recorder.scores[at], plain.decision_function(X))


@pytest.mark.parametrize("kind", ["real", "newton-shared"])
def test_a_fit_that_goes_on_to_the_cpu_is_told_of_once(kind, monkeypatch):
    X, y = drawn(3)
    expected, recorder = Recorder(), Recorder()
    KINDS[kind](n_estimators=3).set_callbacks(expected).fit(X, y)
    take, failures = Boosting.take, [DeviceError("out of memory")]

    def failing(self, *at_once):
        if failures:
            raise failures.pop()
        return take(self, *at_once)

    monkeypatch.setattr(Boosting, "take", failing)
    words = "goes on to the CPU, since the GPU failed: out of memory"
    with pytest.warns(UserWarning, match=words) as warned:
        KINDS[kind](n_estimators=3).set_callbacks(recorder).fit(X, y)
    assert warned[0].filename == __file__  # not a file of the package or of scikit-learn
    assert recorder.told == expected.told
