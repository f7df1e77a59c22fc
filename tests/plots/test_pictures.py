"""Pictures show the model: importances, margins, regions, lines and the page of a whole model."""

from __future__ import annotations

import math
import sys

import matplotlib
import numpy as np
import polars
import pytest
from backends import Backend
from drawn import drawn, has, labels, legend, line_called, overlaps, saved, texts
from made_up_models import member as made_up
from made_up_models import region_model
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from gpustump import (
    Interval,
    LogitBoostClassifier,
    Member,
    Stump,
    StumpEnsemble,
    fit_stump,
    plots,
    theory,
)
from gpustump.plots import style

EMPTY = StumpEnsemble((Member((), ()),), 3)


def height_at(corners: np.ndarray, x: float) -> float:
    """The drawn step function where it is level: x is no corner."""
    assert x not in corners[:, 0]
    after = int(np.searchsorted(corners[:, 0], x))
    assert corners[after - 1, 1] == corners[after, 1]
    return corners[after, 1]


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot")
    with pytest.raises(ImportError, match=r"pictures need Matplotlib; pip install .*\[plot"):
        plots.importances(EMPTY)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_importances_are_bars_of_both_kinds(binary, cancer, is_weighted):
    X, _ = cancer
    weights = np.random.default_rng(0).exponential(size=len(X)) if is_weighted else None
    ax = plots.importances(binary, X, sample_weight=weights, n_features=4)
    shares, votes = binary.contribution_importances(X, weights), binary.feature_importances_
    order = np.argsort(-shares, kind="stable")
    first, second = ax.containers
    assert_array_equal([bar.get_width() for bar in first], shares[order[:4]])
    assert_array_equal([bar.get_width() for bar in second], votes[order[:4]])
    names = [X.columns[j] for j in order]
    assert labels(ax.yaxis) == names[:4]
    assert legend(ax) == ["contributions", "votes"]
    assert f"{int((shares > 0).sum()) - 4} more features have" in ax.get_xlabel()
    (only,) = plots.importances(binary, n_features=10).containers
    assert_allclose(sum(bar.get_width() for bar in only), 1.0)
    colours = [container[0].get_facecolor()[:3] for container in (first, second)]
    greys = [np.dot(colour, (0.299, 0.587, 0.114)) for colour in colours]
    assert abs(greys[0] - greys[1]) > 0.3  # told apart in a grey print
    figure = plots.overview(binary, X, sample_weight=weights)
    drawn_shares = [bar.get_width() for bar in figure.axes[-2].containers[0]]
    assert_array_equal(drawn_shares, shares[order[:6]])
    named = [ax.get_xlabel() for ax in figure.axes if ax.get_ylabel() == "data"]
    assert named == names[:6]


def test_margins_are_drawn_as_the_shares_that_theory_counts(binary, three, cancer, wine):
    shared = LogitBoostClassifier(n_estimators=9, device="cpu").fit(*wine)
    for clf, (X, y), label in ((binary, cancer, None), (three, wine, 2), (shared, wine, None)):
        weights = np.random.default_rng(0).exponential(size=len(y))
        weights[::4] = 0
        ax = plots.margin_distribution(clf, X, y, rounds=[3, 9], sample_weight=weights, label=label)
        assert legend(ax) == ["3 rounds", "9 rounds"]
        assert "share of the weight" in ax.get_ylabel()
        for count in (3, 9):
            model = clf.model_.truncated(count)
            of = theory.class_margins if clf is shared else theory.normalised_margins
            margins = of(model, np.asarray(X), y)
            margins = margins if margins.ndim == 1 else margins[:, label]
            corners = line_called(ax, f"{count} rounds").get_xydata()
            assert set(corners[1:-1, 0]) == set(margins[weights > 0])
            for theta in margins[:20] - 1e-9:
                assert height_at(corners, theta) == theory.share_below(margins, theta, weights)
    assert ax.get_xlabel() == "normalised margin, among all 3 classes"
    assert legend(plots.margin_distribution(binary, *cancer)) == ["5 rounds", "60 rounds"]
    assert legend(plots.margin_distribution(binary, *cancer, rounds=5)) == ["5 rounds"]
    with pytest.raises(ValueError, match="label must be left out, as scores of a softmax"):
        plots.margin_distribution(shared, *wine, label=1)


def cells(ax) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mesh = ax.collections[0]
    assert isinstance(mesh, QuadMesh)
    corners = mesh.get_coordinates()
    return np.asarray(corners[0, :, 0]), np.asarray(corners[:, 0, 1]), np.asarray(mesh.get_array())


@pytest.mark.parametrize("kind", ["stumps", "two classes", "shared"])
def test_regions_are_the_models_own_predictions_in_every_cell(kind):
    random = np.random.default_rng(1)
    members = tuple(made_up(random, 9, 3, exact=1.0) for _ in range(3))
    model = StumpEnsemble(members, 3, classes=("a", "b", "c"))
    if kind != "stumps":
        shared = {"n_classes": 3, "shared": True, "link": "softmax"}
        model = region_model(
            random, 20, 3, **({"n_classes": 2} if kind == "two classes" else shared)
        )
    row = np.asarray([0.0, 0.3, math.nan])
    ax = plots.decision_regions(model, features=(2, 0), at=row)
    xx0, xx1, response = cells(ax)
    assert response.shape == (len(xx1) - 1, len(xx0) - 1)
    assert (ax.get_xlim(), ax.get_ylim()) == ((xx0[0], xx0[-1]), (xx1[0], xx1[-1]))
    for x0, x1 in (
        ((xx0[1:] + xx0[:-1]) / 2, (xx1[1:] + xx1[:-1]) / 2),
        (np.nextafter(xx0[:-1], 9e9), xx1[1:]),
    ):
        X = np.tile(row, (response.size, 1))
        X[:, 2], X[:, 0] = np.tile(x0, len(x1)), np.repeat(x1, len(x0))
        assert_array_equal(np.asarray(model.classes)[response].ravel(), model.predict(X))
    assert len(legend(ax)) == len(model.classes)


def test_a_line_is_drawn_just_where_two_classes_meet():
    stumps = Stump(0, 1.0, 1, 1, 0.2), Stump(1, 2.0, 1, 1, 0.2), Stump(0, 3.0, 1, 1, 0.2)
    model = StumpEnsemble((Member(stumps, (1.0, 0.5, 0.25)),), 2)
    ax = plots.decision_regions(model, [[0.0, 0.0], [5.0, 5.0]])
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    met = {tuple(map(tuple, segment)) for segment in lines.get_segments()}
    low, high = ax.get_ylim()
    assert met == {((1.0, low), (1.0, 2.0)), ((1.0, 2.0), (1.0, high))}


def test_regions_hold_the_other_features_at_their_medians(binary, cancer):
    X, y = cancer
    ax = plots.decision_regions(binary, X, y, features=("mean texture", "mean radius"))
    xx0, xx1, response = cells(ax)
    row = np.nanmedian(X.to_numpy(), axis=0)
    for i, j in [(0, 0), (3, 2), (-1, -1)]:
        row[[1, 0]] = xx0[1:][j], xx1[1:][i]
        assert response[i, j] == (binary.model_.decision_function(row[None])[0] > 0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean texture", "mean radius")
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert len(points) == 2
    for label, group in zip(("benign", "malignant"), points, strict=True):
        assert_array_equal(group.get_offsets(), X.to_numpy()[y == label][:, [1, 0]])
    assert points[0].get_paths()[0].vertices.shape != points[1].get_paths()[0].vertices.shape


def test_samples_that_cannot_be_placed_are_counted():
    X = [[0.0, 0.0], [1.0, math.nan], [math.inf, 2.0], [1.0, 1.0]]
    ax = plots.decision_regions(EMPTY, [[*row, 0.0] for row in X], [-1, 1, 1, 1])
    assert "2 samples without finite values not shown" in texts(ax)
    assert cells(ax)[2].tolist() == [[0]]


def test_regions_of_categories_are_the_predictions_at_their_numbers():
    random = np.random.default_rng(2)
    X = np.stack([random.choice([0, 1, 3, 4], 300), random.normal(size=300)], axis=1)
    y = (np.isin(X[:, 0], [1, 4]) ^ (X[:, 1] > 1)).astype(int)
    classifier = LogitBoostClassifier(n_estimators=20, categorical_features=[0]).fit(X, y)
    ax = plots.decision_regions(classifier, X, y)
    xx0, xx1, response = cells(ax)
    assert_array_equal(xx0[1:-1], [0.5, 1.5, 2.5, 3.5])
    middles = (xx1[:-1] + xx1[1:]) / 2
    for column, value in enumerate([0.0, 1.0, np.nan, 3.0, 4.0]):  # 2 is no category
        rows = np.stack([np.full(len(middles), value), middles], axis=1)
        scores = classifier.explain(rows).sum(axis=1)
        assert_array_equal(response[:, column], scores > 0)


def test_regions_name_categories_and_hold_others_at_the_most_frequent_one():
    random = np.random.default_rng(3)
    homes = random.permutation(["flat"] * 195 + ["house"] * 15 + ["tent"] * 190)
    jobs, age = random.choice(["clerk", "nurse", "pilot"], 400), random.normal(size=400)
    frame = polars.DataFrame({"job": jobs, "age": age, "home": homes})
    y = (homes == "house") | ((age > 0) ^ (jobs == "pilot"))
    classifier = LogitBoostClassifier(n_estimators=60, categorical_features="from_dtype")
    ax = plots.decision_regions(classifier.fit(frame, y), frame, y, features=("age", "job"))
    assert ax.get_yticks().tolist() == [0, 1, 2]
    assert labels(ax.yaxis) == ["clerk", "nurse", "pilot"]
    xx0, _, response = cells(ax)
    for row, job in zip(response, ("clerk", "nurse", "pilot"), strict=True):
        table = polars.DataFrame({"job": job, "age": (xx0[:-1] + xx0[1:]) / 2, "home": "flat"})
        assert_array_equal(row, classifier.predict(table))


def test_stumps_are_lines_with_arrows_to_the_side_of_plus_one():
    X = np.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0], [4.0, 5.0]])
    y = [1, 1, -1, -1]
    heavy = np.asarray([1.0, 1.0, 4.0, 2.0])
    upright, band = Stump(0, 1.5, 1, 1, 0.1), Interval(1, 0.5, 3.0, -1, 1, 0.2)
    ax = plots.stump_lines([upright, band], X, y, sample_weight=heavy)
    lines = [line for line in ax.get_lines() if line.get_gid() == "stump"]
    assert list(lines[0].get_xdata()) == [1.5, 1.5]
    assert [list(line.get_ydata()) for line in lines[1:]] == [[0.5, 0.5], [3.0, 3.0]]
    assert lines[0].get_linestyle() != lines[1].get_linestyle()
    assert lines[0].get_color() != lines[1].get_color()
    directions = [(a.xyann[0] - a.xy[0], a.xyann[1] - a.xy[1]) for a in ax.texts if a.arrow_patch]
    assert [tuple(np.sign(np.round(d, 9))) for d in directions] == (
        [(-1, 0)] * 2 + [(0, -1)] * 2 + [(0, 1)] * 2  # left; below the band and above it
    )
    assert legend(ax) == [
        "+1 where $x_{0}$ ≤ 1.5",
        "−1 where 0.5 < $x_{1}$ ≤ 3",
        "label +1",
        "label −1",
    ]
    positive, negative = ax.collections
    assert_array_equal(positive.get_offsets(), X[:2])
    assert_array_equal(negative.get_offsets(), X[2:])
    areas = np.concatenate([positive.get_sizes(), negative.get_sizes()])
    assert_allclose(areas / areas[0], heavy / heavy[0])
    ax = plots.stump_lines(Stump(4, math.inf, -1, -1, 0.4))
    assert (list(ax.get_lines()), legend(ax)) == ([], ["always −1"])
    ax = plots.stump_lines([Stump(0, 1.0, 1, 1, 0.4)], features=(3, 0))
    assert list(ax.get_lines()[0].get_ydata()) == [1.0, 1.0]
    assert legend(plots.stump_lines(Stump(1, math.inf, -1, 1, 0.1))) == [
        "−1 where $x_{1}$ is present"
    ]


def test_a_stump_beyond_all_views_has_no_line():
    ax = plots.stump_lines(Stump(0, -1e300, 1, 1, 0.2), [[0.0, 0.0], [1.0, 1.0]], [1, -1])
    assert not has(ax, "stump")
    assert legend(ax)[0] == "+1 where $x_{0}$ ≤ −1e+300"
    saved(ax.figure)


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
    of_sparse = plots.weighted_loss(csr_array(X), y, 1, sample_weight=weights)
    for own, other in zip(ax.lines, of_sparse.lines, strict=True):
        assert_array_equal(own.get_xydata(), other.get_xydata())
    stump = fit_stump(X[:, 1:], y, weights)
    assert drawn(ax, "best").tolist() == [[stump.threshold, stump.error]]
    assert legend(ax)[-1] == (
        f"minimum: {stump.error:.4g}, at b = {stump.threshold:.6g}, polarity {stump.polarity:+d}"
    ).replace("-", "−")


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
    assert drawn(ax, "best").tolist() == [[found.split.threshold, factor * found.score]]
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
    for votes in ("discrete", "real", "newton"):
        ax = plots.weighted_loss([[0.0]] * 3, [1, 1, -1], 0, votes=votes)
        says = "constant" if votes == "discrete" else "best without a split; vote +0."
        assert says in legend(ax)[-1]
        assert drawn(ax, "best")[0, 0] == ax.get_xlim()[1]
        saved(ax.figure)
    X, y = [[0.0]] * 3 + [[math.nan]] * 3, [1, 1, -1, -1, -1, 1]
    text = legend(plots.weighted_loss(X, y, 0, votes="newton"))[-1]
    assert text == "maximum: 0.6667, missing values apart;\nvotes +0.333, −0.333 missing"
    with pytest.raises(ValueError, match="votes must be 'discrete', 'real' or 'newton'"):
        plots.weighted_loss([[0.0], [1.0]], [1, -1], 0, votes="logistic")


def test_an_overview_shows_shapes_importances_and_rounds(binary):
    model, figure = binary.model_, plots.overview(binary.model_)
    used = {s.feature for s in model.members[0].stumps if not s.is_constant}
    for part in ("60 rounds", f"{len(used)} of 10", "benign, malignant", model.digest()[:12]):
        assert part in figure.get_suptitle()
    assert len([ax for ax in figure.axes if has(ax, "steps")]) == 6


def test_an_overview_of_several_classes_says_which_it_shows(three, wine):
    assert "12 rounds for each class" in plots.overview(three.model_).get_suptitle()
    ax = plots.overview(three, X=wine[0], label=2).axes[-1]
    assert ax.get_ylabel() == "bound on the training error,\nclass 2 against rest"
    bounds = [one.training_bound for one in three.rounds_[2]]
    assert_allclose(ax.get_lines()[0].get_ydata(), bounds, rtol=1e-12)
    assert overlaps(plots.overview(three, X=wine[0])) == []


@pytest.mark.parametrize("n_features", [1, 300])
def test_an_overview_fits_on_its_page_whatever_the_model(n_features):
    member = made_up(np.random.default_rng(0), 300, n_features, exact=1.0)
    names = tuple(f"in_${k}$_a_{'very_' * 9}long_name" for k in range(n_features))
    labels = ("_no $1$ and a rather long name", "yes $")
    figure = plots.overview(StumpEnsemble((member,), n_features, labels, names))
    saved(figure)
    width, height = figure.get_size_inches() * figure.dpi
    for box in (ax.get_tightbbox() for ax in figure.axes):
        assert min(box.x0, box.y0) >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def pictures(binary, three, cancer, wine):
    """Every picture on axes of the caller's."""
    X, y = cancer
    table, signs = X.to_numpy(), np.where(y == "benign", 1, -1)
    stump = fit_stump(table[:, :2], signs)
    return {
        "shape_function": lambda ax: plots.shape_function(binary, 3, X=X, ax=ax),
        "error_curve": lambda ax: plots.error_curve(binary, X, y, ax=ax),
        "margin_distribution": lambda ax: plots.margin_distribution(binary, X, y, ax=ax),
        "decision_regions": lambda ax: plots.decision_regions(three, *wine, ax=ax),
        "stump_lines": lambda ax: plots.stump_lines([stump], table, signs, ax=ax),
        "weighted_loss": lambda ax: plots.weighted_loss(table, signs, 3, ax=ax),
        "importances": lambda ax: plots.importances(three, wine[0], ax=ax),
        "explanation": lambda ax: plots.explanation(three, wine[0][0], ax=ax),
    }


def test_every_picture_draws_on_the_axes_it_is_given_and_saves(binary, three, cancer, wine):
    before = dict(matplotlib.rcParams)
    drawings = pictures(binary, three, cancer, wine)
    assert {*drawings, "shape_functions", "overview", "page", "pair"} == set(plots.__all__)
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
        assert pyplot.gca() is ax  # where titles and the like go
        assert ax.figure.get_layout_engine() is not None
        saved(ax.figure)
    assert dict(matplotlib.rcParams) == before


def test_pictures_of_a_model_without_stumps_say_so():
    X, y = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [-1, 1]
    assert "no feature is used" in texts(plots.importances(EMPTY))
    (ax,) = plots.shape_functions(EMPTY)
    assert "not used" in texts(ax)
    assert legend(plots.margin_distribution(EMPTY, X, y)) == ["0 rounds"]
    saved(plots.overview(EMPTY))
    constant = StumpEnsemble((Member((Stump(0, math.inf, 1, 1, 0.25),), (0.5,)),), 3)
    assert cells(plots.decision_regions(constant, X, y))[2].tolist() == [[1]]
    saved(plots.overview(constant, X=X))


def test_tables_of_every_library_are_drawn_alike(backend: Backend):
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2)).astype(np.float32)
    y, weights = np.where(X[:, 0] > 0, 1, -1), random.exponential(size=50)
    model = StumpEnsemble((made_up(random, 8, 2, exact=1.0),), 2)
    expected = data_of_all_pictures(model, X, y, weights)
    found = data_of_all_pictures(model, *map(backend.asarray, (X, y, weights)))
    for one, other in zip(expected, found, strict=True):
        assert_array_equal(one, other)


def data_of_all_pictures(model, X, y, weights) -> list:
    """All that is drawn of a table."""
    how = {"sample_weight": weights}
    stump = next(s for s in model.members[0].stumps if not s.is_constant)
    margins = plots.margin_distribution(model, X, y, **how)
    lines = plots.stump_lines(stump, X, y, **how)
    return [
        [bar.get_width() for bar in plots.explanation(model, X[3, :]).patches],
        plots.shape_function(model, 0, X=X, **how).figure.axes[-1].patches[0].get_data().values,
        *(own.get_offsets() for own in plots.decision_regions(model, X, y).collections[2:]),
        margins.get_lines()[-1].get_xydata(),
        *(part for own in lines.collections for part in (own.get_offsets(), own.get_sizes())),
        *(line.get_xydata() for line in plots.weighted_loss(X, y, 1, **how).get_lines()),
        [bar.get_width() for bar in plots.importances(model, X, **how).containers[0]],
    ]


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
        (lambda: plots.shape_functions(ONE, n_features=0), "n_features must be at least 1"),
        (lambda: plots.shape_functions(ONE, features=[]), "features is empty"),
        (lambda: plots.margin_distribution(ONE, X3, Y3, rounds=[2]), "rounds must be at most 1"),
        (lambda: plots.margin_distribution(ONE, X3, Y3, rounds=[]), "rounds must be 1 to 5"),
        (lambda: plots.decision_regions(ONE, features=(1, 2)), "give X, for their medians"),
        (lambda: plots.decision_regions(ONE, features=(1, 1)), "two different ones"),
        (lambda: plots.decision_regions(ONE, at=[1.0]), "at must hold 3 numbers"),
        (lambda: plots.decision_regions(ONE, y=Y3), "y is given without X"),
        (lambda: plots.decision_regions(ONE, X3, [5, 1]), "y holds 5 at index 0, which is none of"),
        (lambda: plots.stump_lines([]), "stumps must be 1 to 5; got 0"),
        (lambda: plots.stump_lines([3]), r"stumps\[0\] must be a Stump"),
        (lambda: plots.stump_lines(Stump(2, 0.0, 1, 1, 0.1)), "is on feature 2"),
        (lambda: plots.stump_lines(STUMP, X3), "X and y must be given together"),
        (lambda: plots.stump_lines(STUMP, sample_weight=[1.0]), "sample_weight with them"),
        (lambda: plots.weighted_loss(X3, Y3, 3), "feature must be below 3, the width of X"),
        (lambda: plots.weighted_loss(X3, [0, 1], 0), "y must hold the labels -1 and"),
        (lambda: plots.importances(ONE, n_features=0.5), "n_features must be a whole number"),
        (lambda: plots.importances(ONE, sample_weight=[1.0]), "without X"),
        (lambda: plots.importances(ONE, ax=Figure().subplots(2)), "ax must be one Matplotlib"),
        (
            lambda: plots.importances(ONE, ax=Figure().add_subplot(projection="polar")),
            "ax must be one Matplotlib Axes",
        ),
    ],
)
def test_nonsense_is_refused(draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        draw()


def test_names_that_look_alike_when_shortened_show_where_they_begin_to_differ():
    groups = [f"product group {own}: household appliances" for own in "ABC"]
    for names in (groups, ["a" * 40, "a" * 41], ["short", "shorter"], [*groups, "product"]):
        shown = style.different_words(names, 20)
        assert len({*shown}) == len(names)
        assert all(len(own) <= 20 for own in shown)
    assert style.different_words(groups, 20)[1] == "produ…B: household …"
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.asarray(groups)[np.digitize(X[:, 0], [-0.5, 0.5])]
    clf = LogitBoostClassifier(n_estimators=5).fit(X, y)
    for ax in (plots.shape_function(clf, 0), plots.decision_regions(clf, X, y)):
        assert len({*legend(ax)} & {*style.different_words(groups, 20)}) == 3
