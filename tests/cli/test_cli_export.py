"""`gpustump export`: files in other languages, from the command line."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble
from gpustump.arrays.devices import how_to_install
from gpustump.exports import to_c, to_onnx, to_sql

ENDINGS = {"onnx": "onnx", "c": "h", "sql": "sql"}


@pytest.fixture
def model(command):
    random = np.random.default_rng(3)
    X = random.normal(size=(200, 3))
    np.savez("t.npz", X=X, y=(X[:, 0] + random.normal(size=200) > 0).astype(int))
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


def test_text_of_a_csv_file_is_text_in_the_query(command):
    """The table of the database is the file itself: train on one, export, and ask the other."""
    pytest.importorskip("polars")
    random = np.random.default_rng(5)
    colours = np.asarray(["red", "it's", 'a "b"', "blue"])[random.integers(4, size=300)]
    sizes = random.normal(size=300).round(2)
    y = np.where((colours == "it's") ^ (sizes > 0.3), "yes; no", "o'no")
    rows = list(zip(colours.tolist(), sizes.tolist(), y.tolist(), strict=True))
    lines = [f'"{c.replace(chr(34), chr(34) * 2)}",{s},{v}' for c, s, v in rows]
    Path("t.csv").write_text("\n".join(["col our,size,y", *lines]) + "\n")
    command.succeeds("train", "t.csv", "--target", "y", "--rounds", 12, "--quiet")
    query = command.succeeds("export", "model.json", "--to", "sql", "--table", "t").out
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t ("col our" TEXT, size REAL, y TEXT)')
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    found = connection.execute(query).fetchall()
    connection.close()
    lines = command.succeeds("predict", "model.json", "t.csv", "--no-proba").out.splitlines()[1:]
    told = [line.partition(",")[2] for line in lines]
    assert [row[:3] for row in found] == rows
    assert [row[-1] for row in found] == told
    assert {*told} == {"yes; no", "o'no"}


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
