"""Pictures show the model: what is drawn is compared with stumps evaluated one by one."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from backends import Backend
from made_up_models import member as made_up
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError

from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    Interval,
    Member,
    Stump,
    StumpBoostingRegressor,
    StumpEnsemble,
    fit_stump,
    plots,
    theory,
)
from gpustump.plots import inputs, limits, style
from gpustump.theory.loss_curve import weighted_losses
from gpustump.theory.round_losses import errors_of, run_of

pytest.importorskip("matplotlib")

import matplotlib

matplotlib.use("agg")

from drawn import drawn, has, legend, saved, texts
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

EMPTY = StumpEnsemble((Member((), ()),), 3)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10].copy()
    X.loc[X.index[::5], "mean area"] = np.nan
    return X, np.where(y == 0, "malignant", "benign")


@pytest.fixture(scope="module")
def binary(cancer):
    X, y = cancer
    return AdaBoostClassifier(n_estimators=60, device="cpu").fit(X[:300], y[:300])


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def three(wine):
    X, y = wine
    clf = AdaBoostClassifier(n_estimators=12, device="cpu", weak_learner="interval")
    return clf.fit(X[::2], y[::2])


def says(stump, x: float) -> int:
    """A stump's or interval's vote, from its definition."""
    if math.isnan(x):
        return stump.missing
    if isinstance(stump, Interval):
        return stump.polarity if stump.low < x <= stump.high else -stump.polarity
    return stump.polarity if x <= stump.threshold else -stump.polarity


def contribution(member: Member, feature: int, x: float) -> float:
    pairs = zip(member.stumps, member.votes, strict=True)
    return math.fsum(v * says(s, x) for s, v in pairs if s.feature == feature and not s.is_constant)


def score(member: Member, row) -> float:
    pairs = zip(member.stumps, member.votes, strict=True)
    return math.fsum(vote * says(stump, row[stump.feature]) for stump, vote in pairs)


def line_called(ax: Axes, start: str):
    (line,) = [line for line in ax.get_lines() if str(line.get_label()).startswith(start)]
    return line


def height_at(corners: np.ndarray, x: float) -> float:
    """The drawn step function where it is level: x is no corner."""
    assert x not in corners[:, 0]
    after = int(np.searchsorted(corners[:, 0], x))
    assert corners[after - 1, 1] == corners[after, 1]
    return corners[after, 1]


def assert_is_shape(ax: Axes, member: Member, feature: int) -> None:
    corners = drawn(ax, "steps")
    assert (np.diff(corners[:, 0]) >= 0).all()
    edges = np.unique(corners[:, 0])
    assert (edges[0], edges[-1]) == ax.get_xlim()
    for x in (edges[1:] + edges[:-1]) / 2:
        assert height_at(corners, x) == contribution(member, feature, x)
    for edge in edges[1:-1]:  # exactly where the function changes, from one float to the next
        here, behind = (contribution(member, feature, x) for x in (edge, np.nextafter(edge, 9e9)))
        at = corners[corners[:, 0] == edge]
        assert at[:, 1].tolist() == [here, behind]


def test_importing_the_pictures_imports_no_matplotlib_and_no_sklearn():
    code = (
        "import sys, gpustump.plots, gpustump.theory.loss_curve\n"
        "print([m for m in ('matplotlib', 'sklearn', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot")
    with pytest.raises(ImportError, match=r"pictures need Matplotlib; pip install .*\[plot"):
        plots.importances(EMPTY)


@pytest.mark.parametrize("seed", range(6))
def test_a_shape_function_has_the_models_steps_at_its_thresholds(seed):
    one = made_up(np.random.default_rng(seed), 40, 3, exact=1.0)
    model = StumpEnsemble((one,), 3)
    for feature in range(3):
        ax = plots.shape_function(model, feature)
        assert_is_shape(ax, one, feature)
        finite = [
            s.threshold
            for s in one.stumps
            if s.feature == feature and math.isfinite(s.threshold) and not s.is_constant
        ]
        assert set(drawn(ax, "steps")[1:-1, 0]) == set(finite)
        vote = contribution(one, feature, math.nan)
        assert drawn(ax, "missing")[:, 1].tolist() == [vote] if vote else not has(ax, "missing")


def test_a_shape_function_says_whose_score_and_which_feature(binary, three):
    ax = plots.shape_function(binary, "mean area")
    assert ax.get_ylabel() == "contribution to the score of malignant"
    assert ax.get_xlabel() == "mean area"
    ax = plots.shape_function(three, 12, label=2)
    assert ax.get_ylabel() == "contribution to the score of class 2"
    assert ax.get_xlabel() == "feature 12"
    assert_is_shape(ax, three.model_.members[2], 12)
    assert_is_shape(plots.shape_function(three.model_, 6, label=0), three.model_.members[0], 6)


def test_the_label_of_low_axes_has_two_lines_and_keeps_within_the_picture(binary, cancer):
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3), layout="constrained")
    for feature, ax in enumerate(axes):
        plots.shape_function(binary, feature, X=cancer[0], ax=ax)
    figure.canvas.draw()
    for ax in axes:
        assert ax.get_ylabel() == "contribution to\nthe score of malignant"
        assert ax.yaxis.label.get_window_extent().y1 <= figure.bbox.y1


def test_a_strip_below_shows_where_the_samples_are(binary, cancer):
    X, _ = cancer
    weights = np.arange(len(X), dtype=float)
    ax = plots.shape_function(binary, "mean area", X=X, sample_weight=weights)
    assert_is_shape(ax, binary.model_.members[0], 3)
    strip = ax.figure.axes[-1]
    assert strip is not ax
    assert strip.get_xlim() == ax.get_xlim()
    assert strip.get_xlabel() == "mean area"
    heights, edges, _ = strip.patches[0].get_data()
    values = X["mean area"].to_numpy()
    expected, _ = np.histogram(values, edges, weights=weights)
    assert_allclose(heights / heights.sum(), expected / expected.sum(), rtol=1e-12)
    lacking = weights[np.isnan(values)].sum() / weights.sum()
    assert f"missing ({100 * lacking:.0f} %)" in texts(ax)
    assert not has(plots.shape_function(binary, "mean radius", X=X), "missing")


def test_a_strip_has_a_bar_for_each_of_few_values():
    X = np.asarray([[False, 3.0], [True, 3.0], [True, 5.0]])
    model = StumpEnsemble((Member((Stump(0, 0.5, 1, 1, 0.2),), (1.0,)),), 2)
    ax = plots.shape_function(model, 0, X=X > 0)
    strip = ax.figure.axes[-1]
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in strip.patches]
    assert_allclose(bars, [(0, 1 / 3), (1, 2 / 3)])
    assert [tick.get_text() for tick in strip.get_xticklabels()] == ["false", "true"]
    ax = plots.shape_function(model, 1, X=X, sample_weight=[1, 0, 1])
    assert_allclose([bar.get_height() for bar in ax.figure.axes[-1].patches], [0.5, 0.5])
    assert "not used" in texts(ax)


@pytest.mark.parametrize(
    "values",
    [
        [2.5] * 4,
        [math.nan] * 4,
        [math.inf, -math.inf, 1.0, 2.0],
        [1.7e308, -1.7e308, 0.0, 1.0],
        [1e15, 1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.5],
        [5e-324, 0.0, 1e-310, 2e-310],
        [math.inf] * 4,
    ],
    ids=str,
)
def test_odd_values_are_drawn_without_a_warning(values):
    X = np.asarray(values)[:, None]
    stumps = [Stump(0, t, 1, -1, 0.3) for t in (*X[:, 0], 0.0, -math.inf) if not math.isnan(t)]
    model = StumpEnsemble((Member(tuple(stumps), (1.0,) * len(stumps)),), 1)
    for given in (None, X):
        ax = plots.shape_function(model, 0, X=given)
        assert np.isfinite(ax.get_xlim()).all()
        saved(ax.figure)


def test_steps_beyond_the_samples_are_counted():
    stumps = tuple(Stump(0, t, 1, 1, 0.3) for t in (-50.0, 0.5, 20.0, 30.0))
    model = StumpEnsemble((Member(stumps, (1.0, 2.0, 4.0, 8.0)),), 1)
    ax = plots.shape_function(model, 0, X=[[0.0], [1.0]])
    assert texts(ax).split("\n") == ["← 1 step beyond", "2 steps beyond →"]
    assert_is_shape(ax, model.members[0], 0)


def test_heavy_tails_do_not_squeeze_the_bulk():
    values = np.random.default_rng(0).normal(size=1000)
    values[:3] = [1e6, -1e9, 1e12]
    low, high = limits.bulk(values, 0.02)
    assert -6 < low < -2
    assert 2 < high < 6
    inside = values[3:]
    view = limits.bulk(inside, 0.0)
    assert view == pytest.approx((inside.min(), inside.max()))


def test_panels_in_a_row_are_level_though_some_have_votes_on_missing_values(binary, cancer):
    X, _ = cancer
    names = ["mean area", "mean radius", "mean texture", "mean smoothness", "mean symmetry"]
    for given in (None, X):
        grid = plots.shape_functions(binary, X=given, features=names)
        figure = grid[0].figure
        figure.canvas.draw()
        assert any("missing" in texts(ax) for ax in grid)
        strips = [ax for ax in figure.axes if ax not in grid]
        for row in (grid[:3], grid[3:], strips[:3], strips[3:]):
            assert len({(ax.get_position().y0, ax.get_position().y1) for ax in row}) <= 1
    alone = [plots.shape_function(binary, "mean area", X=given) for given in (X, X.fillna(1.0))]
    for ax in alone:
        ax.figure.canvas.draw()
    assert ["missing" in texts(ax) for ax in alone] == [True, False]
    assert len({(ax.get_position().y0, ax.get_position().y1) for ax in alone}) == 1


def test_the_text_on_missing_values_stays_within_the_picture(binary, cancer):
    X, _ = cancer
    for votes in ((1.0, 0.1), (0.1, 1.0), (0.5, 0.5)):
        stumps = Stump(0, 15.0, 1, 1, 0.2), Stump(0, 20.0, 1, -1, 0.2)
        model = StumpEnsemble((Member(stumps, votes),), 1)
        column = np.where(np.arange(len(X)) % 6 == 0, np.nan, X["mean radius"])[:, None]
        ax = plots.shape_function(model, 0, X=column)
        ax.figure.canvas.draw()
        (text,) = [text for text in ax.texts if "missing" in text.get_text()]
        box, frame, whole = text.get_window_extent(), ax.get_window_extent(), ax.figure.bbox
        assert frame.y0 - 1 <= box.y0 < box.y1 <= frame.y1 + 1
        assert frame.x1 < box.x0 < box.x1 <= whole.x1


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-7, 0.0123, 1.0, 9999, -1e5, 1e9, 1e300])
def test_features_of_all_scales_fill_their_axes_with_ticks_that_keep_apart(scale):
    values = scale * np.linspace(0.1, 1.7, 60)
    X = np.c_[values, values + 1e4 * scale, -values] if abs(scale) < 1e300 else np.c_[values]
    n_features = X.shape[1]
    stumps = tuple(Stump(j, X[k, j], 1, 1, 0.2) for j in range(n_features) for k in (9, 30, 40))
    model = StumpEnsemble((Member(stumps, (1.0,) * len(stumps)),), n_features)
    grid = plots.shape_functions(model, X=X)
    grid[0].figure.canvas.draw()
    for ax in [ax for ax in grid[0].figure.axes if ax not in grid]:
        low, high = ax.get_xlim()
        inside = [x for bar in ax.patches for x in bar.get_data().edges]
        assert low <= min(inside) < max(inside) <= high
        assert max(inside) - min(inside) > 0.9 * (high - low)
        heights = [height for bar in ax.patches for height in bar.get_data().values]
        assert np.count_nonzero(heights) > 20
        labels = [label for label in ax.get_xticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in labels]
        boxes = [box for box in boxes if ax.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= ax.bbox.x1 + 1]
        assert len(boxes) >= 2
        assert all(b.x0 > a.x1 for a, b in itertools.pairwise(boxes))


def test_features_that_matplotlib_cannot_draw_are_drawn_in_powers_of_ten():
    for scale, unit in ((2e-305, "1e-305"), (3e200, "1e+200")):
        X = scale * np.asarray([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        stump, other = (Stump(j, 1.5 * scale, -1, 1, 0.1) for j in (0, 1))
        model = StumpEnsemble((Member((stump, other), (1.0, 0.5)),), 2)
        y = [-1, -1, 1, 1]
        cut = 1.5 * scale / float(unit)
        ax = plots.shape_function(model, 0, X=X)
        assert_array_equal(drawn(ax, "steps")[1:-1, 0], [cut, cut])
        assert ax.figure.axes[-1].get_xlabel() == f"feature 0 (in units of {unit})"
        ax = plots.decision_regions(model, X, y)
        xx0, xx1, response = cells(ax)
        assert (xx0[1], xx1[1]) == (cut, cut)
        assert response.tolist() == [[0, 1], [0, 1]]
        points = np.concatenate([c.get_offsets() for c in ax.collections[2:]])
        assert_array_equal(points, X / float(unit))
        ax = plots.stump_lines([stump, other], X, y)
        assert list(ax.get_lines()[0].get_xdata()) == [cut, cut]
        ax = plots.weighted_loss(X, y, 0)
        assert drawn(ax, "least").tolist() == [[cut, 0.0]]
        assert unit in ax.get_xlabel()
        saved(ax.figure)


def test_the_shape_functions_that_matter_most_share_a_scale(binary, cancer):
    X, _ = cancer
    votes = binary.feature_importances_
    grid = plots.shape_functions(binary, n_features=4)
    names = [ax.get_xlabel() for ax in grid]
    assert names == [X.columns[j] for j in np.argsort(-votes, kind="stable")[:4]]
    assert len({ax.get_ylim() for ax in grid}) == 1
    low, high = grid[0].get_ylim()
    for ax in grid:
        assert low < drawn(ax, "steps")[:, 1].min()
        assert high > drawn(ax, "steps")[:, 1].max()
        assert_is_shape(ax, binary.model_.members[0], list(X.columns).index(ax.get_xlabel()))
    shares = binary.contribution_importances(X)
    figure = Figure(layout="constrained")
    grid = plots.shape_functions(binary, X=X, n_features=3, figure=figure)
    strips = [ax for ax in figure.axes if ax not in grid]
    assert [ax.get_xlabel() for ax in strips] == [X.columns[j] for j in np.argsort(-shares)[:3]]
    assert len(strips) == 3


def test_shape_functions_of_a_class_are_chosen_by_its_own_score(three):
    for label in (0, 1, 2):
        one = three.model_.members[label]
        weight = [math.fsum(v for s, v in zip(one.stumps, one.votes, strict=True) if s.feature == j
                            and not s.is_constant) for j in range(13)]  # fmt: skip
        grid = plots.shape_functions(three, label=label, n_features=2)
        best = np.argsort(-np.asarray(weight), kind="stable")[:2]
        assert [ax.get_xlabel() for ax in grid] == [f"feature {j}" for j in best]
    grid = plots.shape_functions(three, label=1, features=[0, 5])
    assert [ax.get_xlabel() for ax in grid] == ["feature 0", "feature 5"]
    assert "score of class 1" in grid[0].figure.get_supylabel()


def test_the_error_curve_is_what_predictions_say_round_by_round(binary, cancer):
    X, y = cancer[0][300:], cancer[1][300:]
    ax = plots.error_curve(binary, X, y)
    held_out = 1 - np.asarray(list(binary.staged_score(X, y)))
    training = np.asarray([1 - s for s in binary.staged_score(cancer[0][:300], cancer[1][:300])])
    rounds = binary.rounds_[0]
    for start, values in (
        ("training error", training),
        ("held-out error", held_out),
        ("product of the normalisers", theory.training_bounds([r.error for r in rounds])),
        ("from the edges only", theory.edge_bounds([r.error for r in rounds])),
    ):
        line = line_called(ax, start)
        assert_array_equal(line.get_xdata(), np.arange(1, 61))
        assert_allclose(line.get_ydata(), values, rtol=1e-9, atol=1e-12)
    assert legend(ax)[:2] == [
        f"{name} error: last {values[-1]:.3g}, lowest {values.min():.3g} in round "
        f"{values.argmin() + 1}"
        for name, values in (("training", training), ("held-out", held_out))
    ]
    strip = ax.figure.axes[-1]
    assert_array_equal(strip.get_lines()[-1].get_ydata(), [r.edge for r in rounds])
    assert ax.get_xscale() == strip.get_xscale() == "log"
    assert strip.get_xlim() == ax.get_xlim()
    marks = {line.get_xdata()[0] for line in strip.get_lines()[:-1]}
    assert marks == {training.argmin() + 1, held_out.argmin() + 1}


def test_the_error_curve_weighs_the_held_out_samples(binary, cancer):
    X, y = cancer
    weights = np.random.default_rng(0).exponential(size=len(y))
    weights[::3] = 0
    line = line_called(plots.error_curve(binary, X, y, sample_weight=weights), "held-out")
    right = list(binary.staged_score(X, y, weights))
    assert_allclose(line.get_ydata(), 1 - np.asarray(right), atol=1e-12)


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_held_out_errors_are_those_of_staged_scores_to_the_last_bit(dtype):
    random = np.random.default_rng(5)
    members = [made_up(random, 40, 3, exact=1.0) for _ in range(3)]
    members[1] = Member(members[1].stumps[:25], tuple(random.normal(size=25)))  # sums that round
    table = np.round(random.normal(size=(200, 3)) * 2, 1).astype(dtype)
    if table.dtype.kind == "f":
        table[::7, 0], table[::11, 1], table[::13, 2] = np.nan, np.inf, -np.inf
    weights = random.exponential(size=200)
    weights[::9] = 0
    units = inputs.weights_of(weights, table).values
    y = random.integers(0, 3, 200)
    model = StumpEnsemble(tuple(members), 3, classes=(0, 1, 2))
    for number in (0, 1, 2, None):
        found = errors_of(run_of(model, number, table, y), table, inputs.weights_of(weights, table))
        staged = list(model.staged_decision_function(table))
        staged = staged[: 40 if number is None else len(members[number])]
        for error, scores in zip(found, staged, strict=True):
            if number is None:
                wrong = scores.argmax(axis=1) != y
            else:
                wrong = (scores[:, number] > 0) != (y == number)
            assert error == int(units[wrong].sum()) / int(units.sum())


def test_of_several_classes_the_whole_models_error_is_drawn_unless_one_is_named(three, wine):
    X, y = wine
    ax = plots.error_curve(three, X, y)
    wrong = [np.mean(predicted != y) for predicted in three.staged_predict(X)]
    assert_array_equal(line_called(ax, "held-out").get_ydata(), wrong)
    assert ax.get_ylabel() == "error, all 3 classes"
    assert len(legend(ax)) == len(ax.figure.axes) == 1  # no bound, and no edges


def test_the_curves_of_one_round_are_points(cancer):
    X, y = cancer
    clf = AdaBoostClassifier(n_estimators=1, device="cpu").fit(X[:300], y[:300])
    ax = plots.error_curve(clf, X[300:], y[300:])
    named = [line for line in ax.get_lines() if " " in line.get_label()]
    assert len(named) == 4
    assert len({line.get_marker() for line in named} - {"", "None"}) == 4


def test_the_error_curve_of_a_class_is_that_against_the_rest(three, wine):
    X, y = wine
    ax = plots.error_curve(three, X, y, label=1)
    scores = [scores[:, 1] for scores in three.staged_decision_function(X)]
    n_rounds = len(three.rounds_[1])
    wrong = [((one > 0) != (y == 1)).mean() for one in scores[:n_rounds]]
    assert_allclose(line_called(ax, "held-out").get_ydata(), wrong)
    assert "class 1 against the rest" in ax.get_ylabel()
    assert ax.get_xscale() == "linear"


def test_the_error_curve_shows_what_early_stopping_held_out(cancer):
    X, y = cancer
    clf = AdaBoostClassifier(
        n_estimators=40, n_iter_no_change=5, scoring="accuracy", random_state=0, device="cpu"
    ).fit(X, y)
    ax = plots.error_curve(clf)
    held_out = line_called(ax, "held-out").get_ydata()
    assert_array_equal(held_out, clf.held_out_errors_[0])
    assert ax.get_xlim()[1] >= len(held_out) > len(clf.rounds_[0])


def test_no_bound_is_drawn_that_does_not_hold(cancer):
    """With a large learning rate, exp(-2 sum g**2) is less than the product of the normalisers."""
    X, y = cancer
    clf = AdaBoostClassifier(n_estimators=8, device="cpu", learning_rate=1.9).fit(X, y)
    ax = plots.error_curve(clf)
    bounds = [r.training_bound for r in clf.rounds_[0]]
    assert_array_equal(line_called(ax, "product").get_ydata(), bounds)
    weaker = theory.edge_bounds([r.error for r in clf.rounds_[0]])
    assert (weaker < bounds).any()
    assert not any("weaker" in text for text in legend(ax))


def test_margins_are_drawn_as_their_cumulative_distribution(binary, cancer):
    X, y = cancer
    ax = plots.margin_distribution(binary, X, y, rounds=[3, 60])
    assert legend(ax) == ["3 rounds", "60 rounds"]
    sign = np.where(y == "malignant", 1, -1)
    table, one = X.to_numpy(), binary.model_.members[0]
    for count in (3, 60):
        first = Member(one.stumps[:count], one.votes[:count])
        margins = np.asarray([score(first, row) for row in table]) * sign / sum(first.votes)
        corners = line_called(ax, f"{count} rounds").get_xydata()
        assert corners[0].tolist() == [-1, 0]
        assert corners[-1].tolist() == [1, 1]
        for theta in (-0.9, -0.123, 0.0511, 0.5003, 0.97):
            assert height_at(corners, theta) == np.mean(margins <= theta)
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in ax.lines[1:]}) == 2


def test_margins_are_drawn_after_5_100_and_all_rounds_as_far_as_there_are(binary, three, cancer):
    X, y = cancer
    assert legend(plots.margin_distribution(binary, X, y)) == ["5 rounds", "60 rounds"]
    X, y = load_wine(return_X_y=True)
    ax = plots.margin_distribution(three, X, y, label=2)
    assert "class 2 against rest" in ax.get_xlabel()
    last = theory.normalised_margins(three.model_, X, y)[:, 2]
    corners = ax.get_lines()[-1].get_xydata()
    assert height_at(corners, 0.3511) == np.mean(last <= 0.3511)


def test_weighted_margins_are_the_shares_that_theory_counts(binary, three, cancer, wine):
    for clf, (X, y), label, number in ((binary, cancer, None, 0), (three, wine, 2, 2)):
        weights = np.random.default_rng(0).exponential(size=len(y))
        weights[::4] = 0
        ax = plots.margin_distribution(clf, X, y, rounds=9, sample_weight=weights, label=label)
        margins = theory.normalised_margins(clf.model_.truncated(9), np.asarray(X), y)
        margins = margins if margins.ndim == 1 else margins[:, number]
        corners = ax.get_lines()[-1].get_xydata()
        assert set(corners[1:-1, 0]) == set(margins[weights > 0])
        for theta in margins[:20] - 1e-9:
            assert height_at(corners, theta) == theory.share_below(margins, theta, weights)
        assert "share of the weight" in ax.get_ylabel()


def cells(ax: Axes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mesh = ax.collections[0]
    assert isinstance(mesh, QuadMesh)
    corners = mesh.get_coordinates()
    return np.asarray(corners[0, :, 0]), np.asarray(corners[:, 0, 1]), np.asarray(mesh.get_array())


@pytest.mark.parametrize("seed", range(3))
def test_regions_are_the_models_own_predictions_in_every_cell(seed):
    random = np.random.default_rng(seed)
    members = tuple(made_up(random, 9, 3, exact=1.0) for _ in range(3))
    model = StumpEnsemble(members, 3, classes=("a", "b", "c"))
    row = np.asarray([0.0, 0.3, math.nan])
    ax = plots.decision_regions(model, features=(2, 0), at=row)
    xx0, xx1, response = cells(ax)
    assert response.shape == (len(xx1) - 1, len(xx0) - 1)
    assert (ax.get_xlim(), ax.get_ylim()) == ((xx0[0], xx0[-1]), (xx1[0], xx1[-1]))
    for i, j in np.ndindex(response.shape):
        for x0, x1 in (
            ((xx0[j] + xx0[j + 1]) / 2, (xx1[i] + xx1[i + 1]) / 2),
            (np.nextafter(xx0[j], 9e9), xx1[i + 1]),
        ):
            row[[2, 0]] = x0, x1
            scores = [score(member, row) for member in members]
            assert response[i, j] == int(np.argmax(scores))
    assert legend(ax) == ["a", "b", "c"]


def test_a_line_is_drawn_just_where_two_classes_meet():
    stumps = Stump(0, 1.0, 1, 1, 0.2), Stump(1, 2.0, 1, 1, 0.2), Stump(0, 3.0, 1, 1, 0.2)
    model = StumpEnsemble((Member(stumps, (1.0, 0.5, 0.25)),), 2)
    ax = plots.decision_regions(model, [[0.0, 0.0], [5.0, 5.0]])
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    met = {tuple(map(tuple, segment)) for segment in lines.get_segments()}
    low, high = ax.get_ylim()
    assert met == {((1.0, low), (1.0, 2.0)), ((1.0, 2.0), (1.0, high))}


def test_only_boundaries_are_seen_between_cells():
    stumps = tuple(Stump(k % 2, k / 10, 1, 1, 0.2) for k in range(40))
    model = StumpEnsemble((Member(stumps, (1.0,) * 40),), 2)
    ax = plots.decision_regions(model)
    saved(ax.figure)
    assert cells(ax)[2].shape == (21, 21)
    assert not ax.get_lines()
    assert_array_equal(ax.collections[0].get_edgecolor(), ax.collections[0].get_facecolor())


def test_thresholds_too_close_for_a_screen_are_drawn_as_one():
    thresholds = np.sort(np.random.default_rng(0).uniform(size=5000))
    stumps = tuple(Stump(0, t, 1, 1, 0.2) for t in thresholds)
    model = StumpEnsemble((Member(stumps, (1.0,) * 5000),), 2)
    xx0, _, response = cells(plots.decision_regions(model))
    assert response.shape[1] <= 2000
    assert set(xx0[1:-1]) < set(thresholds)
    assert (np.diff(xx0[1:-1]) >= (xx0[-1] - xx0[0]) / 2000).all()
    assert_array_equal(response[0], model.predict(np.c_[xx0[1:], xx0[1:]]) > 0)


def test_regions_hold_the_other_features_at_their_medians(binary, cancer):
    X, y = cancer
    ax = plots.decision_regions(binary, X, y, features=("mean texture", "mean radius"))
    xx0, xx1, response = cells(ax)
    row = np.nanmedian(X.to_numpy(), axis=0)
    for i, j in [(0, 0), (3, 2), (-1, -1)]:
        row[[1, 0]] = xx0[1:][j], xx1[1:][i]
        assert response[i, j] == (score(binary.model_.members[0], row) > 0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean texture", "mean radius")
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert len(points) == 2
    for label, group in zip(("benign", "malignant"), points, strict=True):
        assert_array_equal(group.get_offsets(), X.to_numpy()[y == label][:, [1, 0]])
    assert points[0].get_paths()[0].vertices.shape != points[1].get_paths()[0].vertices.shape


def test_ten_classes_have_ten_areas_and_ten_marks():
    random = np.random.default_rng(0)
    members = tuple(made_up(random, 5, 2, exact=1.0) for _ in range(10))
    model = StumpEnsemble(members, 2, classes=tuple(range(10)))
    ax = plots.decision_regions(model, random.normal(size=(10, 2)), np.arange(10))
    assert len({tuple(colour) for colour in ax.collections[0].cmap.colors}) == 10
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    looks = {(p.get_paths()[0].vertices.tobytes(), p.get_facecolor().tobytes()) for p in points}
    assert len(looks) == 10
    saved(ax.figure)


def test_samples_that_cannot_be_placed_are_counted():
    X = [[0.0, 0.0], [1.0, math.nan], [math.inf, 2.0], [1.0, 1.0]]
    ax = plots.decision_regions(EMPTY, [[*row, 0.0] for row in X], [-1, 1, 1, 1])
    assert "2 samples without finite values not shown" in texts(ax)
    assert cells(ax)[2].tolist() == [[0]]


def test_stumps_are_lines_with_arrows_to_the_side_of_plus_one():
    X = np.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0], [4.0, 5.0]])
    y = [1, 1, -1, -1]
    heavy = np.asarray([1.0, 1.0, 4.0, 2.0])
    upright, band = Stump(0, 1.5, 1, 1, 0.1), Interval(1, 0.5, 3.0, -1, 1, 0.2)
    ax = plots.stump_lines([upright, band], X, y, sample_weights=[np.ones(4), heavy])
    first = [line for line in ax.get_lines() if line.get_gid() == "stump 0"]
    second = [line for line in ax.get_lines() if line.get_gid() == "stump 1"]
    assert [list(line.get_xdata()) for line in first] == [[1.5, 1.5]]
    assert [list(line.get_ydata()) for line in second] == [[0.5, 0.5], [3.0, 3.0]]
    assert first[0].get_linestyle() != second[0].get_linestyle()
    assert first[0].get_color() != second[0].get_color()
    directions = [
        (a.xy[0] - a.xyann[0], a.xy[1] - a.xyann[1]) for a in ax.texts if a.arrow_patch is not None
    ]
    assert [tuple(np.sign(np.round(d, 9))) for d in directions] == (
        [(-1, 0)] * 2 + [(0, -1)] * 2 + [(0, 1)] * 2  # left; below the band and above it
    )
    assert legend(ax) == [
        "+1 where $x_{0}$ ≤ 1.5",
        "−1 where 0.5 < $x_{1}$ ≤ 3",
        "label +1",
        "label −1",
    ]
    positive, rings, negative, more = ax.collections
    assert_array_equal(positive.get_offsets(), X[:2])
    assert_array_equal(negative.get_offsets(), X[2:])
    assert len(set(positive.get_sizes())) == 1
    areas = np.concatenate([rings.get_sizes(), more.get_sizes()])
    assert_allclose(areas / areas[0], heavy / heavy[0])


def test_a_stump_that_separates_missing_values_only_says_so():
    ax = plots.stump_lines(Stump(1, math.inf, -1, 1, 0.1))
    assert legend(ax) == ["−1 where $x_{1}$ is present"]


def test_none_among_several_weights_stands_for_equal_ones():
    X, y, heavy = [[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], [1, 1, -1], [1.0, 5.0, 1.0]
    stumps = [Stump(0, 1.5, 1, 1, 0.1), Stump(1, 1.5, 1, 1, 0.1)]
    positive, rings, *_ = plots.stump_lines(stumps, X, y, sample_weights=[None, heavy]).collections
    assert len(set(positive.get_sizes())) == 1
    assert rings.get_sizes()[1] == pytest.approx(5 * rings.get_sizes()[0])


def test_a_constant_stump_has_no_line_but_a_name():
    ax = plots.stump_lines(Stump(4, math.inf, -1, -1, 0.4))
    assert not ax.get_lines()
    assert legend(ax) == ["always −1"]
    ax = plots.stump_lines([Stump(0, 1.0, 1, 1, 0.4)], labels=["first"], features=(3, 0))
    assert legend(ax) == ["first"]
    assert list(ax.get_lines()[0].get_ydata()) == [1.0, 1.0]


def test_the_weighted_loss_is_drawn_with_its_least_point():
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(40, 2)), 1)
    y = np.where(X[:, 1] + random.normal(size=40) > 0, 1, -1)
    weights = random.exponential(size=40)
    ax = plots.weighted_loss(X, y, 1, sample_weight=weights)
    low, high = ax.get_xlim()
    for b in random.uniform(low, high, size=30):
        wrong = weights[np.where(X[:, 1] <= b, 1, -1) != y].sum() / weights.sum()
        for polarity, loss in (("+1", wrong), ("−1", 1 - wrong)):
            corners = line_called(ax, f"polarity {polarity}").get_xydata()
            assert height_at(corners, b) == pytest.approx(loss, rel=1e-12)
    stump = fit_stump(X[:, 1:], y, weights)
    assert drawn(ax, "least").tolist() == [[stump.threshold, stump.error]]
    assert legend(ax)[2] == (
        f"minimum: {stump.error:.4g}, at b = {stump.threshold:.6g}, polarity {stump.polarity:+d}"
    ).replace("-", "−")


def test_a_constant_choice_is_marked_at_the_edge():
    X, y = [[0.0], [0.0], [0.0]], [1, 1, -1]
    ax = plots.weighted_loss(X, y, 0)
    least = weighted_losses([0.0, 0.0, 0.0], y).least()
    assert drawn(ax, "least").tolist() == [[ax.get_xlim()[1], least[2]]]
    assert "constant" in legend(ax)[2]


def test_importances_are_bars_of_both_kinds(binary, cancer):
    X, _ = cancer
    ax = plots.importances(binary, X, n_features=4)
    shares, votes = binary.contribution_importances(X), binary.feature_importances_
    order = np.argsort(-shares)[:4]
    first, second = ax.containers
    assert_array_equal([bar.get_width() for bar in first], shares[order])
    assert_array_equal([bar.get_width() for bar in second], votes[order])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [X.columns[j] for j in order]
    assert legend(ax) == ["contributions", "votes"]
    rest = int((shares > 0).sum()) - 4
    assert f"{rest} more features have" in ax.get_xlabel()
    (only,) = plots.importances(binary, n_features=10).containers
    assert_allclose(sum(bar.get_width() for bar in only), 1.0)
    colours = [container[0].get_facecolor()[:3] for container in (first, second)]
    greys = [np.dot(colour, (0.299, 0.587, 0.114)) for colour in colours]
    assert abs(greys[0] - greys[1]) > 0.3  # told apart in a grey print


def test_importances_weigh_the_samples(binary, cancer):
    X, _ = cancer
    weights = np.random.default_rng(0).exponential(size=len(X))
    ax = plots.importances(binary, X, sample_weight=weights, n_features=3)
    shares = np.sort(binary.contribution_importances(X, weights))[::-1]
    assert_array_equal([bar.get_width() for bar in ax.containers[0]], shares[:3])
    figure = plots.overview(binary, X, sample_weight=weights)
    drawn_shares = [bar.get_width() for bar in figure.axes[-2].containers[0]]
    assert_array_equal(drawn_shares, shares[:6])
    best = np.argsort(-binary.contribution_importances(X, weights), kind="stable")[:6]
    named = [ax.get_xlabel() for ax in figure.axes if ax.get_ylabel() == "data"]
    assert named == [X.columns[j] for j in best]


def test_votes_are_shown_where_contributions_are_the_same_in_all_rows():
    X = [[0.0, 5.0, 0.0]] * 3
    ax = plots.importances(ONE, X)
    (only,) = ax.containers
    assert [bar.get_width() for bar in only] == [1.0]
    assert ax.get_legend().get_title().get_text() == "contributions are the same in all rows"
    (panel,) = plots.shape_functions(ONE, X=X)
    assert has(panel, "steps")
    figure = plots.overview(ONE, X)
    assert "age" in [ax.get_xlabel() for ax in figure.axes]


def test_a_table_is_read_once_and_warned_of_once(binary, cancer):
    X = cancer[0].to_numpy()
    for draw in (
        lambda: plots.shape_functions(binary, X=X),
        lambda: plots.overview(binary, X),
        lambda: plots.importances(binary, X),
    ):
        with pytest.warns(UserWarning, match="valid feature names") as found:
            draw()
        assert len(found) == 1


def test_an_overview_shows_shapes_importances_and_rounds(binary):
    model = binary.model_
    figure = plots.overview(model)
    title = figure.get_suptitle()
    used = {s.feature for s in model.members[0].stumps if not s.is_constant}
    for part in ("60 rounds", f"{len(used)} of 10", "benign, malignant", model.digest()[:12]):
        assert part in title
    rounds = figure.axes[-1]
    errors = [stump.error for stump in model.members[0].stumps]
    assert_array_equal(line_called(rounds, "weighted error").get_ydata(), errors)
    bounds = [r.training_bound for r in binary.rounds_[0]]
    assert_allclose(line_called(rounds, "bound").get_ydata(), bounds, rtol=1e-12)
    assert len([ax for ax in figure.axes if has(ax, "steps")]) == 6


def test_an_overview_of_several_classes_says_which_it_shows(three, wine):
    assert "12 rounds for each class" in plots.overview(three.model_).get_suptitle()
    figure = plots.overview(three, X=wine[0], label=2)
    assert figure.axes[-1].get_ylabel() == "error, class 2 against rest"
    errors = [stump.error for stump in three.model_.members[2].stumps]
    drawn_errors = line_called(figure.axes[-1], "weighted error").get_ydata()
    assert_array_equal(drawn_errors, errors)


@pytest.mark.parametrize("n_features", [1, 300])
def test_an_overview_fits_on_its_page_whatever_the_model(n_features):
    random = np.random.default_rng(0)
    model = StumpEnsemble(
        (made_up(random, 300, n_features, exact=1.0),),
        n_features,
        classes=("_no $1$ and a rather long name", "yes $"),
        feature_names=tuple(f"in_${k}$_a_{'very_' * 9}long_name" for k in range(n_features)),
    )
    figure = plots.overview(model)
    saved(figure)
    width, height = figure.get_size_inches() * figure.dpi
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def test_names_that_shorten_to_the_same_are_told_apart_by_their_index():
    names = tuple(f"{'a' * 30}{k}{'b' * 30}" for k in range(3))
    ax = plots.importances(
        StumpEnsemble(
            (Member((Stump(0, 0.0, 1, 1, 0.1), Stump(2, 0.0, 1, 1, 0.1)), (2.0, 1.0)),),
            3,
            feature_names=names,
        )
    )
    shown = [tick.get_text() for tick in ax.get_yticklabels()]
    assert [name[:3] for name in shown] == ["0: ", "2: "]
    assert max(map(len, shown)) <= style.NAME


def test_control_characters_in_names_are_escaped():
    names = ("a\x1b[31m\nb", "a\x00", "plain")
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.1),), (2.0,)),), 3, feature_names=names)
    assert plots.shape_function(model, 0).get_xlabel() == r"a\x1b[31m b"
    assert inputs.feature_name(model, 1) == r"a\x00"
    assert inputs.feature_name(model, 2) == "plain"


def test_titles_and_the_like_go_to_the_axes_that_are_returned(binary, cancer):
    X, y = cancer
    for draw in (
        lambda: plots.shape_function(binary, 3, X=X),
        lambda: plots.error_curve(binary, X, y),
        lambda: plots.shape_functions(binary, X=X)[0],
    ):
        ax = draw()
        assert len(ax.figure.axes) > 1
        assert pyplot.gca() is ax


def test_one_feature_and_one_number_of_rounds_need_no_list(binary, cancer):
    (ax,) = plots.shape_functions(binary, features="mean area")
    assert ax.get_xlabel() == "mean area"
    (ax,) = plots.shape_functions(binary, features=3)
    assert ax.get_xlabel() == "mean area"
    assert legend(plots.margin_distribution(binary, *cancer, rounds=5)) == ["5 rounds"]


def test_on_dark_paper_nothing_is_black(binary, three, cancer, wine):
    with pyplot.style.context("dark_background"):
        drawings = pictures(binary, three, cancer, wine)
        drawings["by class"] = lambda ax: plots.error_curve(three, *wine, label=0, ax=ax)
        del drawings["decision_regions"]  # light areas under everything
        for draw in drawings.values():
            figure = draw(None).figure
            for ax in figure.axes:
                seen = [line.get_color() for line in ax.get_lines()]
                seen += [text.get_color() for text in ax.texts]
                edges = [c.get_edgecolor()[0] for c in ax.collections if len(c.get_edgecolor())]
                for colour in (*seen, *edges):
                    assert max(to_rgb(colour)) > 0.4, (draw, colour)


def pictures(binary, three, cancer, wine):
    """Every picture on axes of the caller's."""
    X, y = cancer
    table, signs = X.to_numpy(), np.where(y == "benign", 1, -1)
    stump = fit_stump(table[:, :2], signs)
    cost = np.abs(np.nan_to_num(table[:, 3])) + 1.0
    costs = StumpBoostingRegressor(loss="gamma", n_estimators=9).fit(table, cost), table, cost
    return {
        "shape_function": lambda ax: plots.shape_function(binary, 3, X=X, ax=ax),
        "error_curve": lambda ax: plots.error_curve(binary, X, y, ax=ax),
        "margin_distribution": lambda ax: plots.margin_distribution(binary, X, y, ax=ax),
        "decision_regions": lambda ax: plots.decision_regions(three, *wine, ax=ax),
        "stump_lines": lambda ax: plots.stump_lines([stump], table, signs, ax=ax),
        "weighted_loss": lambda ax: plots.weighted_loss(table, signs, 3, ax=ax),
        "importances": lambda ax: plots.importances(three, wine[0], ax=ax),
        "explanation": lambda ax: plots.explanation(three, wine[0][0], ax=ax),
        "waterfall": lambda ax: plots.waterfall(three, wine[0][0], ax=ax),
        "true_over_predicted": lambda ax: plots.true_over_predicted(*costs, ax=ax),
        "residuals": lambda ax: plots.residuals(*costs, ax=ax),
    }


def test_every_picture_draws_on_the_axes_it_is_given_and_saves(binary, three, cancer, wine):
    import matplotlib

    before = dict(matplotlib.rcParams)
    drawings = pictures(binary, three, cancer, wine)
    assert {*drawings, "shape_functions", "overview", "pair"} == set(plots.__all__)
    for draw in drawings.values():
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        assert draw(right) is right
        assert not left.has_data()
        assert right.has_data()
        saved(figure)
        free = Figure()
        ax = free.add_axes((0.2, 0.3, 0.5, 0.5))
        assert draw(ax) is ax
        assert all(other.get_position().y0 >= 0.299 for other in free.axes)
        ax = draw(None)
        assert ax.figure.get_layout_engine() is not None
        saved(ax.figure)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_pictures_of_a_model_without_stumps_say_so():
    X, y = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [-1, 1]
    clf = AdaBoostClassifier(n_estimators=3, device="cpu").fit([[0.0]] * 4, [0, 1, 0, 1])
    assert clf.model_.n_rounds == 0
    assert "no stump is better than chance" in texts(plots.error_curve(clf))
    assert "no feature is used" in texts(plots.importances(EMPTY))
    (ax,) = plots.shape_functions(EMPTY)
    assert "not used" in texts(ax)
    assert legend(plots.margin_distribution(EMPTY, X, y)) == ["0 rounds"]
    saved(plots.overview(EMPTY))
    constant = StumpEnsemble((Member((Stump(0, math.inf, 1, 1, 0.25),), (0.5,)),), 3)
    assert cells(plots.decision_regions(constant, X, y))[2].tolist() == [[1]]
    saved(plots.overview(constant, X=X))


def test_tables_of_every_library_and_frames_are_drawn_alike(backend: Backend):
    random = np.random.default_rng(0)
    table = random.normal(size=(50, 2)).astype(np.float32)
    model = StumpEnsemble((made_up(random, 8, 2, exact=1.0),), 2)
    X, y = backend.asarray(table), backend.asarray(np.where(table[:, 0] > 0, 1, -1))
    weights = random.exponential(size=50)
    w = backend.asarray(weights)
    signs = np.where(table[:, 0] > 0, 1, -1)
    expected = data_of_all_pictures(model, table, signs, weights)
    found = data_of_all_pictures(model, X, y, w)
    assert len(expected) == len(found) == 8
    for one, other in zip(expected, found, strict=True):
        assert one.size > 0
        assert_array_equal(one, other)


def data_of_all_pictures(model, X, y, weights) -> list[np.ndarray]:
    """All that is drawn of a table."""
    shape = plots.shape_function(model, 0, X=X, sample_weight=weights)
    regions = plots.decision_regions(model, X, y)
    margins = plots.margin_distribution(model, X, y, sample_weight=weights)
    stump = next(s for s in model.members[0].stumps if not s.is_constant)
    lines = plots.stump_lines(stump, X, y, sample_weights=weights)
    loss = plots.weighted_loss(X, y, 1, sample_weight=weights)
    bars = plots.importances(model, X, sample_weight=weights).containers[0]
    return [
        np.asarray([bar.get_width() for bar in plots.waterfall(model, X[3, :]).patches]),
        shape.figure.axes[-1].patches[0].get_data().values,
        np.concatenate([c.get_offsets() for c in regions.collections[2:]]),
        margins.get_lines()[-1].get_xydata(),
        np.concatenate([c.get_offsets() for c in lines.collections]),
        np.concatenate([c.get_sizes() for c in lines.collections]),
        np.concatenate([line.get_xydata() for line in loss.get_lines()]),
        np.asarray([bar.get_width() for bar in bars]),
    ]


def test_frames_are_drawn_as_their_arrays_are(binary, cancer):
    X, y = cancer
    model, table = binary.model_, X.to_numpy()
    pairs = [
        [plots.margin_distribution(m, given, y) for m, given in ((binary, X), (model, table))],
        [plots.importances(m, given) for m, given in ((binary, X), (model, table))],
    ]
    assert_array_equal(*[ax.get_lines()[-1].get_xydata() for ax in pairs[0]])
    assert_array_equal(*[[bar.get_width() for bar in ax.containers[0]] for ax in pairs[1]])
    grids = [plots.shape_functions(m, X=given) for m, given in ((binary, X), (model, table))]
    for one, other in zip(*grids, strict=True):
        assert_array_equal(drawn(one, "steps"), drawn(other, "steps"))


def test_polars_frames_are_taken_by_estimators():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"a": [0.0, 1.0, 2.0, None], "b": [True, False, True, False]})
    clf = DecisionStumpClassifier(device="cpu").fit(X, [0, 1, 1, 1])
    ax = plots.shape_function(clf, "a", X=X)
    assert "missing (25 %)" in texts(ax)


def test_colours_are_okabe_and_itos_and_tints_print_in_the_grey_asked_for():
    assert len(set(style.COLOURS)) == 7
    for colour in style.COLOURS:
        for grey in (0.72, 0.93):
            found = style.tint(colour, grey)
            assert np.dot(found, (0.299, 0.587, 0.114)) == pytest.approx(grey)
            assert to_rgb(found) == found


STUMP = Stump(0, 1.0, 1, 1, 0.2)
ONE = StumpEnsemble((Member((STUMP,), (1.0,)),), 3, feature_names=("age", "height", "weight"))
X3, Y3 = [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], [-1, 1]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.shape_function("model", 0), "model must be a StumpEnsemble or a fitted"),
        (lambda: plots.shape_function(ONE, 3), "feature must be below 3"),
        (lambda: plots.shape_function(ONE, "hight"), "Did you mean 'height'"),
        (lambda: plots.shape_function(ONE, 0, label="x"), "label must be 1"),
        (lambda: plots.shape_function(ONE, 0, X=[[1.0]]), "X has 1 features"),
        (lambda: plots.shape_function(ONE, 0, sample_weight=[1.0]), "without X"),
        (lambda: plots.shape_functions(ONE, n_features=0), "n_features must be at least 1"),
        (lambda: plots.shape_functions(ONE, features=[]), "features is empty"),
        (lambda: plots.error_curve(ONE), "estimator must be a fitted classifier"),
        (lambda: plots.margin_distribution(ONE, X3, Y3, rounds=[2]), "rounds must be at most 1"),
        (lambda: plots.margin_distribution(ONE, X3, Y3, rounds=[]), "rounds must be 1 to 5"),
        (lambda: plots.margin_distribution(ONE, X3, [0, 1]), "none of the model's classes"),
        (lambda: plots.decision_regions(ONE, features=(1, 2)), "give X, for their medians"),
        (lambda: plots.decision_regions(ONE, features=(1, 1)), "two different ones"),
        (lambda: plots.decision_regions(ONE, features="age"), r"features must be two; got \['age"),
        (lambda: plots.decision_regions(ONE, at=[1.0]), "at must hold 3 numbers"),
        (lambda: plots.decision_regions(ONE, y=Y3), "y is given without X"),
        (lambda: plots.decision_regions(ONE, X3, [5, 1]), "y holds 5 at index 0, which is none of"),
        (lambda: plots.stump_lines([]), "stumps must be 1 to 5; got 0"),
        (lambda: plots.stump_lines([3]), r"stumps\[0\] must be a Stump"),
        (lambda: plots.stump_lines(Stump(2, 0.0, 1, 1, 0.1)), "is on feature 2"),
        (lambda: plots.stump_lines(STUMP, X3), "X and y must be given together"),
        (lambda: plots.stump_lines(STUMP, sample_weights=[1.0]), "without X"),
        (lambda: plots.stump_lines(STUMP, X3, Y3, sample_weights=[[1, 1]] * 2), "at most 1"),
        (
            lambda: plots.stump_lines(STUMP, labels=["a", "b"]),
            "labels must be 1, one for each stump",
        ),
        (lambda: plots.weighted_loss(X3, Y3, 3), "feature must be below 3, the width of X"),
        (lambda: plots.weighted_loss(X3, [0, 1], 0), "y must hold the labels -1 and"),
        (lambda: plots.importances(ONE, n_features=0.5), "n_features must be a whole number"),
        (lambda: plots.overview(ONE, label=7), "label must be 1"),
        (lambda: plots.overview(ONE, sample_weight=[1.0]), "without X"),
        (lambda: plots.importances(ONE, sample_weight=[1.0]), "without X"),
        (lambda: plots.shape_functions(ONE, features=1.5), "feature must be a whole number"),
        (lambda: plots.decision_regions(ONE, features=3), "features must be two, such as"),
        (lambda: plots.stump_lines(STUMP, features=0), "features must be two, such as"),
        (lambda: plots.stump_lines(ONE), "stumps must be a Stump, an Interval, or an iterable"),
        (lambda: plots.importances(ONE, ax=Figure()), "ax must be one Matplotlib Axes with x"),
        (lambda: plots.importances(ONE, ax=Figure().subplots(2)), "ax must be one Matplotlib"),
        (
            lambda: plots.importances(ONE, ax=Figure().add_subplot(projection="polar")),
            "ax must be one Matplotlib Axes",
        ),
        (
            lambda: plots.importances(ONE, ax=Figure().add_subplot(projection="3d")),
            "ax must be one Matplotlib Axes",
        ),
    ],
)
def test_nonsense_is_refused(draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        draw()


def test_nonsense_is_refused_of_classifiers(three, wine):
    with pytest.raises(NotFittedError):
        plots.importances(AdaBoostClassifier())
    for draw in (
        lambda: plots.shape_function(three, 0, label=7),
        lambda: plots.shape_functions(three, label=[0, 7]),
        lambda: plots.error_curve(three),
        lambda: plots.margin_distribution(three, *wine, label=7),
    ):
        with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
            draw()
    with pytest.raises(ValueError, match="X and y must be given together"):
        plots.error_curve(three, wine[0], label=0)
    with pytest.raises(ValueError, match="sample_weight is given without X"):
        plots.error_curve(three, sample_weight=[1.0], label=0)


def test_completion_offers_the_pictures_alone():
    assert dir(plots) == sorted(plots.__all__)
