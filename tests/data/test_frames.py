"""Frames of every library become the same columns, and what cannot be used is refused by name."""

from __future__ import annotations

import datetime as dt
import decimal

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpustump import AdaBoostClassifier, LogitBoostClassifier, boost
from gpustump.data.frames import columns_of, numbers_of

VALUES = {
    "whole": [1, None, 3],
    "part": [0.5, float("nan"), -2.0],
    "truth": [True, None, False],
    "word": ["a", None, "b"],
    "day": [dt.date(1970, 1, 2), None, dt.date(2020, 2, 29)],
    "moment": [dt.datetime(1970, 1, 1, 0, 0, 1, 250_000), None, dt.datetime(2020, 2, 29, 12)],
    "hour": [dt.time(1, 2, 3, 500_000), None, dt.time(23)],
    "while": [dt.timedelta(days=1), None, dt.timedelta(seconds=-1.5)],
    "nothing": [None, None, None],
}
NUMBERS = {
    "whole": [1, np.nan, 3],
    "part": [0.5, np.nan, -2.0],
    "truth": [1, np.nan, 0],
    "day": [1, np.nan, 18321],
    "moment": [1.25, np.nan, 18321.5 * 86_400],
    "hour": [3723.5, np.nan, 23 * 3600],
    "while": [86_400, np.nan, -1.5],
    "nothing": [np.nan] * 3,
}
"""What the values are as numbers: days and seconds since 1970, seconds since midnight."""

MAKERS = {"polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", MAKERS)
def test_columns_of_every_kind_have_the_numbers_that_a_calendar_gives(library):
    table = columns_of(MAKERS[library](VALUES))
    kinds = [column.kind for column in table.columns]
    temporal = ["date", "datetime", "time", "duration"]
    assert kinds == ["number", "number", "boolean", "text", *temporal, "empty"]
    for column in table.columns:
        assert column.missing().tolist() == pd.isna(pd.Series(VALUES[column.name])).tolist()
        if column.kind != "text":
            np.testing.assert_array_equal(column.numbers(), NUMBERS[column.name])


@pytest.mark.parametrize("library", MAKERS)
def test_training_refuses_a_column_that_is_no_number_by_name_and_kind(library):
    kinds = {"word": "text", "day": "dates", "moment": "datetimes", "hour": "times"}
    for name, kind in (kinds | {"while": "durations"}).items():
        frame = MAKERS[library]({"x": [1.0, 2.0, 3.0], name: VALUES[name]})
        with pytest.raises(ValueError, match=rf"^X has .* not hold numbers: '{name}' \({kind}"):
            boost(frame, [-1, 1, 1])


def test_a_plan_without_rows_is_refused_with_the_way_to_compute_them():
    fitted = AdaBoostClassifier().fit([[0.0], [1.0]], [0, 1])
    for plan, what_to_do in (
        (pl.LazyFrame({"x": [1.0, 2.0]}), r"pass X\.collect\(\)"),
        (dask.dataframe.from_pandas(pd.DataFrame({"x": [1.0, 2.0]})), r"pass X\.compute\(\)"),
        (dask.array.ones((2, 1)), r"pass X\.compute\(\)"),
    ):
        for use in (lambda X: AdaBoostClassifier().fit(X, [0, 1]), fitted.model_.predict):
            with pytest.raises(TypeError, match=what_to_do):
                use(plan)
    y = dask.array.from_array(np.asarray([0, 1]))
    with pytest.raises(TypeError, match=r"^y \(Array of dask\) .* pass y\.compute\(\)"):
        AdaBoostClassifier().fit([[0.0], [1.0]], y)


@pytest.mark.parametrize("dtype", ["str", "string", "category", "object"])
def test_labels_of_text_stay_text_where_they_look_like_numbers(dtype):
    y = pd.Series(["01", "2", "01", "2"], dtype=dtype)
    fitted = AdaBoostClassifier(n_estimators=1).fit([[0.0], [1.0], [0.5], [2.0]], y)
    assert fitted.model_.classes == ("01", "2")
    assert fitted.predict([[0.0], [2.0]]).tolist() == ["01", "2"]


def test_names_that_are_equal_or_of_which_only_some_are_text_are_refused():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "b"])
    model = AdaBoostClassifier().fit(frame, [0, 1]).model_
    for names in (["a", 1], [0, "b"], ["a", None]):
        frame.columns = pd.Index(names, dtype=object)
        for use in (model.predict, lambda X: AdaBoostClassifier().fit(X, [0, 1])):
            with pytest.raises(TypeError, match=r"names are text, and others|have string"):
                use(frame)
    frame.columns = ["a", "a"]
    with pytest.raises(ValueError, match="X has two columns named 'a'; rename one"):
        AdaBoostClassifier().fit(frame, [0, 1])


TIMES = [
    (1.0, pd.Series(pd.to_datetime(["1970-01-01T00:00:01Z", None])).dt.tz_convert(zone))
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "Etc/GMT+5")
]
TIMES += [
    (seconds, pd.Series([value, None], dtype=dtype))
    for value, seconds, dtype in (
        (dt.date(1970, 1, 2), 86_400.0, object),
        (dt.datetime(1970, 1, 2), 86_400.0, object),
        (dt.datetime(1970, 1, 1, 3, tzinfo=dt.UTC), 10_800.0, object),
        (dt.timedelta(seconds=-1.5), -1.5, None),
        (dt.timedelta(seconds=-1.5), -1.5, "duration[us][pyarrow]"),
        (dt.datetime(1970, 1, 1, 3), 10_800.0, "timestamp[us][pyarrow]"),
    )
]


@pytest.mark.parametrize(("seconds", "series"), TIMES)
def test_times_of_every_zone_and_type_are_seconds_since_1970_in_utc(seconds, series):
    (column,) = columns_of(pd.DataFrame({"t": series})).columns
    assert column.kind == ("duration" if seconds < 0 else "datetime")
    np.testing.assert_array_equal(column.numbers(), [seconds, np.nan])


@pytest.mark.parametrize(
    "values", [[dt.date(1970, 1, 2), 3.0], ["a", 3.0], [dt.datetime(1970, 1, 2), dt.time(3)]]
)
def test_objects_of_several_types_are_refused_as_such(values):
    frame = pd.DataFrame({"mix": pd.Series(values, dtype=object)})
    with pytest.raises(ValueError, match=r"'mix' \(Python objects, such as"):
        AdaBoostClassifier().fit(frame, [0, 1])


def test_categories_that_are_numbers_count_as_numbers_and_training_says_so():
    codes = pd.Series(pd.Categorical([3, 1, 3, 2, None, 2]))
    frame = pd.DataFrame({"code": codes, "x": np.arange(6.0)})
    with pytest.warns(UserWarning, match="categories of 'code' are numbers"):
        found = AdaBoostClassifier(n_estimators=5).fit(frame, [1, 0, 1, 1, 0, 0])
    plain = frame.astype({"code": float})
    expected = AdaBoostClassifier(n_estimators=5).fit(plain, [1, 0, 1, 1, 0, 0])
    assert found.model_.digest() == expected.model_.digest()
    assert found.predict(frame).tolist() == expected.predict(plain).tolist()


@pytest.mark.parametrize(("values", "kind"), [(["b", "a", None], "text"), ([5, 2, None], "number")])
def test_dictionaries_of_pyarrow_in_pandas_are_categories(values, kind):
    dictionary = pa.array(values).dictionary_encode()
    series = pd.Series(values, dtype=pd.ArrowDtype(dictionary.type))
    (column,) = columns_of(pd.DataFrame({"x": series})).columns
    assert column.kind == kind
    assert column.distinct() == sorted(values[:2])
    assert column.missing().tolist() == [False, False, True]
    assert kind == "text" or np.array_equal(column.numbers(), [5, 2, np.nan], equal_nan=True)


TRUTHS = [
    bool(value) if value < 2 else None for value in np.random.default_rng(1).integers(3, size=90)
]
WHOLE = [value or None for value in np.random.default_rng(2).integers(100, size=90).tolist()]
PARTS = np.random.default_rng(3).normal(size=90).astype(np.float32)
OTHERS = PARTS[::-1].copy()
PRICES = [None if value is None else decimal.Decimal(value) / 100 for value in WHOLE]
CODES = [-1 if value is None else value for value in WHOLE]
NARROW_CODES = np.arange(100, dtype=np.int8)


def objects(values: list, kind: type = lambda value: value) -> pd.Series:
    """The values as Python objects in pandas."""
    return pd.Series([None if value is None else kind(value) for value in values], dtype=object)


def polars_series(values: list, dtype: object) -> pl.DataFrame:
    return pl.DataFrame({"part": PARTS, "x": pl.Series(values, dtype=dtype)})


def pandas_series(values: list, dtype: str | None = None) -> pd.DataFrame:
    return pd.DataFrame({"part": PARTS, "x": pd.Series(values, dtype=dtype)})


def arrow_array(values: list, dtype: pa.DataType | None = None) -> pa.Table:
    return pa.table({"part": PARTS, "x": pa.array(values, dtype)})


SAME = {
    "booleans": [
        *(pandas_series(objects(TRUTHS, kind)) for kind in (bool, np.bool_)),
        *(pandas_series(TRUTHS, dtype) for dtype in ("boolean", "bool[pyarrow]")),
        *(polars_series(TRUTHS, dtype) for dtype in (pl.Boolean, pl.Object)),
        arrow_array(TRUTHS),
    ],
    "integers of 8 or 16 bits": [
        *(pandas_series(WHOLE, dtype) for dtype in ("Int8", "UInt16", "int8[pyarrow]")),
        pandas_series(objects(WHOLE, np.int8)),
        pandas_series(pd.Categorical.from_codes(CODES, NARROW_CODES)),
        *(polars_series(WHOLE, dtype) for dtype in (pl.Int16, pl.UInt8)),
        arrow_array(WHOLE, pa.uint8()),
        arrow_array(WHOLE, pa.int8()).set_column(
            1, "x", pa.array(WHOLE, pa.int8()).dictionary_encode()
        ),
    ],
    "integers of 64 bits": [
        *(pandas_series(objects(WHOLE, kind)) for kind in (int, np.int32, decimal.Decimal)),
        pandas_series([np.nan if value is None else value for value in WHOLE]),
        *(pandas_series(WHOLE, dtype) for dtype in ("Int64", "Float64", "uint64[pyarrow]")),
        pandas_series(pd.Categorical(WHOLE)),
        *(polars_series(WHOLE, dtype) for dtype in (pl.Int32, pl.Int128)),
        arrow_array(WHOLE),
    ],
    "float32": [
        *(pandas_series(OTHERS.copy(), dtype) for dtype in (None, "Float32", "float[pyarrow]")),
        pandas_series(objects(list(OTHERS))),
        polars_series(OTHERS, pl.Float32),
        arrow_array(OTHERS, pa.float32()),
    ],
    "float16": [make(OTHERS.astype(np.float16)) for make in (pandas_series, arrow_array)],
    "decimals": [
        pandas_series(objects(PRICES)),
        pandas_series(PRICES, pd.ArrowDtype(pa.decimal128(20, 2))),
        pandas_series([np.nan if price is None else float(price) for price in PRICES]),
        polars_series(PRICES, pl.Decimal(20, 2)),
        arrow_array(PRICES, pa.decimal128(20, 2)),
    ],
    "nothing": [
        *(pandas_series([None] * 90, dtype) for dtype in ("object", "Int64", "string")),
        pandas_series([np.nan] * 90),
        pandas_series([None] * 90, "double[pyarrow]"),
        *(polars_series([None] * 90, dtype) for dtype in (pl.Null, pl.Int64)),
        polars_series([float("nan")] * 90, pl.Float64),
        *(arrow_array([own] * 90) for own in (None, float("nan"))),
    ],
}
"""Frames of one column of float32, and of another column that all of them hold as the same type."""


@pytest.mark.filterwarnings("ignore:X. the categories of")
@pytest.mark.parametrize("kind", SAME)
def test_the_same_values_of_one_type_make_one_model_whatever_library_holds_them(kind):
    y = (np.random.default_rng(4).random(90) > 0.8) ^ (np.sin(4 * PARTS) > 0)
    digests, scores = set(), set()
    for frame in SAME[kind]:
        fitted = LogitBoostClassifier(n_estimators=6).fit(frame, y)
        digests.add(fitted.model_.digest())
        scores.add(fitted.decision_function(frame).tobytes())
        assert (fitted.model_.decision_function(SAME[kind][0]).tobytes()) in scores
        found = numbers_of(columns_of(frame))  # float32 beside narrow types stays float32
        is_wide = kind in ("integers of 64 bits", "decimals")
        assert found.dtype == (np.float64 if is_wide else np.float32)
        np.testing.assert_array_equal(found[:, 0], PARTS)
    assert len(digests) == len(scores) == 1


@pytest.mark.parametrize("scale", [2, 3, 12])
def test_decimals_of_every_library_are_rounded_as_python_rounds_them(scale):
    whole = np.random.default_rng(5).integers(-(10**15), 10**15, 500).tolist()
    values = [decimal.Decimal(value).scaleb(-scale) for value in whole]
    own = pa.decimal128(20, scale)
    for frame in (
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Decimal(20, scale))}),
        pa.table({"x": pa.array(values, own)}),
        pd.DataFrame({"x": pd.Series(values, dtype=pd.ArrowDtype(own))}),
        pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    ):
        assert numbers_of(columns_of(frame))[:, 0].tolist() == list(map(float, values))


def test_a_pandas_frame_of_one_dtype_is_not_copied():
    X = np.zeros((1000, 4))
    frame = pd.DataFrame(X, columns=list("abcd"), copy=False)
    assert np.shares_memory(numbers_of(columns_of(frame)), X)


def test_sparse_columns_beside_dense_ones_hold_their_values():
    dense = pd.DataFrame({"a": [True, False, True], "b": [0.0, 2.5, 0.0], "c": [1, 2, 3]})
    types = {"a": pd.SparseDtype(bool), "b": pd.SparseDtype(float, 2.5)}
    found = numbers_of(columns_of(dense.astype(types)))
    np.testing.assert_array_equal(found, numbers_of(columns_of(dense)))


def test_a_column_may_have_the_name_of_an_attribute_of_sparse_tensors():
    frame = pd.DataFrame({"layout": pd.Categorical(["sparse", "dense"] * 20), "n": range(40)})
    clf = AdaBoostClassifier(n_estimators=3, categorical_features="from_dtype")
    assert clf.fit(frame, [1, 0] * 20).predict(frame).tolist() == [1, 0] * 20


def test_jax_is_told_of_narrow_floats():
    jax = pytest.importorskip("jax")
    model = AdaBoostClassifier().fit([[0.0], [1.0]], [0, 1]).model_
    for name in ("bfloat16", "float8_e4m3fn"):
        with pytest.raises(TypeError, match=rf"dtype {name}.* Convert it to float32 first"):
            model.predict(jax.numpy.ones((2, 1), dtype=name))


def test_a_frame_without_columns_is_refused_as_such():
    with pytest.raises(ValueError, match=r"X has 0 feature\(s\) \(shape=\(5, 0\)\)"):
        AdaBoostClassifier().fit(pd.DataFrame(index=range(5)), [0, 1, 0, 1, 0])
