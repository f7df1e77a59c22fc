"""A run of boosting by pairs in kernels; see `engines.quadrants`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from gpustump.engines.batched_rounds import NEWTON, VoteRule
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes
from gpustump.engines.cpu.pairs import STAGE_OF
from gpustump.engines.cpu.pairs.cells import Motion, PairRoom, PairSamples
from gpustump.engines.cpu.pairs.turns import CHUNK, add_steps
from gpustump.engines.objective import LossName
from gpustump.engines.powers import powers
from gpustump.engines.quadrants import N_QUADRANTS, Pair, Place, Turn, first_numbers
from gpustump.engines.threads import Team, ranges

_PAIRS_AT_ONCE = 64
"""How many pairs a thread scores at a time."""


class KernelPairRun:
    """The samples of one run; see `engines.quadrants.PairRun`.

    Parameters
    ----------
    bins : ndarray (n_features, n_samples) of uint8
    n_bins : tuple of int
    labels : ndarray (n_samples,)
        As `Engine.start` takes them.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    loss : str
        As `Objective.loss` names it.
    beginning : Beginning
        As `reference.state.loss_of` takes it.
    """

    def __init__(
        self,
        bins: np.ndarray,
        n_bins: tuple[int, ...],
        labels: np.ndarray,
        units: np.ndarray,
        loss: LossName,
        beginning: Beginning,
    ) -> None:
        module = importlib.import_module(f"gpustump.engines.cpu.{STAGE_OF[loss]}")
        self._take_turns: Callable[..., int] = module.take_turns
        numbers = first_numbers(labels, units, loss, beginning)
        classes = np.zeros(0, dtype=np.int64)
        if loss in ("logistic", "softmax"):
            classes = labels.astype(np.int64)
        self._n_outputs = len(numbers) if loss == "softmax" else 1
        self._samples = PairSamples(
            np.require(bins, requirements=("C", "W")),  # JAX lends arrays that are read-only
            np.asarray(n_bins, dtype=np.int64),
            numbers,
            classes,
            units,
            -1 if loss == "gamma" else 1,
        )

    def cells(self, pair: Pair) -> np.ndarray:
        """The sums over a pair's cells."""
        n_rows, n_columns = (self._samples.n_bins[j] for j in pair)
        _, _, cells = self._turn(np.asarray([pair]), _no_votes())
        running = cells[:n_rows, :, :n_columns].transpose(1, 0, 2)
        found = np.diff(np.diff(running, axis=1, prepend=0), axis=2, prepend=0)
        return found.reshape(-1, 2, n_rows, n_columns)

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        """The score of each pair's best cut; see `PairRun`."""
        found = np.empty(len(pairs))

        def score(part: tuple[int, int]) -> None:
            own = slice(*part)
            _, found[own], _ = self._turn(pairs[own], _no_votes(l2))

        team.each(score, ranges(len(pairs), _PAIRS_AT_ONCE))
        return found

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what the regions of a cut vote."""
        motion = self._motion(pair, place)
        motion.votes[:] = votes
        if len(factors):
            motion.factors[:] = factors
        self._turn(np.empty((0, 2), dtype=np.int64), _no_votes(), motion=motion)

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """Make the steps of the pairs from number `at` on; see `PairRun`."""
        end, _, _ = self._turn(pairs, rule, at, steps=steps, candidates=candidates)
        return end

    def _turn(
        self,
        pairs: np.ndarray,
        rule: VoteRule,
        at: int = 0,
        *,
        motion: Motion | None = None,
        steps: Turn | None = None,
        candidates: np.ndarray | None = None,
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Take a turn, after a motion.

        Returns the first pair whose step is not made, the scores of the best cuts, and the running
        sums over the cells of the last pair.
        """
        n, room = len(pairs), self._room()
        scores, cuts = np.empty(n), np.empty((n, 0, 2), dtype=np.int64)
        given = self._samples, motion or self._motion(), room
        of_pairs = pairs, cuts if candidates is None else candidates, at, rule, powers()
        steps = steps or Turn.none(n, self._n_outputs)
        return int(self._take_turns(*given, *of_pairs, *steps, scores)), scores, room.cells

    def added(
        self, scores: np.ndarray, bins: np.ndarray, pairs: np.ndarray, steps: Turn
    ) -> np.ndarray:
        """The scores of other samples, after the steps of a turn."""
        add_steps(bins, pairs, *steps, scores)
        return scores

    def _motion(self, pair: Pair = (0, 0), place: Place = (0, 0)) -> Motion:
        return Motion(
            np.asarray(pair, dtype=np.int64),
            np.asarray(place, dtype=np.int64),
            np.zeros((N_QUADRANTS, self._n_outputs)),
            np.ones((N_QUADRANTS, self._n_outputs, 2)),
        )

    def _room(self) -> PairRoom:
        most, n_outputs = int(self._samples.n_bins.max()), self._n_outputs
        cells = np.empty((most, 2 * n_outputs, most), dtype=np.int64)
        return PairRoom(
            cells,
            cells.reshape(-1),
            np.empty(CHUNK, dtype=np.uint32),
            np.empty(most),
            np.empty((N_QUADRANTS, n_outputs, 2), dtype=np.int64),
            np.empty(CHUNK, dtype=np.uint8),
            *np.empty((2, n_outputs, CHUNK), dtype=np.int64),
        )


def _no_votes(l2: float = 0.0) -> VoteRule:
    """The rule of a turn in which no pair votes."""
    return VoteRule(NEWTON, 0.0, 0.0, l2)
