"""The summary of `gpustump train` says how good the model is, how sure that is, what is easy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from command import command_fixture  # noqa: F401
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble
from gpustump.cli.columns.training import Part
from gpustump.cli.summary.held_out import ScoredPart, about_held_out

SHARES = "the classes' shares alone give"


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"\d+\.\d+", text)]


def held_out(y, seed: int = 0) -> np.ndarray:
    return np.sort(
        train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)[1]
    )


def table(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels that are hard to predict, and weights."""
    random = np.random.default_rng(n_classes)
    X = random.normal(size=(300, 3))
    score = X[:, 0] + random.normal(size=300)
    y = np.digitize(score, np.linspace(-0.2, 1.5, n_classes + 1)[1:-1])
    return X, y, random.exponential(size=300)


def brier(y, probabilities, **weighted) -> float:
    """The mean squared error of the second class's probability, or of all added up."""
    counted = [1] if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    return sum(brier_score_loss(y == k, probabilities[:, k], **weighted) for k in counted)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_states_scikit_learns_figures_and_those_that_shares_alone_give(
    command, n_classes, is_weighted
):
    X, y, weights = table(n_classes)
    options = ("--weight", "w") if is_weighted else ()
    asked = ("--target", "y", "--loss", "exponential")
    np.savez("t.npz", X=X, y=y, **({"w": weights} if is_weighted else {}))
    outcome = command.succeeds("train", "t.npz", *asked, "--rounds", 20, *options)
    rows = held_out(y)
    X, y, w = X[rows], y[rows], weights[rows] if is_weighted else None
    model = StumpEnsemble.load("model.json")
    probabilities = model.predict_proba(X)
    dummy = DummyClassifier(strategy="prior").fit(X, y, w)
    shares = np.broadcast_to(dummy.class_prior_, probabilities.shape)
    accuracy = accuracy_score(y, model.predict(X), sample_weight=w)
    n_rows = len(y) if w is None else w.sum() ** 2 / (w**2).sum()
    first, *more = numbers(outcome.row("held-out accuracy"))
    assert first == pytest.approx(accuracy, abs=1e-4)
    assert more[0] < first < more[1]
    if w is None:
        right = round(accuracy * n_rows)
        interval = binomtest(right, n_rows).proportion_ci(method="wilson")
        assert more[:2] == pytest.approx(list(interval), abs=1e-4)
        assert "(95%: " in outcome.row("held-out accuracy")
    else:
        assert outcome.row("held-out accuracy").endswith(f"weighted: worth {n_rows:.1f} rows")
    largest = f"the largest class has {dummy.class_prior_.max():.4f}"
    assert largest in " ".join(outcome.out.split())
    for name, loss in (("log-loss", log_loss), ("Brier", brier)):
        row = outcome.row(f"held-out {name}")
        wanted = [loss(y, own, sample_weight=w) for own in (probabilities, shares)]
        assert numbers(row) == pytest.approx(wanted, abs=1e-4)
        assert SHARES in row
        assert (", weighted" in row) is is_weighted
    assert max(len(line) for line in outcome.out.splitlines() if "digest" not in line) <= 80


@pytest.mark.parametrize("weights", [None, np.asarray([1.0, 2.0, 3.0, 1e300])])
def test_the_log_loss_is_finite_though_the_probability_of_what_happened_is_0(weights):
    model = StumpEnsemble((Member((Stump(0, 0.5, -1, 1, 0.1),), (400.0,)),), 1, ("no", "yes"))
    X = np.asarray([[0.0], [1.0], [1.0], [0.0]])
    part = Part(X, np.arange(4), np.asarray(["no", "yes", "no", "no"]), weights)
    assert model.predict_proba(X)[2, 0] == 0.0
    found = dict(about_held_out(model, ScoredPart.of(model, part), "exponential"))
    expected = 800 / 4 if weights is None else 800 * 3 / 1e300
    assert numbers(found["held-out log-loss"])[0] == pytest.approx(expected, abs=1e-4)


def test_rows_of_one_heavy_class_have_figures(command):
    x = np.arange(40.0)
    y = (x > 19).astype(int)
    np.savez(
        "t.npz",
        X=x[:, None],
        y=y,
        w=np.where(np.isin(np.arange(40), held_out(y)) & (y == 0), 0.0, 1.0),
    )
    outcome = command.succeeds("train", "t.npz", "--target", "y", "--weight", "w", "--rounds", 3)
    assert "the largest class has 1.0000" in outcome.out
    assert numbers(outcome.row("held-out Brier"))[1] == 0.0
    assert outcome.row("held-out log-loss").endswith(" give 0.0000")
    assert "ROC" not in outcome.out


def test_rounds_of_several_classes_are_counted_before_it_is_said_why_some_ended(command):
    X = np.repeat(np.arange(4.0), 20)[:, None]  # the outer classes have stumps without error
    y = np.repeat(["a", "b", "c", "d"], 20)
    X[21] = 2.0  # one of class b among those of class c
    np.savez("steps.npz", X=X, y=y)
    outcome = command.succeeds("train", "steps.npz", "--target", "y", "--rounds", 5)
    assert outcome.row("rounds") == (
        "12 of 20, over 4 classes: a stump without error ended it (2 classes)"
    )


def test_the_mean_area_says_how_many_of_the_classes_it_is_over():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(60, 1)), np.repeat(["a", "b", "c"], 20)
    model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
    for rows, said in ((np.arange(60), "mean over 3"), (np.arange(40), "mean over 2 of 3")):
        part = Part(X, rows, y[rows], None)
        found = dict(about_held_out(model, ScoredPart.of(model, part), "exponential"))
        assert found["held-out ROC AUC"].endswith(said)


@pytest.mark.filterwarnings("default")
def test_a_value_missing_in_held_out_rows_alone_is_said_to_be_there(command):
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    X[held_out(y)[0], 0] = np.nan
    np.savez("gap.npz", X=X, y=y)
    options = ("--target", "y", "--rounds", 5)
    outcome = command("train", "gap.npz", *options)
    assert outcome.code == 0
    assert outcome.err.count("missing in features where none was missing in training") == 1
    assert "gpustump: in the held-out rows, values are missing in features" in outcome.err


def test_values_of_a_text_column_are_listed_whole_as_far_as_there_is_room(command):
    pytest.importorskip("polars")
    makers = ["AGUSTA SPA", "AIRBUS", "AIRBUS INDUSTRIE", "AMERICAN AIRCRAFT INC", "AVIAT"]
    rows = "".join(f"{makers[k % 5]},{'x' * 70},{k % 2}\n" for k in range(20))
    (command.folder / "planes.csv").write_text("maker,note,y\n" + rows)
    outcome = command.succeeds("train", "planes.csv", "--target", "y", "--rounds", 3)
    assert outcome.row("encoded") == (
        "maker: text, 5 features: AGUSTA SPA, AIRBUS, AIRBUS INDUSTRIE and 2 more"
    )
    (note,) = re.findall("note: text, 1 feature: (.*)", outcome.out)
    assert re.fullmatch(r"x+\.\.\.x+", note)
    assert len(note) <= 40
