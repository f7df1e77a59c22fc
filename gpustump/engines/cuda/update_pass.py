"""A round's pass over the samples for classic stumps, by `update_pass.cu`: scores and weights.

An `UpdatePass` holds the vectors with one element for each sample, and queues the kernels that
update them in a round. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Step
from gpustump.engines.cuda.device import CudaDevice
from gpustump.engines.cuda.histograms import Histograms
from gpustump.engines.cuda.layout import EFFECT, SAMPLES, record
from gpustump.engines.cuda.steps import Steps
from gpustump.engines.cuda.table import CudaTable, Parting
from gpustump.engines.integer_weights import TOP
from gpustump.learners.hypothesis import FIRST as FIRST_REGION
from gpustump.learners.hypothesis import signs
from gpustump.learners.kinds import AnyStump

_MOST_RESCALE = 63
"""A larger exponent leaves nothing of an integer, and a shift by 64 bits is not defined."""


class UpdatePass:
    """The samples of one run on the device.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,) of float64
        -1.0 or 1.0.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.

    Attributes
    ----------
    signed : array (n_samples,) of float64
        Weights in units of the integers, each with the sign of its label.
    histograms : Histograms
        Of one layer: the integer weights.
    rescale_at : int
        The address of `Effect.rescale_exponent` of the last step, for the search.
    sums : array (1, 4) of int64
        The record `layout.SUMS` of the current integers; the kernel `weigh` reads and resets it.
    first_weight : int
        The sum of the first round's integers.
    """

    def __init__(self, table: CudaTable, labels: Array, units: Array) -> None:
        self._device = device = table.device
        self.signed = units * device.array(labels)
        self._units = FirstWeights.of(units)
        self.first_weight = self._units.total
        self._scores = device.xp.zeros(table.n_samples, dtype=np.float64)
        self._steps = Steps(table, EFFECT.itemsize // 8)
        self._effect = self._steps.words.view(EFFECT)
        self.rescale_at = self._steps.words_at + EFFECT.fields["rescale_exponent"][1]  # type: ignore[index]
        self.histograms = Histograms(table)
        self.sums = no_sums(device)
        self._samples = self._record()

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        return self._device.xp.abs(self.signed)

    def integers(self) -> Iterator[tuple[Array, Array]]:
        """For each output the gradients and the Hessians, (n_samples,) of int64."""
        xp = self._device.xp
        units = xp.ceil(self.weights).astype(np.int64)
        yield xp.where(self.signed > 0, units, -units), units

    def queue_beginning(self) -> None:
        """Queue the first round's integers, and their sums."""
        self._steps.write(None, clears=True)
        self._effect[0] = (1, 1, 1, 0.0, 1.0, 1.0, True, 0)  # no vote, and factors of 1
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
        assert isinstance(step.hypothesis, AnyStump)  # `discrete_step` has made the step
        sign, exponent = step.hypothesis.polarity, step.rescale_exponent
        vote = step.votes[FIRST_REGION][0] * sign
        # One factor is for the samples that the signs get wrong; the other one is a power of two.
        negative, positive = step.factors[FIRST_REGION][0]
        kept, grown = (positive, negative) if sign > 0 else (negative, positive)
        anew = exponent != 0  # if the unit of the integers changes
        self._steps.write(cut, regions, clears=anew)
        # -1 tells the search that what it found in earlier rounds is void.
        for_search = min(exponent, _MOST_RESCALE) if exponent >= 0 and grown >= kept else -1
        self._effect[0] = (*signs(step.hypothesis), vote, grown, kept, anew, for_search)

    def queue(self) -> None:
        """Queue everything that a round does to the samples and the histograms."""
        self._steps.queue("advance", self._steps.words_at, self._samples)
        self.histograms.queue_adding()

    def _record(self) -> np.ndarray:
        """The `Samples` of `update_pass.cu`; its arrays are not moved during the run."""
        address, units = self._device.address, self._units
        return record(
            SAMPLES,
            signed_weights=address(self.signed),
            scores=address(self._scores),
            first_weights=0 if units.differing is None else address(units.differing),
            equal_weight=units.equal,
            sums=address(self.sums),
            layers=self.histograms.layers[0],
        )


@dataclass(frozen=True)
class FirstWeights:
    """The integer weights of the first round.

    Attributes
    ----------
    differing : array (n_samples,) of int64, or None
        The integers; None if all are equal.
    equal : int
        The integer of every sample, if all are equal.
    total : int
        Their sum.
    """

    differing: Array | None
    equal: int
    total: int

    @classmethod
    def of(cls, units: Array) -> FirstWeights:
        """From sample weights in units of the integers, as `in_units` returns them."""
        smallest, largest = float(units.min()), float(units.max())
        if smallest == largest:
            return cls(None, int(smallest), int(smallest) * int(units.shape[0]))
        differing = units.astype(np.int64)
        return cls(differing, int(smallest), int(differing.sum()))


def no_sums(device: CudaDevice) -> Array:
    """`NO_SUMS` of `common.cuh` on the device, (1, 4) of int64."""
    return device.array(np.asarray([[0, 0, 0, TOP]]))
