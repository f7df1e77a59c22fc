"""Shape functions are the model's own steps and bars, over the samples, with the spread of bags."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars
import pytest
from drawn import bars, drawn, has, labels, legend, overlaps, saved, texts
from made_up_models import member as made_up
from made_up_models import region_model
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

from gpustump import (
    AdaBoostClassifier,
    LogitBoostClassifier,
    Member,
    Stump,
    StumpEnsemble,
    plots,
)
from gpustump.model.encoding import Encoding, InputColumn
from gpustump.plots import axis as axes_of
from gpustump.plots import style

VALUES = ("red", "green", "blue", "ochre")
CAPTION = "± 1 standard deviation over 4 bags"


def assert_steps(ax, model, feature: int, label=None, gid: str = "steps") -> None:
    """The line has the values of the model's shape function, with its steps where that has them."""
    corners, shape = drawn(ax, gid), model.shape_function(feature, label=label)
    edges = np.unique(corners[:, 0])
    assert (edges[0], edges[-1]) == ax.get_xlim()
    low, high = corners[:-1], corners[1:]
    level = high[:, 0] > low[:, 0]
    middles = (low[level, 0] + high[level, 0]) / 2
    assert_array_equal(low[level, 1], high[level, 1])
    assert_array_equal(low[level, 1], shape.look_up(middles))
    for edge in edges[1:-1]:  # exactly where the function changes, from one float to the next
        ends = shape.look_up(np.asarray([edge, np.nextafter(edge, np.inf)]))
        assert_array_equal(corners[corners[:, 0] == edge, 1], ends)


def test_a_shape_function_has_the_models_steps_at_its_thresholds():
    one = made_up(np.random.default_rng(0), 40, 3, exact=1.0)
    model = StumpEnsemble((one,), 3)
    for feature in range(3):
        ax = plots.shape_function(model, feature)
        assert_steps(ax, model, feature)
        own = [s.threshold for s in one.stumps if s.feature == feature and not s.is_constant]
        assert set(drawn(ax, "steps")[1:-1, 0]) == set(filter(math.isfinite, own))
        vote = model.shape_function(feature).missing
        assert drawn(ax, "missing")[:, 1].tolist() == [vote] if vote else not has(ax, "missing")
    model = region_model(np.random.default_rng(4), 20, 2, n_classes=3, shared=True)
    together = plots.shape_function(model, 1)
    for label in model.classes:
        assert_steps(plots.shape_function(model, 1, label=label), model, 1, label)
        vote = model.shape_function(1, label=label).missing
        assert drawn(together, f"missing of class {label}")[:, 1].tolist() == [vote]
    assert texts(together).count("missing") == 1


def test_a_strip_below_shows_where_the_samples_are(binary, cancer):
    X, _ = cancer
    weights = np.arange(len(X), dtype=float)
    ax = plots.shape_function(binary, "mean area", X=X, sample_weight=weights)
    assert_steps(ax, binary.model_, 3)
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
    assert labels(strip.xaxis) == ["false", "true"]
    frame = polars.DataFrame({"flag": [False, True, True], "colour": ["red", "blue", "red"]})
    fitted = LogitBoostClassifier(n_estimators=2, categorical_features="from_dtype")
    ax = plots.shape_function(fitted.fit(frame, [0, 1, 0]), "flag", X=frame)
    assert labels(ax.figure.axes[-1].xaxis) == ["false", "true"]
    ax = plots.shape_function(model, 1, X=X, sample_weight=[1, 0, 1])
    assert_allclose([bar.get_height() for bar in ax.figure.axes[-1].patches], [0.5, 0.5])
    assert "not used" in texts(ax)


@pytest.mark.filterwarnings("error")
def test_odd_values_are_drawn_without_a_warning():
    inf = math.inf
    for values in (
        *([2.5] * 4, [math.nan] * 4, [inf, -inf, 1.0, 2.0], [inf] * 4),
        *([1.7e308, -1.7e308, 0.0, 1.0], [5e-324, 0.0, 1e-310, 2e-310]),
        [1e15, 1e15 + 0.125, 1e15 + 0.25, 1e15 + 0.5],
    ):
        stumps = [Stump(0, t, 1, -1, 0.3) for t in (*values, 0.0, -inf) if not math.isnan(t)]
        model = StumpEnsemble((Member(tuple(stumps), (1.0,) * len(stumps)),), 1)
        for given in (None, np.asarray(values)[:, None]):
            ax = plots.shape_function(model, 0, X=given)
            assert np.isfinite(ax.get_xlim()).all()
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
        assert_steps(ax, binary.model_, list(X.columns).index(ax.get_xlabel()))
    shares = binary.contribution_importances(X)
    figure = Figure(layout="constrained")
    grid = plots.shape_functions(binary, X=X, n_features=3, figure=figure)
    strips = [ax for ax in figure.axes if ax not in grid]
    assert [ax.get_xlabel() for ax in strips] == [X.columns[j] for j in np.argsort(-shares)[:3]]
    assert len(strips) == 3


def test_all_classes_are_drawn_if_none_is_named(three, wine):
    X, _ = wine
    for given in (None, X):
        ax = plots.shape_function(three, 6, X=given)
        assert legend(ax) == ["class 0", "class 1", "class 2"]
        assert ax.get_ylabel().replace("\n", " ") == "contribution to the score of each class"
        for k in range(3):
            assert_steps(ax, three.model_, 6, k, f"steps of class {k}")
    assert legend(plots.shape_function(three, 6, label=[2, 0])) == ["class 2", "class 0"]
    ax = plots.shape_function(three, 6, label=1)
    assert ax.get_ylabel().replace("\n", " ") == "contribution to the score of class 1"
    grid = plots.shape_functions(three, X=X, n_features=3)
    shares = three.contribution_importances(X)
    for ax, feature in zip(grid, np.argsort(-shares, kind="stable")[:3], strict=True):
        for k in range(3):
            assert_steps(ax, three.model_, int(feature), k, f"steps of class {k}")
    for label, one in enumerate(three.model_.members):  # the features of its own score
        found = plots.shape_functions(three, label=label, n_features=2)
        sizes = np.bincount([s.feature for s in one.stumps], np.abs(one.votes), minlength=13)
        best = np.argsort(-sizes, kind="stable")[:2]
        assert [ax.get_xlabel() for ax in found] == [f"feature {j}" for j in best]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_panels", [1, 2])
def test_legends_of_long_names_leave_room_for_what_they_explain(n_panels):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.asarray([f"a long name of class {k}" for k in range(6)])[np.arange(60) % 6]
    fitted = AdaBoostClassifier(n_estimators=5, device="cpu").fit(X, y)
    for ax in (
        plots.shape_function(fitted, 0, X=X),
        plots.shape_functions(fitted, X=X, n_features=n_panels)[0],
    ):
        saved(ax.figure)
        assert ax.get_position().height > 0.3
        found = ax.get_legend() or ax.figure.legends[0]
        assert found.get_window_extent().x1 <= ax.figure.bbox.x1


def test_of_many_classes_those_that_differ_most_are_drawn():
    model = coloured(np.random.default_rng(0), 10)
    ranges = [np.ptp(model.shape_function(0, label=one).values) for one in model.classes]
    best = sorted(np.argsort(-np.asarray(ranges), kind="stable")[:6].tolist())
    ax = plots.shape_function(model, 0)
    assert legend(ax) == [model.classes[k] for k in best]
    assert ax.get_legend().get_title().get_text().startswith("the 6 of 10 classes")
    looks = {(line.get_color(), str(line._dash_pattern)) for line in ax.get_lines()[1:7]}
    assert [len(set(own)) for own in zip(*looks, strict=True)] == [6, 6]
    with pytest.raises(ValueError, match="label must be 1 to 6 labels; got 7"):
        plots.shape_function(model, 0, label=model.classes[:7])


def one_hot(numbers, n_values: int = 4) -> np.ndarray:
    """Rows of a category: -1 is a value without a feature, -2 is missing."""
    numbers = np.asarray(numbers)
    X = (numbers[:, None] == np.arange(n_values)).astype(np.float64)
    X[numbers == -2] = math.nan
    return X


def table(random: np.random.Generator, n_rows: int) -> np.ndarray:
    """A number, a column of text with four values, and a number."""
    colours = one_hot(random.integers(-2, 4, size=n_rows))
    return np.column_stack([random.normal(size=n_rows), colours, random.normal(size=n_rows)])


def encoded(values=VALUES) -> dict:
    names = ("size", "number", ()), ("colour", "category", tuple(values)), ("age", "number", ())
    columns = tuple(InputColumn(name, k, kind, own) for k, (name, kind, own) in enumerate(names))
    return {"encoding": Encoding(columns, 3, named=True).as_details()}


def coloured(random: np.random.Generator, n_members: int = 1, values=VALUES) -> StumpEnsemble:
    width = 2 + len(values)
    members = tuple(made_up(random, 80, width, exact=1.0) for _ in range(n_members))
    classes = (-1, 1) if n_members == 1 else tuple("abcdefghij"[:n_members])
    return StumpEnsemble(members, width, classes, details=encoded(values))


def by_value(ax, gid: str = "bars") -> dict[str, float]:
    """The heights of a category's bars; the names are those of the axis below."""
    below = [other for other in ax.figure.axes if other.get_xlim() == ax.get_xlim()][-1]
    names = labels(below.xaxis)
    return dict(zip(names, (bar.get_height() for bar in bars(ax, gid)), strict=True))


def with_a_feature_for_each_value() -> tuple:
    """A model, its table, what the colour adds, its number in each row, and the numbers' names."""
    random = np.random.default_rng(0)
    model, X = coloured(random), table(random, 60)
    codes = np.where(X[:, 1:5].any(axis=1), X[:, 1:5].argmax(axis=1), -1.0)
    codes[np.isnan(X[:, 1])] = np.nan
    names = {value: k for k, value in enumerate(VALUES)} | {"(other)": -1}
    return model, X, model.explain(X)[:, 1:5].sum(axis=1), codes, names


def with_one_categorical_feature() -> tuple:
    random = np.random.default_rng(0)
    numbers, size = random.integers(-1, 4, 200), random.normal(size=200)
    colours = [None if number < 0 else VALUES[number] for number in numbers]
    frame = polars.DataFrame({"colour": colours, "size": size})
    y = np.asarray([1.0, -1.0, 2.0, 0.0, 0.5])[numbers] + size > 0.5
    model = LogitBoostClassifier(n_estimators=12, categorical_features=["colour"]).fit(frame, y)
    codes = np.where(numbers < 0, np.nan, numbers)
    return model, frame, model.explain(frame)[:, 0], codes, {v: k for k, v in enumerate(VALUES)}


@pytest.mark.parametrize("made", [with_a_feature_for_each_value, with_one_categorical_feature])
def test_the_bar_of_a_value_is_what_the_category_adds_to_such_a_row(made):
    model, X, parts, codes, names = made()
    for given in (None, X):
        (ax,) = plots.shape_functions(model, X=given, features="colour")
        found = by_value(ax)
        assert set(found) == (set(VALUES) if given is None else set(names))
        for name, height in found.items():
            assert {height} == set(parts[codes == names[name]].tolist())
        assert list(found)[:4] == sorted(VALUES, key=lambda value: -found[value])
        assert drawn(ax, "missing")[:, 1].tolist() == [parts[np.isnan(codes)][0]]
    strip = ax.figure.axes[-1]
    assert strip.get_xlabel() == "colour"
    shares = [bar.get_height() for bar in strip.patches]
    assert shares == [np.mean(codes == names[name]) for name in found]
    assert f"missing ({100 * np.isnan(codes).mean():.0f} %)" in texts(ax)
    assert overlaps(ax.figure) == []


def test_a_column_of_text_is_one_panel_and_one_bar_with_the_sum_of_the_shares():
    random = np.random.default_rng(3)
    model, X = coloured(random), table(random, 80)
    for given in (None, X):
        shares = model.feature_importances() if given is None else model.contribution_importances(X)
        expected = {"colour": shares[1:5].sum(), "feature 0": shares[0], "feature 5": shares[5]}
        ax = plots.importances(model, given)
        names = labels(ax.yaxis)
        assert names == sorted(expected, key=lambda name: -expected[name])
        widths = [bar.get_width() for bar in ax.containers[0]]
        assert dict(zip(names, widths, strict=True)) == pytest.approx(expected)
        for axes in (
            plots.shape_functions(model, X=given)[0].figure.axes,
            plots.overview(model, given).axes,
        ):
            assert [ax.get_xlabel() for ax in axes if ax.get_xlabel() in expected] == names
            assert sum(len(bars(ax, "bars")) > 0 for ax in axes) == 1
    both = plots.shape_functions(model, features=["colour", 1])
    assert [ax.get_xlabel() for ax in both] == ["colour", "feature 1"]
    assert has(both[1], "steps")


def test_of_many_values_the_most_frequent_are_drawn_and_told_apart():
    random, n_values = np.random.default_rng(0), 30
    names = [f"city number {k} of a long list" for k in range(n_values)]
    model = coloured(random, values=names)
    rows = np.repeat(np.arange(n_values), np.arange(n_values) + 1)
    X = np.zeros((len(rows), n_values + 2))
    X[:, 1:-1] = one_hot(rows, n_values)
    (ax,) = plots.shape_functions(model, X=X, features="colour")
    found = by_value(ax)
    contributions = {
        own: model.explain(X)[rows == k, 1:-2].sum(axis=1)[0] for k, own in enumerate(names)
    }
    assert sorted(found.values()) == sorted([*contributions.values()][-12:])
    assert len(found) == 12
    assert "18 more values" in texts(ax)
    without = plots.shape_functions(model, features="colour")[0]
    assert len(by_value(without)) == 12
    saved(without.figure)


def test_no_vote_for_missing_values_is_drawn_that_was_not_learnt():
    members = (made_up(np.random.default_rng(0), 60, 3, exact=1.0),)
    X = np.random.default_rng(1).normal(size=(20, 3))
    for known, shown in (((True, False, False), [True, False, False]), (None, [True] * 3)):
        model = StumpEnsemble(members, 3, missing_learnt=known)
        for feature in range(3):
            assert has(plots.shape_function(model, feature), "missing") is shown[feature]
            assert not has(plots.shape_function(model, feature, X=X), "missing")
        grid = plots.shape_functions(model, features=[0, 1, 2])
        assert [has(ax, "missing") for ax in grid] == shown
    model = StumpEnsemble(members, 3, missing_learnt=(False, False, False))
    ax = plots.shape_function(model, 0, X=np.where(X < -1, math.nan, X))
    assert "not learnt" in texts(ax)  # those rows get the vote, learnt or not


def bagged(X, y):
    how = {"n_estimators": 20, "n_bags": 4, "random_state": 0, "device": "cpu"}
    return LogitBoostClassifier(**how).fit(X, y)


def of_bags(model, rows, number=0) -> np.ndarray:
    """What each bag's own model explains of one score, (n_bags, n_rows, n_features + 1)."""
    shape = (len(rows), model.n_outputs, model.n_features + 1)
    parts = [bag.explain(np.asarray(rows, dtype=float)).reshape(shape) for bag in model.bag_models]
    return np.asarray(parts)[:, :, number]


def band_at(ax, number, x) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper end of a band at some places between its corners."""
    band = [one for one in ax.collections if one.get_gid() == "band"][number]
    (path,) = band.get_paths()
    corners = path.vertices
    half = (len(corners) - 3) // 2
    lower, upper = corners[1 : 1 + half], corners[half + 2 : 2 * half + 2][::-1]
    return tuple(end[np.searchsorted(end[:, 0], x), 1] for end in (lower, upper))


def lines(ax, number=0) -> np.ndarray:
    """The ends of the lines of some bars, (n_bars, 2)."""
    found = [one for one in ax.collections if isinstance(one, LineCollection)][number]
    ends = np.asarray(found.get_segments())
    return ends[:, :, 0] if (ends[:, 0, 1] == ends[:, 1, 1]).all() else ends[:, :, 1]


@pytest.fixture(scope="module")
def bags_of_two():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, [0, 1, 4, 21]].copy()
    X[::7, 1] = np.nan
    return bagged(X, y), X


@pytest.fixture(scope="module")
def bags_of_three():
    X, y = load_wine(return_X_y=True)
    X = X[:, [0, 6, 9, 10, 12]]
    return bagged(X, y), X


@pytest.fixture(scope="module")
def bags_of_colours():
    """A model with a column of text of three values; a fourth value has no feature."""
    random = np.random.default_rng(0)
    colour, x = random.integers(0, 4, 300), random.normal(size=300)
    X = np.column_stack([x, one_hot(colour, 3), random.normal(size=300)])
    X[::9, 1:4] = np.nan
    y = (colour % 2 + x + random.normal(size=300) > 0.5).astype(int)
    model = bagged(X, y).model_
    return replace(model, details={**model.details, **encoded(VALUES[:3])}), X


@pytest.mark.parametrize("label", [None, 2])
def test_a_band_reaches_one_standard_deviation_of_the_bags_to_both_sides(
    bags_of_two, bags_of_three, label
):
    clf, X = bags_of_two if label is None else bags_of_three
    model, feature = clf.model_, 1
    ax = plots.shape_function(clf, feature, X=X, label=label)
    steps = np.unique(drawn(ax, "steps")[:, 0])
    middles = (steps[1:] + steps[:-1]) / 2
    rows = np.zeros((len(middles), X.shape[1]))
    rows[:, feature] = middles
    own = of_bags(model, rows, label or 0)[:, :, feature]
    low, high = band_at(ax, 0, middles)
    assert_allclose(low, own.mean(axis=0) - own.std(axis=0, ddof=1), atol=1e-9)
    assert_allclose(high, own.mean(axis=0) + own.std(axis=0, ddof=1), atol=1e-9)
    assert (high > low).any()
    assert legend(ax) == [CAPTION]
    if label is None:
        missing = of_bags(model, [[0.0, np.nan, 0.0, 0.0]])[:, 0, feature]
        ends = drawn(ax, "spread of missing")[:, 1]
        assert_allclose(ends, missing.mean() + missing.std(ddof=1) * np.asarray([-1, 1]), atol=1e-9)


def test_importances_have_the_spread_of_the_bags_shares(bags_of_colours):
    model, X = bags_of_colours
    ax = plots.importances(model, X)
    names = labels(ax.yaxis)
    for number, (shares, of_bag) in enumerate(
        [
            (model.contribution_importances(X), lambda bag: bag.contribution_importances(X)),
            (model.feature_importances(), lambda bag: bag.feature_importances()),
        ]
    ):
        columns = {"colour": [1, 2, 3], "feature 0": [0], "feature 4": [4]}
        own = np.asarray([of_bag(bag) for bag in model.bag_models])
        for name, ends in zip(names, lines(ax, number), strict=True):
            deviation = own[:, columns[name]].sum(axis=1).std(ddof=1)
            middle = shares[columns[name]].sum()
            assert_allclose(ends, [middle - deviation, middle + deviation], atol=1e-9)
    assert ax.get_xlabel().endswith(f"\nlines: {CAPTION}")


def test_the_lines_of_an_explanation_are_the_spread_of_what_the_bags_add(bags_of_three):
    clf, X = bags_of_three
    model, row = clf.model_, X[3]
    ax = plots.explanation(clf, row, n_features=2, label=1)
    own = of_bags(model, [row], 1)[:, 0]
    order = np.argsort(-np.abs(model.explain(row[None])[0, 1, :-1]))
    parts = [own[:, order[0]], own[:, order[1]], own[:, order[2:]].sum(axis=1), own[:, -1]]
    for k, (bar, part) in enumerate(zip(bars(ax, "contribution"), parts, strict=True)):
        assert bar.get_width() == pytest.approx(part.mean(), abs=1e-9)
        low, high = lines(ax, k)[0]
        assert high - low == pytest.approx(2 * part.std(ddof=1), abs=1e-9)
    assert CAPTION in ax.get_xlabel()
    assert overlaps(ax.figure) == []


def shows(axis) -> list[str]:
    """The tick labels in view."""
    axis.figure.canvas.draw()
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1.get_text().replace("$\\mathdefault{", "").rstrip("}$") for tick in ticks]


@pytest.mark.parametrize(("first", "last"), [(2003, 2006), (1998, 1999), (17000, 18300), (-5, 5)])
def test_whole_numbers_have_whole_ticks_written_in_full(first, last):
    values = np.arange(first, last + 1.0)
    X = values[np.random.default_rng(0).integers(len(values), size=200)][:, None]
    stumps = tuple(Stump(0, value + 0.5, 1, 1, 0.2) for value in values[:-1].tolist())
    model = StumpEnsemble((Member(stumps, (1.0,) * len(stumps)),), 1)
    both = plots.decision_regions(StumpEnsemble(model.members, 2), np.c_[X, X])
    axes = [plots.shape_function(model, 0, X=X).figure.axes[-1]]
    axes.append(plots.weighted_loss(X, np.where(X[:, 0] > X.min(), 1, -1), 0))
    for axis in [*(ax.xaxis for ax in axes), both.xaxis, both.yaxis]:
        labels = shows(axis)
        assert 1 <= len(labels) <= 12
        assert all(str(int(text.replace("−", "-"))) == text.replace("−", "-") for text in labels)
        assert axis.get_offset_text().get_text() == ""


@pytest.mark.parametrize("kind", ["lognormal", "cauchy", "one value", "mostly zero"])
def test_a_few_large_values_do_not_squeeze_the_others(kind):
    random = np.random.default_rng(0)
    values = {
        "lognormal": np.exp(random.normal(9, 2, 500)),
        "cauchy": random.standard_cauchy(500),
        "one value": np.append(random.normal(size=500), 1e9),
        "mostly zero": np.append(np.zeros(480), np.exp(random.normal(0, 3, 40))),
    }[kind]
    model = StumpEnsemble((Member((Stump(0, 0.5, 1, 1, 0.2),), (1.0,)),), 1)
    ax = plots.shape_function(model, 0, X=values[:, None])
    strip = ax.figure.axes[-1]
    low, high = ax.get_xlim()
    assert np.mean((values >= low) & (values <= high)) >= 0.89
    others = values[values != 0] if kind == "mostly zero" else values
    placed = ax.xaxis.get_transform().transform
    first, last = placed(np.quantile(others, [0.05, 0.95], method="nearest"))
    assert last - first >= 0.4 * (placed(high) - placed(low))
    assert ax.get_xscale() == ("log" if kind == "lognormal" else "linear")
    assert ("log scale" in strip.get_xlabel()) is (kind == "lognormal")
    left, right = np.mean(values < low), np.mean(values > high)
    ends = [style.number_text(float(end)) for end in (values.min(), values.max())]
    expected = [f"← {style.percent(left)}, to {ends[0]}"] * int(left > 0)
    expected += [f"{style.percent(right)}, to {ends[1]} →"] * int(right > 0)
    assert texts(strip).split("\n") == (expected or [""])
    assert overlaps(ax.figure) == []
    regions = plots.decision_regions(StumpEnsemble(model.members, 2), np.c_[values, values])
    n_beyond = int((~axes_of.View(*regions.get_xlim()).shows(values)).sum())
    assert f"{n_beyond} sample{'s' * (n_beyond > 1)} beyond not shown" in texts(regions)
    if kind != "mostly zero":  # the loss has one step for all equal values
        y = np.where(values > np.median(values), 1, -1)
        loss = plots.weighted_loss(values[:, None], y, 0)
        n_beyond = int((~axes_of.View(*loss.get_xlim()).shows(values)).sum())
        assert f"{n_beyond} value{'s' * (n_beyond > 1)} beyond" in texts(loss)


def temporal(kind: str, thresholds, values=None) -> tuple[StumpEnsemble, np.ndarray | None]:
    """A model of one column of a kind of dates or times, and its values as a table."""
    column = InputColumn("when", 0, kind)
    details = {"encoding": Encoding((column,), 1, named=True).as_details()}
    stumps = tuple(Stump(0, float(t), 1, 1, 0.3) for t in thresholds)
    member = Member(stumps, (1.0,) * len(stumps))
    model = StumpEnsemble((member,), 1, feature_names=("when",), details=details)
    return model, None if values is None else np.asarray(values, dtype=float)[:, None]


def day(text: str) -> float:
    return float((np.datetime64(text) - np.datetime64("1970-01-01")) / np.timedelta64(1, "D"))


@pytest.mark.parametrize(
    ("kind", "first", "last", "labels", "note"),
    [
        ("date", "2020-01-01", "2023-12-31", {"2020", "2021", "2022", "2023", "2024"}, ""),
        ("date", "1890-01-01", "2010-12-31", {"1900", "2000"}, ""),
        ("date", "2024-02-01", "2024-06-01", {"Mar", "Apr", "May"}, " (2024)"),
        ("date", "2023-11-20", "2024-02-10", {"Dec", "2024"}, ""),
        ("datetime", "2024-05-01", "2024-05-03", {"02", "12:00"}, " (2024-May)"),
        ("datetime", "2024-05-01T01", "2024-05-01T23", {"12:00"}, " (2024-May-01)"),
        ("time", 0.0, 86399.0, {"00:00", "12:00"}, ""),
        ("time", 30000.0, 30100.0, {"08:20:30", "08:21"}, ""),
        ("duration", 0.0, 4 * 86400.0, {"0", "1", "2", "3", "4"}, " (days)"),
    ],
)
def test_axes_of_dates_and_times_show_dates_and_times(kind, first, last, labels, note):
    if isinstance(first, str):
        scale = 86400.0 if kind == "datetime" else 1.0
        first, last = scale * day(first), scale * day(last)
    values = np.linspace(first, last, 300)
    model, X = temporal(kind, values[[30, 150, 270]], values)
    ax = plots.shape_function(model, 0, X=X)
    strip = ax.figure.axes[-1]
    assert set(shows(strip.xaxis)) & labels
    assert strip.get_xlabel() == f"when{note}"
    offset = strip.xaxis.get_offset_text()
    assert not offset.get_visible() or offset.get_text() == ""
    assert overlaps(ax.figure) == []
    steps = plots.shape_function(model, 0)
    unit = 1.0 if kind == "date" else 86400.0
    corners = drawn(steps, "steps")[:, 0]
    assert set(values[[30, 150, 270]] / unit) <= set(corners.tolist())
