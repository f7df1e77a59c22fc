"""Bands and lines of bagged models are as wide as the single bags differ, and say what they are."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import bars, drawn, has, legend, overlaps
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_wine

from gpustump import AdaBoostClassifier, LogitBoostClassifier, plots
from gpustump.plots.model_rounds import draw_rounds
from gpustump.plots.shapes import drawn_scores

N_BAGS = 4
CAPTION = "± 1 standard deviation over 4 bags"


def bagged(X, y, kind=LogitBoostClassifier, **how):
    options = {"n_estimators": 20, "n_bags": N_BAGS, "random_state": 0, "device": "cpu"}
    return kind(**options | how).fit(X, y)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, [0, 1, 4, 21]].copy()
    X[::7, 1] = np.nan
    return bagged(X, y), X, y


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = X[:, [0, 6, 9, 10, 12]]
    return bagged(X, y, n_estimators=80), X, y


@pytest.fixture(scope="module")
def colours():
    """A model whose features 0 to 2 are the values of a category; a fourth value has none."""
    random = np.random.default_rng(0)
    colour, x = random.integers(0, 4, 300), random.normal(size=300)
    X = np.column_stack([(colour[:, None] == np.arange(3)).astype(float), x])
    X[::9, :3] = np.nan
    y = (colour % 2 + x + random.normal(size=300) > 0.5).astype(int)
    return bagged(X, y).model_, X, {"colour": {"red": 0, "blue": 1, "green": 2}}


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


@pytest.mark.parametrize("label", [None, 0, 2])
def test_a_band_reaches_one_standard_deviation_of_the_bags_to_both_sides(cancer, wine, label):
    clf, X, _ = cancer if label is None else wine
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


def test_every_class_has_a_band_in_its_colour(wine):
    clf, X, _ = wine
    ax = plots.shape_functions(clf, X=X)[0]
    bands = [one for one in ax.collections if one.get_gid() == "band"]
    colours = [line.get_color() for line in ax.get_lines() if line.get_gid()]
    from matplotlib.colors import to_rgb

    assert [to_rgb(one.get_facecolor()[0]) for one in bands] == [to_rgb(c) for c in colours[:3]]
    (found,) = ax.figure.legends
    names = [text.get_text() for text in found.get_texts()]
    assert names == ["class 0", "class 1", "class 2", CAPTION]


def test_the_lines_of_a_category_are_the_spread_of_its_sum(colours):
    model, X, groups = colours
    ax = plots.shape_functions(model, X=X, groups=groups, features="colour")[0]
    strip = ax.figure.axes[-1]
    rows = {"red": [1, 0, 0], "blue": [0, 1, 0], "green": [0, 0, 1], "(other)": [0, 0, 0]}
    shown = [tick.get_text() for tick in strip.get_xticklabels()]
    own = of_bags(model, [[*rows[name], 0.0] for name in shown])[:, :, :3].sum(axis=-1)
    middle, deviation = own.mean(axis=0), own.std(axis=0, ddof=1)
    assert_allclose(
        lines(ax), np.stack([middle - deviation, middle + deviation], axis=1), atol=1e-9
    )
    missing = of_bags(model, [[np.nan, np.nan, np.nan, 0.0]])[:, 0, :3].sum(axis=-1)
    low, high = drawn(ax, "spread of missing")[:, 1]
    assert high - low == pytest.approx(2 * missing.std(ddof=1), abs=1e-9)
    (found,) = ax.figure.legends
    assert [text.get_text() for text in found.get_texts()] == [CAPTION]


def test_importances_have_the_spread_of_the_bags_shares(colours):
    model, X, groups = colours
    ax = plots.importances(model, X, groups=groups)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    for number, (shares, of_bag) in enumerate(
        [
            (model.contribution_importances(X), lambda bag: bag.contribution_importances(X)),
            (model.feature_importances(), lambda bag: bag.feature_importances()),
        ]
    ):
        columns = {"colour": [0, 1, 2], "feature 3": [3]}
        own = np.asarray([of_bag(bag) for bag in model.bag_models])
        for name, ends in zip(names, lines(ax, number), strict=True):
            deviation = own[:, columns[name]].sum(axis=1).std(ddof=1)
            middle = shares[columns[name]].sum()
            assert_allclose(ends, [middle - deviation, middle + deviation], atol=1e-9)
    assert ax.get_xlabel().endswith(f"\nlines: {CAPTION}")


def test_the_lines_of_an_explanation_are_the_spread_of_what_the_bags_add(wine):
    clf, X, _ = wine
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


@pytest.mark.parametrize("kind", [AdaBoostClassifier, LogitBoostClassifier])
def test_the_page_of_a_bagged_model_has_the_median_and_the_range_of_the_bags(cancer, kind):
    _, X, y = cancer
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


def test_of_bags_of_different_lengths_those_take_part_that_have_the_round(cancer):
    _, X, y = cancer
    clf = bagged(X, y, LogitBoostClassifier)
    short = [run[: 5 + 5 * bag] for bag, run in enumerate(clf.rounds_)]
    ax = pyplot.figure().add_subplot()
    draw_rounds(ax, clf.model_, drawn_scores(clf.model_, None, [0]), short)
    (line,) = ax.get_lines()
    last = [r.training_error for r in short[-1]]
    assert_allclose(line.get_ydata()[15:], last[15:])


def test_several_classes_have_a_line_each_with_its_name_beside_its_end(wine):
    X, y = wine[-2:]
    clf = AdaBoostClassifier(n_estimators=10, n_bags=3, random_state=0, device="cpu").fit(X, y)
    figure = plots.overview(clf, X)
    ax = figure.axes[-1]
    assert len(ax.get_lines()) == len(ax.collections) == 3
    ends = {line.get_label(): line.get_ydata()[-1] for line in ax.get_lines()}
    places = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert sorted(places, key=places.get) == sorted(ends, key=ends.get)
    assert overlaps(figure) == []


def test_error_curves_of_a_bagged_model_are_those_of_the_average_on_samples(cancer):
    clf, X, y = cancer
    with pytest.raises(ValueError, match="X and y are needed: the model is the average of 4 bags"):
        plots.error_curve(clf)
    ax = plots.error_curve(clf, X, y)
    errors = [float(np.mean(labels != y)) for labels in clf.model_.staged_predict(X)]
    (line,) = [one for one in ax.get_lines() if str(one.get_label()).startswith("held-out error")]
    assert_allclose(line.get_ydata(), errors, atol=1e-12)
    assert ax.figure.axes[-1].get_xlabel() == "round, 4 bags in turns"


def test_a_model_without_bags_has_neither_bands_nor_lines(cancer):
    _, X, y = cancer
    clf = bagged(X, y, n_bags=1)
    ax = plots.shape_function(clf, 1, X=X)
    assert [one for one in ax.collections if one.get_gid() == "band"] == []
    assert not has(ax, "spread of missing")
    assert legend(ax) == []
    for ax in (plots.importances(clf, X), plots.explanation(clf, X[0])):
        assert [one for one in ax.collections if isinstance(one, LineCollection)] == []
        assert "bags" not in ax.get_xlabel()
