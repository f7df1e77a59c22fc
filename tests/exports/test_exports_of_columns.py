"""Exports read the columns that users have: text, dates, booleans, and words for missing values."""

from __future__ import annotations

import math
import sqlite3

import exported
import numpy as np
import pytest
from exported import Answers, assert_same, expected
from exported_columns import NAMES, frame, rows, rows_of_numbers

from gpustump import StumpEnsemble


@pytest.fixture(scope="module")
def wanted(column_models: dict[str, StumpEnsemble]) -> dict[int, Answers]:
    with pytest.warns(UserWarning, match="not in training"):
        assert (column_models["two classes"].decision_function(frame()) != 0).any()
    return {id(model): expected(model, frame()) for model in column_models.values()}


def test_c_finds_the_code_of_text(column_model, wanted, tmp_path):
    library = exported.Compiled([column_model], tmp_path)
    text = [1, 2, 7]
    X = [
        [library.code(0, at, value) if at in text else value for at, value in enumerate(row)]
        for row in rows_of_numbers()
    ]
    assert_same(library.answers(0, column_model, np.asarray(X, float)), wanted[id(column_model)])
    assert math.isnan(library.code(0, 0, "blue"))  # no column of text


def test_onnx_takes_text_as_an_input_of_its_own(column_model, wanted):
    session = exported.session(column_model, "float64")
    numbers = [[row[k] for k in (0, 3, 4, 5, 6)] for row in rows_of_numbers()]
    text = [["" if row[k] is None else row[k] for k in (1, 2, 7)] for row in rows()]
    given = {"X": np.asarray(numbers, dtype=np.float64), "text": np.asarray(text, dtype=object)}
    labels, probabilities, scores = session.run(None, given)
    # "" is one of the shapes, so it cannot stand for a missing one there.
    same = np.asarray([row[2] is not None for row in rows()])
    whole = wanted[id(column_model)]
    kept = [label for label, own in zip(whole.labels, same, strict=True) if own]
    assert_same(
        Answers(labels[same].tolist(), scores[same], probabilities[same]),
        Answers(kept, whole.scores[same], whole.probabilities[same]),
    )
    assert session.get_modelmeta().custom_metadata_map["gpustump.digest"] == column_model.digest()


def test_sqlite_reads_the_columns_as_they_are(column_model, wanted):
    connection = sqlite3.connect(":memory:")
    types = ["REAL", "TEXT COLLATE NOCASE", "TEXT", "BOOLEAN", *["TEXT"] * 4]
    given = [
        [value.isoformat() if hasattr(value, "isoformat") else value for value in row]
        for row in rows()
    ]
    exported.fill(connection, NAMES, types, given)
    assert_same(exported.sql_answers(connection, column_model, "sqlite"), wanted[id(column_model)])
    connection.close()


def test_duckdb_reads_the_columns_as_they_are(column_model, wanted):
    duckdb = pytest.importorskip("duckdb")
    types = ["DOUBLE", "VARCHAR", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "VARCHAR"]
    with duckdb.connect() as connection:
        exported.fill(connection, NAMES, types, rows())
        assert_same(
            exported.sql_answers(connection, column_model, "duckdb"), wanted[id(column_model)]
        )
