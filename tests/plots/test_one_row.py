"""An explanation has a bar from 0 for each term, and the bars add up to the row's score."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from drawn import bars, labels, overlaps, saved, texts, title
from made_up_models import member as made_up
from made_up_models import region_model, rows

from gpustump import (
    LogitBoostClassifier,
    Member,
    Stump,
    StumpBoostingRegressor,
    StumpEnsemble,
    plots,
)
from gpustump.model.encoding import Encoding, InputColumn

TABLE = np.random.default_rng(6).normal(size=(60, 3))
COUNTS = np.round(np.exp(TABLE[:, 0] + 1.0))
CLASSES = np.where(TABLE[:, 1] > 0.2, "yes", "no")
LETTERS = np.asarray(list("abc"))[np.searchsorted([-0.5, 0.5], TABLE[:, 2])]


def widths(ax) -> list[float]:
    return [bar.get_width() for bar in bars(ax, "contribution")]


@pytest.mark.parametrize("n_features", [1, 30])
def test_the_bars_begin_at_0_and_add_up_to_the_score_bit_for_bit(n_features):
    random = np.random.default_rng(3)
    members = tuple(made_up(random, 60, 8, exact=1.0) for _ in range(3))
    models = [StumpEnsemble(members[:1], 8), StumpEnsemble(members, 8, classes=("a", "b", "c"))]
    models.append(region_model(random, 20, 8, 3, shared=True, link="softmax"))
    for model in models:
        for row in rows(random, 2, 8, "float64"):
            scores = np.ravel(model.decision_function(row[None]))
            for number, label in enumerate([None] if model.is_binary else model.classes):
                ax = plots.explanation(model, row, n_features=n_features, label=label)
                assert sum(widths(ax)) == sum(widths(ax)[::-1]) == scores[number]
                assert {bar.get_x() for bar in bars(ax, "contribution")} == {0.0}
    ax = plots.explanation(model, row)  # of several classes the one predicted
    number = model.classes.index(model.predict(row[None])[0])
    assert sum(widths(ax)) == scores[number]
    share = model.predict_proba(row[None]).max()
    assert f"probability {share:.3f}" in title(ax).replace("\n", " ") or share > 0.999


def test_the_largest_contributions_stand_first_and_the_intercept_and_the_score_last():
    random = np.random.default_rng(1)
    model = StumpEnsemble((made_up(random, 200, 12, exact=1.0),), 12)
    row = random.normal(size=12)
    *parts, intercept = model.explain(row[None])[0].tolist()
    order = sorted(range(12), key=lambda j: -abs(parts[j]))
    ax = plots.explanation(model, row, n_features=4)
    rest = sum(parts[j] for j in order[4:])
    assert widths(ax) == [*(parts[j] for j in order[:4]), rest, intercept]
    shown = [f"feature {j} = {row[j]:.4g}".replace("-", "−") for j in order[:4]]
    assert labels(ax.yaxis) == [*shown, "8 other features", "intercept", "score"]
    # A sum of one feature is no shorter than the feature itself.
    assert "other" not in "".join(labels(plots.explanation(model, row, n_features=11).yaxis))
    (score,) = model.decision_function(row[None])
    assert texts(ax).split("\n")[-1] == f"{score:+.3g}".replace("-", "−")


def test_values_stand_beside_names_as_people_write_them():
    stumps = tuple(Stump(j, 0.0, 1, -1, 0.2) for j in range(4))
    model = StumpEnsemble(
        (Member(stumps, (4.0, 3.0, 2.0, 1.0)),),
        5,
        feature_names=("year", "gap", "share", "total", "unused"),
    )
    ax = plots.explanation(model, [1998.0, math.nan, -0.123456, 1.5e9, 7.0])
    shown = ["year = 1998", "gap = missing", "share = −0.1235", "total = 1.5e+09"]
    assert labels(ax.yaxis)[:-2] == shown
    assert widths(ax) == [-4.0, -3.0, 2.0, -1.0, 0.0]
    assert texts(ax).split("\n") == ["−4", "−3", "+2", "−1", "0", "−6"]
    for seconds, text in ((2185.602797, "0:36:26"), (0.25, "0.25 s"), (2e5, "2 days, 7:33:20")):
        details = {
            "encoding": Encoding((InputColumn("when", 0, "duration"),), 1, True).as_details()
        }
        one = StumpEnsemble(
            (Member(stumps[:1], (1.0,)),), 1, feature_names=("when",), details=details
        )
        assert f"when = {text}" in labels(plots.explanation(one, [seconds]).yaxis)


def test_rows_of_every_kind_are_drawn_alike(binary, cancer):
    X, model = cancer[0], binary.model_
    expected = widths(plots.explanation(model, X.to_numpy()[5]))
    assert sum(expected) == model.decision_function(X.to_numpy())[5]
    for given in (binary, model):
        for row in (X.iloc[[5]], X.iloc[5], X.iloc[5][::-1]):
            assert widths(plots.explanation(given, row)) == expected
    assert widths(plots.explanation(model, X.to_numpy()[5:6].tolist())) == expected
    X = np.where(TABLE > 0.3, TABLE, 0.0)
    model = LogitBoostClassifier(n_estimators=9).fit(X, CLASSES)
    for row in (scipy.sparse.csr_array(X)[0], scipy.sparse.csr_matrix(X)[0]):
        assert widths(plots.explanation(model, row)) == widths(plots.explanation(model, X[0]))


def test_a_column_of_text_has_one_bar_with_its_value():
    stumps = tuple(Stump(j, 0.5, 1, missing, 0.2) for j, missing in ((0, 1), (1, 1), (2, -1)))
    colour = InputColumn("colour", 1, "category", ("red", "blue"))
    details = {"encoding": Encoding((InputColumn("size", 0, "number"), colour), 2, True)}
    details = {name: own.as_details() for name, own in details.items()}
    model = StumpEnsemble((Member(stumps, (1.0, 0.5, 0.25)),), 3, details=details)
    cases = (1, 0, "red"), (0, 1, "blue"), (0, 0, "(other)"), (math.nan, math.nan, "missing")
    for red, blue, text in cases:
        row = np.asarray([[0.0, red, blue]])
        ax = plots.explanation(model, row)
        by_name = dict(zip(labels(ax.yaxis), widths(ax), strict=False))
        assert by_name.get(f"colour = {text}", 0.0) == model.explain(row)[0, 1:3].sum()


def test_texts_keep_apart_and_within_the_picture():
    random = np.random.default_rng(0)
    long = tuple(f"{'a very long name of a column ' * 3}{k} °C α→β $x$" for k in range(40))
    wide = StumpEnsemble((made_up(random, 400, 40, exact=1.0),), 40, feature_names=long)
    stumps = tuple(Stump(j, 0.0, 1, 1, 0.2) for j in range(3))
    tiny = StumpEnsemble((Member(stumps, (2.0**-36, 2.0**-30, 2.0**-33)),), 3)
    huge = StumpEnsemble((Member(stumps, (65_000.0, 2.0**-30, 12_345.678)),), 3)
    labels = ("a class with a very long name", "Grenache noir de Provence", "x")
    soft = region_model(random, 9, 3, 3, shared=True, link="softmax")
    for model, row in (
        (wide, random.normal(size=40)),
        (tiny, [1.0, -1e-300, np.nan]),
        (huge, [-1e300, 1e300, 123_456_789.0]),
        (replace(soft, classes=labels), [1.0, 2.0, 3.0]),
    ):
        ax = plots.explanation(model, row, n_features=25)
        assert overlaps(ax.figure) == []
        box, width = ax.get_tightbbox(), ax.figure.bbox.width
        assert -1 <= box.x0 < box.x1 <= width + 1
        saved(ax.figure)


LOGIT, POISSON = LogitBoostClassifier(n_estimators=5), {"loss": "poisson", "n_estimators": 5}


@pytest.mark.parametrize(
    ("estimator", "y", "what"),
    [
        (LOGIT, CLASSES, {"init_score": -1.5}),
        (LOGIT, LETTERS, {"init_score": [0.5, -1.0, 2.0]}),
        (StumpBoostingRegressor(n_estimators=5), COUNTS, {"init_score": 2.0}),
        (StumpBoostingRegressor(**POISSON), COUNTS, {"exposure": 0.5, "init_score": 0.25}),
    ],
)
def test_what_is_known_of_a_row_has_a_bar_and_the_prediction_is_that_of_predict(estimator, y, what):
    model = estimator.fit(TABLE, y)
    ax = plots.explanation(model, TABLE[4], **what)
    known = {name: np.reshape(own, (1, -1) if np.ndim(own) else -1) for name, own in what.items()}
    drawn = dict(zip(labels(ax.yaxis), widths(ax), strict=False))
    if hasattr(model, "classes_"):
        scores = model.decision_function(TABLE[4:5], **known).ravel()
        label = model.predict(TABLE[4:5], **known)[0]
        assert f"predicted: {label}," in title(ax)
        number = list(model.classes_).index(label)
        score = scores[number] if len(scores) > 1 else scores[0]
        given = np.ravel(what["init_score"])[number if len(scores) > 1 else 0] / 2
    else:
        predicted = model.predict(TABLE[4:5], **known)[0]
        assert title(ax) == f"predicted: {predicted:.4g}"
        score = np.log(predicted) if model.loss == "poisson" else predicted
        given = what.get("init_score", 0.0) + np.log(what.get("exposure", 1.0))
    assert drawn["known beforehand"] == pytest.approx(given, abs=1e-9)
    assert sum(widths(ax)) == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ([[0.0, 1.0], [1.0, 2.0]], {}, "row must be one row of a table; got shape \\(2, 2\\)"),
        ([0.0], {}, "X has 1 features"),
        (3.0, {}, "row must be one row of a table; got shape"),
        ([0.0, 1.0], {"label": 5}, "label must be 1"),
        ("no row", {"n_features": 0}, "n_features must be at least 1"),
        ([0.0, 1.0], {"exposure": 2.0}, "exposure is for counts"),
        ([0.0, 1.0], {"init_score": math.nan}, "init_score must be finite"),
    ],
)
def test_nonsense_is_refused(row, options, message):
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.2),), (1.0,)),), 2)
    with pytest.raises((ValueError, TypeError), match=message):
        plots.explanation(model, row, **options)
