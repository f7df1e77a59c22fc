"""A saved index is not a feature, and a column that alone predicts the target is pointed out."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import command_fixture  # noqa: F401

pytest.importorskip("polars")


def frame(n: int = 120) -> pandas.DataFrame:
    r = np.random.default_rng(0)
    x = r.normal(size=n)
    return pandas.DataFrame(
        {"x": x, "z": r.normal(size=n), "label": (x + r.normal(size=n) > 0).astype(int)}
    ).sort_values("label", ignore_index=True)


def train(command, *options):
    return command("train", "table.csv", "--target", "label", "--rounds", 10, *options)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", [None, "index", "Unnamed: 0", "Id", "row_number"])
def test_a_first_column_that_numbers_the_rows_is_left_out(command, name, first):
    table = frame()
    table.to_csv("table.csv", index=False)
    expected = train(command).out.splitlines()
    table.index = table.index + first
    table.to_csv("table.csv", index_label=name)
    outcome = train(command)
    assert outcome.code == 0
    assert outcome.err == (
        f"gpustump: column {name or ''!r} is left out: it numbers the rows from {first}, as an "
        "index does\n"
    )
    assert outcome.row("features") == "2"
    digest = next(line for line in expected if line.startswith("digest"))
    assert digest in outcome.out
    table.to_csv("new.csv", index=False)
    command.succeeds("predict", "model.json", "new.csv", "-o", "out.csv")


def test_rows_without_a_target_do_not_hide_an_index(command):
    table = frame().astype({"label": "Int64"})
    table.loc[::7, "label"] = pandas.NA
    table.to_csv("table.csv")
    outcome = train(command, "--drop-missing-target")
    assert "is left out: it numbers the rows from 0" in outcome.err
    assert outcome.row("features") == "2"


def test_a_shuffled_index_is_used_with_a_warning_and_can_be_dropped(command):
    frame().sample(frac=1, random_state=0).to_csv("table.csv")
    outcome = train(command)
    assert outcome.err == (
        "gpustump: column '' is used as a feature, but looks like an index: its values are all "
        "different; --drop '' leaves it out\n"
    )
    assert outcome.row("features") == "3"
    assert "''  " in outcome.out[outcome.out.index("most votes") :]
    assert "'' <= " in command.succeeds("inspect", "model.json").out
    dropped = train(command, "--drop", "")
    assert dropped.err == ""
    assert dropped.row("features") == "2"


def test_an_index_that_pandas_keeps_in_parquet_is_left_out(command):
    table = frame()
    table["__index_level_0__"] = np.arange(len(table))
    table.to_parquet("table.parquet")
    outcome = command("train", "table.parquet", "--target", "label", "--rounds", 3)
    assert "'__index_level_0__' is left out" in outcome.err


def test_names_that_are_blank_are_shown_in_quotes(command):
    text = io.StringIO()
    r = np.random.default_rng(0)
    colour = r.choice(["red", "blue"], 80)
    table = pandas.DataFrame({"x": r.normal(size=80), "": colour, "label": colour == "red"})
    table["label"] ^= r.random(80) < 0.1
    table.to_csv(text, index=False)
    Path("table.csv").write_text(text.getvalue().replace('""', ""))
    outcome = command.succeeds("train", "table.csv", "--target", "label", "--rounds", 4)
    assert outcome.row("encoded").startswith("'': text, 2 features: blue, red")
    assert "''=blue" in outcome.out[outcome.out.index("most votes") :]
    assert "'' is not blue" in command.succeeds("inspect", "model.json").out


def test_a_column_without_name_and_values_is_left_out(command):
    table = frame()
    lines = table.to_csv(index=False).splitlines()
    Path("table.csv").write_text("".join(f"{line},\n" for line in lines))
    outcome = train(command)
    assert outcome.err == "gpustump: column '' is left out: it has neither a name nor values\n"
    assert outcome.row("features") == "2"
