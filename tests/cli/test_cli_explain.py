"""`gpustump explain`: contributions as a file, in digits that add up to the score exactly."""

from __future__ import annotations

import csv
import io
import itertools

import numpy as np
import pytest
from command import command_fixture, run_process  # noqa: F401
from sklearn.datasets import load_breast_cancer, load_wine

from gpustump import StumpEnsemble


@pytest.fixture
def cancer(command):
    """A model with names, and its table as an array."""
    command.succeeds("train", "--rounds", 30, "--quiet")
    X = load_breast_cancer().data
    np.save("table.npy", X)
    return X


@pytest.fixture
def wine(command):
    """A model of three classes and its table, without names."""
    X, y = load_wine(return_X_y=True)
    np.savez("wine.npz", X=X, y=y)
    classes = ("--target", "y", "--loss", "exponential")
    command.succeeds("train", "wine.npz", *classes, "--rounds", 10, "--quiet")
    return X


def read_csv(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.asarray(rows, dtype=np.float64)


def test_csv_holds_the_librarys_contributions_and_their_exact_sum(command, cancer):
    command.succeeds("explain", "model.json", "table.npy", "-o", "out.csv")
    header, rows = read_csv((command.folder / "out.csv").read_text())
    model = StumpEnsemble.load("model.json")
    assert header == [*model.feature_names, "(intercept)", "(score)"]
    assert np.array_equal(rows[:, :-1], model.explain(cancer))
    assert np.array_equal(rows[:, -1], model.decision_function(cancer))
    for order in (slice(None), slice(None, None, -1)):
        sums = [list(itertools.accumulate(row[:-1][order]))[-1] for row in rows.tolist()]
        assert sums == rows[:, -1].tolist()


def test_every_format_holds_the_same_numbers(command, cancer):
    polars = pytest.importorskip("polars")
    for name in ("out.csv", "out.parquet", "out.npz"):
        command.succeeds("explain", "model.json", "table.npy", "-o", name)
    header, rows = read_csv((command.folder / "out.csv").read_text())
    frame = polars.read_parquet("out.parquet")
    assert frame.columns == header
    assert np.array_equal(frame.to_numpy(), rows)
    with np.load("out.npz") as arrays:
        assert np.array_equal(arrays["contributions"], rows[:, :-1])
        assert np.array_equal(arrays["score"], rows[:, -1])
        assert arrays["features"].tolist() == header[:-1]
        assert arrays["classes"].tolist() == ["benign", "malignant"]


def test_with_more_classes_columns_are_named_by_class_and_feature(command, wine):
    command.succeeds("explain", "model.json", "wine.npz", "-o", "out.csv")
    command.succeeds("explain", "model.json", "wine.npz", "-o", "out.npz")
    header, rows = read_csv((command.folder / "out.csv").read_text())
    assert header[:2] == ["0: column 0", "0: column 1"]
    assert header[13:16] == ["0: (intercept)", "0: (score)", "1: column 0"]
    model = StumpEnsemble.load("model.json")
    by_class = rows.reshape(len(wine), 3, 15)
    assert np.array_equal(by_class[:, :, :-1], model.explain(wine))
    assert np.array_equal(by_class[:, :, -1], model.decision_function(wine))
    with np.load("out.npz") as arrays:
        assert arrays["contributions"].shape == (178, 3, 14)


def test_large_tables_are_written_in_blocks_without_a_seam(command, cancer, monkeypatch):
    command.succeeds("explain", "model.json", "table.npy", "-o", "whole.csv")
    monkeypatch.setattr("gpustump.cli.write.results.BLOCK_CELLS", 1000)
    command.succeeds("explain", "model.json", "table.npy", "-o", "parts.csv")
    files = command.files()
    assert files["whole.csv"] == files["parts.csv"]


def test_names_that_meet_are_told_apart(command):
    polars = pytest.importorskip("polars")
    x = np.arange(20.0)
    frame = polars.DataFrame({"(score)": x, "a": x % 7, "y": (x > 9).astype(int)})
    frame.write_csv("t.csv")
    command.succeeds("train", "t.csv", "--target", "y", "--quiet")
    command.succeeds("explain", "model.json", "t.csv", "-o", "out.parquet")
    columns = polars.read_parquet("out.parquet").columns
    assert columns == ["(score)", "a", "(intercept)", "(score) (2)"]


def test_a_name_that_is_taken_is_never_made():
    from gpustump.cli.commands.explain import _made_different

    assert _made_different(["a", "a (2)", "a"]) == ["a", "a (2)", "a (3)"]
    assert _made_different(["a", "a", "a (2)"]) == ["a", "a (3)", "a (2)"]
    assert _made_different(["b", "c"]) == ["b", "c"]


def test_what_cannot_be_explained_is_refused(command, cancer):
    np.save("narrow.npy", cancer[:, :4])
    for data, output, message in (
        ("table.npy", "x.txt", "must end in .csv"),
        ("table.npy", "no/out.csv", "does not exist"),
        ("narrow.npy", "out.csv", "has 4 columns, but the model needs its 30"),
        ("none.csv", "out.csv", "No such file"),
    ):
        assert message in command.refuses("explain", "model.json", data, "-o", output)
    said = command.refuses("explain", "table.npy", "table.npy", "-o", "out.csv")
    assert "not a gpustump model" in said
