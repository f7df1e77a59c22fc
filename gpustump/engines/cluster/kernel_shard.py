"""A shard that computes with the CPU's kernels: rows are coded and added up as on one machine."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.questions import (
    NO_KEYS,
    Bulk,
    Changes,
    Coded,
    Looked,
    Ranges,
    Run,
    Tally,
    Units,
    bin_planes_of,
    counts_of,
    narrowed,
    no_sums_by_category,
)
from gpustump.engines.cluster.samples import Samples
from gpustump.engines.contract import Search, Step
from gpustump.engines.cpu.bin_sums import BinSums
from gpustump.engines.cpu.category_sums import category_sums
from gpustump.engines.cpu.codes import CodedTable, prepare_by_cuts
from gpustump.engines.cpu.cuts import Cuts
from gpustump.engines.cpu.estimates import Move
from gpustump.engines.cpu.key_ranges import (
    KeyRanges,
    KnownBins,
    grouped,
    regions_of,
    signed_unit_sums,
    unit_sums,
)
from gpustump.engines.cpu.losses import loss_of
from gpustump.engines.cpu.samples import Update
from gpustump.engines.cpu.signed_run import SignedRun
from gpustump.engines.cpu.source_table import Source
from gpustump.engines.cpu.terms import PieceSums, Terms, region_sums
from gpustump.engines.integer_weights import scaled
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, N_REGIONS, Partition, signs


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
    _search: Search

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
        labels = self.samples.labels(run.search.n_outputs, run.positive)
        units = scaled(self.samples.weights, run.exponent)
        kind = _SignedRows if run.search.has_signs else _SplitRows
        self._rows, self._search = kind(self._table, labels, units, run.search), run.search
        return self._tally(self._rows.bin_sums())

    def advance(self, step: Step, bulk: Bulk | None = None) -> Tally:
        """Follow a step."""
        inside = self._regions(step.hypothesis)
        if step.cut is not None and step.cut.position is None:
            inside[:] = FIRST  # a constant does not separate missing values from others
        return self._tally(self._rows.advance(step, inside, bulk))

    def units(self, ranges: Ranges) -> Units:
        """The sums over the units of ranges, from the samples of the bins they lie in."""
        is_new = (np.diff(ranges.feature, prepend=-1) != 0) | (np.diff(ranges.bin, prepend=-1) != 0)
        first = np.flatnonzero(is_new)
        feature, ends = ranges.feature[first], np.append(first, len(ranges.bin))
        found, keys = self._bins.of(feature, ranges.bin[first])
        about = KeyRanges(ends, ranges.low, ranges.high, ranges.shift)
        units, unit = grouped(keys, found.ends, about)
        return Units(*units, self._rows.unit_sums(found.samples, unit, len(units.size)))

    def look(self, features: np.ndarray, ranges: Ranges) -> Looked:
        """The sums over the bins of some features, and over parts of bins."""
        return self._rows.sums_of(features), self.units(ranges) if len(ranges.low) else None

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """The sums over the regions of a hypothesis."""
        return self._rows.region_sums(self._regions(hypothesis))

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses, (n, n_regions, n_outputs, 2) of int64."""
        return np.stack([self.region_sums(own) for own in hypotheses])

    def smallest_weight(self) -> int:
        """The smallest second integer."""
        return self._rows.smallest_weight()

    def weights(self) -> np.ndarray:
        """See `contract.State.weights`."""
        return self._rows.weights()

    def _tally(self, bins: np.ndarray | Changes) -> Tally:
        by_category = no_sums_by_category(self._search)
        if self._columns is not None:
            by_category = category_sums(self._columns, self._rows.terms, self._team)
        return Tally(self._rows.numbers, bins, by_category)

    def _regions(self, hypothesis: Partition) -> np.ndarray:
        return regions_of(self.samples.values_of(hypothesis.feature), hypothesis, self._team)


class _Rows(Protocol):
    """What a run keeps of a shard's samples."""

    @property
    def terms(self) -> Terms: ...

    @property
    def numbers(self) -> np.ndarray:
        """See `questions.Tally`."""

    def bin_sums(self) -> np.ndarray:
        """See `questions.Tally`."""

    def sums_of(self, features: np.ndarray) -> np.ndarray:
        """Those of some features."""

    def advance(self, step: Step, inside: np.ndarray, bulk: Bulk | None) -> np.ndarray | Changes:
        """Follow a step; `inside` (n_samples,) of uint8 says which region each sample lies in.

        Returns the sums over bins, or their changes.
        """

    def unit_sums(self, samples: np.ndarray, unit: np.ndarray, n_units: int) -> np.ndarray:
        """See `key_ranges.unit_sums`."""

    def region_sums(self, inside: np.ndarray) -> np.ndarray: ...

    def smallest_weight(self) -> int: ...

    def weights(self) -> np.ndarray: ...


class _SignedRows:
    """Discrete votes of one output."""

    def __init__(
        self, table: CodedTable, labels: np.ndarray, units: np.ndarray, search: Search
    ) -> None:
        self._run, self._layout = SignedRun(table, labels, units), table.layout

    @property
    def terms(self) -> Terms:
        return Terms(self._run.units[np.newaxis], np.empty((0, 0), dtype=np.int64))

    @property
    def numbers(self) -> np.ndarray:
        return np.asarray(self._run.sums, dtype=np.int64)

    def bin_sums(self) -> np.ndarray:
        return self._run.bin_sums()

    def sums_of(self, features: np.ndarray) -> np.ndarray:
        slots = [self._layout.slots(feature) for feature in features.tolist()]
        sums = self._run.bin_sums()
        return np.concatenate([sums[:, own.start : own.stop + 1] for own in slots], axis=1)

    def advance(self, step: Step, inside: np.ndarray, bulk: Bulk | None) -> np.ndarray:
        by_region = np.asarray(signs(step.discrete_hypothesis), dtype=np.int8)
        np.take(by_region, inside, out=self._run.samples.votes)
        self._run.advance(Update.of(step))
        return self._run.bin_sums()

    def unit_sums(self, samples: np.ndarray, unit: np.ndarray, n_units: int) -> np.ndarray:
        return signed_unit_sums(self._run.samples.signed, samples, unit, n_units)

    def region_sums(self, inside: np.ndarray) -> np.ndarray:
        units = self._run.units
        parts = [units[inside == number] for number in range(N_REGIONS)]
        return np.asarray([[(own.sum(), np.abs(own).sum())] for own in parts], dtype=np.int64)

    def smallest_weight(self) -> int:
        return self._run.smallest_weight()

    def weights(self) -> np.ndarray:
        return self._run.weights


class _SplitRows:
    """Other votes, whose integers all change in every round."""

    def __init__(
        self, table: CodedTable, labels: np.ndarray, units: np.ndarray, search: Search
    ) -> None:
        self._n_samples, self._first = table.n_samples, table.layout.first
        self._is_folded = search.votes == "newton" and bin_planes_of(search) % 4 > 0
        self._loss = loss_of(labels, units, search)
        self._bins = BinSums(table, self._loss.terms, search)
        self._take(self._loss.begin)

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

    def advance(self, step: Step, inside: np.ndarray, bulk: Bulk | None) -> np.ndarray | Changes:
        work = functools.partial(self._loss.advance, step, inside)
        if bulk is None:
            self._take(work)
            return self.bin_sums()
        make, found = _noting(work)
        factor, slope = np.asarray(bulk.factor), np.asarray(bulk.slope)
        move = Move(bulk.region, bulk.shift, factor, slope, np.zeros_like(slope))
        changes = self._bins.changes(make, inside, move)
        self._sums = functools.reduce(operator.add, found)
        return narrowed(changes, self._first)

    def unit_sums(self, samples: np.ndarray, unit: np.ndarray, n_units: int) -> np.ndarray:
        return unit_sums(self._loss.terms, samples, unit, n_units)

    def region_sums(self, inside: np.ndarray) -> np.ndarray:
        return region_sums(self._loss.terms, inside, 0, self._n_samples)

    def smallest_weight(self) -> int:
        return self._loss.smallest_weight()

    def weights(self) -> np.ndarray:
        return self._loss.weights

    def _take(self, work: Callable[[int, int], PieceSums]) -> None:
        """Compute the terms of all samples by `work`, and add them up over the bins."""
        make, found = _noting(work)
        self._bins.add_up(make)
        self._sums = functools.reduce(operator.add, found)

    def _folded(self, planes: np.ndarray) -> np.ndarray:
        """The planes of `questions.bin_planes_of`."""
        if not self._is_folded:
            return planes
        by_output = planes.reshape(-1, 4, planes.shape[1])
        folded = np.stack([by_output[:, 0], by_output[:, 1], by_output[:, 2] + by_output[:, 3]], 1)
        return np.ascontiguousarray(folded.reshape(-1, planes.shape[1]))


def _noting(
    work: Callable[[int, int], PieceSums],
) -> tuple[Callable[[int, int], None], list[PieceSums]]:
    """The same work without an answer, and the list that takes the answers."""
    found = list[PieceSums]()

    def make(low: int, high: int) -> None:
        found.append(work(low, high))

    return make, found
