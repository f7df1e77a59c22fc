"""Scores of NumPy tables without compiled kernels, against a look-up for each feature."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import region_member, rows

from gpustump import StumpEnsemble
from gpustump.engines.reference import prediction
from gpustump.model.members import added_up

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint16", "int32", "uint64"]


@settings(max_examples=100)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 40]),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 3]),
    st.sampled_from([1.0, 0.0]),
)
def test_scores_are_the_sums_of_the_step_functions_bit_for_bit(
    seed, n_splits, dtype, n_outputs, exact
):
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(1, 80)), int(random.integers(1, 6))
    one = region_member(random, n_splits, n_features, n_outputs, exact=exact)
    constant, tables = added_up([one]).tables
    layouts: dict = {}
    for type_ in (dtype, "float32", dtype):
        X = rows(random, n_samples, n_features, type_)
        expected = np.tile(constant, (n_samples, 1))
        for table in tables:
            expected = expected + table.look_up(X[:, table.feature])
        lacking = np.zeros(len(tables), dtype=bool)
        found = prediction.scores(X, constant, tables, layouts, lacking)
        assert found.tobytes() == expected.tobytes()
        missing = np.isnan(X.astype(np.float64)).any(axis=0)
        assert lacking.tolist() == [missing[table.feature] for table in tables]


def test_rows_in_many_pieces_are_each_scored_once(monkeypatch):
    monkeypatch.setattr(prediction, "_AT_ONCE", 16)
    random = np.random.default_rng(0)
    constant, tables = added_up([region_member(random, 30, 4, 2)]).tables
    X = rows(random, 50, 4, "float64")
    single = [prediction.scores(X[k : k + 1], constant, tables) for k in range(len(X))]
    assert (prediction.scores(X, constant, tables) == np.concatenate(single)).all()


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_copy_of_a_model_that_has_predicted_predicts_the_same(monkeypatch, copied):
    monkeypatch.setenv("GPUSTUMP_KERNELS", "reference")
    random = np.random.default_rng(1)
    model = StumpEnsemble((region_member(random, 30, 4),), 4)
    X = rows(random, 50, 4, "float32")
    expected = model.decision_function(X)
    again = copied(model)
    assert again == model
    assert set(vars(again.additive)) == {"parts"}  # what follows from them is made anew
    assert (again.decision_function(X) == expected).all()
    assert (
        again.truncated(3).decision_function(X) == model.truncated(3).decision_function(X)
    ).all()
