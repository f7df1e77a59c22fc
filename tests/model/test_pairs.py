"""Models with pairs of features: predicted alike everywhere, explained, and covered by digests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backends import Backend
from forged_files import FILED
from made_up_models import PAIRED, paired_model, paired_rows
from numpy.testing import assert_array_equal

from gpustump import LogitBoostClassifier, StumpEnsemble
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.model.members import RegionMember


@pytest.mark.parametrize("kind", PAIRED)
def test_every_library_predicts_the_same_scores_and_explains_them(kind: str, backend: Backend):
    X, own = paired_rows(), paired_model(kind)
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
    assert own.truncated(own.n_rounds) == own


def test_numpy_s_settings_are_the_caller_s_after_each_step():
    own = paired_model("two classes")
    with np.errstate(all="raise"):
        settings, stages = np.geterr(), own.staged_decision_function(paired_rows())
        for _ in range(own.n_rounds + 1):
            next(stages)
            assert np.geterr() == settings


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


def test_infinite_values_have_bins():
    X = np.asarray([[-np.inf, 1.0], [0.0, np.inf], [np.inf, -np.inf], [2.0, 3.0]] * 10)
    y = [0, 0, 1, 1] * 10
    own = LogitBoostClassifier(n_estimators=5, interactions=1, device="cpu").fit(X, y).model_
    assert own.pairs[0].axes[0].thresholds[0] == -np.inf


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
