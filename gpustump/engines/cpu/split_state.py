"""A boosting run with real, Newton or shared votes on a coded table.

This is `gpustump.engines.contract.State`. In these runs the integers of all samples change in every
round; `bin_sums` follows them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

from gpustump.engines.contract import Cut, RegionSums, Search, Step, Totals, split_at
from gpustump.engines.cpu.bin_sums import BinSums
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.drift import Drift
from gpustump.engines.cpu.estimates import Move, counts_of_regions, is_worth_following
from gpustump.engines.cpu.losses import loss_of
from gpustump.engines.cpu.places import Place
from gpustump.engines.cpu.regions import give_by_cut
from gpustump.engines.cpu.search import BestSplit, Edges, Weigher
from gpustump.engines.cpu.terms import PieceSums, region_sums
from gpustump.engines.worth import Sums, score_of_outputs, worth_of
from gpustump.engines.worth_of_split import exact_score_of
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition, regions


class SplitState:
    """The state of one run.

    Parameters
    ----------
    table : CodedTable
    labels : ndarray (n_samples,)
        -1.0 or 1.0, float64; with more outputs than one the number of the class, int64.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    search : Search
    """

    def __init__(
        self, table: CodedTable, labels: np.ndarray, sample_weight: np.ndarray, search: Search
    ) -> None:
        self._table, self._search = table, search
        self._loss = loss_of(labels, sample_weight, search)
        self._place = Place.of_terms(table, self._loss.terms)
        self._regions = np.zeros(table.n_samples, dtype=np.uint8)
        self._found: tuple[Partition, RegionSums] | None = None
        self._drift = Drift(table.layout, search)
        self._weigher = Weigher.of(search)
        self._bins = BinSums(table, self._loss.terms, search)
        self._sums = self._taken(self._loss.begin, self._bins.add_up)

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        first, second = self._sums.totals.sum(axis=0).tolist()
        misclassified, n_samples = self._sums.misclassified, self._table.n_samples
        return Totals(first, second, misclassified, self._loss.first_weight, n_samples)

    @property
    def weights(self) -> np.ndarray:
        """See `engines.contract.State.weights`."""
        return self._loss.weights

    def smallest_weight(self) -> int:
        """The smallest second integer."""
        return self._loss.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut."""
        bins, layout = self._bins, self._table.layout
        expected = bins.look()
        ahead = self._drift.ahead(bins.sums, bins.off, expected)
        constant = Cut(0, None, 0, 0, self._constant_score())
        found = BestSplit(self._place, self._weigher, constant)

        def exact_edges(features: np.ndarray | None) -> Edges:
            edges = Edges.of(bins.sums, layout, features=features).knowing(ahead)
            self._offer_apart(found, edges, constant.score)
            return edges

        if bins.is_exact:
            found.search(exact_edges(None), learn=self._drift.learn)
        else:
            edges = Edges.of(bins.sums, layout, bins.off).knowing(ahead)
            found.search_estimates(
                edges, lambda features: exact_edges(bins.renew(features)), self._drift.learn
            )
        cut, left = found.best
        self._found = None
        if left is not None:
            self._found = (split_at(self._table, cut), self._around(cut, left))
        return cut

    def region_sums(self, hypothesis: Partition) -> RegionSums:
        """For each region and output the sums of both integers of its samples."""
        if self._found is not None and self._found[0] == hypothesis:
            return self._found[1]
        inside = regions(hypothesis, self._table.values(hypothesis.feature)).astype(np.uint8)
        return _as_tuples(region_sums(self._loss.terms, inside, 0, self._table.n_samples))

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        if step.cut is None:
            values = self._table.values(step.hypothesis.feature)
            self._regions[:] = regions(step.hypothesis, values)
        else:
            numbers = (FIRST, SECOND, MISSING)
            give_by_cut(self._table, step.cut, numbers, self._regions.view(np.int8))
        counts, move = self._move_of(step)
        self._found = None
        self._drift.follow(step, counts)
        work = functools.partial(self._loss.advance, step, self._regions)
        follow = self._bins.add_up
        if counts is not None and move is not None:
            follows = is_worth_following(counts, self._table.columns.n_columns)
            self._bins.expect(move, follows=follows)
            if follows:
                follow = functools.partial(self._bins.follow, regions=self._regions, move=move)
        self._sums = self._taken(work, follow)

    def _move_of(self, step: Step) -> tuple[np.ndarray | None, Move | None]:
        """How many samples lie in each region, and what the step does to the largest one.

        None if the step's hypothesis has not just been found here, or if there is no telling.
        """
        found = self._found
        if step.cut is None or found is None or found[0] != step.hypothesis:
            return None, None
        counts = counts_of_regions(self._table, step.cut)
        move = Move.of(step, counts, found[1], self._search)
        return (None if move is None else counts), move

    def _taken(
        self,
        work: Callable[[int, int], PieceSums],
        bring_up_to_date: Callable[[Callable[[int, int], None]], None],
    ) -> PieceSums:
        """Have the terms of all samples made, and the sums over the bins brought up to date."""
        found = list[PieceSums]()

        def make(low: int, high: int) -> None:
            found.append(work(low, high))

        bring_up_to_date(make)
        return functools.reduce(operator.add, found)

    def _constant_score(self) -> float:
        """What it is worth to leave all samples together."""
        totals = [(first, second) for first, second in self._sums.totals.tolist()]
        nothing = [(0, 0)] * len(totals)
        return exact_score_of([totals, nothing, nothing], self._search)

    def _offer_apart(self, found: BestSplit, edges: Edges, constant: float) -> None:
        """Offer the thresholds above all values, which part what is present from what is missing.

        They make splits only where that is better than a constant.
        """
        layout, features = edges.layout, edges.slices.feature
        is_apart = (self._table.n_missing > 0) & (layout.n_bins > 0)
        both = np.flatnonzero(is_apart[features])
        if not len(both):
            return
        present, missing = (
            self._outputs(part[:, both]) for part in (edges.ground.present, edges.ground.missing)
        )
        nothing = np.zeros(len(both), dtype=np.int64)
        empty = Sums(nothing, nothing)
        outputs = zip(present, [empty] * len(present), missing, strict=True)
        scores = score_of_outputs(worth_of(self._search), outputs)
        best = int(np.argmax(scores))
        if scores[best] > constant:
            feature = int(features[both[best]])
            position = int(layout.offset[layout.first[feature] + layout.n_bins[feature]]) - 1
            cut = Cut(feature, position, 0, 0, scores[best].item())
            found.offer(cut, edges.ground.present[:, both[best]])

    def _outputs(self, planes: np.ndarray) -> list[Sums]:
        """For each output the sums of the first and of the second integers, from planes."""
        if self._search.votes == "newton":
            return [
                Sums(planes[k] - planes[k + 1], planes[k + 2] + planes[k + 3])
                for k in range(0, len(planes), 4)
            ]
        return [
            Sums(planes[k] - planes[k + 1], planes[k] + planes[k + 1])
            for k in range(0, len(planes), 2)
        ]

    def _around(self, cut: Cut, left: np.ndarray) -> RegionSums:
        """The sums over the regions of a cut, whose feature's sums are exact."""
        slots, sums = self._table.layout.slots(cut.feature), self._bins.sums
        present, missing = sums[:, slots].sum(axis=1), sums[:, slots.stop]
        parts = (left, present - left, missing)
        return [[(int(a), int(b)) for a, b in self._outputs(part)] for part in parts]


def _as_tuples(sums: np.ndarray) -> RegionSums:
    return [[(a, b) for a, b in own] for own in sums.tolist()]
