"""Pairs of features: which are learnt, from which samples, and how their tables are made pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backends import Backend
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gpustump import (
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    StumpEnsemble,
    audit,
)
from gpustump.boosting.pairs import purified as purifying
from gpustump.boosting.pairs.axes import axes_of
from gpustump.boosting.pairs.purified import purified
from gpustump.data.parameters import check_interactions
from gpustump.learners.step_table import VOTE_UNIT


def xor_table(n: int = 800, n_features: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that follow from the signs of the first two features together, and of none alone."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, n_features)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def small(**parameters) -> GlassBoxClassifier:
    given = {"n_bags": 2, "n_estimators": 60, "random_state": 0, "device": "cpu"}
    return GlassBoxClassifier(**given | parameters)


def test_pairs_learn_what_no_sum_of_functions_of_one_feature_can():
    X, y = xor_table()
    test_X, test_y = xor_table(seed=1)
    assert small(interactions=0).fit(X, y).score(test_X, test_y) < 0.6
    model = small().fit(X, y).model_
    assert model.pairs[0].features == (0, 1)
    assert (model.predict(test_X) == test_y).mean() > 0.9


def test_pairs_that_are_named_are_learnt():
    pandas = pytest.importorskip("pandas")
    X, y = xor_table()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    found = small(interactions=[("d", "a"), (1, 0), ("a", "b")]).fit(frame, y).model_
    assert [own.features for own in found.pairs] == [(0, 1), (0, 3)]
    assert found.term_names[4:] == ("a x b", "a x d")


def test_a_constrained_feature_takes_no_part():
    X, y = xor_table()
    found = small(monotonic_cst=[1, 0, 0, 0], interactions=6).fit(X, y).model_
    assert all(0 not in own.features for own in found.pairs)
    rising = np.linspace(-1, 1, 50, dtype=np.float32)
    rows = np.repeat(X[:1], 50, axis=0)
    rows[:, 0] = rising
    assert (np.diff(found.decision_function(rows)) >= 0).all()


def test_held_out_samples_keep_pairs_out_of_a_model_that_needs_none():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 6)).astype(np.float32)
    y = X.sum(axis=1) + random.normal(size=600)
    test_X = random.normal(size=(4000, 6)).astype(np.float32)
    with_pairs, without = (
        GlassBoxRegressor(n_bags=6, random_state=0, device="cpu", interactions=own).fit(X, y)
        for own in ("auto", 0)
    )
    errors = [
        np.mean((own.predict(test_X) - test_X.sum(axis=1)) ** 2) for own in (with_pairs, without)
    ]
    assert errors[0] < 1.1 * errors[1]


def test_bags_whose_samples_lack_values_that_others_have():
    """Without early stopping no bag knows what another one was trained on."""
    X, y = xor_table(n=400)
    X[7:9, :] = np.nan
    model = small(n_bags=8, n_iter_no_change=None, n_estimators=20).fit(X, y).model_
    assert model.pairs
    kept = LogitBoostClassifier(n_estimators=5, n_bags=6, random_state=0, interactions=3)
    assert kept.fit(X, y).model_.pairs


def test_rows_that_are_watched_decide_how_long_pairs_are_boosted():
    (X, y), own, test = xor_table(), xor_table(seed=2), xor_table(seed=5)
    how = {"n_estimators": 40, "n_iter_no_change": 5, "learning_rate": 0.3}
    clf = LogitBoostClassifier(interactions=2, device="cpu", **how)
    model = clf.fit(X, y, X_val=own[0], y_val=own[1]).model_
    assert (model.predict(test[0]) == test[1]).mean() > 0.9
    assert clf.fit(X, y, X_val=own[0], y_val=1 - own[1]).model_.pairs == ()


@pytest.mark.parametrize("multi_class", ["shared", "one_vs_rest"])
def test_several_classes_have_a_table_for_each_score(multi_class: str):
    X, y = xor_table(n=1200)
    y = y + 2 * (X[:, 2] > 0.5)
    model = small(multi_class=multi_class, n_estimators=90).fit(X, y).model_
    assert {own.values.shape[2] for own in model.pairs} == {4}
    assert (model.predict(X) == y).mean() > 0.9


def test_counts_costs_and_known_scores_have_pairs():
    random = np.random.default_rng(0)
    X, effect = xor_table()
    known = random.normal(size=len(X))
    counts = random.poisson(np.exp(effect + known))
    reg = StumpBoostingRegressor(loss="poisson", n_estimators=40, interactions=1, device="cpu")
    of_counts = reg.fit(X, counts, exposure=np.exp(known)).model_
    costs = np.exp(effect) * random.gamma(4.0, size=len(X)) / 4.0
    reg = GlassBoxRegressor(loss="gamma", n_bags=2, random_state=0, device="cpu", interactions=1)
    for model in (of_counts, reg.fit(X, costs).model_):
        (pair,) = model.pairs
        assert pair.features == (0, 1)
        rows = np.asarray([[0.5, 0.5, 0, 0], [-0.5, 0.5, 0, 0]], np.float32)
        inside, outside = model.decision_function(rows)
        assert 0.6 < inside - outside < 1.2


@given(st.integers(2, 6), st.integers(2, 6), st.integers(1, 3), st.integers(0, 2**32 - 1))
@example(2, 3, 3, 96)  # sweeps alone would take 1250
@settings(max_examples=60, deadline=None)
def test_purifying_moves_means_and_changes_no_sum(k, m, n_outputs, seed):
    random = np.random.default_rng(seed)
    table = np.rint(random.normal(size=(k, m, n_outputs)) / VOTE_UNIT) * VOTE_UNIT
    weights = np.floor(random.exponential(size=(k, m)) * 100) * (random.random((k, m)) < 0.8)
    pure, rows, columns = purified(table, weights)
    assert_array_equal(pure + rows[:, None] + columns, table)
    for axis in (0, 1):
        total = weights.sum(axis=axis)[:, None]
        means = (pure * weights[..., None]).sum(axis=axis) / np.maximum(total, 1.0)
        assert np.abs(means).max() <= VOTE_UNIT


def of_almost_the_same_features(weak: float) -> tuple[np.ndarray, np.ndarray]:
    """A table whose samples lie on the diagonal, but for `weak` of them beside it."""
    random = np.random.default_rng(0)
    table = np.rint(random.normal(size=(32, 32, 2)) / VOTE_UNIT) * VOTE_UNIT
    weights = np.eye(32) + weak * (np.eye(32, k=1) + random.random((32, 32)) * np.eye(32, k=-1))
    return table, np.rint(weights * 2.0**40)


@pytest.mark.parametrize("weak", [1e-1, 1e-3, 1e-6])
def test_purifying_takes_few_sweeps_for_features_that_are_almost_the_same(weak, monkeypatch):
    means, calls = purifying._means, []

    def counted(*given):
        calls.append(1)
        return means(*given)

    monkeypatch.setattr(purifying, "_means", counted)
    table, weights = of_almost_the_same_features(weak)
    pure, rows, columns = purified(table, weights)
    assert_array_equal(pure + rows[:, None] + columns, table)
    assert len(calls) < 2 * 250
    for axis in (0, 1):
        by_sample = (pure * weights[..., None]).sum(axis=axis) / weights.sum(axis=axis)[:, None]
        assert np.abs(by_sample).max() <= VOTE_UNIT


def test_purifying_under_weights_of_any_size_moves_no_more_than_the_table_holds():
    for seed in range(60):
        random = np.random.default_rng(seed)
        shape = random.integers(2, 33, size=2)
        table = np.rint(random.normal(size=(*shape, 1)) / VOTE_UNIT) * VOTE_UNIT
        weights = np.ceil(10.0 ** random.uniform(0.0, 16.0, size=shape))
        weights *= random.random(shape) < random.choice([0.05, 0.15, 0.5])
        pure, rows, columns = purified(table, weights)
        assert_array_equal(pure + rows[:, None] + columns, table)
        assert max(np.abs(rows).max(), np.abs(columns).max()) < 8 * np.abs(table).max()


def test_bins_hold_about_equal_numbers_of_samples_and_few_values_have_one_each():
    random = np.random.default_rng(0)
    X = np.stack([random.exponential(size=5000), random.integers(0, 4, 5000)], axis=1)
    X[:100, 0] = np.nan
    wide, narrow = axes_of(X, np.arange(5000), [0, 1], (), {}).axes
    counts = np.bincount(wide.bins_of(X[:, 0]))
    assert len(counts) == 32
    assert counts[-1] == 100
    assert counts[:-1].max() - counts[:-1].min() <= 2
    assert narrow.thresholds.tolist() == [0.5, 1.5, 2.5, np.inf]


def test_many_categories_share_bins_of_neighbours():
    random = np.random.default_rng(0)
    X = np.stack([random.integers(0, 200, 3000), random.normal(size=3000)], axis=1)
    axis, _ = axes_of(X, np.arange(3000), [0, 1], (0,), {}).axes
    assert axis.n_bins <= 32
    assert sorted(number for own in axis.groups for number in own) == np.unique(X[:, 0]).tolist()


def test_an_audit_names_the_pair_that_differs():
    X, y = xor_table()
    model = small(interactions=[(0, 1), (2, 3)]).fit(X, y).model_
    first, *others = model.pairs
    other = replace(first, values=first.values + 2.0**-20)
    difference = audit(replace(model, pairs=(other, *others)), X, y).difference
    assert difference.what == "the table of the pair x0 x x1"
    fewer = audit(replace(model, pairs=tuple(others)), X, y).difference
    assert (fewer.what, fewer.data) == ("the pairs of features", "x0 x x1, x2 x x3")


NO_INTERACTIONS = {
    "0 or more; a number a feature": [-1],
    "interactions must be": ["3", "many", "-1x", "nanx", "infx", 2.5, True, None],
    "must pair two features": [[(0, 0)]],
    "X has 4 features, 0 to 3; got 4": [[(0, 4)]],
    "one of them is": [[(0, 1, 2)], [0, 1], ["ab"]],
    "the features of X have no names": [[("a", "b")]],
    "a feature must be an index or a name": [[(0.5, 1)]],
}


@pytest.mark.parametrize("message", NO_INTERACTIONS)
def test_interactions_that_mean_nothing_are_refused_by_name(message: str):
    X, y = xor_table(n=40)
    for value in NO_INTERACTIONS[message]:
        with pytest.raises((ValueError, TypeError), match=message):
            small(interactions=value).fit(X, y)


@pytest.mark.parametrize(("value", "number"), [("1x", 4), ("0.5x", 2), (3, 3), (99, 6), ("9x", 6)])
def test_a_number_or_a_share_says_how_many_pairs_are_learnt(value, number: int):
    assert check_interactions(value, 4, None, None).number == number


def test_a_pair_that_is_asked_for_is_refused_if_a_constraint_keeps_it_out():
    X, y = xor_table(n=60)
    glass_box = GlassBoxClassifier(monotonic_cst=[0, 1, 0, 0][: X.shape[1]], n_estimators=5)
    with pytest.raises(ValueError, match=r"has the pair \(0, 1\), but features with a monotone"):
        glass_box.set_params(interactions=[(0, 1)]).fit(X, y)
    glass_box.set_params(interactions=[(0, 2)], n_bags=1, n_iter_no_change=None).fit(X, y)


@pytest.fixture(scope="module")
def wanted() -> str:
    return _of_library(np.asarray).digest()


def _of_library(asarray) -> StumpEnsemble:
    X, y = xor_table(n=120)
    X[:, 3] = np.where(X[:, 3] > 0.8, np.nan, np.floor(4 * X[:, 3]))
    return small(n_estimators=12, smoothing_rounds=4, interactions=2).fit(asarray(X), y).model_


def test_every_library_learns_the_same_pairs(backend: Backend, wanted: str):
    model = _of_library(backend.asarray)
    assert model.pairs
    assert model.digest() == wanted
