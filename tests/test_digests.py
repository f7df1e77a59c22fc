"""One model from one data set: the same digest on every array library, in blocks of every size.

NumPy's model, trained in blocks of the default size, is the reference for each of the named data
sets. Every library must give the same digest, also where the memory budget forces it to take the
samples in small chunks, and the same decision values, bit for bit. The values are also compared
with the stumps' votes added one by one in plain Python.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, NUMPY, Backend

from gpustump import Interval, Member, Stump, StumpEnsemble, boost

N_ROUNDS = 12
ROUNDS_IN_BLOCKS = {5000: N_ROUNDS, 500: 3, 1: 2}
"""How many rounds to compare in blocks of so many bytes; an element takes 48."""


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None = None
    learning_rate: float = 1.0


DATA: dict[str, Callable[[np.random.Generator], Data]] = {}


def data(make: Callable[[np.random.Generator], Data]) -> Callable[[np.random.Generator], Data]:
    DATA[make.__name__] = make
    return make


def table(rng: np.random.Generator, shape: tuple[int, int] = (96, 5)) -> np.ndarray:
    return rng.normal(size=shape)


def labels(X: np.ndarray, rng: np.random.Generator, noise: float = 0.5) -> np.ndarray:
    """Labels that depend on the first features, with noise."""
    with np.errstate(all="ignore"):
        score = np.nan_to_num(X[:, : min(3, X.shape[1])].astype(np.float64)).clip(-9, 9).sum(axis=1)
    y = np.where(score - np.median(score) + rng.normal(scale=noise, size=len(X)) > 0, 1, -1)
    y[:2] = [1, -1]
    return y


def noisy(X: np.ndarray, rng: np.random.Generator, **how) -> Data:
    return Data(X, labels(X, rng), **how)


def with_missing(X: np.ndarray, rng: np.random.Generator, share: float = 0.3) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, X.dtype.type(np.nan), X)


@data
def float64(rng):
    return noisy(table(rng), rng)


@data
def float32(rng):
    return noisy(table(rng).astype(np.float32), rng)


@data
def float16(rng):
    return noisy(table(rng).astype(np.float16), rng)


@data
def float16_with_missing_and_infinite(rng):
    X = with_missing(table(rng).astype(np.float16), rng)
    return noisy(np.where(X > 1.5, np.float16(np.inf), X), rng)


@data
def int8(rng):
    return noisy(rng.integers(-128, 128, size=(96, 5), dtype=np.int8), rng)


@data
def uint8(rng):
    return noisy(rng.integers(0, 256, size=(96, 5), dtype=np.uint8), rng)


@data
def int16(rng):
    return noisy(rng.integers(-(2**15), 2**15, size=(96, 5), dtype=np.int16), rng)


@data
def int32(rng):
    return noisy(rng.integers(-(2**31), 2**31, size=(96, 5), dtype=np.int32), rng)


@data
def int64_beyond_2_to_53(rng):
    return noisy(2**53 + rng.integers(-20, 20, size=(96, 5), dtype=np.int64), rng)


@data
def booleans(rng):
    X = rng.random((96, 5)) < 0.4
    return Data(X, np.where(X[:, 0] ^ (rng.random(96) < 0.3), 1, -1))


@data
def one_feature(rng):
    return noisy(table(rng, (96, 1)), rng)


@data
def two_samples(rng):
    return Data(table(rng, (2, 5)), np.asarray([1, -1]))


@data
def more_features_than_samples(rng):
    return Data(table(rng, (10, 70)), np.resize([1, 1, -1, 1, -1], 10))


@data
def full_of_ties(rng):
    return noisy(rng.integers(0, 3, size=(96, 5)).astype(np.float64), rng)


@data
def random_labels_on_ties(rng):
    X = rng.integers(0, 4, size=(96, 5)).astype(np.float32)
    return Data(X, np.resize([1, 1, -1, -1, 1, -1], 96))


@data
def constant_features(rng):
    X = table(rng)
    X[:, [0, 2, 4]] = [3.0, -0.0, np.inf]
    return noisy(X, rng)


@data
def only_constant_features(rng):
    return Data(np.ones((96, 5)), np.where(np.arange(96) < 60, 1, -1))


@data
def duplicated_features(rng):
    X = table(rng)
    return noisy(np.concatenate([X, X, -X[:, ::-1]], axis=1)[:, [5, 0, 14, 9, 1]], rng)


@data
def duplicated_samples(rng):
    X = np.repeat(table(rng, (24, 5)), 4, axis=0)
    return noisy(X, rng)


@data
def sorted_up(rng):
    X = np.sort(table(rng), axis=0)
    return Data(X, labels(X, rng, noise=3.0))


@data
def sorted_down(rng):
    X = np.sort(table(rng), axis=0)[::-1]
    return Data(X, labels(X, rng, noise=3.0))


@data
def missing(rng):
    return noisy(with_missing(table(rng), rng), rng)


@data
def missing_says_it_all(rng):
    X = with_missing(table(rng), rng)
    return Data(X, np.where(np.isnan(X[:, 3]) ^ (rng.random(96) < 0.1), 1, -1))


@data
def present_or_missing_only(rng):
    X = with_missing(np.ones((96, 5), dtype=np.float32), rng, 0.5)
    return Data(X, np.where(np.isnan(X[:, 1]) ^ (rng.random(96) < 0.3), 1, -1))


@data
def a_feature_wholly_missing(rng):
    X = with_missing(table(rng), rng, 0.1)
    X[:, 0] = np.nan
    X[:, 3] = np.nan
    return noisy(X, rng)


@data
def infinities(rng):
    X = table(rng)
    X[X > 1.0], X[X < -1.0] = np.inf, -np.inf
    return noisy(X, rng)


@data
def infinities_only(rng):
    return noisy(np.where(rng.random((96, 5)) < 0.5, np.inf, -np.inf), rng)


@data
def subnormal(rng):
    return noisy(rng.integers(-6, 7, size=(96, 5)) * 5e-324, rng)


@data
def subnormal_float32(rng):
    smallest = np.finfo(np.float32).smallest_subnormal
    return noisy(rng.integers(-6, 7, size=(96, 5)).astype(np.float32) * smallest, rng)


@data
def near_overflow(rng):
    return noisy(rng.uniform(-1.7, 1.7, size=(96, 5)) * 1e308, rng)


@data
def neighbouring_floats(rng):
    X = 1.0 + rng.integers(0, 9, size=(96, 5)) * 2.0**-52
    return Data(X, np.resize([1, -1, -1, 1, 1], 96))


@data
def both_zeros(rng):
    X = rng.choice([0.0, -0.0, 5e-324, -5e-324, 1.0], size=(96, 5))
    return noisy(X, rng)


@data
def weights_over_12_orders_of_magnitude(rng):
    return noisy(table(rng), rng, sample_weight=10.0 ** rng.uniform(-6, 6, size=96))


@data
def weights_over_600_orders_of_magnitude(rng):
    return noisy(table(rng), rng, sample_weight=10.0 ** rng.uniform(-300, 300, size=96))


@data
def one_dominating_sample(rng):
    return noisy(table(rng), rng, sample_weight=np.where(np.arange(96) == 17, 1e15, 1.0))


@data
def weights_near_overflow(rng):
    return noisy(table(rng), rng, sample_weight=rng.uniform(1.0, 1.7, size=96) * 1e308)


@data
def weights_near_underflow(rng):
    return noisy(table(rng), rng, sample_weight=rng.uniform(0.0, 4.0, size=96) * 2.0**-1022)


@data
def weights_whose_scaled_values_are_subnormal(rng):
    weights = np.asarray([(2.0**53 - 1) * 2.0**16, 63 * 2.0**10, 2.0**-1022])
    return Data(np.asarray([[0.0], [1.0], [0.0]]), np.asarray([1, -1, -1]), weights)


@data
def zero_weights(rng):
    X = with_missing(table(rng), rng, 0.2)
    return noisy(X, rng, sample_weight=rng.uniform(size=96) * (rng.random(96) < 0.6))


@data
def float32_weights(rng):
    return noisy(table(rng), rng, sample_weight=rng.uniform(size=96).astype(np.float32))


@data
def subnormal_float32_weights(rng):
    """They count as zero, since some libraries flush them."""
    weights = rng.choice([1e-40, 1e-37, 3e-38], size=96).astype(np.float32)
    return noisy(table(rng), rng, sample_weight=weights)


@data
def integer_weights(rng):
    return noisy(table(rng), rng, sample_weight=rng.integers(0, 5, size=96))


@data
def learning_rate_one_half(rng):
    return noisy(table(rng), rng, learning_rate=0.5)


@data
def learning_rate_three(rng):
    return noisy(table(rng), rng, learning_rate=3.0)


@data
def separable(rng):
    X = table(rng)
    return Data(X, np.where(X[:, 2] > 0.1, 1, -1))


@data
def no_edge_at_all(rng):
    return Data(
        np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (8, 1)),
        np.resize([1, -1, -1, 1], 32),
    )


@data
def many_samples_of_few_kinds(rng):
    return noisy(rng.integers(0, 2, size=(500, 3), dtype=np.int8), rng)


@functools.cache
def made(name: str) -> Data:
    return DATA[name](np.random.default_rng(sorted(DATA).index(name)))


def trained(
    backend: Backend, given: Data, n_rounds: int, block_bytes: int | None, **how: Any
) -> StumpEnsemble:
    weights = given.sample_weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUSTUMP_KERNELS", backend.kernels)
        records = list(
            boost(
                backend.asarray(given.X),
                backend.asarray(given.y),
                None if weights is None else backend.asarray(weights),
                learning_rate=given.learning_rate,
                n_rounds=n_rounds,
                block_bytes=block_bytes,
                **how,
            )
        )
    member = Member(tuple(r.stump for r in records), tuple(r.vote for r in records))
    return StumpEnsemble((member,), given.X.shape[1])


@functools.cache
def reference(name: str) -> StumpEnsemble:
    """The reference's model of a data set, on NumPy."""
    return trained(NUMPY, made(name), N_ROUNDS, None)


def skip_if_lacking(backend: Backend, given: Data) -> None:
    lacking = {given.X.dtype.name} & backend.lacks
    if lacking:
        pytest.skip(f"{backend.name} has no {', '.join(lacking)}")


def bits(values: np.ndarray) -> list[int]:
    assert values.dtype == np.float64
    return values.view(np.int64).tolist()


def predicted_by_hand(hypothesis: Stump | Interval, value: float) -> int:
    if math.isnan(value):
        return hypothesis.missing
    low = getattr(hypothesis, "low", None)
    high = hypothesis.threshold if isinstance(hypothesis, Stump) else hypothesis.high
    inside = value <= high and (low is None or value > low)
    return hypothesis.polarity if inside else -hypothesis.polarity


def scores_by_hand(model: StumpEnsemble, X: np.ndarray) -> np.ndarray:
    """F(x) of each row, its votes added one by one in plain Python."""
    member = model.members[0]
    rows = [
        math.fsum(
            vote * predicted_by_hand(stump, float(row[stump.feature]))
            for stump, vote in zip(member.stumps, member.votes, strict=True)
        )
        for row in X.tolist()
    ]
    return np.asarray(rows)


@pytest.mark.parametrize("name", DATA)
def test_digest_is_the_same_in_every_library(backend: Backend, name: str):
    given = made(name)
    skip_if_lacking(backend, given)
    model = trained(backend, given, N_ROUNDS, None)
    assert model.members == reference(name).members
    assert model.digest() == reference(name).digest()


@pytest.mark.parametrize("name", DATA)
def test_digest_is_the_same_in_blocks_of_every_size(backend: Backend, name: str):
    given = made(name)
    skip_if_lacking(backend, given)
    for block_bytes, n_rounds in ROUNDS_IN_BLOCKS.items():
        if backend.name.startswith("jax") and block_bytes < 5000:
            continue  # one launch per sample and operation: minutes
        model = trained(backend, given, n_rounds, block_bytes)
        assert model.digest() == reference(name).truncated(n_rounds).digest(), block_bytes


@pytest.mark.parametrize("name", DATA)
def test_decision_values_are_the_same_in_every_library(backend: Backend, name: str):
    given = made(name)
    skip_if_lacking(backend, given)
    model = reference(name)
    decision = model.decision_function(backend.asarray(given.X))
    assert backend.owns(decision)
    assert bits(backend.to_numpy(decision)) == bits(scores_by_hand(model, given.X))


@pytest.mark.parametrize("name", DATA)
def test_staged_decision_values_are_those_of_shorter_models(backend: Backend, name: str):
    given = made(name)
    skip_if_lacking(backend, given)
    model = reference(name)
    X = backend.asarray(given.X)
    stages = [backend.to_numpy(stage) for stage in model.staged_decision_function(X)]
    assert len(stages) == model.n_rounds
    for n_rounds in {1, model.n_rounds // 2, model.n_rounds} - {0} if stages else set():
        whole = backend.to_numpy(model.truncated(n_rounds).decision_function(X))
        assert bits(stages[n_rounds - 1]) == bits(whole)


def test_data_sets_are_not_trivial():
    """The other tests would prove little about models that are all alike, or empty."""
    digests = {name: reference(name).digest() for name in DATA}
    assert len(DATA) >= 40
    assert len(set(digests.values())) >= len(DATA) - 1
    long_enough = [name for name in DATA if reference(name).n_rounds == N_ROUNDS]
    assert len(long_enough) >= 30
    assert reference("no_edge_at_all").n_rounds == 0
    assert reference("separable").n_rounds == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_digest_of_many_samples_is_the_same_in_every_library(backend: Backend, dtype: str):
    given = many_samples(dtype)
    expected = trained(NUMPY, given, 8, 10**6)
    for block_bytes in (None, 3 * 10**6):
        model = trained(backend, given, 8, block_bytes)
        assert model.digest() == expected.digest()
    decision = backend.to_numpy(expected.decision_function(backend.asarray(given.X)))
    assert bits(decision) == bits(NUMPY.to_numpy(expected.decision_function(given.X)))


@functools.cache
def many_samples(dtype: str) -> Data:
    """Enough for libraries to use several threads, or sums in parts."""
    rng = np.random.default_rng(0)
    X = (20 * table(rng, (70_000, 4))).clip(-128, 127).astype(dtype)
    return noisy(X, rng, sample_weight=10.0 ** rng.uniform(-6, 6, size=len(X)))


def test_digest_does_not_depend_on_the_number_of_threads():
    torch = pytest.importorskip("torch")
    before, given = torch.get_num_threads(), many_samples("float32")
    backend = next(b for b in BACKENDS if b.name == "torch")
    try:
        digests = set()
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            digests.add(trained(backend, given, 4, None).digest())
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


@pytest.mark.parametrize("name", ["float64", "float32", "weights_over_12_orders_of_magnitude"])
def test_a_processor_told_to_flush_subnormals_changes_nothing_where_there_are_none(name: str):
    """A mode that PyTorch offers, and that some libraries set for everyone when they load."""
    torch = pytest.importorskip("torch")
    expected, given = reference(name), made(name)
    scores = bits(expected.decision_function(given.X))
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor has no such mode")
    try:
        model = trained(NUMPY, given, N_ROUNDS, None)
        flushed = bits(expected.decision_function(given.X))
    finally:
        torch.set_flush_denormal(False)
    assert model.digest() == expected.digest()
    assert flushed == scores


def test_digest_does_not_depend_on_the_layout_of_the_table():
    given = made("float32")
    for X in (
        np.asfortranarray(given.X),
        np.repeat(given.X, 2, axis=0)[::2],
        np.repeat(given.X, 2, axis=1)[:, ::2],
        given.X[::-1][::-1],
        np.broadcast_to(given.X, (2, *given.X.shape))[1],
    ):
        records = boost(X, given.y, n_rounds=3)
        assert [r.stump for r in records] == list(reference("float32").members[0].stumps[:3])


def test_digest_is_the_same_from_a_thread_with_another_decimal_context():
    """Votes go through `decimal`; what its context is when the caller comes must not matter."""
    import decimal

    for change in ({"prec": 5}, {"prec": 9, "rounding": decimal.ROUND_UP}, {"Emax": 3}):
        with decimal.localcontext(**change):
            model = trained(NUMPY, made("float64"), N_ROUNDS, None)
        assert model.digest() == reference("float64").digest(), change


def test_digest_is_the_same_where_numpy_raises_on_rounding():
    """np.seterr(all="raise") turns harmless underflow into an exception in the caller's thread."""
    for name in ("subnormal", "near_overflow", "weights_over_600_orders_of_magnitude"):
        with np.errstate(all="raise"):
            model = trained(NUMPY, made(name), N_ROUNDS, None)
        assert model.digest() == reference(name).digest()


def test_arrays_of_one_device_never_meet_those_of_another():
    """array-api-strict has devices that refuse to mix: whatever is made must be made beside X."""
    strict = pytest.importorskip("array_api_strict")
    device = strict.Device("device1")
    for name in ("missing", "zero_weights", "full_of_ties"):
        given = made(name)
        weights = given.sample_weight
        X, y = (strict.asarray(np.array(a), device=device) for a in (given.X, given.y))
        if weights is not None:
            weights = strict.asarray(np.array(weights), device=device)
        records = list(boost(X, y, weights, n_rounds=4, block_bytes=5000))
        assert tuple(r.stump for r in records) == reference(name).members[0].stumps[:4]
        decision = reference(name).decision_function(X)
        assert decision.device == device
        assert reference(name).predict(X).device == device
        for stage in reference(name).staged_decision_function(X):
            assert stage.device == device
