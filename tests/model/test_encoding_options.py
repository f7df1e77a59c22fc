"""The user's options for the training table are a part of the encoding, and hold for frames,
too."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from gpustump.data.frames import columns_of
from gpustump.model.encoding import Encoding, InputColumn, encode, stored_encoding

COLUMNS = (InputColumn("x", 0, "number"), InputColumn("kind", 1, "category", ("1", "2")))


def test_options_are_stored_only_if_they_were_used():
    plain = Encoding(COLUMNS, 2, True)
    assert plain.as_details().keys() == {"n_columns", "named", "columns"}
    full = Encoding(COLUMNS, 2, True, ("?", "-9"), "cp1252", ",")
    for encoding in (plain, full):
        assert stored_encoding({"encoding": encoding.as_details()}, 3) == encoding


@pytest.mark.parametrize(
    "wrong", [{"missing": [1]}, {"missing": 5}, {"decimals": ";"}, {"text_encoding": 8}]
)
def test_options_that_make_no_sense_are_refused(wrong):
    details = Encoding(COLUMNS, 2, True).as_details() | wrong
    with pytest.raises(ValueError, match="hold no valid encoding"):
        stored_encoding({"encoding": details}, 3)


def encoded(frame: pandas.DataFrame, encoding: Encoding) -> np.ndarray:
    return encode(encoding, columns_of(frame))[0]


def test_frames_lack_the_values_that_the_words_name():
    encoding = Encoding(COLUMNS, 2, True, ("none", "-9"))
    nan = np.nan
    expected = [[1, 1, 0], [nan, 0, 1], [nan, nan, nan], [4, nan, nan]]
    texts = pandas.DataFrame({"x": ["1", "none", "-9", "4"], "kind": ["1", "2", "none", None]})
    mixed = pandas.DataFrame({"x": [1.0, nan, -9, 4], "kind": [1, 2, -9, -9]})
    for frame in (texts, mixed):
        assert np.array_equal(encoded(frame, encoding), expected, equal_nan=True)
    assert texts["x"].iloc[1] == "none"


def test_text_among_numbers_is_refused_unless_the_words_explain_it():
    frame = pandas.DataFrame({"x": ["1", "none"], "kind": ["1", "2"]})
    for words in ((), ("other",)):
        with pytest.raises(ValueError, match="here it holds text, for example 'none'"):
            encoded(frame, Encoding(COLUMNS, 2, True, words))


def test_numbers_are_categories_only_where_their_spelling_is_certain():
    frame = pandas.DataFrame({"x": [1.0, 2.0], "kind": [2, 1]})
    assert encoded(frame, Encoding(COLUMNS, 2, True)).tolist() == [[1, 0, 1], [2, 1, 0]]
    codes = (COLUMNS[0], InputColumn("kind", 1, "category", ("01", "02")))
    with pytest.raises(ValueError, match="Read it as text, as in training"):
        encoded(frame, Encoding(codes, 2, True))
