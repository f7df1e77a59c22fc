"""A table with its columns in another order gives the same model, with its features renamed.

Ties alone may be broken in another way: of equally good cuts the lowest feature wins. The tables
here have none, as their weights are random.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chisquare

from gpustump import AdaBoostClassifier, GlassBoxClassifier, LogitBoostClassifier
from gpustump.boosting.rounds.smoothing import Candidates, CutPlaces, Smoothing
from gpustump.engines.category_search import Groups
from gpustump.learners.category_split import CategorySplit

N_FEATURES = 24
SETS = (1, 3, 4)
CONSTRAINTS = np.resize([1, -1, 0, 0, 0], N_FEATURES)


def drawn(seed: int, n_classes: int, missing: float) -> tuple[np.ndarray, ...]:
    """X, y and weights, and an order of the columns.

    Three features hold numbers of categories, two of them the same ones; two have two values, and
    many more are mostly 0.
    """
    random = np.random.default_rng(seed)
    X = random.normal(size=(400, N_FEATURES))
    X[:, SETS[:2]] = random.integers(0, 5, size=(400, 2))
    X[:, [4, 5, 6]] = random.integers(0, 2, size=(400, 3))
    X[:, 10:16] = np.eye(6)[random.integers(0, 6, size=400)]
    score = X[:, 0] + (X[:, 1] % 3) + X[:, 2] * X[:, 7] + X[:, 11] + random.normal(size=400)
    X[random.random(X.shape) < missing] = np.nan
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, random.uniform(0.5, 2.0, size=400), random.permutation(N_FEATURES)


def renamed(rounds: Any, order: np.ndarray) -> list[list[Any]]:
    """The records of all runs, if feature number `i` is called `order[i]`.

    A constant, which votes the same everywhere, is said to be of feature 0.
    """

    def of(record: Any) -> Any:
        votes = getattr(record, "votes", None)
        if votes is not None and votes[0] == votes[1] == votes[2]:
            return record
        stump = replace(record.stump, feature=int(order[record.stump.feature]))
        return replace(record, stump=stump)

    return [[of(record) for record in own] for own in rounds]


def smoothed(**parameters: Any) -> Any:
    how = {"smoothing_rounds": 40, "learning_rate": 0.1, "n_bags": 2, "n_estimators": 60}
    return GlassBoxClassifier(**(how | parameters))


def learner(make: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    return lambda **own: make(**(fixed | own))


ADABOOST, LOGITBOOST = AdaBoostClassifier, LogitBoostClassifier
REST = learner(smoothed, multi_class="one_vs_rest", n_iter_no_change=None)

FITS: dict[str, tuple[int, Callable[..., Any]]] = {
    "smoothed": (2, smoothed),
    "smoothed classes": (3, smoothed),
    "smoothed, one against the rest": (3, REST),
    "smoothed, constrained": (2, smoothed),
    "newton, constrained": (2, LOGITBOOST),
    "newton classes": (3, learner(LOGITBOOST, n_iter_no_change=5)),
    "discrete": (3, learner(ADABOOST, n_iter_no_change=8)),
    "discrete, constrained": (2, ADABOOST),
    "discrete shared": (3, learner(ADABOOST, multi_class="shared")),
    "real": (2, learner(ADABOOST, votes="real", n_bags=2)),
    "intervals": (2, learner(ADABOOST, weak_learner="interval")),
}


@pytest.mark.parametrize(
    ("kind", "missing"), [*zip(FITS, itertools.cycle([0.0, 0.1]), strict=False)]
)
def test_columns_in_another_order_give_the_same_model(kind, missing):
    n_classes, make = FITS[kind]
    X, y, weights, order = drawn(len(kind), n_classes, missing)
    how = {"n_estimators": 60, "random_state": 0, "device": "cpu"}
    sets = np.isin(np.arange(N_FEATURES), SETS)
    by_column = {"categorical_features": sets}
    if "constrained" in kind:
        by_column = {"monotonic_cst": CONSTRAINTS}
    elif kind == "intervals":
        by_column = {}
    plain = make(**how, **by_column).fit(X, y, weights)
    moved = make(**how, **{name: own[order] for name, own in by_column.items()})
    moved.fit(X[:, order], y, weights)
    assert renamed(moved.rounds_, order) == [list(own) for own in plain.rounds_]
    assert_array_equal(moved.decision_function(X[:, order]), plain.decision_function(X))
    assert moved.held_out_scores_ == plain.held_out_scores_


def candidates(X: np.ndarray, groups: dict[int, Groups], order: np.ndarray) -> list[list[Any]]:
    """What each of 1000 smoothing rounds offers: features, renamed, and where they are cut."""
    drawn = Candidates(Smoothing(1000), CutPlaces.of(X, groups))
    return [
        sorted((int(order[own.feature]), str(cut_of(own))) for own in drawn.at(number))
        for number in range(1000)
    ]


def cut_of(split: Any) -> Any:
    return split.left if isinstance(split, CategorySplit) else split.threshold


def test_equal_columns_are_offered_as_often_as_others_and_change_no_other_offer():
    X, _, _, order = drawn(0, 2, 0.1)
    X[:, 9] = X[:, 8] = X[:, 0]
    groups = Groups(((0,), (1, 4), (2,), (3,)))
    plain = candidates(X, {3: groups}, np.arange(N_FEATURES))
    counts = np.bincount([feature for one in plain for feature, _ in one], minlength=N_FEATURES)
    assert chisquare(counts).pvalue > 1e-3
    moved = candidates(X[:, order], {int(np.flatnonzero(order == 3)[0]): groups}, order)
    equal = {8: 0, 9: 0}
    for one, other in zip(plain, moved, strict=True):
        assert sorted((equal.get(feature, feature), cut) for feature, cut in one) == sorted(
            (equal.get(feature, feature), cut) for feature, cut in other
        )


def test_draws_depend_on_values_alone():
    """Not on their dtype, the sign of zero, the bits of NaN, or how a category is missing."""
    random = np.random.default_rng(0)
    X = random.integers(-3, 4, size=(50, 6)).astype(np.float32)
    X[random.random(X.shape) < 0.2] = np.nan
    groups = {5: Groups(((0,), (1,), (2, 3)))}
    keys = CutPlaces.of(X, groups).keys
    assert len(set(keys.tolist())) == 6
    other = X.astype(np.float64)
    other[other == 0.0] = -0.0
    other[np.isnan(other)] = -np.nan
    other[:, 5] = np.where(other[:, 5] < 0, np.nan, other[:, 5])
    assert_array_equal(CutPlaces.of(other, groups).keys, keys)
