"""Early stopping: end a run when the score of held-out samples no longer rises.

The scores are computed from integers (`held_out_scores`): they are the same numbers on every
device, and so is the round at which a run stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.arrays import Array
from gpustump.boosting.held_out_scores import Watched, scorer
from gpustump.boosting.votes import AnyRound, Vote
from gpustump.data.parameters import Link, Scoring
from gpustump.engines.running_scores import running_scores
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
    X : array (n_samples_given, n_features)
        The whole table, of which no copy is made.
    rows : array (n_held_out,) of int, or None
        The rows of X to watch; None for all.
    held_out : Watched
        Their labels and weights.
    stopping : Stopping
    constant : sequence of float
        The scores from which boosting starts, one for each output.
    link : str
        How scores become probabilities.
    n_jobs : int, optional
        Threads on the CPU.

    Attributes
    ----------
    scores : list of float
        The score of the held-out samples after each round; greater is better.
    errors : list of float
        Their error after each round.
    best_round : int
        The number of the first round of the greatest score.
    """

    def __init__(
        self,
        X: Array,
        rows: Array | None,
        held_out: Watched,
        stopping: Stopping,
        constant: Sequence[float] = (0.0,),
        link: Link = "logistic",
        n_jobs: int | None = None,
    ) -> None:
        self.scores: list[float] = []
        self.errors: list[float] = []
        self.best_round = 0
        self._best_score = float("-inf")
        self._stopping = stopping
        self._n_rounds = 0
        self._held_out = held_out
        self._scorer = scorer(stopping.scoring, held_out, link)
        self._scores = running_scores(X, constant, rows, n_jobs=n_jobs)

    def __call__(self, record: AnyRound) -> bool:
        self._count(record.stump, record.vote)
        scores = self._now()
        score = self._score(scores)
        self.scores.append(score)
        self.errors.append(self._held_out.error(scores))
        if score > self._best_score + self._stopping.tol:
            self._best_score, self.best_round = score, self._n_rounds
        return self._n_rounds - self.best_round >= self._stopping.patience

    def resume(self, hypotheses: Sequence[Any], votes: Sequence[Vote]) -> None:
        """Take over the rounds of an earlier run, which were kept and are not judged again."""
        for hypothesis, vote in zip(hypotheses, votes, strict=True):
            self._count(hypothesis, vote)
        if hypotheses:
            self.best_round, self._best_score = self._n_rounds, self._score(self._now())

    def _score(self, scores: Array) -> float:
        return self._scorer(scores)

    def _count(self, hypothesis: Any, vote: Vote) -> None:
        self._scores.add(hypothesis, _of_regions(hypothesis, vote))
        self._n_rounds += 1

    def _now(self) -> Array:
        """The scores (n_held_out,), or (n_held_out, n_outputs) for more outputs than one."""
        scores = self._scores.now()
        return scores[:, 0] if scores.shape[1] == 1 else scores


def _of_regions(hypothesis: Any, vote: Vote) -> np.ndarray:
    """What the regions vote, (n_regions, n_outputs)."""
    if isinstance(vote, tuple):
        return np.asarray(vote, dtype=np.float64)
    return np.asarray([[sign * vote] for sign in signs(hypothesis)])
