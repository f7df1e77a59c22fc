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
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from gpustump import GlassBoxRegressor, StumpBoostingRegressor, StumpEnsemble, plots


def drawn(seed: int = 0, n_samples: int = 300, missing: float = 0.0):
    """X (n_samples, 4) and targets that follow from X with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 2 + random.normal(size=n_samples) / 4
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def best_split(X, r, w, l2=0):
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
                weight = sum(b for b, own in zip(w, side, strict=True) if own)
                gain += total * total / (weight + l2)
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


def pinball(y, predicted, level):
    return mean_pinball_loss(y, predicted, alpha=level)


def lower_quantile(r, w, share):
    """The smallest r up to which is at least this share of the weight, in rational numbers."""
    upto = Fraction(0)
    for value, weight in sorted(zip(r, w, strict=True)):
        upto += weight
        if upto >= share * sum(w):
            return value
    raise AssertionError("there is no weight")


@pytest.mark.parametrize("level", [0.1, 0.5, 0.75])
@pytest.mark.parametrize(("weighted", "l2"), [(False, 0.0), (True, 3.0), (True, None)])
def test_rounds_of_quantile_loss_are_those_of_rational_arithmetic(level, weighted, l2):
    """Cuts by the slopes of the loss, votes by the quantiles of the residuals beside them.

    Gains of slopes are often equal, so any best cut will do. Residuals are a little beside 0 where
    votes are rounded, so that no slope depends on the rounding.
    """
    random = np.random.default_rng(5)
    X = random.integers(0, 6, size=(40, 3)).astype(float)
    y = np.round(2.0**20 * (X[:, 0] - X[:, 1] ** 2 / 4 + random.normal(size=40))) / 2.0**20
    weights = random.integers(1, 5, size=40) if weighted else np.ones(40, dtype=int)
    reg = StumpBoostingRegressor(
        loss="quantile", quantile=level, n_estimators=12, learning_rate=0.3, l2_regularization=l2
    )
    (rounds,) = reg.fit(X, y, weights).rounds_
    w = [Fraction(int(one)) for one in weights]
    share = Fraction(int(level * 2**30), 2**30)
    start = lower_quantile([Fraction(own) for own in y], w, share)
    r = [Fraction(own) - start for own in y]
    for one in rounds:
        slopes = [share if own > 0 else share - 1 if own < 0 else Fraction(0) for own in r]
        gain, *_ = best_split(X, slopes, w, 10 if l2 is None else int(l2))
        assert_allclose(one.score, float(gain), rtol=1e-6)
        is_left = X[:, one.stump.feature] <= one.stump.threshold
        for side, (vote,) in zip((is_left, ~is_left), one.votes, strict=False):
            inside = [(a, b) for a, b, own in zip(r, w, side, strict=True) if own]
            wanted = lower_quantile(*zip(*inside, strict=True), share)
            assert abs(Fraction(vote) - Fraction(3, 10) * wanted) < Fraction(1, 2**28)
            r = [a - Fraction(vote) if own else a for a, own in zip(r, side, strict=True)]
        losses = sum(max(share * a, (share - 1) * a) * b for a, b in zip(r, w, strict=True))
        assert_allclose(one.training_error, float(losses / sum(w)), rtol=1e-6)


def test_a_quantile_of_ten_equal_samples_is_that_of_numpy():
    """Without features that vary the model is the quantile of the targets."""
    y = np.random.default_rng(0).permutation(10.0 * np.arange(10))
    for tenths in range(1, 10):
        reg = StumpBoostingRegressor(loss="quantile", quantile=tenths / 10)
        with pytest.warns(UserWarning, match="no cut of any feature"):
            reg.fit(np.zeros((10, 1)), y)
        (found,) = reg.predict([[0.0]])
        expected = np.quantile(y, tenths / 10, method="inverted_cdf")
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_predicted_quantiles_are_as_good_as_scikit_learns(level):
    """Of noise that grows with a feature, beside boosted stumps of histograms; and about that share
    of new targets lies below."""
    random = np.random.default_rng(1)
    X = random.normal(size=(6000, 4))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + random.normal(size=6000) * (0.5 + np.abs(X[:, 2]))
    (X, X_new), (y, y_new) = (X[:3000], X[3000:]), (y[:3000], y[3000:])
    own = StumpBoostingRegressor(loss="quantile", quantile=level, n_estimators=150).fit(X, y)
    peer = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=150, max_leaf_nodes=2, early_stopping=False
    ).fit(X, y)
    found, other = (pinball(y_new, model.predict(X_new), level) for model in (own, peer))
    assert found < 1.03 * other
    assert abs(np.mean(y_new <= own.predict(X_new)) - level) < 0.04
    (curve,) = own.evals_result_["training"].values()
    assert_allclose(curve[-1], pinball(y, own.predict(X), level), rtol=1e-6)


def test_a_warm_start_does_not_go_on_with_another_quantile():
    X, y = drawn()
    reg = StumpBoostingRegressor(loss="quantile", quantile=0.1, n_estimators=3, warm_start=True)
    before = reg.fit(X, y).model_
    with pytest.raises(ValueError, match=r"='quantile' of 0\.1,.*='quantile' of 0\.9"):
        reg.set_params(quantile=0.9, n_estimators=5).fit(X, y)
    assert reg.model_ is before


def test_a_run_of_quantile_loss_stops_by_the_pinball_loss_of_held_out_samples():
    X, y = drawn()
    reg = GlassBoxRegressor(loss="quantile", quantile=0.8, n_bags=1, n_estimators=60)
    reg.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    (curve,) = (own for name, own in reg.evals_result_.items() if name != "training")
    (losses,) = curve.values()
    best = pinball(y[200:], reg.predict(X[200:]), 0.8)
    assert_allclose(best, min(losses), rtol=1e-6)
    assert reg.model_.pairs == ()


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
@pytest.mark.parametrize("loss", ["squared_error", "quantile", "poisson", "gamma"])
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
