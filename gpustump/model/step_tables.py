"""A model as one step function for each feature, for prediction, explanations and pictures.

All terms on one feature add up to a step function of that feature, with one value for each output
on every step. So the score of a sample takes one table look-up for each feature, for any number of
rounds. Votes are whole multiples of `VOTE_UNIT`, so the cumulative sums in a table are exact, and
so are sums over the features, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from gpustump.learners.hypothesis import MISSING, Partition
from gpustump.learners.step_table import StepTable

Voting = tuple[Partition, np.ndarray]
"""A partition, and the votes of its regions: (n_regions, n_outputs)."""


def step_tables(
    terms: Iterable[Voting], start: Sequence[float]
) -> tuple[np.ndarray, tuple[StepTable, ...]]:
    """A constant that includes the constant terms' votes, and a table for each feature of others.

    Parameters
    ----------
    terms : iterable of (Partition, ndarray (n_regions, n_outputs))
    start : sequence of float
        What the score of each output starts from.

    Returns
    -------
    ndarray (n_outputs,) of float64
    tuple of StepTable
        Sorted by feature, with values (k, n_outputs).
    """
    constant = np.array(start, dtype=np.float64)
    by_feature: dict[int, list[Voting]] = {}
    for partition, votes in terms:
        if is_constant(partition, votes):
            constant += votes[MISSING]
        else:
            by_feature.setdefault(partition.feature, []).append((partition, votes))
    tables = (_step_table(j, own, len(constant)) for j, own in sorted(by_feature.items()))
    return constant, tuple(tables)


def is_constant(partition: Partition, votes: np.ndarray) -> bool:
    """Whether a partition's regions, with votes (n_regions, n_outputs), vote the same everywhere.

    That is so if every value lies in the first slice, which votes as the missing values do.
    """
    if partition.thresholds[0] != math.inf:
        return False
    return bool((votes[partition.slices[0]] == votes[MISSING]).all())


def _step_table(feature: int, terms: list[Voting], n_outputs: int) -> StepTable:
    steps = [step for term in terms for step in _falls(*term)]
    learnt = np.asarray([at for at, _ in steps])
    thresholds, at = np.unique(np.append(learnt, np.inf), return_inverse=True)
    drops = np.zeros((len(thresholds), n_outputs))  # how far the function falls at each threshold
    np.add.at(drops, at[:-1], [by for _, by in steps])
    # Python's sum adds in the order of the terms, so made-up votes are added as they stand, too.
    above_all = sum(votes[partition.slices[-1]] for partition, votes in terms)
    values = np.cumsum(drops[::-1], axis=0)[::-1] + above_all
    missing = sum(votes[MISSING] for _, votes in terms)
    return StepTable(feature, thresholds, values, missing)


def _falls(partition: Partition, votes: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """The thresholds of a partition, and by how much its votes fall there; negative for a rise."""
    parts = pairwise(votes[region] for region in partition.slices)
    return [
        (at, below - above) for at, (below, above) in zip(partition.thresholds, parts, strict=True)
    ]
