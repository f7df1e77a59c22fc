"""Pictures of a model's quality show scikit-learn's figures, and what guessing would reach."""

from __future__ import annotations

import re

import numpy as np
import pytest
from drawn import drawn, has, legend, overlaps, saved, texts, title
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from gpustump import AdaBoostClassifier, plots
from gpustump.plots.judged import JudgedSamples
from gpustump.theory.proportions import effective_size, wilson_interval

CURVES = (plots.roc_curve, plots.precision_recall_curve, plots.reliability_curve)


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:, :3], np.where(y == 0, "malignant", "benign")
    return AdaBoostClassifier(n_estimators=30, device="cpu").fit(X[::2], y[::2]), X[1::2], y[1::2]


@pytest.fixture(scope="module")
def three():
    X, y = load_wine(return_X_y=True)
    X = X[:, :3]
    return AdaBoostClassifier(n_estimators=10, device="cpu").fit(X[::2], y[::2]), X[1::2], y[1::2]


@pytest.fixture(scope="module")
def ten():
    X, y = load_digits(return_X_y=True)
    return AdaBoostClassifier(n_estimators=5, device="cpu").fit(X[:500], y[:500]), X[500:], y[500:]


def weights_for(y) -> np.ndarray:
    weights = np.random.default_rng(0).exponential(size=len(y))
    weights[::7] = 0.0
    return weights


def figures(ax) -> dict[str, float]:
    """The numbers of the legend by their text."""
    found = [re.match(r"(.*?):? (?:area|average precision|Brier score) ([\d.e-]+)", text)
             for text in legend(ax)]  # fmt: skip
    return {one[1]: float(one[2]) for one in found if one}


@pytest.mark.parametrize("is_weighted", [False, True])
def test_an_roc_curve_is_scikit_learns_with_its_area_and_chance(two, is_weighted):
    clf, X, y = two
    weights = weights_for(y) if is_weighted else None
    ax = plots.roc_curve(clf, X, y, sample_weight=weights)
    is_it, scores = y == "malignant", clf.decision_function(X)
    x, rates, _ = metrics.roc_curve(is_it, scores, sample_weight=weights)
    assert_allclose(drawn(ax, "malignant"), np.c_[x, rates], atol=1e-12)
    area = metrics.roc_auc_score(is_it, scores, sample_weight=weights)
    assert legend(ax) == [f"malignant: area {area:.4g}", "chance: area 0.5", "as predicted"]
    assert drawn(ax, "chance").tolist() == [[0, 0], [1, 1]]
    matrix = metrics.confusion_matrix(y, clf.predict(X), sample_weight=weights)
    rates = matrix[:, 1] / matrix.sum(axis=1)
    assert_allclose(drawn(ax, "malignant as predicted"), [rates])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("false positive rate", "true positive rate")


@pytest.mark.parametrize("is_weighted", [False, True])
def test_precision_over_recall_has_the_average_precision_as_its_area(two, is_weighted):
    clf, X, y = two
    weights = weights_for(y) if is_weighted else None
    ax = plots.precision_recall_curve(clf, X, y, sample_weight=weights)
    is_it, scores = y == "malignant", clf.decision_function(X)
    mean = metrics.average_precision_score(is_it, scores, sample_weight=weights)
    (line,) = [line for line in ax.get_lines() if line.get_gid() == "malignant"]
    assert line.get_drawstyle() == "steps-post"
    recall, precision = line.get_data()
    assert np.sum(-np.diff(recall) * precision[:-1]) == pytest.approx(mean, rel=1e-12)
    share = np.average(is_it, weights=weights)
    assert_allclose(drawn(ax, "chance")[:, 1], share)
    assert legend(ax) == [
        f"malignant: average precision {mean:.4g}",
        f"chance: {share:.4g}, the share of malignant",
        "as predicted",
    ]
    found = drawn(ax, "malignant as predicted")[0]
    given = {"sample_weight": weights, "pos_label": "malignant"}
    right = metrics.recall_score(y, clf.predict(X), **given)
    assert_allclose(found, [right, metrics.precision_score(y, clf.predict(X), **given)])


def test_reliability_is_scikit_learns_calibration_curve(two):
    clf, X, y = two
    is_it, probability = y == "malignant", clf.predict_proba(X)[:, 1]
    for n_bins in (10, 4):
        ax = plots.reliability_curve(clf, X, y, n_bins=n_bins)
        observed, predicted = calibration_curve(is_it, probability, n_bins=n_bins)
        assert_allclose(drawn(ax, "malignant"), np.c_[predicted, observed], atol=1e-12)
        heights, edges, _ = ax.figure.axes[-1].patches[0].get_data()
        counts, _ = np.histogram(probability, edges)
        assert_allclose(heights, counts / len(y))
        assert len(heights) == n_bins
    brier = metrics.brier_score_loss(is_it, probability)
    assert legend(ax) == [f"malignant: Brier score {brier:.4g}", "as often as predicted"]
    assert drawn(ax, "calibrated").tolist() == [[0, 0], [1, 1]]
    ax = plots.reliability_curve(clf, X, y, n_bins=2)
    upper = probability > 0.5
    interval = binomtest(int(is_it[upper].sum()), int(upper.sum())).proportion_ci(method="wilson")
    (bars,) = [c for c in ax.collections if len(c.get_segments()) == 2]
    assert_allclose(bars.get_segments()[1][:, 1], [interval.low, interval.high])


def test_reliability_weighs_the_samples(two):
    clf, X, y = two
    counts = np.random.default_rng(1).integers(0, 4, size=len(y))
    many = np.repeat(np.arange(len(y)), counts)
    one = plots.reliability_curve(clf, X, y, sample_weight=counts)
    other = plots.reliability_curve(clf, X[many], y[many])
    assert_allclose(drawn(one, "malignant"), drawn(other, "malignant"), atol=1e-12)
    assert legend(one) == legend(other)
    heights = [ax.figure.axes[-1].patches[0].get_data().values for ax in (one, other)]
    assert_allclose(*heights)


def test_each_of_three_classes_is_drawn_against_the_rest(three):
    clf, X, y = three
    probabilities = clf.predict_proba(X)
    expected = {
        "roc_curve": lambda k: metrics.roc_auc_score(y == k, probabilities[:, k]),
        "precision_recall_curve": lambda k: metrics.average_precision_score(
            y == k, probabilities[:, k]
        ),
        "reliability_curve": lambda k: metrics.brier_score_loss(y == k, probabilities[:, k]),
    }
    for draw in CURVES:
        found = figures(draw(clf, X, y))
        for k in range(3):
            assert found[f"class {k}"] == pytest.approx(expected[draw.__name__](k), rel=1e-3)
        some = draw(clf, X, y, label=[2, 0])
        assert [has(some, f"class {k}") for k in range(3)] == [True, False, True]
        assert title(some) == "2 of 3 classes, each against the rest"
        one = draw(clf, X, y, label=1)
        assert [has(one, f"class {k}") for k in range(3)] == [False, True, False]
        looks = {
            (line.get_color(), str(line._dash_pattern))
            for line in draw(clf, X, y).get_lines()
            if str(line.get_gid()) in ("class 0", "class 1", "class 2")
        }
        assert len(looks) == 3


def test_of_many_classes_the_most_frequent_are_drawn(ten):
    clf, X, y = ten
    kept = np.isin(y, (0, 1, 2, 3, 4)) | (np.arange(len(y)) % 3 == 0)
    counts = np.bincount(y[kept])
    best = sorted(np.argsort(-counts, kind="stable")[:6].tolist())
    for draw in CURVES:
        ax = draw(clf, X[kept], y[kept])
        assert title(ax) == "6 of 10 classes, each against the rest"
        assert [k for k in range(10) if has(ax, f"class {k}")] == best


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_confusion_matrix_holds_scikit_learns_counts(three, is_weighted):
    clf, X, y = three
    weights = weights_for(y) if is_weighted else None
    ax = plots.confusion_matrix(clf, X, y, sample_weight=weights)
    matrix = metrics.confusion_matrix(y, clf.predict(X), sample_weight=weights)
    assert_allclose(ax.images[0].get_array(), matrix / matrix.sum(axis=1, keepdims=True))
    written = {text.get_gid(): text.get_text() for text in ax.texts}
    for (i, j), value in np.ndenumerate(matrix):
        share = 100 * value / matrix.sum()
        text = f"{share:.{0 if share >= 10 else 1}f} %" if is_weighted else f"{value}"
        assert written[f"{i} {j}"] == (text if value else "")
    accuracy = metrics.accuracy_score(y, clf.predict(X), sample_weight=weights)
    largest = max(np.average(y == k, weights=weights) for k in range(3))
    assert title(ax) == f"accuracy {accuracy:.4g}; the largest class has {largest:.4g}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted class", "true class")


def test_rare_classes_share_a_row_of_a_confusion_matrix(ten):
    clf, X, y = ten
    whole = metrics.confusion_matrix(y, clf.predict(X))
    most = np.sort(np.argsort(-whole.sum(axis=1), kind="stable")[:3])
    rest = np.setdiff1d(np.arange(10), most)
    ax = plots.confusion_matrix(clf, X, y, n_classes=4)
    assert [label.get_text() for label in ax.get_xticklabels()] == [*map(str, most), "7 others"]
    written = {text.get_gid(): text.get_text() for text in ax.texts}
    for i, row in enumerate(most):
        for j, column in enumerate(most):
            assert written[f"{i} {j}"] == (str(whole[row, column]) if whole[row, column] else "")
        beyond = whole[row, rest].sum()
        assert written[f"{i} 3"] == (str(beyond) if beyond else "")
    right = whole[rest, rest].sum()
    wrong = whole[np.ix_(rest, rest)].sum() - right
    assert written["3 3"] == f"{right} right\n{wrong} wrong"


def test_samples_of_one_class_are_drawn_as_far_as_they_go(two, three):
    for clf, X, y in (two, three):
        here = y == y[0]
        for draw in (plots.roc_curve, plots.precision_recall_curve):
            ax = draw(clf, X[here], y[here])
            assert "all samples are of one class" in texts(ax)
        for draw in (plots.reliability_curve, plots.confusion_matrix):
            saved(draw(clf, X[here], y[here]).figure)
    clf, X, y = three
    ax = plots.roc_curve(clf, X[y < 2], y[y < 2])
    assert [has(ax, f"class {k}") for k in range(3)] == [True, True, False]


def test_two_samples_are_enough(two):
    clf, X, y = two
    rows = [int(np.argmax(y == "benign")), int(np.argmax(y == "malignant"))]
    for draw in (*CURVES, plots.confusion_matrix):
        saved(draw(clf, X[rows], y[rows]).figure)


def test_samples_of_weight_zero_take_no_part(two):
    clf, X, y = two
    weights = np.where(np.arange(len(y)) < 40, 1.0, 0.0)
    found = JudgedSamples.of(clf, X, y, weights)
    assert len(found.true) == 40
    assert found.accuracy == pytest.approx(clf.score(X[:40], y[:40]))


def test_texts_keep_apart_whatever_the_names():
    random = np.random.default_rng(0)
    y = np.repeat([f"the class with number {k} and a long name" for k in range(12)], 30)
    X = random.normal(size=(len(y), 2)) + np.repeat(np.arange(12), 30)[:, None]
    clf = AdaBoostClassifier(n_estimators=3, device="cpu").fit(X, y)
    for draw in (*CURVES, plots.confusion_matrix):
        ax = draw(clf, X, y)
        assert overlaps(ax.figure) == []
        found = ax.get_legend().get_window_extent()
        assert found.x1 <= ax.figure.bbox.x1
        assert ax.get_window_extent().width > 0.6 * ax.figure.bbox.width


def test_estimators_take_frames_and_models_take_arrays(two):
    clf, X, y = two
    for draw in CURVES:
        one, other = draw(clf, X, y), draw(clf.model_, X, y)
        assert_array_equal(drawn(one, "malignant"), drawn(other, "malignant"))


def test_wilsons_interval_is_scipys_for_whole_counts():
    for right, n_samples in ((0, 5), (3, 7), (109, 114), (114, 114), (500, 1000), (1, 1)):
        expected = binomtest(right, n_samples).proportion_ci(method="wilson")
        assert_allclose(wilson_interval(right / n_samples, n_samples), expected, atol=1e-12)


def test_the_effective_size_is_that_of_equal_weights_and_never_more():
    assert effective_size(np.full(7, 1e300)) == 7.0
    assert effective_size(np.asarray([3.0, 0.0, 0.0])) == 1.0
    weights = np.random.default_rng(0).exponential(size=100)
    assert effective_size(weights) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert effective_size(weights) < 100


@pytest.mark.parametrize("draw", [*CURVES, plots.confusion_matrix])
def test_nonsense_is_refused(two, three, draw):
    clf, X, y = two
    with pytest.raises(ValueError, match="none of the model's classes"):
        draw(clf, X, np.where(y == "benign", "benign", "other"))
    with pytest.raises(ValueError, match="X has 2 features"):
        draw(clf, X[:, :2], y)
    if draw is plots.confusion_matrix:
        with pytest.raises(ValueError, match="n_classes must be at least 2"):
            draw(clf, X, y, n_classes=1)
    else:
        with pytest.raises(ValueError, match="label must be one of 0, 1, 2"):
            draw(*three, label=[0, 9])
        with pytest.raises(ValueError, match="label must be 'malignant'"):
            draw(clf, X, y, label="benign")
    if draw is plots.reliability_curve:
        with pytest.raises(ValueError, match="n_bins must be at least 1"):
            draw(clf, X, y, n_bins=0)
