"""Scores of the CUDA kernels against the reference's, bit for bit, on the stand-in device."""

from __future__ import annotations

import pickle

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, rows

from gpustump import StumpEnsemble
from gpustump.engines.cuda import prediction
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.step_table import VOTE_UNIT, StepTable, StepTables
from gpustump.model.additive import OutputTerms, step_tables

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32"]
DTYPES += ["uint32", "int64", "uint64"]

Model = tuple[np.ndarray, StepTables]
"""A constant and step tables."""


def model(
    random: np.random.Generator,
    n_stumps: int,
    n_features: int,
    n_outputs: int = 1,
    exact: float = 1.0,
) -> Model:
    """Stumps with any votes, of which a share of `exact` are multiples of the unit."""
    stumps = member(random, n_stumps, n_features, exact=exact).stumps
    votes = random.normal(size=(n_stumps, N_REGIONS, n_outputs))
    whole = random.random(n_stumps) < exact
    votes[whole] = np.rint(votes[whole] / VOTE_UNIT) * VOTE_UNIT
    return step_tables([OutputTerms(stumps, votes, np.zeros(n_outputs))])


def reference_scores(made: Model, X: np.ndarray) -> np.ndarray:
    """F(x) as the reference adds it up."""
    constant, tables = made
    scores = np.tile(constant, (len(X), 1))
    for table in tables:
        scores = scores + table.look_up(X[:, table.feature])
    return scores


@settings(max_examples=200)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 2, 3, 5, 8, 11]),
    st.sampled_from([1.0, 0.9, 0.0]),
    st.integers(1, 3),
)
def test_scores_are_the_references_to_the_last_bit(
    seed, n_stumps, dtype, n_outputs, exact, threads
):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 700)), int(random.integers(1, 6))
    made = model(random, n_stumps, n_features, n_outputs, exact)
    X = rows(random, n_samples, n_features, dtype)
    expected = reference_scores(made, X)
    found = prediction.scores(X, *made, OnCpu(threads))
    assert found.shape == (n_samples, n_outputs)
    assert found.view(np.int64).tolist() == expected.view(np.int64).tolist()


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_scored_for_every_number_of_outputs_in_one_launch(dtype, n_outputs):
    """Votes are no multiples of a unit, so another order of additions would show."""
    random = np.random.default_rng(n_outputs)
    made = model(random, 60, 4, n_outputs, exact=0.0)
    X = rows(random, 400, 4, dtype)
    device = OnCpu()
    found = prediction.scores(X, *made, device)
    assert found.view(np.int64).tolist() == reference_scores(made, X).view(np.int64).tolist()
    assert device.launched == [f"predict_{'' if n_outputs == 1 else 'outputs_'}{dtype}"]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_model_of_constants_needs_no_launch(n_outputs):
    device = OnCpu()
    constant = np.arange(n_outputs) - 0.25
    found = prediction.scores(np.zeros((7, 2)), constant, (), device)
    assert found.tolist() == [constant.tolist()] * 7
    assert device.launched == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_extremes_of_a_dtype_are_ordinary_values(dtype):
    info = np.finfo(dtype)
    values = [0.0, -0.0, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    values += [info.max, info.min, np.inf, -np.inf, np.nan]
    X = np.asarray(values, dtype=dtype)[:, np.newaxis]
    for threshold in (0.0, 5e-324, -5e-324, float(info.max), float(info.smallest_subnormal), -1.0):
        steps = np.asarray([threshold, np.inf])
        table = StepTable(0, steps, np.asarray([[1.0], [-1.0]]), np.asarray([0.5]))
        found = prediction.scores(X, np.zeros(1), [table], OnCpu())
        expected = [0.5 if np.isnan(x) else 1.0 if float(x) <= threshold else -1.0 for x in X[:, 0]]
        assert found[:, 0].tolist() == expected


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("layout", ["by columns", "every second row", "reversed", "some columns"])
def test_the_layout_of_the_rows_does_not_matter(layout, n_outputs):
    random = np.random.default_rng(1)
    X = rows(random, 300, 4, "float32")
    by_layout = {
        "by columns": np.asfortranarray(X),
        "every second row": np.repeat(X, 2, axis=0)[::2],
        "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "some columns": np.concatenate([X, X], axis=1)[:, :4],
    }
    constant, tables = model(random, 30, 4, n_outputs)
    device = OnCpu()
    expected = prediction.scores(X, constant, tables, device)
    assert (prediction.scores(by_layout[layout], constant, tables, device) == expected).all()


def test_a_models_tables_are_brought_to_the_device_once_for_a_dtype():
    random = np.random.default_rng(2)
    constant, tables = model(random, 20, 3, 2)
    device, layouts = OnCpu(), {}
    for dtype in ("float32", "float32", "float64"):
        prediction.scores(rows(random, 10, 3, dtype), constant, tables, device, layouts)
    assert sorted(layouts) == ["float32 on cuda:0", "float64 on cuda:0"]
    assert device.n_transfers == 2  # waiting for the tables to arrive
    assert device.launched == [f"predict_outputs_{t}" for t in ("float32", "float32", "float64")]


def test_a_pickled_model_holds_nothing_of_the_device(monkeypatch):
    random = np.random.default_rng(3)
    made = StumpEnsemble((member(random, 20, 3, exact=1.0),), 3)
    X = rows(random, 10, 3, "float32")
    with cuda_on_cpu.as_cuda(monkeypatch, OnCpu()):
        expected = made.decision_function(X)
    assert list(made.additive._layouts) == ["float32 on cuda:0"]
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert "_layouts" not in vars(again.additive)
    assert (again.decision_function(X) == expected).all()
