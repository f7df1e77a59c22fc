"""Few samples: every feature sorted whole and scanned whole, in one compiled loop.

Where all weights fit into the nearest cache, looking each up in sorted order costs no more than
looking at a bin, so bins would only cost. The sorted positions are four bytes each; the sign bit
says that the next sample has the same value, so that there is no cut between the two.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import Learner
from gpustump.engines.contract import (
    Cut,
    RegionWeights,
    Step,
    Totals,
    constant_cut,
    region_weights_of,
)
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.integer_weights import FLOOR, in_units
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import Hypothesis, predicted_signs
from gpustump.learners.thresholds import midpoint

_ELEMENTS_AT_ONCE = 2**17
"""A thread's share is not worth waking it for if it is smaller."""

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


@dataclass(frozen=True)
class DirectTable:
    """A small feature table, sorted.

    Attributes
    ----------
    X : ndarray (n_samples_given, n_features)
    rows : ndarray (n_samples,) of int, or None
    order : ndarray (n_features, n_samples) of int32
        Samples by increasing value, missing ones last, marked by the sign bit.
    n_present : ndarray (n_features,) of int64
    team : Team
    """

    X: np.ndarray
    rows: np.ndarray | None
    order: np.ndarray
    n_present: np.ndarray
    team: Team
    note: ClassVar[str | None] = None

    @functools.cached_property
    def _working(self) -> type[np.generic]:
        """The type in which values are compared."""
        return np.dtype(arrays.working_dtype(arrays.dtype_name(self.X))).type

    @property
    def n_samples(self) -> int:
        return int(self.order.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.order.shape[0])

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        values: np.ndarray = arrays.as_working(arrays.picked(self.X[:, feature], self.rows))
        return values

    def threshold(self, feature: int, position: int) -> float:
        """The threshold of the cut after a sorted position; see `Columns.threshold`."""
        if position + 1 >= self.n_present[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def start(self, labels: Array, sample_weight: Array, learner: Learner) -> DirectState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        return DirectState(self, arrays.to_host(labels), arrays.to_host(sample_weight), learner)

    def _value(self, feature: int, position: int) -> Any:
        sample = int(self.order[feature, position] & _SAMPLE)
        row = sample if self.rows is None else int(self.rows[sample])
        return self._working(self.X[row, feature])


def prepare(X: np.ndarray, rows: np.ndarray | None, team: Team) -> DirectTable:
    """Sort a table (n_samples, n_features)."""
    n_samples, n_features = X.shape[0] if rows is None else rows.shape[0], X.shape[1]
    order = np.empty((n_features, n_samples), dtype=np.int32)
    n_present = np.empty(n_features, dtype=np.int64)

    def sort(part: tuple[int, int]) -> None:
        here = slice(*part)
        values = np.ascontiguousarray(arrays.as_working(arrays.picked(X[:, here], rows)).T)
        keys = arrays.order_keys(values)
        if keys.dtype.itemsize <= 4:  # key and sample in one integer: sorting those is quickest
            both = (keys.astype(np.int64) << 32) | np.arange(n_samples)
            both.sort(axis=1)
            samples, keys = (both & _SAMPLE).astype(np.int32), both >> 32
        else:
            samples = np.argsort(keys, axis=1).astype(np.int32)
            keys = np.take_along_axis(keys, samples, axis=1)
        lacks = keys == arrays.missing_key(arrays.dtype_name(values))
        samples[:, :-1][keys[:, 1:] == keys[:, :-1]] |= ~_SAMPLE
        order[here], n_present[here] = samples, n_samples - np.count_nonzero(lacks, axis=1)

    team.each(sort, ranges(n_features, max(1, _ELEMENTS_AT_ONCE // n_samples)))
    return DirectTable(X, rows, order, n_present, team)


class DirectState:
    """D_t of one run on sorted columns.

    Parameters
    ----------
    columns : DirectTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    learner : str
        "stump" or "interval".
    """

    def __init__(
        self,
        columns: DirectTable,
        y: np.ndarray,
        sample_weight: np.ndarray,
        learner: Learner,
    ) -> None:
        weights = in_units(sample_weight)
        self._search = {"stump": _search, "interval": _search_intervals}[learner]
        n_samples = columns.n_samples
        self._columns = columns
        self._first_weights = weights.astype(np.int64)
        self._signed = weights * y
        self._units = np.empty(n_samples, dtype=np.int64)
        self._scores = np.zeros(n_samples)
        self._votes = np.zeros(n_samples, dtype=np.int8)
        self._sums = np.zeros(4, dtype=np.int64)
        self._step(0.0, 1.0, 1.0)
        self._first_weight = int(self._sums[1])
        self._parts = ranges(columns.n_features, max(1, _ELEMENTS_AT_ONCE // n_samples))

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        signed, weight, misclassified, _ = self._sums.tolist()
        n_samples = self._columns.n_samples
        return Totals(signed, weight, misclassified, self._first_weight, n_samples)

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        weights: np.ndarray = np.abs(self._signed)
        return weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return int(self._sums[3])

    def best_cut(self) -> Cut:
        """The largest cut."""
        columns, signed = self._columns, int(self._sums[0])
        found = [constant_cut(signed)]

        def search(part: tuple[int, int]) -> None:
            best = np.full(6, -1)
            self._search(columns.order, columns.n_present, self._units, signed, *part, best)
            agreement, feature, position, polarity, missing, after = best.tolist()
            if agreement >= 0:
                before = after if after >= 0 else None
                found.append(Cut(feature, position, polarity, missing, agreement, before))

        columns.team.each(search, self._parts)
        return max(found)

    def region_weights(self, hypothesis: Hypothesis) -> RegionWeights:
        """For each region the weight of its samples labelled -1, and of those labelled +1."""
        return region_weights_of(hypothesis, self._columns.values(hypothesis.feature), self._units)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        columns, hypothesis, cut, discrete = self._columns, step.hypothesis, step.cut, step.discrete
        if cut is None or cut.position is None:
            self._votes[:] = predicted_signs(hypothesis, columns.values(hypothesis.feature))
        else:
            _vote(
                columns.order[cut.feature], -1 if cut.after is None else cut.after, cut.position,
                int(columns.n_present[cut.feature]), cut.polarity, cut.missing, self._votes,
            )  # fmt: skip
        self._step(discrete.vote, discrete.grown, discrete.kept)

    def _step(self, vote: float, grow: float, keep: float) -> None:
        _step(
            self._signed, self._units, self._scores, self._first_weights, self._votes, vote, grow,
            keep, self._sums,
        )  # fmt: skip


@kernel("void(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64, int64[::1])")
def _search(order, n_present, units, total, low, high, best):  # type: ignore[no-untyped-def]
    """The best split of features `low` to `high`.

    `best` gets agreement, feature, position, polarity and the vote of what is missing; agreement
    stays at -1 if there is no split.
    """
    for j in range(low, high):
        own = order[j]
        present = total
        for k in range(n_present[j], len(own)):
            present -= units[own[k] & 0x7FFFFFFF]
        extra = abs(total - present)
        highest, lowest = -(1 << 62), 1 << 62
        reached = 0
        for k in range(n_present[j] - 1):
            marked = own[k]
            reached += units[marked & 0x7FFFFFFF]
            highest = max(highest, reached if marked >= 0 else -(1 << 62))
            lowest = min(lowest, reached if marked >= 0 else 1 << 62)
        agreement = -1
        if highest > -(1 << 62):
            agreement = max(2 * highest - present, present - 2 * lowest) + extra
        missing = total - present
        opposed = (present > 0 and missing < 0) or (present < 0 and missing > 0)
        apart = abs(present) + extra if opposed else -1
        if max(agreement, apart) <= best[0]:
            continue
        best[0], best[1] = max(agreement, apart), j
        best[4] = 1 if missing > 0 or (missing == 0 and total >= 0) else -1
        if apart > agreement:
            best[2], best[3] = n_present[j] - 1, 1 if present > 0 else -1
            continue
        reached = 0
        for k in range(n_present[j] - 1):
            marked = own[k]
            reached += units[marked & 0x7FFFFFFF]
            here = 2 * reached - present
            if marked >= 0 and abs(here) + extra == agreement:
                best[2], best[3] = k, 1 if here >= 0 else -1
                break


@kernel("void(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64, int64[::1])")
def _search_intervals(order, n_present, units, total, low, high, best):  # type: ignore[no-untyped-def]
    """The best interval or split of features `low` to `high`; see `interval_scan`.

    `best` is that of `_search`, and then the position before the interval, or -1.
    """
    top = 1 << 62
    for j in range(low, high):
        own = order[j]
        present = total
        for k in range(n_present[j], len(own)):
            present -= units[own[k] & 0x7FFFFFFF]
        extra = abs(total - present)
        lowest, highest, rise, fall = top, -top, -top, -top
        reached = 0
        for k in range(n_present[j] - 1):
            marked = own[k]
            reached += units[marked & 0x7FFFFFFF]
            if marked >= 0:
                if lowest < top:  # there was a cut before
                    rise = max(rise, reached - lowest)
                    fall = max(fall, highest - reached)
                lowest, highest = min(lowest, reached), max(highest, reached)
        missing = total - present
        by_stump = -1
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            by_stump = abs(present) + extra
        if highest > -top:
            by_stump = max(by_stump, max(2 * highest - present, present - 2 * lowest) + extra)
        if by_stump > best[0]:
            _search(order, n_present, units, total, j, j + 1, best)
            best[5] = -1
        inside = max(2 * rise - present, 2 * fall + present)
        if rise == -top or inside + extra <= best[0]:
            continue
        best[0], best[1] = inside + extra, j
        best[2] = best[5] = top
        best[4] = 1 if missing > 0 or (missing == 0 and total >= 0) else -1
        for polarity in (1, -1):
            steep = rise if polarity > 0 else fall
            if 2 * steep - polarity * present < inside:
                continue
            # The first cut at the upper end has the first one at the lower end before it.
            lowest, lowest_at = top, -1
            reached = 0
            for k in range(n_present[j] - 1):
                marked = own[k]
                reached += polarity * units[marked & 0x7FFFFFFF]
                if marked < 0:
                    continue
                if lowest < top and reached - lowest == steep:
                    if lowest_at < best[5] or (lowest_at == best[5] and k < best[2]):
                        best[2], best[3], best[5] = k, polarity, lowest_at
                    break
                if reached < lowest:
                    lowest, lowest_at = reached, k


@kernel("void(int32[::1], int64, int64, int64, int64, int64, int8[::1])")
def _vote(order, after, position, n_present, polarity, missing, votes):  # type: ignore[no-untyped-def]
    """The votes of what cuts a feature after a position, and before it after another (or -1)."""
    for k in range(len(order)):
        sample = order[k] & 0x7FFFFFFF
        if k <= position:
            votes[sample] = polarity if k > after else -polarity
        else:
            votes[sample] = -polarity if k < n_present else missing


@kernel(
    "void(float64[::1], int64[::1], float64[::1], int64[::1], int8[::1], float64, float64,"
    " float64, int64[::1])"
)
def _step(signed, units, scores, masses, votes, vote, grow, keep, sums):  # type: ignore[no-untyped-def]
    """Next weights, integers and scores of all samples.

    `sums` gets the integers' sum, that of their absolute values, the first round's weight of what
    the ensemble gets wrong, and the smallest absolute value.
    """
    total, mass, mistaken, least = 0, 0, 0, 1 << 62
    for i in range(len(signed)):
        positive = signed[i] > 0.0
        wrong = (votes[i] > 0) != positive
        weight = max(abs(signed[i]) * (grow if wrong else keep), FLOOR)
        q = np.int64(np.ceil(weight))
        score = scores[i] + votes[i] * vote
        scores[i] = score
        signed[i] = weight if positive else -weight
        units[i] = q if positive else -q
        total += q if positive else -q
        mass += q
        least = min(least, q)
        mistaken += masses[i] if (score > 0.0) != positive else 0
    sums[0], sums[1], sums[2], sums[3] = total, mass, mistaken, least
