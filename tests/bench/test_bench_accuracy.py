"""`python -m bench accuracy`: equal folds for all, held-out scores, means over tables."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from fake_estimators import Slow
from made_up import report, scored, whole_runs
from sklearn.metrics import brier_score_loss, log_loss, mean_gamma_deviance, mean_poisson_deviance

from bench.accuracy import class_scores, estimator, number_scores, on_table, splits
from bench.accuracy_tables import TOGETHER, kinds
from bench.contenders import GROUPS, Contender
from bench.data import MissingDataError
from bench.real_tables import TABLES, Table, encoded
from bench.tables import page

GLASS = {each.name: each for each in GROUPS["glassbox"]}
IRIS = TABLES["iris"]


DRAWN = Table(
    np.random.default_rng(3).standard_normal((60, 4)).astype(np.float32), np.arange(60) % 3
)


def fake(name: str = "noter", kind: str = "Slow", **parameters) -> Contender:
    return Contender(name, ("fake_estimators",), kind, {"n_estimators": 7, **parameters})


def options(**others) -> Namespace:
    given = {"folds": 4, "shuffles": 1, "limit": None, "first": None, "threads": 1, "rounds": 7}
    return Namespace(**{**given, **others})


class Given:
    """Gives what was made beforehand."""

    def __init__(self, given):
        self.given, self.classes_ = given, range(np.shape(given)[-1])

    def predict_proba(self, X):
        return self.given

    def predict(self, X):
        return self.given if np.ndim(self.given) == 1 else self.given.argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    pytest.importorskip("sklearn", "1.7", reason="scikit-learn before 1.7 scores two classes only")
    given = np.random.default_rng(0).dirichlet(np.ones(n_classes), 50)
    test = Table(np.zeros((50, 1)), np.arange(50) % n_classes)
    found = class_scores(Given(given), test)
    certain, one = np.eye(n_classes)[[1]], Table(np.zeros((1, 1)), np.asarray([0]))
    assert class_scores(Given(certain), one)["log_loss"] == -np.log(1e-7)
    with pytest.raises(ValueError, match="probabilities of shape"):
        class_scores(Given(certain * np.nan), one)
    assert found["log_loss"] == pytest.approx(log_loss(test.y, given))
    labels = range(n_classes)
    theirs = brier_score_loss(test.y, given, labels=labels, scale_by_half=False)
    assert found["brier"] == pytest.approx(theirs)
    assert found["error"] == np.mean(given.argmax(axis=1) != test.y)


def test_errors_of_quantities_are_shares_of_those_of_simple_predictions():
    train, test = Table(None, np.asarray([2.5])), Table(None, np.asarray([1.0, 2.0, 6.0]))
    predicted = np.asarray([2.0, 2.0, 4.0])
    error = number_scores(Given(predicted), train, test, "squared_error")["error"]
    assert error == pytest.approx(np.sqrt(5 / 3) / np.std([1, 2, 6]))
    for loss, deviance in (("poisson", mean_poisson_deviance), ("gamma", mean_gamma_deviance)):
        error = number_scores(Given(predicted), train, test, loss)["error"]
        assert error == deviance(test.y, predicted) / deviance(test.y, [2.5] * 3)
    error = number_scores(Given(predicted), train, test, "quantile", 0.9)["error"]
    assert error == pytest.approx((0.1 * 1.0 + 0.9 * 2.0) / (0.1 * (1.5 + 0.5) + 0.9 * 3.5))


def test_each_sample_is_held_out_once_in_every_shuffle_and_classes_are_shared_out():
    classes = DRAWN.y
    for y in (classes, np.arange(60.0)):
        first, second = np.split(np.asarray([*splits(y, 3, 2)]), 2)
        assert (first.sum(axis=0) == 1).all()
        assert (second.sum(axis=0) == 1).all()
        assert not np.array_equal(first, second)
    *_, held_out = splits(classes, 3, 2)
    assert {*np.bincount(classes[held_out])} <= {6, 7}


def test_all_contenders_are_given_the_same_samples_in_every_fold():
    Slow.fitted.clear()
    found = on_table(IRIS, DRAWN, [fake("a"), fake("b")], options())
    assert Slow.fitted[::2] == Slow.fitted[1::2]
    assert len(set(Slow.fitted)) == 4
    for own in found:
        assert own.values["error"] == pytest.approx([2 / 3] * 4)
        assert own.values["log_loss"] == pytest.approx([np.log(3)] * 4)
        assert own.facts["classes"] == [20, 20, 20]


@pytest.mark.parametrize(
    ("how", "n_folds"),
    [({"limit": 0.01}, 4), ({"limit": 0.9}, 5), ({}, 8), ({"first": 2}, 2)],
)
def test_a_table_ends_for_all_once_one_has_used_its_time_and_each_sample_was_held_out(how, n_folds):
    who = [fake(), fake("slow", preparing=0.2), fake("refuser", "Refuser")]
    found = on_table(IRIS, DRAWN, who, options(shuffles=2, **how))
    reason = "ValueError: no such data, please"
    done = [(own.contender, own.n_turns, own.reason) for own in found]
    assert done == [("noter", n_folds, None), ("slow", n_folds, None), ("refuser", 0, reason)]


@pytest.mark.parametrize("name", ["gpustump", "LightGBM", "scikit-learn"])
def test_contenders_learn_each_of_the_quantiles(name):
    (contender,) = (own for own in GROUPS["quantiles"] if own.name == f"{name} stumps")
    pytest.importorskip(contender.needs[0], reason=f"{name} is not installed")
    X = np.random.default_rng(0).random((400, 2)).astype(np.float32)
    y = 1.0 + X[:, 0] * np.random.default_rng(1).random(400)
    for level in (0.1, 0.5, 0.9):
        model = estimator(contender, None, 1, "quantile", level).fit(X, y)
        assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.05)
    table = Table(X, y)
    (found,) = on_table(replace(IRIS, kind="quantiles"), table, [contender], options(first=1))
    assert (found.case, found.reason) == ("quantiles of quantities", None)
    assert 0.3 < found.values["error"][0] < 0.95


OURS = [own for group in ("rounds", "glassbox") for own in GROUPS[group] if "gpustump" in own.name]


@pytest.mark.parametrize("contender", [pytest.param(own, id=own.name) for own in OURS])
def test_what_a_fold_measures_is_measured_of_each_of_our_own_models(contender):
    (found,) = on_table(IRIS, Table(*IRIS.read()), [contender], options(first=1))
    assert found.reason is None
    assert {*found.values} >= {"error", "log_loss", "fit", "cpu", "predict"}


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # new in LightGBM 4.7
@pytest.mark.parametrize("name", ["gpustump", "LightGBM", "XGBoost", "scikit-learn"])
def test_contenders_stop_early_and_learn_by_the_loss_they_are_given(name):
    contender = GLASS[f"{name} stumps"]
    pytest.importorskip(contender.needs[0], reason=f"{name} is not installed")
    X, y = IRIS.read()
    model = estimator(contender, None, 1, "").fit(X[::2], y[::2])
    inner = getattr(model, "estimator", model)
    counts = ("best_iteration_", "n_iter_", "best_iteration")
    assert 5 < next(getattr(inner, own) for own in counts if hasattr(inner, own)) < 2999
    assert np.mean(model.predict_proba(X[1::2]).argmax(axis=1) == y[1::2]) > 0.9
    table = Table(X, np.exp(X[:, 0].astype(np.float64) - 4.0).round() + 1.0)
    for loss in ("squared_error", "poisson", "gamma"):
        model = estimator(contender, None, 1, loss).fit(table.X, table.y)
        assert number_scores(model, table, table, loss)["error"] < 0.7, loss


LARGE = {"flights", "lending_club", "mushroom", "splice"}
"""Tables that take as long to read as all others together."""


@pytest.mark.parametrize("name", [*map(whole_runs(*TABLES.keys() - LARGE), TABLES)])
def test_every_table_is_of_its_kind_and_no_feature_tells_the_answer(name):
    source = TABLES[name]
    try:
        X, y = source.read()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert not np.isinf(X).any()
    assert 150 <= len(X) == len(y) <= 20_000
    if source.loss:
        assert np.isfinite(y).all()
        assert source.kind != "counts" or np.array_equal(y, np.round(np.abs(y)))
        assert source.kind != "costs" or (y > 0).all()
        told = [abs(np.corrcoef(np.nan_to_num(x), y)[0, 1]) for x in X.T if x.std() > 0]
        assert max(told) < 0.99
        return
    assert y.dtype == np.int64
    assert (y.max() == 1) == (source.kind == "two")
    assert np.bincount(y).min() >= 5  # one for each fold
    most = max(0.995, np.bincount(y).max() / len(y))
    for column in X.T:
        values, places = np.unique_inverse(column)
        if len(values) <= y.max() + 1:
            pairs, counts = np.unique(np.stack([places, y]), axis=1, return_counts=True)
            best = [counts[pairs[0] == place].max() for place in range(len(values))]
            assert sum(best) <= most * len(y)


def test_text_becomes_one_feature_for_each_value_and_missing_answers_are_left_out():
    columns = {"row": [1, 2, 3, 4], "colour": ["red", None, "blue", "red"]}
    columns |= {"size": [1.5, np.nan, 2.5, 3.5], "answer": ["yes", "no", "no", None]}
    frame = pytest.importorskip("pandas").DataFrame(columns)
    X, y = encoded(frame, "answer", ["row"])
    assert np.array_equal(X, [[1.5, 0, 1], [np.nan, 0, 0], [2.5, 1, 0]], equal_nan=True)
    assert y.tolist() == [1, 0, 0]


def example():
    """Two tables of two classes, one of three; an EBM; someone who failed."""
    more = "more than two classes"
    return report(
        "accuracy",
        scored("a", "first", error=[0.1, 0.2], log_loss=[0.2, 0.4], fit=[0.5, 1.5]),
        scored("interpret EBM", "first", error=[0.1, 0.1], log_loss=[0.5, 0.5], fit=[4.0, 4.0]),
        scored("a", "second", error=[0.02], log_loss=[0.3], fit=[1.0]),
        scored("interpret EBM", "second", error=[0.03], log_loss=[0.3], fit=[1.0]),
        scored("lost", "first", reason="TypeError: no such thing"),
        scored("a", "third", more, error=[0.5], log_loss=[0.7], fit=[1.0]),
    )


def test_means_ranks_and_ratios_are_over_the_tables_that_all_did():
    together, two, _ = kinds(example())
    assert together.title == TOGETHER
    assert together.n_common == two.n_common == 2
    assert two.means("error") == pytest.approx({"a": 0.085, "interpret EBM": 0.065})
    log_loss_score = two.scores[1]
    assert two.ranks(log_loss_score) == {"a": 1.25, "interpret EBM": 1.75}
    assert two.ratios("fit")["a"] == pytest.approx((0.5, 1.0))  # the root of 1/4 * 1
    assert "**Error, %, two classes**" not in page(example(), only_means=True)
