"""Scores after each of a model's terms, by the fastest engine available.

Early stopping and staged predictions use them: they begin with the constant, or with known scores,
and every term adds its votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import check_jobs
from gpustump.engines.prediction import cpu_kernels_take
from gpustump.engines.reference import running_scores as reference
from gpustump.learners.hypothesis import Partition

_STAGE = "predict.running_scores"

_ELEMENT_NS = 10.0
"""About how many nanoseconds the reference takes to add a term's vote to a row's score."""


class RunningScores(Protocol):
    """The scores of a table's rows, float64; every term adds its votes to them."""

    def add(self, partition: Partition, votes: np.ndarray, first_output: int = 0) -> None:
        """Add a term's votes.

        Parameters
        ----------
        partition : Partition
        votes : ndarray (n_regions, n_own_outputs) of float64
        first_output : int
            The first output that the term votes for; its others follow.
        """

    def now(self) -> Array:
        """The scores so far, (n_rows, n_outputs); the next `add` may change this array."""

    def on_host(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray] | None:
        """The table, the row numbers (None for all) and `now()`, if the CPU kernels add the votes.

        Otherwise None.
        """

    def copy(self) -> Array:
        """The scores so far, in an array of their own."""


def running_scores(
    X: Array,
    start: Sequence[float] | Array,
    rows: Array | None = None,
    *,
    n_terms: int = 0,
    n_jobs: int | None = None,
    keeps_values: bool = True,
) -> RunningScores:
    """The scores before the first term.

    Parameters
    ----------
    X : array (n_samples, n_features)
    start : sequence of float, or array (n_rows, n_outputs) of float64
        The score of each output before the first term, or of each row.
    rows : array (n_rows,) of int, optional
        The rows of X to score; by default all.
    n_terms : int
        How many terms are known to follow. With many, it is worth loading the kernels for them.
    n_jobs : int, optional
        Threads on the CPU.
    keeps_values : bool
        Whether up to 64 MB of the table's values may be stored a second time, feature by feature.

    Returns
    -------
    RunningScores
        Arrays in the library and on the device of X, or in NumPy where the CPU kernels work.
    """
    check_jobs(n_jobs)
    n_rows = X.shape[0] if rows is None else rows.shape[0]
    if not cpu_kernels_take(X, n_terms * n_rows * _ELEMENT_NS * 1e-9, _STAGE):
        return reference.RunningScores(X, rows, start)
    from gpustump.engines.cpu.predict import running_scores as on_cpu

    numbers = None if rows is None else arrays.to_host(rows)
    start = arrays.to_host(start) if arrays.is_array(start) else start
    return on_cpu.RunningScores(
        arrays.to_host(X), numbers, start, n_jobs, keeps_values=keeps_values
    )
