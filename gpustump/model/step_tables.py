"""A model as one step function for each feature, for prediction, explanations and pictures.

All terms on one feature add up to a step function of that feature, with one value for each output
on every step. So the score of a sample takes one table look-up for each feature, for any number of
rounds. Votes are whole multiples of `VOTE_UNIT`, so the cumulative sums in a table are exact, and
so are sums over the features, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from gpustump.learners.hypothesis import FIRST, MISSING, Hypothesis
from gpustump.learners.step_table import StepTable

Voting = tuple[Hypothesis, np.ndarray]
"""A hypothesis, and the votes of its regions: (n_regions, n_outputs)."""


def step_tables(
    terms: Iterable[Voting], n_outputs: int
) -> tuple[np.ndarray, tuple[StepTable, ...]]:
    """The sum of the constant hypotheses' votes, and a table for each feature of the others.

    Returns
    -------
    ndarray (n_outputs,) of float64
    tuple of StepTable
        Sorted by feature, with values (k, n_outputs).
    """
    constant = np.zeros(n_outputs)
    by_feature: dict[int, list[Voting]] = {}
    for hypothesis, votes in terms:
        if hypothesis.is_constant:
            constant += votes[FIRST]
        else:
            by_feature.setdefault(hypothesis.feature, []).append((hypothesis, votes))
    tables = (_step_table(j, own, n_outputs) for j, own in sorted(by_feature.items()))
    return constant, tuple(tables)


def _step_table(feature: int, terms: list[Voting], n_outputs: int) -> StepTable:
    steps = [step for term in terms for step in _falls(*term)]
    learnt = np.asarray([at for at, _ in steps])
    thresholds, at = np.unique(np.append(learnt, np.inf), return_inverse=True)
    drops = np.zeros((len(thresholds), n_outputs))  # how far the function falls at each threshold
    np.add.at(drops, at[:-1], [by for _, by in steps])
    # Python's sum adds in the order of the terms, so made-up votes are added as they stand, too.
    above_all = sum(votes[hypothesis.slices[-1]] for hypothesis, votes in terms)
    values = np.cumsum(drops[::-1], axis=0)[::-1] + above_all
    missing = sum(votes[MISSING] for _, votes in terms)
    return StepTable(feature, thresholds, values, missing)


def _falls(hypothesis: Hypothesis, votes: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """A hypothesis' thresholds, and by how much its votes fall there; negative if they rise."""
    parts = pairwise(votes[region] for region in hypothesis.slices)
    return [
        (at, below - above) for at, (below, above) in zip(hypothesis.thresholds, parts, strict=True)
    ]
