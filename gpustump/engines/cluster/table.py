"""The prepared table of a cluster: its bins are in this process, its rows in the shards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.engines.cluster.bins import CommonBins
from gpustump.engines.cluster.shards import Shards
from gpustump.engines.cluster.sums_source import ClusterSums
from gpustump.engines.integer_weights import fitting_exponent, safe_exponent
from gpustump.learners.thresholds import midpoint


def unit_exponent(ask: Callable[..., list[Any]], n_integers: int, n_copies: int = 1) -> int:
    """See `integer_weights.unit_exponent`; `ask` asks all places about the weights of theirs."""
    safe = safe_exponent(max(ask("largest_weight")), n_integers)
    return fitting_exponent(safe, sum(ask("scaled_total", safe)) * n_copies, n_integers)


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
        if n_copies not in self._exponents:
            found = unit_exponent(self.shards.ask, self.n_samples * n_copies, n_copies)
            self._exponents[n_copies] = found
        return self._exponents[n_copies]

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after the sorted position that a search has just found."""
        return self._thresholds[feature, position]

    def note_threshold(self, feature: int, position: int, source: ClusterSums) -> None:
        """Keep the threshold after a sorted position that has just been found, for `threshold`."""
        found = math.inf
        if position + 1 < self.n_samples - self.n_missing[feature]:
            around = self._keys_around(feature, position, source)
            keys = np.asarray(around, dtype=self.types.coded.replace("float", "int"))
            found = midpoint(*arrays.floats_of(keys).astype(self.types.compared))
        self._thresholds.clear()  # a round asks for its own thresholds only
        self._thresholds[feature, position] = found

    def _keys_around(self, feature: int, position: int, source: ClusterSums) -> tuple[int, int]:
        """The keys of the values on both sides of a cut."""
        bins, layout = self.bins, self.bins.layout
        slot = int(layout.first[feature]) + layout.bin_at(feature, position)
        if position == layout.last[slot]:  # between two bins
            return int(bins.high[slot]), int(bins.low[slot + 1])
        return source.keys_around(slot, position)
