"""What a run keeps of its samples, and how a step changes it: what the losses have in common.

A loss keeps its own numbers of each sample (weights, odds or probabilities), the scores, and the
two integers that follow from its numbers. A step multiplies the numbers and adds to the scores. The
numbers are those of `engines.reference`, bit for bit: every intermediate result is one IEEE
operation on the same operands. Scores are stored output by output, (n_outputs, n_samples), so that
kernels read memory in order. So are the numbers and integers of a `LossByOutput`, which stores no
label: a gradient is never 0, and its sign is that of the label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpustump.engines.contract import Beginning, Step
from gpustump.engines.cpu.loss.terms import SampleSums, Terms
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS

_SAMPLES_AT_ONCE = 2**14
"""Fewer samples than this are not worth another thread."""


class Loss(ABC):
    """The samples of a run.

    Parameters
    ----------
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int

    Attributes
    ----------
    first_weight : int
        The sum of the units of all samples.
    units : ndarray (n_samples,) or (1,) of float64
        One number if all samples have the same.
    scores : ndarray (n_outputs, n_samples) of float64
    numbers : ndarray (n_outputs, n_samples) of float64
        The loss's own numbers, which a step changes.
    terms : Terms
        The integers of this round, after `begin` has computed them. Kernels overwrite these arrays
        in every round.
    """

    numbers: np.ndarray
    terms: Terms

    def __init__(self, units: np.ndarray, n_outputs: int) -> None:
        differ = bool(units.min() < units.max())
        self.units = units if differ else units[:1].copy()
        repeats = 1 if differ else len(units)
        self.first_weight = int(self.units.astype(np.int64).sum()) * repeats
        self.scores = np.zeros((n_outputs, len(units)))

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """Float64 (n_samples,), or (n_samples, n_outputs); see `engines.contract.State`."""

    @property
    def kernel(self) -> Any:
        """The kernel that updates samples; see `_updating`."""
        return self._updating(moves=True)[0]

    def start_from(self, beginning: Beginning) -> None:
        """Let the samples start from known scores, before `begin`."""
        self.scores[:] = beginning.scores
        self.numbers[:] = beginning.numbers

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        gradient, hessian = self.terms
        return int((hessian if len(hessian) else np.abs(gradient)).min())

    def begin(self, team: Team) -> SampleSums:
        """Compute the terms of all samples before the first round; returns their sums."""
        n_outputs, n_samples = self.scores.shape
        regions = np.zeros(n_samples, dtype=np.uint8)
        votes, factors = np.zeros((N_REGIONS, n_outputs)), np.ones((N_REGIONS, n_outputs, 2))
        return self._update(team, regions, votes, factors, moves=False)

    def advance(self, step: Step, regions: np.ndarray, team: Team) -> SampleSums:
        """Update all samples by a step; returns the sums of their terms.

        Parameters
        ----------
        step : Step
        regions : ndarray (n_samples,) of uint8
            `learners.hypothesis.FIRST`, `SECOND` or `MISSING`.
        team : Team
        """
        factors = np.array(step.factors, dtype=np.float64).reshape(-1, len(self.scores), 2)
        return self._update(team, regions, np.array(step.votes), factors, moves=True)

    def _update(
        self,
        team: Team,
        regions: np.ndarray,
        votes: np.ndarray,
        factors: np.ndarray,
        *,
        moves: bool,
    ) -> SampleSums:
        n_pieces, size = team.pieces(len(regions), _SAMPLES_AT_ONCE)
        sums = np.zeros((n_pieces, 2 * len(self.scores) + 1), dtype=np.int64)
        kernel, own = self._updating(moves=moves)
        team.run(kernel, n_pieces, *own, regions, votes, factors, size, sums)
        return SampleSums(sums.sum(axis=0))

    @abstractmethod
    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The kernel that updates samples, and its first arguments.

        It updates numbers and scores of a piece of `size` samples, writes their terms, and adds up
        the numbers of `SampleSums`. Its last arguments are regions; votes (n_regions, n_outputs);
        factors (n_regions, n_outputs, 2), for samples with the label -1 and with +1; `size`; and
        the sums of each piece. If not `moves`, all factors are 1, so the numbers need not change.
        """


class LossByOutput(Loss):
    """A loss that stores its integers output by output.

    Parameters
    ----------
    labels : ndarray (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    units : ndarray (n_samples,) of float64
        As for `Loss`.
    n_outputs : int
    has_hessians : bool
        Whether the Hessians differ from the absolute gradients.
    """

    def __init__(
        self, labels: np.ndarray, units: np.ndarray, n_outputs: int, *, has_hessians: bool
    ) -> None:
        super().__init__(units, n_outputs)
        gradient = np.empty((n_outputs, len(labels)), dtype=np.int64)
        for output, own in enumerate(gradient):
            own[:] = labels if n_outputs == 1 else np.where(labels == output, 1, -1)
        hessian_shape = gradient.shape if has_hessians else (0, 0)
        self.terms = Terms(gradient, np.empty(hessian_shape, dtype=np.int64))


def by_sample(numbers: np.ndarray) -> np.ndarray:
    """A copy of numbers (n_outputs, n_samples), as `State.weights` returns them."""
    one = len(numbers) == 1
    found: np.ndarray = numbers[0].copy() if one else np.ascontiguousarray(numbers.T)
    return found
