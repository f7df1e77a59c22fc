"""What only the CUDA engine has: launches, shared memory, groups, what it holds on the device.

The kernels are the same `.cu` files, built by the C++ compiler and run on the CPU block by block,
with several threads a block; see `cuda_on_cpu`.
"""

from __future__ import annotations

import re
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from engine_ways import cuda
from rounds import Case, check_facts, check_level, facts_of, signs
from trainers import start

from gpustump.engines import integer_weights as weights
from gpustump.engines.contract import Search
from gpustump.engines.cuda import device, device_memory, layout, search, sorting, steps
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.codes import ResidentCodes, StreamedCodes
from gpustump.engines.cuda.stump_state import StumpState

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def test_the_ways_are_what_they_say():
    X = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    made = dict(cuda(X, None))
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


@pytest.mark.slow
def test_bins_of_several_pieces_are_put_together():
    """More samples than a block scans at a time, in one bin; and bins cut into the most pieces."""
    random = np.random.default_rng(9)
    X = random.normal(size=(80_000, 2)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1] * 300)
    y = signs(X[:, 0] + X[:, 1] / 300, random)
    check_level(X, y, None, cuda(X, None), n_rounds=5)
    check_level(X, y, None, cuda(X, None), n_rounds=3, learner="interval")


def test_python_and_the_kernels_agree_on_sizes_and_constants():
    sizes = {f"sizeof({name})": dtype.itemsize for name, dtype in layout.RECORDS.items()}
    places = {
        f"offsetof({name}, {field})": dtype.fields[field][1]
        for name, dtype in layout.RECORDS.items()
        for field in dtype.names
    }
    assert cuda_on_cpu.numbers() == sizes | places | {
        "SPLIT_PIECE": layout.SPLIT_PIECE,
        "PLACE_BITS": layout.PLACE_BITS,
        "NO_SCORE": search.NO_SCORE,
        "MISSING": sorting.MOST_BINS,
        "ALL_LEFT": steps._ALL_LEFT,
        "OF_SAMPLES": steps._OF_SAMPLES,
        "OF_CODES": steps._OF_CODES,
        "SLOTS": layout.SLOTS,
        "LANE_BITS": layout.LANE_BITS,
        "RUN": layout.RUN,
        "LANES * RUN": layout.TILE_SAMPLES,
        "TOP": weights.TOP,
        "FLOOR": weights.FLOOR,
    }
    bounds = re.findall(r"__launch_bounds__\((\d+)\)", device.source("codes"))
    assert list(map(int, bounds)) == [device.THREADS, OnCpu().most_threads]
    widths = {f"add_{1 << bits}" for bits in range(3, layout.LANE_BITS + 1)}
    assert widths <= set(device.KERNELS["sweep"])
    assert layout._LEAST_COLUMN_BITS == 3


@pytest.mark.parametrize(
    ("learner", "kernel"),
    [
        *(("stump", name) for name in ("advance", "add_staged", "weigh", "list_bins", "scan")),
        ("stump", "finish"),
        *(("interval", name) for name in ("weigh_pairs", "scan_pairs", "pair_up", "finish_pairs")),
    ],
)
def test_a_launch_with_too_little_shared_memory_would_be_noticed(monkeypatch, learner, kernel):
    random = np.random.default_rng(11)
    X = random.normal(size=(600, 32)).astype(np.float32)
    device = OnCpu(threads=3)
    made = columns.prepare(X, None, device)
    launch = device.launch

    def with_less(name: str, *rest: Any, shared: int = 0) -> None:
        launch(name, *rest, shared=shared - 8 * (name == kernel))

    monkeypatch.setattr(device, "launch", with_less)
    with pytest.raises(AssertionError, match=f"{kernel} takes more than"):
        StumpState(made, signs(X[:, 0], random), np.ones(600), Search(learner))


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


@pytest.mark.parametrize("kind", ["discrete", "interval", "newton", "shared real"])
def test_what_a_run_holds_is_what_is_planned(kind):
    """All arrays on the device, beside what sorting takes for a while."""
    X = np.random.default_rng(0).normal(size=(20_000, 7)).astype(np.float32)
    y = signs(X[:, 0], np.random.default_rng(1))
    learner, kind = ("interval", "discrete") if kind == "interval" else ("stump", kind)
    case = Case.of(X, y, X[:, 1] ** 2 + 1).voting(kind)
    search = case.votes_of_run().search(learner)
    made = columns.prepare(X, None, OnCpu(), search=search)
    run = start(made, case.y, case.weights, search)
    held = [run._sweep, run._sweep._steps, run._sweep.histograms, run._search]
    held += [run._sweep._first_weights if kind == "discrete" else run._sweep._units]
    held += [made, made.codes, made.orders]
    arrays = {
        id(value): value.nbytes
        for one in held
        for value in vars(one).values()
        if isinstance(value, np.ndarray)
    }
    n_bytes = sum(arrays.values()) + sum(order.nbytes for order in made.orders._held.values())
    without_codes = device_memory._without_codes(*X.shape, search)
    planned = without_codes + device_memory._of_codes(*X.shape) + 4 * 20_000 * 6
    assert n_bytes > 20_000 * 8 * (2 + search.n_layers)
    assert n_bytes <= planned - device_memory._SORTING_BYTES * 20_000


@pytest.mark.parametrize(("learner", "n_launches"), [("stump", 7), ("interval", 9)])
def test_a_round_is_one_transfer_and_few_launches(learner, n_launches):
    random = np.random.default_rng(10)
    X = random.normal(size=(3000, 5)).astype(np.float32)
    device = OnCpu()
    made = columns.prepare(X, None, device)
    check_level(X, signs(X[:, 0], random), None, [("", made)], n_rounds=1, learner=learner)
    device.launched.clear()
    device.n_transfers = 0
    check_level(X, signs(X[:, 0], random), None, [("", made)], n_rounds=10, learner=learner)
    assert device.n_transfers == 11  # the first sums, and ten rounds
    assert len(device.launched) == 11 * n_launches


@pytest.mark.parametrize("kind", ["real", "newton", "shared newton"])
def test_a_round_of_other_votes_is_one_transfer_and_few_launches(kind):
    random = np.random.default_rng(10)
    X = random.normal(size=(3000, 5)).astype(np.float32)
    device = OnCpu()
    made = columns.prepare(X, None, device)
    case = Case.of(X, signs(X[:, 0], random), n_rounds=6, learning_rate=0.5).voting(kind)
    facts = facts_of(case, "stump")
    device.launched.clear()
    device.n_transfers = 0
    check_facts(facts, ("", made), (case.y, case.weights, case.votes_of_run().search("stump")))
    n_steps = 1 + sum(fact.step is not None for fact in facts)
    assert device.n_transfers <= n_steps + len(facts)  # the sums over other cuts
    n_others = device.launched.count("sum_cuts")
    assert n_others <= len(facts)
    assert len(device.launched) == n_steps * 9 + n_others
