"""A round's pass over the samples, as `sweep.cu` does it: scores, weights, histograms.

A `Sweep` holds the vectors of one element for each sample, and queues the kernels that advance them
by a round. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut, Discrete
from gpustump.engines.cuda.device import THREADS, blocks_for
from gpustump.engines.cuda.layout import (
    CUT_CODES,
    EFFECT,
    PREDICTION,
    SAMPLES,
    SUMS,
    column_bits,
    padded,
    record,
    table_bytes,
)
from gpustump.engines.cuda.table import CudaTable
from gpustump.engines.integer_weights import TOP, in_units

_ALL_LEFT = 256
"""Instead of a cut's bin: every sample is on the left."""

_SIGNS_GIVEN = -1
"""Instead of a cut's bin: the predicted signs are given."""


class Change(NamedTuple):
    """What a round does to the samples.

    Attributes
    ----------
    cut : Cut or None
        The cut that the hypothesis stands for; None if there is none, or it is not known.
    signs : array (n_samples,) of int8, or None
        What the hypothesis predicts, if `cut` is not known.
    discrete : Discrete
    halvings : int
    is_first : bool
        The histograms are empty: add up all weights.
    """

    cut: Cut | None
    signs: Array | None
    discrete: Discrete
    halvings: int
    is_first: bool = False

    @property
    def anew(self) -> bool:
        """Whether the histograms are made anew from all weights, instead of being changed."""
        return self.is_first or self.halvings != 0


FIRST = Change(None, None, Discrete((1, 1, 1), 0.0, 1.0, 1.0), 0, is_first=True)
"""Nothing changes; all weights are added up."""


class Sweep:
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
    histograms : array (n_features, 2, 256) of int64
        The integer weight at each code, of negative and of positive samples.
    sums : array (1, 4) of int64
        The record `layout.SUMS` of the current integers; the kernel `weigh` reads and resets it.
    """

    def __init__(self, table: CudaTable, labels: Array, sample_weight: Array) -> None:
        device, n_samples = table.device, table.n_samples
        xp = device.xp
        weights = in_units(device.array(sample_weight))
        smallest, largest = float(weights.min()), float(weights.max())
        self._first_weights = weights.astype(np.int64) if smallest < largest else None
        self._equal_weight = int(smallest)
        self.signed = weights * device.array(labels)
        del weights
        self._table, self._device = table, device
        self._scores = xp.zeros(n_samples, dtype=np.float64)
        self._change = xp.zeros(padded(n_samples), dtype=np.int64)
        self._marks = xp.zeros(n_samples, dtype=np.uint32)
        self.histograms = xp.zeros((table.n_features, 2, 256), dtype=np.int64)
        self.sums = device.array(np.asarray([[0, 0, 0, TOP]]))
        self._samples = self._record()
        self._n_done = 0

    def queue(self, change: Change) -> None:
        """Queue everything that a round does to the samples and the histograms."""
        self._n_done += 1
        if change.anew:
            self._device.clear(self.histograms)
        self._queue_advance(change)
        device, bits = self._device, column_bits(self._device)
        for part in self._table.codes.parts():
            device.launch(
                f"add_{1 << bits}", part.grid, device.most_threads, part.codes, part.groups,
                part.n_groups, self._change, part.first, part.n, self.histograms,
                shared=table_bytes(bits),
            )  # fmt: skip

    def _queue_advance(self, change: Change) -> None:
        device, discrete = self._device, change.discrete
        prediction = self._prediction(change)
        effect = record(
            EFFECT,
            vote=discrete.vote,
            grown=discrete.grown,
            kept=discrete.kept,
            anew=change.anew,
        )
        for codes, n_samples in self._codes_of(change.cut):
            device.launch(
                "advance", blocks_for(n_samples, device), THREADS, codes, prediction, effect,
                self._samples, shared=SUMS.itemsize * THREADS,
            )  # fmt: skip

    def _record(self) -> np.ndarray:
        """The `Samples` of `sweep.cu`; its arrays stay where they are for the whole run."""
        address, first_weights = self._device.address, self._first_weights
        return record(
            SAMPLES,
            signed_weights=address(self.signed),
            scores=address(self._scores),
            first_weights=0 if first_weights is None else address(first_weights),
            equal_weight=self._equal_weight,
            marks=address(self._marks),
            change=address(self._change),
            sums=address(self.sums),
        )

    def _prediction(self, change: Change) -> np.ndarray:
        """The `Prediction` of `sweep.cu`; queues the marks that it needs."""
        cut, is_inside = change.cut, False
        signs, bin_ = 0, _ALL_LEFT
        left = missing = 1
        if change.signs is not None:
            signs, bin_ = self._device.address(change.signs), _SIGNS_GIVEN
        if cut is not None:
            left, missing = cut.polarity, cut.missing
            if cut.position is not None:
                bin_, begin, end = self._table.bins.at(cut.feature, cut.position)
                is_inside = cut.position + 1 < end
                if is_inside:
                    self._mark(cut.feature, begin, cut.position + 1)
        return record(
            PREDICTION,
            signs=signs,
            cut_bin=bin_,
            is_inside=is_inside,
            round=self._n_done,
            left=left,
            missing=missing,
        )

    def _mark(self, feature: int, begin: int, end: int) -> None:
        """Mark the samples between two sorted positions: a bin's samples on the left of the cut."""
        order = self._table.orders.address(feature)
        self._device.launch(
            "mark", blocks_for(end - begin, self._device), THREADS, order, begin, end,
            self._n_done, self._marks,
        )  # fmt: skip

    def _codes_of(self, cut: Cut | None) -> Iterator[tuple[np.ndarray, int]]:
        """The codes of the cut's feature, part by part: `CutCodes` of `sweep.cu`, n_samples."""
        table = self._table
        if cut is None or cut.position is None:  # the kernel reads no codes
            yield _cut_codes(0, 0, 0, 0, table.n_samples), table.n_samples
            return
        group, place = table.group_of(cut.feature)
        for part in table.codes.parts_of(group):
            n_samples = min(part.n, table.n_samples - part.first)
            address = self._device.address(part.codes)
            codes = _cut_codes(address, group.width_bits, place, part.first, n_samples)
            yield codes, n_samples


def _cut_codes(
    codes: int, width_bits: int, feature: int, first_sample: int, n_samples: int
) -> np.ndarray:
    return record(
        CUT_CODES,
        codes=codes,
        width_bits=width_bits,
        feature=feature,
        first_sample=first_sample,
        n_samples=n_samples,
    )
