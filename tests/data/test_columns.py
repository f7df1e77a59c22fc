"""Columns with words for missing values, numbers as text, and columns that are neighbours."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from gpustump.data.columns import (
    ArrayColumn,
    AsText,
    ColumnTable,
    WithoutWords,
    is_plain_number,
    side_by_side,
    without_words,
)
from gpustump.data.frames import columns_of


def column_of(values, **options):
    table = columns_of(pandas.DataFrame({"x": pandas.Series(values, **options)}))
    return table.columns[0]


@pytest.mark.parametrize(
    ("column", "distinct"),
    [
        (ArrayColumn("x", np.asarray([1, -9, 3])), [1, 3]),
        (ArrayColumn("x", np.asarray([1.5, -9, np.nan])), [1.5]),
        (column_of([1, -9, 3]), [1, 3]),
        (column_of([1.5, -9, np.nan]), [1.5]),
        (column_of(["a", "-9", "b"]), ["a", "b"]),
    ],
)
def test_words_are_missing_and_so_are_the_numbers_that_they_are(column, distinct):
    found = WithoutWords(column, ("-9", "none"))
    missing = [False, True, len(distinct) == 1]
    assert found.missing().tolist() == missing
    assert found.distinct() == distinct
    if found.kind == "number":
        assert np.isnan(found.numbers()).tolist() == missing
    assert found.with_rows(~np.asarray(missing)).distinct() == distinct
    assert WithoutWords(column, (*map(str, distinct), "-9")).kind == "empty"


@pytest.mark.parametrize(
    ("dtype", "rows", "words", "expected"),
    [
        ("int64", [[1, -9], [3, 4]], ["-9"], [[1, np.nan], [3, 4]]),
        ("float16", [[-99.9, 2], [np.inf, 3]], ["-99.9", "1e300"], [[np.nan, 2], [np.inf, 3]]),
        ("float32", [[-99.9, 2], [np.inf, 3]], ["-99.9", "1e300"], [[np.nan, 2], [np.inf, 3]]),
        ("int64", [[1, -9], [3, 4]], ["7"], None),
        ("bool", [[True, False], [False, True]], ["1"], None),
    ],
)
def test_words_are_missing_in_a_tables_array_too_rounded_as_it_is(dtype, rows, words, expected):
    X = np.asarray(rows, dtype=dtype)
    table = ColumnTable("X", [ArrayColumn("a", X[:, 0]), ArrayColumn("b", X[:, 1])], 2, matrix=X)
    assert without_words(table, ()) is table
    found = without_words(table, tuple(words))
    assert (found.matrix is X) is (expected is None)
    np.testing.assert_array_equal(found.matrix, rows if expected is None else expected)
    assert [own.missing().tolist() for own in found.columns] == np.isnan(found.matrix).T.tolist()


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([3, 1, 3], ["3", "1", "3"]),
        ([3.0, 0.1, 3.0], ["3", "0.1", "3"]),
        ([True, False, True], ["true", "false", "true"]),
        ([-0.0, 1e300, -0.0], ["0", str(int(1e300)), "0"]),
    ],
)
def test_numbers_as_text_have_no_needless_digits(values, texts):
    found = AsText(column_of(values))
    assert found.labels().tolist() == texts
    assert found.distinct() == sorted(set(texts))
    for text in set(texts):
        assert found.equals(text).tolist() == [own == text for own in texts]
    assert not found.equals("03").any()


def test_neighbouring_columns_of_an_array_are_found_without_a_copy():
    matrix = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    columns = [ArrayColumn(str(j), matrix[:, j]) for j in range(4)]
    found = side_by_side(columns[1:3])
    assert np.array_equal(found, matrix[:, 1:3])
    assert np.shares_memory(found, matrix)
    assert side_by_side([columns[0], columns[2]]) is None
    assert side_by_side(columns[::-1]) is None
    assert side_by_side([ArrayColumn("x", np.arange(3.0))]) is None
    assert side_by_side([columns[0], ArrayColumn("x", np.arange(3.0))]) is None
    assert side_by_side([ArrayColumn("x", matrix[::2, 0])]) is None
    rows = np.ascontiguousarray(matrix)
    assert side_by_side([ArrayColumn(str(j), rows[:, j]) for j in range(4)]) is None


def test_whole_numbers_that_no_float_holds_are_texts_of_their_own():
    values = [2**53, 2**53 + 1, -(2**62) - 1, 2**53]
    for column in (
        ArrayColumn("x", np.asarray(values)),
        column_of([*values[:3], None, values[3]], dtype="Int64"),
    ):
        found = AsText(column)
        assert found.distinct() == sorted({str(value) for value in values})
        missing = found.missing().tolist()
        for value in found.distinct():
            assert is_plain_number(value)
            hits = iter([str(own) == value for own in values])
            assert found.equals(value).tolist() == [not gone and next(hits) for gone in missing]
    floats = AsText(ArrayColumn("x", np.asarray([2.0**53, 0.5])))
    assert not floats.equals(str(2**53 + 1)).any()
    assert floats.equals(str(2**53)).tolist() == [True, False]


def test_booleans_are_true_and_false_in_any_case():
    column = AsText(ArrayColumn("x", np.asarray([True, False])))
    assert column.distinct() == ["false", "true"]
    for value, hits in (("True", [True, False]), ("FALSE", [False, True]), ("1", [False, False])):
        assert column.equals(value).tolist() == hits
