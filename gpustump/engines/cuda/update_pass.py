"""A round's pass over the samples for classic stumps, by `update_pass.cu`: scores and weights.

An `UpdatePass` holds the vectors with one element for each sample, and queues the kernels that
update them in a round. Nothing here waits for the device.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Step
from gpustump.engines.cuda.device import THREADS, CudaDevice, blocks_for
from gpustump.engines.cuda.histograms import Histograms
from gpustump.engines.cuda.layout import EFFECT, SAMPLES, SUMS, record
from gpustump.engines.cuda.steps import Steps
from gpustump.engines.cuda.table import CudaTable, Parting
from gpustump.engines.integer_weights import TOP, in_units
from gpustump.learners.hypothesis import FIRST as FIRST_REGION
from gpustump.learners.hypothesis import signs
from gpustump.learners.kinds import AnyStump

_MOST_RESCALE = 63
"""A larger exponent leaves nothing of an integer, and a shift by 64 bits is not defined."""


class Discrete(NamedTuple):
    """A step of discrete votes: one vote with a sign for each region, and two factors.

    `grown` multiplies the weights of the samples that the signs get wrong and `kept`, a power of
    two, those of the others.
    """

    signs: tuple[int, int, int]
    vote: float
    grown: float
    kept: float

    @classmethod
    def of(cls, step: Step) -> Discrete:
        """What a step does that `discrete_step` has made."""
        assert isinstance(step.hypothesis, AnyStump)
        sign = step.hypothesis.polarity
        negative, positive = step.factors[FIRST_REGION][0]
        kept, grown = (positive, negative) if sign > 0 else (negative, positive)
        return cls(signs(step.hypothesis), step.votes[FIRST_REGION][0] * sign, grown, kept)


class Change(NamedTuple):
    """What a round does to the samples.

    Attributes
    ----------
    cut : Cut, or hypothesis of a categorical feature, or None
        See `steps.Steps.write`.
    regions : array (n_samples,) of uint8, or None
        The region of each sample, if `cut` is not known.
    discrete : Discrete
    rescale_exponent : int
    is_first : bool
        Whether the histograms are empty, so that all weights are added up.
    """

    cut: Parting | None
    regions: Array | None
    discrete: Discrete
    rescale_exponent: int
    is_first: bool = False

    @property
    def anew(self) -> bool:
        """Whether the histograms are added up anew from all weights, not updated."""
        return self.is_first or self.rescale_exponent != 0

    @property
    def rescale_for_search(self) -> int:
        """The argument of `weigh`: the exponent, or -1 if what earlier scans found is void."""
        is_known = self.rescale_exponent >= 0 and self.discrete.grown >= self.discrete.kept
        return min(self.rescale_exponent, _MOST_RESCALE) if is_known else -1


FIRST = Change(None, None, Discrete((1, 1, 1), 0.0, 1.0, 1.0), 0, is_first=True)
"""Nothing changes; all weights are added up."""


class UpdatePass:
    """The samples of one run on the device.

    Parameters
    ----------
    table : CudaTable
    labels : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.

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
    """

    def __init__(self, table: CudaTable, labels: Array, sample_weight: Array) -> None:
        device = table.device
        units = FirstWeights(device.array(sample_weight))
        self.signed = units.as_floats * device.array(labels)
        self._first_weights = units.forget_floats()
        self._device = device
        self._scores = device.xp.zeros(table.n_samples, dtype=np.float64)
        self._steps = Steps(table, EFFECT.itemsize // 8)
        self._effect = self._steps.words.view(EFFECT)
        self.rescale_at = self._steps.words_at + EFFECT.fields["rescale_exponent"][1]  # type: ignore[index]
        self.histograms = Histograms(table)
        self.sums = no_sums(device)
        self._samples = self._record()

    def write(self, change: Change) -> None:
        """Write what a round does, for `queue`. The device must have finished the last round."""
        self._steps.write(change.cut, change.regions, clears=change.anew)
        discrete = change.discrete
        self._effect[0] = (
            *discrete.signs, discrete.vote, discrete.grown, discrete.kept, change.anew,
            change.rescale_for_search,
        )  # fmt: skip

    def queue(self) -> None:
        """Queue everything that a round does to the samples and the histograms."""
        device = self._device
        self._steps.queue()
        for step in self._steps.parts():
            device.launch(
                "advance", blocks_for(len(self._scores), device), THREADS, step,
                self._steps.words_at, self._samples, shared=SUMS.itemsize * THREADS,
            )  # fmt: skip
        self.histograms.queue_adding()

    def _record(self) -> np.ndarray:
        """The `Samples` of `update_pass.cu`; its arrays are not moved during the run."""
        address, units = self._device.address, self._first_weights
        return record(
            SAMPLES,
            signed_weights=address(self.signed),
            scores=address(self._scores),
            first_weights=0 if units.differing is None else address(units.differing),
            equal_weight=units.equal,
            sums=address(self.sums),
            layers=self.histograms.layers[0],
        )


class FirstWeights:
    """The integer weights of the first round.

    Parameters
    ----------
    sample_weight : array (n_samples,) of float64
        Positive; on the device.
    n_copies : int, optional
        How many outputs count each weight; see `integer_weights.in_units`.

    Attributes
    ----------
    as_floats : array (n_samples,) of float64
        The integers as whole numbers, until `forget_floats`.
    differing : array (n_samples,) of int64, or None
        The integers; None if all are equal.
    equal : int
        The integer of every sample, if all are equal.
    total : int
        Their sum.
    """

    def __init__(self, sample_weight: Array, n_copies: int = 1) -> None:
        self.as_floats = in_units(sample_weight, n_copies)
        smallest, largest = float(self.as_floats.min()), float(self.as_floats.max())
        self.differing = self.as_floats.astype(np.int64) if smallest < largest else None
        self.equal = int(smallest)
        of_equal = self.equal * int(sample_weight.shape[0])
        self.total = of_equal if self.differing is None else int(self.differing.sum())

    def forget_floats(self) -> FirstWeights:
        """Free the memory of `as_floats`."""
        del self.as_floats
        return self


def no_sums(device: CudaDevice) -> Array:
    """`NO_SUMS` of `common.cuh` on the device, (1, 4) of int64."""
    return device.array(np.asarray([[0, 0, 0, TOP]]))
