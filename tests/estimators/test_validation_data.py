"""Rows that the caller passes to be watched: what is trained on, when it ends, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from classifiers import CASES, KINDS, drawn
from sklearn import config_context
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpustump import AdaBoostClassifier
from gpustump.data.parameters import SCORINGS

WATCHING = {
    "n_estimators": 40,
    "n_iter_no_change": 4,
    "validation_fraction": 0.4,
    "random_state": 5,
}


def parts_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that early stopping trains on, and those that it draws to watch."""
    seed = int(np.random.RandomState(WATCHING["random_state"]).randint(2**31 - 1))
    kept, watched = train_test_split(
        np.arange(len(y)), test_size=WATCHING["validation_fraction"], stratify=y, random_state=seed
    )
    return np.sort(kept), np.sort(watched)


def validation(X, y, weights=None) -> dict:
    return {"X_val": X, "y_val": y, "sample_weight_val": weights}


def check_equal(found, expected) -> None:
    assert found.model_.digest() == expected.model_.digest()
    assert found.rounds_ == expected.rounds_
    assert found.held_out_scores_ == expected.held_out_scores_
    assert found.held_out_errors_ == expected.held_out_errors_
    assert found.stop_reasons_ == expected.stop_reasons_


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_rows_that_a_split_would_hold_out_are_watched_as_that_split_does(kind, n_classes):
    X, y = drawn(n_classes, n_samples=150, missing=0.05, seed=3)
    weights = np.random.default_rng(1).integers(0, 3, size=150).astype(float)
    there = np.flatnonzero(weights)
    kept, watched = (there[own] for own in parts_of(y[there]))
    options = WATCHING | {"scoring": SCORINGS[CASES.index((kind, n_classes)) % len(SCORINGS)]}
    expected = KINDS[kind](**options).fit(X, y, weights)
    found = KINDS[kind](**options).fit(
        X[kept], y[kept], weights[kept], **validation(X[watched], y[watched], weights[watched])
    )
    check_equal(found, expected)


def test_rows_on_another_device_are_refused_and_lists_are_moved():
    strict = pytest.importorskip("array_api_strict")
    X, y = drawn(3, n_samples=100, seed=3)
    device = strict.Device("device1")  # of the host, but the library keeps its devices apart

    def there(values):
        return strict.asarray(values, device=device)

    train, plain = (there(X[:60]), there(y[:60])), KINDS["newton"](n_estimators=4)
    plain.fit(X[:60], y[:60], **validation(X[60:], y[60:]))
    for rows in (
        validation(there(X[60:]), there(y[60:]), there(np.ones(40))),
        validation(X[60:].tolist(), y[60:].tolist()),
    ):
        check_equal(KINDS["newton"](n_estimators=4).fit(*train, **rows), plain)
    with pytest.raises(ValueError, match=r"X is on .*device1.* but X_val is on cpu; move one"):
        KINDS["newton"]().fit(*train, **validation(X[60:], y[60:]))
    with pytest.raises(ValueError, match=r"y_val: X is on .*device1.* but y is on cpu; move one"):
        KINDS["newton"]().fit(*train, **validation(there(X[60:]), y[60:]))


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_without_early_stopping_all_rounds_are_made_and_kept_and_judged(kind, n_classes):
    X, y = drawn(n_classes, n_samples=150, seed=3)
    plain = KINDS[kind](n_estimators=12).fit(X[:90], y[:90])
    found = KINDS[kind](n_estimators=12).fit(X[:90], y[:90], **validation(X[90:], y[90:]))
    assert found.model_.digest() == plain.model_.digest()
    assert found.stop_reasons_ == plain.stop_reasons_
    assert [len(own) for own in found.held_out_scores_] == [len(own) for own in found.rounds_]
    if len(found.rounds_) == 1:
        errors = [float(np.mean(own != y[90:])) for own in plain.staged_predict(X[90:])]
        np.testing.assert_allclose(found.held_out_errors_[0], errors, atol=1e-15)


def test_frames_and_text_labels_are_taken_as_those_of_the_training_table():
    X, y = drawn(3, n_samples=150, seed=3)
    names = np.asarray(["low", "middle", "high"])
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    plain = KINDS["newton"](**WATCHING).fit(X[:90], y[:90], **validation(X[90:], y[90:]))
    found = KINDS["newton"](**WATCHING).fit(
        frame[:90], pd.Series(names[y[:90]]), **validation(frame[90:], pd.Series(names[y[90:]]))
    )
    assert sorted(map(len, found.rounds_)) == sorted(map(len, plain.rounds_))
    assert sorted(found.held_out_scores_) == sorted(plain.held_out_scores_)


def test_a_pipeline_transforms_the_rows_that_are_watched():
    X, y = drawn(2, n_samples=150, seed=3)
    scaler = StandardScaler().fit(X[:90])
    plain = AdaBoostClassifier(**WATCHING).fit(
        scaler.transform(X[:90]), y[:90], **validation(scaler.transform(X[90:]), y[90:])
    )
    with config_context(enable_metadata_routing=True):
        boosting = AdaBoostClassifier(**WATCHING).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), boosting)
        pipeline.set_params(transform_input=["X_val"])
        pipeline.fit(X[:90], y[:90], X_val=X[90:], y_val=y[90:])
    check_equal(pipeline[-1], plain)


@pytest.mark.parametrize(("kind", "n_classes"), [("real", 2), ("newton", 3)])
def test_bags_are_trained_on_their_shares_and_all_watch_the_rows_that_are_passed(kind, n_classes):
    X, y = drawn(n_classes, n_samples=200, seed=3)
    rows, options = validation(X[140:], y[140:]), WATCHING | {"n_estimators": 12}
    bagged = KINDS[kind](**options, n_bags=2).fit(X[:140], y[:140], **rows)
    state = np.random.RandomState(WATCHING["random_state"])
    found = []
    for _ in range(2):
        seed = int(state.randint(2**31 - 1))
        kept, _ = train_test_split(
            np.arange(140), test_size=0.4, stratify=y[:140], random_state=seed
        )
        kept = np.sort(kept)
        found.append(KINDS[kind](**options).fit(X[kept], y[kept], **rows))
    assert bagged.rounds_ == tuple(own for one in found for own in one.rounds_)
    assert bagged.held_out_scores_ == tuple(own for one in found for own in one.held_out_scores_)


def test_a_warm_start_of_bags_keeps_their_shares_whatever_is_watched():
    X, y = drawn(2, n_samples=200, seed=3)
    rows = validation(X[140:], y[140:])
    options = WATCHING | {"n_bags": 2, "n_iter_no_change": None}
    plain = KINDS["newton"](**(options | {"n_estimators": 9})).fit(X[:140], y[:140])
    parts = KINDS["newton"](**(options | {"n_estimators": 2}), warm_start=True)
    shares = KINDS["newton"](**(options | {"n_estimators": 9, "n_iter_no_change": 99}))
    shares.fit(X[:140], y[:140])
    for n_estimators, given in ((2, {}), (4, rows), (6, {}), (9, rows)):
        parts.set_params(n_estimators=n_estimators).fit(X[:140], y[:140], **given)
    assert parts.model_.digest() == plain.model_.digest()
    assert [len(own) for own in parts.held_out_scores_] == [9, 9]
    parts.set_params(n_iter_no_change=99).fit(X[:140], y[:140])
    expected = [own[:9] for own in shares.held_out_scores_]
    assert [own[:9] for own in parts.held_out_scores_] == expected


@pytest.mark.parametrize("before", ["nothing", "a share", "other rows"])
def test_a_warm_start_judges_the_earlier_rounds_by_the_rows_that_it_is_given(before):
    X, y = drawn(2, n_samples=200, seed=3)
    classifier = KINDS["newton"](n_estimators=5, warm_start=True, random_state=0)
    if before == "a share":
        classifier.set_params(n_iter_no_change=99)
    others = {"other rows": validation(X[:40], 1 - y[:40])}
    classifier.fit(X[:120], y[:120], **others.get(before, {}))
    n_before = classifier.n_iter_
    classifier.set_params(n_estimators=9, n_iter_no_change=None)
    classifier.fit(X[:120], y[:120], **validation(X[120:], y[120:]))
    assert classifier.n_iter_ == 9 > n_before
    errors = [float(np.mean(own != y[120:])) for own in classifier.staged_predict(X[120:])]
    np.testing.assert_allclose(classifier.held_out_errors_[0], errors, atol=1e-15)
    assert len(classifier.held_out_scores_[0]) == 9


def test_a_warm_start_does_not_hold_out_rows_that_it_was_trained_on_while_others_were_watched():
    X, y = drawn(2, n_samples=150, seed=3)
    classifier = KINDS["real"](**(WATCHING | {"n_estimators": 4}), warm_start=True)
    classifier.fit(X[:90], y[:90], **validation(X[90:], y[90:]))
    before = classifier.model_.digest()
    classifier.set_params(n_estimators=9)
    with pytest.raises(ValueError, match="the earlier fit watched X_val and y_val, and trained on"):
        classifier.fit(X[:90], y[:90])
    classifier.set_params(scoring="accuracy")
    with pytest.raises(ValueError, match="scoring is 'accuracy', and it was 'loss'"):
        classifier.fit(X[:90], y[:90], **validation(X[90:], y[90:]))
    assert classifier.model_.digest() == before


X, Y = drawn(3)


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy"])
def test_a_score_of_all_classes_needs_rows_of_each_to_watch(scoring):
    with pytest.raises(ValueError, match=f"scoring='{scoring}' needs samples of every class in y"):
        KINDS["real"](scoring=scoring).fit(X, Y, **validation(X, Y % 2))
    found = KINDS["real"](n_estimators=3).fit(X, Y, **validation(X, 0 * Y))
    assert [len(own) for own in found.held_out_scores_] == [3, 3, 3]


def test_rows_of_weight_zero_are_not_watched_whatever_their_label_is():
    rows = np.flatnonzero(Y < 2)
    plain = KINDS["newton"](n_estimators=3).fit(X, Y, **validation(X[rows], Y[rows]))
    labels, weights = np.where(Y < 2, Y, 77), np.where(Y < 2, 1.0, 0.0)
    found = KINDS["newton"](n_estimators=3).fit(X, Y, **validation(X, labels, weights))
    check_equal(found, plain)
