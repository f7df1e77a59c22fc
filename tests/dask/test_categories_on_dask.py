"""Categorical features on a cluster: the same categories, sets and model as on one machine."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from lost_workers import lose_one, sent_through
from on_dask import AdaBoostThere, LogitBoostThere
from partitioned_tables import cut, sizes_of

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.dask import categories

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


def parted(frame: pd.DataFrame, *others: np.ndarray, seed: int = 0) -> list[Any]:
    """A frame in partitions, some of them empty, and arrays in the same ones.

    Categories are of each partition's own values only, and unknown to Dask.
    """
    sizes = sizes_of(len(frame), np.random.default_rng(seed))
    ends = np.cumsum([0, *sizes]).tolist()
    parts = [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]
    own = [columns_of_own_values(part) for part in parts]
    table = dd.from_map(lambda number: own[number], range(len(own)), meta=own[0].iloc[:0])
    return [table, *(cut(other, *sizes) for other in others)]


def columns_of_own_values(part: pd.DataFrame) -> pd.DataFrame:
    found = part.copy()
    for name in ("size", "grade"):
        found[name] = found[name].cat.remove_unused_categories()
    return found


def check_equal(there: Any, here: Any) -> None:
    assert there.model_.digest() == here.model_.digest()
    assert there.rounds_ == here.rounds_
    assert there.held_out_scores_ == here.held_out_scores_
    assert there.model_.details.get("encoding") == here.model_.details.get("encoding")
    assert np.array_equal(there.is_categorical_, here.is_categorical_)


KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "discrete": (AdaBoostThere, AdaBoostClassifier, {"class_weight": "balanced"}),
    "real": (AdaBoostThere, AdaBoostClassifier, {"votes": "real"}),
    "newton": (
        LogitBoostThere,
        LogitBoostClassifier,
        {"smoothing_rounds": 4, "n_iter_no_change": 5, "random_state": 1},
    ),
}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("discrete", "from_dtype"),
        ("discrete", NAMED),
        ("real", FRAME.columns.isin(NAMED)),
        ("newton", "from_dtype"),
        ("newton", [1, 2, 3, 4]),
    ],
    ids=["from_dtype", "names", "mask", "from_dtype, smoothed", "indices"],
)
def test_frames_make_the_model_of_one_machine(threads, kind, asked):
    on_dask, local, how = KINDS[kind]
    how = {"n_estimators": 12, "categorical_features": asked, **how}
    if kind == "discrete":
        how["monotonic_cst"] = [1, 0, 0, 0, 0, 0]
    here = local(**how).fit(FRAME, Y, WEIGHTS)
    there = on_dask(client=threads, **how).fit(*parted(FRAME, Y, WEIGHTS))
    check_equal(there, here)
    assert here.is_categorical_.sum() >= 4


@pytest.mark.parametrize("known", [True, False])
def test_categories_that_dask_knows_and_those_it_does_not_are_numbered_alike(threads, known):
    table = dd.from_pandas(FRAME, npartitions=5)
    own = table["grade"].cat
    table["grade"] = own.as_known() if known else own.as_unknown()
    how = {"n_estimators": 8, "categorical_features": "from_dtype"}
    there = AdaBoostThere(client=threads, **how)
    there.fit(table, dd.from_pandas(pd.Series(Y), npartitions=5))
    check_equal(there, AdaBoostClassifier(**how).fit(FRAME, Y))


def test_numbers_in_arrays_make_the_model_of_one_machine_for_more_classes(threads):
    X = np.column_stack([RNG.integers(0, 30, N), RNG.normal(size=N), RNG.integers(-1, 4, N)])
    X[::5, 0] = np.nan
    y = (np.nan_to_num(X[:, 0]).astype(int) % 3 + (X[:, 1] > 0.8)) % 3
    how = {"n_estimators": 9, "categorical_features": [0, 2]}
    for seed, multi_class in enumerate(("shared", "one_vs_rest")):
        sizes = sizes_of(N, np.random.default_rng(seed))
        there = LogitBoostThere(client=threads, multi_class=multi_class, **how)
        there.fit(cut(X, *sizes), cut(y, *sizes))
        check_equal(there, LogitBoostClassifier(multi_class=multi_class, **how).fit(X, y))


@pytest.mark.usefixtures("looks_again_soon")
def test_a_worker_that_is_lost_in_the_middle_has_its_categories_numbered_anew(few, monkeypatch):
    chance = random.Random(3)
    # While categories are numbered, before rows are coded, and in the rounds.
    moments = {1, 7, 24}
    sent_through(
        monkeypatch, lambda number, _: lose_one(few, chance) if number in moments else None
    )
    how = {"n_estimators": 12, "categorical_features": "from_dtype"}
    there = LogitBoostThere(client=few, **how).fit(*parted(FRAME, Y, WEIGHTS))
    check_equal(there, LogitBoostClassifier(**how).fit(FRAME, Y, WEIGHTS))
    assert there.cluster_.n_lost > 0


def test_unknown_categories_count_as_missing_in_rows_to_watch_and_lazily_predicted_ones(threads):
    other = frame_of(120, seed=6)
    other["town"] = other["town"].replace("Ulm", "Jena")
    labels = Y[:120]
    how = {"n_estimators": 8, "categorical_features": "from_dtype", "n_iter_no_change": 20}
    unseen = r"X: 'town' has values that were not in training in \d+ rows, such as 'Jena'"
    there = AdaBoostThere(client=threads, **how)
    X_val, y_val = parted(other, labels, seed=4)
    with pytest.warns(UserWarning, match=unseen) as told:
        there.fit(*parted(FRAME, Y), X_val=X_val, y_val=y_val)
    with pytest.warns(UserWarning, match=unseen) as wanted:
        here = AdaBoostClassifier(**how).fit(FRAME, Y, X_val=other, y_val=labels)
    assert [str(one.message) for one in told] == [str(one.message) for one in wanted]
    check_equal(there, here)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = here.predict_proba(other)
        lazy = there.predict_proba(X_val)
        assert np.array_equal(lazy.compute(), expected)
        assert np.array_equal(there.estimator.predict_proba(other), expected)
    assert lazy.npartitions == X_val.npartitions


def test_a_warm_start_keeps_the_numbers_of_the_categories(threads):
    how = {"n_estimators": 4, "categorical_features": "from_dtype", "warm_start": True}
    there, here = AdaBoostThere(client=threads, **how), AdaBoostClassifier(**how)
    for n_estimators in (4, 9):
        there.set_params(n_estimators=n_estimators).fit(*parted(FRAME, Y, seed=n_estimators))
        here.set_params(n_estimators=n_estimators).fit(FRAME, Y)
    check_equal(there, here)
    with pytest.raises(ValueError, match="warm_start=True goes on with categorical_features="):
        there.set_params(categorical_features=["town"]).fit(*parted(FRAME, Y))


class Interrupted(BaseException):
    """Ends a fit in the middle."""


def test_a_fit_goes_on_from_the_checkpoint_of_one_machine(threads, tmp_path):
    how = {"n_estimators": 9, "categorical_features": "from_dtype"}
    path = tmp_path / "run.json"

    def interrupt(record: Any) -> None:
        if record.number == 4:
            raise Interrupted

    with pytest.raises(Interrupted):
        AdaBoostClassifier(**how, checkpoint=path, callback=interrupt).fit(FRAME, Y)
    made: list[int] = []
    there = AdaBoostThere(
        client=threads, **how, checkpoint=path, callback=lambda record: made.append(record.number)
    ).fit(*parted(FRAME, Y))
    check_equal(there, AdaBoostClassifier(**how).fit(FRAME, Y))
    assert made[0] > 1
    other = FRAME.assign(grade=FRAME["grade"].cat.rename_categories({"a": "d"}))
    with pytest.raises(ValueError, match="checkpoint: this fit cannot go on"):
        there.fit(*parted(other, Y))


def many(n: int) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"number {k % n}" for k in range(N)], "width": RNG.normal(size=N)})


REFUSED: dict[str, tuple[Any, Any]] = {
    "too many categories": (many(255), "from_dtype"),
    "text that is not named": (FRAME, ["size", "grade", "nothing"]),
    "an unknown name": (FRAME, ["city"]),
    "numbers that are none of categories": (FRAME.assign(code=0.5), NAMED),
    "a mask of another length": (FRAME, [True, False]),
    "a word": (FRAME, "all"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_machine_refuses_is_refused_in_its_words_before_training(threads, name):
    frame, asked = REFUSED[name]
    there = AdaBoostThere(client=threads, categorical_features=asked)
    table = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match=r"categorical|columns") as here:
        AdaBoostClassifier(categorical_features=asked).fit(frame, Y)
    with pytest.raises(ValueError, match="^" + re.escape(str(here.value))):
        there.fit(table, dd.from_pandas(pd.Series(Y), npartitions=3))
    assert not hasattr(there, "model_")


def test_far_too_many_categories_are_not_sent(threads, monkeypatch):
    monkeypatch.setattr(categories, "_MOST_TOLD", 60)
    there = AdaBoostThere(client=threads, categorical_features="from_dtype")
    with pytest.raises(ValueError, match="feature 'id' has more than 60 categories; there may be"):
        there.fit(*parted_plainly(many(N)))


def parted_plainly(frame: pd.DataFrame) -> tuple[Any, Any]:
    return dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(Y), npartitions=4)


def test_a_constraint_on_a_categorical_feature_is_refused(threads):
    how = {"categorical_features": ["town", "size", "grade", "nothing"], "monotonic_cst": [1] * 6}
    there = AdaBoostThere(client=threads, **how)
    with pytest.raises(ValueError, match="Categorical features cannot have monotonic constraints"):
        there.fit(*parted(FRAME, Y))


def test_numbers_in_rows_to_watch_are_the_categories_whose_text_they_are(threads):
    other = FRAME.assign(size=FRAME["size"].astype(float))
    how = {"n_estimators": 6, "categorical_features": "from_dtype"}
    there = AdaBoostThere(client=threads, **how)
    X_val, y_val = dd.from_pandas(other, npartitions=3), dd.from_pandas(pd.Series(Y), npartitions=3)
    there.fit(*parted(FRAME, Y), X_val=X_val, y_val=y_val)
    check_equal(there, AdaBoostClassifier(**how).fit(FRAME, Y, X_val=other, y_val=Y))


def test_columns_of_other_types_in_rows_to_watch_are_refused(threads):
    there = AdaBoostThere(client=threads, categorical_features="from_dtype")
    X_val, y_val = parted(FRAME, Y)
    with pytest.raises(ValueError, match="X_val: column 'town' holds categories, and numbers in"):
        there.fit(*parted(FRAME.assign(town=1.0), Y), X_val=X_val, y_val=y_val)
    with pytest.raises(ValueError, match="X_val: column 'code' holds numbers, and categories in"):
        there.fit(
            *parted(FRAME.assign(code=FRAME["code"].map("0{:.0f}".format)), Y),
            X_val=X_val, y_val=y_val,
        )  # fmt: skip


def test_lazy_predictions_count_values_that_are_no_categories_as_missing(threads):
    codes = RNG.integers(0, 4, 200).astype(float)
    X = np.stack([codes, RNG.normal(size=200)], axis=1)
    y = np.isin(codes, [1, 3]) ^ (X[:, 1] > 1)
    parts = [da.from_array(own, chunks=(50, -1)[: own.ndim]) for own in (X, y)]
    classifier = LogitBoostThere(n_estimators=5, categorical_features=[0]).fit(*parts)
    wrong = np.asarray([[value, 0.0] for value in (0.999, 1.5, 77, -0.2, np.inf, np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = classifier.decision_function(da.from_array(wrong, chunks=(2, -1))).compute()
    assert len({*found.tolist()}) == 1
