"""Scores of the CUDA kernel against the reference's, bit for bit, on the stand-in device."""

from __future__ import annotations

import pickle

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import member, reference_scores, rows

from gpustump import Member, StumpEnsemble
from gpustump.engines.cuda import prediction
from gpustump.learners.stump import Stump

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32"]
DTYPES += ["uint32", "int64", "uint64"]


@settings(max_examples=150)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 40, 300]),
    st.sampled_from(DTYPES),
    st.sampled_from([1.0, 0.9, 0.0]),
    st.integers(1, 3),
)
def test_scores_are_the_references_to_the_last_bit(seed, n_stumps, dtype, exact, threads):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 700)), int(random.integers(1, 6))
    one = member(random, n_stumps, n_features, exact=exact)
    X = rows(random, n_samples, n_features, dtype)
    expected = reference_scores(one, X)
    found = prediction.scores(X, *one.tables, OnCpu(threads))
    assert found.view(np.int64).tolist() == expected.view(np.int64).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_extremes_of_a_dtype_are_ordinary_values(dtype):
    info = np.finfo(dtype)
    values = [0.0, -0.0, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    values += [info.max, info.min, np.inf, -np.inf, np.nan]
    X = np.asarray(values, dtype=dtype)[:, np.newaxis]
    for threshold in (0.0, 5e-324, -5e-324, float(info.max), float(info.smallest_subnormal), -1.0):
        one = Member((Stump(0, threshold, 1, -1, 0.25),), (1.0,))
        constant, tables = one.tables
        found = prediction.scores(X, constant, tables, OnCpu())
        expected = [
            -1.0 if np.isnan(x) else 1.0 if float(x) <= threshold else -1.0 for x in X[:, 0]
        ]
        assert found.tolist() == expected


@pytest.mark.parametrize("layout", ["by columns", "every second row", "reversed", "some columns"])
def test_the_layout_of_the_rows_does_not_matter(layout):
    random = np.random.default_rng(1)
    X = rows(random, 300, 4, "float32")
    by_layout = {
        "by columns": np.asfortranarray(X),
        "every second row": np.repeat(X, 2, axis=0)[::2],
        "reversed": np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "some columns": np.concatenate([X, X], axis=1)[:, :4],
    }
    constant, tables = member(random, 30, 4, exact=1.0).tables
    device = OnCpu()
    expected = prediction.scores(X, constant, tables, device)
    assert (prediction.scores(by_layout[layout], constant, tables, device) == expected).all()


def test_a_models_tables_are_made_once_for_a_dtype():
    random = np.random.default_rng(2)
    model = StumpEnsemble((member(random, 20, 3, exact=1.0),), 3)
    one, plans = OnCpu(), model.members[0]._plans
    constant, tables = model.members[0].tables
    for dtype in ("float32", "float32", "float64"):
        prediction.scores(rows(random, 10, 3, dtype), constant, tables, one, plans)
    assert sorted(plans) == ["float32 on cuda:0", "float64 on cuda:0"]
    assert one.launched == ["predict_float32", "predict_float32", "predict_float64"]


def test_a_pickled_model_holds_nothing_of_the_device(monkeypatch):
    random = np.random.default_rng(3)
    model = StumpEnsemble((member(random, 20, 3, exact=1.0),), 3)
    X = rows(random, 10, 3, "float32")
    with cuda_on_cpu.as_cuda(monkeypatch, OnCpu()):
        expected = model.decision_function(X)
    assert list(model.members[0]._plans) == ["float32 on cuda:0"]
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert "_plans" not in vars(again.members[0])
    assert (again.decision_function(X) == expected).all()
