"""The scan against its own definition, position by position, and against its memory budget."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from trainers import start

from gpustump import arrays
from gpustump.engines.contract import Search
from gpustump.engines.integer_weights import TOP, SignedWeights, in_units, signed
from gpustump.engines.reference.stump_scan import Extremes, best_stump, choose, extremes
from gpustump.engines.reference.table import ELEMENT_BYTES, prepare

SMALL = st.integers(-3, 3)


def scores_at_cuts(values: list[float], signed_weights: list[int]) -> dict[int, int]:
    """score_left at every cut of one feature, from its definition, in Python integers."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = {}
    for k in range(len(order) - 1):
        if values[order[k]] < values[order[k + 1]]:
            found[k] = sum(signed_weights[i] for i in order[: k + 1])
    return found


def weighed(signed_weights: list[int], backend: Backend) -> SignedWeights:
    values = backend.asarray(np.asarray(signed_weights, dtype=np.int64))
    return SignedWeights(values, sum(signed_weights), sum(map(abs, signed_weights)))


def test_extremes_are_those_of_score_left_over_the_cuts(backend):
    """On JAX, which compiles anew for every shape, for one shape only."""
    is_jax = backend.name.startswith("jax")
    sample = st.tuples(SMALL, SMALL, st.integers(-(2**58), 2**58))
    samples = st.lists(sample, min_size=12 if is_jax else 2, max_size=12)
    sizes = st.sampled_from([300] if is_jax else [1, 100, 300, 10**6])

    @settings(max_examples=20 if is_jax else 60)
    @given(samples, sizes)
    def extremes_are_those_over_the_cuts(samples, block_bytes):
        check_extremes(backend, samples, block_bytes)

    extremes_are_those_over_the_cuts()


def check_extremes(backend: Backend, samples: list[tuple[int, int, int]], block_bytes: int) -> None:
    X = np.asarray([pair[:2] for pair in samples], dtype=np.float32)
    weights = [weight for *_, weight in samples]
    table = backend.asarray(X)
    with arrays.computing_on(table):
        columns = prepare(table, block_bytes=block_bytes)
        sums = weighed(weights, backend)
        found = [extremes(block, sums, block_bytes) for block in columns.blocks]
    high, high_at, low, low_at, present = (
        np.concatenate([backend.to_numpy(getattr(part, name)) for part in found])
        for name in ("high", "high_at", "low", "low_at", "present")
    )
    for j in range(2):
        scores = scores_at_cuts(X[:, j].tolist(), weights)
        assert present[j] == sum(weights)
        if scores:
            assert (high[j], low[j]) == (max(scores.values()), min(scores.values()))
            assert high_at[j] == min(k for k, score in scores.items() if score == high[j])
            assert low_at[j] == min(k for k, score in scores.items() if score == low[j])


def test_largest_agreement_that_fits_does_not_overflow():
    total = TOP - 1
    one, other = total // 2 + 1, total // 2
    X = np.asarray([[0.0], [1.0], [np.nan]])
    columns = prepare(X)
    for weights in ([one, -other, 0], [-one, other, 0], [0, one, -other], [one, 0, other]):
        values = np.asarray(weights, dtype=np.int64)
        cut = best_stump(columns, SignedWeights(values, sum(weights), total))
        assert cut.agreement == total


def fields(**changes: int) -> Extremes:
    values = {"high": 0, "high_at": 0, "low": 0, "low_at": 0, "present": 0} | changes
    return Extremes(**{name: np.asarray([value]) for name, value in values.items()})


def joined(*parts: Extremes) -> Extremes:
    names = ("high", "high_at", "low", "low_at", "present")
    return Extremes(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def chosen(*parts: Extremes, total: int, n_cuts: int = 5, n_present: int = 9):
    counts = [np.full(len(parts), n) for n in (n_cuts, n_present)]
    return choose(joined(*parts), total, n_cuts=counts[0], n_present=counts[1])


def test_of_equal_agreements_the_lower_threshold_wins_then_the_lower_feature():
    both = fields(high=3, high_at=6, low=-3, low_at=2)
    cut = chosen(both, both, total=0)
    assert (cut.feature, cut.position, cut.polarity, cut.agreement) == (0, 2, -1, 6)
    both = fields(high=3, high_at=2, low=-3, low_at=6)
    assert chosen(both, total=0).polarity == 1


def test_a_constant_stump_wins_only_if_strictly_better():
    split = fields(high=4, high_at=1, low=4, low_at=1, present=3)  # agreement 5
    assert chosen(split, total=3).position == 1
    level = fields(high=5, high_at=1, low=5, low_at=1, present=5)  # agreement 5 = |total|
    assert chosen(level, total=5).position == 1
    worse = fields(high=4, high_at=1, low=4, low_at=1, present=5)  # agreement 3 < |total|
    assert chosen(worse, total=5).position is None
    assert chosen(worse, total=5).polarity == 1
    negative = fields(high=-4, high_at=1, low=-4, low_at=1, present=-5)
    assert chosen(negative, total=-5).polarity == -1


def test_present_against_missing_is_a_split_where_they_disagree():
    apart = fields(present=7)
    cut = chosen(apart, total=3, n_cuts=0)  # the missing ones sum to -4
    assert (cut.position, cut.polarity, cut.missing, cut.agreement) == (8, 1, -1, 11)
    together = chosen(fields(present=2), total=6, n_cuts=0)
    assert together.position is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(200_000, 10), (2_000, 300)])
@pytest.mark.parametrize("block_bytes", [2**20, 2**23])
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
