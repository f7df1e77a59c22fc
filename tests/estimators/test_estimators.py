"""The estimators against scikit-learn: its own checks, its AdaBoost, its tools around estimators.

What the model itself computes is tested elsewhere. These tests show that estimators pass it on
unchanged, for labels of any kind, frames, pipelines, copies, and arrays of every library.
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import classifiers
import numpy as np
import pandas as pd
import pytest
from backends import Backend
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import (
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpustump
from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    StumpBoostingRegressor,
)

CANCER = load_breast_cancer(return_X_y=True)


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


def test_the_first_error_is_at_most_that_of_scikit_learn_s_tree():
    for seed in range(10):
        X, y = small(seed=seed)
        ours = AdaBoostClassifier(n_estimators=1).fit(X, y)
        theirs = ensemble.AdaBoostClassifier(n_estimators=1).fit(X, y)
        assert ours.estimator_errors_[0] <= theirs.estimator_errors_[0] + 1e-12


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


def test_a_class_without_weight_is_not_a_class():
    X, y = small(3)
    weights = (y != 1).astype(float)
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, y, sample_weight=weights)
    assert list(classifier.classes_) == [0, 2]


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


X, Y = small()


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


def test_labels_beyond_int64_stay_exact_in_every_library(backend: Backend):
    labels = np.asarray([1, 2**63 + 1], dtype=np.uint64)[Y]
    classifier = AdaBoostClassifier(n_estimators=30).fit(X, labels)
    expected = np.where(classifier.decision_function(X) > 0, np.uint64(2**63 + 1), np.uint64(1))
    there = backend.asarray(X)
    for answer in (classifier.predict(there), classifier.model_.predict(there)):
        found = backend.to_numpy(answer)
        assert found.dtype == np.uint64
        assert np.array_equal(found, expected)


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
