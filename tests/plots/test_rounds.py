"""The rounds in pictures: errors, bounds and losses for every kind of votes, and of bags."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import legend, line_called, overlaps, saved
from made_up_models import region_model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss, mean_gamma_deviance, mean_squared_error

from gpustump import (
    AdaBoostClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    plots,
    theory,
)

ROUNDS = 14


def adaboost(**how):
    return AdaBoostClassifier(n_estimators=ROUNDS, device="cpu", **how)


def logitboost(**how):
    return LogitBoostClassifier(n_estimators=ROUNDS, device="cpu", **how)


KINDS = {
    "discrete": (2, adaboost()),
    "real": (2, adaboost(votes="real")),
    "logistic": (2, logitboost()),
    "real shared": (3, adaboost(votes="real", multi_class="shared")),
    "discrete shared": (3, adaboost(multi_class="shared")),
    "softmax": (3, logitboost()),
    "real against the rest": (3, adaboost(votes="real")),
    "logistic against the rest": (3, logitboost(multi_class="one_vs_rest")),
}
SHARED = [name for name in KINDS if "shared" in name or "softmax" in name]
REST = [name for name in KINDS if "rest" in name]


def table(n_classes: int):
    random = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True) if n_classes == 2 else load_wine(return_X_y=True)
    X = X[:, :6]
    X = X + random.normal(size=X.shape) * X.std(axis=0)
    X[::17, 1] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted():
    found = {}
    for name, (n_classes, clf) in KINDS.items():
        X, y = table(n_classes)
        found[name] = clf.fit(X[::2], y[::2]), X[1::2], y[1::2]
    return found


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def heights(ax, start: str) -> np.ndarray:
    return line_called(ax, start).get_ydata()


def test_training_errors_and_bounds_by_round_are_those_of_the_model_so_far(fitted, kind):
    clf, *_ = fitted[kind]
    n_classes = len(clf.classes_)
    train_X, train_y = (part[::2] for part in table(n_classes))
    label = clf.classes_[1] if kind in REST else None
    ax = plots.error_curve(clf, label=label)
    expected = theory.losses_by_round(clf, train_X, train_y, label=label)
    assert_array_equal(heights(ax, "training error"), expected.errors)
    named = [text for text in legend(ax) if "product of the normalisers" in text]
    strip = ax.figure.axes[-1]
    rounds = clf.rounds_[1 if kind in REST else 0]
    below = strip.get_lines()[-1].get_ydata()
    if "logistic" in kind or "softmax" in kind:
        assert named == []
        assert_array_equal(below, [one.score for one in rounds])
    else:
        (text,) = named
        assert text.startswith("1.5 times the" if kind in SHARED else "product of")
        bounds = heights(ax, text)
        assert_allclose(bounds, expected.bounds, rtol=1e-10)
        assert any("weaker" in text for text in legend(ax)) is (kind == "discrete")
    if kind == "discrete":
        assert_array_equal(below, [one.edge for one in rounds])
        weaker = heights(ax, "from the edges only")
        assert_allclose(weaker, theory.edge_bounds([one.error for one in rounds]), rtol=1e-12)
    elif named:
        factors = bounds / np.append(1.5 if kind in SHARED else 1.0, bounds[:-1])
        assert_allclose(below, 1 - factors, rtol=1e-9)
        assert strip.get_ylabel() == "$1 - Z_t$"


@pytest.mark.parametrize("is_weighted", [False, True])
def test_held_out_losses_by_round_are_those_of_staged_predictions(fitted, kind, is_weighted):
    """Samples without weight are left out."""
    clf, X, y = fitted[kind]
    weights = np.random.default_rng(0).exponential(size=len(y)) if is_weighted else np.ones(len(y))
    weights[: len(y) // 3] *= not is_weighted
    ax = plots.error_curve(clf, X, y, sample_weight=weights if is_weighted else None)
    wrong = [np.average(own != y, weights=weights) for own in clf.staged_predict(X)]
    found = heights(ax, "held-out error")
    assert_allclose(found, wrong, atol=1e-12)
    strip, texts = ax.figure.axes[-1], legend(ax)
    losses = {"error": found}
    if "logistic" in kind or "softmax" in kind:
        how = {"labels": clf.classes_, "sample_weight": weights}
        expected = [log_loss(y, p, **how) for p in clf.staged_predict_proba(X)]
        losses["log-loss"] = heights(strip, "held-out log-loss")
        assert_allclose(losses["log-loss"], expected)
        assert strip.get_ylabel() == "log-loss"
        assert strip.get_xlim() == ax.get_xlim()
    for name, own in losses.items():
        lowest = int(np.argmin(own))
        text = f"last {own[-1]:.3g}, lowest {own[lowest]:.3g} in round {lowest + 1}"
        assert f"held-out {name}: {text}" in texts
    assert sum("log-loss" in text for text in texts) == len(losses) - 1
    lowest = int(found.argmin())
    marks = [line.get_xydata()[0].tolist() for line in ax.get_lines() if len(line.get_xdata()) == 1]
    assert [lowest + 1, found[lowest]] in marks
    whole = f"error, all {len(clf.classes_)} classes"
    assert ax.get_ylabel() == ("error" if clf.model_.is_binary else whole)


def test_the_log_loss_that_early_stopping_watched_is_drawn_without_samples():
    for n_classes in (2, 3):
        X, y = table(n_classes)
        how = {"n_iter_no_change": 4, "random_state": 0}
        clf = logitboost(**how).fit(X, y)
        ax = plots.error_curve(clf)
        validation = heights(ax.figure.axes[-1], "held-out log-loss")
        assert_array_equal(validation, -np.asarray(clf.held_out_scores_[0]))
        assert_array_equal(heights(ax, "held-out error"), clf.held_out_errors_[0])
        other = logitboost(**how, scoring="accuracy").fit(X, y)
        assert not any("log-loss" in text for text in legend(plots.error_curve(other)))


def test_the_curves_of_a_class_are_those_against_the_rest(fitted):
    clf, X, y = fitted["real against the rest"]
    ax = plots.error_curve(clf, X, y, label=1)
    wrong = [((one[:, 1] > 0) != (y == 1)).mean() for one in clf.staged_decision_function(X)]
    assert_allclose(heights(ax, "held-out error"), wrong)
    assert "class 1 against the rest" in ax.get_ylabel()
    whole = plots.error_curve(clf, X, y)
    assert len(legend(whole)) == len(whole.figure.axes) == 1  # no bound, and nothing below


def test_normalisers_above_1_and_infinite_ones_stay_on_the_error_curve():
    random = np.random.default_rng(1)
    X, y = random.integers(0, 8, (80, 3)).astype(float), random.integers(0, 2, 80)
    for learning_rate in (3.0, 1000.0):
        settings = {"votes": "real", "n_estimators": 10, "learning_rate": learning_rate}
        fitted = AdaBoostClassifier(**settings, device="cpu").fit(X, y)
        normalisers = [one.normaliser for one in fitted.rounds_[0]]
        assert max(normalisers) > (2.0 if learning_rate == 3.0 else 1e300)
        ax = plots.error_curve(fitted)
        (strip,) = (other for other in ax.figure.axes if other is not ax)
        low, high = strip.get_ylim()
        assert low == pytest.approx(-1.1)
        assert high >= 0.1


def test_no_bound_is_drawn_that_does_not_hold():
    """With a large learning rate, exp(-2 sum g**2) is less than the product of the normalisers."""
    X, y = table(2)
    clf = AdaBoostClassifier(n_estimators=8, device="cpu", learning_rate=1.9).fit(X, y)
    ax = plots.error_curve(clf)
    bounds = [r.training_bound for r in clf.rounds_[0]]
    assert_array_equal(heights(ax, "product"), bounds)
    assert (theory.edge_bounds([r.error for r in clf.rounds_[0]]) < bounds).any()
    assert not any("weaker" in text for text in legend(ax))


def test_the_errors_of_a_quantity_by_round_are_scikit_learns():
    random = np.random.default_rng(0)
    X, weights = random.normal(size=(200, 3)), random.integers(1, 4, 200).astype(float)
    y = np.exp(X[:, 0] + random.normal(size=200) / 4)
    for loss, of in (("squared_error", mean_squared_error), ("gamma", mean_gamma_deviance)):
        reg = StumpBoostingRegressor(loss=loss, n_estimators=9).fit(X, y)
        ax = plots.error_curve(reg, X[:99], y[:99], sample_weight=weights[:99])
        wanted = [of(y, own) for own in reg.staged_predict(X)]
        assert heights(ax, "training error") == pytest.approx(wanted, rel=1e-6)
        own = reg.staged_predict(X[:99])
        wanted = [of(y[:99], one, sample_weight=weights[:99]) for one in own]
        assert heights(ax, "held-out error") == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(ValueError, match="label must be left out"):
        plots.error_curve(reg, label=1)


@pytest.mark.parametrize("name", ["discrete", "real shared", "softmax", *REST])
def test_an_overview_has_the_records_rounds_or_the_sizes_of_votes(fitted, name):
    clf, *_ = fitted[name]
    model = clf.model_
    ax, alone = plots.overview(clf).axes[-1], plots.overview(model).axes[-1]
    records, members = clf.rounds_, model.members
    is_newton = "logistic" in name or "softmax" in name
    if name in REST:
        for k, (run, member) in enumerate(zip(records, members, strict=True)):
            values = [one.training_error if is_newton else one.training_bound for one in run]
            assert_array_equal(heights(ax, f"class {k}"), values)
            assert_array_equal(heights(alone, f"class {k}"), member.term_importances)
    else:
        values = [one.training_error if is_newton else one.training_bound for one in records[0]]
        sizes = values if name == "discrete" else members[0].term_importances
        assert_allclose(ax.get_lines()[0].get_ydata(), values, rtol=1e-12)
        assert_allclose(alone.get_lines()[0].get_ydata(), sizes, rtol=1e-12)
    what = "training error" if is_newton else "bound on the training error"
    assert ax.get_ylabel().startswith(what)
    assert ("half the range" in alone.get_ylabel()) is (name != "discrete")
    for one in (ax, alone):
        one.figure.get_figure(root=True).draw_without_rendering()
        name, axes = one.yaxis.label.get_window_extent(), one.get_window_extent()
        assert name.height < 1.1 * axes.height


def bagged(X, y, kind=LogitBoostClassifier):
    return kind(n_estimators=20, n_bags=4, random_state=0, device="cpu").fit(X, y)


@pytest.mark.parametrize("kind", [AdaBoostClassifier, LogitBoostClassifier])
def test_the_page_of_a_bagged_model_has_the_median_and_the_range_of_the_bags(kind):
    X, y = table(2)
    clf = bagged(X, y, kind)
    for given, records in ((clf, clf.rounds_), (clf.model_, None)):
        figure = plots.overview(given, X)
        assert figure._suptitle.get_text().startswith("4 bags · ")
        ax = figure.axes[-1]
        (line,) = [one for one in ax.get_lines() if len(one.get_xdata()) > 2]
        (band,) = ax.collections
        assert line.get_xdata()[-1] == max(one.n_rounds for one in clf.model_.bag_models)
        if records is not None and kind is LogitBoostClassifier:
            errors = np.asarray([[r.training_error for r in run] for run in records])
            assert_allclose(line.get_ydata(), np.median(errors, axis=0))
            corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
            for ends in (errors.min(axis=0), errors.max(axis=0)):
                assert set(zip(np.arange(1.0, 21.0), ends.tolist(), strict=True)) <= corners
        assert ax.get_ylabel().endswith("median and range of 4 bags")
        assert overlaps(figure) == []


def test_error_curves_of_a_bagged_model_are_those_of_the_average_on_samples():
    X, y = table(2)
    clf = bagged(X, y)
    with pytest.raises(ValueError, match="X and y are needed: the model is the average of 4 bags"):
        plots.error_curve(clf)
    ax = plots.error_curve(clf, X, y)
    errors = [float(np.mean(labels != y)) for labels in clf.model_.staged_predict(X)]
    assert_allclose(heights(ax, "held-out error"), errors, atol=1e-12)
    assert ax.figure.axes[-1].get_xlabel() == "round, 4 bags in turns"


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_a_model_without_rounds_says_so():
    clf = AdaBoostClassifier(n_estimators=3, device="cpu").fit([[0.0]] * 4, [0, 1, 0, 1])
    assert "no stump is better than chance" in plots.error_curve(clf).texts[0].get_text()
    for how in ({"n_classes": 2}, {"n_classes": 3}, {"n_classes": 3, "shared": True}):
        model = region_model(np.random.default_rng(0), 5, 2, **how).truncated(0)
        figure = plots.overview(model)
        assert "no stump is better than chance" in figure.axes[-1].texts[0].get_text()
        saved(figure)


def test_what_has_no_rounds_to_draw_is_refused(fitted):
    (clf, X, y), (rest, *_) = fitted["softmax"], fitted["real against the rest"]
    for error, message, given, how in (
        (ValueError, "label must be left out", (clf, X, y), {"label": 1}),
        (TypeError, "fitted classifier or regressor", (clf.model_,), {}),
        (ValueError, "label must be one of 0, 1, 2", (rest,), {}),
        (ValueError, "must be given together", (rest, X), {"label": 0}),
        (ValueError, "is given without X", (rest,), {"label": 0, "sample_weight": [1.0]}),
    ):
        with pytest.raises(error, match=message):
            plots.error_curve(*given, **how)
