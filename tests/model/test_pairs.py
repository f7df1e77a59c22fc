"""Models with pairs of features: predicted alike everywhere, explained, and covered by digests."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from backends import Backend
from forged_files import FILED
from numpy.testing import assert_array_equal

from gpustump import GlassBoxClassifier, GlassBoxRegressor, LogitBoostClassifier, StumpEnsemble
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.model.members import RegionMember


@functools.cache
def table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)).astype(np.float32)
    X[:, 3] = random.integers(0, 6, 300)
    X[random.random(X.shape) < 0.05] = np.nan
    z = np.nan_to_num(X)
    return X, z[:, 0] * z[:, 1] + (z[:, 3] % 2) * z[:, 2]


@functools.cache
def model(kind: str) -> StumpEnsemble:
    X, score = table()
    given = {
        "n_bags": 2, "n_estimators": 20, "random_state": 0, "device": "cpu", "interactions": 3,
        "categorical_features": [3],
    }  # fmt: skip
    if kind == "quantity":
        return GlassBoxRegressor(**given).fit(X, 1000.0 * score).model_
    cuts = [0.0] if kind == "two" else [-0.5, 0.5]
    how = {"multi_class": "one_vs_rest"} if kind == "rest" else {}
    return GlassBoxClassifier(**given, **how).fit(X, np.digitize(score, cuts)).model_


@pytest.mark.parametrize("kind", ["two", "shared", "rest", "quantity"])
def test_every_library_predicts_the_same_scores_and_explains_them(kind: str, backend: Backend):
    X, own = table()[0], model(kind)
    found = own.decision_function(backend.asarray(X))
    assert backend.owns(found)
    by_hand = own.additive.scores(X)
    for pair in own.pairs:
        by_hand = by_hand + pair.look_up(X)
    by_hand = by_hand[:, 0] if own.has_one_score else by_hand
    assert_array_equal(backend.to_numpy(found), by_hand)
    parts = backend.to_numpy(own.explain(backend.asarray(X)))
    assert_array_equal(parts.sum(axis=-1), by_hand)
    assert parts.shape[-1] == 4 + len(own.pairs) + 1
    *others, last = own.staged_decision_function(backend.asarray(X))
    assert len(others) == own.n_rounds
    assert_array_equal(backend.to_numpy(last), by_hand)


def test_numpy_s_settings_are_the_caller_s_after_each_step():
    own = model("two")
    with np.errstate(all="raise"):
        settings, stages = np.geterr(), own.staged_decision_function(table()[0])
        for _ in range(own.n_rounds + 1):
            next(stages)
            assert np.geterr() == settings


@pytest.mark.parametrize("kind", ["two", "shared", "rest", "quantity"])
def test_tables_are_pure_named_and_come_back_from_a_file(kind: str, tmp_path):
    own = model(kind)
    for pair in own.pairs:
        for axis in (0, 1):
            means = (pair.values * pair.weights[..., None]).sum(axis=axis)
            assert np.abs(means).max() < 1e-9 * max(1.0, np.abs(pair.values).max())
    j, k = own.pairs[0].features
    assert own.term_names[4] == f"x{j} x x{k}"
    assert own.truncated(own.n_rounds) == own
    assert own.truncated(own.n_rounds - 1).pairs == ()
    own.save(tmp_path / "model.json")
    found = StumpEnsemble.load(tmp_path / "model.json")
    assert (found, found.digest()) == (own, own.digest())
    shares = own.contribution_importances(table()[0])
    assert len(shares) == 4 + len(own.pairs)
    assert shares.sum() == pytest.approx(1.0)


def test_the_digest_covers_bins_values_and_what_was_moved():
    own = FILED["pairs"]
    (first,) = own.pairs
    axis = first.axes[0]
    ends = axis.thresholds.copy()
    ends[1] -= 1e-3
    changed = [
        replace(own, pairs=(replace(first, values=first.values + 2.0**-30),)),
        replace(own, pairs=(replace(first, axes=(replace(axis, thresholds=ends), first.axes[1])),)),
        replace(own, moved=(replace(own.moved[0], votes=own.moved[0].votes * 2),)),
    ]
    assert len({one.digest() for one in [own, *changed]}) == 4
    seen = replace(own, pairs=(replace(first, weights=first.weights * 0, bags=None),))
    assert seen.digest() == own.digest()


def test_infinite_values_have_bins_that_a_file_holds(tmp_path):
    X = np.asarray([[-np.inf, 1.0], [0.0, np.inf], [np.inf, -np.inf], [2.0, 3.0]] * 10)
    y = [0, 0, 1, 1] * 10
    own = LogitBoostClassifier(n_estimators=5, interactions=1, device="cpu").fit(X, y).model_
    assert own.pairs[0].axes[0].thresholds[0] == -np.inf
    own.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json") == own


def test_pairs_that_do_not_fit_a_model_are_refused():
    own = FILED["pairs"]
    (first,) = own.pairs
    for changes, said in [
        ({"pairs": (first, first)}, "must be different"),
        ({"pairs": (replace(first, values=first.values[1:]),)}, "finite values of the shape"),
        ({"pairs": (replace(first, values=first.values * np.nan),)}, "finite values of the shape"),
        ({"pairs": (replace(first, axes=first.axes[::-1]),)}, "the lower one first"),
        ({"moved": ()}, "moved must be 1 members"),
        ({"members": FILED["stumps"].members, "bags": None}, "pairs need members of type Region"),
    ]:
        with pytest.raises(ValueError, match=said):
            replace(own, **changes)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_a_model_adds_the_cell_of_a_row(dtype, monkeypatch):
    axes = PairAxis(0, np.asarray([1.0, np.inf])), PairAxis(1, groups=((0, 2), (1,)))
    pair = PairTable(axes, np.arange(9.0).reshape(3, 3, 1), np.zeros((3, 3)))
    nothing = RegionMember((), np.zeros((0, 3, 1)), np.zeros(1))
    own = StumpEnsemble((nothing,), 2, pairs=(pair,), moved=(nothing,))
    X = np.asarray([[0.0, 0], [1.0, 1], [2.0, 2], [5.0, 7], [np.nan, 1], [5.0, np.nan], [1.5, 0.5]])
    X = X if np.dtype(dtype).kind == "f" else X[:4]
    wanted = [0.0, 1.0, 3.0, 5.0, 7.0, 5.0, 5.0][: len(X)]
    for kernels in ("reference", "sorted"):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        assert own.decision_function(X.astype(dtype)).tolist() == wanted
