"""Contributions, shape functions and importances: exactly what the model's terms add up to."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import region_model, rows
from models_by_hand import bits, predicted_by_hand

from gpustump import Interval, Member, Stump, StumpEnsemble

THREE = region_model(np.random.default_rng(3), 15, 4, 3)
"""A model of three classes."""


def made_up(seed: int, n_features: int, n_stumps: int) -> tuple[StumpEnsemble, np.ndarray]:
    """Stumps and intervals of every kind with votes of any size, and a table that meets them."""
    rng = np.random.default_rng(seed)
    values = np.asarray([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf, np.nan])
    stumps: list[Stump | Interval] = []
    for _ in range(n_stumps):
        feature, polarity, missing = rng.integers(n_features), *rng.choice([-1, 1], size=2)
        kind = rng.integers(3)
        if kind == 0:
            stumps.append(Interval(feature, -1.0, rng.choice([0.0, 0.5]), polarity, missing, 0.0))
        else:
            threshold = math.inf if kind == 1 else rng.choice(values[:-1])
            stumps.append(Stump(feature, threshold, polarity, missing, 0.0))
    votes = tuple(rng.integers(-(2**40), 2**48, size=n_stumps) * 2.0**-36)
    model = StumpEnsemble((Member(tuple(stumps), votes),), n_features)
    return model, rng.choice(values, size=(7, n_features))


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 25))
def test_contributions_and_shape_functions_are_the_votes_of_each_feature(seed, n_features, n):
    model, X = made_up(seed, n_features, n)
    explained = model.explain(X)
    (member,) = model.members
    for row, parts in zip(X.tolist(), explained.tolist(), strict=True):
        wanted = [Fraction(0)] * (n_features + 1)
        for stump, vote in zip(member.stumps, member.votes, strict=True):
            at = n_features if stump.is_constant else stump.feature
            wanted[at] += Fraction(vote) * predicted_by_hand(stump, row[stump.feature])
        assert list(map(Fraction, parts)) == wanted
    for feature in range(n_features):
        table = model.shape_function(feature)
        assert bits(table.look_up(X[:, feature]) + 0.0) == bits(explained[:, feature] + 0.0)
    assert set(explained[:, -1].tolist()) == {model.intercepts[0]}


def test_a_shape_function_holds_thresholds_values_and_the_vote_for_missing_values():
    stumps = (
        Stump(1, 2.0, 1, -1, 0.1),
        Interval(1, 0.0, 3.0, -1, -1, 0.1),
        Stump(0, math.inf, 1, 1, 0.4),
    )
    model = StumpEnsemble((Member(stumps, (1.0, 0.25, 8.0)),), 3, feature_names=("a", "b", "c"))
    table = model.shape_function("b")
    assert table.feature == 1
    assert table.thresholds.tolist() == [0.0, 2.0, 3.0, math.inf]
    assert table.values.tolist() == [1.25, 0.75, -1.25, -0.75]
    assert table.missing == -1.25
    assert model.shape_function(1).values.tolist() == table.values.tolist()
    assert model.intercepts == (8.0,)  # a constant stump belongs to no feature
    for feature in ("a", "c"):
        table = model.shape_function(feature)
        assert (table.thresholds.tolist(), table.values.tolist()) == ([math.inf], [0.0])
        assert table.look_up(np.asarray([1.0, np.nan, -np.inf])).tolist() == [0.0, 0.0, 0.0]
        assert table.look_up([1, None]).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="column has dtype <U1, but must hold the numbers"):
        table.look_up(["a"])


@pytest.mark.parametrize(
    ("feature", "label", "message"),
    [
        (4, 0, "feature must be below 4, the number of features; got 4"),
        (-1, 0, "feature must be at least 0"),
        (1.0, 0, "feature must be a whole number"),
        (True, 0, "feature must be a whole number"),
        ("colour", 0, "this model has no feature names"),
        (0, None, "label must be one of 0, 1, 2"),
        (0, 3, "label must be one of 0, 1, 2"),
    ],
)
def test_a_feature_or_class_that_is_not_there_is_refused(feature, label, message):
    with pytest.raises((ValueError, TypeError), match=message):
        THREE.shape_function(feature, label=label)
    binary = StumpEnsemble((Member((), ()),), 2, feature_names=("width", "height"))
    assert binary.shape_function(0, label=1).values.tolist() == [0.0]
    with pytest.raises(ValueError, match="label must be 1, whose score is the only one"):
        binary.shape_function(0, label=-1)
    with pytest.raises(ValueError, match=r"none of the model's features. Did you mean 'width'\?"):
        binary.shape_function("widht")


@pytest.mark.parametrize("weighted", [False, True])
def test_importances_are_mean_deviations_of_contributions_in_every_library(
    backend: Backend, weighted: bool
):
    X = rows(np.random.default_rng(0), 80, 4, "float64")
    weights = np.random.default_rng(0).integers(0, 4, size=len(X)) if weighted else None
    parts = THREE.explain(X)[:, :, :-1]
    exact = np.ones(len(X), dtype=int) if weights is None else weights
    spreads = [Fraction(0)] * 4
    for member in range(3):
        for feature in range(4):
            column = [Fraction(value) for value in parts[:, member, feature].tolist()]
            pairs = list(zip(column, exact.tolist(), strict=True))
            mean = sum(value * w for value, w in pairs) / int(exact.sum())
            spreads[feature] += sum(abs(value - mean) * w for value, w in pairs)
    expected = [float(one / sum(spreads)) for one in spreads]
    given_weights = None if weights is None else backend.asarray(weights.astype(np.float64))
    found = THREE.contribution_importances(backend.asarray(X), given_weights)
    assert found.tolist() == expected
    assert THREE.contribution_importances(np.zeros((5, 4))).tolist() == [0.0] * 4


def test_importances_measure_what_votes_do_in_any_unit():
    stumps = Stump(0, 0.5, 1, 1, 0.4), Stump(1, 0.5, 1, 1, 0.4)
    model = StumpEnsemble((Member(stumps, (1e-12, 3e-12)),), 2)
    X = np.asarray([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert model.contribution_importances(X[:2]).tolist() == [0.25, 0.75]
    noise = Stump(0, 0.5, 1, 1, 0.4), Stump(0, 0.5, -1, -1, 0.4)  # these votes cancel out
    model = StumpEnsemble((Member((*noise, Stump(1, 0.5, 1, 1, 0.3)), (5.0, 5.0, 1.0)),), 2)
    assert model.feature_importances().tolist() == [10 / 11, 1 / 11]
    assert model.contribution_importances(X).tolist() == [0.0, 1.0]


def shapley_values(score, row: np.ndarray, background: np.ndarray) -> list[Fraction]:
    """Interventional Shapley values by their definition, over all subsets of the features."""
    n = len(row)

    def gain(subset: tuple[int, ...]) -> Fraction:
        rows = background.copy()
        rows[:, list(subset)] = row[list(subset)]
        return sum(map(Fraction, score(rows).tolist()), Fraction(0)) / len(rows)

    values = []
    for feature in range(n):
        others = [j for j in range(n) if j != feature]
        total = Fraction(0)
        for size in range(n):
            weight = Fraction(1, n * math.comb(n - 1, size))
            for subset in itertools.combinations(others, size):
                total += weight * (gain((*subset, feature)) - gain(subset))
        values.append(total)
    return values


def test_contributions_less_their_mean_over_a_background_are_shapley_values():
    model = region_model(np.random.default_rng(0), 30, 4)
    X = rows(np.random.default_rng(1), 23, 4, "float64")
    background = X[:20]
    means = [
        sum(map(Fraction, column.tolist()), Fraction(0)) / len(background)
        for column in model.explain(background)[:, :-1].T
    ]
    for row, parts in zip(X[20:], model.explain(X[20:]), strict=True):
        expected = shapley_values(model.decision_function, row, background)
        found = [Fraction(part) - mean for part, mean in zip(parts[:-1], means, strict=True)]
        assert found == expected
