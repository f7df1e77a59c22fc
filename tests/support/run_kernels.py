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

from gpustump.data.parameters import Learner
from gpustump.engines.cuda import device, prediction, sorting
from gpustump.engines.cuda import table as columns
from gpustump.learners.step_table import StepTable


def main() -> None:
    """Raises AssertionError where a result differs from the reference's."""
    random = np.random.default_rng(0)
    on_cpu = OnCpu(threads=3)
    on_cpu.n_processors = device._BLOCKS_A_PROCESSOR = 1
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
    used = {"predict_float32", "predict_outputs_float32"}
    unused = {"add_32", "add_16", "add_8", *device.KERNELS["prediction"]} - used
    kernels = {name for names in device.KERNELS.values() for name in names}
    assert set(on_cpu.launched) == kernels - unused


def check_every_kind(X: np.ndarray, y: np.ndarray, table: columns.CudaTable, **how: Any) -> None:
    """A run with each kind of votes, and with intervals, is level with the reference."""
    runs: list[tuple[str, Learner]] = [
        ("discrete", "interval"),
        *((kind, "stump") for kind in KINDS),
    ]
    for kind, learner in runs:
        case = Case.of(X, y, **how).voting(kind)
        objective = case.votes_of_run().objective(learner)
        check_facts(
            facts_of(case, learner),
            (kind, case.with_sets(table)),
            (case.y, case.weights, objective),
        )


if __name__ == "__main__":
    main()
