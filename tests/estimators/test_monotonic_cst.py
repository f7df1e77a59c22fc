"""`monotonic_cst`: shapes of constrained features on every engine of the host, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import classifiers
import numpy as np
import pandas as pd
import pytest
from classifiers import Make
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from gpustump import LogitBoostClassifier, StumpBoostingRegressor

CLASSIFIERS = ("discrete", "real", "newton")
KINDS: dict[str, Make] = {
    **{kind: classifiers.KINDS[kind] for kind in CLASSIFIERS},
    "quantity": StumpBoostingRegressor,
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_CLASSIFIER = pytest.mark.parametrize("kind", CLASSIFIERS)
CONSTRAINTS = (1, -1, 0, 1)


def drawn(seed: int, n_samples: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features that break any constraint, with ties and missing values, and weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4))
    score = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] - X[:, 3] + random.normal(size=n_samples)
    X[:, 0] = np.round(X[:, 0], 1)
    X[random.random(X.shape) < 0.1] = np.nan
    y = (score > np.median(score)).astype(int)
    return X, y, random.integers(1, 5, size=n_samples).astype(float)


def obeys(scores_of: Callable[..., Any], X: np.ndarray, constraints: tuple[int, ...]) -> bool:
    """Whether the score changes as it may, from one value of a feature to the next."""
    for feature, direction in enumerate(constraints):
        values = np.unique(X[:, feature][~np.isnan(X[:, feature])])
        values = np.concatenate([[-np.inf], values, (values[1:] + values[:-1]) / 2, [np.inf]])
        table = np.zeros((len(values), X.shape[1]))
        table[:, feature] = np.sort(values)
        if (direction * np.diff(scores_of(table)) < 0.0).any():
            return False
    return True


@EVERY_KIND
@settings(max_examples=10)
@given(
    seed=st.integers(0, 10**6),
    constraints=st.tuples(*[st.sampled_from([-1, 0, 1])] * 4),
    rate=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_scores_and_probabilities_follow_the_constraints_and_all_engines_agree(
    kind, seed, constraints, rate
):
    X, y, weights = drawn(seed)
    digests = set()
    for engine in ("reference", "sorted", "coded"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GPUSTUMP_KERNELS", engine)
            how = {"learning_rate": min(rate, 1.0) if kind == "quantity" else rate}
            fit = KINDS[kind](n_estimators=20, monotonic_cst=list(constraints), **how).fit
            model = fit(X, y, weights).model_
        assert obeys(model.decision_function, X, constraints)
        digests.add(model.digest())
    assert len(digests) == 1


@EVERY_KIND
def test_constraints_bind_and_without_them_nothing_changes(kind):
    X, y, weights = drawn(0)
    free = KINDS[kind](n_estimators=30).fit(X, y, weights)
    zeros = KINDS[kind](n_estimators=30, monotonic_cst=[0] * 4).fit(X, y, weights)
    bound = KINDS[kind](n_estimators=30, monotonic_cst=CONSTRAINTS).fit(X, y, weights)
    assert zeros.model_.digest() == free.model_.digest() != bound.model_.digest()
    assert obeys(bound.model_.decision_function, X, CONSTRAINTS)
    assert not obeys(free.model_.decision_function, X, CONSTRAINTS)
    assert bound.n_iter_ == 30  # what is allowed suffices to go on


def test_constraints_mean_what_they_mean_to_scikit_learn():
    X, y, _ = drawn(1, n_samples=600)
    theirs = HistGradientBoostingClassifier(monotonic_cst=CONSTRAINTS, max_leaf_nodes=2)
    ours = LogitBoostClassifier(monotonic_cst=CONSTRAINTS, device="cpu")
    for classifier in (theirs, ours):
        assert obeys(classifier.fit(X, y).decision_function, X, CONSTRAINTS)
    other = LogitBoostClassifier(monotonic_cst=[-own for own in CONSTRAINTS], device="cpu")
    assert not obeys(other.fit(X, y).decision_function, X, CONSTRAINTS)


@EVERY_CLASSIFIER
def test_a_dict_names_the_features_of_a_frame_or_their_indices(kind):
    X, y, _ = drawn(2)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    by_place = KINDS[kind](n_estimators=15, monotonic_cst=np.asarray(CONSTRAINTS)).fit(X, y)
    by_name = KINDS[kind](n_estimators=15, monotonic_cst={"b": -1, "d": 1, "a": 1}).fit(frame, y)
    by_index = KINDS[kind](n_estimators=15, monotonic_cst={0: 1, 1: -1, 3: 1}).fit(X, y)
    assert by_name.rounds_ == by_index.rounds_ == by_place.rounds_
    assert clone(by_name).get_params()["monotonic_cst"] == {"b": -1, "d": 1, "a": 1}


@EVERY_CLASSIFIER
@pytest.mark.parametrize("multi_class", ["one_vs_rest", "shared"])
def test_more_than_two_classes_are_refused_unless_nothing_is_constrained(kind, multi_class):
    X, y, _ = drawn(4)
    y[:30] = 2
    classifier = KINDS[kind](n_estimators=2, multi_class=multi_class, monotonic_cst=CONSTRAINTS)
    with pytest.raises(ValueError, match=r"monotonic_cst is for two classes.*y holds 3 classes"):
        classifier.fit(X, y)
    classifier.set_params(monotonic_cst=[0] * 4).fit(X, y)
