"""Early stopping: end a run when the score of held-out samples no longer rises.

The scores are computed from integers (`held_out_scores`): they are the same numbers on every
device, and so is the round at which a run stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out_scores import HeldOut, scorer
from gpustump.boosting.votes import Round
from gpustump.data.parameters import Scoring
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.hypothesis import Hypothesis, by_region, signs


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
    y : array (n_held_out,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_held_out,) of float64
        Positive.
    stopping : Stopping

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
        self, X: Array, rows: Array | None, y: Array, sample_weight: Array, stopping: Stopping
    ) -> None:
        self.scores: list[float] = []
        self.errors: list[float] = []
        self.best_round = 0
        self._best_score = float("-inf")
        self._X = X
        self._rows = rows
        self._stopping = stopping
        self._n_rounds = 0
        self._sums_of_votes = arrays.namespace_of(y).zeros_like(y)
        self._held_out = HeldOut(y, IntegerWeights.of(sample_weight))
        self._scorer = scorer(stopping.scoring, self._held_out)

    def __call__(self, record: Round) -> bool:
        self._count(record.stump, record.vote)
        score = self._score()
        self.scores.append(score)
        self.errors.append(self._held_out.error(self._sums_of_votes))
        if score > self._best_score + self._stopping.tol:
            self._best_score, self.best_round = score, self._n_rounds
        return self._n_rounds - self.best_round >= self._stopping.patience

    def resume(self, hypotheses: Sequence[Hypothesis], votes: Sequence[float]) -> None:
        """Take over the rounds of an earlier run, which were kept and are not judged again."""
        for hypothesis, vote in zip(hypotheses, votes, strict=True):
            self._count(hypothesis, vote)
        if hypotheses:
            self.best_round, self._best_score = self._n_rounds, self._score()

    def _count(self, hypothesis: Hypothesis, vote: float) -> None:
        with arrays.computing_on(self._X):
            column = arrays.as_working(self._X[:, hypothesis.feature])
            values = arrays.picked(column, self._rows)
            votes = [sign * vote for sign in signs(hypothesis)]
            self._sums_of_votes = self._sums_of_votes + by_region(hypothesis, values, votes)
        self._n_rounds += 1

    def _score(self) -> float:
        return self._scorer(self._sums_of_votes)
