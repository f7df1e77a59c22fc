"""Categorical features of the estimators: which they are, how frames are numbered, what is refused.

That the best sets are found is proved in tests/engines/test_categories.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from classifiers import KINDS
from numpy.testing import assert_array_equal
from sklearn.base import clone

from gpustump import (
    AdaBoostClassifier,
    DecisionStumpClassifier,
    LogitBoostClassifier,
)
from gpustump.learners.kinds import OfCategories
from gpustump.model.ensemble import StumpEnsemble

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)

COLOURS = np.asarray(["blue", "green", "grey", "pink", "red", "white"])  # sorted


def drawn(n_classes: int = 2, n_samples: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """A number, and the number of a colour; red, grey and white are alike."""
    random = np.random.default_rng(n_classes)
    codes = random.integers(0, len(COLOURS), n_samples)
    X = np.stack([random.normal(size=n_samples), codes], axis=1).astype(np.float32)
    score = X[:, 0] + 2 * np.isin(codes, [2, 4, 5]) + 0.5 * random.normal(size=n_samples)
    return X, np.argsort(np.argsort(score)) * n_classes // n_samples


def frame_of(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"x": X[:, 0], "colour": COLOURS[X[:, 1].astype(int)]})


FRAMES = {
    "pandas text": lambda X: frame_of(X),
    "pandas objects": lambda X: frame_of(X).astype({"colour": object}),
    "pandas categories": lambda X: frame_of(X).astype({"colour": "category"}),
    "pandas categories, others too": lambda X: frame_of(X).assign(
        colour=pd.Categorical(frame_of(X).colour, ["zebra", *COLOURS[::-1]], ordered=True)
    ),
    "polars text": lambda X: pl.from_pandas(frame_of(X)),
    "polars categories": lambda X: pl.from_pandas(frame_of(X)).cast({"colour": pl.Categorical}),
    "polars enum": lambda X: pl.from_pandas(frame_of(X)).cast(
        {"colour": pl.Enum([*COLOURS[::-1], "zebra"])}
    ),
    "pyarrow": lambda X: pl.from_pandas(frame_of(X)).to_arrow(),
}


@EVERY_KIND
def test_frames_of_every_type_train_the_model_of_the_array_of_numbers(kind):
    X, y = drawn(3)
    expected = KINDS[kind](n_estimators=8, categorical_features=[1]).fit(X, y)
    splits = [s for m in expected.model_.members for s in m.hypotheses]
    assert any(isinstance(split, OfCategories) for split in splits)
    for name, make in FRAMES.items():
        if name == "pyarrow":
            pytest.importorskip("pyarrow")
        found = KINDS[kind](n_estimators=8, categorical_features="from_dtype").fit(make(X), y)
        assert found.model_.digest() == expected.model_.digest(), name
        scores = expected.decision_function(X)
        for frame in (make(X), frame_of(X)):
            assert_array_equal(found.decision_function(frame), scores, name)
        assert_array_equal(found.model_.decision_function(X), scores, name)
        few = make(X[:5])  # fewer categories than in training
        assert_array_equal(found.predict(few), expected.predict(X[:5]), name)


def test_categories_that_are_booleans_are_a_column_of_booleans_to_a_model():
    X, y = drawn()
    frame = pd.DataFrame({"x": X[:, 0], "is_red": X[:, 1] >= 3})
    own = LogitBoostClassifier(n_estimators=9, categorical_features="from_dtype")
    own.fit(frame.astype({"is_red": "category"}), y)
    wanted = own.decision_function(frame.astype({"is_red": "category"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (frame, pl.from_pandas(frame)):
            assert_array_equal(own.decision_function(other), wanted)


@pytest.mark.parametrize(
    "named", [[False, True], np.asarray([False, True]), [-1], (1, 1), np.asarray([1]), ["colour"]],
    ids=str,
)  # fmt: skip
def test_a_mask_indices_and_names_choose_the_same_features(named):
    X, y = drawn()
    frame = frame_of(X)
    expected = LogitBoostClassifier(n_estimators=5, categorical_features="from_dtype")
    found = LogitBoostClassifier(n_estimators=5, categorical_features=named).fit(frame, y)
    assert found.model_.digest() == expected.fit(frame, y).model_.digest()
    assert found.is_categorical_.tolist() == [False, True]


@pytest.mark.parametrize("kind", ["discrete", "real", "newton"])
def test_constraints_are_for_other_features(kind):
    X, y = drawn()
    how = {"n_estimators": 12, "categorical_features": [1]}
    with pytest.raises(ValueError, match="Categorical features cannot have monotonic constraints"):
        KINDS[kind](**how, monotonic_cst=[0, 1]).fit(X, y)
    classifier = KINDS[kind](**how, monotonic_cst=[-1, 0]).fit(X, y)  # against what the data say
    assert (np.diff(classifier.shape_function(0).values) <= 0).all()
    splits = classifier.model_.members[0].hypotheses
    assert all(isinstance(split, OfCategories) == (split.feature == 1) for split in splits)
    assert classifier.model_ != KINDS[kind](**how).fit(X, y).model_
    named = {"categorical_features": ["colour"], "monotonic_cst": {"x": -1}}
    framed = KINDS[kind](**(how | named)).fit(frame_of(X), y)
    assert framed.model_.digest() == classifier.model_.digest()


def test_values_that_are_no_numbers_of_categories_are_refused_by_name():
    X, y = drawn()
    with pytest.raises(ValueError, match=r"categorical feature 0 must hold numbers of categories"):
        AdaBoostClassifier(categorical_features=[0]).fit(X, y)
    with pytest.raises(ValueError, match=r"categorical feature 'x' must hold numbers"):
        AdaBoostClassifier(categorical_features=["x"]).fit(frame_of(X).drop(columns="colour"), y)
    with pytest.raises(ValueError, match=r"do not hold numbers: 'colour' \(text"):
        AdaBoostClassifier(categorical_features=[False, False]).fit(frame_of(X), y)
    with pytest.raises(ValueError, match=r"'colour' \(text.* categorical_features='from_dtype'"):
        AdaBoostClassifier().fit(frame_of(X), y)
    with pytest.raises(ValueError, match=r"do not hold numbers: 'colour' \(text.*columns\.$"):
        DecisionStumpClassifier().fit(frame_of(X), y)


def test_1000_categories_are_taken_and_1001_are_refused_with_a_way_out(tmp_path):
    classifier = AdaBoostClassifier(n_estimators=1, categorical_features="from_dtype")
    numbers = np.tile(np.arange(1001), 10)
    frame, y = pd.DataFrame({"c": [f"c{number:03}" for number in numbers]}), numbers % 2
    with pytest.raises(ValueError, match=r"'c' has 1001 categories.*Put rare ones together"):
        classifier.fit(frame, y)
    frame, y = frame[numbers < 1000], y[numbers < 1000]
    assert classifier.fit(frame, y).score(frame, y) == 1.0
    classifier.model_.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json") == classifier.model_


@EVERY_KIND
def test_missing_and_unknown_categories_have_the_score_of_missing_values(kind):
    X, y = drawn()
    X[::7, 1] = np.nan
    classifier = KINDS[kind](n_estimators=8, categorical_features=[1]).fit(X, y)
    values = np.asarray([[0.5, value] for value in (np.nan, -1, 6, 17, 999, 1000, 1e9)])
    with pytest.warns(UserWarning, match="'column 1' has values that were not in training in 5 r"):
        assert len(set(classifier.decision_function(values).tolist())) == 1
    frame = frame_of(np.nan_to_num(X)).mask(np.isnan(X))
    framed = KINDS[kind](n_estimators=8, categorical_features=["colour"]).fit(frame, y)
    assert framed.model_.digest() == classifier.model_.digest()
    other = pd.DataFrame({"x": [0.5, 0.5], "colour": [None, "violet"]}).astype({"x": "float32"})
    with pytest.warns(UserWarning, match="'colour' has values that were not in training in 1 row"):
        found = framed.decision_function(other)
    assert_array_equal(found, classifier.decision_function(values[:2]))  # no warning of -1


def test_unknown_categories_of_rows_to_watch_are_told_once_and_by_the_name_of_these(tmp_path):
    X, y = drawn()
    frame, other = frame_of(X), frame_of(X).assign(colour="violet")
    own = LogitBoostClassifier(n_estimators=2, categorical_features="from_dtype")
    own.set_params(checkpoint=tmp_path / "run.json")  # for which the rows are compared, too
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        own.fit(frame, y, X_val=other, y_val=y)
    (one,) = told
    assert str(one.message).startswith("X_val: 'colour' has values that were not in training")


def test_a_category_of_samples_without_weight_is_unknown():
    X, y = drawn()
    weights = (X[:, 1] != 2).astype(float)
    kept = weights > 0
    classifier = LogitBoostClassifier(n_estimators=5, categorical_features=[1])
    one = classifier.fit(X, y, weights).model_
    assert one.digest() == clone(classifier).fit(X[kept], y[kept]).model_.digest()
    lacking = np.where(np.arange(2) == 1, np.nan, X[~kept])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_array_equal(one.decision_function(X[~kept]), one.decision_function(lacking))
