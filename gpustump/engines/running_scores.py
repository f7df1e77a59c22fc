"""Scores that grow term by term, by the fastest engine at hand: for early stopping and stages."""

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

_STAGE = "running_scores"

_ELEMENT_NS = 10.0
"""What the reference takes to add a term's vote to a score, about."""


class RunningScores(Protocol):
    """The scores of a table's rows, float64, which every term adds its votes to."""

    def add(self, partition: Partition, votes: np.ndarray, first_output: int = 0) -> None:
        """Add a term's votes.

        Parameters
        ----------
        partition : Partition
        votes : ndarray (n_regions, n_own_outputs) of float64
        first_output : int
            The first of the outputs that it votes for.
        """

    def now(self) -> Array:
        """The scores so far, (n_rows, n_outputs); the next term may change this array."""

    def on_host(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray] | None:
        """The table, the row numbers (None for all) and `now()`; None if these are no kernels'."""

    def copy(self) -> Array:
        """The scores so far, in an array of their own."""


def running_scores(
    X: Array,
    constant: Sequence[float],
    rows: Array | None = None,
    *,
    n_terms: int = 0,
    n_jobs: int | None = None,
) -> RunningScores:
    """The scores before the first term.

    Parameters
    ----------
    X : array (n_samples, n_features)
    constant : sequence of float
        What the score of each output starts from.
    rows : array (n_rows,) of int, optional
        The rows of X to score; by default all.
    n_terms : int
        How many terms are known to come: with many, it is worth loading the kernels for them.
    n_jobs : int, optional
        Threads on the CPU.

    Returns
    -------
    RunningScores
        Arrays in the library and on the device of X, or in NumPy where the CPU kernels work.
    """
    check_jobs(n_jobs)
    n_rows = X.shape[0] if rows is None else rows.shape[0]
    if not cpu_kernels_take(X, n_terms * n_rows * _ELEMENT_NS * 1e-9, _STAGE):
        return reference.RunningScores(X, rows, constant)
    from gpustump.engines.cpu import running_scores as on_cpu

    numbers = None if rows is None else arrays.to_host(rows)
    return on_cpu.RunningScores(arrays.to_host(X), numbers, constant, n_jobs)
