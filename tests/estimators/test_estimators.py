"""The estimators against scikit-learn: its own checks, its AdaBoost, its tools around estimators.

What the model itself computes is tested elsewhere. These tests show that estimators pass it on
unchanged, for labels of any kind, frames, pipelines, copies, and arrays of every library.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import classifiers
import numpy as np
import pandas as pd
import pytest
from backends import Backend
from models_by_hand import skip_if_costly
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpustump
from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    StumpBoostingRegressor,
    StumpEnsemble,
)
from gpustump.data.parameters import SCORINGS

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def small(n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(120, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=120) / 2
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


CHECKED = [
    DecisionStumpClassifier(),
    *(
        classifiers.KINDS[name](n_estimators=10)
        for name in ("discrete", "discrete-shared", "real", "newton-shared")
    ),
    GlassBoxClassifier(n_estimators=10, random_state=0),
    StumpBoostingRegressor(n_estimators=100),
    GlassBoxRegressor(n_estimators=50, n_bags=2, random_state=0),
]


def known_to_fail(estimator: object) -> dict[str, str]:
    """The checks of scikit-learn that cannot hold, with the reason."""
    equivalence = "check_sample_weight_equivalence_on_dense_data"
    if isinstance(estimator, GlassBoxClassifier | GlassBoxRegressor):
        reason = "held-out samples are drawn, and a sample of weight 2 is one of them, not two"
        return {equivalence: reason}
    votes = getattr(estimator, "votes", None)
    if votes == "discrete":
        reason = (
            "of weights 1000 and 0.0001 the first stump gets all of the heavy class right, and as "
            "many others as a threshold can part from it: 18% of the test samples, not below 13%"
        )
        return {"check_class_weight_classifiers": reason}
    if votes != "real":
        return {}
    reason = (
        "the smoothing of real votes is 1/(2n) of all weights [Schapire and Singer 1999, section "
        "4.2], so that their scale does not matter, and a sample of weight 2 is one of n, not two"
    )
    return {equivalence: reason}


def test_real_votes_do_not_depend_on_the_scale_of_the_weights_but_count_samples():
    X, y = np.asarray([[0.0], [0.0], [1.0], [1.0]]), np.asarray([1, 0, 1, 1])
    weights = np.asarray([1.0, 1.0, 2.0, 1.0])

    def votes(*data: np.ndarray) -> list[float]:
        classifier = AdaBoostClassifier(votes="real", n_estimators=1, device="cpu").fit(*data)
        ((record,),) = classifier.rounds_
        return [vote for (vote,) in record.votes[:2]]

    twice = (np.repeat(part, weights.astype(int), axis=0) for part in (X, y))
    assert votes(X, y, weights) == votes(X, y, weights / 1024)
    for found, n in ((votes(X, y, weights), 4), (votes(*twice), 5)):
        s = 5 / (2 * n)
        assert found == pytest.approx([0.0, np.log((3 + s) / s) / 2], abs=1e-10)


@parametrize_with_checks(CHECKED, expected_failed_checks=known_to_fail)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its checks provoke warnings on purpose
        check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [50, 200])
def test_breast_cancer_is_classified_as_well_as_by_scikit_learn(rounds):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = cross_val_score(AdaBoostClassifier(n_estimators=rounds), *CANCER, cv=folds)
    theirs = cross_val_score(ensemble.AdaBoostClassifier(n_estimators=rounds), *CANCER, cv=folds)
    assert ours.mean() > theirs.mean() - theirs.std()


@pytest.mark.slow
def test_digits_are_classified_better_than_by_scikit_learn():
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = cross_val_score(AdaBoostClassifier(), X, y, cv=folds)
    theirs = cross_val_score(ensemble.AdaBoostClassifier(), X, y, cv=folds)
    assert ours.mean() > theirs.mean()


@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
def test_scikit_learn_boosting_our_stump_makes_the_same_rounds(learning_rate):
    X, y = small()
    options = {"n_estimators": 8, "learning_rate": learning_rate}
    ours = AdaBoostClassifier(**options).fit(X, y)
    theirs = ensemble.AdaBoostClassifier(DecisionStumpClassifier(), **options).fit(X, y)
    (member,) = ours.model_.members
    assert [e.stump_.threshold for e in theirs] == [s.threshold for s in member.stumps]
    np.testing.assert_allclose(2 * ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-8)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for one, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_importances_are_the_vote_weighted_counts_of_scikit_learn():
    X, y = small()
    ours = AdaBoostClassifier(n_estimators=8).fit(X, y)
    theirs = ensemble.AdaBoostClassifier(DecisionStumpClassifier(), n_estimators=8).fit(X, y)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-8)


def test_the_first_error_is_at_most_that_of_scikit_learn_s_tree():
    for seed in range(10):
        X, y = small(seed=seed)
        ours = AdaBoostClassifier(n_estimators=1).fit(X, y)
        theirs = ensemble.AdaBoostClassifier(n_estimators=1).fit(X, y)
        assert ours.estimator_errors_[0] <= theirs.estimator_errors_[0] + 1e-12


def test_scikit_learn_s_own_stump_may_be_named_as_the_estimator():
    X, y = small()
    plain = AdaBoostClassifier(n_estimators=3).fit(X, y)
    for base in (DecisionTreeClassifier(max_depth=1), DecisionStumpClassifier()):
        assert AdaBoostClassifier(base, n_estimators=3).fit(X, y).model_ == plain.model_
    with pytest.raises(ValueError, match=r"estimator must be None.*max_depth=2"):
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2)).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_are_in_the_library_of_the_table(backend: Backend, n_classes):
    X, y = small(n_classes)
    expected = AdaBoostClassifier(n_estimators=7, device="cpu").fit(X, y)
    there, labels = backend.asarray(X), backend.asarray(y)
    device = "auto" if backend.on_gpu else "cpu"
    classifier = AdaBoostClassifier(n_estimators=7, device=device).fit(there, labels)
    assert classifier.model_.digest() == expected.model_.digest()
    assert classifier.device_ == ("cpu" if device == "cpu" else "cuda:0")
    answers = {
        name: getattr(classifier, name)(there)
        for name in ("predict", "decision_function", "predict_proba", "predict_log_proba")
    }
    assert all(backend.owns(answer) for answer in answers.values())
    assert np.array_equal(backend.to_numpy(answers["predict"]), expected.predict(X))
    decision = backend.to_numpy(answers["decision_function"])
    assert np.array_equal(decision, expected.decision_function(X))
    probabilities = backend.to_numpy(answers["predict_proba"])
    np.testing.assert_allclose(probabilities, expected.predict_proba(X), rtol=1e-14)
    assert classifier.score(there, labels) == expected.score(X, y)
    assert list(classifier.staged_score(there, labels))[-1] == expected.score(X, y)


@pytest.mark.parametrize(
    "labelled",
    [
        lambda y: np.asarray(["low", "middle", "high"])[y],
        lambda y: np.asarray(["low", "middle", "high"], dtype=object)[y],
        lambda y: np.asarray([-5, 3, 99])[y],
        lambda y: np.asarray([1.0, 2.0, 4.0], dtype=np.float32)[y],
        lambda y: y == 1,
        lambda y: pd.Series(pd.Categorical.from_codes(y, ["a", "b", "c"])),
        lambda y: pytest.importorskip("polars").Series(["a", "b", "c"])[y],
        lambda y: ["yes" if label else "no" for label in y],
    ],
)
def test_labels_of_any_kind_come_back_as_they_were(labelled):
    X, y = small(3)
    labels = labelled(y)
    classifier = AdaBoostClassifier(n_estimators=60).fit(X, labels)
    predicted = classifier.predict(X)
    given = np.asarray(labels)
    assert set(predicted.tolist()) <= set(given.tolist())
    assert accuracy_score(given, predicted) > 0.8
    assert classifier.score(X, labels) == accuracy_score(given, predicted)
    assert list(classifier.classes_) == sorted(set(given.tolist()))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_the_model_of_their_numbers_and_their_names(library):
    X, y = small()
    names = ["a", "b", "c", "d"]
    plain = AdaBoostClassifier(n_estimators=5).fit(X, y)
    frame = pytest.importorskip(library).DataFrame(dict(zip(names, X.T, strict=True)))
    classifier = AdaBoostClassifier(n_estimators=5).fit(frame, y)
    assert classifier.model_.digest() == plain.model_.digest()
    assert classifier.model_.feature_names == tuple(names)
    assert list(classifier.feature_names_in_) == names
    assert np.array_equal(classifier.predict(frame), plain.predict(X))


def test_a_renamed_column_is_refused_by_name():
    X, y = small()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    classifier = AdaBoostClassifier(n_estimators=2).fit(frame, y)
    with pytest.raises(ValueError, match=r"lacks 1 column that the model needs: 'b'"):
        classifier.predict(frame.rename(columns={"b": "other"}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_text_column_is_refused_by_name(library):
    X, y = small()
    frame = pytest.importorskip(library).DataFrame({"a": X[:, 0], "town": ["Oslo"] * len(X)})
    with pytest.raises(ValueError, match=r"'town' \(text, such as Oslo\)"):
        AdaBoostClassifier().fit(frame, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_are_frames_with_names_where_set_output_asks_for_them(library, n_classes):
    X, y = small(n_classes)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(len(X)) + 7)
    classifier = AdaBoostClassifier(n_estimators=5).fit(frame, y)
    parts = classifier.explain(frame)
    assert isinstance(parts, np.ndarray)
    found = clone(classifier).set_output(transform=library).fit(frame, y).explain(frame)
    names = ["a", "b", "c", "d", "(intercept)"]
    if n_classes > 2:
        names = [f"{label}: {name}" for label in (0, 1, 2) for name in names]
    assert list(found.columns) == names
    assert np.array_equal(found.to_numpy(), parts.reshape(len(X), -1))
    if library == "pandas":
        assert found.index.equals(frame.index)
    with config_context(transform_output=library):
        assert type(classifier.explain(frame)) is type(found)
        assert type(clone(classifier).set_output(transform="default").fit(X, y).explain(X)) is (
            np.ndarray
        )


def test_set_output_refuses_other_libraries():
    with pytest.raises(ValueError, match=r"transform must be .* got 'arrow'"):
        AdaBoostClassifier().set_output(transform="arrow")


@pytest.mark.parametrize("kernels", ["reference", "sorted", "coded"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_value_that_no_training_sample_lacked_is_warned_of_by_name(monkeypatch, kernels, dtype):
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    X, y = small()
    X = X.astype(dtype)
    X[::9, 3] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    classifier = AdaBoostClassifier(n_estimators=30).fit(frame, y)
    assert classifier.model_.missing_learnt == (False, False, False, True)
    classifier.predict(frame)  # d lacks values, as in training
    frame.loc[[5, 70], "b"] = np.nan
    with pytest.warns(UserWarning, match=r"none was missing in training: 'b'\."):
        classifier.predict(frame)


def test_missing_values_are_noticed_in_every_row_and_feature_that_the_model_uses(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    X = np.random.default_rng(5).normal(size=(20_000, 3))
    model = AdaBoostClassifier(n_estimators=20).fit(X[:500], X[:500, :2].sum(axis=1) > 0).model_
    for row in (0, 511, 512, 8191, 19_999):
        for order in "C", "F":
            Z = np.array(X, order=order)
            Z[row, 0] = np.nan
            with pytest.warns(UserWarning, match="values are missing in features"):
                model.predict(Z)
            Z[row, 0], Z[row, 2] = 0.0, np.nan
            used = {stump.feature for stump in model.members[0].stumps}
            assert used == {0, 1}
            model.predict(Z)  # no warning: the model does not look at the last feature


def test_warnings_about_values_that_training_never_saw_point_to_the_callers_line():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue"] * 2})
    fit = gpustump.LogitBoostClassifier(n_estimators=3, categorical_features="from_dtype").fit
    classifier = fit(frame, [0, 0, 1, 1])
    new = pd.DataFrame({"size": [np.nan], "colour": ["green"]})
    for answer in (
        classifier.predict,
        classifier.predict_proba,
        classifier.decision_function,
        classifier.explain,
        classifier.model_.predict,
        classifier.model_.decision_function,
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer(new)
        assert {warning.filename for warning in caught} == {__file__}, answer


def test_missing_values_in_nullable_columns_are_nan():
    X, y = small()
    X[::7, 0] = np.nan
    plain = AdaBoostClassifier(n_estimators=5).fit(X, y)
    nullable = pd.DataFrame(X).astype("Float64")
    assert AdaBoostClassifier(n_estimators=5).fit(nullable, y).model_.digest() == (
        plain.model_.digest()
    )


def test_pipelines_grid_search_cloning_and_pickling_work():
    X, y = CANCER
    pipeline = make_pipeline(SimpleImputer(), AdaBoostClassifier())
    grid = {"adaboostclassifier__n_estimators": [2, 10]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"adaboostclassifier__n_estimators": 10}
    fitted = search.best_estimator_[-1]
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.model_ == fitted.model_
    assert np.array_equal(copy.decision_function(X), fitted.decision_function(X))
    assert not hasattr(clone(fitted), "model_")
    assert clone(fitted).get_params() == fitted.get_params()


def test_the_model_travels_alone(tmp_path):
    for X, y in (CANCER, IRIS):
        classifier = AdaBoostClassifier(n_estimators=12).fit(X, y)
        classifier.model_.save(tmp_path / "model.json")
        model = StumpEnsemble.load(tmp_path / "model.json")
        assert model.digest() == classifier.model_.digest()
        assert np.array_equal(model.predict(X), classifier.predict(X))
        assert np.array_equal(model.predict_proba(X), classifier.predict_proba(X))


def test_probabilities_are_usable_as_such():
    X, y = CANCER
    for n_classes, labels in ((2, y), (3, np.digitize(X[:, 0], [12, 16]))):
        classifier = AdaBoostClassifier(n_estimators=30, learning_rate=0.2).fit(X, labels)
        probabilities = classifier.predict_proba(X)
        assert probabilities.shape == (len(X), n_classes)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(np.log(probabilities), classifier.predict_log_proba(X))
        assert log_loss(labels, probabilities) < 0.5 * np.log(n_classes)


@pytest.mark.slow
def test_calibration_mends_probabilities_that_are_too_sure():
    """What the notes of the docstring say about the breast-cancer data."""
    X, y = CANCER
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    plain = AdaBoostClassifier(n_estimators=300)
    found = {}
    for name, one in (("plain", plain), ("calibrated", CalibratedClassifierCV(plain, cv=5))):
        found[name] = cross_val_predict(one, X, y, cv=folds, method="predict_proba")[:, 1]
    assert np.mean(np.abs(found["plain"] - 0.5) > 0.499) == pytest.approx(0.99, abs=0.005)
    assert log_loss(y, found["plain"]) == pytest.approx(0.36, abs=0.01)
    assert log_loss(y, found["calibrated"]) == pytest.approx(0.10, abs=0.01)


def test_two_class_probability_is_the_logistic_of_twice_the_score():
    X, y = CANCER
    classifier = AdaBoostClassifier(n_estimators=30).fit(X, y)
    expected = 1 / (1 + np.exp(-2 * classifier.decision_function(X)))
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], expected, rtol=1e-13)


def test_more_classes_are_one_binary_model_each():
    X, y = small(3)
    classifier = AdaBoostClassifier(n_estimators=9).fit(X, y)
    scores = classifier.decision_function(X)
    for k in range(3):
        alone = AdaBoostClassifier(n_estimators=9).fit(X, y == k)
        assert alone.model_.members[0] == classifier.model_.members[k]
        assert np.array_equal(scores[:, k], alone.decision_function(X))
    assert np.array_equal(classifier.predict(X), np.argmax(scores, axis=1))
    assert classifier.estimator_weights_.shape == (3, 9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_the_same_as_repetition(n_classes):
    X, y = small(n_classes)
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    weighted = AdaBoostClassifier(n_estimators=5).fit(X, y, sample_weight=weights)
    plain = AdaBoostClassifier(n_estimators=5).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), rtol=1e-9)


def test_a_class_without_weight_is_not_a_class():
    X, y = small(3)
    weights = (y != 1).astype(float)
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, y, sample_weight=weights)
    assert list(classifier.classes_) == [0, 2]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_makes_the_rounds_of_an_uninterrupted_run(backend: Backend, n_classes):
    X, y = small(n_classes)
    there, labels = backend.asarray(X), backend.asarray(y)
    whole = AdaBoostClassifier(n_estimators=11).fit(there, labels)
    parts = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(there, labels)
    parts.set_params(n_estimators=11).fit(there, labels)
    assert parts.model_.digest() == whole.model_.digest()
    assert parts.rounds_ == whole.rounds_


def test_warm_start_can_only_grow_and_keeps_its_classes():
    X, y = small()
    classifier = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 is less than"):
        classifier.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="those of the earlier fit"):
        classifier.set_params(n_estimators=6).fit(X, y + 1)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_early_stopping_keeps_the_round_of_the_best_held_out_score(backend: Backend, scoring):
    skip_if_costly(backend, SCORINGS.index(scoring))
    X, y = small(seed=5)
    options = {"n_estimators": 200, "n_iter_no_change": 7, "random_state": 3, "scoring": scoring}
    options["validation_fraction"] = 0.3
    classifier = AdaBoostClassifier(**options).fit(backend.asarray(X), backend.asarray(y))
    (scores,), (errors,) = classifier.held_out_scores_, classifier.held_out_errors_
    kept = len(classifier.rounds_[0])
    assert classifier.stop_reasons_ == ("early",)
    assert kept == np.argmax(scores) + 1 == classifier.n_iter_
    assert len(scores) == len(errors) == kept + 7
    assert len(classifier.model_.members[0]) == kept
    if scoring == "accuracy":
        assert scores == pytest.approx(1 - np.asarray(errors), abs=1e-15)
        assert kept == np.argmin(errors) + 1
    plain = AdaBoostClassifier(**options).fit(X, y)
    assert classifier.model_.digest() == plain.model_.digest()
    assert plain.held_out_scores_ == classifier.held_out_scores_
    assert plain.held_out_errors_ == classifier.held_out_errors_


def test_early_stopping_does_not_collapse_on_a_rare_class():
    """The error is often least after one round, which finds no positive sample at all."""
    areas: dict[str, list[float]] = {"loss": [], "accuracy": []}
    for seed in range(3):
        X, y = make_classification(
            4000, 20, n_informative=8, weights=[0.94], class_sep=0.7, flip_y=0, random_state=seed
        )
        X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
        for scoring, found in areas.items():
            classifier = AdaBoostClassifier(
                n_estimators=300, n_iter_no_change=10, random_state=0, scoring=scoring
            )
            scores = classifier.fit(X, y).decision_function(X_test)
            found.append(roc_auc_score(y_test, scores))
    assert min(areas["loss"]) > 0.8 > np.mean(areas["accuracy"]) + 0.1


def test_a_tolerance_asks_for_a_larger_gain():
    X, y = CANCER
    options = {"n_estimators": 300, "n_iter_no_change": 10, "random_state": 0}
    strict, patient = (AdaBoostClassifier(tol=t, **options).fit(X, y) for t in (0.05, 0.0))
    assert strict.n_iter_ < patient.n_iter_
    assert strict.held_out_scores_[0] == patient.held_out_scores_[0][: strict.n_iter_ + 10]


def test_a_score_of_both_classes_is_refused_where_one_is_not_held_out():
    y = np.zeros(120, dtype=int)
    y[:3] = 1
    options = {"n_iter_no_change": 5, "validation_fraction": 0.05, "random_state": 0}
    for scoring in ("roc_auc", "balanced_accuracy"):
        with pytest.raises(ValueError, match=f"scoring='{scoring}' needs.*6 samples.*class 1"):
            AdaBoostClassifier(scoring=scoring, **options).fit(X, y)
    AdaBoostClassifier(**options).fit(X, y)


def test_a_callable_scoring_is_refused_with_the_reason():
    with pytest.raises(TypeError, match=r"scoring must be one of 'loss'.*finished classifier"):
        AdaBoostClassifier(scoring=accuracy_score).fit(X, Y)


def test_early_stopping_does_not_train_on_what_it_watches():
    X, y = small()
    options = {"n_estimators": 6, "random_state": 1, "validation_fraction": 0.25}
    watched = AdaBoostClassifier(n_iter_no_change=100, **options).fit(X, y)
    shares = {round(r.training_error * 90, 9) % 1 for r in watched.rounds_[0]}
    assert shares == {0.0}  # multiples of 1/90: three quarters of the 120 samples


def test_a_callback_sees_every_round_and_can_stop():
    X, y = small()
    seen = []

    def stop_at_four(record: gpustump.Round) -> bool:
        seen.append(record)
        return record.number == 4

    classifier = AdaBoostClassifier(callback=stop_at_four).fit(X, y)
    assert tuple(seen) == classifier.rounds_[0]
    assert len(classifier.model_.members[0].stumps) == 4
    assert classifier.stop_reasons_ == ("callback",)


def test_attributes_after_the_last_round_are_filled_as_in_scikit_learn():
    X = np.arange(10.0)[:, None]
    classifier = AdaBoostClassifier(n_estimators=5).fit(X, X[:, 0] > 4)
    assert classifier.stop_reasons_ == ("perfect",)
    assert classifier.estimator_errors_.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert classifier.estimator_weights_[1:].tolist() == [0.0] * 4
    assert np.isfinite(classifier.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_without_any_edge_the_first_class_is_predicted():
    X = np.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    classifier = AdaBoostClassifier().fit(X, [0, 1, 1, 0])
    assert classifier.stop_reasons_ == ("no edge",)
    assert classifier.model_.members[0].stumps == ()
    assert classifier.predict(X).tolist() == [0, 0, 0, 0]
    assert classifier.predict_proba(X).tolist() == [[0.5, 0.5]] * 4


def test_the_stump_classifier_is_the_stump():
    X, y = small()
    classifier = DecisionStumpClassifier().fit(X, y)
    stump = gpustump.fit_stump(X, 2 * y - 1)
    assert classifier.stump_ == stump
    assert np.array_equal(classifier.predict(X), (stump.predict(X) + 1) // 2)
    assert classifier.score(X, y) == pytest.approx(1 - stump.error, abs=1e-15)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be at least 1; got 0"),
        ({"n_estimators": 2.5}, "n_estimators must be a whole number.*got 2.5"),
        ({"n_estimators": True}, "n_estimators must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0; got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"learning_rate": "fast"}, "learning_rate must be.*got 'fast'"),
        ({"device": "gpu"}, "device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got 'gpu'"),
        ({"device": None}, "device must be"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be at least 1"),
        ({"n_iter_no_change": 5, "validation_fraction": 1.0}, "validation_fraction must be"),
        ({"n_iter_no_change": 5, "validation_fraction": 1e-9}, "validation_fraction=1e-09 of"),
        ({"block_bytes": 0}, "block_bytes must be at least 1"),
        ({"callback": 3}, "callback must be callable or None; got 3"),
        ({"estimator": 100}, "estimator must be None"),
        ({"random_state": "a"}, r"random_state must be None, a whole number.*; got 'a'\."),
        ({"random_state": -1}, r"random_state must be None, a whole number.*; got -1\."),
        ({"tol": -1}, r"tol must be a finite number of at least 0; got -1\."),
        ({"tol": -1e-9, "n_iter_no_change": 5}, "tol must be"),
        (
            {"scoring": "f1"},
            "scoring must be 'loss', 'accuracy', 'neg_log_loss', 'roc_auc', 'balanced_accuracy' or "
            "'neg_exponential_loss'; got 'f1'",
        ),
        ({"scoring": None}, "scoring must be 'loss'.*got None"),
        ({"weak_learner": ["stump"]}, r"weak_learner must be 'stump' or 'interval'; got \['stump"),
    ],
)
def test_a_bad_parameter_is_named(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AdaBoostClassifier(**parameters).fit(*small())


X, Y = small()


@pytest.mark.parametrize(
    ("X", "y", "sample_weight", "message"),
    [
        (X, Y[:-1], None, "X and y have inconsistent numbers of samples: 120 and 119"),
        (X, Y, np.ones(3), "X and sample_weight have inconsistent numbers of samples: 120 and 3"),
        (X[:0], Y[:0], None, r"X has 0 sample\(s\)"),
        (X[:, :0], Y, None, r"X has 0 feature\(s\)"),
        (X[:, 0], Y, None, "X must have two dimensions"),
        (X[:, :, None], Y, None, "X must have two dimensions"),
        (X + 1j, Y, None, "X has dtype complex128"),
        (X.astype(str), Y, None, "X has dtype <U32"),
        (X, np.stack([Y, Y], axis=1), None, r"y must have one dimension.*\(120, 2\)"),
        (X, np.where(Y == 1, np.nan, Y), None, "y contains NaN, the first at index"),
        (X, np.where(Y == 1, None, Y), None, "y contains NaN or None, the first at index"),
        (X, np.where(Y == 1, np.inf, Y), None, "y contains infinity"),
        (X, Y + 0.5, None, r"Unknown label type: continuous. y holds \d.5;"),
        (X, Y + 1j, None, "y has dtype complex128"),
        (X, None, None, "y to be passed"),
        (X, Y, np.where(Y == 1, np.nan, 1.0), "sample_weight contains NaN"),
        (X, Y, np.where(Y == 1, np.inf, 1.0), "sample_weight contains infinite weights"),
        (X, Y, np.where(Y == 1, -1.0, 1.0), "sample_weight contains negative weights"),
        (X, Y, np.zeros(120), "sample_weight is zero for every sample"),
        (X, Y, ["heavy"] * 120, "sample_weight has dtype"),
    ],
)
def test_bad_data_is_refused_by_name(X, y, sample_weight, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AdaBoostClassifier(n_estimators=2).fit(X, y, sample_weight)


def test_a_failed_fit_leaves_the_fitted_model_alone():
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    before = classifier.model_
    with pytest.raises(ValueError, match="y contains NaN"):
        classifier.fit(X, np.full(120, np.nan))
    assert classifier.model_ is before


def test_other_features_than_in_fit_are_refused():
    classifier = AdaBoostClassifier(n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features.*expecting 4 features"):
        classifier.predict(X[:, :3])
    with pytest.raises(NotFittedError):
        AdaBoostClassifier().predict(X)


def test_cuda_without_cuda_says_why():
    usable = [device for device in gpustump.devices() if device.name == "cuda:0" and device.usable]
    if usable:
        pytest.skip("CUDA works here")
    reason = next(d.detail for d in gpustump.devices() if d.name.startswith("cuda"))
    with pytest.raises(gpustump.DeviceError) as refusal:
        AdaBoostClassifier(device="cuda").fit(X, Y)
    assert str(refusal.value) == reason


def test_no_bar_is_shown_where_stderr_is_not_a_terminal(capsys):
    AdaBoostClassifier(n_estimators=3, verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_importing_the_package_stays_light():
    program = (
        "import sys, gpustump; gpustump.fit_stump; heavy = {'sklearn', 'scipy', 'pandas', 'polars',"
        "'torch', 'jax', 'cupy', 'numba', 'matplotlib', 'tqdm'}; print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_bar_shows_rounds_error_and_rate_on_a_terminal():
    import os
    import pty
    import termios

    program = (
        "from gpustump import AdaBoostClassifier; from sklearn.datasets import load_breast_cancer;"
        "AdaBoostClassifier(n_estimators=40, verbose=1).fit(*load_breast_cancer(return_X_y=True))"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    done = subprocess.run([sys.executable, "-c", program], stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"/40" in shown
    assert b"round/s" in shown


def test_text_labels_may_go_with_a_table_on_a_device():
    strict = pytest.importorskip("array_api_strict")
    X, y = small()
    names = np.asarray(["no", "yes"])[y]
    there = strict.asarray(X, device=strict.Device("device1"))
    classifier = AdaBoostClassifier(n_estimators=5).fit(there, names)
    assert classifier.model_ == AdaBoostClassifier(n_estimators=5).fit(X, names).model_
    assert classifier.predict(there).tolist() == classifier.predict(X).tolist()
    assert classifier.score(there, names) == classifier.score(X, names)


def test_unsigned_labels_are_answered_in_every_library(backend: Backend):
    X, y = small(3)
    for dtype in ("uint8", "uint16", "uint32"):
        classifier = AdaBoostClassifier(n_estimators=3).fit(X, y.astype(dtype))
        answer = backend.to_numpy(classifier.predict(backend.asarray(X)))
        assert np.array_equal(answer, classifier.predict(X))


def test_the_dtype_of_whole_labels_does_not_matter_to_the_model():
    X, y = small()
    digests = {
        AdaBoostClassifier(n_estimators=3).fit(X, y.astype(dtype)).model_.digest()
        for dtype in ("int8", "int64", "uint16", "float32", "float64")
    }
    assert len(digests) == 1


def test_a_warm_start_with_early_stopping_watches_the_same_samples():
    """A random state that gives other samples at each draw must be drawn from only once."""
    X, y = small(seed=9)
    options = {"n_iter_no_change": 3, "validation_fraction": 0.3}
    state = np.random.RandomState(0)
    parts = AdaBoostClassifier(n_estimators=4, warm_start=True, random_state=state, **options)
    for n_estimators in (4, 8, 12, 30):
        parts.set_params(n_estimators=n_estimators).fit(X, y)
        kept = len(parts.rounds_[0])
        assert kept == np.argmax(parts.held_out_scores_[0]) + 1
        state = np.random.RandomState(0)
        whole = AdaBoostClassifier(n_estimators=n_estimators, random_state=state, **options)
        assert parts.rounds_ == whole.fit(X, y).rounds_
        assert parts.held_out_scores_ == whole.held_out_scores_
        assert parts.held_out_errors_ == whole.held_out_errors_


def test_a_score_needs_a_weight():
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        classifier.score(X, Y, np.zeros(120))
    weights = np.random.default_rng(0).integers(0, 3, 120)
    expected = accuracy_score(Y, classifier.predict(X), sample_weight=weights)
    assert classifier.score(X, Y, weights) == pytest.approx(expected, rel=1e-12)


def test_a_refused_or_interrupted_fit_leaves_the_fitted_estimator_whole():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    turned = frame[["d", "c", "b", "a"]]
    classifier = AdaBoostClassifier(n_estimators=3).fit(frame, Y)
    expected = classifier.predict(frame)

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(ValueError, match="y contains NaN"):
        classifier.fit(turned, np.full(120, np.nan))
    with pytest.raises(KeyboardInterrupt):
        classifier.set_params(callback=interrupt).fit(turned.iloc[:, :2], Y)
    assert np.array_equal(classifier.predict(frame), expected)
    assert np.array_equal(classifier.predict(turned), expected)
    with pytest.raises(ValueError, match="lacks 2 columns"):
        classifier.predict(turned.iloc[:, :2])


def test_after_a_failed_first_fit_the_estimator_is_not_fitted():
    classifier = AdaBoostClassifier()
    with pytest.raises(ValueError, match="y contains NaN"):
        classifier.fit(X, np.full(120, np.nan))
    with pytest.raises(NotFittedError):
        classifier.predict(X)


def test_labels_beyond_int64_stay_exact_in_every_library(backend: Backend):
    labels = np.asarray([1, 2**63 + 1], dtype=np.uint64)[Y]
    classifier = AdaBoostClassifier(n_estimators=30).fit(X, labels)
    expected = np.where(classifier.decision_function(X) > 0, np.uint64(2**63 + 1), np.uint64(1))
    there = backend.asarray(X)
    for answer in (classifier.predict(there), classifier.model_.predict(there)):
        found = backend.to_numpy(answer)
        assert found.dtype == np.uint64
        assert np.array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_a_perfect_stump_at_a_tiny_learning_rate_gets_no_vote():
    classifier = AdaBoostClassifier(learning_rate=1e-300).fit(X[:, :1], X[:, 0] > 0)
    assert classifier.stop_reasons_ == ("small vote",)


def test_huge_weights_score_as_small_ones_do():
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    assert classifier.score(X, Y, np.full(120, 1e308)) == classifier.score(X, Y)


def test_a_callback_that_raises_stop_iteration_does_not_end_the_training_in_silence():
    def careless(record):
        return next(iter(()))

    with pytest.raises(RuntimeError, match="callback raised StopIteration"):
        AdaBoostClassifier(callback=careless).fit(X, Y)


def test_a_process_without_stderr_can_train(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert AdaBoostClassifier(n_estimators=3, verbose=1).fit(X, Y).score(X, Y) > 0.5


def test_the_missing_label_of_pandas_is_refused_by_its_index():
    labels = pd.Series(["a", pd.NA] + ["b"] * 118, dtype="string")
    with pytest.raises(ValueError, match="y contains NaN or None, the first at index 1"):
        AdaBoostClassifier().fit(X, labels)


def test_bytes_are_no_labels():
    with pytest.raises(TypeError, match="y has dtype"):
        AdaBoostClassifier().fit(X, np.where(Y == 1, b"yes", b"no"))


def test_frames_of_several_dtypes_with_missing_values_are_taken_as_numbers():
    frame = pd.DataFrame({"flag": X[:, 0] > 0, "value": X[:, 1]})
    frame["count"] = pd.array([1, pd.NA] * 60, dtype="Int64")
    classifier = AdaBoostClassifier(n_estimators=5).fit(frame, Y)
    numbers = np.column_stack([X[:, 0] > 0, X[:, 1], np.where(np.arange(120) % 2, np.nan, 1.0)])
    assert (
        classifier.model_.digest()
        == AdaBoostClassifier(n_estimators=5).fit(numbers, Y).model_.digest()
    )
    assert np.array_equal(classifier.model_.predict(frame), classifier.predict(frame))


def test_torch_tensors_of_any_layout_are_taken_or_named():
    torch = pytest.importorskip("torch")
    plain = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    negative = torch.complex(torch.zeros(X.shape, dtype=torch.float64), -torch.asarray(X))
    lazy = negative.conj().imag
    assert lazy.is_neg()
    assert AdaBoostClassifier(n_estimators=3).fit(lazy, Y).model_ == plain.model_
    assert np.array_equal(plain.predict(lazy).numpy(), plain.predict(X))
    with pytest.raises(TypeError, match="X is a sparse tensor"):
        plain.predict(torch.asarray(X).to_sparse())


def test_early_stopping_takes_unsigned_integers_in_every_library(backend: Backend):
    table = (40 * (X - X.min())).astype(np.uint16)
    options = {"n_estimators": 20, "n_iter_no_change": 4, "random_state": 0}
    there = backend.asarray(table)
    classifier = AdaBoostClassifier(**options).fit(there, backend.asarray(Y))
    plain = AdaBoostClassifier(**options).fit(table, Y)
    assert classifier.model_.digest() == plain.model_.digest()
