"""`gpustump predict`: what the library predicts, from any table that holds the model's columns."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, mixed_table, read_csv, run_process  # noqa: F401
from sklearn.datasets import load_breast_cancer

from gpustump import StumpEnsemble


@pytest.fixture
def table(command):
    """Numbers, text and booleans with missing values, as CSV and Parquet; and a model of them."""
    polars = pytest.importorskip("polars")
    frame = mixed_table(120).select(
        *("age", "colour", "label"),
        code=polars.Series(["1", "2", "b", "1"] * 30),
        flag=polars.col("size") > 4,
    )
    frame.write_csv("table.csv")
    frame.write_parquet("table.parquet")
    command.succeeds("train", "table.csv", "--target", "label", "--rounds", 20, "--quiet")
    return frame


def test_predictions_are_those_of_the_library_for_the_columns_of_the_model_in_any_order(
    command, table
):
    model = StumpEnsemble.load("model.json")
    part = table.filter(table["code"] != "b")  # whose codes look like numbers, and are text
    part.write_csv("part.csv")
    other = table.select("flag", "colour", "age", "code").with_columns(other=1)
    other.write_csv("other.csv")
    for name, frame in (("table.parquet", table), ("part.csv", part), ("other.csv", other)):
        header, rows = read_csv(command.succeeds("predict", "model.json", name).out)
        assert header == ["row", "prediction", "P(no)", "P(yes)"]
        assert [row[1] for row in rows] == model.predict(frame).tolist()
        assert np.array_equal(np.asarray(rows)[:, 2:].astype(float), model.predict_proba(frame))


def test_every_output_format_holds_the_same(command, table):
    import polars

    for name in ("out.csv", "out.parquet", "out.npz"):
        command.succeeds("predict", "model.json", "table.csv", "-o", name)
    header, rows = read_csv(Path("out.csv").read_text())
    frame = polars.read_parquet("out.parquet")
    assert frame.columns == header
    assert [list(map(str, row)) for row in frame.rows()] == rows
    with np.load("out.npz") as arrays:
        assert arrays["prediction"].tolist() == frame["prediction"].to_list()
        assert arrays["classes"].tolist() == ["no", "yes"]
        assert np.array_equal(arrays["probability"], frame[:, 2:].to_numpy())
    outcome = command.succeeds("predict", "model.json", "table.csv", "-o", "-")
    assert outcome.out == Path("out.csv").read_text()
    for name in ("labels.csv", "labels.parquet", "labels.npz"):
        command.succeeds("predict", "model.json", "table.csv", "-o", name, "--no-proba")
    assert read_csv(Path("labels.csv").read_text()) == (
        ["row", "prediction"],
        [row[:2] for row in rows],
    )
    assert polars.read_parquet("labels.parquet").columns == ["row", "prediction"]
    with np.load("labels.npz") as arrays:
        assert sorted(arrays) == ["classes", "prediction", "row"]


def test_arrays_without_names_are_taken_by_position(command):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(90, 4)), random.integers(0, 2, 90)
    wanted = X[:, [0, 3]]
    np.save("table.npy", np.column_stack([X[:, :2], y, X[:, 2:]]))
    np.savez("features.npz", X=wanted)
    np.save("other.npy", X[:, :3])
    command.succeeds("train", "table.npy", "--target", 2, "--drop", "1,3", "--quiet")
    model = StumpEnsemble.load("model.json")
    for name in ("table.npy", "features.npz"):
        command.succeeds("predict", "model.json", name, "-o", "out.npz")
        with np.load("out.npz") as arrays:
            assert np.array_equal(arrays["prediction"], model.predict(wanted))
    message = command.refuses("predict", "model.json", "other.npy", "-o", "new.npz")
    assert message.startswith(
        "other.npy has 3 columns, but the model needs its 2, or all 5 of the training table"
    )


def test_arrays_are_predicted_without_polars_scikit_learn_or_tqdm(command):
    X, y = load_breast_cancer(return_X_y=True)
    np.savez("table.npz", X=X, y=y)
    command.succeeds("train", "table.npz", "--target", "y", "--rounds", 5, "--quiet")
    command.succeeds("predict", "model.json", "table.npz", "-o", "expected.csv")
    outcome = run_process(
        *("predict", "model.json", "table.npz", "-o", "-"),
        folder=command.folder,
        without=("polars", "sklearn", "scipy", "tqdm", "pandas"),
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.encode() == command.files()["expected.csv"]


@pytest.mark.filterwarnings("default")
def test_a_value_that_no_training_row_lacked_is_told_of_in_one_line(command):
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.savez("table.npz", X=X, y=X.sum(axis=1) > 0, names=["a", "b"])
    command.succeeds("train", "table.npz", "--target", "y", "--rounds", 20, "--quiet")
    X[7, 1] = np.nan
    np.savez("gaps.npz", X=X, names=["a", "b"])
    for name in ("predict", "explain"):
        outcome = command(name, "model.json", "gaps.npz")
        assert outcome.code == 0
        assert outcome.out.count("\n") == 201
        assert outcome.err == (
            "gpustump: values are missing in features where none was missing in training: 'b'. "
            "The model's votes for them were not learnt.\n"
        )


def test_rows_are_numbered_or_carry_the_id_that_is_named(command):
    polars = pytest.importorskip("polars")
    start = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
    columns = {
        "text": [f"{k:05}" for k in range(30)],
        "number": [2**53 + k for k in range(30)],  # float64 holds every second one
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(30)],
        "moment": [start + datetime.timedelta(microseconds=k) for k in range(30)],
    }
    frame = polars.DataFrame({"x": range(30), **columns, "y": [k % 2 for k in range(30)]})
    frame.with_columns(several=polars.concat_list("x", "y")).write_parquet("t.parquet")
    dropped = ",".join([*columns, "several"])
    command.succeeds("train", "t.parquet", "--target", "y", "--drop", dropped, "--quiet")
    predict = ("predict", "model.json", "t.parquet", "--force")
    for name, wanted in {None: range(1, 31), **columns}.items():
        asked = [] if name is None else ["--id", name]
        for output in ("out.csv", "out.parquet", "out.npz"):
            command.succeeds(*predict, *asked, "-o", output)
        with np.load("out.npz") as arrays:
            in_arrays = arrays[arrays.files[0]].tolist()
        in_frame = polars.read_parquet("out.parquet").to_series(0)
        in_text = [row[0] for row in read_csv(Path("out.csv").read_text())[1]]
        for found in (in_arrays, in_frame, in_text):
            assert list(map(str, found)) == list(map(str, wanted))
    message = command.refuses(*predict, "--id", "several")
    assert message.startswith("--id: the column 'several' of t.parquet is of type list; an ID")
    assert "--id: t.parquet has no column 'nobody'" in command.refuses(*predict, "--id", "nobody")
