"""The samples of a run with discrete votes of one output, and the sums of their weights by bins.

One pass over the samples computes their next weights and scores, and updates the histograms
(`sweep`). The search in these sums is in `signed_search`.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.histogram.histograms import (
    Listed,
    TeamHistograms,
    add,
    parts_of_columns,
    pieces_of,
    slot_sums,
)
from gpustump.engines.cpu.histogram.sweep import advance, sweep
from gpustump.engines.cpu.loss.samples import FIRST_SUMS, Samples, Sums, Update
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import Histograms
from gpustump.engines.threads import Shared

_PLANES = np.asarray([(0, 0), (1, 0)])
"""For `slot_sums`: positive and negative samples."""


class SignedRun:
    """The samples of one run.

    Parameters
    ----------
    table : CodedTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.

    Attributes
    ----------
    samples : Samples
    sums : Sums
        Over all samples, in this round.
    first_weight : int
        The sum of the weights before the first round.
    """

    def __init__(self, table: CodedTable, y: np.ndarray, units: np.ndarray) -> None:
        self._table = table
        self.samples = _first_samples(y, units)
        self._histograms = TeamHistograms(2, 1, table.columns, table.team)
        by_samples = self._histograms.by_samples
        self._changes = None if by_samples else Listed.empty(table.n_samples)
        self._unused: Listed | None = None
        self.advance(FIRST_SUMS)
        self.first_weight = self.sums.weight

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        weights: np.ndarray = np.abs(self.samples.signed)
        return weights

    @property
    def units(self) -> np.ndarray:
        """The integer weights, each with the sign of its label, (n_samples,) of int64."""
        signed = self.samples.signed
        units: np.ndarray = np.copysign(np.ceil(np.abs(signed)), signed).astype(np.int64)
        return units

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return int(np.ceil(np.abs(self.samples.signed).min()))

    def bin_sums(self) -> np.ndarray:
        """The weights of positive and of negative samples in each bin, (2, n_slots) of int64."""
        table = self._table
        if self._unused is not None:
            self._unused = None
            self.advance(FIRST_SUMS)
        return slot_sums(self._histograms.total, _PLANES, table.bundles, table.layout, table.team)

    def advance_only(self, update: Update) -> None:
        """Compute the next weights and scores; histograms are added up when they are needed."""
        changes = self._unused = (
            self._unused or self._changes or Listed.empty(self._table.n_samples)
        )
        self.sums = self._advanced(update, changes)

    def advance(self, update: Update) -> None:
        """Compute the next weights and scores, and update the histograms.

        `samples.votes` must hold the signs that the step gives to the samples.
        """
        if update.anew:
            self._histograms.total.clear()
        if self._changes is None:
            self.sums = self._swept_by_samples(update)
        else:
            self.sums = self._swept_by_columns(update, self._changes)

    def _swept_by_samples(self, update: Update) -> Sums:
        """Every thread takes some of the samples, with histograms of its own."""
        table, samples, sums = self._table, self.samples, list[tuple[int, ...]]()
        pieces = Shared(pieces_of(table.n_samples, table.team))

        def take(own: Histograms) -> None:
            sums.extend(sweep(samples, update, *part, table.columns, own) for part in pieces)

        self._histograms.add(take)
        return _added(sums)

    def _swept_by_columns(self, update: Update, changes: Listed) -> Sums:
        """Every thread takes some of the samples, and then some of the columns for all samples."""
        table, columns = self._table, self._table.columns
        sums = self._advanced(update, changes)
        table.team.each(
            lambda part: add(columns, self._histograms.total, 0, *part, changes),
            parts_of_columns(columns, table.team),
        )
        return sums

    def _advanced(self, update: Update, changes: Listed) -> Sums:
        """Every thread takes some of the samples; their changes are listed."""
        table, sums = self._table, list[tuple[int, ...]]()

        def take_samples(part: tuple[int, int]) -> None:
            sums.append(advance(self.samples, update, *part, changes))

        table.team.each(take_samples, pieces_of(table.n_samples, table.team))
        return _added(sums)


def _first_samples(y: np.ndarray, units: np.ndarray) -> Samples:
    """The samples before the first round."""
    differ = units.min() < units.max()
    return Samples(
        signed=units * y,
        scores=np.zeros(len(units)),
        first_weights=(units if differ else units[:1]).astype(np.int64),
        votes=np.zeros(len(units), dtype=np.int8),
    )


def _added(sums: list[tuple[int, ...]]) -> Sums:
    return Sums(*map(sum, zip(*sums, strict=True)))
