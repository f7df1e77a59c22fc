"""A shard that computes with the CPU's kernels: rows are coded and added up as on one machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.key_ranges import Grouped, KeyRanges, cells_of_terms
from gpustump.engines.cluster.known_bins import KnownBins, Members
from gpustump.engines.cluster.questions import (
    NO_KEYS,
    Cells,
    Changes,
    Coded,
    Looked,
    Majority,
    Ranges,
    Run,
    Tally,
    counts_of,
    no_sums_by_category,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.bin_sums import BinSums
from gpustump.engines.cpu.histogram.category_sums import category_sums
from gpustump.engines.cpu.histogram.estimates import Move, round_to_fit
from gpustump.engines.cpu.loss.loss import LossByOutput
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.loss.regions import mark_by_value
from gpustump.engines.cpu.loss.terms import Terms, region_sums
from gpustump.engines.cpu.table.codes import CodedTable, prepare_by_cuts
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.cpu.table.source_table import Source
from gpustump.engines.integer_weights import scaled
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, Partition


class KernelShard:
    """Some rows of a table; see `questions.Shard`.

    Parameters
    ----------
    samples : Samples
        At least one.
    n_threads : int
    """

    _table: CodedTable
    _bins: KnownBins
    _columns: CategoryColumns | None
    _rows: _Rows
    _objective: Objective

    def __init__(self, samples: Samples, n_threads: int = 1) -> None:
        self.samples, self._team = samples, Team(n_threads)

    def code(
        self, cuts: list[np.ndarray], is_crowded: list[bool], categorical: Sequence[int] = ()
    ) -> Coded:
        """Code all rows."""
        own = [Cuts(*pair) for pair in zip(cuts, is_crowded, strict=True)]
        samples = self.samples
        rows = None if samples.rows is None else np.ascontiguousarray(samples.rows)
        source = Source(samples.values.T, rows, tuple(categorical))
        self._table, extremes = prepare_by_cuts(source, own, self._team)
        self._bins = KnownBins(self._table)
        self._columns = samples.categories(categorical)
        layout = self._table.layout
        count = np.diff(layout.offset, append=0)
        missing = layout.first + layout.n_bins
        count[missing] = self._table.n_missing
        low, high = extremes
        low[missing], high[missing] = NO_KEYS
        return Coded(count, low, high, counts_of(self._columns))

    def begin(self, run: Run) -> Tally:
        """Begin a run."""
        labels = self.samples.labels(run.objective, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        self._objective = run.objective
        self._rows = _Rows(self._table, labels, units, run.objective)
        return self._tally(self._rows.bin_sums())

    def advance(self, step: Step, majority: Majority | None = None) -> Tally:
        """Follow a step."""
        if step.cut is not None and step.cut.position is None:
            self._rows.regions[:] = FIRST  # for missing values, too
        else:
            self._give(step.hypothesis, self._rows.regions)
        return self._tally(self._rows.advance(step, majority))

    def cells(self, ranges: Ranges) -> Cells:
        """The sums over the cells of ranges, from the samples of the bins they lie in."""
        is_new = (np.diff(ranges.feature, prepend=-1) != 0) | (np.diff(ranges.bin, prepend=-1) != 0)
        first = np.flatnonzero(is_new)
        feature, ends = ranges.feature[first], np.append(first, len(ranges.bin))
        members = self._bins.of(feature, ranges.bin[first])
        return Cells(*self._rows.cells(members, KeyRanges(ends, *ranges[2:])))

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """The sums over the bins of some features, and over parts of bins."""
        return self._rows.sums_of(features), self.cells(ranges) if len(ranges.low) else None

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """The sums over the regions of a hypothesis."""
        regions = np.empty(len(self.samples), dtype=np.uint8)
        self._give(hypothesis, regions)
        return self._rows.region_sums(regions)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses, (n, n_regions, n_outputs, 2) of int64."""
        return np.stack([self.region_sums(own) for own in hypotheses])

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._rows.smallest_weight()

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        return self._rows.weights()

    def _tally(self, bins: np.ndarray | Changes) -> Tally:
        by_category = no_sums_by_category(self._objective)
        if self._columns is not None:
            by_category = category_sums(self._columns, self._rows.terms, self._team)
        return Tally(self._rows.numbers, bins, by_category)

    def _give(self, hypothesis: Partition, found: np.ndarray) -> None:
        """Write the number of each sample's region to `found`."""
        values = self.samples.values_of(hypothesis.feature)
        mark_by_value(values, hypothesis, found, self._team)


class _Rows:
    """What a run keeps of a shard's samples.

    Attributes
    ----------
    regions : ndarray (n_samples,) of uint8
        The region that each sample is in; set before `advance`.
    """

    def __init__(
        self, table: CodedTable, labels: np.ndarray, units: np.ndarray, objective: Objective
    ) -> None:
        self._n_samples, self._first, self._team = table.n_samples, table.layout.first, table.team
        self._is_folded = objective.loss == "softmax" or objective.is_of_quantity
        self._has_signs, self._loss = objective.has_signs, loss_of(labels, units, objective)
        self._bins = BinSums(table, self._loss.terms, objective)
        self.regions = np.zeros(table.n_samples, dtype=np.uint8)
        self._sums = self._loss.begin(table.team)
        self._bins.add_up()

    @property
    def terms(self) -> Terms:
        return self._loss.terms

    @property
    def numbers(self) -> np.ndarray:
        return self._sums.numbers

    def bin_sums(self) -> np.ndarray:
        self._bins.look()
        return self._folded(self._bins.sums)

    def sums_of(self, features: np.ndarray) -> np.ndarray:
        return self._folded(self._bins.sums_of(features))

    def advance(self, step: Step, majority: Majority | None) -> np.ndarray | Changes:
        if self._has_signs and step.rescale_exponent == 0:
            assert isinstance(self._loss, LossByOutput)
            self._sums = self._bins.update(self._loss, step, self.regions)
            return self.bin_sums()
        if majority is None:
            self._advance_samples(step)
            self._bins.add_up()
            return self.bin_sums()
        factor, slope = np.asarray(majority.factor), np.asarray(majority.slope)
        move = Move(majority.region, majority.shift, factor, slope, np.zeros_like(slope))
        changes = self._bins.changes(
            lambda: self._advance_samples(step), self.regions, move, np.zeros_like(self._bins.sums)
        )
        numbers = np.empty(changes.shape, dtype=np.int32)
        shift = np.empty((len(changes), len(self._first)), dtype=np.uint8)
        round_to_fit(changes, self._first, numbers, shift)
        return Changes(numbers, shift)

    def cells(self, members: Members, about: KeyRanges) -> Grouped:
        return cells_of_terms(members, about, self._loss.terms)

    def region_sums(self, regions: np.ndarray) -> np.ndarray:
        return region_sums(self._loss.terms, regions, 0, self._n_samples)

    def smallest_weight(self) -> int:
        return self._loss.smallest_weight()

    def weights(self) -> np.ndarray:
        return self._loss.weights

    def _advance_samples(self, step: Step) -> None:
        self._sums = self._loss.advance(step, self.regions, self._team)

    def _folded(self, planes: np.ndarray) -> np.ndarray:
        """The planes of `questions.bin_planes_of`."""
        if not self._is_folded:
            return planes
        by_output = planes.reshape(-1, 4, planes.shape[1])
        folded = np.stack([by_output[:, 0], by_output[:, 1], by_output[:, 2] + by_output[:, 3]], 1)
        return np.ascontiguousarray(folded.reshape(-1, planes.shape[1]))
