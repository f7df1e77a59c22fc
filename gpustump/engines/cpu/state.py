"""A boosting run with discrete votes of one output: weights, scores and histograms, together.

This is `gpustump.engines.contract.State`: the same integers as the reference has in every round,
found with one sweep over the samples. Runs with other votes are in `split_state`.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import (
    Cut,
    RegionSums,
    Search,
    Step,
    Totals,
    constant_cut,
    region_sums_of,
)
from gpustump.engines.cpu.bin_profile import Profile, note_units, reach_all
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.columns import Histograms
from gpustump.engines.cpu.histograms import (
    Listed,
    TeamHistograms,
    add,
    parts_of_columns,
    pieces_of,
    slot_sums,
)
from gpustump.engines.cpu.intervals import Weighted, best_pair
from gpustump.engines.cpu.places import Place
from gpustump.engines.cpu.regions import give_by_cut
from gpustump.engines.cpu.samples import FIRST_SUMS, Samples, Sums, Update
from gpustump.engines.cpu.search import BestSplit, Edges, Weigher
from gpustump.engines.cpu.slices import Slices
from gpustump.engines.cpu.sweep import advance, sweep
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Shared
from gpustump.learners.hypothesis import Partition, predicted_signs


class CodedState:
    """The state of one run.

    Parameters
    ----------
    table : CodedTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    search : Search
    """

    def __init__(
        self, table: CodedTable, y: np.ndarray, sample_weight: np.ndarray, search: Search
    ) -> None:
        self._search, self._table = search, table
        self._weigher = Weigher.of(Search())  # of stumps; intervals come after them
        self._samples = _first_samples(y, sample_weight)
        self._place = Place.of_signed(table, self._samples.signed)
        self._profile = Profile.empty(len(table.layout.offset))
        self._histograms = TeamHistograms(2, 1, table.columns, table.team)
        by_samples = self._histograms.by_samples
        self._changes = None if by_samples else Listed.empty(table.n_samples)
        self._sums = self._swept(FIRST_SUMS)
        self._first_weight = self._sums.weight

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        return Totals(*self._sums, self._first_weight, self._table.n_samples)

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        weights: np.ndarray = np.abs(self._samples.signed)
        return weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return int(np.ceil(np.abs(self._samples.signed).min()))

    def best_cut(self) -> Cut:
        """The largest cut."""
        table, layout = self._table, self._table.layout
        sums = slot_sums(
            self._histograms.total, [(0, 0), (1, 0)], table.bundles, layout, table.team
        )
        edges = Edges.of(sums, layout)
        profile = self._profile._replace(positive=sums[0], negative=sums[1])
        up, down = np.empty_like(sums)
        slices = edges.slices._replace(up=up, down=down)

        def ready(low: int, high: int) -> None:
            end = layout.first[high] if high < len(layout.first) else len(layout.offset)
            reach_all(profile, layout.first[low], end, up, down)

        def learn(slots: np.ndarray, units: Slices) -> None:
            note_units(profile, slots, units)

        found = BestSplit(self._place, self._weigher, constant_cut(self._sums.signed))
        _offer_apart(found, edges)
        found.search(edges._replace(slices=slices), ready, learn)
        if self._search.learner == "interval":
            now = Weighted(table, self._samples.signed, profile)
            return best_pair(now, edges, found.best.cut)
        return found.best.cut

    def region_sums(self, hypothesis: Partition) -> RegionSums:
        """For each region the sum of its signed weights, and the sum of its weights."""
        signed = self._samples.signed
        units = np.copysign(np.ceil(np.abs(signed)), signed).astype(np.int64)
        return region_sums_of(hypothesis, self._table.values(hypothesis.feature), units)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        hypothesis, update = step.discrete_hypothesis, Update.of(step)
        if step.cut is None:
            values = self._table.values(hypothesis.feature)
            self._samples.votes[:] = predicted_signs(hypothesis, values)
        else:
            sign = step.cut.polarity
            numbers = (sign, -sign, step.cut.missing)
            give_by_cut(self._table, step.cut, numbers, self._samples.votes)
        if step.halvings < 0 or update.grown < update.kept:
            self._profile.forget()
        elif step.halvings > 0:
            self._profile.halve(step.halvings)
        self._sums = self._swept(update)

    def _swept(self, update: Update) -> Sums:
        """Give the samples their next weights and scores, bring the histograms up to date."""
        if update.anew:
            self._histograms.total.clear()
        if self._changes is None:
            return self._swept_by_samples(update)
        return self._swept_by_columns(update, self._changes)

    def _swept_by_samples(self, update: Update) -> Sums:
        """Every thread takes some of the samples, with histograms of its own."""
        table, samples, sums = self._table, self._samples, list[Sums]()
        pieces = Shared(pieces_of(table.n_samples, table.team))

        def take(own: Histograms) -> None:
            sums.extend(sweep(samples, update, *part, table.columns, own) for part in pieces)

        self._histograms.add(take)
        return _added(sums)

    def _swept_by_columns(self, update: Update, changes: Listed) -> Sums:
        """Every thread takes some of the samples, and then all of them for some of the columns."""
        table, columns = self._table, self._table.columns
        sums: list[Sums] = []

        def take_samples(part: tuple[int, int]) -> None:
            sums.append(advance(self._samples, update, *part, changes))

        table.team.each(take_samples, pieces_of(table.n_samples, table.team))
        table.team.each(
            lambda part: add(columns, self._histograms.total, 0, *part, changes),
            parts_of_columns(columns, table.team),
        )
        return _added(sums)


def _first_samples(y: np.ndarray, sample_weight: np.ndarray) -> Samples:
    """The samples before the first round."""
    weights = in_units(sample_weight)
    differ = weights.min() < weights.max()
    return Samples(
        signed=weights * y,
        scores=np.zeros(len(weights)),
        first_weights=(weights if differ else weights[:1]).astype(np.int64),
        votes=np.zeros(len(weights), dtype=np.int8),
    )


def _offer_apart(found: BestSplit, edges: Edges) -> None:
    """Offer the thresholds above all values, which part what is present from what is missing."""
    ground, layout = edges.ground, edges.layout
    present, missing = (part[0] - part[1] for part in (ground.present, ground.missing))
    # Unless the labels are opposed, a constant is as good.
    opposed = np.flatnonzero(((present > 0) & (missing < 0)) | ((present < 0) & (missing > 0)))
    if not len(opposed):
        return
    agreement = np.abs(present[opposed]) + np.abs(missing[opposed])
    feature = int(opposed[np.argmax(agreement)])
    position = int(layout.offset[layout.first[feature] + layout.n_bins[feature]]) - 1
    sign = 1 if present[feature] > 0 else -1
    cut = Cut(feature, position, sign, -sign, int(agreement.max()))
    found.offer(cut, ground.present[:, feature])


def _added(sums: list[Sums]) -> Sums:
    return Sums(*map(sum, zip(*sums, strict=True)))
