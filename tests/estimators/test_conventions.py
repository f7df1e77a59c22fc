"""Conventions of scikit-learn: its tools take the estimators; names, and what is documented."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, learning_curve
from sklearn.tree import DecisionTreeClassifier

import gpustump
from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    StumpEnsemble,
)
from gpustump.data.parameters import LEARNERS, SCORINGS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


def test_stumps_are_no_classifiers_so_there_is_no_attribute_that_promises_them():
    classifier = AdaBoostClassifier(n_estimators=7).fit(X, Y)
    assert not hasattr(classifier, "estimators_")
    with pytest.raises(AttributeError, match=r"model_\.members hold the stumps"):
        classifier.estimators_  # noqa: B018


def test_a_fold_of_one_class_does_not_end_a_learning_curve():
    ordered = np.argsort(Y, kind="stable")  # the first training sets hold one class only
    for cls in (AdaBoostClassifier, LogitBoostClassifier):
        with pytest.warns(UserWarning, match="y holds one class only, 0"):
            _, _, test = learning_curve(
                cls(n_estimators=3), X[ordered], Y[ordered], cv=KFold(3), train_sizes=[0.2, 1.0],
                error_score="raise",
            )  # fmt: skip
        assert np.isfinite(test).all()


@pytest.mark.filterwarnings("ignore:y holds one class only")
@pytest.mark.parametrize("label", ["yes", 7, True])
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
def test_one_class_is_learnt_and_predicted_with_certainty(estimator, label, tmp_path):
    y = np.full(120, label)
    fitted = clone(estimator).fit(X, y)
    assert fitted.classes_.tolist() == [label]
    assert fitted.predict(X).tolist() == y.tolist()
    assert fitted.predict_proba(X).tolist() == [[1.0]] * 120
    assert fitted.score(X, y) == 1.0
    assert fitted.model_.n_rounds == 0
    fitted.model_.save(tmp_path / "model.json")
    loaded = StumpEnsemble.load(tmp_path / "model.json")
    assert loaded == fitted.model_


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 2, "max_depth": 7},
        {"max_depth": 1, "max_leaf_nodes": 30},
        {"max_depth": 1, "random_state": 3, "max_features": 1.0},
        {"max_depth": 1, "monotonic_cst": [0, 0, 0, 0]},
    ],
)
def test_every_tree_of_scikit_learn_s_that_is_a_stump_is_taken(parameters):
    plain = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    tree = DecisionTreeClassifier(**parameters)
    assert tree.fit(X, Y).get_n_leaves() == 2
    assert AdaBoostClassifier(tree, n_estimators=3).fit(X, Y).model_ == plain.model_


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({}, "neither max_depth is 1 nor max_leaf_nodes 2"),
        ({"max_depth": 2}, "neither max_depth is 1"),
        ({"max_depth": 1, "min_samples_leaf": 5}, "min_samples_leaf=5 has no counterpart"),
        ({"max_depth": 1, "criterion": "entropy"}, "criterion='entropy'"),
        ({"max_depth": 1, "max_features": 1}, "max_features=1 "),
        ({"max_depth": 1, "splitter": "random"}, "splitter='random'"),
        ({"max_depth": 1, "class_weight": {0: 1}}, "class_weight=.* belongs to the class"),
        ({"max_depth": 1, "monotonic_cst": [1, 0, 0, 0]}, r"monotonic_cst=\[1, 0, 0, 0\]"),
        ({"max_leaf_nodes": 2, "ccp_alpha": 0.1}, "ccp_alpha=0.1"),
    ],
)
def test_a_tree_with_an_effect_of_its_own_is_refused_with_the_parameter(parameters, problem):
    with pytest.raises(ValueError, match=rf"estimator must be None.*, where {problem}"):
        AdaBoostClassifier(DecisionTreeClassifier(**parameters)).fit(X, Y)


def documented(cls: type) -> set[str]:
    """The names in the section Attributes of a class's docstring."""
    text = inspect.cleandoc(cls.__doc__ or "")
    section = re.split(r"\nAttributes\n-+\n", text)[1]
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name for head in heads for name in head.partition(" :")[0].split(", ")}


@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(n_iter_no_change=5),
        DecisionStumpClassifier(),
        LogitBoostClassifier(n_iter_no_change=5),
    ],
)
def test_every_attribute_of_a_fitted_estimator_is_documented_and_no_other(estimator):
    fitted = estimator.fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), Y)
    found = {n for n in dir(fitted) if n.endswith("_") and not n.startswith("_")}
    assert documented(type(fitted)) == found
    assert all(getattr(fitted, name) is not None for name in found)


@pytest.mark.parametrize("cls", [AdaBoostClassifier, DecisionStumpClassifier, LogitBoostClassifier])
def test_every_parameter_is_documented_with_a_description(cls):
    text = inspect.cleandoc(cls.__doc__ or "")
    section = re.split(r"\nParameters\n-+\n", text)[1]
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    heads = re.findall(r"^(\w+) : ", section, flags=re.MULTILINE)
    assert heads == list(inspect.signature(cls).parameters)


def test_defaults_of_the_two_boosters_differ_only_where_the_notes_say_so():
    ada, logit = AdaBoostClassifier().get_params(), LogitBoostClassifier().get_params()
    assert set(ada) - set(logit) == {"estimator", "votes", "weak_learner"}
    assert set(logit) - set(ada) == {"interactions", "l2_regularization", "smoothing_rounds"}
    differing = {name for name in set(ada) & set(logit) if ada[name] != logit[name]}
    assert differing == {"n_estimators", "learning_rate", "multi_class", "scoring"}


def test_choices_are_known_to_type_checkers():
    hints = get_type_hints(AdaBoostClassifier.__init__)
    assert get_args(hints["scoring"]) == SCORINGS
    assert get_args(hints["weak_learner"]) == LEARNERS
    assert "cuda" in get_args(get_args(hints["device"])[0])


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
