"""Smoothing rounds: a run's first rounds choose among a few cuts at random places.

The best of all cuts also fits the noise of the training samples best. With few samples, a shape
function made of such cuts has a few large steps. In a smoothing round, sqrt(n_features) features,
drawn at random, offer one cut each, at a random place among the feature's distinct values, and the
round takes the best of these. So the first and large part of each shape function has many small
steps, and the following rounds correct it. Interpret's Explainable Boosting Machine begins in a
similar way. `bench/NOTES.md` says how that changes the accuracy.

There is no random generator: what a round offers follows from the numbers of the bag, the class
and the round, and from the features' values at the sampled rows, by hashes of 64 bits. So it is the
same on every machine, and a run that goes on from known rounds, or is audited, offers the same cuts
again. It does not depend on where a feature stands: in a table with its columns in another order,
the same features offer the same cuts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.batches import splits_of
from gpustump.engines.batched_rounds import NO_CANDIDATES, CandidateSplits
from gpustump.engines.category_search import Groups
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import AnySplit
from gpustump.learners.thresholds import midpoints

_MOST_ROWS = 1024
_MOST_VALUES = 2**22
"""Cuts lie between the values of at most so many rows, evenly spread, with at most so many values
in all."""

_AT_ONCE = 2**19
"""How many of these values are looked at together, which bounds temporary memory."""

_LEAST_ROWS = 64
_ROUNDS_AT_ONCE = 64


@dataclass(frozen=True)
class Smoothing:
    """The smoothing rounds with which a run begins.

    Attributes
    ----------
    n_rounds : int
        The number of smoothing rounds.
    bag : int
        The number of the bag that the run belongs to, from 0: each bag draws its own cuts.
    """

    n_rounds: int
    bag: int = 0


class Candidates:
    """The cuts that the smoothing rounds of a run offer.

    Parameters
    ----------
    smoothing : Smoothing
    places : CutPlaces
    run : int
        The number of the class whose run it is.
    """

    def __init__(self, smoothing: Smoothing, places: CutPlaces, run: int = 0) -> None:
        self._n_rounds, self._places = smoothing.n_rounds, places
        self._key = mixed(mixed(np.uint64(smoothing.bag)) + np.uint64(run))
        self._first, self._offers = 0, NO_CANDIDATES  # some rounds' offers, from which number on

    @classmethod
    def of(
        cls, smoothing: Smoothing | None, places: CutPlaces | None, run: int
    ) -> Candidates | None:
        """The offers of a run; None if no rounds are smoothing rounds."""
        return None if smoothing is None or places is None else cls(smoothing, places, run)

    def at(self, n_done: int) -> Sequence[AnySplit]:
        """The cuts that the round after `n_done` others offers, in order of the features; none if
        it is no smoothing round."""
        features, thresholds, sides = self.cuts(n_done, 1)
        if not len(features):
            return []
        return splits_of(features[0], thresholds[0], sides[0] if len(sides) else sides)

    def cuts(self, n_done: int, n_rounds: int) -> CandidateSplits:
        """What `n_rounds` rounds after `n_done` others offer, for engines that make batches."""
        last = min(n_done + n_rounds, self._n_rounds)
        if last <= n_done:
            return NO_CANDIDATES
        if not self._first <= n_done <= last <= self._first + len(self._offers.features):
            end = min(n_done + max(n_rounds, _ROUNDS_AT_ONCE), self._n_rounds)
            keys = self._key + np.arange(n_done, end, dtype=np.uint64)
            self._first, self._offers = n_done, self._places.candidates(keys)
        own = slice(n_done - self._first, last - self._first)
        return CandidateSplits(*(part[own] for part in self._offers))


@dataclass(frozen=True)
class CutPlaces:
    """Where each feature may be cut in smoothing rounds.

    Attributes
    ----------
    thresholds : ndarray (n_thresholds,) of float64
        Feature after feature, increasing: the midpoints between neighbouring distinct values of the
        sampled rows, and infinity where some of them have a value and some have none.
    n_places : ndarray (n_features,) of int64
        How many cuts each feature has; a categorical one has one less than groups.
    keys : ndarray (n_features,) of uint64
        A number for each feature, from which its draws follow; see `keys_of`.
    groups : mapping of int to Groups
        Of the categorical features.
    """

    thresholds: np.ndarray
    n_places: np.ndarray
    keys: np.ndarray
    groups: Mapping[int, Groups] = field(default_factory=dict)

    @classmethod
    def of(cls, values: np.ndarray, groups: Mapping[int, Groups] | None = None) -> CutPlaces:
        """From the values of the sampled rows.

        Parameters
        ----------
        values : ndarray (n_rows, n_features) of float
            In the dtype in which the table's values are compared. NaN means missing.
        groups : mapping of int to Groups, optional
            Of the categorical features, whose values are numbers of categories; negative numbers
            are missing values, too.
        """
        known = dict(groups or {})
        is_set = np.isin(np.arange(values.shape[1]), list(known))
        n = max(1, _AT_ONCE // len(values))
        blocks = [slice(at, at + n) for at in range(0, values.shape[1], n)]
        parts = [_cuts_of(values[:, own], is_set[own]) for own in blocks]
        thresholds, n_places, sums = (np.concatenate(part) for part in zip(*parts, strict=True))
        n_places[list(known)] = [max(0, len(own.members) - 1) for own in known.values()]
        return cls(thresholds, n_places, _keys_of(sums), known)

    @functools.cached_property
    def features(self) -> np.ndarray:
        """The features that have a cut, increasing."""
        return np.flatnonzero(self.n_places)

    @functools.cached_property
    def _n_numbers(self) -> int:
        """How many numbers the categories have; see `CategoryColumns.n_numbers`."""
        return 2 + max(
            (number for own in self.groups.values() for number in own.numbers), default=-1
        )

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """Where the thresholds of each feature begin."""
        counts = self.n_places.copy()
        counts[list(self.groups)] = 0
        starts: np.ndarray = np.cumsum(counts) - counts
        return starts

    def candidates(self, keys: np.ndarray) -> CandidateSplits:
        """What rounds with these keys, (n_rounds,) of uint64, offer."""
        if not len(self.features):
            nothing = np.zeros((len(keys), 0))
            return CandidateSplits(nothing.astype(np.int64), nothing)
        bits = mixed(mixed(keys)[:, np.newaxis] + self.keys[self.features])
        order = np.argsort(bits, axis=1, kind="stable")
        n_chosen = math.isqrt(len(self.features) - 1) + 1  # the square root, as in random forests
        chosen = np.sort(order[:, :n_chosen], axis=1)
        drawn = mixed(np.take_along_axis(bits, chosen, axis=1))
        features = self.features[chosen]
        n_places = self.n_places[features].astype(np.uint64)
        places = ((drawn >> np.uint64(32)) * n_places >> np.uint64(32)).astype(np.int64)
        if not self.groups:
            return CandidateSplits(features, self.thresholds[self._starts[features] + places])
        is_set = np.isin(features, list(self.groups))
        thresholds = np.full(features.shape, np.nan)
        plain = self._starts[features[~is_set]] + places[~is_set]
        thresholds[~is_set] = self.thresholds[plain]
        sides = np.empty((*features.shape, self._n_numbers), dtype=np.uint8)
        for feature, groups in self.groups.items():
            here = features == feature
            sides[here] = _drawn_sides(groups, places[here], drawn[here], self._n_numbers)
        return CandidateSplits(features, thresholds, sides)


def _cuts_of(values: np.ndarray, is_set: np.ndarray) -> tuple[np.ndarray, ...]:
    """The thresholds of neighbouring features, how many each has, and `_sums_of` their values.

    `is_set` (n_features,) of bool tells which are categorical; these have no thresholds.
    """
    values = np.where(is_set & (values < 0), np.nan, values)
    ordered = np.sort(values, axis=0)  # missing values last
    is_missing = np.isnan(ordered)
    is_cut = np.empty(ordered.shape, dtype=bool)
    is_cut[:-1] = ordered[:-1] < ordered[1:]
    is_cut[-1] = is_missing[-1] & ~is_missing[0]
    thresholds = np.full(ordered.shape, np.inf)
    thresholds[:-1] = midpoints(ordered)
    is_cut[:, is_set] = False
    return thresholds.T[is_cut.T], is_cut.sum(axis=0), _sums_of(values)


def _sums_of(values: np.ndarray) -> np.ndarray:
    """For each column a number that equal columns share."""
    alike = np.where(np.isnan(values), np.nan, values + 0.0).astype(np.float64)  # one NaN, one 0
    rows = mixed(np.arange(len(values), dtype=np.uint64))
    found: np.ndarray = mixed(alike.view(np.uint64) ^ rows[:, np.newaxis]).sum(axis=0)
    return found


def _keys_of(sums: np.ndarray) -> np.ndarray:
    """`keys_of`, from `_sums_of`."""
    found = sums.copy()
    order = np.argsort(found, kind="stable")
    ranked, numbers = found[order], np.arange(len(order), dtype=np.uint64)
    found[order] = mixed(ranked) + numbers - np.searchsorted(ranked, ranked).astype(np.uint64)
    return found


def keys_of(values: np.ndarray) -> np.ndarray:
    """For each column of a table (n_rows, n_features) of float a number that follows from its
    values, (n_features,) of uint64.

    Columns that are equal in all these rows get different numbers, in order of their places. Equal
    values have equal numbers as float32 and as float64.
    """
    return _keys_of(_sums_of(values))


def _drawn_sides(
    groups: Groups, places: np.ndarray, drawn: np.ndarray, n_numbers: int
) -> np.ndarray:
    """The region of each number of a category, (n, n_numbers) of uint8: a cut at a place (n,) parts
    that many groups and one from the others, in the order of 64 bits drawn for each."""
    keys = mixed(drawn[:, np.newaxis] + np.arange(len(groups.members), dtype=np.uint64))
    is_first = np.argsort(np.argsort(keys, axis=1), axis=1) <= places[:, np.newaxis]
    with_lowest = is_first == is_first[:, :1]  # the lowest group goes left
    found = np.full((len(places), n_numbers), MISSING, dtype=np.uint8)
    of_groups = groups.of_numbers(n_numbers)[groups.numbers]
    found[:, groups.numbers] = np.where(with_lowest, FIRST, SECOND)[:, of_groups]
    return found


def mixed(given: np.ndarray | np.uint64) -> np.ndarray:
    """64 bits that look random, from 64 bits: SplitMix64's increment, then its finaliser [Steele,
    Lea and Flood 2014]."""
    with np.errstate(over="ignore"):
        x = np.asarray(given, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def sampled_values(X: Array, rows: Array | None, n_samples: int) -> np.ndarray:
    """The values of the sampled rows, (n, n_features), in NumPy and in the dtype of comparisons.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
    rows : array (n_samples,) of int, or None
        The rows that take part; None for all.
    n_samples : int
    """
    index = sampled_rows(n_samples, int(X.shape[1]))
    if rows is not None:
        index = arrays.to_host(rows)[index]
    return values_of(X, index)


def sampled_rows(n_samples: int, n_features: int) -> np.ndarray:
    """The samples between whose values cuts are offered, (n,) of int64, increasing."""
    most = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_VALUES // n_features))
    n = min(n_samples, most)
    return np.arange(n, dtype=np.int64) * n_samples // n


def values_of(X: Array, index: np.ndarray, features: Sequence[int] | None = None) -> np.ndarray:
    """The values of a few rows, (n, n_features), in NumPy and in the dtype of comparisons; of all
    features or of some."""
    if arrays.is_sparse(X):
        few: np.ndarray = X.with_rows(index).dense(features)
        return few
    with arrays.computing_on(X):
        xp, device = arrays.namespace_of(X), arrays.device_of(X)
        taken = xp.take(X, xp.asarray(index, device=device), axis=0)
        found: np.ndarray = arrays.to_host(arrays.as_working(taken))
        return found if features is None else found[:, list(features)]
