"""A model takes frames like those that it was trained on: columns by name, with text and dates.

A table with text, dates and numbers is encoded by hand here, row by row in Python, and the model's
predictions for the raw frame are compared with those for that array.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from gpustump import AdaBoostClassifier, Member, ModelFileError, StumpEnsemble
from gpustump.data.frames import columns_of
from gpustump.learners.category_split import CategoryStump
from gpustump.model.encoding import Encoding, InputColumn, Unseen, encode, stored_encoding

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(400)]
NAN = np.nan


def answers(model: StumpEnsemble, X: object) -> list[np.ndarray]:
    return [
        model.predict(X),
        model.decision_function(X),
        model.predict_proba(X),
        list(model.staged_decision_function(X))[-1],
        model.explain(X),
        model.contribution_importances(X),
    ]


def raw_table(seed: int) -> dict[str, list[object]]:
    """Columns as the file of a user has them, with missing values in each."""
    random = np.random.default_rng(seed)

    def some(values: list[object]) -> list[object]:
        return [None if random.random() < 0.1 else v for v in values]

    n = 200
    return {
        "id": list(range(n)),
        "colour": some([["red", "green", "blue"][k] for k in random.integers(0, 3, n)]),
        "size": some(random.normal(size=n).tolist()),
        "since": some([DAYS[k] for k in random.integers(0, 400, n)]),
        "member": some([bool(k) for k in random.integers(0, 2, n)]),
    }


ENCODING = Encoding(
    (
        InputColumn("colour", 1, "category", ("blue", "green", "red")),
        InputColumn("size", 2, "number"),
        InputColumn("since", 3, "date"),
        InputColumn("member", 4, "boolean"),
    ),
    n_columns=5,
    named=True,
)


def by_hand(raw: dict[str, list[object]]) -> np.ndarray:
    rows = []
    for colour, size, since, member in zip(*itertools.islice(raw.values(), 1, None), strict=True):
        hot = [NAN if colour is None else colour == c for c in ("blue", "green", "red")]
        days = None if since is None else (since - dt.date(1970, 1, 1)).days
        rows.append([*hot, *(NAN if v is None else float(v) for v in (size, days, member))])
    return np.asarray(rows, dtype=float)


def with_encoding(model: StumpEnsemble, encoding: Encoding) -> StumpEnsemble:
    details = {"encoding": encoding.as_details()}
    return dataclasses.replace(model, feature_names=encoding.feature_names, details=details)


@pytest.fixture(scope="module")
def mixed() -> StumpEnsemble:
    """A model that chose and encoded its columns itself, as the command line trains it."""
    X = by_hand(raw_table(0))
    y = np.nansum(X[:, [0, 3, 5]], axis=1) + (X[:, 4] > X[100, 4]) > 1
    return with_encoding(AdaBoostClassifier(n_estimators=40).fit(X, y).model_, ENCODING)


@pytest.mark.parametrize("library", FRAMES)
def test_a_model_with_an_encoding_takes_the_raw_frame(mixed, library, tmp_path):
    raw = raw_table(1)
    columns = {name: raw[name] for name in ("since", "id", "member", "size", "colour")}
    if library == "pandas":
        columns["since"] = pd.to_datetime(pd.Series(columns["since"]))
    expected = answers(mixed, by_hand(raw))
    frame = FRAMES[library](columns)
    for found, wanted in zip(answers(mixed, frame), expected, strict=True):
        assert_array_equal(found, wanted)
    mixed.save(tmp_path / "model.json")
    loaded = StumpEnsemble.load(tmp_path / "model.json")
    assert loaded.encoding == ENCODING
    assert_array_equal(loaded.decision_function(frame), expected[1])


def test_a_model_with_an_encoding_takes_its_own_features_under_their_names(mixed):
    X = by_hand(raw_table(1))
    frame = pd.DataFrame(X[:, ::-1], columns=ENCODING.shown_names[::-1])
    assert (mixed.decision_function(frame) == mixed.decision_function(X)).all()
    dummies = pd.get_dummies(pd.DataFrame(raw_table(1)), columns=["colour"])
    with pytest.raises(ValueError, match="lacks 1 column that the model needs: 'colour'"):
        mixed.predict(dummies)
    whole = pd.DataFrame(raw_table(1))
    for X in (whole.iloc[0], whole.to_numpy(), "table.csv"):
        with pytest.raises(TypeError, match="Or pass a frame of pandas, polars or pyarrow"):
            mixed.predict(X)


def as_iso(raw: dict[str, list[object]], write: Callable[[dt.date], str]) -> pd.DataFrame:
    since = [None if day is None else write(day) for day in raw["since"]]
    return pd.DataFrame(raw | {"since": since})


def test_text_is_a_date_only_where_that_is_certain(mixed):
    raw = raw_table(1)
    expected = mixed.decision_function(by_hand(raw))
    for write in (
        dt.date.isoformat,
        lambda day: f"{day} 00:00:00",
        lambda day: f"{day}T00:00:00.000Z",
    ):
        assert (mixed.decision_function(as_iso(raw, write)) == expected).all()
    frame = as_iso(raw, dt.date.isoformat)
    for text in ("yesterday", "2020-02-30", "2020", "01/02/2020"):
        frame.loc[3, "since"] = text
        with pytest.raises(ValueError, match=r"'since' held dates in .* holds text.* Turn it into"):
            mixed.predict(frame)


def test_a_category_that_was_not_in_training_is_warned_of_and_counts_as_none_of_them(mixed):
    raw = raw_table(1)
    raw["colour"][7] = "violet"
    with pytest.warns(UserWarning, match="in 1 row, such as 'violet'; none of"):
        found = mixed.decision_function(pl.DataFrame(raw))
    X = by_hand(raw)
    assert X[7, :3].tolist() == [0, 0, 0]
    assert (found == mixed.decision_function(X)).all()


def test_numbers_are_taken_as_text_only_where_their_text_is_certain(mixed):
    frame = pl.DataFrame(raw_table(1)).with_columns(colour=pl.lit(3))
    with pytest.warns(UserWarning, match="'colour' has values that were not in training"):
        mixed.predict(frame)
    codes = dataclasses.replace(ENCODING.columns[0], values=("01", "02", "3"))
    coded = dataclasses.replace(ENCODING, columns=(codes, *ENCODING.columns[1:]))
    with pytest.raises(ValueError, match=r"'colour' held text .* holds numbers\. Read it as text"):
        with_encoding(mixed, coded).predict(frame)
    with pytest.raises(ValueError, match=r"'size' held numbers .* Turn it into numbers, as in"):
        mixed.predict(pl.DataFrame(raw_table(1)).with_columns(size=pl.lit("tall")))


FIRST = [
    *(({"position": at}, "positions must be 0 or more and below 5") for at in (-1, 5, 10**30)),
    ({"position": 2}, "positions must all be different"),
    ({"position": 0.0}, "position an int"),
    ({"name": None}, "name and values must be text"),
    *(({"kind": kind}, "of an unknown kind") for kind in ("pickle", "number")),
    ({"kind": "numbered", "values": ["a", "a"]}, "one category twice"),
    ({"kind": "numbered", "values": [f"c{k}" for k in range(1001)]}, "or more than 1000"),
    *(({"values": own}, "name and values must be text") for own in (["a", 5], [["a"]])),
    ({"date_order": "YDM"}, "dates are of an unknown order"),
]
WHOLE = [
    ({"named": 1}, "named true or false"),
    ({"n_columns": "5"}, "n_columns must be an int"),
    ({"missing": [1]}, "missing must hold text only"),
    ({"missing": 5}, "no valid encoding"),
    ({"decimals": ";"}, "decimals must be"),
    ({"text_encoding": 8}, "text_encoding must be text"),
    ({"columns": "x" * 10**6}, "no valid encoding"),
]


def test_a_file_whose_encoding_does_not_fit_its_model_is_refused(mixed, tmp_path):
    good = ENCODING.as_details()
    first, *others = good["columns"]
    wrong = [(good | {"columns": [first | change, *others]}, said) for change, said in FIRST]
    wrong += [(good | change, said) for change, said in WHOLE]
    wrong += [([], "no valid encoding"), ("none", "no valid encoding")]
    wrong += [(good | {"columns": others}, "makes 3 features, but the model has 6")]
    for details, said in wrong:
        dataclasses.replace(mixed, details={"encoding": details}).save(tmp_path / "model.json")
        with pytest.raises(ModelFileError, match=said) as refusal:
            StumpEnsemble.load(tmp_path / "model.json")
        assert len(str(refusal.value)) < 500


COLOURS = ("blue", "green", "red")
NUMBERED = Encoding(
    (InputColumn("size", 0, "number"), InputColumn("colour", 2, "numbered", COLOURS)), 3, True
)


def encoded(encoding: Encoding, **columns: list) -> tuple[np.ndarray, dict[str, Unseen]]:
    return encode(encoding, columns_of(pd.DataFrame(columns)))


def test_numbered_categories_become_their_numbers_and_unknown_ones_nan():
    X, unseen = encoded(NUMBERED, size=[1] * 5, colour=["red", "blue", "violet", None, "grey"])
    assert_array_equal(X[:, 1], [2, 0, NAN, NAN, NAN])
    assert unseen == {"colour": Unseen(2, "violet", is_numbered=True)}
    assert encoded(NUMBERED, size=[1], colour=[None])[1] == {}
    fives = Encoding((InputColumn("colour", 0, "numbered", ("5", "30")),), 1, True)
    for kind in (np.float32, np.int64):
        X, unseen = encoded(fives, colour=np.asarray([30, 5, 7], dtype=kind))
        assert_array_equal(X[:, 0], [1, 0, NAN])
        assert unseen["colour"].example == "7"
    assert NUMBERED.feature_names == ("size", "colour")
    assert NUMBERED.categorical_features == (1,)
    assert (NUMBERED.categories(0), NUMBERED.categories(1)) == (None, COLOURS)
    stumps = (CategoryStump(1, (0, 2), (1,), 1, -1, 0.25),)
    model = with_encoding(StumpEnsemble((Member(stumps, (0.5,)),), 2), NUMBERED)
    X = np.asarray([[1.0, 2.0], [1.0, 1.0], [1.0, NAN]])
    frame = pd.DataFrame({"colour": ["red", "green", None], "size": [1.0, 1.0, 1.0]})
    for rows in (X, frame):
        assert model.decision_function(rows).tolist() == [0.5, -0.5, -0.5]


def test_words_for_missing_values_are_part_of_the_encoding_and_hold_for_frames():
    columns = (InputColumn("x", 0, "number"), InputColumn("kind", 1, "category", ("1", "2")))
    plain = Encoding(columns, 2, True)
    assert plain.as_details().keys() == {"n_columns", "named", "columns"}
    full = Encoding(columns, 2, True, ("none", "-9"), "cp1252", ",")
    for encoding in (plain, full):
        assert stored_encoding({"encoding": encoding.as_details()}, 3) == encoding
    expected = [[1, 1, 0], [NAN, 0, 1], [NAN, NAN, NAN], [4, NAN, NAN]]
    texts = {"x": ["1", "none", "-9", "4"], "kind": ["1", "2", "none", None]}
    mixed = {"x": [1.0, NAN, -9, 4], "kind": [1, 2, -9, -9]}
    for given in (texts, mixed):
        assert_array_equal(encoded(full, **given)[0], expected)
    for words in ((), ("other",)):
        with pytest.raises(ValueError, match="here it holds text, for example 'none'"):
            encoded(Encoding(columns, 2, True, words), x=["1", "none"], kind=["1", "2"])
    assert encoded(plain, x=[1.0, 2.0], kind=[2, 1])[0].tolist() == [[1, 0, 1], [2, 1, 0]]
