"""One additive model with K outputs: a constant and terms, each a partition with votes.

    F_l(x) = constant_l + sum over the terms of votes[region of x, l]        l = 0, ..., K - 1

The terms come in parts. One part may vote for all outputs; or each part votes for outputs of its
own, as in boosting one class against the rest. `members` makes the parts, `ensemble` makes labels
and probabilities from the outputs.

All terms on one feature add up to a step function of that feature, with one value for each output
on every step. So the score of a sample takes one table look-up for each feature, for any number of
rounds. Votes are whole multiples of `VOTE_UNIT`, so the cumulative sums in a table are exact, and
so are sums over the features, in any order.

The tables of a model are made when it first predicts. For few samples that takes longer than the
prediction itself, so they are made all at once, from arrays of all thresholds and votes. Votes made
by hand may be other numbers; they are added up in the order of the terms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.engines import prediction
from gpustump.engines.running_scores import running_scores
from gpustump.learners.hypothesis import MISSING, Partition
from gpustump.learners.pair_table import PairTable
from gpustump.learners.step_table import StepTables


class OutputTerms(NamedTuple):
    """A sum of terms for some of a model's outputs.

    Attributes
    ----------
    partitions : sequence of Partition
    votes : ndarray (n_terms, n_regions, n_own_outputs) of float64
        What the regions of each partition vote.
    constant : ndarray (n_own_outputs,) of float64
        What the scores start from.
    """

    partitions: Sequence[Partition]
    votes: np.ndarray
    constant: np.ndarray

    @property
    def n_outputs(self) -> int:
        """The number of its own outputs."""
        return len(self.constant)


def step_tables(parts: Sequence[OutputTerms]) -> tuple[np.ndarray, StepTables]:
    """A constant, with the votes of constant terms in it, and a step table for each other feature.

    Parameters
    ----------
    parts : sequence of OutputTerms
        Their outputs are laid one after the other; all have the same number of them.

    Returns
    -------
    ndarray (n_outputs,) of float64
    StepTables
        Sorted by feature, with values (k, n_outputs).
    """
    partitions = [one for part in parts for one in part.partitions]
    votes = np.concatenate([part.votes for part in parts])
    constant = np.concatenate([part.constant for part in parts])
    n_outputs, terms = len(constant), np.arange(len(partitions))
    of_part = np.arange(n_outputs).reshape(len(parts), -1)
    outputs = np.repeat(of_part, [len(part.partitions) for part in parts], axis=0)
    # All thresholds, term by term. Of slices, and so of their regions, a term has one more.
    features = np.fromiter((one.feature for one in partitions), np.int64)
    counts = np.fromiter((len(one.thresholds) for one in partitions), np.int64)
    thresholds = np.fromiter(_chained(one.thresholds for one in partitions), np.float64)
    regions = np.fromiter(_chained(one.slices for one in partitions), np.int64)
    owners = np.repeat(terms, counts)
    first = np.cumsum(counts) - counts
    # A term that votes the same everywhere is a part of the constant.
    lowest = votes[terms, regions[first + terms]]
    is_same = (thresholds[first] == np.inf) & (lowest == votes[:, MISSING]).all(axis=1)
    np.add.at(constant, outputs[is_same], votes[is_same, MISSING])
    # The others are of features in use: what they vote above all thresholds, and without a value.
    used, place = np.unique(features[~is_same], return_inverse=True)
    above, missing = np.zeros((2, len(used), n_outputs))
    last = votes[terms, regions[first + terms + counts]]
    _add_up(above, place, outputs[~is_same], last[~is_same])
    _add_up(missing, place, outputs[~is_same], votes[~is_same, MISSING])
    # From there down, a function changes at each threshold by as much as its terms fall there.
    left = np.flatnonzero(~is_same[owners])
    owners, below = owners[left], left + owners[left]
    ends, starts, place = _distinct(features[owners], thresholds[left], used)
    drops = np.zeros((len(ends), n_outputs))
    falls = votes[owners, regions[below]] - votes[owners, regions[below + 1]]
    _add_up(drops, place, outputs[owners], falls)
    values = np.empty_like(drops)
    for low, high, top in zip(starts, starts[1:], above, strict=False):
        np.add(np.cumsum(drops[low:high][::-1], axis=0)[::-1], top, out=values[low:high])
    return constant, StepTables(used, starts, ends, values, missing)


_chained = itertools.chain.from_iterable


def _add_up(table: np.ndarray, rows: np.ndarray, outputs: np.ndarray, votes: np.ndarray) -> None:
    """Add votes (n, n_own_outputs) to rows (n,) of a table, in their order, which matters for votes
    made by hand."""
    places = rows[:, np.newaxis] * table.shape[1] + outputs
    np.add.at(table.reshape(-1), places.ravel(), votes.ravel())  # far quicker than in rows


def _distinct(
    features: np.ndarray, thresholds: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct thresholds of each feature in use, the last one infinite; where each feature's
    begin, (n_used + 1,); and the place of each given threshold among them."""
    thresholds = np.append(thresholds, np.full(len(used), np.inf))
    owners = np.append(features, used)
    order = np.lexsort((thresholds, owners))
    thresholds, owners = thresholds[order], owners[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (thresholds[1:] != thresholds[:-1]) | (owners[1:] != owners[:-1])
    places = np.empty_like(order)
    places[order] = np.cumsum(is_new) - 1
    starts = np.searchsorted(owners[is_new], used)
    n_steps = int(np.count_nonzero(is_new))
    return thresholds[is_new], np.append(starts, n_steps), places[: len(features)]


def is_constant(partition: Partition, votes: np.ndarray) -> bool:
    """Whether a partition's regions, with votes (n_regions, n_outputs), vote the same everywhere.

    That is so if every value lies in the first slice, which votes as the missing values do.
    """
    if partition.thresholds[0] != math.inf:
        return False
    return bool((votes[partition.slices[0]] == votes[MISSING]).all())


class Term(NamedTuple):
    """A partition, and the votes of its regions: (n_regions, n_outputs) of float64."""

    partition: Partition
    votes: np.ndarray


@dataclass(frozen=True, repr=False, eq=False)
class AdditiveModel:
    """A sum of terms, in the order of boosting.

    Attributes
    ----------
    parts : tuple of OutputTerms
        The outputs of the model are those of the parts, one part after the other. A round adds the
        next term of each part.
    """

    parts: tuple[OutputTerms, ...]

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
        every, first = [], 0
        for part in self.parts:
            others = (first, self.n_outputs - first - part.n_outputs)  # before and after its own
            votes = np.pad(part.votes, ((0, 0), (0, 0), others))
            every.append(map(Term, part.partitions, votes))
            first += part.n_outputs
        together = itertools.zip_longest(*every)
        return tuple(tuple(term for term in terms if term is not None) for terms in together)

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
