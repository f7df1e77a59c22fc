"""Counts, costs and what is known of them beforehand: Poisson and gamma loss, exposures, offsets.

Engines are compared in tests/engines/test_conformance.py, which has both losses among its kinds.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance, mean_squared_error, r2_score

from gpustump import StumpBoostingRegressor
from gpustump.boosting.rounds.known_scores import exponential_of
from gpustump.boosting.votes.ratio import deviance_of_mean, natural_log
from gpustump.learners.step_table import VOTE_UNIT

LOSSES = ("poisson", "gamma")
DEVIANCES = {
    "poisson": mean_poisson_deviance,
    "gamma": mean_gamma_deviance,
    "squared_error": mean_squared_error,
}

each_loss = pytest.mark.parametrize("loss", LOSSES)


def drawn(loss: str, seed: int = 0, n_samples: int = 400, missing: float = 0.0):
    """X (n_samples, 4), and counts or costs that follow from X."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4))
    mean = np.exp(np.sin(2 * X[:, 0]) + X[:, 1] / 2)
    y = random.poisson(mean).astype(float) if loss == "poisson" else random.gamma(2.0, mean / 2.0)
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def best_split(X, observed, expected):
    """The lowest feature and threshold of the largest gain, and the votes of its sides."""

    def step(side):
        apart, both = (observed - expected)[side].sum(), (observed + expected)[side].sum()
        return 2.0 * apart / both, apart**2 / both

    found = (-1.0,)
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for threshold in (values[:-1] + values[1:]) / 2:
            is_left = X[:, feature] <= threshold
            (left, of_left), (right, of_right) = step(is_left), step(~is_left)
            if of_left + of_right > found[0] * (1 + 1e-12):
                found = of_left + of_right, feature, threshold, left, right
    return found[1:]


@each_loss
def test_rounds_are_those_of_a_search_of_all_cuts(loss):
    """Of the amounts as they are: weights times targets, and weights times predictions."""
    X, y = drawn(loss, n_samples=60)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    reg = StumpBoostingRegressor(loss=loss, n_estimators=6, learning_rate=0.5).fit(X, y, weights)
    F = np.full(60, np.log(np.average(y, weights=weights)))
    for one in reg.rounds_[0]:
        if loss == "poisson":
            observed, expected = weights * y, weights * np.exp(F)
        else:
            observed, expected = weights * y / np.exp(F), weights
        feature, threshold, left, right = best_split(X, observed, expected)
        assert one.stump.feature == feature
        assert one.stump.threshold == pytest.approx(threshold)
        assert_allclose([one.votes[0][0], one.votes[1][0]], [left / 2, right / 2], rtol=1e-9)
        F += np.where(X[:, feature] <= threshold, left / 2, right / 2)
    assert_allclose(reg.predict(X), np.exp(F), rtol=1e-9)


@each_loss
def test_in_the_end_predicted_sums_are_the_observed_ones(loss):
    """The equations of maximum likelihood hold for each cell of a table with one feature."""
    random = np.random.default_rng(2)
    X = random.integers(0, 5, size=(300, 1)).astype(float)
    y = random.poisson(1.0 + X[:, 0]) + (loss == "gamma")
    reg = StumpBoostingRegressor(loss=loss, n_estimators=2000, learning_rate=1.0).fit(X, y)
    for cell in range(5):
        own = X[:, 0] == cell
        assert_allclose(reg.predict(X[own])[0], y[own].mean(), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", DEVIANCES)
def test_recorded_errors_are_those_of_the_predictions(loss, weighted):
    X, y = drawn(loss, missing=0.1)
    X_val, y_val = drawn(loss, seed=1)
    w, w_val = (
        np.random.default_rng(0).uniform(0.1, 3.0, size=(2, 400)) if weighted else (None,) * 2
    )
    reg = StumpBoostingRegressor(loss=loss, n_estimators=30)
    reg.fit(X, y * 100, w, X_val=X_val, y_val=y_val * 100, sample_weight_val=w_val)
    error_of = DEVIANCES[loss]
    (rounds,), (errors,), (scores,) = reg.rounds_, reg.held_out_errors_, reg.held_out_scores_
    for number, predicted in enumerate(reg.staged_predict(X)):
        own = error_of(y * 100, predicted, sample_weight=w)
        assert rounds[number].training_error == pytest.approx(own, rel=1e-9)
    assert_array_equal(predicted, reg.predict(X))
    for number, predicted in enumerate(reg.staged_predict(X_val)):
        own = error_of(y_val * 100, predicted, sample_weight=w_val)
        assert errors[number] == -scores[number] == pytest.approx(own, rel=1e-9)
    assert reg.evals_result_["validation"][error_of.__name__] == list(errors)
    assert reg.score(X_val, y_val, w_val) == r2_score(y_val, predicted, sample_weight=w_val)
    assert reg.score(X_val, y_val, 2.0) == pytest.approx(r2_score(y_val, predicted), rel=1e-12)


def test_an_exposure_is_a_rate_that_weighs_as_much():
    X, y = drawn("poisson")
    exposure = np.random.default_rng(1).uniform(0.1, 5.0, size=400)
    how = {"loss": "poisson", "n_estimators": 20, "l2_regularization": 1.0}
    reg = StumpBoostingRegressor(**how).fit(X, y, exposure=exposure)
    rates = StumpBoostingRegressor(**how).fit(X, y / exposure, exposure)
    assert reg.model_.digest() == rates.model_.digest()
    assert_array_equal(reg.predict(X, exposure=exposure), reg.predict(X) * exposure)
    *others, last = reg.staged_predict(X, exposure=exposure)
    assert_array_equal(last, reg.predict(X, exposure=exposure))
    assert len(others) == 19
    known = StumpBoostingRegressor(**how).fit(X, y, init_score=np.log(exposure))
    assert_allclose(known.predict(X), reg.predict(X), rtol=1e-8)
    assert reg.score(X, y, exposure=exposure) > reg.score(X, y)


def test_the_range_of_counts_is_that_of_rates_times_the_exposure():
    X, y = drawn("poisson")
    exposure = np.random.default_rng(1).uniform(0.1, 5.0, size=400)
    reg = StumpBoostingRegressor(loss="poisson", n_estimators=5, n_bags=3, random_state=0)
    reg.fit(X, y, exposure=exposure)
    ends = zip(reg.predict_interval(X, exposure=exposure), reg.predict_interval(X), strict=True)
    for of_count, of_rate in ends:
        assert_array_equal(of_count, of_rate * exposure)


def test_an_initial_score_of_the_squared_error_is_taken_off_the_targets():
    X, y = drawn("gamma")
    known = np.random.default_rng(1).normal(size=400)
    reg = StumpBoostingRegressor(n_estimators=20).fit(X, y, init_score=known)
    rest = StumpBoostingRegressor(n_estimators=20).fit(X, y - known)
    assert reg.model_.digest() == rest.model_.digest()
    assert_array_equal(reg.predict(X, init_score=known), reg.predict(X) + known)


@pytest.mark.parametrize("size", [1e-250, 1e-9, 1e12, 1e290])
@each_loss
def test_targets_of_any_size_are_predicted_in_their_size(loss, size):
    X, y = drawn(loss)
    reg, one = (
        StumpBoostingRegressor(loss=loss, n_estimators=20).fit(X, y * by) for by in (size, 1.0)
    )
    assert_allclose(reg.predict(X), one.predict(X) * size, rtol=1e-8)


@each_loss
def test_lambda_does_not_depend_on_the_unit_of_costs_but_on_that_of_counts(loss):
    X, y = drawn(loss)
    found = [
        StumpBoostingRegressor(loss=loss, n_estimators=20, l2_regularization=50.0).fit(X, y * by)
        for by in (1.0, 8.0)
    ]
    votes = [[one.votes for one in reg.rounds_[0]] for reg in found]
    assert (votes[0] == votes[1]) == (loss == "gamma")
    # Eight times as many events make lambda count an eighth.
    less = StumpBoostingRegressor(loss=loss, n_estimators=20, l2_regularization=50.0 / 8).fit(X, y)
    assert loss == "gamma" or [one.votes for one in less.rounds_[0]] == votes[1]


@each_loss
def test_the_deviance_of_the_mean_is_scikit_learns(loss):
    _, y = drawn(loss)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=400)
    mean = np.full(400, np.average(y, weights=weights))
    own = deviance_of_mean(y, weights, loss)
    assert own == pytest.approx(DEVIANCES[loss](y, mean, sample_weight=weights), rel=1e-12)


def test_logarithms_and_exponentials_are_those_of_many_digits():
    random = np.random.default_rng(0)
    x = np.concatenate([np.exp(random.uniform(-700, 700, 300)), [1.0, np.nextafter(1, 2), 0.75]])
    scores = np.rint(random.uniform(-600, 600, size=300) / VOTE_UNIT) * VOTE_UNIT
    with decimal.localcontext(decimal.Context(prec=50)):
        logs = np.asarray([float(Decimal(one).ln()) for one in x.tolist()])
        powers = np.asarray([float(Decimal(one).exp()) for one in scores.tolist()])
    assert_allclose(natural_log(x), logs, rtol=1e-15, atol=1e-16)
    assert_allclose(exponential_of(scores), powers, rtol=1e-15)
