"""Which files a command replaces: its own and empty ones; any other only with --force."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble


@pytest.fixture
def table(command):
    random = np.random.default_rng(3)
    X = random.normal(size=(100, 3))
    np.savez("t.npz", X=X, y=(X[:, 0] + random.normal(size=100) > 0).astype(int))
    command.succeeds("train", "t.npz", "--target", "y", "--rounds", 3, "--quiet")
    return X


@pytest.mark.parametrize("name", ["predict", "explain"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_result_replaces_only_a_result_with_the_same_columns(command, table, name, ending):
    if ending == "parquet":
        pytest.importorskip("polars")
    output, other = f"out.{ending}", {"predict": "explain", "explain": "predict"}[name]
    arguments = (name, "model.json", "t.npz", "-o", output)
    command.succeeds(*arguments)
    first = Path(output).read_bytes()
    command.succeeds(*arguments)  # its own
    assert Path(output).read_bytes() == first
    Path(output).write_bytes(b"")
    command.succeeds(*arguments)  # an empty one
    Path(output).unlink()
    command.succeeds(other, "model.json", "t.npz", "-o", output)
    message = command.refuses(*arguments)
    assert message == (
        f"--output: {output} exists and is not a result of this command with this model; give "
        "another name, or --force."
    )
    Path(output).write_bytes(b"my own notes\n" * 20)
    assert "--force" in command.refuses(*arguments)
    command.succeeds(*arguments, "--force")
    assert Path(output).read_bytes() == first


def test_a_table_with_more_columns_than_the_result_is_not_replaced(command, table):
    command.succeeds("predict", "model.json", "t.npz", "-o", "out.csv", "--no-proba")
    for header in ("prediction,mine\n", "prediction;\n", "predictions\n", "predict"):
        Path("out.csv").write_text(f"{header}1,2\n")
        assert "--force" in command.refuses(
            *("predict", "model.json", "t.npz", "-o", "out.csv", "--no-proba")
        )


def test_a_refusal_comes_before_the_table_is_read(command, table):
    Path("out.csv").write_text("mine")
    assert "--force" in command.refuses("predict", "model.json", "none.npz", "-o", "out.csv")


def test_force_replaces_what_is_no_picture(command, table):
    pytest.importorskip("matplotlib")
    Path("page.png").write_text("mine")
    assert "--force" in command.refuses("inspect", "model.json", "--plot", "page.png")
    command.succeeds("inspect", "model.json", "--plot", "page.png", "--force")
    assert Path("page.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_says_which_model_was_replaced(command, table):
    before = StumpEnsemble.load("model.json").digest()
    arguments = ("train", "t.npz", "--target", "y", "--rounds", 4)
    written = command.succeeds(*arguments).row("written")
    assert re.fullmatch(r"model\.json, \d\.\d kB; it replaced the model (\w{12})\.\.\.", written)
    assert before.startswith(written[-15:-3])
    assert "replaced" not in command.succeeds(*arguments, "-o", "new.json").row("written")
    Path("new.json").write_text("mine")
    written = command.succeeds(*arguments, "-o", "new.json", "--force").row("written")
    assert written.endswith("; it replaced a file that was not a model")


def test_text_that_only_speaks_of_models_is_not_replaced(command, table):
    for text in ("about my gpustump model", '{"about": "gpustump model"}', "[1, 2]"):
        Path("notes.json").write_text(text)
        message = command.refuses("train", "t.npz", "--target", "y", "-o", "notes.json")
        assert message.endswith(
            "exists and is not a gpustump model; give another name, or --force."
        )


def test_a_model_that_was_indented_anew_is_still_one(command, table):
    import json

    document = json.loads(Path("model.json").read_text())
    for indent in (None, 8):
        Path("model.json").write_text(json.dumps(document, indent=indent))
        outcome = command.succeeds("train", "t.npz", "--target", "y", "--rounds", 2)
        assert "it replaced the model " in outcome.row("written")
