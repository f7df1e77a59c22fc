"""Starts a run of boosting by pairs of features, by the fastest engine available.

Where CUDA kernels learnt the main effects, they learn pairs, too, if the device has room for the
bins. Otherwise pairs are learnt on the host: bins are bytes, so sending them there costs little
beside the steps. Without Numba the array reference makes the steps, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes, Task
from gpustump.engines.cpu.engine import KERNELS
from gpustump.engines.cpu.pairs import STAGE_OF
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import LossName, Objective
from gpustump.engines.prediction import cpu_kernels_take, device_for
from gpustump.engines.quadrants import Pair, PairRun, Place, Turn
from gpustump.engines.reference.pairs import ArrayPairRun
from gpustump.engines.reference.state import loss_of
from gpustump.engines.route import Route, asked_for, device_of_route, have_scan_compiled
from gpustump.engines.threads import Team

_MANY_SAMPLES = 2**16
"""Two threads were measured to take 1.7 of one's time at 500 samples, 1.1 at 32 000 and 0.7 at
128 000."""

_MANY_ELEMENTS = 2**15
"""On smaller tables the reference learns main effects while the kernels of pairs are compiled."""

_COPIES = 4
"""A device has room if so many times that memory is free: for the bins of all samples, those of a
bag and of its held-out samples, and for what is needed for a while."""

_STEP_SECONDS, _SAMPLE_SECONDS = 2e-4, 2e-8
"""About how long the reference takes for an output of a pair's step, and for each sample in it."""


def mover_to_runs(X: Array, route: Route, n_bytes: int) -> Callable[[Array], Array]:
    """A function that moves arrays to where runs of pairs are made.

    Parameters
    ----------
    X : array (n_samples, n_features)
        The table.
    route : Route
        Where the main effects were learnt.
    n_bytes : int
        How much memory the bins take, and what a run keeps of the samples.
    """
    device = device_of_route(route, X)
    if device is None or device.free_bytes() < _COPIES * n_bytes:
        return arrays.to_host

    def moved(own: Array) -> Array:
        with device.active():
            return device.array(own)

    return moved


def pair_run(
    bins: Array,
    n_bins: tuple[int, ...],
    labels: np.ndarray,
    sample_weight: np.ndarray,
    objective: Objective,
    beginning: Beginning,
    n_steps: int,
) -> PairRun:
    """Begin a run from known scores.

    Parameters
    ----------
    bins : array (n_features, n_samples) of uint8
        The samples' bins of some features, where `mover_to_runs` wants them.
    n_bins : tuple (n_features,) of int
        How many bins there are, that of missing values included.
    labels, sample_weight : ndarray (n_samples,)
        As for `contract.Engine.start`.
    objective : Objective
        For Newton votes.
    beginning : Beginning
    n_steps : int
        About how many steps of pairs it makes, or how many pairs it scores.
    """
    stage, units = STAGE_OF[objective.loss], in_units(sample_weight, objective.n_copies)
    device = device_for(bins)
    if device is not None:
        from gpustump.engines.cuda.pairs import CudaPairRun

        return CudaPairRun(device, bins, n_bins, labels, units, objective.loss, beginning)
    n_parts = n_steps * objective.n_outputs
    seconds = n_parts * (_STEP_SECONDS + len(labels) * _SAMPLE_SECONDS)

    def by_kernels() -> PairRun:
        from gpustump.engines.cpu.pairs.run import KernelPairRun

        return KernelPairRun(bins, n_bins, labels, units, objective.loss, beginning)

    if cpu_kernels_take(bins, seconds, stage):
        return by_kernels()
    run = ArrayPairRun(bins, n_bins, loss_of(labels, units, objective, beginning))
    return HandoverPairRun(run, stage, by_kernels) if KERNELS.are_coming(stage) else run


def gain_from_threads(loss: LossName, bins: Array) -> bool:
    """Whether runs gain from threads: by the CPU's kernels, and on large arrays.

    On smaller ones the threads wait for Python's lock longer than they compute.
    """
    if device_for(bins) is not None:
        return False
    return KERNELS.are_loaded(STAGE_OF[loss]) or bins.shape[1] >= _MANY_SAMPLES


def have_compiled(task: Task) -> None:
    """Have the kernels of pairs compiled by another process, as pairs of a table come soon.

    On large tables the kernels for main effects come first.
    """
    if asked_for() == "auto" and KERNELS.refusal(task.X) is None:
        if task.n_elements >= _MANY_ELEMENTS:
            have_scan_compiled(task)
        KERNELS.have_compiled(STAGE_OF[task.objective.loss])


class HandoverPairRun:
    """A run that begins on arrays and goes on by kernels when they are ready; see `handover`.

    Parameters
    ----------
    run : ArrayPairRun
    stage : str
        The CPU engine's file with the kernels.
    by_kernels : callable
        Begins the same run by kernels.
    """

    def __init__(self, run: ArrayPairRun, stage: str, by_kernels: Callable[[], PairRun]) -> None:
        self._run: PairRun = run
        self._stage = stage
        self._by_kernels: Callable[[], PairRun] | None = by_kernels
        self._steps: list[tuple[Pair, Place, RegionVotes, RegionFactors]] = []

    def cells(self, pair: Pair) -> np.ndarray:
        return self._run.cells(pair)

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        return self._run.scores(pairs, l2, team)

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        self._run.advance(pair, place, votes, factors)
        if self._by_kernels is not None:
            self._steps.append((pair, place, votes, factors))

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """By kernels as soon as they are ready: they take the steps so far first."""
        if at == 0 and self._by_kernels is not None and KERNELS.load(self._stage, waits=False):
            run = self._by_kernels()
            for step in self._steps:
                run.advance(*step)
            self._run, self._by_kernels, self._steps = run, None, []
        return self._run.take_turns(steps, pairs, candidates, at, rule)

    def added(self, scores: Array, bins: Array, pairs: np.ndarray, steps: Turn) -> Array:
        return self._run.added(scores, bins, pairs, steps)
