"""D_t on the device: the samples' state and the search for the next stump, advanced together.

This is `gpustump.distribution.Distribution` for a device's columns: the same integers as the
reference in every round. Those integers, and the two values beside the cut, come to the host in
one copy a round, unless a sorted order has to be asked for. `advance` queues all that follows from
a stump, the search for the next one included, and returns; whoever asks for a result waits.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.cuda.columns import DeviceColumns
from gpustump.cuda.search import Found, Search
from gpustump.cuda.sweep import FIRST, Step, Sweep
from gpustump.distribution import Factors
from gpustump.hypothesis import Hypothesis
from gpustump.scan import Cut, constant, sign_of


class CudaDistribution:
    """The state of one run.

    Parameters
    ----------
    columns : DeviceColumns
    y : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.
    """

    def __init__(self, columns: DeviceColumns, y: Array, sample_weight: Array) -> None:
        self._columns, self._device = columns, columns.device
        with self._device.active():
            self._sweep, self._search = columns.orders.making_room(
                lambda: (Sweep(columns, y, sample_weight), Search(columns))
            )
            self._queue(FIRST)
            self._first_mass = self.mass

    @property
    def total(self) -> int:
        """The integers' sum, each with the sign of its label."""
        return self._found().total

    @property
    def mass(self) -> int:
        """The sum of their absolute values."""
        return self._found().mass

    @property
    def training_error(self) -> float:
        """Share of the first round's weight that the ensemble gets wrong."""
        return self._found().mistaken / self._first_mass

    @property
    def weights(self) -> Array:
        """Float64 weights, (n_samples,); see `Distribution.weights`."""
        with self._device.active():
            return self._device.xp.abs(self._sweep.signed)

    def lightest(self) -> int:
        """The smallest integer weight."""
        return self._found().least

    def best_cut(self) -> Cut:
        """The cut of largest agreement; see `scan.best_cut`."""
        found = self._found()
        if abs(found.total) > found.agreement:  # always so if there is no split
            return constant(found.total)
        missing = sign_of(found.missing or found.total)
        return Cut(found.feature, found.position, found.polarity, missing, found.agreement)

    def agreement_of(self, stump: Hypothesis) -> int:
        """The weight that a stump gets right less what it gets wrong."""
        with self._device.active():
            predicted, signed = self._predicted(stump), self._sweep.signed
            xp = arrays.namespace_of(signed)
            units = xp.astype(xp.ceil(xp.abs(signed)), xp.int64)
            return int(xp.sum(xp.where((predicted > 0) == (signed > 0), units, -units)))

    def advance(self, stump: Hypothesis, cut: Cut | None, vote: float, factors: Factors) -> None:
        """Take a stump into the ensemble; see `Distribution.advance`."""
        with self._device.active():
            votes = self._predicted(stump).astype(np.int8) if cut is None else None
            self._queue(Step(cut, votes, vote, factors, anew=factors.halvings != 0))

    def _queue(self, step: Step) -> None:
        self._sweep.queue(step)
        self._search.queue(self._sweep, step.factors)

    def _found(self) -> Found:
        return self._search.found(self._sweep)

    def _predicted(self, stump: Hypothesis) -> Array:
        """What a stump says of every sample, -1.0 or 1.0, on the device."""
        return self._device.array(stump.on_values(self._columns.values(stump.feature)))
