"""`gpustump train`: the same model from every format, and a summary whose figures are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from classifiers import drawn
from command import command_fixture, numbers, parts  # noqa: F401
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble
from gpustump.cli.columns.training import TrainingData
from gpustump.cli.read.files import read_table
from gpustump.cli.summary.held_out import ScoredPart, about_held_out
from gpustump.engines import announcements


def library_model(X, y, *, share: bool = True, weights=None, **options) -> StumpEnsemble:
    """The model that the library trains on the rows that the command trains on."""
    rows = parts(len(y), y)[0] if share else np.arange(len(y))
    classifier = AdaBoostClassifier(**{"n_estimators": 100, "device": "cpu"} | options)
    return classifier.fit(X[rows], y[rows], None if weights is None else weights[rows]).model_


def test_without_data_it_trains_on_the_breast_cancer_data(command):
    outcome = command.succeeds("train")
    data = load_breast_cancer()
    model = StumpEnsemble.load("model.json")
    labels = data.target_names[data.target].astype(str)
    assert model.digest() == library_model(data.data, labels).digest() == outcome.row("digest")
    assert model.classes == ("benign", "malignant")
    assert model.feature_names == tuple(data.feature_names)
    assert outcome.row("rows") == "569: 455 to train on, 114 held out"
    assert outcome.row("classes") == "2: benign 62.7%, malignant 37.3%"
    listeners = announcements.listeners[:]
    assert command.succeeds("train", "--quiet", "--rounds", 3, "--seed", 5).out == ""
    assert announcements.listeners == listeners != []
    details = StumpEnsemble.load("model.json").details
    assert details["target"] == "diagnosis"
    assert len(details["encoding"]["columns"]) == 30
    assert details["training"] == {"test_size": 0.2, "seed": 5}
    assert details["estimator"] == {  # nothing of the machine
        "name": "AdaBoostClassifier",
        "parameters": {"n_estimators": 3},
        "dtype": "float64",
    }


def test_text_and_arrays_of_the_same_numbers_give_the_librarys_model(command):
    polars = pytest.importorskip("polars")
    X, y = drawn(4, n_samples=200)
    names = [f"x{j}" for j in range(X.shape[1])]
    polars.DataFrame(X, schema=names).with_columns(label=y).write_csv("table.csv")
    np.save("table.npy", np.column_stack([X, y]))
    np.savez("table.npz", X=X, label=y, names=names)
    np.savez_compressed("packed.npz", table=X, label=y.astype(np.uint8).reshape(-1, 1))
    wanted = library_model(X, y, n_estimators=20).digest()
    for name in ("table.csv", "table.npy", "table.npz", "packed.npz"):
        target = "-1" if name == "table.npy" else "label"
        options = ("--target", target, "--loss", "exponential", "--rounds", 20)
        assert command.succeeds("train", name, *options).row("digest") == wanted
    mapped = read_table("table.npy").matrix
    assert isinstance(mapped.base, np.memmap) or isinstance(mapped.base.base, np.memmap)
    outcome = command.succeeds("train", "table.npz", *options, "--test-size", 0)
    assert outcome.row("digest") == library_model(X, y, share=False, n_estimators=20).digest()
    assert outcome.row("rows") == "200"
    assert "held-out" not in outcome.out


def test_weights_are_used_and_are_no_feature(command):
    X, y = drawn(n_samples=200)
    weights = np.random.default_rng(2).integers(0, 4, size=len(y)).astype(float)
    np.savez("table.npz", X=X.astype(">f8"), y=y.astype(">i4"), w=weights)
    np.save("table.npy", np.column_stack([weights, X, y]))
    expected = library_model(X, y, weights=weights).digest()
    assert expected != library_model(X, y).digest()
    for options in (
        ("table.npz", "--target", "y", "--weight", "w"),
        ("table.npy", "--target", "-1", "--weight", "0"),
    ):
        outcome = command.succeeds("train", *options)
        assert outcome.row("digest") == expected
        assert outcome.row("features") == "4"
        assert ", weighted: worth " in outcome.row("held-out accuracy")


def test_dropped_columns_are_left_out(command):
    X, y = drawn(n_samples=200)
    np.save("table.npy", np.column_stack([X, y]))
    np.savez("named.npz", X=X, y=y, names=["a", "b,c", "d", "e"])
    expected = library_model(X[:, [0, 3]], y).digest()
    for options in (
        ("table.npy", "--target", "-1", "--drop", "1,2"),
        ("table.npy", "--target", "4", "--drop=-4", "--drop=-3"),
        ("named.npz", "--target", "y", "--drop", "b,c", "--drop", "d"),
    ):
        assert command.succeeds("train", *options).row("digest") == expected
    assert StumpEnsemble.load("model.json").feature_names == ("a", "e")


def test_labels_keep_their_kind_and_whole_floats_become_integers(command):
    X, y = drawn(n_samples=200)
    for labels, classes in (
        (["no", "yes"], ("no", "yes")),
        ([False, True], (False, True)),
        *((np.asarray([3, 8], own), (3, 8)) for own in ("uint8", "float16", "float32", "float64")),
    ):
        np.savez("table.npz", X=X, y=np.asarray(labels)[y])
        command.succeeds("train", "table.npz", "--target", "y", "--rounds", 3)
        found = StumpEnsemble.load("model.json").classes
        assert found == classes
        assert list(map(type, found)) == list(map(type, classes))
    for dtype in ("float16", "float32", "float64"):
        np.savez("table.npz", X=X, y=np.where(y == 1, np.inf, 0.0).astype(dtype))
        message = command.refuses("train", "table.npz", "--target", "y", "-o", "new.json")
        assert "y contains infinity" in message


def test_text_becomes_one_feature_a_value_and_the_report_names_it(command):
    polars = pytest.importorskip("polars")
    colours = [None, "red", "blue", "red", "green"] * 8
    labels = ["b", "a", "b", "a", "b"] * 8
    frame = polars.DataFrame({"colour": colours, "n": list(range(40)), "label": labels})
    digests = set()
    for dtype in (polars.String, polars.Categorical, polars.Enum(["red", "green", "blue"])):
        frame.with_columns(polars.col("colour").cast(dtype)).write_parquet("table.parquet")
        outcome = command.succeeds("train", "table.parquet", "--target", "label")
        digests.add(outcome.row("digest"))
        assert outcome.row("encoded") == "colour: text, 3 features: blue, green, red"
    model = StumpEnsemble.load("model.json")
    assert model.feature_names == ("colour=blue", "colour=green", "colour=red", "n")
    columns = [
        [np.nan if c is None else float(c == v) for c in colours] for v in ("blue", "green", "red")
    ]
    X = np.column_stack([*columns, np.arange(40.0)])
    assert digests == {library_model(X, np.asarray(labels)).digest()}


def test_rows_without_a_target_are_left_out_if_asked(command):
    polars = pytest.importorskip("polars")
    X, y = drawn(n_samples=200)
    gone = np.arange(len(y)) % 10 == 3
    labels = [None if g else int(label) for g, label in zip(gone, y, strict=True)]
    polars.DataFrame(X, schema=list("abcd")).with_columns(label=polars.Series(labels)).write_csv(
        "table.csv"
    )
    np.save("table.npy", np.column_stack([X, np.where(gone, np.nan, y)]))
    np.savez("table.npz", X=X, label=np.where(gone, np.nan, y))
    expected = library_model(X[~gone], y[~gone]).digest()
    for name, target in (("table.csv", "label"), ("table.npy", "-1"), ("table.npz", "label")):
        message = command.refuses("train", name, "--target", target, "-o", "new.json")
        assert "missing in 20 rows of 200" in message
        assert "--drop-missing-target" in message
        outcome = command.succeeds("train", name, "--target", target, "--drop-missing-target")
        assert outcome.row("digest") == expected
        assert outcome.row("rows").endswith("20 without a target left out")


def test_a_model_is_replaced_but_no_other_file_unless_forced(command):
    command.succeeds("train", "--rounds", 1)
    command.succeeds("train", "--rounds", 2)
    assert StumpEnsemble.load("model.json").n_rounds == 2
    Path("notes.txt").write_text("mine")
    assert "--force" in command.refuses("train", "-o", "notes.txt")
    command.succeeds("train", "--rounds", 1, "-o", "notes.txt", "--force")
    assert StumpEnsemble.load("notes.txt").n_rounds == 1


def test_names_that_no_file_can_hold_are_refused_in_one_line(command):
    X = np.arange(40.0).reshape(20, 2)
    np.savez("table.npz", X=X, y=X[:, 0] > 15, names=np.asarray(["a", "\ud800"]))
    message = command.refuses("train", "table.npz", "--target", "y", "--rounds", 2, "--quiet")
    assert message.startswith("this model cannot be saved: feature_names[1] must be text")


SHARES = "the classes' shares alone give"


def brier(y, probabilities, **weighted) -> float:
    """The mean squared error of the second class's probability, or of all added up."""
    counted = [1] if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    return sum(brier_score_loss(y == k, probabilities[:, k], **weighted) for k in counted)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_states_scikit_learns_figures_and_those_that_shares_alone_give(
    command, n_classes, is_weighted
):
    X, y = drawn(n_classes, n_samples=300)
    weights = np.random.default_rng(1).exponential(size=300)
    options = ("--weight", "w") if is_weighted else ()
    asked = ("--target", "y", "--loss", "exponential")
    np.savez("t.npz", X=X, y=y, **({"w": weights} if is_weighted else {}))
    outcome = command.succeeds("train", "t.npz", *asked, "--rounds", 20, *options)
    rows = parts(len(y), y)[1]
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
    y = np.asarray(["no", "yes", "no", "no"])
    part = ScoredPart.of(model, TrainingData("t", "y", X, y, weights, None, 0), np.arange(4))
    assert model.predict_proba(X)[2, 0] == 0.0
    found = dict(about_held_out(part, "exponential"))
    expected = 800 / 4 if weights is None else 800 * 3 / 1e300
    assert numbers(found["held-out log-loss"])[0] == pytest.approx(expected, abs=1e-4)


def test_a_class_without_weight_is_as_if_it_were_not_there(command):
    X, y = drawn(3, n_samples=200)
    for loss, share in (("exponential", 0.2), ("logistic", 0.2), ("logistic", 0)):
        np.savez("t.npz", X=X, y=y, w=(y != 2).astype(float))
        options = ("--target", "y", "--weight", "w", "--rounds", 3, "--loss", loss)
        outcome = command.succeeds("train", "t.npz", *options, "--test-size", share)
        assert StumpEnsemble.load("model.json").classes == (0, 1)
        assert outcome.out.count("recall") == (2 if share else 0)
    rows, _ = parts(len(y), y)
    np.savez("t.npz", X=X, y=y, w=(y != 2) | ~np.isin(np.arange(len(y)), rows))
    message = command.refuses("train", "t.npz", *options, "-o", "new.json")
    assert message.startswith("the rows of the class 2 that have a weight are all held out; choose")


def test_rounds_of_several_classes_are_counted_before_it_is_said_why_some_ended(command):
    X = np.repeat(np.arange(4.0), 20)[:, None]  # the outer classes have stumps without error
    y = np.repeat(["a", "b", "c", "d"], 20)
    X[21] = 2.0  # one of class b among those of class c
    np.savez("steps.npz", X=X, y=y)
    outcome = command.succeeds("train", "steps.npz", "--target", "y", "--rounds", 5)
    assert outcome.row("rounds") == ("12 of 20, over 4 classes: a stump without error ended it")


def test_a_class_that_no_held_out_row_has_has_no_area():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(60, 1)), np.repeat(["a", "b", "c"], 20)
    model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
    rows = np.arange(40)
    part = ScoredPart.of(model, TrainingData("t", "y", X, y, None, None, 0), rows)
    found = dict(about_held_out(part, "exponential"))
    areas = [
        roc_auc_score(y[rows] == own, model.predict_proba(X[rows])[:, k])
        for k, own in enumerate("ab")
    ]
    text = f"{np.mean(areas):.4f}, one class against the rest, mean"
    assert found["held-out ROC AUC"] == text
