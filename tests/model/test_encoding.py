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
from sklearn.datasets import load_breast_cancer

from gpustump import AdaBoostClassifier, ModelFileError, StumpEnsemble, plots, theory
from gpustump.model.encoding import Encoding, InputColumn

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
CANCER = load_breast_cancer(as_frame=True)
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(400)]


@pytest.fixture(scope="module")
def cancer(tmp_path_factory) -> StumpEnsemble:
    """A model with the names of its features, as it comes back from its file."""
    path = tmp_path_factory.mktemp("models") / "model.json"
    AdaBoostClassifier(n_estimators=50).fit(CANCER.data, CANCER.target).model_.save(path)
    return StumpEnsemble.load(path)


def answers(model: StumpEnsemble, X: object) -> dict[str, np.ndarray]:
    return {
        "predict": model.predict(X),
        "decision_function": model.decision_function(X),
        "predict_proba": model.predict_proba(X),
        "staged": list(model.staged_decision_function(X))[-1],
        "explain": model.explain(X),
        "contribution_importances": model.contribution_importances(X),
    }


@pytest.mark.parametrize("library", FRAMES)
def test_a_saved_model_finds_the_columns_of_a_frame_by_name(cancer, library):
    columns = {name: CANCER.data[name].to_numpy() for name in reversed(CANCER.data.columns)}
    expected = answers(cancer, CANCER.data.to_numpy())
    for what, found in answers(cancer, FRAMES[library](columns)).items():
        np.testing.assert_array_equal(found, expected[what], err_msg=what)


def test_pictures_find_the_columns_of_a_frame_by_name(cancer):
    pytest.importorskip("matplotlib")
    name = "worst area"
    shown = [
        plots.shape_function(cancer, name, X=frame).get_xlim()
        for frame in (CANCER.data, CANCER.data[CANCER.data.columns[::-1]])
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.rename(columns={"mean area": "area"}), r"lacks 1 column .*'mean area'\. Did"),
        (lambda X: X.drop(columns="mean area"), "lacks 1 column that the model needs: 'mean area'"),
        (lambda X: X.assign(**{"mean area": "large"}), "held numbers in training, .* holds text"),
    ],
    ids=["renamed", "missing", "text"],
)
def test_a_frame_without_a_needed_column_is_refused_by_name(cancer, change, message):
    for use in (cancer.predict, cancer.explain, cancer.contribution_importances):
        with pytest.raises(ValueError, match=message):
            use(change(CANCER.data))


def test_margins_find_the_columns_of_a_frame_by_name(cancer):
    classifier = AdaBoostClassifier(n_estimators=5).fit(CANCER.data, CANCER.target)
    for model in (cancer, classifier):
        labels = CANCER.target.to_numpy()
        expected = theory.normalised_margins(model, CANCER.data.to_numpy(), labels)
        turned = CANCER.data[CANCER.data.columns[::-1]]
        assert theory.normalised_margins(model, turned, labels).tolist() == expected.tolist()


def test_a_waterfall_finds_the_values_of_a_row_by_name(cancer):
    pytest.importorskip("matplotlib")
    row = CANCER.data.iloc[5]
    shown = []
    for one in (row.to_numpy(), row, row[::-1]):
        ax = plots.waterfall(cancer, one)
        shown.append([label.get_text() for label in ax.get_yticklabels()])
    assert shown[0] == shown[1] == shown[2]


def test_arrays_and_frames_without_names_go_by_position(cancer):
    expected = cancer.decision_function(CANCER.data.to_numpy())
    for X in (CANCER.data.to_numpy().tolist(), pd.DataFrame(CANCER.data.to_numpy())):
        assert (cancer.decision_function(X) == expected).all()
    unnamed = dataclasses.replace(cancer, feature_names=None)
    assert (unnamed.decision_function(CANCER.data) == expected).all()


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
        hot = [np.nan if colour is None else colour == c for c in ("blue", "green", "red")]
        days = None if since is None else (since - dt.date(1970, 1, 1)).days
        rows.append([*hot, *(np.nan if v is None else float(v) for v in (size, days, member))])
    return np.asarray(rows, dtype=float)


@pytest.fixture(scope="module")
def mixed() -> StumpEnsemble:
    """A model that chose and encoded its columns itself, as the command line trains it."""
    raw = raw_table(0)
    X = by_hand(raw)
    y = np.nansum(X[:, [0, 3, 5]], axis=1) + (X[:, 4] > X[100, 4]) > 1
    model = AdaBoostClassifier(n_estimators=40).fit(X, y).model_
    return dataclasses.replace(
        model,
        feature_names=ENCODING.feature_names,
        details={"encoding": ENCODING.as_details()},
    )


@pytest.mark.parametrize("library", FRAMES)
def test_a_model_with_an_encoding_takes_the_raw_frame(mixed, library):
    raw = raw_table(1)
    columns = {name: raw[name] for name in ("since", "id", "member", "size", "colour")}
    if library == "pandas":
        columns["since"] = pd.to_datetime(pd.Series(columns["since"]))
    expected = answers(mixed, by_hand(raw))
    for what, found in answers(mixed, FRAMES[library](columns)).items():
        np.testing.assert_array_equal(found, expected[what], err_msg=what)


@pytest.mark.parametrize("other", ["series", "numpy", "path"])
def test_objects_that_are_no_frame_are_refused_with_what_the_model_takes(mixed, other):
    frame = pd.DataFrame(raw_table(1))
    X = {"series": frame.iloc[0], "numpy": frame.to_numpy(), "path": "table.csv"}[other]
    with pytest.raises(TypeError, match="Or pass a frame of pandas, polars or pyarrow"):
        mixed.predict(X)


def test_pictures_show_a_text_column_as_one(mixed):
    pytest.importorskip("matplotlib")
    frame = pd.DataFrame(raw_table(1))
    frame["since"] = pd.to_datetime(frame["since"])
    panels = plots.shape_functions(mixed, X=frame)
    assert {ax.get_xlabel() for ax in panels[0].figure.axes} >= {"colour", "size", "member"}
    for ax in (plots.importances(mixed), plots.waterfall(mixed, frame.iloc[3])):
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert sum(name.startswith("colour") for name in names) == 1
    apart = [label.get_text() for label in plots.importances(mixed, groups={}).get_yticklabels()]
    assert {"colour=blue", "colour=green"} <= {*apart}


def as_iso(raw: dict[str, list[object]], write: Callable[[dt.date], str]) -> pd.DataFrame:
    since = [None if day is None else write(day) for day in raw["since"]]
    return pd.DataFrame(raw | {"since": since})


@pytest.mark.parametrize(
    "write",
    [dt.date.isoformat, lambda day: f"{day} 00:00:00", lambda day: f"{day}T00:00:00.000Z"],
    ids=["date", "time", "UTC"],
)
def test_dates_that_pandas_leaves_as_text_are_the_dates_of_training(mixed, write):
    raw = raw_table(1)
    found = mixed.decision_function(as_iso(raw, write))
    assert (found == mixed.decision_function(by_hand(raw))).all()


@pytest.mark.parametrize("text", ["yesterday", "2020-02-30", "2020", "01/02/2020"])
def test_text_that_is_no_date_for_sure_is_refused_where_training_had_dates(mixed, text):
    frame = as_iso(raw_table(1), dt.date.isoformat)
    frame.loc[3, "since"] = text
    with pytest.raises(ValueError, match=r"'since' held dates in training, .* holds text"):
        mixed.predict(frame)


def test_a_model_with_an_encoding_takes_its_own_features_under_their_names(mixed):
    X = by_hand(raw_table(1))
    frame = pd.DataFrame(X[:, ::-1], columns=ENCODING.shown_names[::-1])
    assert (mixed.decision_function(frame) == mixed.decision_function(X)).all()


def test_dummies_of_another_library_are_refused(mixed):
    frame = pd.get_dummies(pd.DataFrame(raw_table(1)), columns=["colour"])
    with pytest.raises(ValueError, match="lacks 1 column that the model needs: 'colour'"):
        mixed.predict(frame)


def test_a_category_that_was_not_in_training_is_warned_of_and_counts_as_none_of_them(mixed):
    raw = raw_table(1)
    known = mixed.decision_function(by_hand(raw))
    raw["colour"][7] = "violet"
    with pytest.warns(UserWarning, match="in 1 row, such as 'violet'; none of"):
        found = mixed.decision_function(pl.DataFrame(raw))
    X = by_hand(raw)
    assert X[7, :3].tolist() == [0, 0, 0]
    assert (found == mixed.decision_function(X)).all()
    assert (found == known).sum() >= len(known) - 1


def test_a_kind_that_differs_from_training_is_refused_with_what_to_do(mixed):
    frame = as_iso(raw_table(1), lambda day: day.strftime("%d %B %Y"))
    with pytest.raises(ValueError, match=r"'since' held dates .* Turn it into dates, as in train"):
        mixed.predict(frame)
    with pytest.raises(ValueError, match=r"'size' held numbers .* Turn it into numbers, as in"):
        mixed.predict(pl.DataFrame(raw_table(1)).with_columns(size=pl.lit("tall")))


def test_numbers_are_taken_as_text_only_where_their_text_is_certain(mixed):
    frame = pl.DataFrame(raw_table(1)).with_columns(colour=pl.lit(3))
    with pytest.warns(UserWarning, match="'colour' has values that were not in training"):
        mixed.predict(frame)
    codes = dataclasses.replace(ENCODING.columns[0], values=("01", "02", "3"))
    encoding = dataclasses.replace(ENCODING, columns=(codes, *ENCODING.columns[1:]))
    coded = dataclasses.replace(
        mixed, feature_names=encoding.feature_names, details={"encoding": encoding.as_details()}
    )
    with pytest.raises(ValueError, match=r"'colour' held text .* holds numbers\. Read it as text"):
        coded.predict(frame)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e | {"named": 1},
        lambda e: e | {"n_columns": "5"},
        lambda e: e | {"columns": e["columns"][1:]},
        lambda e: e | {"columns": [e["columns"][0] | {"kind": "number"}, *e["columns"][1:]]},
        lambda e: e | {"columns": [e["columns"][0] | {"name": None}, *e["columns"][1:]]},
        lambda e: e | {"columns": "x" * 10**6},
        lambda e: [],
        lambda e: "none",
    ],
)
def test_a_file_whose_encoding_does_not_fit_its_model_is_refused(mixed, tmp_path, change):
    broken = dataclasses.replace(mixed, details={"encoding": change(ENCODING.as_details())})
    broken.save(tmp_path / "model.json")
    with pytest.raises(ModelFileError, match="encoding") as refusal:
        StumpEnsemble.load(tmp_path / "model.json")
    assert len(str(refusal.value)) < 500


def test_a_model_with_an_encoding_is_the_same_after_its_file(mixed, tmp_path):
    mixed.save(tmp_path / "model.json")
    loaded = StumpEnsemble.load(tmp_path / "model.json")
    assert loaded.encoding == ENCODING
    frame = pl.DataFrame(raw_table(1))
    assert (loaded.decision_function(frame) == mixed.decision_function(frame)).all()
