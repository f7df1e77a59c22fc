"""Pictures of categorical features: a bar for each category, with its name."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import bars, drawn, has, overlaps, saved, texts
from numpy.testing import assert_array_equal

from gpustump import AdaBoostClassifier, LogitBoostClassifier, plots
from gpustump.model.explanation import categories_of
from gpustump.plots.numbered import votes_of

pd = pytest.importorskip("pandas")

NAMES = np.asarray(["blue", "green", "red", "violet"])


def fitted(n_classes: int = 2, cls: type = LogitBoostClassifier) -> tuple:
    """A classifier, its frame, and the numbers of the colours; -1 where there is none."""
    random = np.random.default_rng(0)
    codes = random.integers(-1, 4, 200)
    frame = pd.DataFrame({"colour": np.where(codes < 0, None, NAMES[codes])})
    frame["size"] = random.normal(size=200)
    score = np.asarray([1.0, -1.0, 2.0, 0.0, 0.5])[codes] + frame["size"]
    y = np.argsort(np.argsort(score)) * n_classes // 200
    classifier = cls(n_estimators=12, categorical_features=["colour"])
    return classifier.fit(frame, y), frame, codes


def by_name(ax, gid: str = "bars") -> dict[str, float]:
    names = [label.get_text() for label in ax.get_xticklabels()]
    names = names or [label.get_text() for label in ax.figure.axes[-1].get_xticklabels()]
    return dict(zip(names, (bar.get_height() for bar in bars(ax, gid)), strict=False))


@pytest.mark.parametrize("cls", [AdaBoostClassifier, LogitBoostClassifier])
def test_the_shape_function_has_a_bar_for_each_category_with_its_contribution(cls):
    classifier, frame, codes = fitted(cls=cls)
    ax = plots.shape_function(classifier, "colour")
    found = by_name(ax)
    parts = classifier.explain(frame)[:, 0]
    for number, name in enumerate(NAMES):
        assert {found[name]} == set(parts[codes == number].tolist())
    assert list(found) == sorted(NAMES, key=lambda name: -found[name])
    assert ax.get_xlabel() == "colour"
    assert drawn(ax, "missing")[0, 1] == parts[codes < 0][0]
    saved(ax.figure)


def test_with_a_table_the_strip_has_the_shares_of_the_categories():
    classifier, frame, codes = fitted()
    ax = plots.shape_function(classifier, "colour", X=frame)
    strip = ax.figure.axes[-1]
    names = [label.get_text() for label in strip.get_xticklabels()]
    for name, bar in zip(names, strip.patches, strict=True):
        assert bar.get_height() == np.mean(codes == NAMES.tolist().index(name))
    assert f"missing ({100 * np.mean(codes < 0):.0f} %)" in texts(ax)
    assert not overlaps(ax.figure)


def test_numbers_stand_for_categories_without_names_and_others_are_drawn_as_such():
    _, frame, codes = fitted()
    X = np.stack([5.0 * codes + 2, frame["size"]], axis=1)
    y = (codes > 0).astype(int)
    classifier = AdaBoostClassifier(n_estimators=4, categorical_features=[0]).fit(X, y)
    ax = plots.shape_function(classifier, 0)
    assert set(by_name(ax)) == {"2", "7", "12", "17"}
    X[:20, 0] = 30
    strip = plots.shape_function(classifier, 0, X=X).figure.axes[-1]
    assert "(other)" in [label.get_text() for label in strip.get_xticklabels()]


def test_several_classes_have_bars_side_by_side_and_numbers_have_steps():
    classifier, frame, codes = fitted(3)
    grid = plots.shape_functions(classifier, X=frame, features=["colour", "size"])
    parts = classifier.explain(frame)
    for label in range(3):
        heights = [bar.get_height() for bar in bars(grid[0], f"bars of class {label}")]
        expected = {parts[codes == number, label, 0][0] for number in range(4)}
        assert set(heights) == expected
        assert has(grid[1], f"steps of class {label}")
    plots.overview(classifier, frame)


def test_a_waterfall_names_the_category_of_the_row():
    classifier, frame, codes = fitted()
    for number, name in [(2, "red"), (-1, "missing")]:
        row = frame.iloc[[int(np.flatnonzero(codes == number)[0])]]
        ax = plots.waterfall(classifier, row)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert f"colour = {name}" in labels
    widths = [bar.get_width() for bar in bars(ax, "contribution")]
    assert_array_equal(sum(widths), classifier.decision_function(row)[0])


def test_the_spread_of_bags_is_that_of_their_own_functions():
    classifier, frame, _ = fitted()
    bagged = classifier.set_params(n_bags=3, random_state=0).fit(frame, frame["size"] > 0).model_
    names = categories_of(bagged, 0)
    assert names == dict(enumerate(NAMES))
    votes = votes_of(bagged, 0, None)
    values = [*NAMES, "unknown", None]
    own = [bag.shape_function(0).look_up(values) for bag in bagged.bag_models]
    np.testing.assert_allclose(votes.deviations, np.std(own, axis=0, ddof=1), atol=1e-9)
    assert_array_equal(votes.values, bagged.shape_function(0).look_up(values[:4]))
    plots.shape_function(bagged, 0)


def test_regions_of_categories_are_the_predictions_at_their_numbers():
    random = np.random.default_rng(2)
    X = np.stack([random.choice([0, 1, 3, 4], 300), random.normal(size=300)], axis=1)
    y = (np.isin(X[:, 0], [1, 4]) ^ (X[:, 1] > 1)).astype(int)
    classifier = LogitBoostClassifier(n_estimators=20, categorical_features=[0]).fit(X, y)
    ax = plots.decision_regions(classifier, X, y)
    (mesh,) = (one for one in ax.collections if hasattr(one, "get_coordinates"))
    corners, response = (np.ma.getdata(own) for own in (mesh.get_coordinates(), mesh.get_array()))
    assert_array_equal(corners[0, 1:-1, 0], [0.5, 1.5, 2.5, 3.5])
    heights = corners[:, 0, 1]
    middles = (heights[:-1] + heights[1:]) / 2
    for column, value in enumerate([0.0, 1.0, np.nan, 3.0, 4.0]):  # 2 is no category
        rows = np.stack([np.full(len(middles), value), middles], axis=1)
        scores = classifier.explain(rows).sum(axis=1)
        assert_array_equal(response[:, column], scores > 0)


def test_a_waterfall_names_no_category_for_a_value_that_is_none():
    _, frame, codes = fitted()
    X = np.stack([codes.astype(float), frame["size"]], axis=1)
    classifier = AdaBoostClassifier(n_estimators=4, categorical_features=[0]).fit(X, codes > 1)
    with pytest.warns(UserWarning, match="not in training in 1 row, such as '1.5'"):
        ax = plots.waterfall(classifier, np.asarray([[1.5, 0.0]]))
    assert "feature 0 = (other)" in [label.get_text() for label in ax.get_yticklabels()]
