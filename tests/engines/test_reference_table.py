"""The reference's tables and scans: orders, cuts, counts, thresholds, and the memory they take."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import threshold_between
from trainers import start

from gpustump import arrays
from gpustump.engines.contract import Search
from gpustump.engines.integer_weights import TOP, SignedWeights, in_units, signed
from gpustump.engines.reference.stump_scan import best_stump
from gpustump.engines.reference.table import ELEMENT_BYTES, prepare, spans
from gpustump.learners.thresholds import midpoint, midpoints

X = np.asarray(
    [
        [3.0, np.nan, 1.0, np.nan],
        [1.0, 2.0, 1.0, np.nan],
        [2.0, np.nan, 1.0, np.nan],
        [1.0, -np.inf, 1.0, np.nan],
        [-0.0, np.inf, 1.0, np.nan],
        [0.0, 2.0, 1.0, np.nan],
    ]
)


@pytest.mark.parametrize("block_bytes", [None, 1, 6 * 3 * ELEMENT_BYTES])
def test_samples_are_in_order_and_cuts_are_where_two_values_differ(backend: Backend, block_bytes):
    x, before = backend.asarray(X), X.tobytes()
    with arrays.computing_on(x):
        columns = prepare(x, block_bytes=block_bytes)
        assert [columns.threshold(0, k) for k in (1, 3, 4, 5)] == [0.5, 1.5, 2.5, math.inf]
        assert [columns.threshold(1, k) for k in (0, 2, 3)] == [-math.inf, 2.0, math.inf]
        assert columns.threshold(2, 5) == math.inf
    assert X.tobytes() == before
    order = np.concatenate([backend.to_numpy(block.order) for block in columns.blocks])
    assert order.shape == (4, 6)
    for j, samples in enumerate(order):
        assert sorted(samples.tolist()) == list(range(6))
        values = X[samples, j]
        present = int((~np.isnan(X[:, j])).sum())
        assert np.isnan(values[present:]).all()
        assert values[:present].tolist() == sorted(values[:present].tolist())
    cuts = []
    for block in columns.blocks:
        flags = np.ones((len(block.n_cuts), 5), dtype=bool)
        cuts += (flags if block.cuts is None else backend.to_numpy(block.cuts)).tolist()
    yes, no = True, False
    assert cuts == [
        [no, yes, no, yes, yes],  # -0 0 1 1 2 3
        [yes, no, yes, no, no],  # -inf 2 2 inf nan nan
        [no] * 5,
        [no] * 5,
    ]
    assert np.concatenate([block.n_cuts for block in columns.blocks]).tolist() == [3, 2, 0, 0]
    assert np.concatenate([block.n_present for block in columns.blocks]).tolist() == [6, 4, 6, 0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_midpoints_are_the_midpoint_of_each_pair(dtype: str):
    info = np.finfo(dtype)
    tiny, top = info.smallest_subnormal, info.max
    values = np.asarray([-np.inf, -top, -1, -tiny, 0, tiny, 2 * tiny, 1, 1 + info.eps], dtype)
    values = np.append(values, np.asarray([top / 2, top, np.inf], dtype))
    expected = [midpoint(low, high) for low, high in itertools.pairwise(values)]
    found = midpoints(values)
    assert found.dtype == np.float64
    assert found.tolist() == expected
    assert not np.signbit(found[found == 0]).any()


@settings(max_examples=500)
@given(st.data(), st.sampled_from(["float16", "float32", "float64"]))
def test_threshold_of_any_two_values_parts_them(data, dtype):
    value = st.floats(allow_nan=False, width=int(dtype[5:]))
    low, high = sorted((data.draw(value), data.draw(value)))
    if low == high:
        return
    threshold = prepare(np.asarray([[high], [low]], dtype=dtype)).threshold(0, 0)
    assert low <= threshold < high
    assert threshold == threshold_between(low, high, dtype)
    assert math.copysign(1.0, threshold) == 1.0 or threshold != 0.0


def test_only_the_given_rows_take_part(backend: Backend):
    rows = np.asarray([5, 1, 3], dtype=np.int64)
    x, index = backend.asarray(X), backend.asarray(rows)
    with arrays.computing_on(x):
        columns = prepare(x, rows=index)
        values = columns.values(1)
        threshold = columns.threshold(1, 0)
    assert columns.n_samples == 3
    assert backend.to_numpy(values).tolist() == X[rows, 1].tolist()
    assert threshold == -math.inf
    order = backend.to_numpy(columns.blocks[0].order)
    assert X[rows[order[1]], 1].tolist() == [-math.inf, 2.0, 2.0]


def test_a_table_without_ties_needs_no_record_of_its_cuts():
    columns = prepare(np.random.default_rng(0).permutation(50).reshape(10, 5))
    assert [block.cuts for block in columns.blocks] == [None]


@given(st.integers(1, 200), st.integers(1, 100), st.integers(1, 5000))
def test_spans_cover_everything_once_within_the_budget(total, bytes_each, budget):
    slices = list(spans(total, bytes_each, budget))
    assert [i for s in slices for i in range(s.start, s.stop)] == list(range(total))
    longest = max(s.stop - s.start for s in slices)
    assert longest == 1 or longest * bytes_each <= budget


def test_largest_agreement_that_fits_does_not_overflow():
    total = TOP - 1
    one, other = total // 2 + 1, total // 2
    X = np.asarray([[0.0], [1.0], [np.nan]])
    columns = prepare(X)
    for weights in ([one, -other, 0], [-one, other, 0], [0, one, -other], [one, 0, other]):
        values = np.asarray(weights, dtype=np.int64)
        cut = best_stump(columns, SignedWeights(values, sum(weights), total))
        assert cut.agreement == total


@pytest.mark.parametrize("shape", [(100_000, 5), (2_000, 150)])
@pytest.mark.parametrize(("dtype", "block_bytes"), [("float32", 2**20), ("float64", 2**23)])
def test_temporaries_stay_within_the_budget(dtype, shape, block_bytes):
    random = np.random.default_rng(0)
    X = random.normal(size=shape).astype(dtype)
    X[::50] = np.nan
    y = np.sign(random.normal(size=shape[0]))
    sums = signed(in_units(np.ones(shape[0])), y)
    one_feature = shape[0] * ELEMENT_BYTES  # is always sorted whole
    tracemalloc.start()
    try:
        columns = prepare(X, block_bytes=block_bytes)
        kept, peak = tracemalloc.get_traced_memory()
        assert peak - kept <= max(block_bytes, one_feature)
        assert kept <= 5.2 * X.size  # four bytes of order and one of cuts
        tracemalloc.reset_peak()
        best_stump(columns, sums)
        assert tracemalloc.get_traced_memory()[1] - kept <= block_bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_temporaries_for_many_outputs_stay_within_the_budget(votes):
    random, block_bytes, n_outputs = np.random.default_rng(0), 2**20, 20
    classes = random.integers(0, n_outputs, 20_000)
    table = prepare(random.normal(size=(20_000, 2)), block_bytes=block_bytes)
    state = start(table, classes, np.ones(20_000), Search("stump", votes, n_outputs, l2=1.0))
    assert state.totals.n_samples == 20_000  # from here on, the integers are known
    tracemalloc.start()
    try:
        state.best_cut()
        assert tracemalloc.get_traced_memory()[1] <= block_bytes
    finally:
        tracemalloc.stop()
