"""One additive model with K outputs: a constant and terms, each a partition with votes.

    F_l(x) = constant_l + sum over the terms of votes[region of x, l]        l = 0, ..., K - 1

A term may vote for all outputs or for one only. Boosting one class against the rest gives terms
that vote for one output. `members` makes the terms, `ensemble` makes labels and probabilities from
the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.engines import prediction
from gpustump.learners.hypothesis import N_REGIONS, Hypothesis, Partition, regions, signs
from gpustump.learners.step_table import StepTable
from gpustump.model.step_tables import is_constant, step_tables


class Term(NamedTuple):
    """A partition, and the votes of its regions: (n_regions, n_outputs) of float64."""

    partition: Partition
    votes: np.ndarray

    @property
    def is_constant(self) -> bool:
        """Whether it votes the same for every sample."""
        return is_constant(*self)

    @classmethod
    def discrete(cls, hypothesis: Hypothesis, vote: float, output: int, n_outputs: int) -> Term:
        """The term of a hypothesis whose regions vote +vote or -vote for one output only."""
        votes = np.zeros((N_REGIONS, n_outputs))
        votes[:, output] = np.asarray(signs(hypothesis)) * vote
        return cls(hypothesis, votes)


@dataclass(frozen=True, repr=False)
class AdditiveModel:
    """A sum of terms, in the order of boosting.

    Attributes
    ----------
    rounds : tuple of tuple of Term
        The terms that each round added.
    constant : tuple of float
        What the score of each output starts from.
    """

    rounds: tuple[tuple[Term, ...], ...]
    constant: tuple[float, ...]

    def __repr__(self) -> str:
        n_terms = sum(map(len, self.rounds))
        return f"AdditiveModel of {n_terms} terms, n_outputs={self.n_outputs}"

    @property
    def n_outputs(self) -> int:
        """The number of scores."""
        return len(self.constant)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms, round by round."""
        return tuple(term for terms in self.rounds for term in terms)

    @cached_property
    def tables(self) -> tuple[np.ndarray, tuple[StepTable, ...]]:
        """The constant part of the scores, and a step function for each feature in use."""
        return step_tables(self.terms, self.constant)

    @cached_property
    def _layouts(self) -> dict[str, Any]:
        """Data that prediction keeps between calls; not part of the model."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """The attributes to pickle: all but the data of prediction, which may be on a device."""
        return {name: value for name, value in vars(self).items() if name != "_layouts"}

    def scores(
        self, X: Array, n_jobs: int | None = None, lacking: np.ndarray | None = None
    ) -> Array:
        """F(x) for each row of X, float64 (n_samples, n_outputs).

        `lacking`, if it is given, notes the tables whose feature has no value in some row: bool
        (n_tables,).
        """
        return prediction.scores(X, *self.tables, n_jobs, self._layouts, lacking)

    def staged_scores(self, X: Array) -> Iterator[Array]:
        """`scores` after 1, 2, ... rounds; the last equals it exactly."""
        given, X = X, prediction.quick_to_compute_in(X)
        xp, device = arrays.namespace_of(X), arrays.device_of(X)
        with arrays.computing_on(X):
            scores = [
                xp.full(X.shape[0], start, dtype=xp.float64, device=device)
                for start in self.constant
            ]
        for terms in self.rounds:
            with arrays.computing_on(X):
                for term in terms:
                    scores = _added(scores, term, X)
                joined = xp.stack(scores, axis=1)
            yield moved_to_device_of(joined, given)


def _added(scores: list[Array], term: Term, X: Array) -> list[Array]:
    """The scores of each output, (n_samples,), after adding a term's votes."""
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    region = regions(term.partition, arrays.as_working(X[:, term.partition.feature]))
    return [
        score + xp.take(xp.asarray(own, device=device), region) if own.any() else score
        for score, own in zip(scores, np.ascontiguousarray(term.votes.T), strict=True)
    ]
