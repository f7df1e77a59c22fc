"""Sets of categories as splits, and tables of categorical features: what is looked up in them. And
what makes no interval."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from gpustump import (
    CategorySplit,
    CategoryTable,
    GlassBoxClassifier,
    Interval,
    RegionMember,
    Split,
    StepTable,
    StumpEnsemble,
    arrays,
)
from gpustump.learners.category_split import CategoryStump
from gpustump.learners.kinds import condition
from gpustump.model.encoding import Encoding, InputColumn

TABLE = CategoryTable(0, (0, 1, 4, 999), np.asarray([-0.5, 1.0, 0.5, 2.0]), missing=0.25)
NAMED = CategoryTable(0, ("blue", "red", "10"), np.asarray([-0.5, 1.0, 0.5]), missing=0.25)
VALUES = {0: -0.5, 1: 1.0, 4: 0.5, 999: 2.0, 2: 0.25, 77: 0.25, 127: 0.25, -1: 0.25}


@pytest.mark.parametrize("kind", [CategorySplit, CategoryStump])
@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((), (1,), "left must hold at least one category"),
        ((1, 0), (), "left must hold increasing"),
        ((0, 1), (1, 2), r"got \[1\] in both"),
        ((0,), (1000,), "right must hold increasing"),
        ((-1,), (), "left must hold increasing"),
        ((0.5,), (), "left must hold increasing"),
    ],
)
def test_sets_that_are_none_are_refused(kind, left, right, message):
    rest = (1, 1, 0.0) if kind is CategoryStump else ()
    with pytest.raises(ValueError, match=message):
        kind(0, left, right, *rest)


def test_the_condition_names_the_categories_on_the_left():
    def words(*left: int) -> str:
        return condition(CategorySplit(0, left, (999,)), "x", category="c{}".format)

    assert words(0, 2) == "x in {c0, c2}"
    assert words(*range(13)).endswith("c11, c12}")
    assert words(*range(14)).endswith("c10, c11, 2 more}")
    assert condition(CategorySplit(0, (0, 2), ()), "x") == "x is present"
    assert condition(CategoryStump(0, (4,), (5,), 1, 1, 0.1), "x") == "x in {4}"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "int64"])
def test_numbers_are_looked_up_in_every_library(backend, dtype):
    if dtype in backend.lacks:
        pytest.skip(f"{backend} has no {dtype}")
    others = [0.5, 0.999, 1.5, np.nan, np.inf, -np.inf, -0.2, 252.5] if "float" in dtype else []
    column = backend.asarray(np.asarray([*VALUES, *others], dtype=dtype))
    with arrays.computing_on(column):
        found = TABLE.look_up(column)
    assert backend.owns(found)
    assert_array_equal(backend.to_numpy(found), [*VALUES.values(), *[0.25] * len(others)])


def test_names_are_looked_up_in_lists_arrays_and_columns_of_frames():
    names = ["red", "green", None, "blue", "10"]
    columns = [names, np.asarray(names, dtype=object), pd.Series(names), pl.Series(names)]
    for column in [*columns, pd.Series(names, dtype="category")]:
        assert_array_equal(NAMED.look_up(column), [1.0, 0.25, 0.25, -0.5, 0.5])
    assert_array_equal(NAMED.look_up(np.asarray(["red", "blue"])), [1.0, -0.5])
    assert_array_equal(NAMED.look_up([10, 11]), [0.5, 0.25])  # "10" is the name of 10
    assert_array_equal(NAMED.look_up([10.0, np.nan]), [0.5, 0.25])
    assert NAMED.look_up([]).shape == (0,)
    assert repr(NAMED) == "CategoryTable of feature 0 with 3 categories"
    assert not hasattr(NAMED, "thresholds")
    assert NAMED.outcomes.tolist() == [-0.5, 1.0, 0.5, 0.25]
    with pytest.raises(ValueError, match="only tables of a bagged model have a spread"):
        NAMED.deviations  # noqa: B018


def drawn() -> tuple:
    random = np.random.default_rng(0)
    codes = random.choice([0, 1, 3, 7], 200)
    X = np.stack([random.normal(size=200), codes], axis=1)
    score = np.isin(codes, [1, 7]) + 0.4 * X[:, 0] + 0.3 * random.normal(size=200)
    return X, np.argsort(np.argsort(score)) * 2 // 200


def test_a_rating_table_by_name_gives_the_contribution_of_each_row():
    X, y = drawn()
    jobs = np.asarray(["nurse", "clerk", "", "driver", "", "", "", "cook"])[X[:, 1].astype(int)]
    frame = pd.DataFrame({"age": X[:, 0], "Job": pd.Series(jobs, dtype=object)})
    frame.loc[::9, "Job"] = None
    classifier = GlassBoxClassifier(
        n_estimators=8, n_bags=2, categorical_features="from_dtype", random_state=0
    ).fit(frame, y)
    table = classifier.shape_function("Job")
    assert table.categories == ("clerk", "cook", "driver", "nurse")
    points = dict(zip(table.categories, table.values.tolist(), strict=True)) | {None: table.missing}
    parts = classifier.explain(frame)[:, 1]
    assert_array_equal([points[job] for job in frame["Job"]], parts)
    assert_array_equal(table.look_up(frame["Job"]), parts)
    assert table.bags.shape == (2, 5)
    np.testing.assert_allclose(table.bags.mean(axis=0), table.outcomes, atol=1e-10)
    assert (table.quantiles(0.0) <= table.outcomes).all()


def test_a_feature_has_a_table_of_categories_only_if_it_is_used_as_nothing_else():
    encoding = Encoding((InputColumn("c", 0, "numbered", ("a", "b")),), 1, True)
    nothing = RegionMember((), np.zeros((0, 3, 1)), np.zeros(1))
    details = {"encoding": encoding.as_details()}
    model = StumpEnsemble((nothing,), 1, feature_names=("c",), details=details)
    table = model.shape_function("c")
    assert (table.categories, table.outcomes.tolist()) == (("a", "b"), [0.0, 0.0, 0.0])
    splits = (CategorySplit(0, (1,), (2,)), Split(0, 1.5))
    votes = np.asarray([[[1.0], [2.0], [4.0]], [[8.0], [16.0], [32.0]]])
    table = StumpEnsemble((RegionMember(splits, votes, np.zeros(1)),), 1).shape_function(0)
    assert isinstance(table, StepTable)
    assert table.look_up(np.asarray([0.0, 1.0, 1.2, 2.0, np.nan])).tolist() == [12, 9, 12, 18, 36]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 2.0}, "low must be below high"),
        ({"low": math.nan}, "low must be below high"),
        ({"high": math.inf}, "high finite"),
        ({"polarity": 0}, "polarity must be"),
        ({"missing": 2}, "missing must be"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(change, message):
    fields = {"feature": 0, "low": 0.0, "high": 1.0, "polarity": 1, "missing": -1, "error": 0.1}
    with pytest.raises(ValueError, match=message):
        Interval(**(fields | change))
