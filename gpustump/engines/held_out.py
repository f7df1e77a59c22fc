"""Where the CPU kernels are in use, they also add up what early stopping watches."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.prediction import cpu_kernels_take

_STAGE = "held_out_sums"


LossTable = tuple[Array, Array, int]
"""ln(1 + exp(-x)) at every 2**-b from x = 0 on, in units of 2**-32: the losses, how far
it falls from each to the next, and b."""


class HeldOutSums(Protocol):
    """Sums over held-out samples, from their scores (n_samples,) or (n_samples, n_outputs).

    The weights (n_samples,) of float64 that losses are multiplied by are such that the sum of the
    products, each rounded to an integer, is below 2**62.
    """

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Classes, units, and how many classes there are."""

    def right_weights(self, scores: np.ndarray) -> list[int]:
        """For each class the integer weight of its samples that are classified right."""

    def logistic(
        self, scores: np.ndarray, weights: np.ndarray, table: LossTable, bits: int
    ) -> list[int]:
        """For each output the sum of weight * ln(1 + exp(-y F * 2**(36 - bits)))."""

    def softmax(
        self, scores: np.ndarray, weights: np.ndarray, table: LossTable, bits: int
    ) -> list[int]:
        """The sum, over the samples, of weight and minus the logarithm of the class's softmax."""

    def logistic_shares(
        self, scores: np.ndarray, weights: np.ndarray, table: LossTable, bits: int
    ) -> list[int]:
        """The same for shares of logistic probabilities."""


def watched_table(X: Array) -> Array:
    """The table as early stopping reads it: in NumPy, without a copy, where the kernels are in use.

    They are if they have been loaded for training: watching alone does not load them.
    """
    return arrays.to_host(X) if cpu_kernels_take(X, 0.0, _STAGE) else X


def held_out_sums(
    classes: Array, units: Array, n_classes: int, n_jobs: int | None = None
) -> HeldOutSums | None:
    """What adds up over some samples; None where array operations have to do it.

    Parameters
    ----------
    classes : array (n_samples,) of int64
        With one output 1 for the class whose score is positive, and 0 for the other.
    units : array (n_samples,) of int64
        The samples' weights.
    n_classes : int
    n_jobs : int, optional
    """
    if not isinstance(units, np.ndarray) or not cpu_kernels_take(units, 0.0, _STAGE):
        return None
    from gpustump.engines.cpu import held_out_sums as on_cpu

    return on_cpu.HeldOutSums(classes, units, n_classes, n_jobs)
