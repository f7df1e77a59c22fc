"""The feature table of the reference engine: every feature sorted once, before the first round.

A boosting run scans the same table in every round, with other weights. Everything that depends on
the values alone is computed here, so the scan reads no values. Labels and weights are unknown to
this file, so several runs (one class against the rest) can share one `ArrayTable`.

Inside, the table is transposed: row j of `order` holds the samples of feature j from the smallest
value to the largest, then those whose value is missing (NaN). The sorted position k means the place
between the samples k and k + 1 of that order, counted from 0. It is a cut if their values differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.data.parameters import check_count
from gpustump.engines.category_table import hidden
from gpustump.learners.thresholds import midpoint

HOST_BLOCK_BYTES = 8 * 2**20
"""Default bytes of temporaries on the CPU; with NumPy, 2 to 64 MiB are about equally fast."""
DEVICE_BLOCK_BYTES = 512 * 2**20
"""Default bytes of temporaries elsewhere, meant to give each launch of a kernel enough to do; not
measured on a GPU yet."""

_FEW_CUTS = 0.25
"""If at most this share of the sorted positions are cuts, they are listed in `Block.places`."""

ELEMENT_BYTES = 48
"""Temporary bytes per element of a block: values, keys, order and sorted keys while it is prepared;
gathered weights, their running sums and two masked copies of those while it is scanned."""


@dataclass(frozen=True)
class Block:
    """Neighbouring features, sorted: as many as one scan may take at once.

    Attributes
    ----------
    order : array (b, n_samples) of int32 or int64
        Samples by increasing value, missing ones last.
    cuts : array (b, n_samples - 1) of bool, or None
        Whether this sorted position is a cut; None if all are.
    n_cuts, n_present : ndarray (b,) of int64
        How many cuts each feature has, and how many samples with a value.
    """

    order: Array
    cuts: Array | None
    n_cuts: np.ndarray
    n_present: np.ndarray

    @property
    def has_all_values(self) -> bool:
        """Whether no sample lacks a value of any of the features."""
        return bool((self.n_present == self.order.shape[1]).all())

    @cached_property
    def places(self) -> Array | None:
        """The sorted positions of each feature's cuts, (b, m) of int64, where they are few.

        m is the largest number of cuts of a feature; features with fewer repeat their last one.
        None if many positions are cuts, or if none is.
        """
        n_positions, most = self.order.shape[1] - 1, int(self.n_cuts.max())
        if self.cuts is None or not 0 < most <= n_positions * _FEW_CUTS:
            return None
        xp, device = arrays.namespace_of(self.cuts), arrays.device_of(self.cuts)
        positions = xp.arange(n_positions, dtype=xp.int64, device=device)
        found = xp.sort(xp.where(self.cuts, positions, n_positions), axis=1)[:, :most]
        last = xp.asarray(np.maximum(self.n_cuts - 1, 0)[:, np.newaxis], device=device)
        ends = xp.take_along_axis(found, last, axis=1)
        return xp.where(found < n_positions, found, xp.where(ends < n_positions, ends, 0))


@dataclass(frozen=True)
class ArrayTable:
    """A feature table ready to be scanned.

    Attributes
    ----------
    X : array (n_samples_given, n_features)
        The caller's own table; never copied whole, never changed.
    rows : array (n_samples,) of int, or None
        The rows of X that take part; None for all of them.
    blocks : tuple of Block
        All features in order; all blocks except the last hold the same number of features.
    n_samples, n_features : int
    n_cuts, n_present : ndarray (n_features,) of int64
        Those of all blocks.
    block_bytes : int
        How many bytes of temporaries a scan may take.
    """

    X: Array
    rows: Array | None
    blocks: tuple[Block, ...]
    n_samples: int
    n_features: int
    n_cuts: np.ndarray
    n_present: np.ndarray
    block_bytes: int

    @property
    def n_missing(self) -> np.ndarray:
        return self.n_samples - self.n_present

    def values(self, feature: int) -> Array:
        """One feature's values (n_samples,) in the dtype in which they are compared."""
        return arrays.picked(arrays.as_working(self.X[:, feature]), self.rows)

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position: the `midpoint` of that value and the next one.

        Infinite after the last value that is not missing.
        """
        block, row = self.row_of(feature)
        if position + 1 >= block.n_present[row]:
            return math.inf
        samples = arrays.integers(block.order[row, position : position + 2])
        low, high = (self._value(feature, sample) for sample in samples)
        return midpoint(low, high)

    def row_of(self, feature: int) -> tuple[Block, int]:
        """The block that holds a feature, and its place there."""
        block, row = divmod(feature, self.blocks[0].order.shape[0])
        return self.blocks[block], row

    def _value(self, feature: int, sample: int) -> Any:
        """One value, as a NumPy scalar of the dtype in which values are compared."""
        row = sample if self.rows is None else int(self.rows[sample])
        return arrays.to_host(arrays.as_working(self.X[row : row + 1, feature]))[0]


def prepare(
    X: Array,
    *,
    rows: Array | None = None,
    block_bytes: int | None = None,
    categorical: Sequence[int] = (),
) -> ArrayTable:
    """Sort every column of a table once.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
        Booleans, integers or floats, NaN for missing, of any array library.
    rows : array (n_samples,) of int, optional
        Use only these rows, without a copy of the table.
    block_bytes : int, optional
        Bytes of temporaries allowed; features are sorted in blocks that fit. One feature is always
        sorted whole, so preparing may take about 48 bytes per sample even if that is more.
    categorical : sequence of int
        As for `contract.Task`.

    Returns
    -------
    ArrayTable

    Raises
    ------
    ValueError, TypeError
        If block_bytes is not a whole number above 0.
    """
    if block_bytes is not None:
        check_count(block_bytes, "block_bytes")
    else:
        block_bytes = HOST_BLOCK_BYTES if arrays.on_host(X) else DEVICE_BLOCK_BYTES
    n_samples, n_features = X.shape[0] if rows is None else rows.shape[0], X.shape[1]
    blocks = []
    for features in spans(n_features, n_samples * ELEMENT_BYTES, block_bytes):
        values = arrays.as_working(hidden(X[:, features], features.start, categorical))
        blocks.append(_sorted_block(arrays.picked(values, rows)))
    return ArrayTable(
        X=X,
        rows=rows,
        blocks=tuple(blocks),
        n_samples=n_samples,
        n_features=n_features,
        n_cuts=np.concatenate([block.n_cuts for block in blocks]),
        n_present=np.concatenate([block.n_present for block in blocks]),
        block_bytes=block_bytes,
    )


def spans(total: int, bytes_each: int, budget: int) -> Iterator[slice]:
    """Slices that cover `total` items in order, each as long as the budget allows, none empty."""
    size = max(1, budget // bytes_each)
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


def _sorted_block(values: Array) -> Block:
    """Sort the columns of a table (n_samples, b)."""
    xp = arrays.namespace_of(values)
    n_samples, n_features = values.shape
    flat = xp.reshape(xp.permute_dims(values, (1, 0)), (-1,))  # contiguous, one feature at a time
    keys = arrays.order_keys(flat)
    if n_features == 1:  # CuPy sorts one row of two dimensions more slowly than one dimension
        order = xp.reshape(xp.argsort(keys, stable=False), (1, n_samples))
        keys = xp.reshape(keys, (1, n_samples))
    else:
        keys = xp.reshape(keys, (n_features, n_samples))
        order = xp.argsort(keys, axis=1, stable=False)
    keys = xp.take_along_axis(keys, order, axis=1)
    missing = arrays.missing_key(arrays.dtype_name(values))
    cuts = (keys[:, 1:] != keys[:, :-1]) & (keys[:, 1:] != missing)
    n_cuts = _count(cuts)
    return Block(
        order=xp.astype(order, xp.int32 if n_samples < 2**31 else xp.int64),
        cuts=None if bool((n_cuts == n_samples - 1).all()) else cuts,
        n_cuts=n_cuts,
        n_present=_count(keys != missing),
    )


def _count(flags: Array) -> np.ndarray:
    """How many of each row are true, on the host."""
    xp = arrays.namespace_of(flags)
    return arrays.to_host(xp.sum(xp.astype(flags, xp.int64), axis=1))
