"""The scan of a sparse table: the sums left of all cuts of all features, in one cumulative sum.

The sorted samples that the features list stand one after the other, and where a feature has zeros,
one *cell* stands for all of them: its sums are what the listed samples leave of the totals. So the
sums left of a cut are a difference of two cumulative sums, to which the zeros' sums are added where
the cut is not below them. A cumulative sum over many features may pass the range of int64. It wraps
around, and differences are right again.

What cuts are worth, and which are allowed, is defined as for `split_scan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Cut
from gpustump.engines.gain import Sums, best_constant, gain_of, score_of_outputs
from gpustump.engines.monotone import limit_of
from gpustump.engines.objective import Objective
from gpustump.engines.reference.integers import Integers, hessian_of
from gpustump.engines.reference.split_scan import below_all
from gpustump.engines.sparse_order import SparseOrder


@dataclass(frozen=True)
class SparseCells:
    """The cells of a table's features, and the cuts after them.

    Attributes
    ----------
    samples : array (n_cells,) of int64
        `n_samples` stands for a feature's zeros.
    ends : array (n_features, 3) of int64
        Of the features with cuts: the first cell, and those after the last sample with a value and
        after the last one.
    cuts : array (n_cuts,) of int64
        The cells before the cuts, in the order of `contract.Cut`. The last cut of a feature is the
        threshold above all values.
    of : array (n_cuts,) of int64
        The place in `ends` of each cut's feature.
    has_zeros : array (n_cuts, 1) of bool
        Whether the zeros are on the left.
    is_above_all : array (n_cuts, 1) of bool
    feature, position : ndarray (n_cuts,) of int64
    """

    samples: Array
    ends: Array
    cuts: Array
    of: Array
    has_zeros: Array
    is_above_all: Array
    feature: np.ndarray
    position: np.ndarray

    @classmethod
    def of_table(cls, table: SparseOrder, like: Array) -> SparseCells:
        """The cells, in the library and on the device of another array."""
        features = np.flatnonzero(table.n_listed)
        listed, below = table.n_listed[features], table.n_below[features]
        zeros = table.n_zeros[features]
        has_cell = (zeros > 0).astype(np.int64)
        begin = np.concatenate([[0], np.cumsum(listed + has_cell)])
        samples = np.full(begin[-1], table.n_samples)
        is_end = np.ones(begin[-1], dtype=bool)
        is_listed = np.ones(begin[-1], dtype=bool)
        at_zeros = (begin[:-1] + below)[zeros > 0]
        is_listed[at_zeros] = False
        samples[is_listed] = table.order & np.iinfo(table.order.dtype).max
        is_end[is_listed] = table.order >= 0
        of_cell = np.repeat(np.arange(len(features)), listed + has_cell)
        place = np.arange(begin[-1]) - begin[of_cell]
        n_present = table.n_present[features] + has_cell
        cuts = np.flatnonzero(is_end & (place < n_present[of_cell]))
        of, place = of_cell[cuts], place[cuts]
        has_zeros = (place >= below[of]) & (zeros[of] > 0)
        position = place + np.where(has_zeros, zeros[of] - 1, 0)
        ends = np.stack([begin[:-1], begin[:-1] + n_present, begin[1:]], axis=1)
        xp, device = arrays.namespace_of(like), arrays.device_of(like)

        def there(values: np.ndarray) -> Any:
            return xp.asarray(values, device=device)

        return cls(
            there(samples), there(ends), there(cuts), there(of), there(has_zeros[:, np.newaxis]),
            there((place == n_present[of] - 1)[:, np.newaxis]), features[of], position,
        )  # fmt: skip


def best_split(cells: SparseCells, integers: Integers, objective: Objective) -> Cut:
    """The largest allowed cut, in the order of `Cut`."""
    outputs = zip(integers.outputs, integers.totals, strict=True)
    regions = [_regions(cells, (own.gradient, hessian_of(own)), totals) for own, totals in outputs]
    constant = best_constant(integers.totals, objective)
    if not len(cells.feature):
        return constant
    scores = score_of_outputs(gain_of(objective), regions)
    xp = arrays.namespace_of(scores)
    is_allowed = ~cells.is_above_all | (scores > constant.score)
    ((_, weight), *_) = integers.totals
    limit = limit_of(objective, weight, integers.outputs[0].gradient.shape[0])
    if limit is not None:
        ((left, right, _),) = regions
        is_allowed &= cells.is_above_all | limit.of_features(cells.feature).allows(left, right)
    scores = xp.where(is_allowed, scores, below_all(scores))
    at = int(xp.argmax(scores))  # of equal ones the first
    score = arrays.to_host(scores[at, 0]).item()
    if constant.score > score:
        return constant
    return Cut(int(cells.feature[at]), int(cells.position[at]), 0, 0, score)


def _regions(
    cells: SparseCells, numbers: tuple[Array, Array], totals: tuple[int, int]
) -> tuple[Sums, Sums, Sums]:
    """The sums of an output over left, right and missing of all cuts, (n_cuts, 1)."""
    found = [_parts(cells, *given) for given in zip(numbers, totals, strict=True)]
    left, right, missing = (Sums(*parts) for parts in zip(*found, strict=True))
    return left, right, missing


def _parts(cells: SparseCells, numbers: Array, total: int) -> tuple[Array, Array, Array]:
    xp = arrays.namespace_of(numbers)
    with_zeros = xp.concat([numbers, xp.zeros_like(numbers[:1])])
    running = xp.cumulative_sum(xp.take(with_zeros, cells.samples), include_initial=True)
    begin, present, end = (xp.take(running, cells.ends[:, place]) for place in range(3))
    of_zeros, missing = total - (end - begin), end - present
    before, own, none = (
        xp.reshape(xp.take(part, cells.of), (-1, 1)) for part in (begin, of_zeros, missing)
    )
    left = xp.reshape(xp.take(running, cells.cuts + 1), (-1, 1)) - before
    left = left + xp.where(cells.has_zeros, own, 0)
    return left, total - none - left, none
