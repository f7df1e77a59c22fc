"""A round's pass over the samples for real, Newton and shared votes, by `losses.cu`.

All state is stored output by output, (n_outputs, n_samples). No label is stored: it is the sign of
the sample's weight, odds or probability. Of a quantity the residuals are stored,
or the amounts of Poisson and gamma loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Beginning, RegionFactors, Step
from gpustump.engines.cuda.histograms import Histograms
from gpustump.engines.cuda.layout import LOSS_SAMPLES, LOSSES, MOTION, MOVEMENT, record
from gpustump.engines.cuda.steps import Steps
from gpustump.engines.cuda.table import CudaTable, Parting
from gpustump.engines.cuda.update_pass import FirstWeights, no_sums
from gpustump.engines.movement import UNKNOWN, Movement, movement_of
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import N_REGIONS

_N_NUMBERS = 3 * N_REGIONS + 2 * len(Movement._fields)
"""How many numbers a step has for each output: votes and two factors for each region, then those of
the `Movement`."""


class LossPass:
    """The samples of one run on the device.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    objective : Objective
    beginning : Beginning, optional

    Attributes
    ----------
    histograms : Histograms
    sums : array (1, 4) of int64
        The record `layout.SUMS` of the current integers; the search reads and resets it.
    samples : ndarray (1,) of layout.LOSS_SAMPLES
        The addresses of the run's arrays.
    movement : ndarray (1,) of layout.MOVEMENT
        The addresses of the numbers that say how far the last step may have moved shares.
    first_weight : int
        The sum of the first round's integers.
    """

    def __init__(
        self,
        table: CudaTable,
        labels: Array,
        units: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> None:
        device, n_outputs = table.device, objective.n_outputs
        xp = device.xp
        self._table, self._device, self._objective = table, device, objective
        self._n_samples = table.n_samples
        is_exponential = objective.loss == "exponential"
        labels = device.array(labels)
        if objective.is_of_quantity or n_outputs == 1:
            signs = labels.reshape(1, -1)
        else:
            classes = xp.arange(n_outputs, dtype=np.int64).reshape(-1, 1)
            signs = xp.where(labels.reshape(1, -1) == classes, 1.0, -1.0)
        self._fixed: Array | None = None
        if objective.loss == "squared_error":
            self._numbers = signs + 0.0  # a copy: steps change it
        elif objective.is_of_quantity:
            weights, weighted = units + 0.0 * signs, units * signs
            is_poisson = objective.loss == "poisson"
            self._fixed = xp.rint(weighted[0]) if is_poisson else weights[0]
            self._numbers = weights if is_poisson else weighted
        elif is_exponential:
            self._numbers = signs * units
        elif beginning is not None:
            self._numbers = signs * device.array(beginning.numbers)
        else:
            self._numbers = signs * (1.0 if n_outputs == 1 else 1.0 / n_outputs)
        self._units = FirstWeights.of(units)
        del signs
        self.first_weight = self._units.total
        self._scores = xp.zeros((n_outputs, table.n_samples), dtype=np.float64)
        if beginning is not None:
            self._scores[:] = device.array(beginning.scores)
        self.histograms = Histograms(table, objective.n_layers)
        self.sums = no_sums(device)
        self._steps = Steps(table, _N_NUMBERS * n_outputs)
        self._numbers_of_step = self._steps.words.view(np.float64)
        self.samples = self._record()
        self._motion, self.movement = self._records_of_step()

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        xp, numbers = self._device.xp, self._device.xp.abs(self._numbers)
        if self._objective.loss != "exponential":
            units = self._units.equal if self._units.differing is None else self._units.differing
            # An integer that came from a float is that float again.
            units = xp.asarray(units, dtype=np.float64)
            if self._fixed is not None:
                numbers = self._fixed + numbers
            elif self._objective.is_of_quantity:
                numbers = units + xp.zeros_like(numbers)
            elif self._objective.loss == "logistic":
                below = numbers + 1.0
                numbers = (units * (numbers / below)) * (1.0 / below)
            else:
                numbers = (units * numbers) * (1.0 - numbers)
        return numbers[0] if self._objective.n_outputs == 1 else xp.ascontiguousarray(numbers.T)

    def integers(self) -> Iterator[tuple[Array, Array]]:
        """For each output the gradients and the Hessians, (n_samples,) of int64."""
        n_layers = 2 if self._objective.has_hessians else 1
        for own in self.histograms.terms.reshape(self._objective.n_outputs, n_layers, -1):
            terms = own[:, : self._n_samples]
            sizes, is_positive = terms & (2**63 - 1), terms[0] < 0
            yield self._device.xp.where(is_positive, sizes[0], -sizes[0]), sizes[-1]

    def queue_beginning(self) -> None:
        """Queue the first round's integers, and their sums."""
        votes = np.zeros((N_REGIONS, self._objective.n_outputs))
        unchanged = ((1.0, 1.0),) * self._objective.n_outputs
        is_squared = self._objective.loss == "squared_error"
        factors = () if is_squared else (unchanged, unchanged, unchanged)
        self._steps.write(None, clears=True)
        self._write_numbers(votes, factors, self._movement(votes, factors, None))
        if self._objective.loss == "softmax":
            self._queue("begin_softmax")
        else:  # a factor of 1 changes nothing
            self.queue()

    def write(self, step: Step, cut: Parting | None, regions: Array | None) -> None:
        """Write a step; `queue` copies it. The device must have finished the last one.

        Parameters
        ----------
        step : Step
        cut : Cut, or hypothesis of a categorical feature, or None
            See `steps.Steps.write`.
        regions : array (n_samples,) of uint8, or None
            The region of each sample, if the cut is not known.
        """
        counts = None if cut is None else self._table.counts_of_regions(cut)
        self._steps.write(cut, regions, clears=True)
        votes = np.asarray(step.votes)
        movement = self._movement(votes, step.factors, counts)
        self._write_numbers(votes, step.factors, movement)

    def queue(self) -> None:
        """Queue everything that a step does to the samples and the histograms."""
        several = "s" * (self._objective.loss == "exponential" and self._objective.n_outputs > 1)
        loss = self._objective.loss if self._fixed is None else "ratio"
        self._queue(f"follow_{loss}{several}")

    def _queue(self, kernel: str) -> None:
        self._steps.queue(kernel, self._motion, self.samples)
        self.histograms.queue_adding()

    def _movement(
        self, votes: np.ndarray, factors: RegionFactors, counts: Sequence[int] | None
    ) -> Movement:
        """What a step does to shares; of squared loss, what it takes from the residuals.

        Then `low` is the vote of the largest region, and `most` how far others are from it.
        """
        if self._objective.loss != "squared_error":
            return movement_of(factors, counts, self._objective)
        if counts is None:
            return UNKNOWN._replace(most=UNKNOWN.most * np.inf)
        own = votes[int(np.argmax(counts)), 0]
        apart = votes[np.asarray(counts) > 0, 0] - own
        is_one_way = apart.min() >= 0.0 or apart.max() <= 0.0
        numbers = (np.abs(apart).max(), 0.0, is_one_way, own, own)
        return Movement(*(np.full((1, 2), number) for number in numbers))

    def _write_numbers(self, votes: np.ndarray, factors: RegionFactors, movement: Movement) -> None:
        of_regions = np.asarray(factors) if factors else np.zeros(2 * votes.size)
        numbers = (votes, of_regions, *movement)
        self._numbers_of_step[:] = np.concatenate([np.ravel(part) for part in numbers])

    def _record(self) -> np.ndarray:
        """The `LossSamples` of `integers.cuh`; its arrays are not moved during the run."""
        address, units = self._device.address, self._units
        return record(
            LOSS_SAMPLES,
            numbers=address(self._numbers),
            fixed=0 if self._fixed is None else address(self._fixed),
            scores=address(self._scores),
            first_weights=0 if units.differing is None else address(units.differing),
            equal_weight=units.equal,
            sums=address(self.sums),
            layers=self.histograms.layers[0],
            n_samples=self._n_samples,
            n_outputs=self._objective.n_outputs,
            loss=LOSSES.index(self._objective.loss),
        )

    def _records_of_step(self) -> tuple[np.ndarray, np.ndarray]:
        """The `Motion` of `losses.cu` and the `Movement` of `splits.cu`."""
        begin, n_outputs = self._steps.words_at, self._objective.n_outputs
        votes, factors, first = 0, N_REGIONS * n_outputs, 3 * N_REGIONS * n_outputs
        motion = record(MOTION, votes=begin + 8 * votes, factors=begin + 8 * factors)
        places = {
            name: begin + 8 * (first + 2 * n_outputs * number)
            for number, name in enumerate(Movement._fields)
        }
        return motion, record(MOVEMENT, **places)
