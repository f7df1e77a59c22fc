"""Which values are categories: those of the sets, and no other; all others count as missing.

Scores are worked out here by asking of each value whether it is in a set. Every array library and
every kernel must give these scores. Exports know the model's step tables only.
"""

from __future__ import annotations

import math
import warnings

import exported
import numpy as np
import pytest

from gpustump import (
    CategorySplit,
    CategoryStump,
    LogitBoostClassifier,
    Member,
    RegionMember,
    Split,
    Stump,
    StumpEnsemble,
)

KNOWN = (0, 1, 2, 5, 127, 999)

FLOATS = ("float16", "float32", "float64")
DTYPES = (*FLOATS, "bool", "int8", "uint8", "int16", "int32", "int64")

STUMPS = (
    CategoryStump(0, (0, 2, 999), (1, 5, 127), 1, -1, 0.25),
    CategoryStump(0, (1,), (0, 2, 5, 127, 999), -1, 1, 0.25),
    CategoryStump(0, KNOWN, (), 1, -1, 0.25),
    Stump(1, 0.5, 1, -1, 0.25),
)
DISCRETE = StumpEnsemble((Member(STUMPS, (0.5, 0.25, 2.0, 0.125)),), 2)

SPLITS = (
    CategorySplit(0, (0, 5), (1, 2, 127, 999)),
    Split(1, 0.5),
    CategorySplit(0, (999,), (0, 1, 2, 5)),  # another bag had no sample of category 127
)
VOTES = np.arange(27.0).reshape(3, 3, 3) ** 2 / 64
SHARED = StumpEnsemble(
    (RegionMember(SPLITS, VOTES, [0.0, 1.0, -1.0]),), 2, ("a", "b", "c"), link="softmax"
)


def values_of(dtype: str) -> np.ndarray:
    """Categories, and values beside them, in a dtype."""
    if dtype == "bool":
        return np.asarray([False, True])
    kind = np.dtype(dtype).type
    if dtype not in FLOATS:
        limits = np.iinfo(kind)
        wanted = [*KNOWN, -1, 3, 4, 77, 254, 255, 998, 1000, limits.min, limits.max]
        return np.asarray([own for own in wanted if limits.min <= own <= limits.max], dtype=kind)
    at = np.asarray(KNOWN, dtype=kind)
    few = [0.999, 1.5, 3, 77, 254, 255, 256, 1000, -0.0, -0.2, -1, -1.5, np.inf, -np.inf, np.nan]
    tiny = [np.finfo(kind).smallest_subnormal, np.finfo(kind).smallest_normal]
    tiny += [-np.finfo(kind).smallest_normal, *([] if dtype == "float64" else [-tiny[0]])]
    below, above = (np.nextafter(at[1:], kind(end)) for end in (-np.inf, np.inf))
    halves = at[:-1] + kind(0.5)
    return np.concatenate([at, np.asarray([*few, *tiny], dtype=kind), below, above, halves])


def rows_of(dtype: str) -> np.ndarray:
    values = values_of(dtype)
    return np.stack([values, (np.arange(len(values)) % 2).astype(dtype)], axis=1)


def by_sets(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """The scores of each row, (n_rows, n_outputs)."""
    rows = X.astype(np.float64).tolist()
    found = np.tile(np.concatenate([own.constant for own in model.members]), (len(rows), 1))
    for own in model.members:
        for one, votes in zip(own.hypotheses, own.region_votes, strict=True):
            for score, row in zip(found, rows, strict=True):
                value = row[one.feature]
                if isinstance(one, Split | Stump):
                    region = 2 if math.isnan(value) else int(value > one.threshold)
                else:
                    region = 0 if value in one.left else 1 if value in one.right else 2
                score += votes[region]
    return found


def is_unseen(value: float) -> bool:
    is_missing = math.isnan(value) or value == -math.inf or (value < 0 and value.is_integer())
    return not is_missing and value not in KNOWN


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call()


@pytest.mark.parametrize("kind", ["floats", "integers"])
def test_only_categories_have_a_region_in_every_library_and_others_are_warned_of(backend, kind):
    """JAX compiles anew for every dtype, so it takes one of each kind."""
    dtypes = [own for own in DTYPES if (own in FLOATS) == (kind == "floats")]
    for dtype in dtypes[-1:] if backend.name.startswith("jax") else dtypes:
        if dtype not in backend.lacks:
            check_regions(backend, dtype)


def check_regions(backend, dtype: str) -> None:
    rows = rows_of(dtype)
    X = backend.asarray(rows)
    for model in (DISCRETE, SHARED):
        one = by_sets(model, rows)[:, 0] if model.is_binary else by_sets(model, rows)
        *_, last = quietly(lambda: list(model.staged_decision_function(X)))  # noqa: B023
        for scores in (quietly(lambda: model.decision_function(X)), last):  # noqa: B023
            np.testing.assert_array_equal(backend.to_numpy(scores), one)
        parts = backend.to_numpy(quietly(lambda: model.explain(X)))  # noqa: B023
        np.testing.assert_array_equal(parts.sum(axis=-1), one)
    tiny = np.finfo(np.float32).smallest_normal  # XLA takes smaller numbers for 0
    rows = rows[(rows[:, 0] == 0) | (np.abs(rows[:, 0].astype(float)) >= tiny)]
    n_unseen = sum(map(is_unseen, rows[:, 0].astype(float).tolist()))
    for call in (
        DISCRETE.decision_function,
        DISCRETE.explain,
        DISCRETE.contribution_importances,
        lambda X: next(DISCRETE.staged_predict(X)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(backend.asarray(rows))
        found = [str(one.message) for one in caught if "not in training" in str(one.message)]
        assert len(found) == (n_unseen > 0)
        for message in found:
            assert message.startswith(
                f"'column 0' has values that were not in training in {n_unseen} row"
            )
            assert message.endswith("'; they count as missing")
            assert caught[0].filename == __file__


def test_flushing_subnormal_numbers_keeps_category_0():
    torch = pytest.importorskip("torch")
    rows = np.asarray([[0.0, 0.0], [1.0, 0.0]])
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        for dtype in FLOATS:
            X = rows.astype(dtype)
            fresh = StumpEnsemble(DISCRETE.members, 2)  # its tables are not made yet
            np.testing.assert_array_equal(fresh.decision_function(X), by_sets(DISCRETE, X)[:, 0])
            answer = exported.by_sqlite(fresh, X).scores
            np.testing.assert_array_equal(answer, by_sets(DISCRETE, X)[:, 0] * 2.0**36)
    finally:
        torch.set_flush_denormal(False)


def trained(n_bags: int | None = None) -> tuple[LogitBoostClassifier, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    X = np.stack([random.integers(0, 4, 200), random.normal(size=200)], axis=1)
    y = (np.isin(X[:, 0], [1, 3]) ^ (random.random(200) < 0.1)).astype(int)
    how = {} if n_bags is None else {"n_bags": n_bags, "random_state": 0}
    return LogitBoostClassifier(n_estimators=6, categorical_features=[0], **how), X, y


def test_warnings_name_the_feature_and_its_category_as_short_as_it_is_written():
    pd = pytest.importorskip("pandas")
    classifier, X, y = trained()
    frame = pd.DataFrame({"job": X[:, 0], "size": X[:, 1]})
    classifier.fit(frame, y)
    for value, shown in ((300.0, "300"), (1.5, "1.5"), (1e300, r"1e\+300"), (np.inf, "inf")):
        with pytest.warns(UserWarning, match="'job' has values that were not in training in "
                          f"2 rows, such as '{shown}'; they count as missing"):  # fmt: skip
            classifier.predict(frame.iloc[:3].assign(job=[value, 77, 1]))


def test_bags_know_each_other_s_categories():
    classifier, X, y = trained(n_bags=3)
    X[:2, 0] = 9  # so rare that a bag may lack it
    model = classifier.fit(X, y).model_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict_proba_interval(X)
        for bag in model.bag_models:
            bag.decision_function(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.predict_proba_interval([[77, 0.0]])
    assert len(caught) == 1
    tables = [bag.shape_function(0) for bag in model.bag_models]
    assert {table.categories for table in tables} == {(0, 1, 2, 3, 9)}
    np.testing.assert_array_equal(
        model.shape_function(0).bags, np.stack([table.outcomes for table in tables])
    )
