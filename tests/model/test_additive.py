"""Sums of regions' votes for several outputs: scores, stages and tables, against plain sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, region_member, rows
from models_by_hand import bits

from gpustump import RegionMember, Split, arrays
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT
from gpustump.model.members import added_up

SPLITS = st.builds(
    Split, st.integers(0, 2), st.sampled_from([-math.inf, -1.5, -5e-324, 0.0, 0.1, 1.0, math.inf])
)
UNITS = st.integers(-(2**40), 2**40)
VALUES = (math.nan, -math.inf, math.inf, 0.0, -0.0, 0.1, 5e-324, -5e-324, 1.0, 1.5)


def every_row() -> np.ndarray:
    return np.asarray([[a, b, c] for a in VALUES for b in VALUES[::3] for c in VALUES[1::4]])


def scores_by_hand(one: RegionMember, X: np.ndarray) -> list[list[float]]:
    """Each score as a sum of rational numbers, rounded once at the end."""
    return [
        [
            float(sum((vote(one, k, row, output) for k in range(len(one))), Fraction(start)))
            for output, start in enumerate(one.constant.tolist())
        ]
        for row in X.tolist()
    ]


def vote(one: RegionMember, number: int, row: list[float], output: int) -> Fraction:
    split = one.splits[number]
    value = row[split.feature]
    region = MISSING if math.isnan(value) else FIRST if value <= split.threshold else SECOND
    return Fraction(one.votes[number, region, output].item())


@st.composite
def made(draw: st.DrawFn) -> RegionMember:
    n_outputs, splits = draw(st.integers(1, 3)), draw(st.lists(SPLITS, max_size=10))
    size = (len(splits) * 3 + 1) * n_outputs
    units = np.asarray(draw(st.lists(UNITS, min_size=size, max_size=size))) * VOTE_UNIT
    votes = units[n_outputs:].reshape(-1, 3, n_outputs)
    return RegionMember(tuple(splits), votes, units[:n_outputs])


@settings(max_examples=75)
@given(made())
def test_scores_and_stages_are_the_sums_of_the_constant_and_the_votes(one):
    X = every_row()
    model = added_up([one])
    assert model.scores(X).tolist() == scores_by_hand(one, X)
    stages = list(model.staged_scores(X))
    assert len(stages) == len(one)
    for number, stage in enumerate(stages, start=1):
        assert stage.tolist() == scores_by_hand(one.truncated(number), X)


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_scores_and_stages_are_the_same_bits_in_every_library(backend: Backend, n_outputs):
    random = np.random.default_rng(n_outputs)
    model = added_up([region_member(random, 12, 4, n_outputs)])
    X = rows(random, 90, 4, "float32")
    expected = model.scores(X)
    with arrays.computing_on(backend.asarray(X)):
        found = model.scores(backend.asarray(X))
    assert backend.owns(found)
    assert bits(backend.to_numpy(found)) == bits(expected)
    stages = [backend.to_numpy(stage) for stage in model.staged_scores(backend.asarray(X))]
    assert len(stages) == 12
    assert bits(stages[-1] + 0.0) == bits(expected + 0.0)
    early = [stage.tolist() for stage in list(model.staged_scores(X))[:3]]
    assert [stage.tolist() for stage in stages[:3]] == early


def test_members_of_several_outputs_stand_one_after_the_other():
    random = np.random.default_rng(5)
    parts = [region_member(random, n, 3, k) for n, k in ((4, 2), (9, 1), (0, 1), (2, 3))]
    X = rows(random, 60, 3, "float64")
    model = added_up(parts)
    assert model.n_outputs == 7
    assert [len(terms) for terms in model.rounds] == [3, 3, 2, 2, 1, 1, 1, 1, 1]
    expected = np.concatenate([added_up([part]).scores(X) for part in parts], axis=1)
    assert (model.scores(X) == expected).all()
    *_, last = model.staged_scores(X)
    assert (last == expected).all()


def test_a_discrete_member_and_the_splits_that_vote_the_same_have_the_same_tables():
    random = np.random.default_rng(6)
    one = member(random, 40, 3, exact=True)
    signs = np.asarray([[s.polarity, -s.polarity, s.missing] for s in one.stumps])
    votes = signs * np.asarray(one.votes)[:, np.newaxis]
    splits = tuple(Split(s.feature, s.threshold) for s in one.stumps)
    same = RegionMember(splits, votes[:, :, np.newaxis], np.zeros(1))
    (constant, tables), (other, others) = added_up([one]).tables, added_up([same]).tables
    assert (constant == other).all()
    for table, own in zip(tables, others, strict=True):
        assert (table.feature, table.missing) == (own.feature, own.missing)
        assert (table.thresholds == own.thresholds).all()
        assert (table.values == own.values).all()


def test_constant_terms_join_the_constant():
    votes = np.asarray([[[1.0, 2.0], [7.0, 7.0], [1.0, 2.0]], [[1.0, 2.0], [7.0, 7.0], [1.0, 2.5]]])
    model = added_up([RegionMember((Split(0, math.inf), Split(1, math.inf)), votes, [0.5, -4.0])])
    constant, (table,) = model.tables
    assert constant.tolist() == [1.5, -2.0]
    assert table.feature == 1
    assert table.values.tolist() == [[1.0, 2.0]]
    assert table.missing.tolist() == [1.0, 2.5]


def test_tables_are_exact_where_the_votes_of_a_split_add_up_to_the_largest_sum():
    """The differences between left and right count, too: tables add them up from the right."""
    large = VOTES_LIMIT / 4
    votes = np.asarray(
        [
            [[large], [-large + VOTE_UNIT], [0.0]],
            [[-large / 2], [large / 2], [large - VOTE_UNIT]],
            [[0.0], [VOTE_UNIT], [-large / 8]],
        ]
    )
    one = RegionMember((Split(0, 0.0), Split(0, 1.0), Split(0, -1.0)), votes, [VOTE_UNIT])
    X = np.asarray([[-2.0], [-0.5], [0.5], [2.0], [math.nan]])
    assert added_up([one]).scores(X).tolist() == scores_by_hand(one, X)


def test_an_additive_model_without_rounds_scores_its_constant(backend: Backend):
    model = added_up([RegionMember((), np.zeros((0, 3, 2)), [0.5, -1.0])])
    X = np.zeros((3, 2))
    assert backend.to_numpy(model.scores(backend.asarray(X))).tolist() == [[0.5, -1.0]] * 3
    assert list(model.staged_scores(NUMPY.asarray(X))) == []
