"""Quantities: the models of `StumpBoostingRegressor` and `GlassBoxRegressor` against oracles,
scikit-learn and laws.

Engines are compared in tests/engines/test_conformance.py, which has squared loss among its kinds.
"""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from gpustump import GlassBoxRegressor, StumpBoostingRegressor, StumpEnsemble, plots


def drawn(seed: int = 0, n_samples: int = 300, missing: float = 0.0):
    """X (n_samples, 4) and targets that follow from X with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 2 + random.normal(size=n_samples) / 4
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def best_split(X, r, w):
    """The lowest feature and threshold of the largest gain, in rational numbers.

    Values are not missing.
    """
    found = None
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in itertools.pairwise(values):
            is_left = X[:, feature] <= low
            gain = Fraction(0)
            for side in (is_left, ~is_left):
                total = sum(a * b for a, b, own in zip(r, w, side, strict=True) if own)
                gain += total * total / sum(b for b, own in zip(w, side, strict=True) if own)
            if found is None or gain > found[0]:
                found = gain, feature, low, high
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_are_those_of_rational_arithmetic(weighted):
    """Targets are multiples of 1/8 and weights are whole, so that every number is exact."""
    random = np.random.default_rng(3)
    X = random.integers(0, 6, size=(30, 3)).astype(float)
    y = np.round(8 * (X[:, 0] - X[:, 1] ** 2 / 4 + random.normal(size=30))) / 8
    weights = random.integers(1, 5, size=30) if weighted else np.ones(30, dtype=int)
    reg = StumpBoostingRegressor(n_estimators=12, learning_rate=0.5).fit(X, y, weights)
    w = [Fraction(int(one)) for one in weights]
    mean = sum(Fraction(a) * b for a, b in zip(y, w, strict=True)) / sum(w)
    r = [Fraction(own) - mean for own in y]
    (rounds,) = reg.rounds_
    for one in rounds:
        gain, feature, low, high = best_split(X, r, w)
        assert one.stump.feature == feature
        assert low <= one.stump.threshold < high
        assert_allclose(one.score, float(gain), rtol=1e-6)
        is_left = X[:, feature] <= low
        for side, (vote,) in zip((is_left, ~is_left), one.votes, strict=False):
            total = sum(a * b for a, b, own in zip(r, w, side, strict=True) if own)
            weight = sum(b for b, own in zip(w, side, strict=True) if own)
            assert abs(Fraction(vote) - total / weight / 2) < Fraction(1, 2**28)
            r = [a - Fraction(vote) if own else a for a, own in zip(r, side, strict=True)]
        squares = sum(a * a * b for a, b in zip(r, w, strict=True)) / sum(w)
        assert_allclose(one.training_error, float(squares), rtol=1e-7)


def test_predictions_are_those_of_scikit_learns_boosted_stumps():
    X, y = load_diabetes(return_X_y=True)
    own = StumpBoostingRegressor(n_estimators=100).fit(X, y)
    peer = GradientBoostingRegressor(max_depth=1).fit(X, y)
    assert_allclose(own.predict(X), peer.predict(X), rtol=1e-7)
    (curve,) = own.evals_result_["training"].values()
    assert_allclose(curve, peer.train_score_, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:y spans")
@pytest.mark.parametrize(
    ("scale", "shift"), [(1e300, 0.0), (1e-300, 0.0), (1.0, 1e12), (1e-3, 1e9)]
)
def test_targets_of_any_size_and_place_are_predicted_to_their_resolution(scale, shift):
    X, y = drawn()
    how = {"n_estimators": 400, "learning_rate": 0.5}
    plain, reg = (StumpBoostingRegressor(**how).fit(X, own) for own in (y, y * scale + shift))
    resolution = np.spacing(np.abs(y * scale + shift).max()) * 8 + 1e-8 * scale
    assert np.abs(reg.predict(X) - (plain.predict(X) * scale + shift)).max() < 50 * resolution


def test_whole_numbers_beyond_float64_and_narrow_floats_are_taken():
    X, y = drawn()
    whole = (y * 1e6).astype(np.int64) + 2**60
    with pytest.warns(UserWarning, match="Subtract a constant from y first"):
        reg = StumpBoostingRegressor(n_estimators=20).fit(X, whole)
    assert np.abs(reg.predict(X) - whole).max() < 4e6
    narrow = y.astype(np.float32)
    digest = reg.fit(X, narrow).model_.digest()
    assert digest == reg.fit(X, narrow.astype(np.float64)).model_.digest()


def test_one_target_throughout_is_predicted_and_a_warning_says_that_nothing_was_learnt():
    X, _ = drawn()
    with pytest.warns(UserWarning, match="no cut of any feature lowers the error"):
        reg = StumpBoostingRegressor().fit(X, np.full(len(X), 3.3))
    assert_allclose(reg.predict(X), np.full(len(X), 3.3), rtol=2.0**-50)


@pytest.mark.parametrize("kernels", ["reference", "sorted", "coded"])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_a_single_sample_is_predicted(loss, kernels, monkeypatch):
    """All others may have no weight; there is no cut."""
    monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
    X, y, weights = [[1.0], [2.0], [3.0]], [5.0, 3.0, 7.0], [0.0, 1.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing was learnt
        reg = StumpBoostingRegressor(n_estimators=3, loss=loss).fit(X, y, weights)
    assert reg.predict([[0.0], [9.0]]) == pytest.approx([3.0, 3.0])


def test_the_interval_is_that_of_the_bags_predictions():
    X, y = drawn()
    reg = GlassBoxRegressor(n_bags=5, n_estimators=50, random_state=0).fit(X, y)
    low, high = reg.predict_interval(X, coverage=1.0)
    bags = np.stack([bag.predict(X) for bag in reg.model_.bag_models])
    assert_array_equal(low, bags.min(axis=0))
    assert_array_equal(high, bags.max(axis=0))
    assert_allclose(bags.mean(axis=0), reg.predict(X), atol=1e-8)
    with pytest.raises(ValueError, match="need a bagged model"):
        StumpBoostingRegressor(n_estimators=2).fit(X, y).predict_interval(X)


@pytest.mark.parametrize(("times", "warns"), [(900.0, False), (2100.0, True)])
def test_targets_to_watch_in_another_unit_are_told(times, warns):
    X = np.arange(20.0).reshape(-1, 1)
    y = np.linspace(-1.0, 1.0, 20)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reg = StumpBoostingRegressor(n_estimators=3, n_iter_no_change=2)
        reg.fit(X, y, X_val=X, y_val=times * y)
    assert (
        any("y_val has targets more than 1000 times" in str(own.message) for own in told) == warns
    )


def test_a_callback_is_told_of_rounds_in_the_unit_of_the_targets():
    X, y = drawn()
    told = []
    reg = StumpBoostingRegressor(n_estimators=5, callback=told.append).fit(X, y * 1000)
    assert tuple(told) == reg.rounds_[0]


def test_what_is_for_classes_is_refused_by_name():
    X, y = drawn()
    reg = GlassBoxRegressor(n_bags=2, n_estimators=5, random_state=0).fit(X, y)
    model = reg.model_
    for call in (
        lambda: model.predict_proba(X),
        lambda: model.labels_of(reg.predict(X)),
        lambda: plots.margin_distribution(reg, X, y),
    ):
        with pytest.raises(TypeError, match="predicts a quantity"):
            call()
    with pytest.raises(ValueError, match="label must be left out"):
        model.shape_function(0, label=1)
    for more in ({"classes": (0, 1), "link": "identity"}, {"classes": ()}):
        with pytest.raises(ValueError, match="link must be 'identity' or 'log' for a quantity"):
            StumpEnsemble(model.members, 4, **more)
