"""`gpustump export`: files in other languages, from the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from classifiers import drawn
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble
from gpustump.arrays.devices import how_to_install
from gpustump.exports import to_c, to_onnx, to_sql

ENDINGS = {"onnx": "onnx", "c": "h", "sql": "sql"}


@pytest.fixture
def model(command):
    X, y = drawn()
    np.savez("t.npz", X=X, y=y)
    command.succeeds("train", "t.npz", "--target", "y", "--rounds", 5, "--quiet")
    return StumpEnsemble.load("model.json")


@pytest.mark.parametrize("to", ENDINGS)
def test_the_ending_of_the_file_tells_the_language_and_an_export_is_replaced(command, model, to):
    if to == "onnx":
        pytest.importorskip("onnx")
    output = f"out.{ENDINGS[to]}"
    command.succeeds("export", "model.json", "-o", output)
    first = Path(output).read_bytes()
    command.succeeds("export", "model.json", "--to", to, "-o", output)
    assert Path(output).read_bytes() == first
    Path(output).write_bytes(b"my own work\n" * 100)
    assert command.refuses("export", "model.json", "-o", output) == (
        f"--output: {output} exists and is not a gpustump export to this language; give another "
        "name, or --force."
    )
    command.succeeds("export", "model.json", "-o", output, "--force")
    assert Path(output).read_bytes() == first


def test_an_export_is_what_the_function_of_that_name_returns(command, model):
    assert command.succeeds("export", "model.json", "--to", "c", "--name", "risk").out == to_c(
        model, "risk"
    )
    options = ("--dialect", "duckdb", "--table", "my data", "--name", "p", "--no-proba")
    found = command.succeeds("export", "model.json", "--to", "sql", *options).out
    assert found == to_sql(model, "duckdb", table="my data", name="p", probabilities=False)
    pytest.importorskip("onnx")
    command.succeeds("export", "model.json", "-o", "m.onnx", "--dtype", "float32")
    assert Path("m.onnx").read_bytes() == to_onnx(model, dtype="float32").SerializeToString(
        deterministic=True
    )


REFUSED = [
    (("-o", "model.txt"), "--to is needed: onnx, c, sql; or let the name of --output"),
    (("--to", "c", "-o", "model.py"), "'model.py' must end in .h; --force takes any name"),
    (("--to", "cobol"), "--to: must be onnx, c or sql; got 'cobol'"),
    (("--to", "onnx"), "ONNX is not text; give the name of a file that ends in .onnx"),
    (("--to", "c", "--table", "t"), "--table is for --to sql."),
    (("-o", "m.onnx", "--name", "t"), "--name is for --to c and sql."),
    (("--to", "c", "--name", "1st"), "name must be 1 to 63 letters, digits and _"),
    (("--to", "sql", "--table", ""), "no column or table in SQL can be called ''"),
    (("--to", "sql", "--dialect", "mysql"), "must be sqlite, duckdb or postgresql"),
    (("-o", "model.json", "--to", "c"), "would replace the file that is read"),
]


def test_what_cannot_be_exported_is_refused(command, model, monkeypatch):
    for options, message in REFUSED:
        assert message in command.refuses("export", "model.json", *options)
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    said = command.refuses("export", "model.json", "-o", "m.onnx")
    assert said == f"an export to ONNX needs onnx; {how_to_install('onnx')}"
