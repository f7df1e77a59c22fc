"""A shard that computes with the CPU's kernels: rows are coded and added up as on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.key_ranges import Asked, cells_of_terms
from gpustump.engines.cluster.known_bins import KnownBins
from gpustump.engines.cluster.questions import (
    NO_KEYS,
    Cells,
    Changes,
    Coded,
    Looked,
    Ranges,
    Run,
    Tally,
    narrowed,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.histogram.category_sums import category_sums
from gpustump.engines.cpu.histogram.estimates import Move
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.loss.regions import mark_by_value
from gpustump.engines.cpu.loss.terms import SampleSums, region_sums
from gpustump.engines.cpu.table.codes import CodedTable, prepare_by_cuts
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.cpu.table.source_table import Source
from gpustump.engines.integer_weights import scaled
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, Partition

if TYPE_CHECKING:
    from gpustump.engines.cpu.loss.quantile_loss import QuantileLoss


class KernelShard:
    """Some rows of a table; see `questions.Shard`.

    Parameters
    ----------
    samples : Samples
        At least one.
    n_threads : int
    """

    _table: CodedTable
    _known: KnownBins
    _columns: CategoryColumns | None
    _objective: Objective
    _loss: Loss
    _bins: BinSums
    _sums: SampleSums
    _regions: np.ndarray  # of the samples, (n_samples,) of uint8

    def __init__(self, samples: Samples, n_threads: int = 1) -> None:
        self.samples, self._team = samples, Team(n_threads)

    def code(self, cuts: list[Cuts], categorical: Sequence[int] = ()) -> Coded:
        """Code all rows."""
        samples = self.samples
        rows = None if samples.rows is None else np.ascontiguousarray(samples.rows)
        source = Source(samples.values.T, rows, tuple(categorical))
        self._table, extremes = prepare_by_cuts(source, cuts, self._team)
        self._known = KnownBins(self._table)
        self._columns = samples.categories(categorical)
        layout = self._table.layout
        count, missing = layout.counts(self._table.n_missing), layout.first + layout.n_bins
        low, high = extremes
        low[missing], high[missing] = NO_KEYS
        counts = None if self._columns is None else self._columns.counts
        return Coded(count, low, high, counts, follows_steps=True)

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.objective, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        self._objective, self._loss = run.objective, loss_of(labels, units, run.objective)
        self._bins = BinSums(self._table, self._loss.terms, run.objective)
        self._regions = np.zeros(len(self.samples), dtype=np.uint8)
        self._sums = self._loss.begin(self._team)
        self._bins.add_up()
        return self._tally(self._bin_sums())

    def advance(self, step: Step, move: Move | None = None) -> Tally:
        """Follow a step."""
        if step.cut is not None and step.cut.position is None:
            self._regions[:] = FIRST  # for missing values, too
        else:
            self._give(step.hypothesis, self._regions)
        sums = self._bins.take_step(self._loss, step, self._regions)
        if sums is not None:
            self._sums = sums
        elif move is None:
            self._advance_samples(step)
            self._bins.add_up()
        else:
            return self._tally(self._changes(step, move))
        return self._tally(self._bin_sums())

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges, from the samples of the bins they lie in."""
        asked = Asked.of(ranges)
        members = self._known.of(asked.feature, asked.bin)
        return cells_of_terms(ranges, asked, members, self._loss.terms)

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """The sums over the bins of some features, and over parts of bins."""
        sums = self._folded(self._bins.sums_of(features))
        return sums, self.cells(ranges) if len(ranges.low) else None

    def region_sums(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The sums over the regions of each of several hypotheses."""
        regions, found = np.empty(len(self.samples), dtype=np.uint8), []
        for hypothesis in hypotheses:
            self._give(hypothesis, regions)
            found.append(region_sums(self._loss.terms, regions, self._team))
        return np.stack(found)

    def residual_slices(
        self, hypothesis: Partition | None, first: np.ndarray, shift: int
    ) -> np.ndarray:
        """See `QuantileLoss.slices`; without a hypothesis all samples are in the first region. GPUs
        are not asked."""
        regions = np.zeros(len(self.samples), dtype=np.uint8)
        if hypothesis is not None:
            self._give(hypothesis, regions)
        return cast("QuantileLoss", self._loss).slices(regions, first, shift, self._team)

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._loss.smallest_weight()

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        return self._loss.weights

    def _tally(self, bins: np.ndarray | Changes) -> Tally:
        by_category = None
        if self._columns is not None:
            by_category = category_sums(self._columns, self._loss.terms, self._team)
        return Tally(self._sums.numbers, bins, by_category)

    def _changes(self, step: Step, move: Move) -> Changes:
        """Follow a step. Returns what it adds to the sums beside what it does to the majority."""
        nothing = np.zeros_like(self._bins.sums)
        changes = self._bins.changes(
            lambda: self._advance_samples(step), self._regions, move, nothing
        )
        return narrowed(changes, self._table.layout.first)

    def _advance_samples(self, step: Step) -> None:
        self._sums = self._loss.advance(step, self._regions, self._team)

    def _give(self, hypothesis: Partition, found: np.ndarray) -> None:
        """Write the number of each sample's region to `found`."""
        values = self.samples.values_of(hypothesis.feature)
        mark_by_value(values, hypothesis, found, self._team)

    def _bin_sums(self) -> np.ndarray:
        """The sums over all bins."""
        self._bins.look()
        return self._folded(self._bins.sums)

    def _folded(self, planes: np.ndarray) -> np.ndarray:
        """The planes of `questions.bin_planes_of`."""
        objective = self._objective
        if objective.loss != "softmax" and not objective.is_of_quantity:
            return planes
        by_output = planes.reshape(-1, 4, planes.shape[1])
        folded = np.stack([by_output[:, 0], by_output[:, 1], by_output[:, 2] + by_output[:, 3]], 1)
        return np.ascontiguousarray(folded.reshape(-1, planes.shape[1]))
