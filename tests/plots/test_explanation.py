"""An explanation has a bar from 0 for each feature, and the bars add up to the row's score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import bars, overlaps, saved, texts, title
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

TABLE = np.random.default_rng(6).normal(size=(60, 3))
COUNTS = np.round(np.exp(TABLE[:, 0] + 1.0))
CLASSES = np.where(TABLE[:, 1] > 0.2, "yes", "no")
LETTERS = np.asarray(list("abc"))[np.searchsorted([-0.5, 0.5], TABLE[:, 2])]


def widths(ax) -> list[float]:
    return [bar.get_width() for bar in bars(ax, "contribution")]


def names(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("n_features", [1, 30])
def test_the_bars_begin_at_0_and_add_up_to_the_score_bit_for_bit(n_features):
    random = np.random.default_rng(3)
    model = StumpEnsemble((made_up(random, 60, 8, exact=1.0),), 8)
    for row in rows(random, 3, 8, "float64"):
        ax = plots.explanation(model, row, n_features=n_features)
        (score,) = model.decision_function(row[None])
        assert sum(widths(ax)) == sum(widths(ax)[::-1]) == score
        assert {bar.get_x() for bar in bars(ax, "contribution")} == {0.0}


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
    assert names(ax) == [*shown, "8 other features", "intercept", "score"]
    (score,) = model.decision_function(row[None])
    assert texts(ax).split("\n")[-1] == f"{score:+.3g}".replace("-", "−")


def test_it_shows_the_numbers_of_the_waterfall():
    random = np.random.default_rng(2)
    model = region_model(random, 30, 5, 3, shared=True, link="softmax")
    groups = {"colour": {"red": 1, "blue": 2}}
    row = [0.3, 1.0, 0.0, np.nan, -2.0]
    for label in (None, 2):
        one = plots.explanation(model, row, groups=groups, label=label)
        other = plots.waterfall(model, row, groups=groups, label=label)
        found = [dict(zip(names(ax), widths(ax), strict=False)) for ax in (one, other)]
        assert found[0] == found[1]
        assert "colour = red" in found[0]
        assert title(one) == title(other)
        whose = other.get_xlabel().partition(",")[0]
        assert one.get_xlabel().startswith(f"contribution to the {whose},")


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


def test_a_class_that_does_not_exist_is_refused_before_the_row_is_read():
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.2),), (1.0,)),), 2)
    with pytest.raises(ValueError, match="label must be 1"):
        plots.explanation(model, "no row", label=5)
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        plots.explanation(model, "no row", n_features=0)


@pytest.mark.parametrize("draw", [plots.explanation, plots.waterfall])
@pytest.mark.parametrize(
    ("estimator", "y", "what"),
    [
        (LogitBoostClassifier(n_estimators=5), CLASSES, {"init_score": -1.5}),
        (LogitBoostClassifier(n_estimators=5), LETTERS, {"init_score": [0.5, -1.0, 2.0]}),
        (StumpBoostingRegressor(n_estimators=5), COUNTS, {"init_score": 2.0}),
        (StumpBoostingRegressor(loss="poisson", n_estimators=5), COUNTS, {"exposure": 3.0}),
        (
            StumpBoostingRegressor(loss="poisson", n_estimators=5),
            COUNTS,
            {"exposure": 0.5, "init_score": 0.25},
        ),
    ],
)
def test_what_is_known_of_a_row_has_a_bar_and_the_prediction_is_that_of_predict(
    draw, estimator, y, what
):
    model = estimator.fit(TABLE, y)
    ax = draw(model, TABLE[4], **what)
    known = {name: np.reshape(own, (1, -1) if np.ndim(own) else -1) for name, own in what.items()}
    drawn = dict(zip(names(ax), widths(ax), strict=False))
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


def test_an_exposure_of_a_class_and_a_known_score_that_is_no_number_are_refused_by_name():
    model = LogitBoostClassifier(n_estimators=5).fit(TABLE, CLASSES)
    with pytest.raises(ValueError, match="exposure is for counts"):
        plots.explanation(model, TABLE[0], exposure=2.0)
    with pytest.raises(ValueError, match="init_score must be finite"):
        plots.waterfall(model, TABLE[0], init_score=np.nan)
