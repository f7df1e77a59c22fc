"""Data that cannot be trained on are refused with a message that says what to do; nothing is left
behind on the workers."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from clusters import client_of, closed
from on_dask import AdaBoostThere, LogitBoostThere
from partitioned_tables import cut, spread
from sklearn.exceptions import NotFittedError

from gpustump import AdaBoostClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)


def lazily(values: np.ndarray) -> Any:
    """An array whose dtype Dask does not know."""
    return da.from_delayed(dask.delayed(np.asarray)(values), values.shape, dtype=object)


PARTS = (30, 30, 30)

REFUSED: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "X in memory": (X, cut(Y, *PARTS), None, TypeError, "X must be a Dask array or frame"),
    "y in memory": (cut(X, *PARTS), Y, None, TypeError, "y must be a Dask array or frame"),
    "no y": (cut(X, *PARTS), None, None, ValueError, "requires y to be passed"),
    "another number of rows": (
        cut(X, *PARTS), cut(Y[:60], 30, 30), None, ValueError, "inconsistent numbers of samples",
    ),
    "three dimensions": (
        da.zeros((90, 3, 2)), cut(Y, 90), None, ValueError, "must have two dimensions",
    ),
    "NaN among labels": (
        cut(X, *PARTS), cut(np.where(Y, 1.0, np.nan), *PARTS), None, ValueError, "y contains NaN",
    ),
    "text and numbers": (
        cut(X, 45, 45),
        da.concatenate([lazily(Y[:45]), lazily(np.full(45, "b"))]),
        None, TypeError, "y holds text in some partitions and numbers in others",
    ),
    "negative weights": (
        cut(X, *PARTS), cut(Y, *PARTS), cut(X[:, 0], *PARTS), ValueError,
        "sample_weight contains negative weights",
    ),
    "weights of zero": (
        cut(X, *PARTS), cut(Y, *PARTS), cut(0.0 * Y, *PARTS), ValueError,
        "sample_weight is zero for every sample",
    ),
    "no rows": (
        da.from_array(X[:0], chunks=(1, 3)), da.from_array(Y[:0], chunks=1), None, ValueError,
        r"0 sample\(s\)",
    ),
    "complex numbers": (
        cut(X + 1j, *PARTS), cut(Y, *PARTS), None, ValueError, "Complex data not supported",
    ),
    "text columns": (
        dd.from_pandas(pd.DataFrame({"a": ["x", "y"] * 45}), npartitions=3), cut(Y, *PARTS), None,
        ValueError, "columns that do not hold numbers",
    ),
    "another number of partitions": (
        dd.from_pandas(pd.DataFrame(X), npartitions=3),
        dd.from_pandas(pd.Series(Y), npartitions=2), None, ValueError,
        "X has 3 partitions and y has 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_bad_data_are_refused_in_words(threads, name):
    table, labels, weights, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        AdaBoostThere(client=threads, n_estimators=3).fit(table, labels, weights)


WATCHED: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "rows in memory": (X, cut(Y, *PARTS), None, TypeError, "X_val and y_val: X must be a Dask"),
    "rows alone": (cut(X, *PARTS), None, None, ValueError, "X_val is given, but y_val is not"),
    "no rows": (
        da.from_array(X[:0], chunks=(1, 3)), da.from_array(Y[:0], chunks=1), None, ValueError,
        r"X_val has 0 sample\(s\)",
    ),
    "features": (
        cut(X[:, :2], *PARTS), cut(Y, *PARTS), None, ValueError, "X_val and y_val: X has 2 features"
    ),
    "a class": (
        cut(X, *PARTS), cut(Y + 1, *PARTS), None, ValueError, "y_val holds 2, but the classes of y",
    ),
    "no weight": (
        cut(X, *PARTS), cut(Y, *PARTS), cut(0.0 * Y, *PARTS), ValueError, "sample_weight_val is ze",
    ),
    "one class": (
        cut(X, *PARTS), cut(0 * Y, *PARTS), None, ValueError, "y_val holds none of class 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WATCHED))
def test_bad_rows_to_watch_are_refused_in_words(threads, name):
    table, labels, weights, kind, words = WATCHED[name]
    there = AdaBoostThere(client=threads, n_estimators=3, scoring="balanced_accuracy")
    with pytest.raises(kind, match=words):
        there.fit(*spread(X, Y), X_val=table, y_val=labels, sample_weight_val=weights)


def test_an_error_in_rows_to_watch_is_said_with_the_partition(threads):
    there = AdaBoostThere(client=threads, n_estimators=3)
    with pytest.raises(ValueError, match="sample_weight contains negative weights") as e:
        there.fit(
            *spread(X, Y), X_val=cut(X, 90), y_val=cut(Y, 90), sample_weight_val=cut(-1.0 - Y, 90)
        )
    assert any("in partition 0 of X_val and y_val" in note for note in e.value.__notes__)


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({0: 1, 7: 2}, "class_weight names 7, which y does not hold, but not 1"),
        ({0: 0, 1: 0}, "sample_weight times class_weight is zero for every sample"),
        ({0: 1e300}, "sample_weight times class_weight contains infinite weights"),
        ("fair", "class_weight must be None, 'balanced' or a dict"),
    ],
    ids=str,
)
def test_bad_weights_of_classes_are_refused_in_words(threads, class_weight, words):
    there = AdaBoostThere(client=threads, n_estimators=3, class_weight=class_weight)
    with pytest.raises(ValueError, match=words):
        there.fit(*spread(X, Y, np.full(90, 1e10)))


def test_partitions_of_unknown_sizes_that_do_not_match_are_refused_by_number(threads):
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    labels = dd.concat([
        dd.from_pandas(pd.Series(Y[:20]), npartitions=1),
        dd.from_pandas(pd.Series(Y[20:]), npartitions=2),
    ]).to_dask_array()  # fmt: skip
    with pytest.raises(
        ValueError, match="this partition of X has 30 rows and that of y has 20"
    ) as e:
        AdaBoostThere(client=threads).fit(frame, labels)
    assert any("in partition 0 of the data" in note for note in e.value.__notes__)


def test_chunks_of_columns_are_joined_with_a_word(threads):
    table = da.from_array(X, chunks=(30, 2))
    with pytest.warns(UserWarning, match="2 chunks of columns, which are joined"):
        there = AdaBoostThere(client=threads, n_estimators=3).fit(table, cut(Y, *PARTS))
    assert there.model_.digest() == AdaBoostClassifier(n_estimators=3).fit(X, Y).model_.digest()


def test_labels_in_other_chunks_are_cut_as_the_rows_are(threads):
    there = AdaBoostThere(client=threads, n_estimators=3)
    there.fit(cut(X, *PARTS), cut(Y, 45, 45))
    assert there.model_.digest() == AdaBoostClassifier(n_estimators=3).fit(X, Y).model_.digest()


def test_a_label_that_only_one_worker_sees_is_a_class(threads):
    y = np.where(np.arange(90) < 10, "rare", np.where(Y, "yes", "no"))
    there = LogitBoostThere(client=threads, n_estimators=3)
    there.fit(cut(X, 10, 40, 40), cut(y, 10, 40, 40))
    assert there.classes_.tolist() == ["no", "rare", "yes"]


def test_all_rows_on_one_worker_make_the_same_model(threads):
    there = AdaBoostThere(client=threads, n_estimators=3).fit(cut(X, 90), cut(Y, 90))
    assert there.model_.digest() == AdaBoostClassifier(n_estimators=3).fit(X, Y).model_.digest()
    assert there.cluster_.n_workers == 1
    assert "one worker" in str(there.route_)


def test_intervals_are_refused(threads):
    fit = AdaBoostThere(client=threads, weak_learner="interval")
    with pytest.raises(ValueError, match="weak_learner='interval' is not for clusters"):
        fit.fit(*spread(X, Y))


def test_other_features_than_in_fit_are_refused_when_predicting(threads):
    there = AdaBoostThere(client=threads, n_estimators=3).fit(*spread(X, Y))
    with pytest.raises(ValueError, match="3 features"):
        there.predict(cut(X[:, :2], *PARTS))


def test_a_closed_client_is_refused():
    client = client_of(n_workers=1, processes=False)
    closed(client)
    with pytest.raises(ValueError, match="the Dask client is closed"):
        AdaBoostThere(client=client).fit(*spread(X, Y))


def test_a_client_that_is_not_the_current_one_is_enough():
    client = client_of(n_workers=1, processes=False, is_current=False)
    try:
        there = AdaBoostThere(client=client, n_estimators=3).fit(*spread(X, Y))
        assert there.predict(cut(X, 90)).shape == (90,)
    finally:
        closed(client)


def test_the_current_client_is_taken_and_its_absence_is_said(threads):
    with threads.as_current():
        assert AdaBoostThere(n_estimators=3).fit(*spread(X, Y)).cluster_.n_workers > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distributed.get_client", absent)
        with pytest.raises(ValueError, match="there is no Dask client: make one first"):
            AdaBoostThere().fit(*spread(X, Y))


def absent():
    raise ValueError("No global client found and no address provided")


def test_what_is_no_classifier_that_is_boosted_is_refused(threads):
    from gpustump import DecisionStumpClassifier, dask

    for estimator in (DecisionStumpClassifier(), "AdaBoostClassifier"):
        with pytest.raises(TypeError, match="estimator must be an AdaBoostClassifier"):
            dask.fit(estimator, *spread(X, Y), client=threads)


def test_predictions_of_what_is_not_dask_s_are_refused(threads):
    from gpustump import AdaBoostClassifier, dask

    clf = AdaBoostClassifier(n_estimators=3)
    with pytest.raises(NotFittedError):
        dask.predict(clf, cut(X, *PARTS))
    clf.fit(X, Y)
    with pytest.raises(TypeError, match="X must be a Dask array or frame; got ndarray"):
        dask.predict(clf, X)


@pytest.mark.parametrize(
    ("constraints", "y", "problem"),
    [
        ([1, 0], Y, "monotonic_cst has 2 values, but X has 3 features"),
        ([1, 0, 0], np.arange(90) % 3, "monotonic_cst is for two classes"),
    ],
)
def test_bad_constraints_are_refused(threads, constraints, y, problem):
    classifier = LogitBoostThere(client=threads, monotonic_cst=constraints)
    with pytest.raises(ValueError, match=problem):
        classifier.fit(cut(X, *PARTS), cut(y, *PARTS))
