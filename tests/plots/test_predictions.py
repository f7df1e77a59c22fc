"""Pictures of predictions of a quantity: points, means and shares are those of the samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import sem
from sklearn.metrics import d2_tweedie_score, r2_score

from gpustump import AdaBoostClassifier, StumpBoostingRegressor

pytest.importorskip("matplotlib")

from gpustump import plots

PICTURES = (plots.true_over_predicted, plots.residuals)


@pytest.fixture(scope="module")
def values():
    """A table, positive values, and weights that are whole numbers."""
    random = np.random.default_rng(3)
    X = random.normal(size=(600, 2)).astype(np.float32)
    y = np.exp(X[:, 0]) * random.uniform(0.2, 1.8, size=600)
    return X, y, random.integers(1, 4, size=600)


def fitted(values, loss="squared_error"):
    X, y, _ = values
    return StumpBoostingRegressor(loss=loss, n_estimators=40, device="cpu").fit(X, y)


def means_of(ax):
    """Predictions, means and half intervals of the groups."""
    (bars,) = ax.containers
    x, y = bars.lines[0].get_xydata().T
    segments = np.asarray(bars.lines[2][0].get_segments())
    return x, y, (segments[:, 1, 1] - segments[:, 0, 1]) / 2


@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_means_are_those_of_groups_of_similar_predictions(values, loss):
    X, y, _ = values
    reg = fitted(values, loss)
    predicted = reg.predict(X)
    n_groups = 4
    x, means, half = means_of(plots.true_over_predicted(reg, X, y, n_groups=n_groups))
    _, gaps, same = means_of(plots.residuals(reg, X, y, n_groups=n_groups))
    order = np.argsort(predicted, kind="stable")
    share = (np.arange(600) + 0.5) / 600
    first = np.searchsorted(predicted[order], predicted[order])  # equal ones stay together
    group = (share[first] * n_groups).astype(int)
    for k in range(n_groups):
        inside = order[group == k]
        assert x[k] == pytest.approx(predicted[inside].mean())
        assert means[k] == pytest.approx(y[inside].mean())
        assert gaps[k] == pytest.approx((y - predicted)[inside].mean(), abs=1e-9)
        assert half[k] == pytest.approx(1.959964 * sem(y[inside]), rel=1e-6)
        assert same[k] == pytest.approx(1.959964 * sem((y - predicted)[inside]), rel=1e-6)


@pytest.mark.parametrize(("loss", "name", "score"), [
    ("squared_error", "R²", r2_score),
    ("gamma", "D²", lambda *given, **how: d2_tweedie_score(*given, power=1, **how)),
])  # fmt: skip
def test_the_legend_has_the_share_that_is_explained(values, loss, name, score):
    X, y, weights = values
    reg = fitted(values, loss)
    for own in (None, weights.astype(float)):
        ax = plots.true_over_predicted(reg, X, y, sample_weight=own)
        wanted = score(y, reg.predict(X), sample_weight=own)
        assert ax.figure.legends or ax.get_legend()
        legend = ax.get_legend() or ax.figure.legends[0]
        assert legend.get_title().get_text() == f"{name} = {wanted:.3f}"


def test_weights_count_as_repeated_samples_and_samples_of_weight_0_are_left_out(values):
    X, y, weights = values
    reg = fitted(values)
    own = np.where(np.arange(600) % 3 == 0, 0, weights)
    many = np.repeat(np.arange(600), own)
    one = means_of(plots.residuals(reg, X, y, sample_weight=own.astype(float), n_groups=3))
    other = means_of(plots.residuals(reg, X[many], y[many], n_groups=3))
    assert one[0] == pytest.approx(other[0], rel=0.05)
    points = plots.residuals(reg, X, y, sample_weight=own.astype(float)).collections[0]
    assert len(points.get_offsets()) == np.count_nonzero(own)


def test_points_are_a_choice_of_2000_and_lie_on_their_samples(values):
    X, y, _ = values
    many = np.arange(3000) % 600
    reg = fitted(values)
    pairs = set(zip(reg.predict(X).tolist(), y.tolist(), strict=True))
    for draw in (plots.true_over_predicted, plots.residuals):
        points = draw(reg, X[many], y[many]).collections[0].get_offsets()
        assert len(points) == 2000
        if draw is plots.true_over_predicted:
            assert {*map(tuple, np.asarray(points).tolist())} <= pairs


def test_with_exposures_rates_are_drawn(values):
    X, y, _ = values
    exposure = np.random.default_rng(1).uniform(0.5, 2.0, size=600)
    counts = np.round(3 * y * exposure)
    reg = StumpBoostingRegressor(loss="poisson", n_estimators=40, device="cpu")
    reg.fit(X, counts, exposure=exposure)
    ax = plots.true_over_predicted(reg, X, counts, exposure=exposure)
    assert ax.get_xlabel() == "predicted rate"
    points = np.asarray(ax.collections[0].get_offsets())
    wanted = np.column_stack([reg.predict(X), counts / exposure])
    assert points == pytest.approx(wanted)
    known = plots.residuals(reg, X, counts, init_score=np.log(exposure))
    points = np.asarray(known.collections[0].get_offsets())
    predicted = reg.predict(X, exposure=exposure)
    assert points == pytest.approx(np.column_stack([predicted, counts - predicted]))


@pytest.mark.parametrize("draw", PICTURES)
def test_what_is_no_quantity_is_refused(values, draw):
    X, y, _ = values
    clf = AdaBoostClassifier(n_estimators=3).fit(X, y > 1)
    with pytest.raises(TypeError, match="this model predicts classes"):
        draw(clf, X, y)
    reg = fitted(values)
    with pytest.raises(ValueError, match="exposure is for counts"):
        draw(reg, X, y, exposure=y)
    with pytest.raises(ValueError, match="y contains NaN, the first at index 0"):
        draw(reg, X[:2], [np.nan, 1.0])


@pytest.mark.parametrize("draw", PICTURES)
@pytest.mark.parametrize("scale", [1e296, 1e-300, 0.0])
def test_values_of_any_size_and_equal_ones_are_drawn(values, draw, scale):
    X, y, _ = values
    reg = StumpBoostingRegressor(n_estimators=5, device="cpu").fit(X, y)
    ax = draw(reg, X, y * scale)
    assert np.isfinite(ax.get_ylim()).all()


def test_the_errors_of_a_quantity_by_round_are_scikit_learns(values):
    from sklearn.metrics import mean_gamma_deviance, mean_squared_error

    X, y, weights = values
    for loss, of in (("squared_error", mean_squared_error), ("gamma", mean_gamma_deviance)):
        reg = fitted(values, loss)
        ax = plots.error_curve(reg, X[:99], y[:99], sample_weight=weights[:99].astype(float))
        lines = {line.get_label().partition(":")[0]: line.get_ydata() for line in ax.lines}
        wanted = [of(y, own) for own in reg.staged_predict(X)]
        assert lines["training error"] == pytest.approx(wanted, rel=1e-6)
        own = reg.staged_predict(X[:99])
        wanted = [of(y[:99], one, sample_weight=weights[:99]) for one in own]
        assert lines["held-out error"] == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(ValueError, match="label is for classes"):
        plots.error_curve(reg, label=1)
