"""A run of boosting by pairs on the device, by the kernels of `pairs.cu`; see `engines.quadrants`.

A turn of all pairs is queued as a whole, and one copy brings its steps to the host.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump.arrays import Array
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.layout import LOSSES, record
from gpustump.engines.cuda.update_pass import FirstWeights
from gpustump.engines.objective import LossName
from gpustump.engines.powers import powers
from gpustump.engines.quadrants import N_QUADRANTS, Pair, Place, Turn, first_numbers
from gpustump.engines.threads import Team

_NO_PAIR = -1
"""Instead of a pair's number: samples are changed by the last step, and nothing is added up."""

_MOST_CELLS = 1024

_STEP_WORDS = layout.PAIR_STEP.itemsize // 8

_WORD_BYTES = 2 * 8 * _MOST_CELLS
"""Bytes of shared memory for the sums over the cells of a pair."""

BEST_CUT_BYTES = 16
"""The same for each thread that compares cuts."""

_ROOM_BYTES = 2 * _WORD_BYTES + 8 * _MOST_CELLS + BEST_CUT_BYTES * THREADS
"""The same for sums, running sums, the scores of cuts, and what threads found."""

_SAMPLES_OF_BLOCK = 4096
"""The fewest samples for another block, which adds its cells to those of all. A guess, not measured
yet."""

_BLOCKS_A_PROCESSOR = 3
"""How many blocks of a pass a processor runs at once."""


class CudaPairRun:
    """The samples of one run; see `engines.quadrants.PairRun`.

    Parameters
    ----------
    device : CudaDevice
    bins : array (n_features, n_samples) of uint8
        On the device.
    n_bins : tuple of int
    labels : ndarray (n_samples,)
        As `Engine.start` takes them.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    loss : str
        As `Objective.loss` names it.
    beginning : Beginning
        As `reference.state.loss_of` takes it, in NumPy.
    """

    def __init__(
        self,
        device: CudaDevice,
        bins: Array,
        n_bins: tuple[int, ...],
        labels: np.ndarray,
        units: np.ndarray,
        loss: LossName,
        beginning: Beginning,
    ) -> None:
        self._device, self._n_bins, self._loss = device, n_bins, LOSSES.index(loss)
        numbers = first_numbers(labels, units, loss, beginning)
        self._n_outputs = n_outputs = len(numbers) if loss == "softmax" else 1
        if loss == "logistic":  # a number has the sign of its label
            numbers *= labels
        elif loss == "softmax":
            numbers *= np.where(labels == np.arange(n_outputs)[:, np.newaxis], 1.0, -1.0)
        n_votes, tables = N_QUADRANTS * n_outputs, powers()
        with device.active():
            weights = FirstWeights.of(device.array(units))
            there = {
                "bins": device.xp.ascontiguousarray(device.array(bins)),
                "n_bins": device.array(np.asarray(n_bins, dtype=np.int64)),
                "numbers": device.array(numbers),
                "whole": device.array(tables.whole),
                "parts": device.array(tables.parts),
            }
            self._cells = device.xp.zeros((n_outputs, 2, _MOST_CELLS), dtype=np.int64)
            self._step = device.xp.zeros(_STEP_WORDS + 3 * n_votes, dtype=np.int64)
        self._kept = weights, there  # as long as the kernels read them
        at = {name: device.address(own) for name, own in there.items()}
        self._powers = record(
            layout.POWERS, whole=at["whole"], parts=at["parts"], doubt=tables.doubt
        )
        at_votes = device.address(self._step) + 8 * _STEP_WORDS
        self._motion = record(
            layout.PAIR_MOTION,
            step=device.address(self._step),
            votes=at_votes,
            factors=at_votes + 8 * n_votes,
        )
        own = record(
            layout.LOSS_SAMPLES,
            numbers=at["numbers"],
            fixed=device.address(there["numbers"][-1]),  # read under Poisson and gamma loss only
            scores=0,
            first_weights=0 if weights.differing is None else device.address(weights.differing),
            equal_weight=weights.equal,
            sums=0,
            layers=np.zeros(1, dtype=layout.LAYERS)[0],
            n_samples=len(units),
            n_outputs=n_outputs,
            loss=self._loss,
        )
        self._record = record(layout.PAIR_SAMPLES, bins=at["bins"], n_bins=at["n_bins"], own=own[0])
        n_blocks = -(-len(units) // _SAMPLES_OF_BLOCK)
        self._n_blocks = max(1, min(n_blocks, _BLOCKS_A_PROCESSOR * device.n_processors))
        self._turns: _Turns | None = None
        self._one = _Turns(device, 1, 0, self._cells)

    def cells(self, pair: Pair) -> np.ndarray:
        """The sums over a pair's cells."""
        with self._device.active():
            self._one.begin(np.asarray([pair]), np.zeros((1, 0, 2), dtype=np.int64))
            self._step[...] = 0
            self._pass(self._one, 0)
            found = self._device.sent(self._cells)()
            self._cells[...] = 0
        n_rows, n_columns = (self._n_bins[j] for j in pair)
        return found[..., : n_rows * n_columns].reshape(-1, 2, n_rows, n_columns)

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        """The score of each pair's best cut; see `PairRun`."""
        device = self._device
        if not len(pairs):
            return np.zeros(0)
        with device.active():
            given = device.array(np.ascontiguousarray(pairs))
            found = device.xp.zeros(len(pairs), dtype=np.float64)
            device.launch(
                "score_pairs", min(len(pairs), _BLOCKS_A_PROCESSOR * device.n_processors), THREADS,
                self._record, given, len(pairs), float(l2), found, shared=_ROOM_BYTES,
            )  # fmt: skip
            return device.sent(found)()

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what the regions of a cut vote."""
        numbers = np.ravel(votes), np.ravel(factors)
        step = np.concatenate([np.asarray(pair + place), *(own.view(np.int64) for own in numbers)])
        with self._device.active():
            self._step[: len(step)] = self._device.array(step)
            self._pass(self._one, _NO_PAIR)

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """Make the steps of the pairs from number `at` on; see `PairRun`."""
        turns = self._room_for(len(pairs), candidates.shape[1])
        with self._device.active():
            turns.begin(pairs, candidates)
            self._step[...] = 0  # all samples have the last step
            if at > 0:
                self._queue(turns, at, rule)
            elif rule in turns.again:
                turns.again[rule]()
            else:
                self._queue(turns, 0, rule)
                turns.again[rule] = self._device.recorded(lambda: self._queue(turns, 0, rule))
            return turns.end(steps, at)

    def added(self, scores: Array, bins: Array, pairs: np.ndarray, steps: Turn) -> Array:
        """The scores of other samples, after the steps of a turn."""
        device, turns = self._device, self._room_for(len(pairs), 0)
        with device.active():
            turns.write(pairs, steps)
            device.launch(
                "vote_by_pairs", blocks_for(bins.shape[1], device), THREADS, bins, bins.shape[1],
                turns.record, len(pairs), self._n_outputs, scores,
            )  # fmt: skip
            device.waiter()()  # until then the device reads what is written for the next turn
        return scores

    def _room_for(self, n_pairs: int, n_candidates: int) -> _Turns:
        """Where turns of so many pairs, with so many candidates, have their room."""
        turns = self._turns
        if turns is None or n_pairs != turns.n_pairs or n_candidates > turns.n_candidates:
            turns = self._turns = _Turns(self._device, n_pairs, n_candidates, self._cells)
        return turns

    def _queue(self, turns: _Turns, at: int, rule: VoteRule) -> None:
        """Queue the steps of the pairs from number `at` on."""
        scale, doubt, l2, largest_step = rule.scale, rule.doubt, rule.l2, rule.largest_step
        given = record(
            layout.VOTE_RULE,
            scale=scale, doubt=doubt, l2=l2, largest_step=largest_step, loss=self._loss,
        )  # fmt: skip
        for number in range(at, turns.n_pairs):
            self._pass(turns, number)
            self._device.launch(
                "decide_pair", 1, THREADS, self._record, given, self._powers, self._motion,
                turns.record, number, shared=_ROOM_BYTES,
            )  # fmt: skip
        self._pass(turns, _NO_PAIR)

    def _pass(self, turns: _Turns, number: int) -> None:
        self._device.launch(
            "pass_pairs", self._n_blocks, THREADS, self._record, self._motion, turns.record, number,
            shared=_WORD_BYTES,
        )  # fmt: skip


class _Turns:
    """Where turns of pairs are on the device: what is given, and the steps that are made.

    Parameters
    ----------
    device : CudaDevice
    n_pairs : int
    n_candidates : int
        The most cuts that a pair is offered.
    cells : array (n_outputs, 2, _MOST_CELLS) of int64

    Attributes
    ----------
    record : ndarray (1,) of layout.PAIR_TURN
    n_pairs, n_candidates : int
    again : dict of VoteRule to callable
        Queues a whole turn, once it is recorded.
    """

    def __init__(self, device: CudaDevice, n_pairs: int, n_candidates: int, cells: Array) -> None:
        self._device, self.n_pairs, self.n_candidates = device, n_pairs, n_candidates
        self._n_places = 2 * n_pairs
        self.again: dict[VoteRule, Callable[[], None]] = {}
        n_given = 1 + self._n_places * (1 + n_candidates)
        n_made = 1 + self._n_places + n_pairs * N_QUADRANTS * len(cells)
        self._given = device.pinned(8 * n_given).view(np.int64)
        self._made = device.pinned(8 * n_made).view(np.int64)
        with device.active():
            self._on_device = device.xp.zeros(n_given, dtype=np.int64)
            self._steps = device.xp.zeros(n_made, dtype=np.int64)
        self._given[:] = 0
        given, made = device.address(self._on_device), device.address(self._steps)
        self.record = record(
            layout.PAIR_TURN,
            n_candidates=given,
            pairs=given + 8,
            candidates=given + 8 * (1 + self._n_places),
            n_made=made,
            places=made + 8,
            votes=made + 8 * (1 + self._n_places),
            cells=device.address(cells),
        )

    def begin(self, pairs: np.ndarray, candidates: np.ndarray) -> None:
        """Queue the copies of what a turn is given: pairs (n_pairs, 2), and the candidates of each,
        (n_pairs, n_candidates, 2)."""
        given = np.concatenate([[candidates.shape[1]], pairs.ravel(), candidates.ravel()])
        self._given[: len(given)] = given
        self._device.upload(self._given, self._on_device)
        self._made[:] = 0
        self._made[0] = self.n_pairs
        self._device.upload(self._made, self._steps)

    def write(self, pairs: np.ndarray, steps: Turn) -> None:
        """Queue the copies of pairs, and of steps that were made."""
        self._given[1 : 1 + self._n_places] = pairs.ravel()
        self._device.upload(self._given, self._on_device)
        self._made[1:] = np.concatenate([steps.places.ravel(), steps.votes.ravel().view(np.int64)])
        self._device.upload(self._made, self._steps)

    def end(self, steps: Turn, at: int) -> int:
        """Wait for the steps from number `at` on. Returns the number of the first that is not made,
        and writes those before it to `steps`."""
        self._device.download(self._steps, self._made)
        self._device.waiter()()
        n_made, own = int(self._made[0]), slice(at, int(self._made[0]))
        places, votes = np.split(self._made[1:], [self._n_places])
        steps.places[own] = places.reshape(-1, 2)[own]
        steps.votes[own] = votes.view(np.float64).reshape(steps.votes.shape)[own]
        return n_made
