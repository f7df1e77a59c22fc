"""Runs all kernels on small data, several threads a block, for the thread sanitizer to watch.

This is a program of its own because the sanitizer has to be loaded before anything else. Cuts at
edges and inside bins, bins of several pieces, and predictions make it launch every kernel. Blocks
have three threads, so threads share columns of the histograms' table. There are few blocks, so each
has several pieces of work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda_on_cpu import OnCpu
from rounds import KINDS, Case, check_facts, facts_of, signs

from gpustump import arrays
from gpustump.boosting.held_out.judging import LocalJudge
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.data.parameters import Learner
from gpustump.engines.batched_rounds import NEWTON, NEWTON_DOUBT, VoteRule
from gpustump.engines.contract import Beginning
from gpustump.engines.cuda import device, layout, prediction, sorting
from gpustump.engines.cuda import pairs as pair_runs
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.pairs import CudaPairRun
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.objective import Objective
from gpustump.engines.quadrants import Turn
from gpustump.engines.reference.pairs import ArrayPairRun
from gpustump.engines.reference.state import loss_of
from gpustump.engines.threads import Team
from gpustump.learners.split import Split
from gpustump.learners.step_table import StepTable


def main() -> None:
    """Raises AssertionError where a result differs from the reference's."""
    random = np.random.default_rng(0)
    on_cpu = OnCpu(threads=3)
    on_cpu.n_processors = device._BLOCKS_A_PROCESSOR = 1
    pair_runs._SAMPLES_OF_BLOCK = 1000
    X = random.normal(size=(3000, 5)).astype(np.float32)
    X[random.random(X.shape) < 0.1] = np.nan
    table = columns.prepare(X, None, on_cpu)
    check_every_kind(X, signs(np.nan_to_num(X[:, 0]), random), table, n_rounds=2)
    wide = np.round(random.normal(size=(900, 33)), 1)  # a group as wide as a tile, and a narrow one
    check_every_kind(
        wide, signs(wide[:, 0], random), columns.prepare(wide, None, on_cpu), n_rounds=1
    )
    sorting.MOST_BINS = 1  # of several pieces
    table = columns.prepare(X, None, on_cpu)
    check_every_kind(X, signs(np.nan_to_num(X[:, 1]), random), table, n_rounds=1)
    X[:, 3] = np.clip(np.floor(4 * X[:, 3]), -1, 9)  # a feature of categories
    table = columns.prepare(X, None, on_cpu, categorical=(3,))
    y = np.where(X[:, 3] % 3 == 0, 1.0, -1.0)
    check_every_kind(X, y, table, n_rounds=2, categorical=(3,))
    thresholds, votes = np.asarray([0.0, np.inf]), np.asarray([[-1.0, 9.0], [2.0, 8.0]])
    for n_outputs in (1, 2):
        step_table = StepTable(2, thresholds, votes[:, :n_outputs], np.ones(n_outputs))
        found = prediction.scores(X, np.full(n_outputs, 0.25), [step_table], on_cpu)
        assert (found == 0.25 + step_table.look_up(X[:, 2])).all()
    check_cells(X, table, random)
    check_judges(X, on_cpu)
    check_pairs(on_cpu, random)
    used = {"predict_float32", "predict_outputs_float32"}
    unused = {"add_32", "add_16", *device.KERNELS["prediction"]} - used
    kernels = {name for names in device.KERNELS.values() for name in names}
    assert set(on_cpu.launched) == kernels - unused


def check_every_kind(X: np.ndarray, y: np.ndarray, table: columns.CudaTable, **how: Any) -> None:
    """A run with each kind of votes, and with intervals, is level with the reference."""
    runs: list[tuple[str, Learner]] = [
        ("discrete", "interval"),
        *((kind, "stump") for kind in KINDS if kind != "quantile"),
    ]
    for kind, learner in runs:
        case = Case.of(X, y, **how).voting(kind)
        objective = case.votes_of_run().objective(learner)
        check_facts(
            facts_of(case, learner),
            (kind, case.with_sets(table)),
            (case.y, case.weights, objective),
        )


def check_cells(X: np.ndarray, table: columns.CudaTable, random: np.random.Generator) -> None:
    """The integers of a feature's samples are added up in cells, and beyond them one by one."""
    device, keys = table.device, arrays.order_keys(X[:, 0]).astype(np.int64)
    present = keys[~np.isnan(X[:, 0])]
    n, low, high = len(present), int(present.min()), int(present.max()) - 1
    integers = random.integers(-9, 9, size=(1, 1, len(X)))
    bins = np.asarray([[0], [0], [n], [0], [2]])
    ranges = np.asarray([[low, 0], [-1, high], [24, -1], [0, 256]])
    places = np.zeros((5, 256 + n), dtype=np.int64)
    places[1], places[2] = high, low
    cells = layout.record(
        layout.CELL_SUMS, bins=bins.ctypes.data, ranges=ranges.ctypes.data,
        places=places.ctypes.data, integers=integers.ctypes.data, n_bins=1, n_ranges=2,
        n_places=places.shape[1], n_samples=len(X), n_outputs=1, n_kinds=1,
    )  # fmt: skip
    device.launch("add_cells", 2, 3, cells, table.source.record(), table.orders.addresses, n)
    place = np.where(keys < 0, (keys - low) >> 24, 256)
    for at in np.unique(place):
        own = (place == at) & (keys <= high)
        there = places[:, at : at + 1] if at < 256 else places[:, 256 : 256 + own.sum()]
        assert there[0].sum() == own.sum()
        assert (there[3] - there[4]).sum() == integers[0, 0, own].sum()
        assert (there[1].min(), there[2].max()) == (keys[own].min(), keys[own].max())


def check_judges(X: np.ndarray, on_cpu: OnCpu) -> None:
    """Held-out samples are judged as on the host."""
    own = HeldOut(np.arange(len(X)) % 2, IntegerWeights.of(np.ones(len(X))))
    for table in (X, X.astype(np.float64)):
        one, other = (
            LocalJudge(table, None, own, scorer("loss", own), device=device)
            for device in (None, on_cpu)
        )
        for judge in (one, other):
            judge.add(Split(1, 0.5), np.asarray([[1.0], [-1.0], [0.5]]))
        assert one.judged() == other.judged()


def check_pairs(on_cpu: OnCpu, random: np.random.Generator) -> None:
    """Turns of pairs are level with the reference, and end where a vote is in doubt."""
    n, n_bins = 3000, (6, 4, 9)
    bins = np.stack([random.integers(0, own, n) for own in n_bins]).astype(np.uint8)
    labels, units = bins.sum(axis=0, dtype=np.int64) % 3, np.full(n, 2.0**40)
    start = Beginning(np.zeros((3, n)), np.full((3, n), 1 / 3))
    run = CudaPairRun(on_cpu, bins, n_bins, labels, units, "softmax", start)
    objective = Objective.of("newton", 3)
    other = ArrayPairRun(bins, n_bins, loss_of(labels, units, objective, start))
    pairs, all_cuts = np.asarray([[0, 1], [0, 2], [1, 2]]), np.zeros((3, 0, 2), dtype=np.int64)
    rule = VoteRule(NEWTON, 2.0**34, NEWTON_DOUBT, largest_step=2.0)
    steps = Turn.none(3, 3)
    assert (run.scores(pairs, 0.0, Team(1)) == other.scores(pairs, 0.0, Team(1))).all()
    assert run.take_turns(steps, pairs, all_cuts, 0, rule) == 3
    added = run.added(np.zeros((3, n)), bins, pairs, steps)
    assert (added == other.added(np.zeros((3, n)), bins, pairs, steps)).all()
    assert run.take_turns(steps, pairs, all_cuts, 0, rule._replace(doubt=1.0)) == 0
    found = run.cells((0, 2))
    run.advance((0, 2), (1, 1), ((0.5, 0.0, 0.0),) * 4, (((0.5, 0.5),) * 3,) * 4)
    assert abs(run.cells((0, 2)) - found).max() <= n  # all probabilities were halved, so none is


if __name__ == "__main__":
    main()
