"""Properties of exports, on models that hypothesis draws: thresholds and values as odd as any."""

from __future__ import annotations

import math
import sqlite3

import exported
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models_by_hand import exact_scores

from gpustump import RegionMember, Split, StumpEnsemble
from gpustump.exports.sql import DIALECTS, number
from gpustump.exports.tables import export_tables
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.encoding import Encoding, InputColumn

ODD = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.1754943508222875e-38, 1e-45, 0.1]
ODD += [1.401298464324817e-45, 3.4028234663852886e38, 1.7976931348623157e308, 1e16, 2.0**53, 1e-320]
FLOATS = st.floats(allow_nan=False) | st.sampled_from([*ODD, *(-value for value in ODD)])


@st.composite
def models(draw: st.DrawFn) -> StumpEnsemble:
    n_outputs = draw(st.sampled_from([1, 3]))
    thresholds = draw(st.lists(FLOATS, min_size=1, max_size=40))
    splits = tuple(Split(draw(st.integers(0, 2)), threshold) for threshold in thresholds)
    shape = (len(splits), 3, n_outputs)
    units = draw(
        st.lists(
            st.integers(-(2**45), 2**45),
            min_size=math.prod(shape),
            max_size=math.prod(shape),
        )
    )
    votes = np.asarray(units, dtype=np.float64).reshape(shape) * VOTE_UNIT
    classes = (0, 1) if n_outputs == 1 else ("a", "b", "c")
    return StumpEnsemble((RegionMember(splits, votes, np.zeros(n_outputs)),), 3, classes)


def units_of(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """The scores, (n_samples, n_outputs), in their unit; floats are compared as real numbers."""
    return (exact_scores(model.members[0], X) / VOTE_UNIT).astype(np.int64)


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from(["float32", "float64"]))
def test_exports_compare_as_the_real_numbers_do(model: StumpEnsemble, dtype: str) -> None:
    X = exported.edge_rows(model, dtype, 40)
    scores = units_of(model, X)
    scores = scores[:, 0] if model.is_binary else scores
    np.testing.assert_array_equal(exported.by_sqlite(model, X).scores, scores)
    np.testing.assert_array_equal(exported.by_onnx(model, X, dtype).scores, scores)


@pytest.mark.parametrize("target", ["c", "duckdb"])
def test_compilers_and_duckdb_read_every_threshold_exactly(target: str) -> None:
    """A few drawn models at once: a compiler takes its time."""
    random = np.random.default_rng(1)
    bits = random.integers(-(2**63), 2**63, size=400, dtype=np.int64).view(np.float64)
    thresholds = np.concatenate([bits[np.isfinite(bits)], ODD, np.negative(ODD)])
    splits = tuple(Split(k % 3, float(own)) for k, own in enumerate(thresholds))
    votes = random.integers(-(2**40), 2**40, size=(len(splits), 3, 1)) * VOTE_UNIT
    model = StumpEnsemble((RegionMember(splits, votes, np.zeros(1)),), 3)
    answer = {"c": exported.by_c, "duckdb": exported.by_duckdb}[target]
    X = exported.edge_rows(model, "float64", 700)
    np.testing.assert_array_equal(answer(model, X).scores, units_of(model, X)[:, 0])


@settings(max_examples=400, deadline=None)
@given(FLOATS)
@example(2.0**62 + 2.0**12)
@example(-1.7976931348623157e308)
def test_sqlite_reads_a_number_as_it_is(value: float) -> None:
    connection = sqlite3.connect(":memory:")
    (found,) = connection.execute(f"SELECT {number(value, DIALECTS['sqlite'])}").fetchone()
    connection.close()
    assert (found, type(found)) == (value, float)


NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.5, -math.inf, math.inf, 5e-324])


@settings(max_examples=150, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=6), st.lists(NUMBERS, min_size=1, max_size=4))
def test_a_number_that_stands_for_a_missing_value_gets_the_votes_of_one(
    thresholds: list[float], words: list[float]
) -> None:
    encoding = Encoding((InputColumn("x", 0, "number"),), 1, True, tuple(map(repr, words)))
    votes = np.arange(3.0 * len(thresholds)).reshape(-1, 3, 1) ** 2 + 1.0
    model = StumpEnsemble(
        (RegionMember(tuple(Split(0, own) for own in thresholds), votes, np.zeros(1)),),
        1,
        feature_names=("x",),
        details={"encoding": encoding.as_details()},
    )
    (steps,) = export_tables(model).steps
    assert (np.diff(steps.thresholds) > 0).all()
    X = exported.edge_rows(model, "float64", 60)
    gone = np.where(np.isin(X, words), np.nan, X)
    wanted = units_of(model, gone)[:, 0]
    np.testing.assert_array_equal(exported.by_sqlite(model, X).scores, wanted)
