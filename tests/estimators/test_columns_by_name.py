"""Frames with names are matched by name wherever a fitted estimator or its model takes a table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from classifiers import KINDS, drawn
from numpy.testing import assert_array_equal

from gpustump import AdaBoostClassifier, DecisionStumpClassifier, StumpEnsemble

X, Y = drawn()
NAMES = ["height", "width", "age", "price"]
FRAME = pd.DataFrame(X.astype(np.float32), columns=NAMES).astype({"age": "float64"})
OTHERS = FRAME[NAMES[::-1]].assign(note="text", height_2=1.0)
LIBRARIES = {"pandas": lambda X: X, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}

METHODS = (
    *("decision_function", "predict", "predict_proba", "explain", "contribution_importances"),
    *("staged_decision_function", "staged_predict", "staged_predict_proba"),
)
OF_ESTIMATORS = (*METHODS, "predict_log_proba", "score", "staged_score")


def answer(model: Any, method: str, X: Any) -> Any:
    """What a method says of a table."""
    found = getattr(model, method)(*((X, Y) if "score" in method else (X,)))
    return list(found) if method.startswith("staged") else found


@pytest.fixture(scope="module")
def fitted() -> AdaBoostClassifier:
    return AdaBoostClassifier(n_estimators=8).fit(FRAME, Y)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", OF_ESTIMATORS)
def test_other_orders_and_other_columns_change_no_number(fitted, method, library, tmp_path):
    fitted.model_.save(tmp_path / "model.json")
    expected = answer(fitted, method, FRAME)
    models = [fitted]
    if method in METHODS:
        models += [fitted.model_, StumpEnsemble.load(tmp_path / "model.json")]
    for model in models:
        for columns in (NAMES[::-1], list(OTHERS)):
            frame = LIBRARIES[library](OTHERS[columns])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert_array_equal(answer(model, method, frame), expected)


@pytest.mark.parametrize("method", OF_ESTIMATORS)
def test_missing_columns_are_named_with_a_similar_name(fitted, method):
    with pytest.raises(ValueError, match=r"lacks 1 column .* needs: 'price'\. Did you mean 'Price"):
        answer(fitted, method, FRAME.rename(columns={"price": "Prices"}))
    with pytest.raises(ValueError, match="lacks 3 columns that the model needs: 'width', 'age', '"):
        answer(fitted, method, FRAME[["height"]])
    with pytest.raises(ValueError, match="lacks 4 columns"):
        answer(fitted, method, FRAME.add_prefix("another_"))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_to_watch_are_matched_by_name(kind):
    how = {"n_estimators": 6, "n_iter_no_change": 3}
    found, expected = (
        KINDS[kind](**how).fit(FRAME[:80], Y[:80], X_val=frame[80:], y_val=Y[80:])
        for frame in (OTHERS, FRAME)
    )
    assert found.held_out_scores_ == expected.held_out_scores_
    assert found.model_.digest() == expected.model_.digest()


@pytest.mark.filterwarnings("ignore:X does not have valid:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("make", [AdaBoostClassifier, DecisionStumpClassifier])
def test_columns_without_names_are_matched_by_position(make):
    plain = pd.DataFrame(FRAME.to_numpy())
    named, unnamed = make().fit(FRAME, Y), make().fit(plain, Y)
    expected = unnamed.predict(plain)
    for model, frame, message in (
        (named, plain, "does not have valid feature names"),
        (unnamed, FRAME, "was fitted without feature names"),
    ):
        with pytest.warns(UserWarning, match=message):
            assert_array_equal(model.predict(frame), expected)
        assert_array_equal(model.model_.predict(frame), expected)
    for other in (plain[[0, 1, 2]], plain.assign(more=0.0).set_axis(range(5), axis=1)):
        for model in (named, unnamed):
            with pytest.raises(ValueError, match=r"X has [35] features, but .* is expecting 4"):
                model.predict(other)
            with pytest.raises(ValueError, match=r"X has [35] columns, but the model needs its 4"):
                model.model_.predict(other)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_text_in_arrays_and_in_a_single_row_is_refused_with_the_way_to_give_it():
    frame = pd.DataFrame({"a": np.arange(8.0), "c": list("uvuvuvuv")})
    clf = AdaBoostClassifier(n_estimators=2, categorical_features="from_dtype")
    clf.fit(frame, np.arange(8) > 3)
    for text in (frame.iloc[0], frame.to_numpy(), frame.to_numpy().tolist()):
        with pytest.raises(ValueError, match=r"Text is read in frames .* frame.iloc\[\[0\]\]"):
            clf.predict(text)
