"""Sparse files in svmlight's format: the same models as from CSV, in little memory."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble

NAMES = ["red", "green", "blue", "grey"]


def svmlight(X, y, first=1) -> str:
    lines = []
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        pairs = (f"{j + first}:{value!r}" for j, value in enumerate(row) if value != 0)
        lines.append(" ".join([repr(target), *pairs]))
    return "# made up\n" + "\n".join(lines) + "\n"


@pytest.fixture
def table(command):
    """Three classes and four features, as CSV and in svmlight's format, and the features' names."""
    r = np.random.default_rng(5)
    X = np.where(r.random((90, 4)) < 0.4, r.normal(size=(90, 4)), 0.0)
    X[r.random(X.shape) < 0.03] = np.nan
    y = np.digitize(np.nan_to_num(X[:, 0] - X[:, 2]) + r.normal(size=90), [-0.5, 0.8])
    pandas.DataFrame(X, columns=NAMES).assign(target=y).to_csv("rows.csv", index=False)
    Path("rows.svm").write_text(svmlight(X, y))
    Path("names.txt").write_text("\r\n".join(NAMES) + "\r\n", newline="")
    return X, y


TRAIN = ("--loss", "logistic", "--rounds", 15, "--multi-class", "one-vs-rest", "--quiet")


@pytest.fixture
def models(command, table):
    command.succeeds("train", "rows.csv", "--target", "target", *TRAIN, "-o", "csv.json")
    command.succeeds("train", "rows.svm", "--feature-names", "names.txt", *TRAIN, "-o", "svm.json")
    return StumpEnsemble.load("csv.json"), StumpEnsemble.load("svm.json")


def written(command, what, *arguments) -> bytes:
    command.succeeds(what, *arguments, "-o", f"{what}.csv")
    return Path(f"{what}.csv").read_bytes()


def test_a_sparse_file_gives_the_model_the_predictions_and_the_explanations_of_csv(command, models):
    of_csv, of_svm = models
    assert of_svm.digest() == of_csv.digest()
    assert of_svm.feature_names == of_csv.feature_names == tuple(NAMES)
    assert of_svm.details["fingerprint"] == of_csv.details["fingerprint"]
    for what in ("predict", "explain"):
        found = {
            written(command, what, model, data)
            for model in ("csv.json", "svm.json")
            for data in ("rows.csv", "rows.svm")
        }
        assert len(found) == 1
    for model in ("csv.json", "svm.json"):
        one, other = (
            command.succeeds("explain", model, data, "--row", 7).out
            for data in ("rows.csv", "rows.svm")
        )
        assert one.replace("rows.csv", "rows.svm") == other
        command.succeeds("audit", model, "rows.csv", "--target", "target")
        command.succeeds("audit", model, "rows.svm")
        command.succeeds("inspect", model, "--data", "rows.svm", "--page", "page.html", "--force")


def test_standard_input_may_be_a_sparse_table(command, models, monkeypatch):
    content = b"# 7 x 7\r\n1\r\n" + Path("rows.svm").read_bytes()
    Path("more.svm").write_bytes(content)
    wanted = [written(command, what, "svm.json", "more.svm") for what in ("predict", "explain")]
    for what, result in zip(("predict", "explain"), wanted, strict=True):
        for model in ("svm.json", "csv.json"):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert written(command, what, model, "-") == result
    for data, model in ("more.svm", "one.json"), ("-", "other.json"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        command.succeeds("train", data, "--feature-names", "names.txt", *TRAIN, "-o", model)
    assert Path("one.json").read_bytes() == Path("other.json").read_bytes()


def test_the_model_keeps_from_which_number_features_are_counted(command, table):
    X, y = table
    Path("zero.svm").write_text(svmlight(X, y, first=0))
    command.succeeds("train", "rows.svm", *TRAIN, "-o", "one.json")
    assert "features counted from 0" in command.succeeds("train", "zero.svm", *TRAIN[:-1]).out
    model = StumpEnsemble.load("model.json")
    assert model.digest() == StumpEnsemble.load("one.json").digest()
    few = np.where(np.arange(4) == 2, X, 0.0)  # no row of it has the first feature
    for first, name in (0, "model.json"), (1, "one.json"):
        Path("few.svm").write_text(svmlight(few, y, first))
        command.succeeds("predict", name, "few.svm", "--no-proba", "-o", "out.csv")
        found = np.loadtxt("out.csv", delimiter=",", skiprows=1)[:, 1]
        assert (found == model.predict(few)).all()
        assert f"feature {2 + first}" in command.succeeds("inspect", name).out
    message = command.refuses("predict", "one.json", "zero.svm")
    assert "zero.svm has a feature 0, but in training" in message


def test_features_that_training_did_not_have_are_left_out_and_told(command, models):
    lines = Path("rows.svm").read_text().splitlines()
    more = [line if k % 2 or "#" in line else f"{line} 9:2.5" for k, line in enumerate(lines)]
    Path("more.svm").write_text("\n".join(more))
    outcome = command("predict", "svm.json", "more.svm")
    assert outcome.out == command.succeeds("predict", "svm.json", "rows.svm").out
    assert outcome.err == (
        "gpustump: more.svm: 5 features at the end were not in training, and left out.\n"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("--target", "target"), ("--weight", "1"), ("--drop", "2"), ("--missing", "0")],
)
def test_options_about_columns_that_there_are_none_of_are_refused(command, table, option, value):
    assert f"{option} is not for rows.svm" in command.refuses("train", "rows.svm", option, value)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("red\ngreen\n", "has 2 names, but rows.svm has 4 features, counted from 1"),
        ("red\n\nblue\ngrey\n", "line 2 is empty"),
        ("red\nred\nblue\ngrey\n", "two columns named 'red'"),
    ],
)
def test_names_that_do_not_fit_are_refused(command, table, names, told):
    Path("names.txt").write_text(names)
    assert told in command.refuses("train", "rows.svm", "--feature-names", "names.txt")


def test_names_are_for_sparse_files_and_may_be_more_than_the_file_has(command, table):
    Path("names.txt").write_text("\n".join([*NAMES, "pink"]))
    given = ("--feature-names", "names.txt", *TRAIN[:-1])
    message = command.refuses("train", "rows.csv", "--target", "target", *given)
    assert "--feature-names is for files in svmlight's format" in message
    command.succeeds("train", "rows.svm", *given)
    assert StumpEnsemble.load("model.json").feature_names == (*NAMES, "pink")
    for option in ("--output", "--checkpoint"):
        message = command.refuses("train", "rows.svm", *given, option, "names.txt", "--force")
        assert message == f"{option}: names.txt would replace the file that is read."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 1:1\n1 2:3 five\n", "line 2 must be a target"),
        ("0 1:1\n1 3:1 2:1\n", "line 2 must be a target"),
        ("0 1:1\nyes 3:1\n", "line 2 must be a target"),
        ("0 1:1\n1 -2:1\n", "line 2 must be a target"),
        ("\0\1\2", "line 1 must be a target"),
        ("0\n1\n", "has no columns"),
        ("# nothing\n", "has no columns"),
        ("0 1:1\n1 33554432:1\n", "a feature 33 554 432; at most 16 777 216"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(command, text, told):
    Path("bad.svm").write_text(text)
    assert told in command.refuses("train", "bad.svm")


def test_a_model_of_text_refuses_a_sparse_file(command, models):
    Path("words.csv").write_text("size,label\n" + "small,yes\nlarge,no\n" * 20)
    command.succeeds("train", "words.csv", "--target", "label", "--quiet", "-o", "words.json")
    Path("one.svm").write_text("1 1:1\n")
    message = command.refuses("predict", "words.json", "one.svm")
    assert "one.svm is sparse and holds numbers only" in message


COMMANDS = """
import re
from pathlib import Path
from gpustump.cli import main
main("train wide.svm --loss logistic --rounds 5".split())
main("predict model.json wide.svm -o predict.csv".split())
main("explain model.json wide.svm -o explain.csv".split())
peak = re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())
print("peak", int(peak[1]) * 1024)
"""
"""Not `getrusage`, which counts the memory of the process that started this one."""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read where Linux has it")
def test_a_wide_file_stays_sparse(command):
    """Dense, the table would take 1.6 GB."""
    r = np.random.default_rng(0)
    wide, rows = 50_000, 4000
    others = r.integers(8, wide, rows)
    y, says_so = r.random(rows) < 0.5, r.random(rows) < 0.8
    lines = [
        f"{int(y[k])} {'7:1' if y[k] == says_so[k] else ''} {other}:0.5"
        for k, other in enumerate(others.tolist())
    ]
    Path("wide.svm").write_text("\n".join(lines) + f" {wide}:1\n")
    ended = subprocess.run(
        [sys.executable, "-c", COMMANDS], capture_output=True, text=True, check=True
    )
    peak = int(ended.stdout.rpartition("peak ")[2])
    names = Path("explain.csv").read_text().partition("\n")[0].split(",")
    assert names[0] == "feature 7"
    assert len(names) <= 5 + 2
    assert peak < 800e6, f"{peak / 1e6:.0f} MB"
