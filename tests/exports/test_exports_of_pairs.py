"""Every export adds what pairs of features add, row by row, as the model does."""

from __future__ import annotations

import dataclasses
from typing import Any

import exported
import numpy as np
import pytest
from exported import assert_same, expected
from exported_models import Case

from gpustump import RegionMember, StumpEnsemble
from gpustump.exports import to_c, to_onnx, to_sql
from gpustump.exports.tables import export_tables
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.step_table import VOTE_UNIT


@pytest.mark.parametrize("target", [*exported.TARGETS, "c"])
def test_an_export_answers_as_a_model_with_pairs_does(
    paired: Case, paired_edges: Case, target: str
) -> None:
    answer = exported.by_c if target == "c" else exported.TARGETS[target]
    without = dataclasses.replace(paired.model, pairs=())
    for model, X in (paired, paired_edges):
        wanted = expected(model, X)
        assert (wanted.scores != answer(without, X).scores).any()
        assert_same(answer(model, X), wanted)


def by_hand(values: Any, *axes: PairAxis) -> StumpEnsemble:
    """A model of nothing but one pair."""
    table = np.asarray(values, dtype=np.float64)[..., np.newaxis]
    none = RegionMember((), np.zeros((0, 3, 1)), np.zeros(1))
    pair = PairTable((axes[0], axes[1]), table, np.zeros(table.shape[:2]))
    return StumpEnsemble((none,), 3, pairs=(pair,), moved=(none,))


def test_a_model_of_nothing_but_a_pair_is_exported() -> None:
    first = PairAxis(0, np.asarray([0.0, np.inf]))
    second = PairAxis(2, groups=((1, 4), (0,)))
    values = np.asarray([[1, 2, 3], [-4, 5, -6], [7, -(2**52), 9]])
    model = by_hand(values * VOTE_UNIT, first, second)
    assert [column.name for column in export_tables(model).used] == ["x0", "x2"]
    kinds = [1.0, 4.0, 0.0, -0.0, 2.0, 0.5, -1.0, 1e300, np.inf, -np.inf, np.nan, 5e-324, -5e-324]
    X = np.asarray([[x, 0.0, kind] for x in (-1.0, 1.0, np.nan) for kind in kinds])
    wanted = np.concatenate([row[[0, 0, 1, 1, *[2] * 9]] for row in values])
    for answer in (*exported.TARGETS.values(), exported.by_c):
        np.testing.assert_array_equal(answer(model, X).scores, wanted)
    assert len(exported.by_onnx(model, X[:0]).scores) == 0
    assert "3 columns, 2 of them used, 0 steps, 1 pair, 2 classes" in to_sql(model)


@pytest.mark.parametrize("export", [to_c, to_onnx, to_sql])
def test_pairs_that_no_export_holds_exactly_are_refused(export: Any) -> None:
    if export is to_onnx:
        pytest.importorskip("onnx")
    axes = [PairAxis(feature, np.asarray([np.inf])) for feature in (0, 1)]
    with pytest.raises(ValueError, match=r"votes must be whole multiples of 2\*\*-36"):
        export(by_hand([[0.1, 0.0], [0.0, 0.0]], *axes))
    model = by_hand([[0.0, 0.0], [2.0**17, 0.0]], *axes)
    export(model)
    (one,) = model.members
    more = dataclasses.replace(one, constant=np.asarray([VOTE_UNIT]))
    with pytest.raises(ValueError, match="the largest that every export holds exactly is 131072"):
        export(dataclasses.replace(model, members=(more,)))
