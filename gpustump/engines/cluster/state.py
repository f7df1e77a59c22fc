"""A boosting run whose samples are spread over shards, with the search of the CPU engine.

The sums over bins and categories come with the answer to each step. So a round takes one message
for the step, and one or two for the bins that may hold the best cut.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cluster.places import ClusterPlace
from gpustump.engines.cluster.questions import Run, Tally, unfolded
from gpustump.engines.contract import Cut, RegionSums, Step, Totals, split_at
from gpustump.engines.cpu.drift import Expected
from gpustump.engines.cpu.estimates import Move, move_slots
from gpustump.engines.cpu.signed_search import SignedSearch
from gpustump.engines.cpu.split_search import Counts, SplitSearch
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import Partition

if TYPE_CHECKING:
    from gpustump.engines.cluster.table import ClusterTable


class ClusterState:
    """The state of one run; see `contract.State`.

    Parameters
    ----------
    table : ClusterTable
    run : Run
    """

    def __init__(self, table: ClusterTable, run: Run) -> None:
        self._table, self._run, self._shards = table, run, table.shards
        layout, team = table.bins.layout, Team(1)
        self._place = ClusterPlace(self._shards, table.bins, run.search)
        self._bins = _Bins(np.diff(layout.offset, append=0))
        self._bins.n_inside[layout.first + layout.n_bins] = table.n_missing
        self._signed = SignedSearch(layout, run.search, team) if run.search.has_signs else None
        counts = Counts(table.n_samples, table.n_missing)
        self._split = SplitSearch(layout, counts, run.search, team)
        self._found: tuple[Partition, Cut] | None = None
        self._take(self._shards.ask("begin", run))
        self._first_weight = sum(self._shards.ask("scaled_total", run.exponent))

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        first, second = (int(own) for own in self._by_output.sum(axis=0))
        return Totals(first, second, self._misclassified, self._first_weight, self._table.n_samples)

    @property
    def weights(self) -> Any:
        """Float64 weights, shard after shard."""
        return np.concatenate(self._shards.ask("weights"))

    def smallest_weight(self) -> int:
        """The smallest second integer."""
        return int(min(self._shards.ask("smallest_weight")))

    def best_cut(self) -> Cut:
        """The largest cut."""
        self._place.begin_round()
        if self._signed is not None:
            signed = int(self._by_output[0, 0])
            cut = self._signed.best(self._place, self._bins.sums, signed)
        else:
            totals = [(first, second) for first, second in self._by_output.tolist()]
            cut = self._split.best(self._place, self._bins, totals)
        if cut.position is not None and cut.position + 1 < self._n_present(cut.feature):
            self._table.note_threshold(cut.feature, cut.position, self._place)
        self._found = (split_at(self._table, cut), cut)
        return cut

    def region_sums(self, hypothesis: Partition) -> RegionSums:
        """For each region and output the sums of both integers of its samples."""
        if self._found is not None and self._found[0] == hypothesis:
            known = self._split.sums_of(self._found[1])
            if known is not None:
                return known
        return _as_tuples(np.sum(self._shards.ask("region_sums", hypothesis), axis=0))

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> list[RegionSums]:
        """`region_sums` of each of several hypotheses, by one message."""
        if not hypotheses:
            return []
        found = np.sum(self._shards.ask("sums_over_each", tuple(hypotheses)), axis=0)
        return [_as_tuples(own) for own in found]

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `category_table.SummingState`."""
        return self._by_category

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        if self._signed is not None:
            self._signed.follow(step)
        elif (known := self._split.follow(step)) is not None:
            self._bins.expect(known[1])
        self._found = None
        self._take(self._shards.ask("advance", step))

    def _take(self, tallies: list[Tally]) -> None:
        """Add up the shards' sums of a round."""
        numbers = np.sum([own.numbers for own in tallies], axis=0)
        bins = functools.reduce(np.add, (own.bins for own in tallies))
        sums = np.take(bins, self._table.bins.kept, axis=1)
        self._by_category = functools.reduce(np.add, (own.categories for own in tallies))
        self._by_output, self._misclassified = numbers[:-1].reshape(-1, 2), int(numbers[-1])
        self._bins.renewed(unfolded(sums, self._run.search))

    def _n_present(self, feature: int) -> int:
        return self._table.n_samples - int(self._table.n_missing[feature])


def _as_tuples(sums: np.ndarray) -> RegionSums:
    """Sums (n_regions, n_outputs, 2) as Python's own numbers."""
    return [[(first, second) for first, second in own] for own in sums.tolist()]


class _Bins:
    """The sums over the bins of all features, never estimates; see `cpu.split_search.Bins`.

    Parameters
    ----------
    n_inside : ndarray (n_slots,) of int64
        How many samples each slot holds.
    """

    is_exact = True
    sums: np.ndarray
    off: np.ndarray
    _expected: Expected

    def __init__(self, n_inside: np.ndarray) -> None:
        self.n_inside = n_inside
        self._moved: Expected | None = None

    def renewed(self, sums: np.ndarray) -> None:
        """Take the sums (n_planes, n_slots) of int64 of a round."""
        self.sums, self.off = sums, np.zeros(sums.shape)
        self._expected = self._moved or Expected(sums, self.off)
        self._moved = None

    def look(self) -> Expected:
        """What the sums would be if all samples had followed the last step as the bulk did."""
        return self._expected

    def renew(self, features: np.ndarray) -> np.ndarray:
        """The features (all that are given), whose sums are exact."""
        return features

    def expect(self, move: Move) -> None:
        """Note what the sums will be if all samples follow a step as the bulk does."""
        sums, off = self.sums.copy(), np.zeros(self.sums.shape)
        if len(sums) > len(move.factor):
            sums[2:], off[2:] = _second_by_label(sums)
        move_slots(sums, off, self.n_inside, move, np.zeros(off.shape))
        self._moved = Expected(sums, off)


def _second_by_label(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of the sums of second integers by label, from the sum over both labels.

    What a step does to the first integers of a label depends on the sum of that label's second
    integers. No second integer is larger than the absolute first one, so each of the two sums lies
    between bounds; the middle is taken.

    Parameters
    ----------
    sums : ndarray (4, n_slots) of int64
        For one output, as `questions.unfolded` makes them.

    Returns
    -------
    sums : ndarray (2, n_slots) of int64
        For the label +1, and for -1.
    off : ndarray (2, n_slots) of float64
        The largest error of each.
    """
    both = sums[2] + sums[3]
    least, most = np.maximum(0, both - sums[1]), np.minimum(both, sums[0])
    positive = least + (most - least) // 2
    off = (most - positive).astype(np.float64)
    return np.stack([positive, both - positive]), np.stack([off, off])
