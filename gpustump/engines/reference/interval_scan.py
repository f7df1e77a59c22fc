"""The scan for intervals: the two cuts of a feature between which the labels agree best.

With `score_left` at every cut (see `stump_scan`), the signed weight between the cuts j < k is
score_left[k] - score_left[j]. The agreement of an interval that votes +1 inside and -1 outside is
twice that, less the sum over all samples whose value is present; that of the opposite interval is
the negative of it. So the best interval of a feature follows from the largest rise and the largest
fall of `score_left` from a cut to a later one. A running minimum and a running maximum find both in
one pass [Kadane's maximum subarray; Bentley 1984].

The result is the best of stumps and intervals, in the order of `Cut`. All sums are int64, and the
compiled engines are tested against this file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut, constant_cut, sign_of
from gpustump.engines.integer_weights import TOP
from gpustump.engines.reference.integers import Integers
from gpustump.engines.reference.stump_scan import (
    Extremes,
    ExtremesSoFar,
    agreements,
    cut_of,
    scores_left,
)
from gpustump.engines.reference.table import ArrayTable, Block

_TIMES_THE_BYTES = 2
"""With the running extremes, an element takes twice the temporary memory of `stump_scan`."""


class Steepest(NamedTuple):
    """Each feature's largest rise and largest fall of `score_left` from a cut to a later one.

    Both are int64 (n_features,), with -2**62 where a feature has fewer than two cuts.
    """

    rise: Array
    fall: Array


def best_interval(table: ArrayTable, integers: Integers) -> Cut:
    """The largest cut over all stumps and intervals, in the order of `Cut`.

    The integers are those of discrete votes for one output.
    """
    gradient, ((total, _),) = integers.outputs[0].gradient, integers.totals
    xp = arrays.namespace_of(gradient)
    found = []
    for block in table.blocks:
        extremes, steepest = ExtremesSoFar(block, gradient, total), _SteepestSoFar(block, gradient)
        stretches = scores_left(block, gradient, table.block_bytes // _TIMES_THE_BYTES)
        for samples, score_left in stretches:
            extremes.take(samples, score_left)
            steepest.take(samples, score_left)
        found.append(xp.stack([*extremes.extremes, *steepest.steepest]))
    on_host = arrays.to_host(xp.concat(found, axis=1))
    of_stumps, slopes = Extremes(*on_host[:5]), Steepest(*on_host[5:])

    by_stumps = agreements(of_stumps, total, table.n_cuts)
    by_intervals = interval_agreements(slopes, of_stumps.present, total, table.n_cuts)
    largest = np.maximum(by_stumps.max(axis=0), by_intervals)
    feature = int(np.argmax(largest))  # of equal ones the lowest
    best = cut_of(feature, of_stumps, by_stumps, total, table)
    if by_intervals[feature] > best.agreement:
        present = int(of_stumps.present[feature])
        best = _located(table, gradient, total, feature, present, int(by_intervals[feature]))
    return max(best, constant_cut(total))


def interval_agreements(
    slopes: Steepest, present: np.ndarray, total: int, n_cuts: np.ndarray
) -> np.ndarray:
    """Each feature's largest agreement of an interval, (n_features,) of int64; -1 without one.

    `present` (n_features,) are the sums over the samples with a value, `total` that over all.
    """
    has_any = n_cuts > 1
    rise, fall = np.where(has_any, slopes.rise, 0), np.where(has_any, slopes.fall, 0)
    best = np.maximum(2 * rise - present, 2 * fall + present) + np.abs(total - present)
    return np.where(has_any, best, -1)


class _SteepestSoFar:
    """The largest rises and falls of a block's features over the stretches scanned so far."""

    def __init__(self, block: Block, gradient: Array) -> None:
        xp = arrays.namespace_of(gradient)
        floor = xp.full_like(gradient[:1], -TOP)
        self._block, self._xp = block, xp
        self._rise = self._fall = xp.broadcast_to(floor, (block.order.shape[0],))
        self._low, self._high = -floor, floor  # the extremes at the cuts before a stretch

    def take(self, samples: slice, score_left: Array) -> None:
        """Add a stretch of sorted positions, with its `score_left` (b, n)."""
        xp, cuts = self._xp, self._block.cuts
        is_cut = None if cuts is None else cuts[:, samples]
        lows = _least_before(score_left, is_cut, self._low)
        highs = -_least_before(-score_left, is_cut, -self._high)
        rises = _above(score_left, lows[:, :-1], is_cut)
        falls = _above(-score_left, -highs[:, :-1], is_cut)
        self._rise = xp.maximum(self._rise, xp.max(rises, axis=1))
        self._fall = xp.maximum(self._fall, xp.max(falls, axis=1))
        self._low, self._high = lows[:, -1:], highs[:, -1:]

    @property
    def steepest(self) -> Steepest:
        """The result, after all stretches."""
        return Steepest(self._rise, self._fall)


def _least_before(score_left: Array, is_cut: Array | None, before: Array) -> Array:
    """The least score at the cuts before each position, (b, n + 1); the last column is over all.

    `before`, (b, 1) or (1,), is the least score at the cuts of earlier stretches, 2**62 if there
    are none.
    """
    xp = arrays.namespace_of(score_left)
    at_cuts = score_left if is_cut is None else xp.where(is_cut, score_left, TOP)
    before = xp.broadcast_to(before, (score_left.shape[0], 1))
    return arrays.running_minimum(xp.concat([before, at_cuts], axis=1))


def _above(score_left: Array, least: Array, is_cut: Array | None) -> Array:
    """How far the score at each cut is above the least at a cut before it; -2**62 elsewhere."""
    xp = arrays.namespace_of(score_left)
    counts = least < TOP if is_cut is None else is_cut & (least < TOP)
    return xp.where(counts, score_left - least, -TOP)


def _located(
    table: ArrayTable, gradient: Array, total: int, feature: int, present: int, agreement: int
) -> Cut:
    """The first interval of a feature with this agreement, the largest one of the feature."""
    block, row = table.row_of(feature)
    whole = Block(
        block.order[row : row + 1, :],
        None if block.cuts is None else block.cuts[row : row + 1, :],
        block.n_cuts[row : row + 1],
        block.n_present[row : row + 1],
    )
    ((_, score_left),) = scores_left(
        whole, gradient, 2**62
    )  # a feature is small enough, see prepare
    missing = total - present
    inside = agreement - abs(missing)
    vote = sign_of(missing or total)
    found = []
    for polarity in (1, -1):
        # 2 * steep - polarity * present is its agreement, over the present samples only.
        steep = (inside + polarity * present) // 2
        step = _first_step(polarity * score_left, whole.cuts, steep)
        if step is not None:
            after, position = step
            found.append(Cut(feature, position, polarity, vote, agreement, after))
    return max(found)


def _first_step(score_left: Array, is_cut: Array | None, rise: int) -> tuple[int, int] | None:
    """The first pair of cuts, (lower, upper), between which the score (1, n) rises by `rise`.

    `rise` is the largest rise. The pair with the first upper cut also has the first lower cut: an
    earlier lower cut of another such pair would have the same score, so it would form a pair with
    this upper cut as well.
    """
    xp = arrays.namespace_of(score_left)
    lows = _least_before(score_left, is_cut, xp.full_like(score_left[0, :1], TOP))
    reached = _above(score_left, lows[:, :-1], is_cut)[0, :] == rise
    if not bool(xp.any(reached)):
        return None
    upper = int(xp.argmax(xp.astype(reached, xp.int8)))
    # Masked, not sliced: JAX would compile a slice anew for every length.
    comes_before = xp.arange(score_left.shape[1], device=arrays.device_of(score_left)) < upper
    counts = comes_before if is_cut is None else is_cut[0, :] & comes_before
    return int(xp.argmin(xp.where(counts, score_left[0, :], TOP))), upper
