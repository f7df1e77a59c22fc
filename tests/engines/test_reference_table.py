"""The reference's tables: thresholds, blocks, memory. Their cuts are compared in `test_oracle`."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds import start

from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import TOP, in_units
from gpustump.engines.objective import Objective
from gpustump.engines.reference.exponential_loss import ExponentialLoss
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.stump_scan import best_stump
from gpustump.engines.reference.table import ELEMENT_BYTES, prepare, spans
from gpustump.learners.thresholds import midpoint, midpoints


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
        integers = Integers.of([Sums(np.asarray(weights, dtype=np.int64), None)])
        cut = best_stump(columns, integers, Objective())
        assert cut.agreement == total


@pytest.mark.parametrize("shape", [(100_000, 5), (2_000, 150)])
@pytest.mark.parametrize(("dtype", "block_bytes"), [("float32", 2**20), ("float64", 2**23)])
def test_temporaries_stay_within_the_budget(dtype, shape, block_bytes):
    random = np.random.default_rng(0)
    X = random.normal(size=shape).astype(dtype)
    X[::50] = np.nan
    y = np.sign(random.normal(size=shape[0]))
    integers = ExponentialLoss(y, in_units(np.ones(shape[0])), 1).integers()
    one_feature = shape[0] * ELEMENT_BYTES  # is always sorted whole
    tracemalloc.start()
    try:
        columns = prepare(X, block_bytes=block_bytes)
        kept, peak = tracemalloc.get_traced_memory()
        assert peak - kept <= max(block_bytes, one_feature)
        assert kept <= 5.2 * X.size  # four bytes of order and one of cuts
        tracemalloc.reset_peak()
        best_stump(columns, integers, Objective())
        assert tracemalloc.get_traced_memory()[1] - kept <= block_bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("votes", ["real", "newton"])
def test_temporaries_for_many_outputs_stay_within_the_budget(votes):
    random, block_bytes, n_outputs = np.random.default_rng(0), 2**20, 20
    classes = random.integers(0, n_outputs, 20_000)
    table = prepare(random.normal(size=(20_000, 2)), block_bytes=block_bytes)
    state = start(table, classes, np.ones(20_000), Objective.of(votes, n_outputs, l2=1.0))
    assert state.totals.n_samples == 20_000  # from here on, the integers are known
    tracemalloc.start()
    try:
        state.best_cut()
        assert tracemalloc.get_traced_memory()[1] <= block_bytes
    finally:
        tracemalloc.stop()
