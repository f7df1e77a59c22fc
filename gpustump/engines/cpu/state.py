"""A boosting run on a coded table: weights, scores and histograms, advanced together.

This is `gpustump.engines.contract.State`: the same integers as the reference has in every round,
found with one sweep over the samples.
"""

from __future__ import annotations

import threading

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
from gpustump.engines.cpu.bin_profile import Profile, WeightedTable
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.intervals import best_pair
from gpustump.engines.cpu.samples import FIRST_SUMS, Samples, Sums, Update
from gpustump.engines.cpu.search import best_split
from gpustump.engines.cpu.sweep import CHUNK, Changes, add, advance, sweep, votes_by_code
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Shared, ranges
from gpustump.learners.hypothesis import Partition, predicted_signs

_PIECE = 2 * CHUNK
"""At least so many samples a thread takes at a time."""

_PIECES = 16
"""A thread takes samples about so many times in a round: few calls, and about equal shares."""

_COLUMNS_AT_ONCE = 4


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
        self._best = {"stump": best_split, "interval": best_pair}[search.learner]
        self._table = table
        self._samples = _first_samples(y, sample_weight)
        profile = Profile.empty(len(table.layout.offset), table.n_features)
        self._now = WeightedTable(table, self._samples.signed, profile)
        self._histograms = np.zeros((2, len(table.codes), 256), dtype=np.int64)
        # Private histograms cost clearing and adding up; they pay where columns are long.
        by_samples = table.n_samples >= 64 * 256 * table.team.size
        self._changes = None if by_samples else Changes.empty(table.n_samples)
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
        return max(self._best(self._now, self._histograms), constant_cut(self._sums.signed))

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
            self._vote(step.cut)
        if step.halvings < 0 or update.grown < update.kept:
            self._now.profile.forget()
        elif step.halvings > 0:
            self._now.profile.halve(step.halvings)
        self._sums = self._swept(update)

    def _vote(self, cut: Cut) -> None:
        """The votes of the stump, or interval, that a cut makes."""
        table, feature, votes = self._table, cut.feature, self._samples.votes
        n_bins = int(table.layout.n_bins[feature])
        by_bin = np.full(n_bins + 1, -cut.polarity, dtype=np.int8)
        if table.n_missing[feature]:
            by_bin[n_bins] = cut.missing
        parted: list[tuple[np.ndarray, int]] = []  # samples of bins that a cut runs through
        if cut.position is None:
            by_bin[:n_bins] = cut.polarity
        else:
            last, left = self._upto(feature, cut.position)
            by_bin[:last] = cut.polarity
            parted.append((left, cut.polarity))
        if cut.after is not None:
            last, left = self._upto(feature, cut.after)
            by_bin[:last] = -cut.polarity
            parted.append((left, -cut.polarity))
        codes, by_code = table.codes_of(feature), table.bundles.by_code(feature, by_bin)
        table.team.each(
            lambda part: votes_by_code(codes, by_code, votes, *part),
            ranges(table.n_samples, 16 * _PIECE),
        )
        for samples, vote in parted:
            votes[samples] = vote

    def _upto(self, feature: int, position: int) -> tuple[int, np.ndarray]:
        """What is left of a cut: how many whole bins, and which samples of the next one."""
        layout = self._table.layout
        bin_ = layout.bin_at(feature, position)
        slot = layout.first[feature] + bin_
        if position + 1 == layout.offset[slot + 1]:
            return bin_ + 1, np.empty(0, dtype=np.int64)
        inside = self._table.bins.sorted_bin(feature, bin_)
        return bin_, inside[: position + 1 - int(layout.offset[slot])]

    def _swept(self, update: Update) -> Sums:
        """Give the samples their next weights and scores, bring the histograms up to date."""
        if update.anew:
            self._histograms[:] = 0
        if self._changes is None:
            return self._swept_by_samples(update)
        return self._swept_by_columns(update, self._changes)

    def _swept_by_samples(self, update: Update) -> Sums:
        """Every thread takes some of the samples, with histograms of its own."""
        table, samples = self._table, self._samples
        if table.team.size == 1:
            found: Sums = sweep(samples, update, 0, table.n_samples, table.codes, self._histograms)
            return found
        pieces = Shared(ranges(table.n_samples, _piece(table)))
        lock = threading.Lock()
        sums: list[Sums] = []

        def take(_: int) -> None:
            own = np.zeros_like(self._histograms)
            sums.extend(sweep(samples, update, *part, table.codes, own) for part in pieces)
            with lock:
                self._histograms += own

        table.team.each(take, range(table.team.size))
        return _added(sums)

    def _swept_by_columns(self, update: Update, changes: Changes) -> Sums:
        """Every thread takes some of the samples, and then all of them for some of the columns."""
        table, histograms = self._table, self._histograms
        sums: list[Sums] = []

        def take_samples(part: tuple[int, int]) -> None:
            sums.append(advance(self._samples, update, *part, changes))

        table.team.each(take_samples, ranges(table.n_samples, _piece(table)))
        n_columns = len(table.codes)
        fair = -(-n_columns // (2 * table.team.size))
        size = max(_COLUMNS_AT_ONCE, fair // _COLUMNS_AT_ONCE * _COLUMNS_AT_ONCE)
        table.team.each(
            lambda part: add(table.codes, histograms, *part, changes), ranges(n_columns, size)
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


def _piece(table: CodedTable) -> int:
    """How many samples a thread takes at a time: whole chunks."""
    chunks = table.n_samples // (_PIECES * table.team.size * CHUNK)
    return max(_PIECE, chunks * CHUNK)


def _added(sums: list[Sums]) -> Sums:
    return Sums(*map(sum, zip(*sums, strict=True)))
