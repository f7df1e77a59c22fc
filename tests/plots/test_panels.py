"""Panels show categories, several classes, whole numbers, long tails and missing values as such."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawn import bars, drawn, has, legend, overlaps, saved, texts
from made_up_models import member as made_up
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble, plots
from gpustump.model.encoding import Encoding, InputColumn
from gpustump.plots import inputs, limits, style
from gpustump.plots.panels import percent

VALUES = ("red", "green", "blue", "ochre")
COLOUR = {value: 1 + k for k, value in enumerate(VALUES)}


def one_hot(numbers, n_values: int = 4) -> np.ndarray:
    """Rows of a category: -1 is a value without a feature, -2 is missing."""
    numbers = np.asarray(numbers)
    X = (numbers[:, None] == np.arange(n_values)).astype(np.float64)
    X[numbers == -2] = math.nan
    return X


def table(random: np.random.Generator, n_rows: int) -> np.ndarray:
    """A number, a category of four values, and a number."""
    colours = random.integers(-2, 4, size=n_rows)
    return np.column_stack(
        [random.normal(size=n_rows), one_hot(colours), random.normal(size=n_rows)]
    )


def coloured(random: np.random.Generator, n_members: int = 1) -> StumpEnsemble:
    members = tuple(made_up(random, 80, 6, exact=1.0) for _ in range(n_members))
    if n_members == 1:
        return StumpEnsemble(members, 6)
    return StumpEnsemble(members, 6, classes=tuple("abcdefghij"[:n_members]))


def by_value(ax, gid: str = "bars") -> dict[str, float]:
    """The heights of a category's bars; the names are those of the axis below."""
    below = [other for other in ax.figure.axes if other.get_xlim() == ax.get_xlim()][-1]
    names = [label.get_text() for label in below.get_xticklabels()]
    return dict(zip(names, (bar.get_height() for bar in bars(ax, gid)), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_the_bar_of_a_value_is_what_the_category_adds_to_such_a_row(seed):
    random = np.random.default_rng(seed)
    model, X = coloured(random), table(random, 60)
    (ax,) = plots.shape_functions(model, X=X, features="colour", groups={"colour": COLOUR})
    found = by_value(ax)
    assert set(found) == {*VALUES, "(other)"}
    sums = model.explain(X)[:, 1:5].sum(axis=1)
    for name, number in [*((value, k) for k, value in enumerate(VALUES)), ("(other)", -1)]:
        rows = (X[:, 1:5] == one_hot([number])).all(axis=1)
        assert rows.any()
        assert_array_equal(sums[rows], found[name])
    assert list(found)[:4] == sorted(VALUES, key=lambda value: -found[value])
    lacking = np.isnan(X[:, 1])
    assert drawn(ax, "missing")[:, 1].tolist() == [sums[lacking][0]]
    assert f"missing ({100 * lacking.mean():.0f} %)" in texts(ax)
    strip = ax.figure.axes[-1]
    shares = [bar.get_height() for bar in strip.patches]
    for name, share in zip(found, shares, strict=True):
        number = VALUES.index(name) if name in VALUES else -1
        assert share == np.mean((X[:, 1:5] == one_hot([number])).all(axis=1))
    (ax,) = plots.shape_functions(model, features="colour", groups={"colour": COLOUR})
    assert by_value(ax) == {name: found[name] for name in list(found)[:4]}
    saved(ax.figure)


def test_a_category_is_one_panel_and_one_bar_with_the_sum_of_the_shares():
    random = np.random.default_rng(3)
    model, X = coloured(random), table(random, 80)
    groups = {"colour": COLOUR}
    for given in (None, X):
        shares = model.feature_importances() if given is None else model.contribution_importances(X)
        expected = {"colour": shares[1:5].sum(), "feature 0": shares[0], "feature 5": shares[5]}
        ax = plots.importances(model, given, groups=groups)
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == sorted(expected, key=lambda name: -expected[name])
        widths = [bar.get_width() for bar in ax.containers[0]]
        assert dict(zip(names, widths, strict=True)) == pytest.approx(expected)
        for axes in (
            plots.shape_functions(model, X=given, groups=groups)[0].figure.axes,
            plots.overview(model, given, groups=groups).axes,
        ):
            shown = [ax.get_xlabel() for ax in axes if ax.get_xlabel() in expected]
            assert shown == names
            assert sum(len(bars(ax, "bars")) > 0 for ax in axes) == 1


def test_the_features_of_a_group_may_be_named_and_drawn_alone():
    model = coloured(np.random.default_rng(0))
    names = ("size", *(f"colour={value}" for value in VALUES), "age")
    named = StumpEnsemble(model.members, 6, feature_names=names)
    groups = {"colour": {value: f"colour={value}" for value in VALUES}}
    grid = plots.shape_functions(named, features=["colour", "colour=red"], groups=groups)
    assert [ax.get_xlabel() for ax in grid] == ["colour", "colour=red"]
    assert has(grid[1], "steps")
    first = by_value(grid[0])
    other = plots.shape_functions(model, features="colour", groups={"colour": COLOUR})
    assert by_value(other[0]) == first


def test_of_many_values_the_most_frequent_are_drawn_and_told_apart():
    random = np.random.default_rng(0)
    n_values = 30
    model = StumpEnsemble((made_up(random, 300, n_values, exact=1.0),), n_values)
    groups = {"city": {f"city number {k} of a long list": k for k in range(n_values)}}
    rows = np.repeat(np.arange(n_values), np.arange(n_values) + 1)
    X = one_hot(rows, n_values)
    (ax,) = plots.shape_functions(model, X=X, features="city", groups=groups)
    found = by_value(ax)
    assert set(found) == {f"…{k}…" for k in range(n_values - 12, n_values)}
    assert "18 more values" in texts(ax)
    contributions = model.explain(X)[:, :-1].sum(axis=1)
    for k in range(n_values - 12, n_values):
        assert found[f"…{k}…"] == contributions[rows == k][0]
    without = plots.shape_functions(model, features="city", groups=groups)[0]
    assert len(by_value(without)) == 12
    saved(without.figure)


def test_several_classes_have_bars_side_by_side():
    random = np.random.default_rng(0)
    model, X = coloured(random, 3), table(random, 60)
    (ax,) = plots.shape_functions(model, X=X, features="colour", groups={"colour": COLOUR})
    sums = model.explain(X)[:, :, 1:5].sum(axis=2)
    places = set()
    for number, label in enumerate("abc"):
        found = by_value(ax, f"bars of {label}")
        for k, value in enumerate(VALUES):
            rows = X[:, 1 + k] == 1
            assert_array_equal(sums[rows, number], found[value])
        places |= {round(bar.get_x(), 6) for bar in bars(ax, f"bars of {label}")}
    assert len(places) == 3 * 5
    (ax,) = plots.shape_functions(
        model, X=X, features="colour", groups={"colour": COLOUR}, label="b"
    )
    assert [*by_value(ax)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups must be a mapping such as \{'colour'"),
        ({"colour": [1, 2]}, "groups must be a mapping"),
        ({"colour": {}}, r"groups\['colour'\] is empty"),
        ({"colour": {"red": 9}}, "feature must be below 6"),
        ({"colour": {"red": 1, "blue": 1}}, "appears twice"),
        ({"a": {"red": 1}, "b": {"blue": 1}}, r"groups\['b'\] has a feature that appears twice"),
        ({"colour": {"red": "x"}}, "no feature names"),
        ({"colour": {"red": 0, "blue": 1}}, r"groups\['colour'\]: row 0 of X has no single value"),
        ({"colour": {"red": 1, "blue": 5}}, "row 0 of X has no single value"),
    ],
)
def test_groups_that_are_none_are_refused(groups, message):
    random = np.random.default_rng(0)
    model, X = coloured(random), table(random, 20)
    for draw in (
        lambda: plots.shape_functions(model, X=X, groups=groups),
        lambda: plots.overview(model, X, groups=groups),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            draw()


def test_a_row_with_two_values_is_refused():
    model = coloured(np.random.default_rng(0))
    X = np.zeros((4, 6))
    X[2, 1:3] = 1.0
    with pytest.raises(ValueError, match="row 2 of X has no single value"):
        plots.shape_functions(model, X=X, groups={"colour": COLOUR}, features="colour")
    X[2, 1:3] = 0.0, math.nan
    with pytest.raises(ValueError, match="row 2 of X has no single value"):
        plots.shape_functions(model, X=X, groups={"colour": COLOUR}, features="colour")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return AdaBoostClassifier(n_estimators=12, device="cpu").fit(X, y), X


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return AdaBoostClassifier(n_estimators=10, device="cpu").fit(X[:400], y[:400]), X[:400]


def line_is_shape(ax, gid: str, model: StumpEnsemble, feature: int, label) -> bool:
    corners = drawn(ax, gid)
    at = (corners[1:, 0] + corners[:-1, 0]) / 2
    level = corners[1:, 0] > corners[:-1, 0]
    expected = model.shape_function(feature, label=label).look_up(at[level])
    return bool((corners[1:, 1][level] == expected).all())


def test_all_classes_are_drawn_if_none_is_named(wine):
    clf, X = wine
    for given in (None, X):
        ax = plots.shape_function(clf, 6, X=given)
        assert legend(ax) == ["class 0", "class 1", "class 2"]
        assert ax.get_ylabel().replace("\n", " ") == "contribution to the score of each class"
        for k in range(3):
            assert line_is_shape(ax, f"steps of class {k}", clf.model_, 6, k)
    ax = plots.shape_function(clf, 6, label=[2, 0])
    assert legend(ax) == ["class 2", "class 0"]
    assert not has(ax, "steps of class 1")
    ax = plots.shape_function(clf, 6, label=1)
    assert legend(ax) == []
    assert line_is_shape(ax, "steps", clf.model_, 6, 1)
    grid = plots.shape_functions(clf, X=X, n_features=3)
    shares = clf.contribution_importances(X)
    for ax, feature in zip(grid, np.argsort(-shares, kind="stable")[:3], strict=True):
        for k in range(3):
            assert line_is_shape(ax, f"steps of class {k}", clf.model_, int(feature), k)
    (names,) = [[text.get_text() for text in one.get_texts()] for one in grid[0].figure.legends]
    assert names == ["class 0", "class 1", "class 2"]
    figure = plots.overview(clf, X)
    bounds = figure.axes[-1]
    for k, rounds in enumerate(clf.rounds_):
        (line,) = [line for line in bounds.get_lines() if line.get_label() == f"class {k}"]
        assert_allclose(line.get_ydata(), [one.training_bound for one in rounds], rtol=1e-12)


def test_of_many_classes_those_that_differ_most_are_drawn(digits):
    clf, X = digits
    model = clf.model_
    feature = int(np.argmax(clf.feature_importances_))
    ranges = [np.ptp(model.shape_function(feature, label=k).values) for k in range(10)]
    best = sorted(np.argsort(-np.asarray(ranges), kind="stable")[:6].tolist())
    for given in (None, X):
        ax = plots.shape_function(clf, feature, X=given)
        assert legend(ax) == [f"class {k}" for k in best]
        assert ax.get_legend().get_title().get_text().startswith("the 6 of 10 classes")
    looks = {(line.get_color(), str(line._dash_pattern)) for line in ax.get_lines()[1:7]}
    colours, dashes = map(set, zip(*looks, strict=True))
    assert len(colours) == len(dashes) == 6
    saved(plots.overview(clf, X))
    with pytest.raises(ValueError, match="label must be 1 to 6 labels; got 7"):
        plots.shape_function(clf, feature, label=range(7))


def test_votes_for_missing_values_are_drawn_for_each_class():
    random = np.random.default_rng(2)
    model = coloured(random, 3)
    X = table(random, 30)
    X[::3, 0] = math.nan
    ax = plots.shape_function(model, 0, X=X)
    for label in "abc":
        vote = model.shape_function(0, label=label).missing
        assert drawn(ax, f"missing of {label}")[:, 1].tolist() == [vote]
    assert texts(ax).count("missing") == 1


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
    groups = {"colour": {"red": 1, "blue": 2}}
    (ax,) = plots.shape_functions(model, features="colour", groups=groups)
    assert not has(ax, "missing")
    ax = plots.shape_function(model, 0, X=np.where(X < -1, math.nan, X))
    assert "not learnt" in texts(ax)  # those rows get the vote, learnt or not


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
    stumps = tuple(Stump(0, float(value) + 0.5, 1, 1, 0.2) for value in values[:-1])
    model = StumpEnsemble((Member(stumps, (1.0,) * len(stumps)),), 1)
    shape = plots.shape_function(model, 0, X=X)
    y = np.where(X[:, 0] > X.min(), 1, -1)
    axes = [shape.figure.axes[-1], plots.weighted_loss(X, y, 0)]
    if last - first > 2:
        axes += [plots.shape_function(model, 0), plots.shape_functions(model)[0]]
    pair = StumpEnsemble(model.members, 2)
    both = plots.decision_regions(pair, np.c_[X, X])
    for axis in [*(ax.xaxis for ax in axes), both.xaxis, both.yaxis]:
        labels = shows(axis)
        assert 1 <= len(labels) <= 12
        for text in labels:
            assert text.replace("−", "-").isdecimal() or int(text.replace("−", "-")) < 0
        assert axis.get_offset_text().get_text() == ""


def test_other_numbers_keep_their_ticks():
    X = np.linspace(0.2, 1.7, 50)[:, None]
    model = StumpEnsemble((Member((Stump(0, 0.5, 1, 1, 0.2),), (1.0,)),), 1)
    ax = plots.shape_function(model, 0, X=X)
    assert "0.5" in shows(ax.figure.axes[-1].xaxis)
    view = 0.0, 99.0
    assert not limits.is_whole(np.asarray([1.0, 1.5]), view)
    assert not limits.is_whole(np.asarray([math.nan, math.inf]), view)
    assert limits.is_whole(np.asarray([math.nan, 3.0, 1e9, 100.5]), view)


@pytest.mark.parametrize("first", [1e5, 1e9, 1e15])
def test_long_whole_numbers_keep_apart(first):
    X = first + np.arange(30.0)[:, None]
    model = StumpEnsemble((Member((Stump(0, first + 9.5, 1, 1, 0.2),), (1.0,)),), 1)
    for axes in (plots.shape_functions(model, X=X), [plots.shape_function(model, 0, X=X)]):
        assert overlaps(axes[0].figure) == []


def heavy(kind: str) -> np.ndarray:
    random = np.random.default_rng(0)
    return {
        "lognormal": lambda: np.exp(random.normal(9, 2, 500)),
        "cauchy": lambda: random.standard_cauchy(500),
        "one value": lambda: np.append(random.normal(size=500), 1e9),
        "one of few": lambda: np.asarray([*random.normal(size=9), -1e9]),
        "mostly zero": lambda: np.append(np.zeros(480), np.exp(random.normal(0, 3, 40))),
    }[kind]()


@pytest.mark.parametrize("kind", ["lognormal", "cauchy", "one value", "one of few", "mostly zero"])
def test_a_few_large_values_do_not_squeeze_the_others(kind):
    values = heavy(kind)
    model = StumpEnsemble((Member((Stump(0, 0.5, 1, 1, 0.2),), (1.0,)),), 1)
    ax = plots.shape_function(model, 0, X=values[:, None])
    strip = ax.figure.axes[-1]
    low, high = ax.get_xlim()
    inside = (values >= low) & (values <= high)
    assert inside.mean() >= 0.89
    others = values[values != 0] if kind == "mostly zero" else values
    first, last = np.quantile(others, [0.05, 0.95], method="nearest")
    placed = ax.xaxis.get_transform().transform
    if kind != "one of few":
        assert placed(last) - placed(first) >= 0.4 * (placed(high) - placed(low))
    scale = {"lognormal": "log", "cauchy": "asinh"}.get(kind, "linear")
    is_cut = scale == "linear"
    assert ax.get_xscale() == scale
    assert ("log scale" in strip.get_xlabel()) is not is_cut
    if is_cut:
        assert high - low < 0.1 * np.ptp(values)
    left, right = np.mean(values < low), np.mean(values > high)
    ends = [style.number_text(float(end)) for end in (values.min(), values.max())]
    expected = [f"← {percent(left)}, to {ends[0]}"] * int(left > 0)
    expected += [f"{percent(right)}, to {ends[1]} →"] * int(right > 0)
    assert texts(strip).split("\n") == (expected or [""])
    saved(ax.figure)
    regions = plots.decision_regions(StumpEnsemble(model.members, 2), np.c_[values, values])
    n_beyond = int((~((values >= regions.get_xlim()[0]) & (values <= regions.get_xlim()[1]))).sum())
    assert f"{n_beyond} sample{'s' * (n_beyond > 1)} beyond not shown" in texts(regions)
    if kind != "mostly zero":  # the loss has one step for all equal values
        y = np.where(values > np.median(values), 1, -1)
        loss = plots.weighted_loss(values[:, None], y, 0)
        low, high = loss.get_xlim()
        n_beyond = int(((values < low) | (values > high)).sum())
        assert f"{n_beyond} value{'s' * (n_beyond > 1)} beyond" in texts(loss)
        saved(loss.figure)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("with_samples", [True, False])
def test_the_steps_of_a_skewed_feature_do_not_stand_in_a_corner(sign, with_samples):
    random = np.random.default_rng(0)
    values = sign * random.lognormal(0, 2, 400)
    stumps = tuple(Stump(0, float(t), 1, 1, 0.3) for t in sign * np.exp(np.arange(-4.0, 4.5, 0.5)))
    model = StumpEnsemble((Member(stumps, (1.0,) * len(stumps)),), 1)
    ax = plots.shape_function(model, 0, X=values[:, None] if with_samples else None)
    below = ax.figure.axes[-1]
    steps = np.asarray([stump.threshold for stump in stumps])
    placed = ax.transAxes.inverted().transform(
        ax.transData.transform(np.column_stack([steps, np.zeros_like(steps)]))
    )[:, 0]
    assert np.ptp(placed) > 0.5  # on a linear axis all but the last three are in one tenth
    assert np.diff(np.sort(placed)).min() > 0.01
    assert "log scale" in below.get_xlabel()
    labels = [text for text in shows(below.xaxis) if text]
    assert len(labels) >= 3
    assert overlaps(ax.figure) == []


def test_few_values_counts_and_a_bell_keep_a_linear_axis():
    random = np.random.default_rng(0)
    for values in (
        random.normal(size=2000),
        random.poisson(0.5, size=2000).astype(float),
        random.uniform(size=2000),
        1e6 + random.lognormal(0, 2, 400),  # a logarithm would not spread these
        np.zeros(10),
    ):
        assert limits.readable(values, 0.02, 20).scale == "linear"


def test_an_axis_that_is_cut_shows_no_empty_room_beside_its_other_end():
    values = np.append(np.linspace(0.0, 1.0, 99), 1e6)
    low, high = limits.bulk(values, 0.02)
    assert -0.05 < low < 0.0
    assert 1.0 < high < 2.0


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
        ("date", "2023-11-20", "2024-02-10", {"Dec", "2024"}, " (2023–2024)"),
        ("datetime", "2024-05-01", "2024-05-03", {"May 02", "12:00"}, " (2024)"),
        ("datetime", "2024-05-01T01", "2024-05-01T23", {"12:00"}, " (2024-05-01)"),
        ("time", 0.0, 86399.0, {"00:00", "12:00", "24:00"}, ""),
        ("time", 30000.0, 30100.0, {"08:20:30", "08:21:00"}, ""),
        ("duration", 0.0, 4 * 86400.0, {"0", "1", "2", "3", "4"}, " (days)"),
    ],
)
def test_axes_of_dates_and_times_show_dates_and_times(kind, first, last, labels, note):
    if isinstance(first, str):
        scale = 86400.0 if kind == "datetime" else 1.0
        first, last = scale * day(first), scale * day(last)
    values = np.linspace(first, last, 300)
    model, X = temporal(kind, values[[30, 150, 270]], values)
    for ax in (plots.shape_function(model, 0, X=X), plots.shape_functions(model, X=X)[0]):
        strip = ax.figure.axes[-1]
        found = set(shows(strip.xaxis))
        assert found & labels
        assert strip.get_xlabel() == f"when{note}"
        assert not any("×" in text for text in found)
        assert strip.xaxis.get_offset_text().get_text() == ""
        assert overlaps(ax.figure) == []
    steps = plots.shape_function(model, 0)
    unit = {"datetime": 86400.0, "duration": 86400.0}.get(kind, 1.0)
    corners = drawn(steps, "steps")[:, 0]
    assert set(values[[30, 150, 270]] / unit) <= set(corners.tolist())
    details = {"encoding": two_of(kind)}
    pair = StumpEnsemble(model.members, 2, feature_names=("a", "b"), details=details)
    regions = plots.decision_regions(pair, np.c_[X, X])
    for axis, name in ((regions.xaxis, "a"), (regions.yaxis, "b")):
        assert axis.get_label_text() == f"{name}{note}"
        found = set(shows(axis))
        assert found & (labels | {"0.0"}) if kind == "duration" else found & labels
        assert not any("×" in text for text in found)


def two_of(kind: str) -> dict:
    columns = tuple(InputColumn(name, k, kind) for k, name in enumerate(("a", "b")))
    return Encoding(columns, 2, named=True).as_details()


def test_ticks_at_dates_do_not_depend_on_the_callers_time_zone_or_epoch(monkeypatch):
    import matplotlib
    from matplotlib import dates

    values = np.linspace(day("2020-01-01"), day("2023-12-31"), 300)
    model, X = temporal("date", values[[30, 150]], values)
    with matplotlib.rc_context({"timezone": "Asia/Tokyo"}):
        ticks = plots.shape_function(model, 0, X=X).get_xticks()
    assert day("2022-01-01") in ticks
    monkeypatch.setattr(dates, "_epoch", "0000-12-31T00:00:00")
    ax = plots.shape_function(model, 0, X=X)  # numbers, rather than wrong dates
    assert "1.90" in shows(ax.figure.axes[-1].xaxis)
    assert ax.figure.axes[-1].get_xlabel() == "when (days since 1970-01-01)"


def test_numbers_that_are_no_dates_are_drawn_as_numbers():
    values = np.linspace(0.0, 1e9, 300)
    model, X = temporal("date", [5e8], values)
    saved(plots.shape_function(model, 0, X=X).figure)


def test_durations_beside_a_name_have_no_digits_that_nobody_reads():
    for seconds, text in ((2185.602797, "0:36:26"), (0.25, "0.25 s"), (2e5, "2 days, 7:33:20")):
        model, X = temporal("duration", [10.0], [seconds])
        ax = plots.waterfall(model, X[0])
        assert f"when = {text}" in [label.get_text() for label in ax.get_yticklabels()]


def test_nothing_is_cut_off_without_long_tails():
    for values in (
        np.random.default_rng(0).normal(size=500),
        np.random.default_rng(0).exponential(size=500),
        np.linspace(0, 1, 3),
        np.asarray([0.0, 1.0]),
        np.asarray([0.0] * 99 + [1.0]),
        np.asarray([0.0] * 50 + list(range(10))),
    ):
        assert limits.bulk(values, 0.02) == limits.span(values, 0.02)


@pytest.mark.parametrize("amount", [9.35, 0.013])
def test_the_label_of_all_panels_touches_no_tick_label(amount):
    stumps = tuple(Stump(j, float(k), 1, -1, 0.2) for j in range(6) for k in range(3))
    votes = tuple(amount / (3 + j) for j in range(6) for _ in range(3))
    names = tuple(f"a very long name of the column with number {j}" for j in range(6))
    model = StumpEnsemble((Member(stumps, votes),), 6, ("no", "yes"), names)
    X = np.random.default_rng(0).normal(size=(40, 6))
    for given in (None, X):
        assert overlaps(plots.overview(model, given)) == []


def test_names_of_a_wide_table_are_shortened_once(monkeypatch):
    names = tuple(f"a long prefix of a name {'x' * 20} {k:06d} {'y' * 20}" for k in range(3000))
    stumps = tuple(Stump(j, 0.0, 1, 1, 0.2) for j in range(20))
    model = StumpEnsemble((Member(stumps, tuple(range(1, 21))),), 3000, feature_names=names)
    calls = []
    shorten = style.words
    monkeypatch.setattr(inputs, "words", lambda *given: calls.append(given) or shorten(*given))
    inputs._repeated.cache_clear()
    plots.overview(model)
    plots.importances(model, n_features=20)
    assert len(calls) < 3000 + 200


def test_names_that_look_alike_are_told_apart():
    assert style.different_words(["a", "b"], 12) == ["a", "b"]
    many = [f"the value number {k} of the list" for k in range(3)]
    assert style.different_words(many, 12) == ["…0…", "…1…", "…2…"]
    two = ["Fixed wing multi engine", "Fixed wing single engine", "Rotorcraft"]
    assert style.different_words(two, 12) == ["…multi…", "…single…", "Rotorcraft"]
    apart = ["x" * 30 + "1" + "y" * 30, "x" * 30 + "2" + "y" * 30 + "z", "w" + "y" * 60]
    found = style.different_words(apart, 12)
    assert len(set(found)) == 3
    assert max(map(len, found)) <= 12
