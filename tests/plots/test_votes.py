"""Pictures of rounds, margins and losses for every kind of votes, against independent figures."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import drawn, legend, overlaps, saved
from made_up_models import region_model, rows
from matplotlib.axes import Axes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss

from gpustump import AdaBoostClassifier, LogitBoostClassifier, fit_stump, plots, theory

ROUNDS = 14


NEW = ("error_curve", "explanation", "margin_distribution", "waterfall")
"""Pictures that look different for other votes, or that other classes share."""


def adaboost(**how):
    return AdaBoostClassifier(n_estimators=ROUNDS, device="cpu", **how)


def logitboost(**how):
    return LogitBoostClassifier(n_estimators=ROUNDS, device="cpu", **how)


KINDS = {
    "real": (2, adaboost(votes="real")),
    "logistic": (2, logitboost()),
    "real shared": (3, adaboost(votes="real", multi_class="shared")),
    "discrete shared": (3, adaboost(multi_class="shared")),
    "softmax": (3, logitboost()),
    "softmax of 11": (11, logitboost()),
    "real against the rest": (3, adaboost(votes="real")),
    "logistic against the rest": (3, logitboost(multi_class="one_vs_rest")),
}
SHARED = [name for name in KINDS if "shared" in name or "softmax" in name]
REST = [name for name in KINDS if "rest" in name]


def table(n_classes: int):
    random = np.random.default_rng(0)
    if n_classes == 11:
        y = np.arange(330) % 11
        X = random.normal(size=(330, 4))
        X[:, 0] += y / 3
        X[:, 1] += y % 4
    else:
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


def line_called(ax: Axes, start: str):
    (line,) = [line for line in ax.get_lines() if str(line.get_label()).startswith(start)]
    return line.get_ydata()


def pictures(clf, X, y):
    """Every picture that a classifier has, as functions without arguments."""
    model = clf.model_
    return {
        "decision_regions": lambda: plots.decision_regions(clf, X, y),
        "error_curve": lambda: plots.error_curve(clf, X, y),
        "explanation": lambda: plots.explanation(clf, X[0]),
        "importances": lambda: plots.importances(clf, X),
        "margin_distribution": lambda: plots.margin_distribution(clf, X, y),
        "overview": lambda: plots.overview(clf, X).axes[0],
        "overview of a model": lambda: plots.overview(model).axes[0],
        "overview of a class": lambda: plots.overview(model, label=model.classes[-1]).axes[0],
        "shape_function": lambda: plots.shape_function(clf, 1, X=X),
        "shape_functions": lambda: plots.shape_functions(clf, X=X)[0],
        "waterfall": lambda: plots.waterfall(clf, X[0]),
    }


@pytest.mark.parametrize(
    "name",
    [name if name == "softmax" else pytest.param(name, marks=pytest.mark.slow) for name in KINDS],
)
def test_every_picture_is_drawn_and_its_texts_keep_apart(fitted, name):
    """Pictures that look the same for all votes are drawn for some: of one run, or of several."""
    for what, draw in pictures(*fitted[name]).items():
        if what not in NEW:
            if name in ("softmax of 11", "real against the rest"):
                saved(draw().figure.get_figure(root=True))
            continue
        figure = draw().figure.get_figure(root=True)
        assert overlaps(figure, dpi=100) == [], what
        width, height = figure.get_size_inches() * figure.dpi
        for ax in figure.axes:
            box = ax.get_tightbbox()
            assert box.x0 >= -1, what
            assert box.x1 <= width + 1, what
            assert box.y0 >= -1, what
            assert box.y1 <= height + 1, what


def test_training_errors_and_bounds_by_round_are_those_of_the_model_so_far(fitted, kind):
    clf, *_ = fitted[kind]
    n_classes = len(clf.classes_)
    train_X, train_y = (part[::2] for part in table(n_classes))
    label = clf.classes_[1] if kind in REST else None
    ax = plots.error_curve(clf, label=label)
    expected = theory.losses_by_round(clf, train_X, train_y, label=label)
    assert_array_equal(line_called(ax, "training error"), expected.errors)
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
        bounds = line_called(ax, text)
        assert_allclose(bounds, expected.bounds, rtol=1e-10)
        factors = bounds / np.append(1.5 if kind in SHARED else 1.0, bounds[:-1])
        assert_allclose(below, 1 - factors, rtol=1e-9)
        assert strip.get_ylabel() == "$1 - Z_t$"


def test_held_out_losses_by_round_are_those_of_staged_predictions(fitted, kind):
    clf, X, y = fitted[kind]
    ax = plots.error_curve(clf, X, y)
    wrong = [np.mean(predicted != y) for predicted in clf.staged_predict(X)]
    assert_array_equal(line_called(ax, "held-out error"), wrong)
    strip = ax.figure.axes[-1]
    if "logistic" in kind or "softmax" in kind:
        losses = [log_loss(y, p, labels=clf.classes_) for p in clf.staged_predict_proba(X)]
        assert_allclose(line_called(strip, "held-out log-loss"), losses)
        lowest = int(np.argmin(losses))
        text = f"last {losses[-1]:.3g}, lowest {losses[lowest]:.3g} in round {lowest + 1}"
        assert legend(ax)[-1] == f"held-out log-loss: {text}"
        assert strip.get_ylabel() == "log-loss"
        assert strip.get_xlim() == ax.get_xlim()
    else:
        assert not any("log-loss" in text for text in legend(ax))
    whole = f"error, all {len(clf.classes_)} classes"
    assert ax.get_ylabel() == ("error" if clf.model_.is_binary else whole)


def test_the_held_out_log_loss_weighs_the_samples_and_leaves_out_those_without_weight(fitted):
    clf, X, y = fitted["softmax"]
    weights = np.random.default_rng(0).exponential(size=len(y))
    weights[::3] = 0
    ax = plots.error_curve(clf, X, y, sample_weight=weights)
    staged = clf.staged_predict_proba(X)
    losses = [log_loss(y, p, labels=clf.classes_, sample_weight=weights) for p in staged]
    assert_allclose(line_called(ax.figure.axes[-1], "held-out log-loss"), losses)


def test_the_log_loss_that_early_stopping_watched_is_drawn_without_samples():
    for n_classes in (2, 3):
        X, y = table(n_classes)
        how = {"n_iter_no_change": 4, "random_state": 0}
        clf = logitboost(**how).fit(X, y)
        ax = plots.error_curve(clf)
        watched = line_called(ax.figure.axes[-1], "held-out log-loss")
        assert_array_equal(watched, -np.asarray(clf.held_out_scores_[0]))
        assert_array_equal(line_called(ax, "held-out error"), clf.held_out_errors_[0])
        other = logitboost(**how, scoring="accuracy").fit(X, y)
        assert not any("log-loss" in text for text in legend(plots.error_curve(other)))


@pytest.mark.parametrize("name", KINDS)
def test_an_overview_has_the_records_rounds_or_the_sizes_of_votes(fitted, name):
    clf, *_ = fitted[name]
    model = clf.model_
    ax, alone = plots.overview(clf).axes[-1], plots.overview(model).axes[-1]
    records, members = clf.rounds_, model.members
    is_newton = "logistic" in name or "softmax" in name
    if name in REST:
        for k, (run, member) in enumerate(zip(records, members, strict=True)):
            values = [one.training_error if is_newton else one.training_bound for one in run]
            assert_array_equal(line_called(ax, f"class {k}"), values)
            assert_array_equal(line_called(alone, f"class {k}"), member.term_importances)
    else:
        errors = [one.training_error for one in records[0]]
        assert_array_equal(line_called(ax, "training error"), errors)
        has_bound = any("bound" in text for text in legend(ax))
        assert has_bound is not is_newton
        assert_array_equal(line_called(alone, "size"), members[0].term_importances)
    assert "half the range of the round's votes" in alone.get_ylabel()
    for one in (ax, alone):
        one.figure.get_figure(root=True).canvas.draw()
        name, axes = one.yaxis.label.get_window_extent(), one.get_window_extent()
        assert name.height < 1.1 * axes.height


@pytest.mark.parametrize("name", KINDS)
def test_margins_among_all_classes_are_those_of_theory_after_each_number_of_rounds(fitted, name):
    clf, X, y = fitted[name]
    ax = plots.margin_distribution(clf, X, y, rounds=[3, ROUNDS])
    for count in (3, ROUNDS):
        margins = theory.class_margins(clf.model_.truncated(count), X, y)
        (line,) = [line for line in ax.get_lines() if line.get_label() == f"{count} rounds"]
        corners = line.get_xydata()
        assert set(corners[1:-1, 0]) == set(margins)
        at_zero = corners[np.searchsorted(corners[:, 0], 0.0, side="right") - 1, 1]
        assert at_zero == pytest.approx(np.mean(margins <= 0), abs=1e-12)
    among = "" if clf.model_.is_binary else f", among all {len(clf.classes_)} classes"
    assert ax.get_xlabel() == f"normalised margin{among}"


def test_margins_against_the_rest_are_those_of_their_output(fitted):
    for name in ("real shared", "discrete shared", *REST):
        clf, X, y = fitted[name]
        ax = plots.margin_distribution(clf, X, y, rounds=ROUNDS, label=2)
        margins = theory.normalised_margins(clf, X, y)[:, 2]
        assert set(ax.get_lines()[-1].get_xydata()[1:-1, 0]) == set(margins)
        assert "class 2 against rest" in ax.get_xlabel()


def test_what_a_picture_cannot_show_is_refused_in_one_line(fitted):
    for name in SHARED:
        clf, X, y = fitted[name]
        with pytest.raises(ValueError, match="label must be left out, as all classes share"):
            plots.error_curve(clf, X, y, label=1)
    for name in ("softmax", "softmax of 11"):
        clf, X, y = fitted[name]
        with pytest.raises(ValueError, match="label must be left out, as scores of a softmax"):
            plots.margin_distribution(clf, X, y, label=1)
    split = fit_stump(X, np.where(y > 5, 1, -1), votes="real")
    for stumps in (split.split, [split.split], clf.model_.members[0].splits[:2]):
        with pytest.raises(TypeError, match="must be a Stump"):
            plots.stump_lines(stumps)
    with pytest.raises(TypeError, match="must be a fitted classifier or regressor"):
        plots.error_curve(clf.model_)
    with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
        plots.error_curve(fitted["real against the rest"][0])


@pytest.mark.parametrize(("votes", "l2"), [("real", 0.0), ("newton", 0.0), ("newton", 2.0)])
def test_the_curve_of_a_split_is_drawn_with_the_split_that_training_takes(votes, l2):
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(60, 2)), 1)
    X[::7, 1] = np.nan
    y = np.where(np.nan_to_num(X[:, 1]) + random.normal(size=60) > 0, 1, -1)
    weights = random.exponential(size=60)
    how = {"sample_weight": weights, "votes": votes, "l2_regularization": l2}
    ax = plots.weighted_loss(X, y, 1, **how)
    found = fit_stump(X[:, 1:], y, **how)
    factor = -2 if votes == "real" else 1
    assert drawn(ax, "least").tolist() == [[found.split.threshold, factor * found.score]]
    (line,) = [line for line in ax.get_lines() if "votes" in line.get_label()][:1]
    curve = line.get_ydata()
    assert (curve.min() if votes == "real" else curve.max()) == factor * found.score
    for b in random.uniform(*ax.get_xlim(), size=30):
        expected = 0.0
        for region in (X[:, 1] <= b, X[:, 1] > b, np.isnan(X[:, 1])):
            p, n = (weights[region & (y == sign)].sum() for sign in (1, -1))
            if votes == "real":
                expected += 2 * np.sqrt(p * n) / weights.sum()
            elif p + n:
                expected += ((p - n) / 2) ** 2 / ((p + n) / 4 + l2)
        at = np.searchsorted(line.get_xdata(), b)
        assert curve[at] == pytest.approx(expected, rel=1e-12)
    text = legend(ax)[-1].replace("−", "-")
    for vote in found.votes:
        assert f"{vote:+.3g}" in text
    assert text.startswith(f"{'minimum' if votes == 'real' else 'maximum'}: ")
    assert overlaps(ax.figure) == []


def test_the_curve_of_a_column_without_a_cut_says_so():
    for votes in ("real", "newton"):
        ax = plots.weighted_loss([[0.0]] * 3, [1, 1, -1], 0, votes=votes)
        assert "best without a split; vote +0." in legend(ax)[-1]
        assert drawn(ax, "least")[0, 0] == ax.get_xlim()[1]
        saved(ax.figure)
    with pytest.raises(ValueError, match="votes must be 'discrete', 'real' or 'newton'"):
        plots.weighted_loss([[0.0], [1.0]], [1, -1], 0, votes="logistic")


def test_models_without_rounds_say_so():
    for how in ({"n_classes": 2}, {"n_classes": 3}, {"n_classes": 3, "shared": True}):
        model = region_model(np.random.default_rng(0), 5, 2, **how).truncated(0)
        figure = plots.overview(model)
        assert "no stump is better than chance" in figure.axes[-1].texts[0].get_text()
        X = rows(np.random.default_rng(1), 20, 2, "float64")
        ax = plots.margin_distribution(model, X, np.arange(20) % how["n_classes"])
        assert legend(ax) == ["0 rounds"]
