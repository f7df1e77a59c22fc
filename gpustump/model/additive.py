"""One additive model with K outputs: a constant and terms, each a partition with votes.

    F_l(x) = constant_l + sum over the terms of votes[region of x, l]        l = 0, ..., K - 1

The terms come in parts. One part may vote for all outputs; or each part votes for outputs of its
own, as in boosting one class against the rest. `members` makes the parts, `ensemble` makes labels
and probabilities from the outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.engines import prediction
from gpustump.engines.running_scores import running_scores
from gpustump.learners.hypothesis import Partition
from gpustump.learners.pair_table import PairTable
from gpustump.learners.step_table import StepTables
from gpustump.model.step_tables import Part, is_constant, step_tables


class Term(NamedTuple):
    """A partition, and the votes of its regions: (n_regions, n_outputs) of float64."""

    partition: Partition
    votes: np.ndarray

    @property
    def is_constant(self) -> bool:
        """Whether it votes the same for every sample."""
        return is_constant(*self)


@dataclass(frozen=True, repr=False, eq=False)
class AdditiveModel:
    """A sum of terms, in the order of boosting.

    Attributes
    ----------
    parts : tuple of Part
        The outputs of the model are those of the parts, one part after the other. A round adds the
        next term of each part.
    """

    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        n_terms = sum(len(part.partitions) for part in self.parts)
        return f"AdditiveModel of {n_terms} terms, n_outputs={self.n_outputs}"

    @property
    def n_outputs(self) -> int:
        """The number of scores."""
        return sum(part.n_outputs for part in self.parts)

    @property
    def constant(self) -> tuple[float, ...]:
        """What the score of each output starts from."""
        return tuple(value for part in self.parts for value in part.constant.tolist())

    @cached_property
    def rounds(self) -> tuple[tuple[Term, ...], ...]:
        """The terms that each round added, each with votes for all outputs."""
        together = itertools.zip_longest(*map(self._terms, range(len(self.parts))))
        return tuple(tuple(term for term in terms if term is not None) for terms in together)

    def _terms(self, number: int) -> list[Term]:
        """The terms of a part, with votes of 0 for the outputs of other parts."""
        first = sum(part.n_outputs for part in self.parts[:number])
        part = self.parts[number]
        around = (first, self.n_outputs - first - part.n_outputs)
        return list(map(Term, part.partitions, np.pad(part.votes, ((0, 0), (0, 0), around))))

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms, round by round."""
        return tuple(term for terms in self.rounds for term in terms)

    @cached_property
    def tables(self) -> tuple[np.ndarray, StepTables]:
        """The constant part of the scores, and a step function for each feature in use."""
        return step_tables(self.parts)

    @cached_property
    def _layouts(self) -> dict[str, Any]:
        """Data that prediction keeps between calls; not part of the model."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """The attributes to pickle; all others follow from them."""
        return {"parts": self.parts}

    def scores(
        self,
        X: Array,
        n_jobs: int | None = None,
        lacking: np.ndarray | None = None,
        pairs: Sequence[PairTable] = (),
    ) -> Array:
        """F(x) for each row of X, float64 (n_samples, n_outputs), with what pairs add to it.

        `lacking` (n_tables,) of bool, if it is given, becomes true for each step table whose
        feature lacks a value in some row.
        """
        found = prediction.scores(X, *self.tables, n_jobs, self._layouts, lacking)
        if not pairs:
            return found
        return prediction.with_pairs(found, X, pairs, n_jobs, self._layouts)

    def staged_scores(self, X: Array, n_jobs: int | None = None) -> Iterator[Array]:
        """`scores` after 1, 2, ... rounds; the last equals it exactly."""
        given, X = X, prediction.quick_to_compute_in(X)
        n_terms = sum(len(part.partitions) for part in self.parts)
        scores = running_scores(X, self.constant, n_terms=n_terms, n_jobs=n_jobs)
        firsts = itertools.accumulate((part.n_outputs for part in self.parts), initial=0)
        parts = list(zip(self.parts, firsts, strict=False))
        for number in range(max(len(part.partitions) for part in self.parts)):
            for part, first in parts:
                if number < len(part.partitions):
                    scores.add(part.partitions[number], part.votes[number], first)
            yield moved_to_device_of(scores.copy(), given)
