"""Tables of categorical features: their names, their values, and how values are looked up."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gpustump import (
    CategorySplit,
    CategoryTable,
    GlassBoxClassifier,
    LogitBoostClassifier,
    RegionMember,
    Split,
    StepTable,
    StumpEnsemble,
    arrays,
)
from gpustump.model.encoding import Encoding, InputColumn

TABLE = CategoryTable(0, (0, 1, 4, 253), np.asarray([-0.5, 1.0, 0.5, 2.0]), missing=0.25)
NAMED = CategoryTable(0, ("blue", "red", "10"), np.asarray([-0.5, 1.0, 0.5]), missing=0.25)

VALUES = {
    0: -0.5, 1: 1.0, 4: 0.5, 253: 2.0,
    2: 0.25, 77: 0.25, 127: 0.25, -1: 0.25,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "int32", "int64"])
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
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["red", "green", None, "blue", "10"]
    wanted = [1.0, 0.25, 0.25, -0.5, 0.5]
    columns = [names, np.asarray(names, dtype=object), pd.Series(names), pl.Series(names)]
    columns.append(pd.Series(names, dtype="category"))
    for column in columns:
        assert_array_equal(NAMED.look_up(column), wanted)
    assert_array_equal(NAMED.look_up(np.asarray(["red", "blue"])), [1.0, -0.5])
    assert_array_equal(NAMED.look_up([10, 11]), [0.5, 0.25])  # "10" is the name of 10
    assert_array_equal(NAMED.look_up([10.0, np.nan]), [0.5, 0.25])
    assert NAMED.look_up([]).shape == (0,)


def test_a_table_says_what_it_is():
    assert repr(NAMED) == "CategoryTable of feature 0 with 3 categories"
    assert not hasattr(NAMED, "thresholds")
    assert NAMED.outcomes.tolist() == [-0.5, 1.0, 0.5, 0.25]
    with pytest.raises(ValueError, match="only tables of a bagged model have a spread"):
        NAMED.deviations  # noqa: B018


def drawn(n_classes: int = 2) -> tuple:
    random = np.random.default_rng(0)
    codes = random.choice([0, 1, 3, 7], 300)
    X = np.stack([random.normal(size=300), codes], axis=1)
    score = np.isin(codes, [1, 7]) + 0.4 * X[:, 0] + 0.3 * random.normal(size=300)
    return X, np.argsort(np.argsort(score)) * n_classes // 300


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["shared", "one_vs_rest"])
def test_the_values_are_what_the_splits_of_the_model_add_up_to(n_classes, multi_class):
    X, y = drawn(n_classes)
    classifier = LogitBoostClassifier(
        n_estimators=12, categorical_features=[1], multi_class=multi_class
    )
    model = classifier.fit(X, y).model_
    for label in [None] if n_classes == 2 else model.classes:
        table = classifier.shape_function(1, label=label)
        member = model.output_member(model.output_index(label))
        wanted = dict.fromkeys((0, 1, 3, 7, None), 0.0)
        for split, votes in zip(member.splits, member.votes[:, :, 0].tolist(), strict=True):
            for value in wanted if split.feature == 1 else ():
                wanted[value] += votes[
                    0 if value in split.left else 1 if value in split.right else 2
                ]
        assert isinstance(table, CategoryTable)
        assert table.categories == (0, 1, 3, 7)
        assert [*table.values.tolist(), table.missing] == [*wanted.values()]
        (of_output,) = (t for t in model.output_tables(model.output_index(label))[1] if t.feature)
        assert_array_equal(of_output.outcomes, table.outcomes)


def test_a_rating_table_by_name_gives_the_contribution_of_each_row():
    pd = pytest.importorskip("pandas")
    X, y = drawn()
    jobs = np.asarray(["nurse", "clerk", "", "driver", "", "", "", "cook"])[X[:, 1].astype(int)]
    frame = pd.DataFrame({"age": X[:, 0], "Job": pd.Series(jobs, dtype=object)})
    frame.loc[::9, "Job"] = None
    classifier = GlassBoxClassifier(
        n_estimators=8, categorical_features="from_dtype", random_state=0
    ).fit(frame, y)
    table = classifier.shape_function("Job")
    assert table.categories == ("clerk", "cook", "driver", "nurse")
    points = dict(zip(table.categories, table.values.tolist(), strict=True)) | {None: table.missing}
    parts = classifier.explain(frame)[:, 1]
    assert_array_equal([points[job] for job in frame["Job"]], parts)
    assert_array_equal(table.look_up(frame["Job"]), parts)
    assert table.bags.shape == (classifier.model_.n_bags, 5)
    np.testing.assert_allclose(table.bags.mean(axis=0), table.outcomes, atol=1e-10)
    assert (table.quantiles(0.0) <= table.outcomes).all()
    assert len(table.deviations) == 5


ENCODING = {"encoding": Encoding((InputColumn("c", 0, "numbered", ("a", "b")),), 1, True)}


def test_a_feature_without_stumps_has_its_names_and_adds_nothing():
    details = {"encoding": ENCODING["encoding"].as_details()}
    member = RegionMember((), np.zeros((0, 3, 1)), np.zeros(1))
    model = StumpEnsemble((member,), 1, feature_names=("c",), details=details)
    table = model.shape_function("c")
    assert (table.categories, table.outcomes.tolist()) == (("a", "b"), [0.0, 0.0, 0.0])


def test_a_feature_that_is_also_used_as_a_number_keeps_its_steps():
    splits = (CategorySplit(0, (1,), (2,)), Split(0, 1.5))
    votes = np.asarray([[[1.0], [2.0], [4.0]], [[8.0], [16.0], [32.0]]])
    model = StumpEnsemble((RegionMember(splits, votes, np.zeros(1)),), 1)
    table = model.shape_function(0)
    assert isinstance(table, StepTable)
    assert table.look_up(np.asarray([0.0, 1.0, 1.2, 2.0, np.nan])).tolist() == [12, 9, 12, 18, 36]
