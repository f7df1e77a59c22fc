"""scikit-learn: its own checks, its AdaBoost, its tools, names and documents of estimators.

What the model itself computes is tested elsewhere. These tests show that estimators pass it on
unchanged, for frames, copies, and arrays of every library.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from backends import Backend
from classifiers import KINDS, drawn
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpustump
from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    StumpEnsemble,
)

X, Y = drawn()

CHECKED = [
    DecisionStumpClassifier(),
    *(
        KINDS[name](n_estimators=10)
        for name in ("discrete", "discrete-shared", "real", "newton-shared")
    ),
    GlassBoxClassifier(n_estimators=10, n_bags=2, random_state=0),
    StumpBoostingRegressor(n_estimators=100),
    GlassBoxRegressor(n_estimators=50, n_bags=2, random_state=0),
]


def known_to_fail(estimator: object) -> dict[str, str]:
    """The checks of scikit-learn that cannot hold, with the reason."""
    forms = ("dense", "sparse")
    equivalence = [f"check_sample_weight_equivalence_on_{form}_data" for form in forms]
    if isinstance(estimator, GlassBoxClassifier | GlassBoxRegressor):
        reason = "held-out samples are drawn, and a sample of weight 2 is one of them, not two"
        return dict.fromkeys(equivalence, reason)
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
    return dict.fromkeys(equivalence, reason)


@parametrize_with_checks(CHECKED, expected_failed_checks=known_to_fail)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its checks provoke warnings on purpose
        check(estimator)


@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
def test_scikit_learn_boosting_our_stump_makes_the_same_rounds(learning_rate):
    options = {"n_estimators": 8, "learning_rate": learning_rate}
    ours = AdaBoostClassifier(**options).fit(X, Y)
    theirs = ensemble.AdaBoostClassifier(DecisionStumpClassifier(), **options).fit(X, Y)
    ours.set_params(n_estimators=50)  # which does not change what was fitted
    (member,) = ours.model_.members
    assert [e.stump_.threshold for e in theirs] == [s.threshold for s in member.stumps]
    for factor, name in (
        *((2, "estimator_weights_"), (1, "estimator_errors_")),
        (1, "feature_importances_"),
    ):
        found = factor * getattr(ours, name)
        np.testing.assert_allclose(found, getattr(theirs, name), rtol=1e-8)
    for one, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_are_frames_with_names_where_set_output_asks_for_them(library, n_classes):
    X, y = drawn(n_classes)
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
    with pytest.raises(ValueError, match=r"transform must be .* got 'arrow'"):
        classifier.set_output(transform="arrow")


def test_missing_values_are_noticed_in_every_row_and_feature_that_the_model_uses(monkeypatch):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    X = np.random.default_rng(5).normal(size=(20_000, 3))
    model = AdaBoostClassifier(n_estimators=20).fit(X[:500], X[:500, :2].sum(axis=1) > 0).model_
    assert {stump.feature for stump in model.members[0].stumps} == {0, 1}
    for row, order in itertools.product((0, 511, 512, 8191, 19_999), "CF"):
        Z = np.array(X, order=order)
        Z[row, 0] = np.nan
        with pytest.warns(UserWarning, match="values are missing in features"):
            model.predict(Z)
        Z[row, 0], Z[row, 2] = 0.0, np.nan
        model.predict(Z)  # no warning: the model does not look at the last feature


def test_no_bar_is_shown_where_stderr_is_not_a_terminal(capsys):
    AdaBoostClassifier(n_estimators=3, verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")


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
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"/40" in shown
    assert b"round/s" in shown


def test_text_labels_may_go_with_a_table_on_a_device():
    strict = pytest.importorskip("array_api_strict")
    names = np.asarray(["no", "yes"])[Y]
    there = strict.asarray(X, device=strict.Device("device1"))
    classifier = AdaBoostClassifier(n_estimators=5).fit(there, names)
    assert classifier.model_ == AdaBoostClassifier(n_estimators=5).fit(X, names).model_
    assert classifier.predict(there).tolist() == classifier.predict(X).tolist()
    expected = classifier.score(X, names, np.arange(120.0))
    assert classifier.score(there, names, np.arange(120.0)) == expected


def test_unsigned_numbers_and_labels_beyond_int64_are_exact_in_every_library(backend: Backend):
    table = (40 * (X - X.min())).astype(np.uint16)
    labels = np.asarray([1, 2**63 + 1], dtype=np.uint64)[Y]
    options = {"n_estimators": 20, "n_iter_no_change": 4, "random_state": 0}
    there = backend.asarray(table)
    classifier = AdaBoostClassifier(**options).fit(there, labels)
    assert classifier.model_ == AdaBoostClassifier(**options).fit(table, labels).model_
    is_second = classifier.decision_function(table) > 0
    for answer in (classifier.predict(there), classifier.model_.predict(there)):
        found = backend.to_numpy(answer)
        assert found.dtype == np.uint64
        assert np.array_equal(found == np.uint64(2**63 + 1), is_second)


def test_scores_are_weighted_by_weights_of_any_size_and_need_one():
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        classifier.score(X, Y, np.zeros(120))
    weights = np.random.default_rng(0).integers(0, 3, 120)
    expected = accuracy_score(Y, classifier.predict(X), sample_weight=weights)
    for factor in (1.0, 5e307):
        assert classifier.score(X, Y, weights * factor) == pytest.approx(expected, rel=1e-12)


def test_a_callback_that_raises_stop_iteration_does_not_end_the_training_in_silence():
    def careless(record):
        return next(iter(()))

    with pytest.raises(RuntimeError, match="callback raised StopIteration"):
        AdaBoostClassifier(callback=careless).fit(X, Y)


def test_a_process_without_stderr_can_train(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert AdaBoostClassifier(n_estimators=3, verbose=1).fit(X, Y).score(X, Y) > 0.5


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


@pytest.mark.filterwarnings("ignore:y holds one class only")
@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(),
        AdaBoostClassifier(votes="real", multi_class="shared"),
        AdaBoostClassifier(n_bags=3, n_iter_no_change=2, random_state=0),
        LogitBoostClassifier(n_iter_no_change=2, random_state=0),
        GlassBoxClassifier(random_state=0),
        DecisionStumpClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_one_class_is_learnt_and_predicted_with_certainty(estimator, tmp_path):
    for label in ("yes", 7, True):
        y = np.full(120, label)
        fitted = clone(estimator).fit(X, y)
        assert fitted.classes_.tolist() == [label]
        assert fitted.predict(X).tolist() == y.tolist()
        assert fitted.predict_proba(X).tolist() == [[1.0]] * 120
        assert fitted.score(X, y) == 1.0
        assert fitted.model_.n_rounds == 0
        assert fitted.shape_function(0).values.tolist() == [0.0]
        fitted.model_.save(tmp_path / "model.json")
        assert StumpEnsemble.load(tmp_path / "model.json") == fitted.model_


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_leaf_nodes": 2},
        {"max_depth": 1, "max_leaf_nodes": 30},
        {"max_depth": 1, "random_state": 3},
    ],
)
def test_every_tree_of_scikit_learn_s_that_is_a_stump_is_taken(parameters):
    plain = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    tree = DecisionTreeClassifier(**parameters)
    assert tree.fit(X, Y).get_n_leaves() == 2
    assert AdaBoostClassifier(tree, n_estimators=3).fit(X, Y).model_ == plain.model_


def documented(cls: type, section: str) -> list[str]:
    """The names in a section of a class's docstring."""
    text = re.split(rf"\n{section}\n-+\n", inspect.cleandoc(cls.__doc__ or ""))[1]
    text = re.split(r"\n\n\w+\n-+\n", text)[0]
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return [name for head in heads for name in head.partition(" :")[0].split(", ")]


@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(n_iter_no_change=5),
        DecisionStumpClassifier(),
        LogitBoostClassifier(n_iter_no_change=5),
    ],
)
def test_every_parameter_and_attribute_is_documented_and_no_other(estimator):
    cls = type(estimator)
    assert sorted(documented(cls, "Parameters")) == sorted(inspect.signature(cls).parameters)
    fitted = estimator.fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), Y)
    found = {n for n in dir(fitted) if n.endswith("_") and not n.startswith("_")}
    assert set(documented(cls, "Attributes")) == found
    assert all(getattr(fitted, name) is not None for name in found)


def test_the_package_lists_its_public_names_only():
    program = (
        "import gpustump; gpustump.AdaBoostClassifier; gpustump.plots; print(*dir(gpustump)); "
        "[getattr(gpustump, name) for name in dir(gpustump)]"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    modules = {"exports", "plots", "theory"}
    expected = {*gpustump.__all__, *modules, "__version__"}
    assert set(done.stdout.split()) == expected
