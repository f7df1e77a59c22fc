"""Contributions, shape functions and importances: exactly what the model's stumps add up to."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from awkward_tables import DATA, made
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from models_by_hand import bits, predicted_by_hand, skip_if_lacking, trained

from gpustump import AdaBoostClassifier, Interval, Member, Stump, StumpEnsemble

NAMES = sorted(DATA)[1::4]


@functools.cache
def model_of(name: str) -> StumpEnsemble:
    learner = "interval" if NAMES.index(name) % 2 else "stump"
    return trained(NUMPY, made(name), 12, None, weak_learner=learner)


def parts_by_hand(model: StumpEnsemble, member: Member, row: list[float]) -> list[Fraction]:
    """Each feature's votes on a row, and the constant stumps', added up as rationals."""
    parts = [Fraction(0)] * (model.n_features + 1)
    for stump, vote in zip(member.stumps, member.votes, strict=True):
        at = model.n_features if stump.is_constant else stump.feature
        parts[at] += Fraction(vote) * predicted_by_hand(stump, row[stump.feature])
    return parts


def of_three_classes() -> tuple[np.ndarray, np.ndarray, StumpEnsemble]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 0.3).astype(int) + (np.nan_to_num(X[:, 1]) > 0)
    return X, y, AdaBoostClassifier(n_estimators=15).fit(X, y).model_


@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_the_score_bit_for_bit_in_every_library(
    backend: Backend, name: str
):
    data, model = made(name), model_of(name)
    skip_if_lacking(backend, data)
    X = backend.asarray(data.X)
    explained = model.explain(X)
    assert backend.owns(explained)
    assert backend.dtype_of(explained) == "float64"
    parts = backend.to_numpy(explained)
    score = backend.to_numpy(model.decision_function(X))
    assert parts.shape == (len(score), model.n_features + 1)
    assert bits(parts.sum(axis=1)) == bits(score + 0.0)
    assert bits(parts[:, ::-1].cumsum(axis=1)[:, -1]) == bits(score + 0.0)
    assert bits(parts + 0.0) == bits(model.explain(data.X) + 0.0)


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


def test_contributions_are_the_votes_of_each_feature_in_every_library(backend: Backend):
    @settings(max_examples=60 if backend is NUMPY else 20)
    @given(st.integers(0, 10**6))
    def contributions_are_the_votes(seed):
        model, X = made_up(seed, 3, 12)
        explained = backend.to_numpy(model.explain(backend.asarray(X)))
        score = backend.to_numpy(model.decision_function(backend.asarray(X)))
        assert bits(explained.sum(axis=1) + 0.0) == bits(score + 0.0)
        for row, parts, whole in zip(X.tolist(), explained.tolist(), score.tolist(), strict=True):
            assert list(map(Fraction, parts)) == parts_by_hand(model, model.members[0], row)
            assert sum(map(Fraction, parts)) == Fraction(whole)

    contributions_are_the_votes()


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 25))
def test_shape_functions_are_the_contributions_of_every_value(seed, n_features, n_stumps):
    model, X = made_up(seed, n_features, n_stumps)
    explained = model.explain(X)
    for feature in range(n_features):
        table = model.shape_function(feature)
        assert bits(table.look_up(X[:, feature]) + 0.0) == bits(explained[:, feature] + 0.0)
    assert set(explained[:, -1].tolist()) == {model.intercepts[0]}


def test_with_more_classes_each_has_its_own_contributions(backend: Backend):
    X, _, model = of_three_classes()
    explained = model.explain(backend.asarray(X))
    assert backend.owns(explained)
    parts = backend.to_numpy(explained)
    assert parts.shape == (150, 3, 5)
    assert np.array_equal(parts.sum(axis=2), model.decision_function(X))
    for k, member in enumerate(model.members):
        by_hand = [[float(p) for p in parts_by_hand(model, member, row)] for row in X.tolist()]
        assert np.array_equal(parts[:, k], np.asarray(by_hand))


def test_constant_stumps_are_the_intercept_and_belong_to_no_feature():
    stumps = (
        Stump(0, math.inf, 1, 1, 0.4),
        Stump(1, 0.5, -1, 1, 0.3),
        Stump(0, math.inf, 1, -1, 0.2),
    )
    model = StumpEnsemble((Member(stumps, (0.25, 0.5, 1.0)),), 3)
    assert model.intercepts == (0.25,)
    explained = model.explain([[math.nan, 0.0, 1.0], [5.0, 1.0, 1.0]])
    assert explained.tolist() == [[-1.0, -0.5, 0.0, 0.25], [1.0, 0.5, 0.0, 0.25]]


def test_a_shape_function_holds_thresholds_values_and_the_vote_for_missing_values():
    stumps = Stump(1, 2.0, 1, -1, 0.1), Interval(1, 0.0, 3.0, -1, -1, 0.1)
    model = StumpEnsemble((Member(stumps, (1.0, 0.25)),), 2, feature_names=("a", "b"))
    table = model.shape_function("b")
    assert table.feature == 1
    assert table.thresholds.tolist() == [0.0, 2.0, 3.0, math.inf]
    assert table.values.tolist() == [1.25, 0.75, -1.25, -0.75]
    assert table.missing == -1.25
    assert model.shape_function(1).values.tolist() == table.values.tolist()


def test_a_feature_without_a_stump_contributes_nothing():
    model = StumpEnsemble((Member((Stump(1, 2.0, 1, 1, 0.1),), (1.0,)),), 3)
    table = model.shape_function(2)
    assert (table.thresholds.tolist(), table.values.tolist()) == ([math.inf], [0.0])
    assert table.missing == 0.0
    assert table.look_up(np.asarray([1.0, np.nan, -np.inf])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4,), "feature must be below 4, the number of features; got 4"),
        ((-1,), "feature must be at least 0"),
        ((1.0,), "feature must be a whole number"),
        ((True,), "feature must be a whole number"),
        (("colour",), "this model has no feature names"),
    ],
)
def test_a_feature_that_is_not_there_is_refused(arguments, message):
    _, _, model = of_three_classes()
    with pytest.raises((ValueError, TypeError), match=message):
        model.shape_function(*arguments, label=0)


def test_a_name_that_is_nearly_a_features_is_suggested():
    names = ("width", "height")
    model = StumpEnsemble((Member((), ()),), 2, feature_names=names)
    with pytest.raises(ValueError, match=r"none of the model's features. Did you mean 'width'\?"):
        model.shape_function("widht")


def test_with_more_than_two_classes_one_has_to_be_named():
    _, _, model = of_three_classes()
    with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
        model.shape_function(0)
    with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
        model.shape_function(0, label=3)
    binary = StumpEnsemble((Member((), ()),), 2)
    assert binary.shape_function(0, label=1).values.tolist() == [0.0]
    with pytest.raises(ValueError, match="label must be 1, whose score is the only one"):
        binary.shape_function(0, label=-1)


@pytest.mark.parametrize("weighted", [False, True])
def test_importances_are_mean_deviations_of_contributions_in_every_library(
    backend: Backend, weighted: bool
):
    X, _, model = of_three_classes()
    weights = np.random.default_rng(0).integers(0, 4, size=len(X)) if weighted else None
    parts = model.explain(X)[:, :, :-1]
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
    found = model.contribution_importances(backend.asarray(X), given_weights)
    assert found.tolist() == expected
    assert math.isclose(sum(expected), 1.0)


def test_importances_are_zero_where_every_row_has_the_same_score():
    _, _, model = of_three_classes()
    assert model.contribution_importances(np.zeros((5, 4))).tolist() == [0.0] * 4


def test_a_model_of_thousands_of_features_is_explained(backend: Backend):
    model = StumpEnsemble((Member((Stump(2999, 0.5, 1, 1, 0.1),), (1.0,)),), 3000)
    X = np.zeros((3, 3000))
    X[1, 2999] = 1.0
    parts = backend.to_numpy(model.explain(backend.asarray(X)))
    assert parts[:, 2999].tolist() == [1.0, -1.0, 1.0]
    assert np.count_nonzero(parts) == 3


def test_votes_in_any_unit_make_a_feature_important():
    stumps = Stump(0, 0.5, 1, 1, 0.4), Stump(1, 0.5, 1, 1, 0.4)
    model = StumpEnsemble((Member(stumps, (1e-12, 3e-12)),), 2)
    X = np.asarray([[0.0, 0.0], [1.0, 1.0]])
    assert model.contribution_importances(X).tolist() == [0.25, 0.75]


@pytest.mark.parametrize("vote", [math.nan, math.inf])
def test_votes_that_are_no_numbers_are_refused(vote):
    with pytest.raises(ValueError, match="votes must be finite"):
        Member((Stump(0, 0.5, 1, 1, 0.4),), (vote,))


def test_many_votes_that_cancel_out_do_not_make_a_feature_important():
    noise = Stump(0, 0.5, 1, 1, 0.4), Stump(0, 0.5, -1, -1, 0.4)
    model = StumpEnsemble((Member((*noise, Stump(1, 0.5, 1, 1, 0.3)), (5.0, 5.0, 1.0)),), 2)
    X = np.asarray([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert model.feature_importances()[0] > 0.9
    assert model.contribution_importances(X).tolist() == [0.0, 1.0]


def test_the_estimator_explains_frames_and_refuses_strangers():
    pandas = pytest.importorskip("pandas")
    X, y, model = of_three_classes()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    fitted = AdaBoostClassifier(n_estimators=15).fit(frame, y)
    assert np.array_equal(fitted.explain(frame), model.explain(X))
    assert np.array_equal(fitted.contribution_importances(frame), model.contribution_importances(X))
    assert fitted.shape_function("b", label=2).feature == 1
    with pytest.raises(ValueError, match="lacks 1 column that the model needs: 'a'"):
        fitted.explain(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :3])


def shapley_values(score, row: np.ndarray, background: np.ndarray) -> list[Fraction]:
    """Interventional Shapley values by their definition, over all subsets of the features."""
    n = len(row)

    def worth(subset: tuple[int, ...]) -> Fraction:
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
                total += weight * (worth((*subset, feature)) - worth(subset))
        values.append(total)
    return values


def test_contributions_less_their_mean_over_a_background_are_shapley_values():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    X[::7, 2] = np.nan
    signs = np.where(X[:, 0] + np.abs(X[:, 1]) > 0.5, 1, -1)
    model = AdaBoostClassifier(n_estimators=30).fit(X, signs).model_
    assert len({stump.feature for stump in model.members[0].stumps}) == 4
    background = X[:20]
    means = [
        sum(map(Fraction, column.tolist()), Fraction(0)) / len(background)
        for column in model.explain(background)[:, :-1].T
    ]
    for row, parts in zip(X[30:33], model.explain(X[30:33]), strict=True):
        expected = shapley_values(model.decision_function, row, background)
        found = [Fraction(part) - mean for part, mean in zip(parts[:-1], means, strict=True)]
        assert found == expected
