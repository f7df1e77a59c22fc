"""Frames on a cluster: the same columns, categories, sets and model as on one machine."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from audited_fits import Interrupted, Interrupting
from clusters import (
    check_equal,
    clone,
    cut,
    fitted_here,
    lose_at,
    sizes_of,
)

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor, dask

RNG = np.random.default_rng(5)
N = 400


def frame_of(n_rows: int = N, seed: int = 5) -> pd.DataFrame:
    """Numbers, text, categories of text and of numbers, codes, and a column without a value."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Ulm", "Bonn", "Köln", "Aachen", "Trier"], n_rows).astype(object)
    town[rng.random(n_rows) < 0.1] = None
    found = pd.DataFrame(
        {
            "width": rng.normal(size=n_rows).astype(np.float32),
            "town": town,
            "size": pd.Categorical(rng.choice([10, 9, 100], n_rows), categories=[100, 10, 9, 8]),
            "grade": pd.Categorical(rng.choice(list("cab"), n_rows)),
            "code": rng.integers(0, 6, n_rows).astype(float),
            "nothing": pd.Categorical([None] * n_rows, categories=["x"]),
        }
    )
    found.loc[::9, "code"] = np.nan
    found.loc[::7, "width"] = np.nan
    return found


FRAME = frame_of()
EFFECT = FRAME["town"].isin(["Ulm", "Trier"]).to_numpy() ^ (FRAME["code"] > 3).to_numpy()
Y = np.where(EFFECT + RNG.normal(scale=0.6, size=N) + (FRAME["size"] == 10) > 1, "yes", "no")
WEIGHTS = RNG.integers(0, 3, N).astype(float)
NAMED = ["town", "size", "grade", "code", "nothing"]
BY_TYPE = {"n_estimators": 8, "categorical_features": "from_dtype"}


def parted(frame: pd.DataFrame, *others: np.ndarray, seed: int = 0) -> list[Any]:
    """A frame in partitions, some of them empty, and arrays in the same ones.

    Categories are of each partition's own values only, and unknown to Dask.
    """
    sizes = sizes_of(len(frame), seed)
    ends = np.cumsum([0, *sizes]).tolist()
    parts = [columns_of_own_values(frame.iloc[a:b]) for a, b in itertools.pairwise(ends)]
    table = dd.from_map(lambda number: parts[number], range(len(parts)), meta=parts[0].iloc[:0])
    return [table, *(cut(other, *sizes) for other in others)]


def columns_of_own_values(part: pd.DataFrame) -> pd.DataFrame:
    found = part.copy()
    for name in set(found) & {"size", "grade"}:
        found[name] = found[name].cat.remove_unused_categories()
    return found


def evenly(*values: Any, n_parts: int = 3) -> list[Any]:
    """Frames and columns in equal partitions; what Dask knows of their categories stays known."""
    frames = [own if isinstance(own, pd.DataFrame) else pd.Series(own) for own in values]
    return [dd.from_pandas(own, npartitions=n_parts) for own in frames]


ADA, NEWTON = AdaBoostClassifier(**BY_TYPE), LogitBoostClassifier(**BY_TYPE)
CASES: dict[str, tuple[Any, np.ndarray]] = {
    "by type": (
        AdaBoostClassifier(**BY_TYPE, class_weight="balanced", monotonic_cst=[1, 0, 0, 0, 0, 0]), Y
    ),
    "names": (AdaBoostClassifier(n_estimators=8, categorical_features=NAMED), Y),
    "mask": (
        AdaBoostClassifier(
            n_estimators=8, votes="real", categorical_features=FRAME.columns.isin(NAMED)
        ), Y,
    ),
    "smoothed": (clone(NEWTON).set_params(smoothing_rounds=4, n_iter_no_change=5), Y),
    "indices": (LogitBoostClassifier(n_estimators=8, categorical_features=[1, 2, 3, 4]), Y),
    "counts": (StumpBoostingRegressor(**BY_TYPE, loss="poisson"), EFFECT * 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_frames_make_the_model_of_one_machine(threads, name):
    estimator, y = CASES[name]
    estimator.set_params(random_state=1)
    here = fitted_here(estimator, (FRAME, y, WEIGHTS))
    there = dask.fit(clone(estimator), *parted(FRAME, y, WEIGHTS), client=threads)
    check_equal(there, here)
    assert list(there.feature_names_in_) == list(FRAME.columns)
    assert here.is_categorical_.sum() >= 4
    lazy = dask.predict(there, parted(FRAME, seed=1)[0])
    assert (lazy.compute() == here.predict(FRAME)).all()


@pytest.mark.parametrize("known", [True, False])
def test_categories_that_dask_knows_and_those_it_does_not_are_numbered_alike(threads, known):
    table, labels = evenly(FRAME, Y, n_parts=5)
    own = table["grade"].cat
    table["grade"] = own.as_known() if known else own.as_unknown()
    check_equal(dask.fit(clone(ADA), table, labels, client=threads), fitted_here(ADA, (FRAME, Y)))


def test_columns_of_numbers_booleans_and_their_categories_are_taken_as_on_one_machine(threads):
    frame = FRAME[["width", "size"]].assign(is_old=FRAME["code"] > 2)
    estimator = AdaBoostClassifier(n_estimators=8)
    with pytest.warns(UserWarning, match="categories of"):
        there = dask.fit(clone(estimator), *evenly(frame, Y), client=threads)
    with pytest.warns(UserWarning, match="categories of"):
        check_equal(there, fitted_here(estimator, (frame, Y)))


@pytest.mark.parametrize("asked", [None, "from_dtype"])
def test_columns_are_matched_by_name_on_a_cluster(threads, asked):
    frame = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
    if asked is not None:
        frame["d"] = FRAME["town"]
    turned = frame[frame.columns[::-1]].assign(other=1.0)
    how = {"n_estimators": 4, "warm_start": True, "categorical_features": asked}
    there, here = AdaBoostClassifier(**how), AdaBoostClassifier(**how)
    X, other, labels = evenly(frame, turned, Y)
    dask.fit(there, X, labels, X_val=other, y_val=labels, client=threads)
    check_equal(there, here.fit(frame, Y, X_val=frame, y_val=Y))
    dask.fit(there.set_params(n_estimators=7), other, labels, client=threads)
    check_equal(there, here.set_params(n_estimators=7).fit(frame, Y))
    assert (dask.decision_function(there, other).compute() == here.decision_function(frame)).all()
    assert dask.score(there, other, labels) == here.score(frame, Y)
    with pytest.raises(ValueError, match="lacks 1 column that the model needs: 'b'"):
        dask.predict(there, X.drop(columns="b"))
    if asked is not None:
        with pytest.raises(ValueError, match="warm_start=True goes on with categorical_features="):
            dask.fit(there.set_params(categorical_features=["d"]), X, labels, client=threads)


@pytest.mark.usefixtures("looks_again_soon")
def test_a_worker_that_is_lost_in_the_middle_has_its_categories_numbered_anew(few, monkeypatch):
    """While categories are numbered, before rows are coded, and in the rounds."""
    lose_at(monkeypatch, few, {1, 7, 24}, seed=3)
    there = dask.fit(clone(NEWTON), *parted(FRAME, Y, WEIGHTS), client=few)
    check_equal(there, fitted_here(NEWTON, (FRAME, Y, WEIGHTS)))
    assert there.cluster_.n_lost > 0


def test_unknown_categories_count_as_missing_in_rows_to_watch_and_lazily_predicted_ones(threads):
    other = frame_of(120, seed=6)
    other["town"] = other["town"].replace("Ulm", "Jena")
    estimator = clone(ADA).set_params(n_iter_no_change=20)
    unseen = r"X_val: 'town' has values that were not in training in \d+ rows, such as 'Jena'"
    X_val, y_val = parted(other, Y[:120], seed=4)
    with pytest.warns(UserWarning, match=unseen) as told:
        there = dask.fit(clone(estimator), *parted(FRAME, Y), X_val=X_val, y_val=y_val)
    with pytest.warns(UserWarning, match=unseen) as wanted:
        here = fitted_here(estimator, (FRAME, Y), (other, Y[:120]))
    said, asked = (  # an earlier fit's sockets, which Dask leaves to the collector, may warn too
        [str(one.message) for one in own if one.category is UserWarning] for own in (told, wanted)
    )
    assert said == asked
    check_equal(there, here)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = dask.predict_proba(there, X_val)
        assert np.array_equal(lazy.compute(), here.predict_proba(other))
    assert lazy.npartitions == X_val.npartitions


def test_a_fit_goes_on_from_the_checkpoint_of_one_machine(threads, tmp_path):
    estimator, made = clone(ADA).set_params(checkpoint=tmp_path / "run.json"), list[Any]()
    with pytest.raises(Interrupted):
        fitted_here(clone(estimator).set_params(callback=Interrupting(4)), (FRAME, Y))
    dask.fit(estimator.set_params(callback=made.append), *parted(FRAME, Y), client=threads)
    check_equal(estimator, fitted_here(ADA, (FRAME, Y)))
    assert made[0].number > 1
    other = FRAME.assign(grade=FRAME["grade"].cat.rename_categories({"a": "d"}))
    with pytest.raises(ValueError, match="checkpoint: this fit cannot go on"):
        dask.fit(estimator, *parted(other, Y), client=threads)


MANY = pd.DataFrame({"id": [f"number {k % 1001}" for k in range(3 * N)], "width": 0.5})
REFUSED: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "too many categories": (MANY, {"categorical_features": "from_dtype"}),
    "text that is not named": (FRAME, {"categorical_features": ["size", "grade", "nothing"]}),
    "an unknown name": (FRAME, {"categorical_features": ["city"]}),
    "numbers that are none of categories": (
        FRAME.assign(code=0.5), {"categorical_features": NAMED},
    ),
    "a mask of another length": (FRAME, {"categorical_features": [True, False]}),
    "a word": (FRAME, {"categorical_features": "all"}),
    "a constraint": (FRAME, {"categorical_features": NAMED, "monotonic_cst": [1] * 6}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_machine_refuses_is_refused_in_its_words_before_training(threads, name):
    frame, how = REFUSED[name]
    there = AdaBoostClassifier(**how)
    with pytest.raises(ValueError, match=r"[Cc]ategorical|columns") as here:
        AdaBoostClassifier(**how).fit(frame, np.resize(Y, len(frame)))
    with pytest.raises(ValueError, match="^" + re.escape(str(here.value))):
        dask.fit(there, *evenly(frame, np.resize(Y, len(frame))), client=threads)
    assert not hasattr(there, "model_")


def test_columns_of_other_types_are_refused(threads):
    X_val, y_val = parted(FRAME, Y)
    text = FRAME.assign(code=FRAME["code"].map("0{:.0f}".format))
    for frame, words in (
        (FRAME.assign(town=1.0), "X_val: column 'town' holds categories, and numbers in the table"),
        (text, "X_val: column 'code' holds numbers, and categories in the table"),
    ):
        with pytest.raises(ValueError, match=words):
            dask.fit(clone(ADA), *parted(frame, Y), X_val=X_val, y_val=y_val, client=threads)
    parts = [FRAME, FRAME.assign(town=1.0)]  # `dd.concat` has pandas warn of these now and then
    mixed = dd.from_map(lambda number: parts[number], range(2), meta=FRAME.iloc[:0])
    labels = cut(np.concatenate([Y, Y]), N, N)
    with pytest.raises(ValueError, match="'town' holds categories in some partitions and numbers"):
        dask.fit(clone(ADA), mixed, labels, client=threads)
