"""A round's pass over the samples, as `sweep.cu` does it: votes, weights, scores, histograms.

What is here holds the vectors as long as the samples, and queues the kernels that take them a round
further; nothing waits for anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut, Discrete
from gpustump.engines.cuda.codes import Part
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.layout import SUMS, column_bits, padded, table_bytes
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.integer_weights import TOP, in_units

_ALL = 256
"""Instead of a cut's bin: every sample is on the left."""

_BY_VOTES = -1
"""Instead of a cut's bin: the votes are given."""


class Change(NamedTuple):
    """How the samples are taken a round further.

    Attributes
    ----------
    cut : Cut or None
        What the hypothesis was made from; None if there is none, or it is not known.
    votes : array (n_samples,) of int8, or None
        What the hypothesis predicts, if `cut` is not known.
    discrete : Discrete
    halvings : int
    is_first : bool
        The histograms are empty: add up all weights.
    """

    cut: Cut | None
    votes: Array | None
    discrete: Discrete
    halvings: int
    is_first: bool = False

    @property
    def anew(self) -> bool:
        """Whether all weights are added up, rather than what changes."""
        return self.is_first or self.halvings != 0


FIRST = Change(None, None, Discrete((1, 1, 1), 0.0, 1.0, 1.0), 0, is_first=True)
"""Nothing changes; all weights are added up."""


class Sweep:
    """The samples' state on the device.

    Parameters
    ----------
    columns : CudaTable
    y : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.

    Attributes
    ----------
    signed : array (n_samples,) of float64
        Weights in units of the integers, each with the sign of its label.
    histograms : array (n_features, 2, 256) of int64
        The weight at each code, of negative and of positive samples.
    sums : array (4,) of int64
        Of the integers: signed, absolute, the first round's that the ensemble gets wrong, and the
        least; `weigh` takes them and sets them back.
    """

    def __init__(self, columns: CudaTable, y: Array, sample_weight: Array) -> None:
        device, n_samples = columns.device, columns.n_samples
        xp = device.xp
        weights = in_units(device.array(sample_weight))
        lightest, heaviest = float(weights.min()), float(weights.max())
        self._masses = weights.astype(np.int64) if lightest < heaviest else None
        self._equal_mass = int(lightest)
        self.signed = weights * device.array(y)
        del weights
        self._columns, self._device = columns, device
        self._scores = xp.zeros(n_samples, dtype=np.float64)
        self._change = xp.zeros(padded(n_samples), dtype=np.int64)
        self._marks = xp.zeros(n_samples, dtype=np.uint32)
        self.histograms = xp.zeros((columns.n_features, 2, 256), dtype=np.int64)
        self.sums = device.array(np.asarray([0, 0, 0, TOP]))
        self._n_done = 0

    def queue(self, step: Change) -> None:
        """Queue all of a step."""
        self._n_done += 1
        if step.anew:
            self._device.clear(self.histograms)
        self._queue_advance(step)
        device, bits = self._device, column_bits(self._device)
        for part in self._columns.codes.parts():
            device.launch(
                f"add_{1 << bits}", part.grid, device.most_threads, part.codes, part.groups,
                part.n_groups, self._change, part.first, part.n, self.histograms,
                shared=table_bytes(bits),
            )  # fmt: skip

    def _queue_advance(self, step: Change) -> None:
        cut, discrete = step.cut, step.discrete
        bin_ = _ALL if step.votes is None else _BY_VOTES
        left = missing = 1
        is_parted = False
        if cut is not None:
            left, missing = cut.polarity, cut.missing
            if cut.position is not None:
                bin_, begin, end = self._columns.bins.at(cut.feature, cut.position)
                is_parted = cut.position + 1 < end
                if is_parted:
                    self._mark(cut.feature, begin, cut.position + 1)
        votes = 0 if step.votes is None else step.votes
        masses = 0 if self._masses is None else self._masses
        for part, width_bits, place in self._parts_with(cut):
            n = min(part.n, self._columns.n_samples - part.first)
            self._device.launch(
                "advance", blocks_for(n, self._device), THREADS, part.codes, width_bits, place,
                votes, bin_, int(is_parted), left, missing, self._marks, self._n_done,
                discrete.vote, discrete.grown, discrete.kept, int(step.anew), part.first, n,
                self.signed,
                self._scores, masses, self._equal_mass, self._change, self.sums,
                shared=8 * SUMS * THREADS,
            )  # fmt: skip

    def _mark(self, feature: int, begin: int, end: int) -> None:
        """Mark the samples between two sorted positions, the left side of a cut inside a bin."""
        order = self._columns.orders.address(feature)
        self._device.launch(
            "mark", blocks_for(end - begin, self._device), THREADS, order, begin, end,
            self._n_done, self._marks,
        )  # fmt: skip

    def _parts_with(self, cut: Cut | None) -> Iterator[tuple[Part, int, int]]:
        """The codes of the cut's feature, part by part: with their width and its place there."""
        columns = self._columns
        if cut is None or cut.position is None:  # no codes are looked at
            yield Part(self._change, self._change, 0, 0, 0, columns.n_samples), 0, 0
            return
        group, place = columns.group_of(cut.feature)
        for part in columns.codes.parts_of(group):
            yield part, group.width_bits, place
