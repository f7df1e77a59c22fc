"""Scores of the CPU kernels against the reference's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, reference_scores, region_member, rows

from gpustump import Member, StumpEnsemble
from gpustump.engines.cpu.predict import prediction
from gpustump.learners.step_table import StepTable
from gpustump.learners.stump import Stump
from gpustump.model.members import added_up


def tables_of(one: Member) -> tuple[np.ndarray, tuple[StepTable, ...]]:
    """The constants and step tables of a model with one output."""
    return added_up([one]).tables


@settings(max_examples=120)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from(["float16", "float32", "float64", "int8", "bool", "uint16", "int64"]),
    st.sampled_from([1.0, 0.9, 0.0]),
    st.integers(1, 3),
)
def test_scores_are_the_references_to_the_last_bit(seed, n_stumps, dtype, exact, threads):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 1200)), int(random.integers(1, 6))
    one = member(random, n_stumps, n_features, exact=exact)
    X = rows(random, n_samples, n_features, dtype)
    expected = reference_scores(one, X)
    found = prediction.scores(X, *tables_of(one), threads)[:, 0]
    assert found.view(np.int64).tolist() == expected.view(np.int64).tolist()


@settings(max_examples=80)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from(["float16", "float32", "float64", "uint8", "int64"]),
    st.sampled_from([1, 2, 3, 7]),
    st.sampled_from([1.0, 0.9, 0.0]),
    st.integers(1, 3),
)
def test_scores_of_regions_votes_are_the_references_for_any_number_of_outputs(
    seed, n_splits, dtype, n_outputs, exact, threads
):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 1200)), int(random.integers(1, 6))
    one = region_member(random, n_splits, n_features, n_outputs, exact=exact)
    X = rows(random, n_samples, n_features, dtype)
    constant, tables = added_up([one]).tables
    expected = np.tile(constant, (n_samples, 1))
    for table in tables:
        expected = expected + table.look_up(X[:, table.feature])
    found = prediction.scores(X, constant, tables, threads)
    assert found.shape == (n_samples, n_outputs)
    assert found.view(np.int64).tolist() == expected.view(np.int64).tolist()


def test_a_constant_that_is_no_multiple_of_the_unit_is_added_first_too():
    inf = np.inf
    stumps = (Stump(0, inf, 1, 1, 0.25), Stump(0, 0.0, 1, 1, 0.25), Stump(1, 0.0, -1, 1, 0.25))
    constant, tables = tables_of(Member(stumps, (0.1, 1.0, 1.0)))
    found = prediction.scores(np.asarray([[-1.0, -1.0]]), constant, tables, 1)
    assert found.tolist() == [[(0.1 + 1.0) - 1.0]]


def test_features_are_looked_up_together_only_where_sums_are_exact():
    random = np.random.default_rng(0)
    for exact in (True, False):
        layout = prediction._layout(*tables_of(member(random, 60, 8, exact=exact)), "float32")
        assert (len(layout.groups) - 1 < len(layout.features)) == exact


def test_many_rows_in_many_pieces_are_each_scored_once():
    random = np.random.default_rng(1)
    model = StumpEnsemble((member(random, 30, 4, exact=True),), 4)
    X = random.normal(size=(3 * prediction._PIECE + 17, 4)).astype(np.float32)
    pieces = [model.decision_function(part) for part in np.array_split(X, 50)]
    assert np.concatenate(pieces).tolist() == model.decision_function(X, n_jobs=3).tolist()


def test_torch_rows_are_answered_in_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    random = np.random.default_rng(2)
    model = StumpEnsemble((member(random, 30, 4, exact=True),), 4)
    X = random.normal(size=(50, 4))
    found = model.decision_function(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == model.decision_function(X).tolist()
