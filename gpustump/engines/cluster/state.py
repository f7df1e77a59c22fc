"""A boosting run whose samples are spread over shards, with the search of the CPU engine.

The sums over bins and categories come with the answer to each step. So a round takes one message
for the step, and one or two for the bins that may hold the best cut.

Where a step parts few samples from many, shards add up the few, and what the step does to the sums
over the many is worked out here (`estimates`). The sums are estimates from then on. Those of
the features that may hold the best cut are asked for anew, with parts of their bins.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.engines.category_columns import CategoryColumns, joined_sums
from gpustump.engines.cluster.bins import CommonBins
from gpustump.engines.cluster.questions import Changes, Run, Tally, unfolded
from gpustump.engines.cluster.sums_source import ClusterSums
from gpustump.engines.cluster.table import ClusterTable
from gpustump.engines.contract import Beginning, Cut, Step, Totals, split_at
from gpustump.engines.cpu.histogram.estimates import Expected, Move, move_slots
from gpustump.engines.cpu.split.slices import NO_SPREAD
from gpustump.engines.cpu.split.split_search import Counts, SplitSearch
from gpustump.engines.objective import Objective
from gpustump.engines.quantiles import SLICE_BITS
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS, Partition
from gpustump.learners.step_table import VOTE_UNIT

_LARGEST_MINORITY = 0.4
"""If a step's smaller regions hold a larger share of the samples, all samples are added up. On one
machine that is 0.45 (`estimates`); here bins are larger, and refining those that vague
estimates leave takes more time."""

_LEAST_CODES = 2**21
"""If a shard has fewer, on average, it takes less to add all of them up than to search by estimates
and ask for exact sums of some features."""


_SHIFTS = 5 * SLICE_BITS
_FARTHEST = 2 ** (_SHIFTS + SLICE_BITS - 1)
"""No residual is as far from 0, in `VOTE_UNIT`. The first slices are 2**_SHIFTS wide."""


def start(
    table: ClusterTable,
    labels: Any,
    sample_weight: Any,
    objective: Objective,
    beginning: Beginning | None = None,
) -> ClusterState:
    """Begin a run.

    Parameters
    ----------
    table : ClusterTable
    labels : int, or array (n_samples,) of float64
        With one output, the class whose label is +1. The shards know the classes, and the targets
        of a quantity.
    sample_weight : object
        The shards know the weights.
    objective : Objective
    beginning : Beginning, optional
        It is not for shards yet.
    """
    assert beginning is None
    positive = 1 if objective.is_of_quantity else labels
    return ClusterState(table, Run(objective, positive, table.exponent(objective.n_copies)))


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
        self._source = ClusterSums(self._shards, table.bins, run.objective)
        self._bins = _Bins(table.bins, self._source)
        counts = Counts(table.n_samples, table.n_missing)
        self._split = SplitSearch(layout, counts, run.objective, team)
        self._found: tuple[Partition, Cut] | None = None
        self._take(self._shards.ask("begin", run))
        self._first_weight = sum(self._shards.ask("scaled_total", run.exponent))

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        gradient, hessian = (int(own) for own in self._by_output.sum(axis=0))
        return Totals(gradient, hessian, self._error, self._first_weight, self._table.n_samples)

    @property
    def weights(self) -> Any:
        """Float64 weights, shard after shard."""
        return np.concatenate(self._shards.ask("weights"))

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return int(min(self._shards.ask("smallest_weight")))

    def best_cut(self) -> Cut:
        """The largest cut."""
        self._source.begin_round()
        cut = self._split.best(self._source, self._bins, self._by_output)
        if cut.position is not None:
            self._table.note_threshold(cut.feature, cut.position, self._source)
        self._found = (split_at(self._table, cut), cut)
        return cut

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        if self._found is not None and self._found[0] == hypothesis:
            known = self._split.sums_of(self._found[1])
            if known is not None:
                return known
        found: np.ndarray = self._added([hypothesis])[0]
        return found

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses, by one message."""
        if not hypotheses:
            return np.zeros((0, N_REGIONS, self._run.objective.n_outputs, 2), dtype=np.int64)
        return self._added(hypotheses)

    def _added(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """The sum of the shards' answers."""
        answers: list[np.ndarray] = self._shards.ask("region_sums", tuple(hypotheses))
        return functools.reduce(np.add, answers)

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """See `contract.QuantileState`; it takes a message for each division into slices."""
        first, below = np.full(N_REGIONS, -_FARTHEST), np.zeros((N_REGIONS, 1), dtype=np.int64)
        for shift in range(_SHIFTS, -1, -SLICE_BITS):
            answers: list[np.ndarray] = self._shards.ask(
                "residual_slices", hypothesis, first, shift
            )
            upto = np.cumsum(functools.reduce(np.add, answers), axis=1) + below
            for region, rank in enumerate(ranks):
                place = int(np.searchsorted(upto[region], rank))
                first[region] += place << shift
                below[region] = upto[region, place - 1] if place else below[region]
        pairs = zip(first.tolist(), ranks, strict=True)
        return [own * VOTE_UNIT if rank else 0.0 for own, rank in pairs]

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """See `category_table.SummingState`."""
        return joined_sums(self._by_category)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        told: Move | None = None
        self._bins.expect_nothing()
        known = self._split.follow(step)
        if known is not None and not self._run.objective.is_of_quantity:
            counts, move = known
            is_minority_small = sum(counts) - max(counts) <= _LARGEST_MINORITY * sum(counts)
            pays = is_minority_small and self._codes_of_shard >= _LEAST_CODES
            follows = pays and self._table.bins.follow_steps
            self._bins.expect(move, follows=follows)
            told = move if follows else None
        self._found = None
        self._take(self._shards.ask("advance", step, told))

    def _take(self, tallies: list[Tally]) -> None:
        """Add up the shards' sums of a round."""
        numbers = np.sum([own.numbers for own in tallies], axis=0)
        self._codes_of_shard = self._table.n_samples * self._table.n_features // len(tallies)
        self._bins.take([own.bins for own in tallies], self._run.objective)
        self._by_category = [own.categories for own in tallies if own.categories is not None]
        self._by_output, self._error = numbers[:-1].reshape(-1, 2), int(numbers[-1])


class _Bins:
    """The sums over the bins of all features; see `cpu.bin_sums.BinSums`.

    Parameters
    ----------
    bins : CommonBins
    source : ClusterSums
        Is asked for exact sums.
    """

    sums: np.ndarray
    error: np.ndarray
    is_exact, spread = True, NO_SPREAD

    def __init__(self, bins: CommonBins, source: ClusterSums) -> None:
        self._common, self._source = bins, source
        layout = bins.layout
        self._n_inside = layout.counts(bins.n_missing)
        self._feature = layout.feature_of(np.arange(len(self._n_inside)))
        self._expected: Expected | None = None

    def take(self, answers: Sequence[np.ndarray | Changes], objective: Objective) -> None:
        """Take the sums of a round from all shards, or their changes."""
        sums = [own for own in answers if not isinstance(own, Changes)]
        if not sums:
            self._change([own for own in answers if isinstance(own, Changes)])
            return
        self.is_exact = True
        total = np.take(functools.reduce(np.add, sums), self._common.kept, axis=1)
        self.sums = unfolded(total, objective)
        self.error = np.zeros(self.sums.shape)

    def look(self) -> Expected:
        """What the last step would have made of the majority's sums."""
        return self._expected or Expected(self.sums, self.error)

    def renew(self, features: np.ndarray) -> np.ndarray:
        """Make the sums of some features exact; returns these."""
        layout = self._common.layout
        slots = np.concatenate([np.r_[layout.all_slots(own)] for own in features.tolist()])
        self.sums[:, slots] = self._source.sums_of(features)
        self.error[:, slots] = 0.0
        return features

    def expect_nothing(self) -> None:
        """Nothing is known of the next step."""
        self._expected = None

    def expect(self, move: Move, *, follows: bool) -> None:
        """Note what a step is about to make of the sums; `follows` if they will be estimates."""
        sums, error = (self.sums, self.error) if follows else (self.sums.copy(), self.error.copy())
        error_now = np.zeros_like(error)
        own = (sums, error, self._n_inside, move, error_now, len(self._n_inside))
        Team(1).run(move_slots, 1, *own)
        self._expected = Expected(sums.copy(), error_now if follows else error)
        self.is_exact = False

    def _change(self, answers: Sequence[Changes]) -> None:
        """Add what shards say of the minority, which they have rounded to within half a unit."""
        error = np.zeros(self.error.shape)
        for numbers, shift in answers:
            by_slot = shift[:, self._feature].astype(np.int64)
            self.sums += numbers[:, self._common.kept].astype(np.int64) << by_slot
            error += (1 << by_slot) >> 1
        self.error += error
        assert self._expected is not None  # a step that is followed
        self._expected.error[:] += error
