"""Held-out samples: which are drawn or passed, how they are judged, when a fit ends, its curves.

Scores are computed again from models that were fitted without early stopping on the samples that
were left.
"""

from __future__ import annotations

import numpy as np
import pytest
from backends import Backend
from classifiers import CASES, KINDS, SHARED, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from models_by_hand import skip_if_costly
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from gpustump import GlassBoxRegressor
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.data.parameters import SCORINGS
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.estimators.held_out import Strata

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


ONE_RUN = [("discrete", 2), ("real", 2), ("newton", 2)] + [(kind, 3) for kind in SHARED]


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize(("kind", "n_classes"), ONE_RUN)
def test_held_out_scores_are_those_of_models_of_the_other_samples(kind, n_classes, scoring):
    """tests/boosting/test_held_out.py compares the scores with their definitions."""
    X, y = drawn(n_classes, n_samples=150, missing=0.05, seed=3)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, len(y))
    stopped = KINDS[kind](scoring=scoring, **WATCHING).fit(X, y, weights)
    (scores,), (errors,), (reason,) = (
        stopped.held_out_scores_, stopped.held_out_errors_, stopped.stop_reasons_,
    )  # fmt: skip
    best = stopped.n_iter_
    assert best == int(np.argmax(scores)) + 1 == len(stopped.rounds_[0])
    assert reason == ("early" if len(scores) < WATCHING["n_estimators"] else "limit")
    assert len(scores) == len(errors) == min(best + PATIENCE, WATCHING["n_estimators"])

    kept, watched = parts_of(y)
    free = KINDS[kind](n_estimators=len(scores)).fit(X[kept], y[kept], weights[kept])
    assert stopped.rounds_[0] == free.rounds_[0][:best]
    n_outputs, own_weights = 1 if n_classes == 2 else n_classes, weights[watched]
    held_out = HeldOut(y[watched], IntegerWeights.of(own_weights), n_outputs)
    score_of = scorer(scoring, held_out, free.model_.link)
    assert [score_of(own) for own in free.staged_decision_function(X[watched])] == list(scores)
    wrong = [own != y[watched] for own in free.staged_predict(X[watched])]
    np.testing.assert_allclose(errors, np.average(wrong, axis=1, weights=own_weights), atol=1e-12)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_every_backend_watches_rows_of_any_library_and_stops_alike(backend: Backend, scoring):
    skip_if_costly(backend, SCORINGS.index(scoring))
    kind, n_classes = ONE_RUN[SCORINGS.index(scoring)]
    X, y = drawn(n_classes, n_samples=100, missing=0.05, seed=3)
    how = WATCHING | {"n_iter_no_change": 2, "n_estimators": 8, "scoring": scoring}
    own = [backend.asarray(part) for part in (X, y, X[:60], y[:60], X[60:], y[60:], np.ones(40))]
    there = KINDS[kind](**how).fit(*own[:2])
    check_equal(there, KINDS[kind](**how).fit(X, y))
    plain = KINDS[kind](**how).fit(X[:60], y[:60], **validation(X[60:], y[60:]))
    check_equal(there.fit(*own[2:4], **validation(*own[4:])), plain)
    check_equal(there.fit(*own[2:4], **validation(X[60:].tolist(), y[60:].tolist())), plain)
    if backend.on_gpu:
        with pytest.raises(ValueError, match="X is on cuda:0 but X_val is on cpu"):
            there.fit(*own[2:4], **validation(X[60:], y[60:]))


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


@pytest.mark.parametrize("before", ["nothing", "a share", "other rows"])
def test_a_warm_start_judges_the_earlier_rounds_by_the_rows_that_it_is_given(before):
    X, y = drawn(2, n_samples=200, seed=3)
    classifier = KINDS["newton"](n_estimators=5, warm_start=True, random_state=0)
    classifier.set_params(n_iter_no_change=99 if before == "a share" else None)
    others = validation(X[:40], 1 - y[:40]) if before == "other rows" else {}
    n_before = classifier.fit(X[:120], y[:120], **others).n_iter_
    classifier.set_params(n_estimators=9, n_iter_no_change=None)
    classifier.fit(X[:120], y[:120], **validation(X[120:], y[120:]))
    assert classifier.n_iter_ == 9 > n_before
    errors = [float(np.mean(own != y[120:])) for own in classifier.staged_predict(X[120:])]
    np.testing.assert_allclose(classifier.held_out_errors_[0], errors, atol=1e-15)


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


def both(classes: np.ndarray, share: float, seed: int) -> list[list[list[int]] | None]:
    """The samples kept and set aside here and by scikit-learn; None for an error.

    scikit-learn gets the samples of classes with two or more; the others are kept.
    """
    is_lone = np.bincount(classes)[classes] == 1

    def by_scikit_learn() -> tuple[np.ndarray, np.ndarray]:
        index = np.flatnonzero(~is_lone)
        kept, apart = train_test_split(
            index, test_size=share, stratify=classes[index], random_state=seed
        )
        return np.sort([*kept, *np.flatnonzero(is_lone)]), np.sort(apart)

    found: list[list[list[int]] | None] = []
    for draw in (lambda: Strata.of(classes).drawn(share, seed), by_scikit_learn):
        try:
            found.append([own.tolist() for own in draw()])
        except ValueError:
            found.append(None)
    return found


@settings(max_examples=100)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 4), st.integers(2, 60)), min_size=2, max_size=12),
    share=st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.1, 0.15, 0.2, 0.25, 0.5, 0.9])),
    seed=st.integers(0, 2**32 - 1),
)
def test_classes_of_any_sizes_are_drawn_alike(sizes, share, seed):
    classes = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(seed).shuffle(classes)
    if len(classes):
        ours, theirs = both(classes, share, seed)
        assert ours == theirs


ROWS, _ = drawn(2, n_samples=150, seed=3)


def test_a_quantity_of_too_few_samples_is_refused_without_a_word_of_classes():
    for n_samples, share in ((1, 0.2), (2, 0.9)):
        regressor = GlassBoxRegressor(validation_fraction=share, random_state=0)
        with pytest.raises(ValueError, match=f"={share} of {n_samples} samples? leaves none to tr"):
            regressor.fit(ROWS[:n_samples], np.arange(n_samples))


def test_only_what_was_watched_has_a_curve_by_the_score_of_the_fit():
    _, y = drawn(2, n_samples=150, seed=3)
    classifier = KINDS["newton"](n_estimators=30, n_iter_no_change=3, random_state=1)
    with pytest.raises(NotFittedError):
        classifier.evals_result_  # noqa: B018
    classifier.fit(ROWS, y).set_params(scoring="accuracy")
    curves = classifier.evals_result_
    assert curves["validation"]["neg_log_loss"] == list(classifier.held_out_scores_[0])
    assert len(curves["training"]["error"]) == classifier.n_iter_
    assert set(classifier.set_params(n_iter_no_change=None).fit(ROWS, y).evals_result_) == {
        "training"
    }
