"""Few samples: every feature is sorted whole and scanned whole, in one compiled loop.

Where all weights fit into the nearest cache, looking up each of them in sorted order takes no more
time than looking at a bin, so bins would save nothing. The sorted positions are four bytes each;
the sign bit says that the next sample has the same value, so that there is no cut between the two.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import (
    Cut,
    RegionSums,
    Search,
    Step,
    Totals,
    constant_cut,
    region_sums_of,
)
from gpustump.engines.cpu.compiling import group, kernel
from gpustump.engines.cpu.found_split import (
    NOTHING,
    STUMP,
    Found,
    as_cut,
    better,
    sign_for_missing,
)
from gpustump.engines.cpu.source_table import Source
from gpustump.engines.integer_weights import FLOOR, in_units
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import Partition, predicted_signs
from gpustump.learners.thresholds import midpoint

_ELEMENTS_AT_ONCE = 2**17
"""Fewer elements than this are not worth another thread."""

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


class _Samples(NamedTuple):
    """What a run knows of each sample: `samples.Samples`, and the signed integer of its weight."""

    signed: np.ndarray
    units: np.ndarray
    scores: np.ndarray
    first_weights: np.ndarray
    votes: np.ndarray


@group
class _Sums(NamedTuple):
    """The sums of `samples.Sums`, and the smallest weight."""

    signed: int
    weight: int
    misclassified: int
    smallest: int


@dataclass(frozen=True)
class DirectTable:
    """A small feature table, sorted.

    Attributes
    ----------
    source : Source
        The caller's own table.
    order : ndarray (n_features, n_samples) of int32
        Samples by increasing value, missing ones last, marked by the sign bit.
    n_present : ndarray (n_features,) of int64
    team : Team
    """

    source: Source
    order: np.ndarray
    n_present: np.ndarray
    team: Team
    note: ClassVar[str | None] = None

    @functools.cached_property
    def _working(self) -> type[np.generic]:
        """The type in which values are compared."""
        return self.source.working_dtype.type

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.source.X

    @property
    def n_samples(self) -> int:
        return int(self.order.shape[1])

    @property
    def n_features(self) -> int:
        return int(self.order.shape[0])

    @property
    def n_missing(self) -> np.ndarray:
        return self.n_samples - self.n_present

    def values(self, feature: int) -> np.ndarray:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return self.source.values(feature)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold behind a sorted position; see `engines.contract.PreparedTable`."""
        if position + 1 >= self.n_present[feature]:
            return math.inf
        return midpoint(self._value(feature, position), self._value(feature, position + 1))

    def start(self, labels: Array, sample_weight: Array, search: Search) -> DirectState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        if not search.has_signs:
            raise ValueError(f"the CPU kernels know discrete votes of one output; got {search}.")
        return DirectState(self, arrays.to_host(labels), arrays.to_host(sample_weight), search)

    def _value(self, feature: int, position: int) -> Any:
        sample = int(self.order[feature, position] & _SAMPLE)
        row = sample if self.source.rows is None else int(self.source.rows[sample])
        return self._working(self.X[row, feature])


def prepare(X: np.ndarray, rows: np.ndarray | None, team: Team) -> DirectTable:
    """Sort a table (n_samples, n_features)."""
    source = Source(X, rows)
    n_samples, n_features = source.n_samples, source.n_features
    order = np.empty((n_features, n_samples), dtype=np.int32)
    n_present = np.empty(n_features, dtype=np.int64)

    def sort(part: tuple[int, int]) -> None:
        here = slice(*part)
        block = source.block(slice(None), here)
        values = np.ascontiguousarray(arrays.as_working(block).T)
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
    return DirectTable(source, order, n_present, team)


class DirectState:
    """The state of one run.

    Parameters
    ----------
    table : DirectTable
    y : ndarray (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : ndarray (n_samples,) of float64
        Positive.
    search : Search

    Attributes
    ----------
    totals : Totals
        Sums over all samples.
    """

    totals: Totals
    _smallest: int

    def __init__(
        self, table: DirectTable, y: np.ndarray, sample_weight: np.ndarray, search: Search
    ) -> None:
        weights = in_units(sample_weight)
        n_samples = table.n_samples
        self._search = {"stump": _best_split, "interval": _best_pair}[search.learner]
        self._table = table
        self._samples = _Samples(
            signed=weights * y,
            units=np.empty(n_samples, dtype=np.int64),
            scores=np.zeros(n_samples),
            first_weights=weights.astype(np.int64),
            votes=np.zeros(n_samples, dtype=np.int8),
        )
        self._first_weight = int(self._samples.first_weights.sum())
        self._step(0.0, 1.0, 1.0)
        self._parts = ranges(table.n_features, max(1, _ELEMENTS_AT_ONCE // n_samples))

    @property
    def weights(self) -> np.ndarray:
        """Float64 weights, (n_samples,); see `State.weights`."""
        weights: np.ndarray = np.abs(self._samples.signed)
        return weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return self._smallest

    def best_cut(self) -> Cut:
        """The largest cut."""
        table, units, signed = self._table, self._samples.units, self.totals.signed
        found = [constant_cut(signed)]

        def search(part: tuple[int, int]) -> None:
            found.append(as_cut(self._search(table.order, table.n_present, units, signed, *part)))

        table.team.each(search, self._parts)
        return max(found)

    def region_sums(self, hypothesis: Partition) -> RegionSums:
        """For each region the sum of its signed weights, and the sum of its weights."""
        values = self._table.values(hypothesis.feature)
        return region_sums_of(hypothesis, values, self._samples.units)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        table, hypothesis, cut = self._table, step.discrete_hypothesis, step.cut
        if cut is None or cut.position is None:
            values = table.values(hypothesis.feature)
            self._samples.votes[:] = predicted_signs(hypothesis, values)
        else:
            own, n_present = table.order[cut.feature], int(table.n_present[cut.feature])
            after = STUMP if cut.after is None else cut.after
            signs = (cut.polarity, cut.missing)
            _vote(own, n_present, after, cut.position, *signs, self._samples.votes)
        _, vote, grown, kept = step.discrete
        self._step(vote, grown, kept)

    def _step(self, vote: float, grown: float, kept: float) -> None:
        signed, weight, misclassified, self._smallest = _step(*self._samples, vote, grown, kept)
        n_samples = self._table.n_samples
        self.totals = Totals(signed, weight, misclassified, self._first_weight, n_samples)


@kernel("Found(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64)")
def _best_split(order, n_present, units, total, low, high):  # type: ignore[no-untyped-def]
    """The best split of features `low` to `high`; `total` is the sum of all units."""
    best = NOTHING
    for j in range(low, high):
        own = order[j]
        present = total
        for k in range(n_present[j], len(own)):
            present -= units[own[k] & 0x7FFFFFFF]
        missing = total - present
        extra, vote = abs(missing), sign_for_missing(missing, present)
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
        opposed = (present > 0 and missing < 0) or (present < 0 and missing > 0)
        apart = abs(present) + extra if opposed else -1
        if max(agreement, apart) <= best.agreement:
            continue
        if apart > agreement:
            best = Found(apart, j, STUMP, n_present[j] - 1, 1 if present > 0 else -1, vote)
            continue
        reached = 0
        for k in range(n_present[j] - 1):
            marked = own[k]
            reached += units[marked & 0x7FFFFFFF]
            here = 2 * reached - present
            if marked >= 0 and abs(here) + extra == agreement:
                best = Found(agreement, j, STUMP, k, 1 if here >= 0 else -1, vote)
                break
    return best


@kernel("Found(int32[:, ::1], int64[::1], int64[::1], int64, int64, int64)")
def _best_pair(order, n_present, units, total, low, high):  # type: ignore[no-untyped-def]
    """The best interval or split of features `low` to `high`."""
    top = 1 << 62
    best = NOTHING
    for j in range(low, high):
        own = order[j]
        present = total
        for k in range(n_present[j], len(own)):
            present -= units[own[k] & 0x7FFFFFFF]
        missing = total - present
        extra, vote = abs(missing), sign_for_missing(missing, present)
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
        by_stump = -1
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            by_stump = abs(present) + extra
        if highest > -top:
            by_stump = max(by_stump, max(2 * highest - present, present - 2 * lowest) + extra)
        if by_stump > best.agreement:
            best = _best_split(order, n_present, units, total, j, j + 1)
        agreement = max(2 * rise - present, 2 * fall + present) + extra
        if rise == -top or agreement <= best.agreement:
            continue
        for polarity in (1, -1):
            steep = rise if polarity > 0 else fall
            if 2 * steep - polarity * present + extra < agreement:
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
                    best = better(Found(agreement, j, lowest_at, k, polarity, vote), best)
                    break
                if reached < lowest:
                    lowest, lowest_at = reached, k
    return best


@kernel("void(int32[::1], int64, int64, int64, int64, int64, int8[::1])")
def _vote(order, n_present, after, position, polarity, missing, votes):  # type: ignore[no-untyped-def]
    """The votes of a split of the feature whose sorted samples these are; see `Found`."""
    for k in range(len(order)):
        sample = order[k] & 0x7FFFFFFF
        if k <= position:
            votes[sample] = polarity if k > after else -polarity
        else:
            votes[sample] = -polarity if k < n_present else missing


@kernel(
    "_Sums(float64[::1], int64[::1], float64[::1], int64[::1], int8[::1], float64, float64,"
    " float64)"
)
def _step(  # type: ignore[no-untyped-def]
    signed, units, scores, first_weights, votes, vote, grown, kept
):
    """Next weights, integers and scores of all samples; returns the sums of the integers.

    The first arguments are those of `_Samples`. They are not passed as one: finding the type of a
    group takes Numba microseconds, of which a round has few here.
    """
    total, total_weight, misclassified, least = 0, 0, 0, 1 << 62
    for i in range(len(signed)):
        positive = signed[i] > 0.0
        wrong = (votes[i] > 0) != positive
        weight = max(abs(signed[i]) * (grown if wrong else kept), FLOOR)
        q = np.int64(np.ceil(weight))
        score = scores[i] + votes[i] * vote
        scores[i] = score
        signed[i] = weight if positive else -weight
        units[i] = q if positive else -q
        total += q if positive else -q
        total_weight += q
        least = min(least, q)
        misclassified += first_weights[i] if (score > 0.0) != positive else 0
    return _Sums(total, total_weight, misclassified, least)
