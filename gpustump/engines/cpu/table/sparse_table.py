"""A sparse table as kernels search it: the sorted samples that each feature lists."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.arrays import SparseTable
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import Integers, group, kernel
from gpustump.engines.sparse_order import SparseOrder, sorted_columns
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND, Partition

_SAMPLE = np.int32(2**31 - 1)
"""Masks the sign bit out."""


@group
class SparseColumns(NamedTuple):
    """The features of a sparse table; see `SparseOrder`.

    Attributes
    ----------
    order : ndarray (n_listed,) of int32
    starts : ndarray (n_features + 1,) of int64
    n_below, n_present, n_zeros : ndarray (n_features,) of int64
        How many listed samples are below 0, how many have a value, and how many are not listed.
    """

    order: Annotated[np.ndarray, "int32[::1]"]
    starts: Integers
    n_below: Integers
    n_present: Integers
    n_zeros: Integers


@dataclass(frozen=True)
class SparseSorted(SparseOrder):
    """A sparse table and its sorted columns, and the threads that work on it."""

    team: Team

    @functools.cached_property
    def columns(self) -> SparseColumns:
        return SparseColumns(self.order, self.starts, self.n_below, self.n_present, self.n_zeros)

    def has_cut(self, cut: Cut, hypothesis: Partition) -> bool:
        """Whether a stump or split has the same regions as a cut."""
        if hypothesis.feature != cut.feature or len(hypothesis.thresholds) != 1:
            return False
        if cut.position is None:
            return hypothesis.thresholds == (np.inf,)
        return hypothesis.thresholds == (self.threshold(cut.feature, cut.position),)

    def mark(self, cut: Cut, regions: np.ndarray) -> None:
        """Write the region of each sample, (n_samples,) of uint8."""
        feature, columns = cut.feature, self.columns
        own = columns.order[columns.starts[feature] : columns.starts[feature + 1]]
        n_below, n_zeros = int(columns.n_below[feature]), int(columns.n_zeros[feature])
        n_present = int(columns.n_present[feature])
        position = self.n_samples if cut.position is None else cut.position
        regions[:] = FIRST if n_below + n_zeros <= position + 1 else SECOND
        _mark(own[:n_below], position + 1, regions)
        _mark(own[n_below:n_present], position + 1 - n_below - n_zeros, regions)
        regions[own[n_present:] & _SAMPLE] = MISSING


@kernel("void(int32[::1], int64, uint8[::1])")
def _mark(order, n_left, regions):  # type: ignore[no-untyped-def]
    """Write the regions of some sorted samples, of which the first `n_left` are on the left."""
    for k in range(len(order)):
        regions[order[k] & _SAMPLE] = FIRST if k < n_left else SECOND


def prepare(X: SparseTable, rows: np.ndarray | None, team: Team) -> SparseSorted:
    """Sort the columns of an `arrays.SparseTable`, or of some of its rows."""
    found = sorted_columns(X, rows, team)
    return SparseSorted(**{own.name: getattr(found, own.name) for own in fields(found)}, team=team)
