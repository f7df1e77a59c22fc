"""Columns whose categories are numbered: from text to numbers, and back from files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from forged_files import forged

from gpustump import Member, ModelFileError, StumpEnsemble
from gpustump.data.columns import ArrayColumn, ColumnTable
from gpustump.learners.category_split import CategoryStump
from gpustump.model.encoding import Encoding, InputColumn, Unseen, encode, stored_encoding

COLOURS = ("blue", "green", "red")
ENCODING = Encoding(
    (InputColumn("size", 0, "number"), InputColumn("colour", 2, "numbered", COLOURS)), 3, True
)


def table(colours: list, kind: type = str) -> ColumnTable:
    values = np.asarray(colours, dtype=kind)
    columns = (ArrayColumn("size", np.ones(len(values))), ArrayColumn("colour", values))
    return ColumnTable("X", columns, len(values))


def test_categories_become_their_numbers_and_unknown_ones_nan():
    X, unseen = encode(ENCODING, table(["red", "blue", "violet", "green", "grey"]))
    np.testing.assert_array_equal(X[:, 1], [2, 0, np.nan, 1, np.nan])
    assert unseen == {"colour": Unseen(2, "violet", is_numbered=True)}
    X, unseen = encode(ENCODING, table(["red", "red"]))
    assert (X[:, 1].tolist(), unseen) == ([2.0, 2.0], {})


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_numbers_are_categories_by_their_text(kind):
    column = InputColumn("colour", 0, "numbered", ("5", "30"))
    X, unseen = encode(Encoding((column,), 1, True), table([30, 5, 7], kind))
    np.testing.assert_array_equal(X[:, 0], [1, 0, np.nan])
    assert unseen["colour"].example == "7"


def test_the_features_and_categories_of_an_encoding_are_found():
    assert ENCODING.feature_names == ("size", "colour")
    assert ENCODING.categorical_features == (1,)
    assert (ENCODING.categories(0), ENCODING.categories(1)) == (None, COLOURS)
    assert (ENCODING.text_columns, ENCODING.groups) == (("colour",), {})
    assert stored_encoding({"encoding": ENCODING.as_details()}, 2) == ENCODING


@pytest.mark.parametrize(
    "values", [["blue", "blue"], [f"c{k}" for k in range(255)], ["blue", 5], [["blue"]]]
)
def test_other_categories_in_a_file_are_refused(values, tmp_path):
    stumps = (CategoryStump(1, (0, 2), (1,), 1, 1, 0.25),)
    model = StumpEnsemble((Member(stumps, (0.5,)),), 2, details={"encoding": ENCODING.as_details()})
    model.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json").encoding == ENCODING
    document = json.loads((tmp_path / "model.json").read_text())
    document["details"]["encoding"]["columns"][1]["values"] = values
    (tmp_path / "model.json").write_text(forged(document))
    with pytest.raises(ModelFileError, match="details hold no valid encoding"):
        StumpEnsemble.load(tmp_path / "model.json")


def test_a_model_without_frames_takes_numbers_and_one_with_an_encoding_takes_both():
    stumps = (CategoryStump(1, (0, 2), (1,), 1, -1, 0.25),)
    model = StumpEnsemble((Member(stumps, (0.5,)),), 2, details={"encoding": ENCODING.as_details()})
    X = np.asarray([[1.0, 2.0], [1.0, 1.0], [1.0, np.nan]])
    assert model.decision_function(X).tolist() == [0.5, -0.5, -0.5]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": ["red", "green", None], "size": [1.0, 1.0, 1.0]})
    assert model.decision_function(frame).tolist() == [0.5, -0.5, -0.5]
