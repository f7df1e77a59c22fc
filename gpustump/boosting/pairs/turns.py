"""Boosting by pairs: the pairs of a run take turns, and each adds its best cut into quadrants.

A run starts from the scores of the main effects. In a turn every pair adds one step, a Newton step
of the loss in each of four regions (`engines.quadrants`), shrunk by the learning rate. After a turn
the held-out samples are scored; the run keeps the turns up to the best score, perhaps none.

In the first turns, the smoothing turns, a pair chooses among a few cuts at random places, so that
its table has many small steps before the best cuts correct it; see
`boosting.rounds.smoothing`. What is drawn follows from the numbers of bag, run and turn, and from
the values of both features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpustump.boosting.rounds.smoothing import mixed
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.engines.contract import Totals
from gpustump.engines.quadrants import N_QUADRANTS, PairRun, Turn, best_quadrants
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

N_CANDIDATES = 5
"""How many cuts a pair is offered in a smoothing turn."""

PATIENCE = 10
"""After how many turns without a new best score of held-out samples a run ends."""

NO_TOTALS = Totals(0, 0, 0, 0, 0)
"""Newton votes depend on the sums over a region alone."""


@dataclass(frozen=True)
class PairCandidates:
    """The cuts that the smoothing turns of a run offer.

    Attributes
    ----------
    n_turns : int
        The number of smoothing turns.
    key : int
        A number for the bag and the run.
    keys : ndarray (n_pairs, 2) of uint64
        A number for each feature of each pair, which follows from its values.
    n_places : ndarray (n_pairs, 2) of int64
        In how many places each feature can be cut.
    """

    n_turns: int
    key: np.uint64
    keys: np.ndarray
    n_places: np.ndarray

    def at(self, turn: int) -> np.ndarray:
        """The cuts of each pair in a turn, (n_pairs, n_candidates, 2) of int64; none later on."""
        n_candidates = N_CANDIDATES if turn < self.n_turns else 0
        draws = np.arange(n_candidates, dtype=np.uint64) + np.uint64(turn * N_CANDIDATES)
        of_pairs = mixed(self.keys.sum(axis=1) + self.key)  # the same for both orders of a pair
        bits = mixed(
            mixed(of_pairs[:, np.newaxis] + draws)[..., np.newaxis] ^ self.keys[:, np.newaxis]
        )
        places = (bits >> np.uint64(32)) * self.n_places[:, np.newaxis].astype(np.uint64)
        return np.ascontiguousarray((places >> np.uint64(32)).astype(np.int64) + 1)


@dataclass
class Turns:
    """A run of boosting by pairs.

    Parameters
    ----------
    run : PairRun
    pairs : ndarray (n_pairs, 2) of int64
    rule : NewtonVotes
    candidates : PairCandidates
    """

    run: PairRun
    pairs: np.ndarray
    rule: NewtonVotes
    candidates: PairCandidates

    def turn(self, number: int) -> Turn:
        """Make one step of each pair."""
        steps = Turn.none(len(self.pairs), self.rule.n_outputs)
        candidates = self.candidates.at(number)
        at = self.run.take_turns(steps, self.pairs, candidates, 0, self.rule.plain)
        while at < len(self.pairs):
            self._step(steps, candidates[at], at)
            at = self.run.take_turns(steps, self.pairs, candidates, at + 1, self.rule.plain)
        return steps

    def made(
        self,
        most: int,
        largest: float,
        judge: Callable[[Turn | None], float] | None = None,
        tol: float = 0.0,
    ) -> list[Turn]:
        """Make turns, and return those that are kept.

        Parameters
        ----------
        most : int
            The most turns.
        largest : float
            The largest score before the first turn, in absolute value.
        judge : callable, optional
            Adds steps to the held-out samples, and returns their score; without steps it returns
            the score before the first turn. None if no samples are held out.
        tol : float
            By how much a score must be above the best one to count as new.
        """
        found: list[Turn] = []
        n_kept, size = 0, largest
        best = -math.inf if judge is None else judge(None)
        while len(found) < most:
            steps = self.turn(len(found))
            size += float(np.abs(steps.votes).max(axis=(1, 2)).sum())
            is_over = not steps.places.any() and len(found) >= self.candidates.n_turns
            if is_over or size > VOTES_LIMIT:
                break
            found.append(steps)
            if judge is None:
                n_kept = len(found)
                continue
            score = judge(steps)
            if score > best + tol:
                best, n_kept = score, len(found)
            elif len(found) - max(n_kept, self.candidates.n_turns) >= PATIENCE:
                break
        return found[:n_kept]

    def _step(self, steps: Turn, candidates: np.ndarray, at: int) -> None:
        """Make the step of one pair, with as many digits as it takes."""
        j, k = self.pairs[at].tolist()
        found = best_quadrants(self.run.cells((j, k)), self.rule.objective().l2, candidates)
        votes = self.rule.votes_of(found.sums.tolist(), NO_TOTALS)
        if any(vote for own in votes for vote in own):
            self.run.advance((j, k), found.place, votes, self.rule.factors(votes))
            steps.places[at], steps.votes[at] = found.place, votes


def added_up(turns: list[Turn], shapes: list[tuple[int, int]], n_outputs: int) -> list[np.ndarray]:
    """The table of each pair, (k, m, n_outputs) of float64: the sum of its steps."""
    tables = []
    for pair, shape in enumerate(shapes):
        a, b = np.asarray([steps.places[pair] for steps in turns], np.int64).reshape(-1, 2).T
        votes = np.asarray([steps.votes[pair] for steps in turns]).reshape(
            -1, N_QUADRANTS, n_outputs
        )
        units = np.rint(votes / VOTE_UNIT).astype(np.int64)
        both, first, second, rest = units.swapaxes(0, 1)
        # By how much the table rises in a cell, beside those before it along both axes.
        rises = np.zeros((*shape, n_outputs), dtype=np.int64)
        rises[0, 0] = both.sum(axis=0)
        np.add.at(rises[0], b, first - both)
        np.add.at(rises[:, 0], a, second - both)
        np.add.at(rises, (a, b), both - first - second + rest)
        tables.append(rises.cumsum(axis=0).cumsum(axis=1) * VOTE_UNIT)
    return tables
