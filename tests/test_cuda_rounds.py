"""The CUDA kernels against the reference, integer by integer, round by round.

They are the same `.cu` files, built by the C++ compiler and run on the CPU block by block, with
several threads a block; see `cuda_on_cpu`. However much memory there is, however it is used, and
whatever shape a launch has, the integers must be the reference's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import (
    TABLES,
    Way,
    check_level,
    signs,
    tied,
    with_a_heavy_sample,
    with_any_weights,
    with_duplicated_features,
    with_features_that_say_nothing,
)

from gpustump.engines import integer_weights as weights
from gpustump.engines.cuda import device, layout, memory, sorting, sweep
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.codes import ResidentCodes, StreamedCodes
from gpustump.engines.cuda.state import CudaState

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def budget(X: np.ndarray, n_orders: int, *, streamed: bool = False) -> int:
    """Bytes that allow so much and no more."""
    shape = X.shape
    least = memory.least_bytes(*shape)
    if streamed:
        return least
    codes_and_orders = memory._of_codes(*shape) + 4 * shape[0] * (n_orders - 1)
    return memory._without_codes(*shape) + codes_and_orders


def ways(X: np.ndarray) -> Iterator[Way]:
    """Columns for the device, in every way that they can be made."""
    host = X.view(np.memmap)  # anything but a plain array counts as the host's

    def way(name: str, device: OnCpu, table: np.ndarray = X, **how: Any) -> Way:
        return name, columns.prepare(table, None, device, **how)

    yield way("one thread", OnCpu(threads=1))
    yield way("three threads", OnCpu(threads=3))
    yield way("eight threads", OnCpu(threads=8))
    yield way("little shared memory", OnCpu(most_shared=64 * 1024))
    yield way("least shared memory", OnCpu(most_shared=48 * 1024))
    yield way("one order at a time", OnCpu(), budget=budget(X, 1))
    yield way("host table", OnCpu(), host)
    yield way("host table, one thread there", OnCpu(), host, n_jobs=1)
    yield way("host table, one order at a time", OnCpu(), host, budget=budget(X, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", 3)
        yield way("three bins", OnCpu())
        patch.setattr(sorting, "MOST_BINS", 1)
        yield way("one bin", OnCpu(threads=3))
        patch.setattr(memory, "_LEAST_BUFFER", 1024)
        patch.setattr(sorting, "MOST_BINS", 255)
        yield way("streamed", OnCpu(), host, budget=budget(X, 1, streamed=True))
        patch.setattr(memory, "_MOST_BUFFER", 1024)
        yield way("streamed in blocks", OnCpu(), host, budget=budget(X, 1, streamed=True))


def check(X: np.ndarray, y: np.ndarray, weights: Any = None, **how: Any) -> None:
    check_level(X, y, weights, ways(X), **how)


def test_the_ways_are_what_they_say():
    X = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    made = dict(ways(X))
    assert isinstance(made["streamed"].codes, StreamedCodes)
    assert made["streamed in blocks"].codes._size == 1024
    assert made["streamed"].note is not None
    assert made["host table"].source.on_device is None
    assert isinstance(made["one order at a time"].codes, ResidentCodes)
    assert np.count_nonzero(made["one order at a time"].orders.addresses) == 1
    assert np.count_nonzero(made["three threads"].orders.addresses) == 6
    assert made["one bin"].bins.n_bins.tolist() == [1] * 6
    assert made["three bins"].bins.n_bins.tolist() == [3] * 6
    assert layout.column_bits(made["least shared memory"].device) == 3
    assert layout.column_bits(made["little shared memory"].device) == 4


@settings(max_examples=60)
@given(TABLES)
def test_ties_everywhere_are_broken_alike(samples):
    check(*tied(samples))


@settings(max_examples=30)
@given(
    st.integers(0, 10**6), st.integers(20, 400), st.sampled_from(["float16", "float32", "float64"])
)
def test_any_values_and_weights_give_the_references_integers(seed, n_samples, dtype):
    check(*with_any_weights(seed, n_samples, dtype))


@pytest.mark.parametrize("n_features", [1, 2, 3, 9, 20, 32, 33, 70])
def test_any_number_of_features_fits_into_groups(n_features):
    random = np.random.default_rng(n_features)
    X = random.normal(size=(700, n_features)).astype(np.float32)
    check(X, signs(X[:, -1] + X[:, 0], random), n_rounds=4)


def test_of_duplicated_features_the_lowest_wins():
    check(*with_duplicated_features())


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("at", [0, 61, 100, 499, 999])
def test_a_heavy_sample_may_stand_anywhere_in_its_bin(label, at):
    """Its weight alone may be most of all 62 bits, with the best cut right behind it."""
    check(*with_a_heavy_sample(at, label))


def test_sums_carry_from_the_lower_word_into_the_upper():
    """Many weights whose lower halves are nearly full."""
    random = np.random.default_rng(5)
    X = np.round(random.normal(size=(4000, 3)) * 3).astype(np.float32)
    weights = 2.0**32 * random.integers(1, 2**10, size=4000) - random.integers(1, 9, size=4000)
    check(X, signs(X[:, 0], random), weights, n_rounds=12)


def test_the_best_cut_may_hide_in_a_bin_whose_edges_look_poor():
    n_bins, inside = 255, 40
    x = np.arange(n_bins * inside, dtype=np.float32)[:, np.newaxis]
    y = np.where(np.arange(n_bins * inside) % inside < inside // 2, 1.0, -1.0)
    y[3 * inside : 3 * inside + inside // 2 + 3] = 1.0
    check(x, y, n_rounds=6)


def test_features_that_say_nothing():
    check(*with_features_that_say_nothing())
    check(np.full((40, 2), np.nan), np.where(np.arange(40) < 15, 1.0, -1.0))


@pytest.mark.parametrize("learning_rate", [0.1, 3.0])
def test_bounds_hold_when_weights_are_halved_often_or_never(learning_rate):
    random = np.random.default_rng(8)
    X = random.normal(size=(1500, 3)).astype(np.float32)
    check(X, signs(X[:, 0], random), n_rounds=25, learning_rate=learning_rate)


@pytest.mark.slow
def test_bins_of_several_pieces_are_put_together():
    """More samples than a block scans at a time, in one bin; and bins cut into the most pieces."""
    random = np.random.default_rng(9)
    X = random.normal(size=(80_000, 2)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1] * 300)
    y = signs(X[:, 0] + X[:, 1] / 300, random)
    check(X, y, n_rounds=5)


def test_python_and_the_kernels_agree_on_sizes_and_constants():
    sizes = {f"sizeof({name})": dtype.itemsize for name, dtype in layout.RECORDS.items()}
    places = {
        f"offsetof({name}, {field})": dtype.fields[field][1]
        for name, dtype in layout.RECORDS.items()
        for field in dtype.names
    }
    assert cuda_on_cpu.numbers() == sizes | places | {
        "PIECE": layout.PIECE,
        "MOST_PIECES": layout.MOST_PIECES,
        "MISSING": sorting.MOST_BINS,
        "MISSING + 1": sweep._ALL_LEFT,
        "SLOTS": layout.table_bytes(0) / 8,
        "LANE_BITS": layout.LANE_BITS,
        "LANES * RUN": layout.TILE_SAMPLES,
        "TOP": weights.TOP,
        "FLOOR": weights.FLOOR,
    }
    bounds = re.findall(r"__launch_bounds__\((\d+)\)", device.source("codes"))
    assert list(map(int, bounds)) == [device.THREADS, OnCpu().most_threads]
    widths = {f"add_{1 << bits}" for bits in range(3, layout.LANE_BITS + 1)}
    assert widths <= set(device.KERNELS["sweep"])
    assert layout._LEAST_COLUMN_BITS == 3


@pytest.mark.parametrize("kernel", ["advance", "add_32", "weigh", "list_bins", "scan", "finish"])
def test_a_launch_with_too_little_shared_memory_would_be_noticed(monkeypatch, kernel):
    random = np.random.default_rng(11)
    X = random.normal(size=(600, 4)).astype(np.float32)
    device = OnCpu(threads=3)
    made = columns.prepare(X, None, device)
    launch = device.launch

    def with_less(name: str, *rest: Any, shared: int = 0) -> None:
        launch(name, *rest, shared=shared - 8 * (name == kernel))

    monkeypatch.setattr(device, "launch", with_less)
    with pytest.raises(AssertionError, match=f"{kernel} takes more than"):
        CudaState(made, signs(X[:, 0], random), np.ones(600))


@pytest.mark.parametrize("n_processors", [1, 3, 132])
def test_every_processor_has_one_block_and_no_group_much_more_to_do(n_processors):
    device = OnCpu()
    device.n_processors = n_processors
    for n_features in range(1, 400):
        groups = layout.groups_of(n_features, 2**20)
        table, n_blocks = layout.described(device, groups, 2**20)
        assert n_blocks == table["first_block"][-1] == max(n_processors, len(groups))
        each = np.diff(table["first_block"])
        assert (each >= 1).all()
        if n_processors == 132:
            width_bits = table["width_bits"][:-1]
            share = (1 << width_bits) / each
            lanes = sum(1 << int(bits) for bits in width_bits)
            assert share.max() <= 1.6 * lanes / n_processors, n_features


def test_small_tables_get_few_blocks():
    device = OnCpu()
    device.n_processors = 132
    assert layout.described(device, layout.groups_of(30, 512), 512)[1] == 1
    assert layout.described(device, layout.groups_of(30, 10_240), 10_240)[1] == 10


def test_what_a_run_holds_is_what_is_planned():
    """All arrays on the device, beside what sorting takes for a while."""
    X = np.random.default_rng(0).normal(size=(20_000, 7)).astype(np.float32)
    made = columns.prepare(X, None, OnCpu())
    run = CudaState(made, signs(X[:, 0], np.random.default_rng(1)), X[:, 1] ** 2 + 1)
    held = [run._sweep, run._search, made, made.codes, made.orders]
    n_bytes = sum(
        value.nbytes
        for one in held
        for value in vars(one).values()
        if isinstance(value, np.ndarray)
    )
    n_bytes += sum(order.nbytes for order in made.orders._held.values())
    planned = memory._without_codes(*X.shape) + memory._of_codes(*X.shape) + 4 * 20_000 * 6
    assert n_bytes <= planned - memory._SORTING_BYTES * 20_000


def test_a_round_is_one_transfer_and_few_launches():
    random = np.random.default_rng(10)
    X = random.normal(size=(3000, 5)).astype(np.float32)
    device = OnCpu()
    made = columns.prepare(X, None, device)
    check_level(X, signs(X[:, 0], random), None, [("", made)], n_rounds=1)
    device.launched.clear()
    device.n_transfers = 0
    check_level(X, signs(X[:, 0], random), None, [("", made)], n_rounds=10)
    assert device.n_transfers == 11  # the first sums, and ten rounds
    n_marks = device.launched.count("mark")
    assert n_marks <= 10
    assert len(device.launched) == 11 * 6 + n_marks
