"""What only the CUDA engine has: launches, shared memory, groups, what it holds on the device.

The kernels are the same `.cu` files, built by the C++ compiler and run on the CPU block by block,
with several threads a block; see `cuda_on_cpu`.
"""

from __future__ import annotations

import ctypes
import re
import sys

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from engine_ways import cuda, learner_of
from hard_cases import WITH_SIGNS, voting
from rounds import Case, check_facts, facts_of, signs, start

from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.engines.contract import Resources, Task
from gpustump.engines.cuda import (
    device,
    device_memory,
    layout,
    pairs,
)
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.codes import ResidentCodes, StreamedCodes
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.route import Choice, Route
from gpustump.learners.pair_table import MOST_BINS
from gpustump.learners.split import Split

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def test_the_ways_are_what_they_say():
    X = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    made = dict(cuda(X, None))
    assert isinstance(made["streamed"].codes, StreamedCodes)
    assert made["streamed in blocks"].codes._size == 1024
    assert made["host table"].source.on_device is None
    assert isinstance(made["one order at a time"].codes, ResidentCodes)
    assert np.count_nonzero(made["one order at a time"].orders.addresses) == 1
    assert np.count_nonzero(made["three threads"].orders.addresses) == 6
    assert made["one bin, small pieces"].bins.features["n_bins"].tolist() == [1] * 6
    assert made["three bins"].bins.features["n_bins"].tolist() == [3] * 6
    assert layout.column_bits(made["little shared memory"].device) == 4


def test_python_and_the_kernels_agree_on_sizes_and_constants():
    assert cuda_on_cpu.numbers() == cuda_on_cpu.AGREED
    assert MOST_BINS**2 == pairs._MOST_CELLS
    bounds = re.findall(r"__launch_bounds__\((\d+)\)", device.source("codes"))
    assert list(map(int, bounds)) == [device.THREADS, OnCpu().most_threads]
    assert {"add_32", "add_16"} <= set(device.KERNELS["update_pass"])


@pytest.mark.parametrize("kind", ["discrete", "interval", "newton", "shared real"])
def test_what_a_run_holds_is_what_is_planned(kind):
    """All arrays on the device, beside what sorting takes for a while."""
    X = np.random.default_rng(0).normal(size=(20_000, 7)).astype(np.float32)
    y = signs(X[:, 0], np.random.default_rng(1))
    case = voting(Case.of(X, y, X[:, 1] ** 2 + 1), kind)
    objective = case.votes_of_run().objective(learner_of(kind))
    made = columns.prepare(X, None, OnCpu(), objective=objective)
    run = start(made, case.y, case.weights, objective)
    held = [run._update, run._update._steps, run._update.histograms, run._search]
    held += [run._update._units, made, made.codes, made.orders]
    arrays = {
        id(value): value.nbytes
        for one in held
        for value in vars(one).values()
        if isinstance(value, np.ndarray)
    }
    n_bytes = sum(arrays.values()) + sum(order.nbytes for order in made.orders._held.values())
    without_codes = device_memory._without_codes(*X.shape, objective)
    planned = without_codes + device_memory._of_codes(*X.shape) + 4 * 20_000 * 6
    assert n_bytes > 20_000 * 8 * (2 + objective.n_layers)
    assert n_bytes <= planned - device_memory._SORTING_BYTES * 20_000


@pytest.mark.parametrize(
    ("kind", "n_launches"),
    [("discrete", 7), ("interval", 9), ("real", 9), ("newton", 9), ("shared newton", 9)],
)
def test_a_round_is_one_transfer_and_few_launches(kind, n_launches):
    random = np.random.default_rng(10)
    X = random.normal(size=(3000, 5)).astype(np.float32)
    device, learner = OnCpu(), learner_of(kind)
    made = columns.prepare(X, None, device)
    case = Case.of(X, signs(X[:, 0], random), n_rounds=6, learning_rate=0.5)
    case = voting(case, kind)
    facts = facts_of(case, learner)
    run = (case.y, case.weights, case.votes_of_run().objective(learner))
    check_facts(facts[:1], ("", made), run)  # sorts what rounds need
    device.launched.clear()
    device.n_transfers = 0
    check_facts(facts, ("", made), run)
    n_steps = 1 + sum(fact.step is not None for fact in facts)
    n_others = device.launched.count("sum_cuts")
    assert n_others <= len(facts)
    assert device.n_transfers <= n_steps + (0 if kind in WITH_SIGNS else len(facts))
    assert len(device.launched) == n_steps * n_launches + n_others


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1000.0, 0.5, np.inf])
def test_what_is_no_number_of_a_category_is_refused_without_another_word(value):
    X = np.asarray([[0.0, 0.0], [0.0, value], [0.0, np.nan]])
    task, engine = Task(X, 3, categorical=(1,)), CudaEngine(OnCpu())
    choice = Choice(Route("cuda:0", "cuda", "", ""), engine, task, Resources())
    with pytest.raises(ValueError, match="categorical feature 1 must hold"):
        choice.prepare()


def test_numbers_of_categories_that_no_byte_holds_are_left_to_other_engines():
    X, engine = np.asarray([[255.0, 254.0], [np.nan, 0.0]]), CudaEngine(OnCpu())
    assert engine.refusal(Task(X, 2, categorical=(1,))) is None
    assert "numbers above 254" in str(engine.refusal(Task(X, 2, categorical=(0, 1))))


def test_of_equal_scores_the_first_class_counts_where_a_device_judges():
    own = HeldOut(np.arange(90) % 3, IntegerWeights.of(np.arange(1.0, 91.0)), 3)
    X, score = np.arange(90.0)[:, np.newaxis], scorer("neg_log_loss", own, "softmax")
    found = []
    for judging_on in (None, OnCpu()):
        judge = LocalJudge(X, None, own, score, np.zeros((90, 3)), device=judging_on)
        judge.add(Split(0, 44.5), np.asarray([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        found.append(judge.judged())
    assert found[0] == found[1]


STAND_IN = """
extern __shared__ __align__(16) unsigned char shared[];

// One thread waits for others that never come.
__global__ void waits_alone(long long* found) { if (threadIdx.x == found[0]) __syncthreads(); }

// Writes a byte at an offset into shared memory.
__global__ void writes(long long* found) { shared[found[0]] ^= 1; }

// Each thread adds a digit, its number: they say in which order the threads came.
__global__ void comes(long long* found) {
  for (int i = 0; i < 20; i++) {
    found[i] = found[i] * 10 + threadIdx.x + 1;
    __syncthreads();
  }
}

// Two copies of what is left in shared memory.
__global__ void looks(long long* found) { std::memcpy(found, shared, 64); }
"""


def test_the_stand_in_notices_what_kernels_must_not_do():
    kernels = ("waits_alone", "writes", "comes", "looks")
    device = OnCpu(threads=3)
    program = cuda_on_cpu.program(STAND_IN, kernels)
    device._library = ctypes.CDLL(str(cuda_on_cpu.compiled(program)))
    device.launch("writes", 2, 1, np.array([63]), shared=64)
    with pytest.raises(AssertionError, match="writes takes more than 64 bytes of shared memory"):
        device.launch("writes", 2, 1, np.array([64]), shared=64)
    seen = np.zeros((4, 8), dtype=np.int64)
    for found in seen:
        device.launch("looks", 1, 1, found, shared=64)
    assert len(np.unique(seen)) == seen.size  # other noise in every launch
    if sys.platform != "linux":
        return  # elsewhere the threads are those of the operating system
    for thread in range(3):
        with pytest.raises(AssertionError, match="waits_alone has a barrier at which only some"):
            device.launch("waits_alone", 1, 3, np.array([thread]))
        device.launch("waits_alone", 1, 3, np.array([3]))  # none waits, and the device still works
    comes = np.zeros(20, dtype=np.int64)
    device.launch("comes", 1, 3, comes)
    orders = set(comes.tolist())
    assert orders <= {123, 132, 213, 231, 312, 321}
    assert len(orders) >= 4
