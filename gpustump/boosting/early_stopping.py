"""Early stopping: end a run when the error on held-out samples no longer falls.

The error is the share of held-out weight that the ensemble gets wrong, as a ratio of two integers.
A loss would need exponentials; this ratio is the same number on every device, and so is the round
at which a run stops.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes import Round
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.hypothesis import Hypothesis, by_region, signs


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
    patience : int
        Stop after this many rounds in a row without a new best.
    tol : float
        By how much an error must fall below the best one to count as new.

    Attributes
    ----------
    errors : list of float
        The held-out error after each round.
    best_round : int
        The number of the first round of least error.
    """

    def __init__(
        self,
        X: Array,
        rows: Array | None,
        y: Array,
        sample_weight: Array,
        *,
        patience: int,
        tol: float = 0.0,
    ) -> None:
        self.errors: list[float] = []
        self.best_round = 0
        self._best_error = float("inf")
        self._X = X
        self._rows = rows
        self._y = y
        self._patience = patience
        self._tol = tol
        self._n_rounds = 0
        self._scores = arrays.namespace_of(y).zeros_like(y)
        self._weights = IntegerWeights.of(sample_weight)

    def __call__(self, record: Round) -> bool:
        self._count(record.stump, record.vote)
        error = self._error()
        self.errors.append(error)
        if error < self._best_error - self._tol:
            self._best_error, self.best_round = error, self._n_rounds
        return self._n_rounds - self.best_round >= self._patience

    def resume(self, hypotheses: Sequence[Hypothesis], votes: Sequence[float]) -> None:
        """Take over the rounds of an earlier run, which were kept and are not judged again."""
        for hypothesis, vote in zip(hypotheses, votes, strict=True):
            self._count(hypothesis, vote)
        if hypotheses:
            self.best_round, self._best_error = self._n_rounds, self._error()

    def _count(self, hypothesis: Hypothesis, vote: float) -> None:
        with arrays.computing_on(self._X):
            column = arrays.as_working(self._X[:, hypothesis.feature])
            values = arrays.picked(column, self._rows)
            votes = [sign * vote for sign in signs(hypothesis)]
            self._scores = self._scores + by_region(hypothesis, values, votes)
        self._n_rounds += 1

    def _error(self) -> float:
        with arrays.computing_on(self._y):
            return self._weights.share((self._scores > 0) != (self._y > 0))
