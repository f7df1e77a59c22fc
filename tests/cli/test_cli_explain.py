"""`gpustump explain`: contributions as a file, in digits that add up to the score exactly, and
single rows in words and bars."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, read_csv  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from gpustump import LogitBoostClassifier, Member, Split, StumpEnsemble
from gpustump.cli.summary.row import WIDTH, bars
from gpustump.cli.wording import told_apart
from gpustump.model.members import RegionMember

UNITS = 2.0**-36


@pytest.fixture
def cancer(command):
    """A model with names, and its table as an array."""
    command.succeeds("train", "--rounds", 60, "--quiet")
    X = load_breast_cancer().data
    np.save("table.npy", X)
    return X


def three_classes() -> StumpEnsemble:
    """Three classes that share two splits."""
    random = np.random.default_rng(0)
    splits = (Split(0, 0.5), Split(1, 0.5))
    votes = np.rint(random.normal(size=(2, 3, 3)) / UNITS) * UNITS
    member = RegionMember(splits, votes, np.zeros(3))
    model = StumpEnsemble((member,), 2, classes=("ash", "elm", "oak"), link="softmax")
    model.save("three.json")
    np.save("pair.npy", np.asarray([[0.0, 1.0], [1.0, 0.0], [np.nan, 1.0]]))
    return model


def contributions(name: str) -> tuple[list[str], np.ndarray]:
    header, rows = read_csv(Path(name).read_text())
    return header, np.asarray(rows, dtype=np.float64)


def test_every_format_holds_the_librarys_contributions_and_their_exact_sum(
    command, cancer, monkeypatch
):
    polars = pytest.importorskip("polars")
    for name in ("out.csv", "out.parquet", "out.npz"):
        command.succeeds("explain", "model.json", "table.npy", "-o", name)
    header, rows = contributions("out.csv")
    model = StumpEnsemble.load("model.json")
    assert header == [*model.feature_names, "(intercept)", "(score)"]
    assert np.array_equal(rows[:, :-1], model.explain(cancer))
    assert np.array_equal(rows[:, -1], model.decision_function(cancer))
    for order in (slice(None), slice(None, None, -1)):
        sums = [list(itertools.accumulate(row[:-1][order]))[-1] for row in rows.tolist()]
        assert sums == rows[:, -1].tolist()
    frame = polars.read_parquet("out.parquet")
    assert frame.columns == header
    assert np.array_equal(frame.to_numpy(), rows)
    with np.load("out.npz") as arrays:
        assert np.array_equal(arrays["contributions"], rows[:, :-1])
        assert np.array_equal(arrays["score"], rows[:, -1])
        assert arrays["features"].tolist() == header[:-1]
        assert arrays["classes"].tolist() == ["benign", "malignant"]
    monkeypatch.setattr("gpustump.cli.write.results.BLOCK_CELLS", 1000)  # without a seam
    command.succeeds("explain", "model.json", "table.npy", "-o", "parts.csv")
    assert command.files()["out.csv"] == command.files()["parts.csv"]


def test_with_more_classes_columns_are_named_by_class_and_feature(command):
    model, rows = three_classes(), np.load("pair.npy")
    command.succeeds("explain", "three.json", "pair.npy", "-o", "out.csv")
    command.succeeds("explain", "three.json", "pair.npy", "-o", "out.npz")
    header, found = contributions("out.csv")
    parts = ("column 0", "column 1", "(intercept)", "(score)")
    assert header == [f"{label}: {part}" for label in model.classes for part in parts]
    by_class = found.reshape(3, 3, 4)
    assert np.array_equal(by_class[:, :, :-1], model.explain(rows))
    assert np.array_equal(by_class[:, :, -1], model.decision_function(rows))
    with np.load("out.npz") as arrays:
        assert np.array_equal(arrays["contributions"], model.explain(rows))


def test_names_that_meet_are_told_apart(command):
    polars = pytest.importorskip("polars")
    x = np.arange(20.0)
    frame = polars.DataFrame({"(score)": x, "a": x % 7, "y": (x > 9).astype(int)})
    frame.write_csv("t.csv")
    command.succeeds("train", "t.csv", "--target", "y", "--quiet")
    command.succeeds("explain", "model.json", "t.csv", "-o", "out.parquet")
    columns = polars.read_parquet("out.parquet").columns
    assert columns == ["(score)", "a", "(intercept)", "(score) (2)"]
    assert told_apart(["a", "a (2)", "a"], "{} ({})") == ["a", "a (2)", "a (3)"]
    assert told_apart(["a", "a", "a (2)"], "{} ({})") == ["a", "a (3)", "a (2)"]


def table(out: str) -> dict[str, float]:
    """What each line adds, in order, by its first words; the score is the last."""
    head, *lines = out.split("\n\n")[1].splitlines()
    end = head.index("adds") + len("adds")
    lines = [line[:end] for line in lines if not line.startswith(" ") and "add" not in line]
    return {line.split("  ")[0]: float(line.split()[-1]) for line in lines}


def test_lines_hold_the_librarys_contributions_the_largest_first(command, cancer):
    model = StumpEnsemble.load("model.json")
    *parts, intercept = model.explain(cancer[6:7])[0].tolist()
    order = [j for j in sorted(range(30), key=lambda j: -abs(parts[j])) if parts[j]]
    outcome = command.succeeds("explain", "model.json", "table.npy", "--row", 7, "--top", 99)
    found = table(outcome.out)
    expected = {model.feature_names[j]: parts[j] for j in order}
    expected |= {"(intercept)": intercept, "score": model.decision_function(cancer[6:7])[0]}
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, abs=0.0005)
    assert outcome.row("row") == "7 of 569 in table.npy"
    assert outcome.row("predicted") == model.predict(cancer[6:7])[0]


def test_of_several_classes_the_predicted_one_is_explained_unless_one_is_named(command):
    model = three_classes()
    rows = np.load("pair.npy")
    for number, row in enumerate(rows[:2], 1):
        scores = model.decision_function(row[None])[0]
        outcome = command.succeeds("explain", "three.json", "pair.npy", "--row", number)
        assert table(outcome.out)["score"] == pytest.approx(scores.max(), abs=0.0005)
        best = model.classes[int(scores.argmax())]
        shares = sorted(zip(model.predict_proba(row[None])[0], model.classes, strict=True))[::-1]
        texts = [f"{label} {share:.4f}" for share, label in shares]
        assert outcome.row("probabilities") == ", ".join(texts)
        assert outcome.row("score of").startswith(f"{best}, half the log-probability")
        named = command.succeeds(
            *("explain", "three.json", "pair.npy", "--row", number, "--class", "elm")
        )
        assert table(named.out)["score"] == pytest.approx(scores[1], abs=0.0005)
        assert named.row("predicted") == best
    row = ("explain", "three.json", "pair.npy", "--row", 2)
    both = command.succeeds(*row, "--row", 1).out
    assert both == f"{command.succeeds(*row).out}\n\n{command.succeeds(*row[:-1], 1).out}"


def test_of_a_bagged_model_the_spread_of_its_bags_stands_beside(command):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    options = {"n_estimators": 20, "n_bags": 3, "random_state": 0, "device": "cpu"}
    model = LogitBoostClassifier(**options).fit(X, y).model_
    model.save("model.json")
    np.save("table.npy", X)
    outcome = command.succeeds("explain", "model.json", "table.npy", "--row", 1, "--top", 1)
    head, *lines = outcome.out.split("\n\n")[1].splitlines()
    assert head.split() == ["feature", "value", "adds", "spread"]
    assert lines[-1] == "(spread: one standard deviation over 3 bags)"
    own = np.asarray([bag.explain(X[:1])[0] for bag in model.bag_models])
    best = int(np.abs(own.mean(axis=0)[:-1]).argmax())
    rest = own[:, :-1].sum(axis=1) - own[:, best]
    for line, part in zip(lines, [own[:, best], rest, own[:, -1]], strict=False):
        amount, spread = map(float, line[: len(head)].split()[-2:])
        assert (amount, spread) == pytest.approx((part.mean(), part.std(ddof=1)), abs=0.0006)
    label = model.predict(X[:1])[0]
    shares = [bag.predict_proba(X[:1])[0, label] for bag in model.bag_models]
    assert outcome.row("over 3 bags") == f"{label} {min(shares):.4f} to {max(shares):.4f}"


REFUSED = [
    (("-o", "x.txt"), "must end in .csv"),
    (("--row", 4), "--row 4: pair.npy has 3 rows; they are counted from 1"),
    (
        ("--row", 1, "--class", "oaks"),
        "'oaks' is none of the model's classes: 'ash', 'elm', 'oak'. Did you mean 'oak'?",
    ),
    (("--row", 1, "-o", "out.csv"), "--output writes the contributions for all rows"),
    (("--row", 1, "--plot", "row.gif"), "--plot: 'row.gif' must end in .png, .svg or .pdf"),
    (("--row", 1, "--row", 2, "--plot", "row.png"), "one row, but --row is given 2 times"),
    (("--top", 3), "--top is for one row; add --row N"),
    (("--class", "oak"), "--class is for one row; add --row N"),
    (("--plot", "row.png"), "--plot is for one row; add --row N"),
]


def test_what_cannot_be_explained_is_refused(command):
    three_classes()
    for options, message in REFUSED:
        assert message in command.refuses("explain", "three.json", "pair.npy", *options)
    np.save("wide.npy", np.zeros((2, 5)))
    for options in (("--row", 1), ("-o", "out.csv")):
        message = command.refuses("explain", "three.json", "wide.npy", *options)
        assert "wide.npy has 5 columns, but the model needs its 2" in message


def test_a_row_is_explained_by_a_model_without_stumps(command):
    StumpEnsemble((Member((), ()),), 2, classes=("no", "yes")).save("model.json")
    np.save("table.npy", np.zeros((1, 2)))
    outcome = command.succeeds("explain", "model.json", "table.npy", "--row", 1)
    assert table(outcome.out) == {"(intercept)": 0.0, "score": 0.0}


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=9))
def test_bars_are_as_long_as_their_amounts_on_their_side_of_one_line(amounts):
    drawn = bars(amounts)
    assert len({bar.index("|") for bar in drawn}) == 1
    span = max(0.0, *amounts) - min(0.0, *amounts) or 1.0
    for bar, amount in zip(drawn, amounts, strict=True):
        left, right = bar.split("|")
        own, other = (left, right) if amount < 0 else (right, left)
        assert (other.strip(), {*own} <= {"#", " "}) == ("", True)
        assert abs(own.count("#") - WIDTH * abs(amount) / span) <= 0.5 + 1e-6
