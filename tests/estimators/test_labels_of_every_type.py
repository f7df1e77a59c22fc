"""Labels: the same classes whatever library and type hold them, and warnings of odd ones."""

from __future__ import annotations

import decimal
import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from classifiers import KINDS, drawn

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    audit,
)

X, Y = drawn()
WHOLE, TRUTHS, TEXTS = Y.tolist(), (Y > 0).tolist(), np.asarray(["no", "yes"])[Y].tolist()
FLOATS = [float(label) for label in WHOLE]


objects = functools.partial(np.array, dtype=object)


def pandas_of(values: list, *dtypes: object) -> list[pd.Series]:
    return [pd.Series(values, dtype=dtype) for dtype in dtypes]


SAME: list[tuple[tuple, list]] = [
    ((0, 1), [
        WHOLE, FLOATS, np.asarray(FLOATS, dtype=np.float32), objects(WHOLE), objects(FLOATS),
        objects([np.int8(label) for label in WHOLE]),
        objects([decimal.Decimal(label) for label in WHOLE]),
        objects([0 if label == 0 else True for label in WHOLE]), objects(WHOLE)[:, None],
        *pandas_of(WHOLE, object, "int8", "Int64", "Float32", "category", "int64[pyarrow]"),
        pd.DataFrame({"y": WHOLE}, dtype=object), pl.Series(WHOLE),
        pl.Series(WHOLE, dtype=pl.UInt8), pl.Series(WHOLE, dtype=pl.Object), pa.array(WHOLE),
        pa.chunked_array([WHOLE]),
    ]),
    ((False, True), [
        TRUTHS, objects(TRUTHS), objects([np.bool_(label) for label in TRUTHS]),
        *pandas_of(TRUTHS, object, bool, "boolean", "category", "bool[pyarrow]"),
        pl.Series(TRUTHS), pl.Series(TRUTHS, dtype=pl.Object), pa.array(TRUTHS),
    ]),
    (("no", "yes"), [
        TEXTS, objects(TEXTS), objects([np.str_(label) for label in TEXTS]),
        *pandas_of(TEXTS, object, "string", "category", "string[pyarrow]"),
        pl.Series(TEXTS), pl.Series(TEXTS, dtype=pl.Categorical), pa.array(TEXTS),
    ]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize(("classes", "given"), SAME, ids=["whole", "booleans", "text"])
def test_labels_of_every_library_and_type_are_the_same_classes(classes, given):
    digests = set()
    for y in given:
        fitted = AdaBoostClassifier(n_estimators=4).fit(X, y, X_val=X, y_val=y)
        digests.add(fitted.model_.digest())
        assert fitted.model_.classes == classes
        assert [type(label) for label in fitted.model_.classes] == [*map(type, classes)]
        assert fitted.score(X, y) == fitted.score(X, given[0])
    assert len(digests) == 1


def test_objects_that_are_large_integers_stay_exact():
    for pair in ((2**53, 2**53 + 1), (1, 2**63 + 1), (-(2**63), 2**63 - 1)):
        y = objects([pair[label] for label in WHOLE])
        assert AdaBoostClassifier(n_estimators=1).fit(X, y).model_.classes == pair


@pytest.mark.parametrize("name", ["discrete", "newton-shared"])
def test_labels_that_are_mostly_different_are_warned_of_once_in_fit(name):
    y = np.arange(120) // 2 + (np.arange(120) == 1) * 60  # 61 classes
    with pytest.warns(
        UserWarning, match="61 different values in 120 samples, .* a quantity"
    ) as all_:
        fitted = KINDS[name](n_estimators=1).fit(X, y)
    assert len(all_) == 1
    assert all_[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(X)
        fitted.score(X, y)
        audit(fitted.model_, X, y)
        KINDS[name](n_estimators=1).fit(X, np.arange(120) // 2)  # 60 classes
        KINDS[name](n_estimators=1).fit(X[:20], np.arange(20))


STOPPING = {"n_iter_no_change": 3, "random_state": 0, "n_estimators": 6}


@pytest.mark.parametrize(
    "make",
    [
        lambda: LogitBoostClassifier(**STOPPING),
        lambda: AdaBoostClassifier(**STOPPING, multi_class="shared", votes="real"),
        lambda: LogitBoostClassifier(n_bags=3, random_state=0, n_estimators=4),
        lambda: GlassBoxClassifier(random_state=0, n_estimators=20),
    ],
    ids=["early stopping", "shared", "bags", "glass box"],
)
def test_a_class_of_one_sample_is_trained_on_with_one_warning(make):
    labels = np.where(np.arange(120) == 7, 2, Y)
    with pytest.warns(
        UserWarning, match="y: class 2 has one sample only, which is trained on"
    ) as all_:
        found = make().fit(X, labels)
    assert len(all_) == 1
    assert found.model_.classes == (0, 1, 2)
    assert len(found.held_out_scores_[0]) > 0 or make().n_iter_no_change is None
    with warnings.catch_warnings():  # where nothing is held out, nobody warns
        warnings.simplefilter("error")
        assert AdaBoostClassifier().fit(X, labels).n_classes_ == 3


def test_too_few_samples_of_many_classes_are_refused_in_few_words():
    y = np.arange(120) % 50
    with pytest.raises(ValueError, match="each part needs one of all 50 classes") as error:
        GlassBoxClassifier(random_state=0).fit(X, y)
    assert len(str(error.value)) < 400
    assert "Put rare classes together" in str(error.value)
    with pytest.raises(ValueError, match="every class has one sample only") as error:
        GlassBoxClassifier(random_state=0).fit(X, np.arange(120))
    assert len(str(error.value)) < 400
