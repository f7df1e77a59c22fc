"""The prepared table of a cluster: its bins are in this process, its rows in the shards."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpustump.engines.cluster.bins import CommonBins, values_of
from gpustump.engines.cluster.shards import Shards
from gpustump.engines.cluster.sums_source import ClusterSums
from gpustump.engines.integer_weights import fitting_exponent, safe_exponent
from gpustump.engines.objective import Objective
from gpustump.learners.thresholds import midpoint


@dataclass(frozen=True)
class ValueTypes:
    """The dtypes of a table's values.

    Attributes
    ----------
    coded : str
        The type in which shards keep them, "float32" or "float64"; keys have as many bits.
    compared : str
        The type in which they are compared and thresholds are computed: `coded`, or "float16".
    """

    coded: str
    compared: str


@dataclass(frozen=True)
class ClusterTable:
    """A table whose rows are held by shards; see `contract.PreparedTable`.

    Attributes
    ----------
    X : object
        The caller's own table.
    shards : Shards
    bins : CommonBins
    types : ValueTypes
    """

    X: Any
    shards: Shards
    bins: CommonBins
    types: ValueTypes
    _exponents: dict[int, int] = field(default_factory=dict, repr=False)
    _thresholds: dict[tuple[int, int], float] = field(default_factory=dict, repr=False)

    @property
    def n_samples(self) -> int:
        return self.bins.n_samples

    @property
    def n_features(self) -> int:
        return len(self.bins.layout.first)

    @property
    def n_missing(self) -> np.ndarray:
        return self.bins.n_missing

    def exponent(self, n_copies: int = 1) -> int:
        """The unit of the integers, from the weights of all samples; see `unit_exponent`."""
        known = self._exponents.get(n_copies)
        if known is None:
            n_integers = self.n_samples * n_copies
            safe = safe_exponent(max(self.shards.ask("largest_weight")), n_integers)
            total = sum(self.shards.ask("scaled_total", safe)) * n_copies
            known = self._exponents[n_copies] = fitting_exponent(safe, total, n_integers)
        return known

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position; see `contract.PreparedTable`.

        A run must have begun, since shards answer with keys and sums together.
        """
        if (feature, position) not in self._thresholds:
            self.note_threshold(feature, position, None)
        return self._thresholds[feature, position]

    def note_threshold(self, feature: int, position: int, source: ClusterSums | None) -> None:
        """Find a threshold, and keep it until the next one is found.

        `source` is asked first: if an answer of this round had the keys, no message is needed.
        """
        found = math.inf
        if position + 1 < self.n_samples - self.n_missing[feature]:
            keys = np.asarray(self._keys_around(feature, position, source))
            found = midpoint(*values_of(keys, self.types.coded, np.dtype(self.types.compared)))
        self._thresholds.clear()  # a round asks for its own thresholds only
        self._thresholds[feature, position] = found

    def _keys_around(
        self, feature: int, position: int, source: ClusterSums | None
    ) -> tuple[int, int]:
        """The keys of the values on both sides of a cut."""
        bins, layout = self.bins, self.bins.layout
        slot = int(layout.first[feature]) + layout.bin_at(feature, position)
        if position == layout.last[slot]:  # between two bins
            return int(bins.high[slot]), int(bins.low[slot + 1])
        known = None if source is None else source.keys_around(slot, position)
        if known is None:
            known = self._asked_around(slot, feature, position)
        return known

    def _asked_around(self, slot: int, feature: int, position: int) -> tuple[int, int]:
        """The same for a cut that no search has just found: ask until it lies between two cells.

        A position between two samples of equal value is no cut; both keys are that value's.
        """
        source = ClusterSums(self.shards, self.bins, Objective())
        (answer,) = source.parts(np.asarray([slot]), np.asarray([feature]))
        while (found := source.keys_around(slot, position)) is None:
            cell = int(np.searchsorted(answer.slices.last, position))
            if not answer.slices.is_open[cell]:
                return int(answer.where.low[cell]), int(answer.where.high[cell])
            answer = source.samples(answer, np.asarray([0]), np.asarray([cell]))
        return found
