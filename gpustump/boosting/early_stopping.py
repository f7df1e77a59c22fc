"""Early stopping: end a run when the score of held-out samples no longer rises.

A judge (`judging`) works out the scores, from integers: they are the same numbers on every device,
and so is the round at which a run stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.boosting.judging import Judge
from gpustump.boosting.votes import AnyRound, Vote
from gpustump.data.parameters import Scoring
from gpustump.learners.hypothesis import signs


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    Attributes
    ----------
    patience : int
        Stop after this many rounds in a row without a new best score.
    tol : float
        By how much a score must be above the best one to count as new; not negative.
    scoring : str
        Which score of the held-out samples.
    """

    patience: int
    tol: float = 0.0
    scoring: Scoring = "loss"


class EarlyStopping:
    """A callback for `boost` that watches held-out samples.

    Parameters
    ----------
    judge : Judge
        Judges the model by the held-out samples. It has not been given a hypothesis yet.
    stopping : Stopping
        When to stop; which score it is, the judge knows.

    Attributes
    ----------
    scores : list of float
        The score of the held-out samples after each round; greater is better.
    errors : list of float
        Their error after each round.
    best_round : int
        The number of the first round of the greatest score.
    """

    def __init__(self, judge: Judge, stopping: Stopping) -> None:
        self.scores: list[float] = []
        self.errors: list[float] = []
        self.best_round = 0
        self._best_score = float("-inf")
        self._stopping = stopping
        self._n_rounds = 0
        self._judge = judge

    def __call__(self, record: AnyRound) -> bool:
        self._count(record.stump, record.vote)
        score, error = self._judge.judged()
        self.scores.append(score)
        self.errors.append(error)
        if score > self._best_score + self._stopping.tol:
            self._best_score, self.best_round = score, self._n_rounds
        return self._n_rounds - self.best_round >= self._stopping.patience

    def resume(self, hypotheses: Sequence[Any], votes: Sequence[Vote]) -> None:
        """Take over the rounds of an earlier run, which were kept and are not judged again."""
        for hypothesis, vote in zip(hypotheses, votes, strict=True):
            self._count(hypothesis, vote)
        if hypotheses:
            self.best_round, self._best_score = self._n_rounds, self._judge.judged().score

    def _count(self, hypothesis: Any, vote: Vote) -> None:
        self._judge.add(hypothesis, _of_regions(hypothesis, vote))
        self._n_rounds += 1


def _of_regions(hypothesis: Any, vote: Vote) -> np.ndarray:
    """What the regions vote, (n_regions, n_outputs)."""
    if isinstance(vote, tuple):
        return np.asarray(vote, dtype=np.float64)
    return np.asarray([[sign * vote] for sign in signs(hypothesis)])
