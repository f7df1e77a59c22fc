"""D_t on the CPU: signed weights, scores and histograms of one boosting run, advanced together.

This is `gpustump.engines.contract.State` for coded columns: the same integers as the reference
in every round, found with one sweep over the samples.
"""

from __future__ import annotations

import threading

import numpy as np

from gpustump.data.parameters import Learner
from gpustump.engines.contract import (
    Cut,
    RegionWeights,
    Step,
    Totals,
    constant_cut,
    region_weights_of,
    sign_of,
)
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.intervals import as_pair, best_pair
from gpustump.engines.cpu.search import Profile, best_split
from gpustump.engines.cpu.sweep import CHUNK, add, advance, sweep, votes_by_code
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Shared, ranges
from gpustump.learners.hypothesis import Hypothesis, predicted_signs

_PIECE = 2 * CHUNK
"""Samples that a thread takes at a time."""

_COLUMNS_AT_ONCE = 4


class CodedState:
    """The state of one run.

    Parameters
    ----------
    columns : CodedTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    learner : str
        "stump" or "interval".
    """

    def __init__(
        self,
        columns: CodedTable,
        y: np.ndarray,
        sample_weight: np.ndarray,
        learner: Learner,
    ) -> None:
        self._seeks_intervals = learner == "interval"
        weights = in_units(sample_weight)
        self._columns = columns
        self._scores = np.zeros(columns.n_samples)
        lightest, heaviest = weights.min(), weights.max()
        self._first_weights = (weights if lightest < heaviest else weights[:1]).astype(np.int64)
        self._signed = weights * y
        del weights
        self._votes = np.zeros(columns.n_samples, dtype=np.int8)
        self._profile = Profile.empty(columns)
        n_columns = len(columns.codes)
        self._histograms = np.zeros((2, n_columns, 256), dtype=np.int64)
        self._lock = threading.Lock()
        # Private histograms cost clearing and adding up; they pay where columns are long.
        self._by_samples = columns.n_samples >= 64 * 256 * columns.team.size
        if not self._by_samples:
            self._index = np.empty(columns.n_samples, dtype=np.uint32)
            self._picked = np.empty(columns.n_samples, dtype=np.int64)
            n_chunks = -(-columns.n_samples // CHUNK)
            self._lengths = np.zeros((n_chunks, 2), dtype=np.int64)
        self._sweep(0.0, 1.0, 1.0, anew=True)
        self._first_weight = self._sums[1]

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        signed, weight, misclassified = self._sums
        n_samples = self._columns.n_samples
        return Totals(signed, weight, misclassified, self._first_weight, n_samples)

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        weights: np.ndarray = np.abs(self._signed)
        return weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return int(np.ceil(np.abs(self._signed).min()))

    def best_cut(self) -> Cut:
        """The largest cut."""
        state = (self._columns, self._histograms, self._signed, self._profile)
        best = best_pair(*state) if self._seeks_intervals else as_pair(best_split(*state))
        signed = self._sums[0]
        if best.agreement < 0:
            return constant_cut(signed)
        feature = -best.minus_feature
        missing = sign_of(int(self._profile.missing[feature]) or signed)
        position = -best.minus_position
        found = Cut(feature, position, best.polarity, missing, best.agreement, best.after)
        return max(found, constant_cut(signed))

    def region_weights(self, hypothesis: Hypothesis) -> RegionWeights:
        """For each region the weight of its samples labelled -1, and of those labelled +1."""
        units = np.copysign(np.ceil(np.abs(self._signed)), self._signed).astype(np.int64)
        return region_weights_of(hypothesis, self._columns.values(hypothesis.feature), units)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        hypothesis, discrete, halvings = step.hypothesis, step.discrete, step.halvings
        if step.cut is None:
            values = self._columns.values(hypothesis.feature)
            self._votes[:] = predicted_signs(hypothesis, values)
        else:
            self._vote(step.cut)
        if halvings < 0 or discrete.grown < discrete.kept:
            self._profile.forget()
        elif halvings > 0:
            self._profile.halve(halvings)
        self._sweep(discrete.vote, discrete.grown, discrete.kept, anew=halvings != 0)

    def _vote(self, cut: Cut) -> None:
        """The votes of the stump, or interval, that a cut makes."""
        columns, feature = self._columns, cut.feature
        n_bins = int(columns.n_bins[feature])
        by_bin = np.full(n_bins + 1, -cut.polarity, dtype=np.int8)
        if columns.n_missing[feature]:
            by_bin[n_bins] = cut.missing
        parted: list[tuple[np.ndarray, int]] = []  # samples of bins that are not of one mind
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
        codes = columns.codes[columns.bundles.column[feature]]
        by_code = columns.bundles.by_code(feature, by_bin)
        columns.team.each(
            lambda part: votes_by_code(codes, by_code, self._votes, *part),
            ranges(columns.n_samples, 16 * _PIECE),
        )
        for samples, vote in parted:
            self._votes[samples] = vote

    def _upto(self, feature: int, position: int) -> tuple[int, np.ndarray]:
        """What is left of a cut: how many whole bins, and which samples of the next one."""
        columns = self._columns
        bin_ = columns.bin_at(feature, position)
        slot = columns.first[feature] + bin_
        if position + 1 == columns.offset[slot + 1]:
            return bin_ + 1, np.empty(0, dtype=np.int64)
        inside = columns.bins.sorted_bin(columns, feature, bin_)
        return bin_, inside[: position + 1 - int(columns.offset[slot])]

    def _sweep(self, vote: float, grow: float, keep: float, *, anew: bool) -> None:
        """Give the samples their next weights and scores; bring sums and histograms up to date."""
        if anew:
            self._histograms[:] = 0
        sums = np.zeros(3, dtype=np.int64)
        state = (
            self._signed,
            self._scores,
            self._first_weights,
            self._votes,
            vote,
            grow,
            keep,
            int(anew),
        )
        if self._by_samples:
            self._sweep_by_samples(state, sums)
        else:
            self._sweep_by_columns(state, sums)
        self._sums: list[int] = sums.tolist()

    def _sweep_by_samples(self, state: tuple[object, ...], sums: np.ndarray) -> None:
        """Every thread takes some of the samples, with histograms of its own."""
        columns = self._columns
        pieces = Shared(ranges(columns.n_samples, _PIECE))

        def take(_: int) -> None:
            own, own_sums = np.zeros_like(self._histograms), np.zeros(3, dtype=np.int64)
            for part in pieces:
                sweep(*state, *part, columns.codes, own, own_sums)
            with self._lock:
                self._histograms += own
                sums[:] += own_sums

        columns.team.each(take, range(columns.team.size))

    def _sweep_by_columns(self, state: tuple[object, ...], sums: np.ndarray) -> None:
        """Every thread takes some of the samples, and then all of them for some of the columns."""
        columns = self._columns
        kept = (self._index, self._picked, self._lengths)

        def take_samples(part: tuple[int, int]) -> None:
            own_sums = np.zeros(3, dtype=np.int64)
            advance(*state, *part, *kept, own_sums)
            with self._lock:
                sums[:] += own_sums

        columns.team.each(take_samples, ranges(columns.n_samples, _PIECE))
        n_columns = len(columns.codes)
        fair = -(-n_columns // (2 * columns.team.size))
        size = max(_COLUMNS_AT_ONCE, fair // _COLUMNS_AT_ONCE * _COLUMNS_AT_ONCE)
        columns.team.each(
            lambda part: add(columns.codes, self._histograms, *part, *kept),
            ranges(n_columns, size),
        )
