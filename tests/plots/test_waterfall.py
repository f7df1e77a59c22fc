"""A waterfall's bars add up to the row's score, and say which value adds what."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from drawn import bars, legend, overlaps, saved, texts, title
from made_up_models import member as made_up
from made_up_models import rows
from sklearn.datasets import load_breast_cancer, load_wine

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble, plots


def widths(ax) -> list[float]:
    return [bar.get_width() for bar in bars(ax, "contribution")]


def names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("n_features", [1, 30])
@pytest.mark.parametrize("seed", range(2))
def test_the_bars_add_up_to_the_score_bit_for_bit(seed, n_features):
    random = np.random.default_rng(seed)
    members = tuple(made_up(random, 60, 8, exact=1.0) for _ in range(3))
    for model in (
        StumpEnsemble(members[:1], 8),
        StumpEnsemble(members, 8, classes=("a", "b", "c")),
    ):
        for row in rows(random, 2, 8, "float64"):
            scores = model.decision_function(row[None])[0]
            for number, label in enumerate([None] if model.is_binary else model.classes):
                ax = plots.waterfall(model, row, n_features=n_features, label=label)
                score = float(scores if model.is_binary else scores[number])
                assert sum(widths(ax)) == sum(widths(ax)[::-1]) == score
                assert [bar.get_width() for bar in bars(ax, "score")] == [score]


def test_the_largest_contributions_stand_first_and_the_others_in_one_bar():
    random = np.random.default_rng(1)
    model = StumpEnsemble((made_up(random, 200, 12, exact=1.0),), 12)
    row = random.normal(size=12)
    *parts, intercept = model.explain(row[None])[0].tolist()
    order = sorted(range(12), key=lambda j: -abs(parts[j]))
    ax = plots.waterfall(model, row, n_features=4)
    assert widths(ax)[:5] == [intercept, *(parts[j] for j in order[:4])]
    assert widths(ax)[5] == math.fsum(parts[j] for j in order[4:])
    assert names(ax) == [
        "intercept",
        *(f"feature {j} = {row[j]:.4g}".replace("-", "−") for j in order[:4]),
        "8 other features",
        "score",
    ]
    starts = [bar.get_x() for bar in bars(ax, "contribution")]
    ends = [start + width for start, width in zip(starts, widths(ax), strict=True)]
    assert starts[0] == 0.0
    assert starts[1:] == ends[:-1]
    # A sum of one feature is no shorter than the feature itself.
    assert "other" not in "".join(names(plots.waterfall(model, row, n_features=11)))


def test_values_stand_beside_names_as_people_write_them():
    stumps = tuple(Stump(j, 0.0, 1, -1, 0.2) for j in range(4))
    model = StumpEnsemble(
        (Member(stumps, (4.0, 3.0, 2.0, 1.0)),),
        5,
        feature_names=("year", "gap", "share", "total", "unused"),
    )
    ax = plots.waterfall(model, [1998.0, math.nan, -0.123456, 1.5e9, 7.0])
    assert names(ax)[1:-1] == [
        "year = 1998",
        "gap = missing",
        "share = −0.1235",
        "total = 1.5e+09",
    ]
    assert widths(ax) == [0.0, -4.0, -3.0, 2.0, -1.0]
    assert texts(ax).split("\n") == ["0", "−4", "−3", "+2", "−1", "−6"]


def test_of_several_classes_the_predicted_one_is_drawn_unless_one_is_named():
    X, y = load_wine(return_X_y=True)
    clf = AdaBoostClassifier(n_estimators=12, device="cpu").fit(X, y)
    probabilities = clf.predict_proba(X)
    for row in (0, 70, 170):
        ax = plots.waterfall(clf, X[row])
        best = int(clf.predict(X)[row])
        assert ax.get_xlabel().startswith(f"score of class {best},")
        share = probabilities[row].max()
        text = f"{share:.3f}" if share < 0.9995 else "> 0.999"
        assert title(ax) == f"predicted: class {best}, probability {text}"
        assert legend(ax) == []
        ax = plots.waterfall(clf, X[row], label=2)
        assert sum(widths(ax)) == clf.decision_function(X)[row, 2]
        assert f"predicted: class {best}" in title(ax)


def test_rows_of_every_kind_are_drawn_alike():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    clf = AdaBoostClassifier(n_estimators=10, device="cpu").fit(X, y)
    model, values = clf.model_, X.to_numpy()[5]
    turned = X.iloc[5][::-1]
    given = [(clf, X.iloc[[5]]), (clf, X.iloc[5]), (model, values), (model, X.iloc[5])]
    given += [(clf, turned), (model, turned)]
    axes = [plots.waterfall(*one) for one in [*given, (model, values[None].tolist())]]
    for ax in axes[1:]:
        assert widths(ax) == widths(axes[0])
    assert sum(widths(axes[0])) == clf.decision_function(X)[5]


def test_a_category_has_one_bar_with_its_value():
    stumps = tuple(Stump(j, 0.5, 1, missing, 0.2) for j, missing in ((0, 1), (1, 1), (2, -1)))
    model = StumpEnsemble((Member(stumps, (1.0, 0.5, 0.25)),), 3)
    groups = {"colour": {"red": 1, "blue": 2}}
    for red, blue, text in ((1, 0, "red"), (0, 1, "blue"), (0, 0, "(other)")):
        row = [0.0, red, blue]
        ax = plots.waterfall(model, row, groups=groups)
        parts = model.explain(np.asarray([row]))[0]
        by_name = dict(zip(names(ax), widths(ax), strict=False))
        assert by_name[f"colour = {text}"] == parts[1] + parts[2]
    ax = plots.waterfall(model, [0.0, math.nan, math.nan], groups=groups)
    assert "colour = missing" in names(ax)


def test_long_names_keep_apart_and_within_the_picture():
    random = np.random.default_rng(0)
    long = tuple(f"{'a very long name of a column ' * 3}{k} °C α→β $x$" for k in range(40))
    model = StumpEnsemble((made_up(random, 400, 40, exact=1.0),), 40, feature_names=long)
    ax = plots.waterfall(model, random.normal(size=40))
    assert overlaps(ax.figure) == []
    for label in ax.get_yticklabels():
        assert label.get_window_extent().x0 >= 0
    saved(ax.figure)


def test_a_row_without_contributions_is_an_intercept():
    ax = plots.waterfall(StumpEnsemble((Member((), ()),), 3), [1.0, 2.0, 3.0])
    assert names(ax) == ["intercept", "score"]
    assert widths(ax) == [0.0]
    saved(ax.figure)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ([[0.0, 1.0], [1.0, 2.0]], {}, "row must be one row of a table; got shape \\(2, 2\\)"),
        ([0.0], {}, "X has 1 features"),
        (3.0, {}, "row must be one row of a table; got shape"),
        ([0.0, 1.0], {"label": 5}, "label must be 1"),
        ([0.0, 1.0], {"n_features": 0}, "n_features must be at least 1"),
        ([0.0, 1.0], {"groups": {"a": {}}}, "groups\\['a'\\] is empty"),
    ],
)
def test_nonsense_is_refused(row, options, message):
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.2),), (1.0,)),), 2)
    with pytest.raises((ValueError, TypeError), match=message):
        plots.waterfall(model, row, **options)


def test_bars_meet_at_their_ends():
    model = StumpEnsemble((made_up(np.random.default_rng(4), 30, 5, exact=1.0),), 5)
    ax = plots.waterfall(model, np.zeros(5))
    found = bars(ax, "contribution")
    for one, below in itertools.pairwise(found):
        assert one.get_x() + one.get_width() == below.get_x()
    assert [bar.get_y() for bar in found] == sorted(bar.get_y() for bar in found)
