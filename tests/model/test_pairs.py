"""Models with pairs of features: predicted alike everywhere, explained, written and read again."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import pytest
from backends import Backend
from forged_files import forged
from numpy.testing import assert_array_equal

from gpustump import (
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    ModelFileError,
    StumpEnsemble,
)
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.model.ensemble import RegionMember


@functools.cache
def table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 4)).astype(np.float32)
    X[:, 3] = random.integers(0, 6, 400)
    X[random.random(X.shape) < 0.05] = np.nan
    z = np.nan_to_num(X)
    return X, z[:, 0] * z[:, 1] + (z[:, 3] % 2) * z[:, 2]


@functools.cache
def model(kind: str) -> StumpEnsemble:
    X, score = table()
    given = {
        "n_bags": 2, "n_estimators": 60, "random_state": 0, "device": "cpu", "interactions": 3,
        "categorical_features": [3],
    }  # fmt: skip
    if kind == "quantity":
        return GlassBoxRegressor(**given).fit(X, 1000.0 * score).model_
    cuts = [0.0] if kind == "two" else [-0.5, 0.5]
    how = {"multi_class": "one_vs_rest"} if kind == "rest" else {}
    return GlassBoxClassifier(**given, **how).fit(X, np.digitize(score, cuts)).model_


KINDS = ("two", "shared", "rest", "quantity")
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_every_library_predicts_the_same_scores(kind: str, backend: Backend):
    X, own = table()[0], model(kind)
    found = own.decision_function(backend.asarray(X))
    assert backend.owns(found)
    by_hand = own.additive.scores(X)
    for pair in own.pairs:
        by_hand = by_hand + pair.look_up(X)
    by_hand = by_hand[:, 0] if own.has_one_score else by_hand
    assert_array_equal(backend.to_numpy(found), by_hand)


@each_kind
def test_contributions_add_up_to_the_score_and_have_the_names_of_the_pairs(kind: str):
    X, own = table()[0], model(kind)
    parts = own.explain(X)
    assert_array_equal(parts.sum(axis=-1), own.decision_function(X))
    assert parts.shape[-1] == 4 + len(own.pairs) + 1
    j, k = own.pairs[0].features
    assert own.term_names[4] == f"x{j} x x{k}"
    assert len(own.contribution_importances(X)) == 4 + len(own.pairs)


def test_a_model_says_how_many_pairs_it_has_and_names_them_in_a_notebook():
    own = model("two")
    assert f" stumps and {len(own.pairs)} pairs on 4 features" in repr(own)
    assert f">{', '.join(own.term_names[4:])}<" in own._repr_html_()
    assert "pair" not in repr(own.truncated(1))


@each_kind
def test_the_last_stage_is_the_model(kind: str):
    X, own = table()[0], model(kind)
    *others, last = own.staged_decision_function(X)
    assert len(others) == own.n_rounds
    assert_array_equal(last, own.decision_function(X))
    assert own.truncated(own.n_rounds) == own
    assert own.truncated(own.n_rounds - 1).pairs == ()


@each_kind
def test_the_tables_are_pure(kind: str):
    for own in model(kind).pairs:
        for axis in (0, 1):
            means = (own.values * own.weights[..., None]).sum(axis=axis)
            assert np.abs(means).max() < 1e-9 * max(1.0, np.abs(own.values).max())


@each_kind
def test_a_file_gives_the_model_back_whole(kind: str, tmp_path):
    own, path = model(kind), tmp_path / "model.json"
    own.save(path)
    found = StumpEnsemble.load(path)
    assert found == own
    assert found.digest() == own.digest()
    for one, other in zip(found.bag_models, own.bag_models, strict=True):
        assert_array_equal(one.decision_function(table()[0]), other.decision_function(table()[0]))
    for one, other in zip(found.pairs, own.pairs, strict=True):
        assert_array_equal(one.weights, other.weights)


def test_the_digest_covers_bins_values_and_what_was_moved():
    own = model("two")
    first = own.pairs[0]
    other_values = replace(first, values=first.values + 2.0**-30)
    axis = first.axes[0]
    ends = axis.thresholds.copy()
    ends[0] -= 1e-3
    other_bins = replace(first, axes=(replace(axis, thresholds=ends), first.axes[1]))
    changed = [
        replace(own, pairs=(other_values, *own.pairs[1:])),
        replace(own, pairs=(other_bins, *own.pairs[1:])),
        replace(own, moved=(replace(own.moved[0], votes=own.moved[0].votes * 2),)),
    ]
    digests = {one.digest() for one in [own, *changed]}
    assert len(digests) == 4
    seen = replace(
        own, pairs=tuple(replace(one, weights=one.weights * 0, bags=None) for one in own.pairs)
    )
    assert seen.digest() == own.digest()


def test_infinite_values_have_bins_that_a_file_holds(tmp_path):
    X = np.asarray([[-np.inf, 1.0], [0.0, np.inf], [np.inf, -np.inf], [2.0, 3.0]] * 10)
    y = [0, 0, 1, 1] * 10
    own = LogitBoostClassifier(n_estimators=5, interactions=1, device="cpu").fit(X, y).model_
    assert own.pairs[0].axes[0].thresholds[0] == -np.inf
    own.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json") == own


def _set(path: str, value):
    def edit(document) -> None:
        *way, last = path.split(".")
        place = document
        for key in way:
            place = place[int(key) if key.isdigit() else key]
        place[int(last) if last.isdigit() else last] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_set("model.pairs.0.features", [0, 0]), "must pair two of 4 features"),
        (_set("model.pairs.0.features", [0, 9]), "must pair two of 4 features"),
        (_set("model.pairs.0.features", ["a", 1]), "features must be whole numbers"),
        (_set("model.pairs.0.bins.0", [2.0, 1.0]), "thresholds must be increasing"),
        (_set("model.pairs.0.bins.0", [[1], [1]]), "groups must hold different"),
        (_set("model.pairs.0.bins", [[1.0]]), "lists of two"),
        (_set("model.pairs.0.values.0", [0.0]), "nested lists of the shape"),
        (_set("model.pairs.0.values.0.0.0", 0.1), "whole multiple of 2\\*\\*-36"),
        (_set("model.pairs.0.values.0.0.0", -0.0), "zero as 0.0"),
        (_set("model.pairs.0.extra", 1), "must be an object of bins, features, values"),
        (_set("model.pairs", 3), "pairs and seen must be lists"),
        (_set("model.moved", []), "moved must be a list of 1"),
        (_set("seen.0.weights", "AAAA"), "weights cannot be read"),
        (_set("seen.0.weights", 7), "weights cannot be read"),
        (_set("seen", []), "pairs and seen must be lists of equal length"),
    ],
)
def test_a_forged_file_is_refused_by_the_part_that_is_wrong(edit, message: str, tmp_path):
    path = tmp_path / "model.json"
    model("two").save(path)
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(forged(document))
    with pytest.raises(ModelFileError, match=message):
        StumpEnsemble.load(path)


def test_pairs_that_do_not_fit_a_model_are_refused():
    own = model("two")
    first = own.pairs[0]
    with pytest.raises(ValueError, match="must be different"):
        replace(own, pairs=(first, first))
    with pytest.raises(ValueError, match="finite values of the shape"):
        replace(own, pairs=(replace(first, values=first.values[1:]),))
    with pytest.raises(ValueError, match="moved must be 1 members"):
        replace(own, moved=())


def test_a_model_by_hand_adds_the_cell_of_a_row():
    axes = PairAxis(0, np.asarray([1.0, np.inf])), PairAxis(1, groups=((0, 2), (1,)))
    values = np.arange(9.0).reshape(3, 3, 1)
    pair = PairTable(axes, values, np.zeros((3, 3)))
    nothing = RegionMember((), np.zeros((0, 3, 1)), np.zeros(1))
    own = StumpEnsemble((nothing,), 2, pairs=(pair,), moved=(nothing,))
    X = np.asarray([[0.0, 0], [1.0, 1], [2.0, 2], [np.nan, 1], [5.0, 7], [5.0, np.nan], [1.5, 0.5]])
    assert own.decision_function(X).tolist() == [0.0, 1.0, 3.0, 7.0, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_rows_of_every_dtype_are_looked_up_alike(dtype, monkeypatch):
    X = np.nan_to_num(table()[0]).astype(dtype)
    found = []
    for kernels in ("reference", "sorted"):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        found.append(model("shared").decision_function(X))
    assert_array_equal(*found)
