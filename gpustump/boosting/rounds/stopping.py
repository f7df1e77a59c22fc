"""Early stopping: end a run when the score of held-out samples no longer rises.

Held-out samples may also be watched without stopping, for their scores and errors by round.

A judge (`held_out.judging`) computes the scores from integers. So they are the same numbers on
every device, and a run stops at the same round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.boosting.held_out.judging import Judge, Judgement, LocalJudge
from gpustump.boosting.rounds.batches import Batch
from gpustump.boosting.votes.votes import AnyRound, Vote
from gpustump.data.parameters import Scoring
from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.learners.hypothesis import signs


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    Attributes
    ----------
    patience : int or None
        Stop after this many rounds in a row without a new best score; None to watch only, and to
        keep all rounds.
    tol : float
        By how much a score must be above the best one to count as new; not negative.
    scoring : str
        Which score of the held-out samples.
    least : int
        Make at least one round more than this, whatever the scores.
    """

    patience: int | None
    tol: float = 0.0
    scoring: Scoring = "loss"
    least: int = 0


class EarlyStopping:
    """A callback for `boost` that watches held-out samples.

    Parameters
    ----------
    judge : Judge
        Judges the model by the held-out samples. It must not have been given a hypothesis yet.
    stopping : Stopping
        When to stop. The judge decides which score is computed.

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
        """Judge a round, and return whether it is the last one."""
        self.add(record.stump, record.vote)
        return self.is_over

    def add(self, hypothesis: Any, vote: Vote, judged: Judgement | None = None) -> None:
        """Add a round; it is judged unless it was before."""
        self._add(hypothesis, vote)
        score, error = self._judge.judged() if judged is None else judged
        self._note([score], [error])

    def judge(self, made: Batch) -> int:
        """Judge rounds one after the other. Returns how many belong to the run."""
        parts = made.parts
        if parts is None:
            numbers = (number for number, one in enumerate(made.records, start=1) if self(one))
            return next(numbers, len(made))
        assert isinstance(self._judge, LocalJudge)
        return self._note(*self._judge.judged_by(parts))

    @property
    def is_over(self) -> bool:
        """Whether the last round that was judged is the last one of the run."""
        n_to_come = self.n_to_come()
        return n_to_come is not None and n_to_come <= 0

    def n_to_come(self) -> int | None:
        """How many more rounds are judged before the run can stop; None if it never does."""
        patience, least = self._stopping.patience, self._stopping.least
        if patience is None:
            return None
        return max(self.best_round + patience, least + 1) - self._n_rounds

    def validation(self) -> ValidationSamples | None:
        """The held-out samples for engines that make rounds in batches; None if these cannot watch
        them."""
        return self._judge.validation() if isinstance(self._judge, LocalJudge) else None

    @property
    def last(self) -> Judgement:
        """The score and the error on the held-out samples after the last round."""
        return Judgement(self.scores[-1], self.errors[-1])

    @property
    def n_kept(self) -> int:
        """How many rounds the model keeps: up to the best one, or all if it watches only."""
        return self._n_rounds if self._stopping.patience is None else self.best_round

    def resume(
        self, hypotheses: Sequence[Any], votes: Sequence[Vote], *, judges_each: bool = False
    ) -> None:
        """Add the rounds of an earlier run, all of which are kept.

        Parameters
        ----------
        hypotheses, votes : sequence
            One for each round.
        judges_each : bool
            Note the scores and errors after each round. Otherwise only the last one is judged.
        """
        for hypothesis, vote in zip(hypotheses, votes, strict=True):
            if judges_each:
                self.add(hypothesis, vote)
            else:
                self._add(hypothesis, vote)
                self._n_rounds += 1
        if hypotheses:
            self.best_round, self._best_score = self._n_rounds, self._judge.judged().score

    def _add(self, hypothesis: Any, vote: Vote) -> None:
        votes = vote if isinstance(vote, tuple) else [[sign * vote] for sign in signs(hypothesis)]
        self._judge.add(hypothesis, np.asarray(votes, dtype=np.float64))

    def _note(self, scores: list[float], errors: list[float]) -> int:
        """Note the scores and the errors after the next rounds, up to the last one of the run.

        Returns how many of the rounds belong to the run.
        """
        before, tol = self._n_rounds, self._stopping.tol
        patience, least = self._stopping.patience, self._stopping.least
        for number, score in enumerate(scores, start=before + 1):
            self._n_rounds = number
            if score > self._best_score + tol:
                self._best_score, self.best_round = score, number
            if patience is not None and number >= max(self.best_round + patience, least + 1):
                break
        n_noted = self._n_rounds - before
        self.scores += scores[:n_noted]
        self.errors += errors[:n_noted]
        return n_noted
