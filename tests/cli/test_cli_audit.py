"""`gpustump audit`: what a reviewer sees who gets a model and a table."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
from classifiers import drawn
from command import Command, command_fixture, mixed_table  # noqa: F401
from forged_files import forged

from gpustump import LogitBoostClassifier

polars = pytest.importorskip("polars")

SAME = "those of the fit, by their fingerprint"


@pytest.fixture
def files(command: Command) -> Command:
    """A folder with table.csv."""
    mixed_table().write_csv("table.csv")
    return command


LABEL = ("--target", "label", "--drop", "kind,weight")
KIND = ("--target", "kind", "--drop", "label,weight")


@pytest.mark.parametrize(
    "options",
    [
        LABEL,
        (*KIND, "--loss", "exponential"),
        (*LABEL, "--votes", "real", "--learning-rate", "0.5"),
        (*KIND, "--votes", "real", "--multi-class", "shared"),
        (*LABEL, "--loss", "logistic", "--l2", "2", "--monotone", "age=1"),
        (*KIND, "--loss", "logistic", "--categories", "sets"),
        (*LABEL, "--glass-box", "--rounds", "40", "--bags", "2", "--seed", "3"),
        (*KIND, "--loss", "exponential", "--patience", "3"),
        (*LABEL, "--test-size", "0", "--missing", "blue"),
        ("--target", "label", "--drop", "kind", "--weight", "weight"),
        (*LABEL, "--categorical", "size"),
        (*KIND, "--categorical", "kind"),
        ("--target", "age", "--drop", "label,kind", "--drop-missing-target"),
        ("--target", "kind", "--loss", "poisson", "--exposure", "weight", "--drop", "label"),
        ("--target", "weight", "--loss", "gamma", "--init-score", "size", "--patience", "3"),
    ],
)
def test_the_table_of_the_training_gives_the_same_model_whatever_the_options(files, options):
    rounds = () if "--rounds" in options else ("--rounds", "12")
    files.succeeds("train", "table.csv", *options, *rounds)
    digest = json.loads((files.folder / "model.json").read_text())["digest"]
    outcome = files.succeeds("audit", "model.json", "table.csv")
    assert outcome.row("result").startswith("the same, ")
    assert outcome.row("result").endswith(f"digest {digest}")
    assert outcome.row("data").startswith(SAME)
    is_short = "--drop-missing-target" in options
    assert is_short == outcome.row("table").endswith("34 without a target left out")


def arrays() -> dict[str, np.ndarray]:
    """A table of float32 numbers, and labels."""
    X, y = drawn()
    return {"X": X[:, :3].astype(np.float32), "y": y.astype(np.int8)}


def test_csv_parquet_and_npz_of_one_table_have_one_fingerprint(command):
    """Thresholds depend on the dtype: what is read from a text file becomes that of training."""
    own = arrays()
    columns = {f"x{j}": own["X"][:, j] for j in range(3)}
    frame = polars.DataFrame({**columns, "y": own["y"]})
    frame.write_parquet("table.parquet")
    frame.with_columns(polars.col("x0", "x1", "x2").cast(polars.Float64)).write_csv("table.csv")
    np.savez("table.npz", **own, names=np.asarray(list(columns)))
    prints, digests = set(), set()
    for name in ("table.parquet", "table.npz", "table.csv"):
        command.succeeds("train", name, "--target", "y", "--rounds", "5", "-o", "m.json", "--force")
        document = json.loads((command.folder / "m.json").read_text())
        prints.add(json.dumps(document["details"]["fingerprint"]))
        digests.add(document["digest"])
        for other in ("table.parquet", "table.npz", "table.csv"):
            outcome = command.succeeds("audit", "m.json", other)
            assert outcome.row("data") == SAME, (name, other)
            assert outcome.row("result").endswith(document["digest"])
    assert len(prints) == 1
    assert len(digests) == 2  # that of float32, and that of float64


@pytest.mark.parametrize("named", [True, False])
def test_a_model_that_an_estimator_saved_is_audited_with_a_file(command, named):
    own = arrays()
    frame = polars.DataFrame({f"x{j}": own["X"][:, j] for j in range(3)})
    classifier = LogitBoostClassifier(n_estimators=6, n_iter_no_change=3, class_weight="balanced")
    classifier.fit(frame if named else own["X"], own["y"]).model_.save("model.json")
    frame.with_columns(y=own["y"]).select("y", *frame.columns).write_csv("table.csv")
    assert "--target COLUMN is needed" in command.refuses("audit", "model.json", "table.csv")
    outcome = command.succeeds("audit", "model.json", "table.csv", "--target", "y")
    assert "holds no fingerprint" in outcome.row("data")
    # The digits of a float32 number in text are those of another float64 number.
    assert outcome.row("note") == "The values were rounded to float32, the dtype of the fit."
    np.savez("table.npz", **own)
    command.succeeds("audit", "model.json", "table.npz", "--target", "y")
    np.save("one.npy", own["y"][:, np.newaxis].astype(float))
    assert "0 columns" in command.refuses("audit", "model.json", "one.npy", "--target", "0")


def test_the_session_in_the_guide_is_what_the_commands_print(command):
    """Its Python code runs between the commands, in the same folder."""
    guide = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", guide, re.S)
    assert len(blocks) >= 6
    for language, block in blocks:
        if language == "python":
            exec(block, {})
            continue
        for line, shown in re.findall(r"\$ gpustump (.*?)\n((?:[^$].*\n)*)", block):
            outcome = command(*line.split())
            assert (outcome.out, outcome.err) == (shown, ""), line


FORGED = {
    "got []": lambda own: own.update(training=[]),
    "got {'test_size': 0.2}": lambda own: own["training"].pop("seed"),
    "a seed of at least 0": lambda own: own["training"].update(seed=-1),
    "below 2**32": lambda own: own["training"].update(seed=2**32),
    "below 1": lambda own: own["training"].update(test_size=1.0),
    "votes": lambda own: own["estimator"]["parameters"].update(votes="newton"),
    "n_estimators": lambda own: own["estimator"]["parameters"].update(n_estimators={}),
    "weak_learner": lambda own: own["estimator"]["parameters"].update(weak_learner="tree"),
    "monotonic_cst": lambda own: own["estimator"]["parameters"].update(monotonic_cst=[7]),
    "no parameter 'monotone'": lambda own: own["estimator"]["parameters"].update(monotone={}),
    "dtype": lambda own: own["estimator"].update(dtype="object"),
    "fingerprint": lambda own: own.update(fingerprint="x"),
    "as its target": lambda own: own.update(target=7),
    "has no column 'x'": lambda own: own.update(target="x"),
    "as its weight": lambda own: own.update(weight={}),
    "encoding": lambda own: own.update(encoding=[]),
}
"""Details that `train` does not write, by what is said of them."""


def test_details_that_train_does_not_write_are_refused_in_a_line(files):
    files.succeeds("train", "table.csv", *LABEL, "--rounds", "3")
    whole = json.loads(Path("model.json").read_text())
    for said, forge in FORGED.items():
        document = copy.deepcopy(whole)
        forge(document["details"])
        Path("model.json").write_text(forged(document))
        assert said in files.refuses("audit", "model.json", "table.csv")
    # a limit like any other, but the rounds end before it
    whole["details"]["estimator"]["parameters"]["n_estimators"] = 10**400
    Path("model.json").write_text(forged(whole))
    outcome = files("audit", "model.json", "table.csv")
    assert outcome.code == 1
    assert outcome.row("result") == "differs: round 4, which the file does not have"


def test_what_cannot_be_the_table_of_the_training_is_refused(files):
    files.succeeds("train", "table.csv", *LABEL, "--rounds", "3")
    for lacking, said in (("age", "lacks 1 column"), ("label", "no column 'label'")):
        mixed_table().drop(lacking).write_csv("other.csv")
        assert said in files.refuses("audit", "model.json", "other.csv")
    assert "DATA is needed" in files.refuses("audit", "model.json")
    for options, said in (
        (["--rounds"], "unexpected argument"),
        (["--target", "x"], "no column 'x'"),
        (["--target", "label", "--weight", "label"], "both name"),
    ):
        assert said in files.refuses("audit", "model.json", "table.csv", *options)
    mixed_table().head(3).write_csv("few.csv")
    message = files.refuses("audit", "model.json", "few.csv")
    assert "few.csv is not the table that the model was trained on" in message
    assert "leave that row out" not in message  # the advice of `train`
