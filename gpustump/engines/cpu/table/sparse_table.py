"""A sparse table as kernels search it: the sorted samples that each feature lists."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.arrays import SparseTable
from gpustump.engines.cpu.runtime.compiling import Integers, group
from gpustump.engines.sparse_order import SparseOrder, sorted_columns
from gpustump.engines.threads import Team


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


def prepare(X: SparseTable, rows: np.ndarray | None, team: Team) -> SparseSorted:
    """Sort the columns of an `arrays.SparseTable`, or of some of its rows."""
    found = sorted_columns(X, rows, team)
    return SparseSorted(**{own.name: getattr(found, own.name) for own in fields(found)}, team=team)
