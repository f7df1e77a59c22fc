"""The scan for splits with any kind of votes: real, Newton, and discrete for several outputs.

For every feature, with its samples in sorted order, and for every output, the cumulative sums of
the gradients and of the Hessians are the sums over the left region of each cut. The right region
has the rest of the samples whose value is present, and missing values are a region of their own.
`gain` computes a score from these sums; the cut with the largest score is the best.

Cuts that a monotone constraint forbids get a score below all others.

The sums are int64 and the scores are defined operation by operation, so blocks, libraries and
devices do not matter. The compiled engines must return the same numbers as this scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut
from gpustump.engines.gain import Gain, Sums, best_constant, gain_of, score_of_outputs
from gpustump.engines.monotone import Limit, limit_of
from gpustump.engines.objective import Objective
from gpustump.engines.reference.integers import Integers, gathered
from gpustump.engines.reference.table import ELEMENT_BYTES, ArrayTable, Block, spans

_TIMES_THE_BYTES = 3
"""An element takes this many times the temporary memory of `stump_scan`."""


Regions = tuple[Sums, Sums, Sums]
"""An output's sums over left, right and missing."""


class Best(NamedTuple):
    """Each feature's largest score over its cuts, and the first sorted position that has it.

    Both are arrays (n_features,). For a feature without a cut the score is below those of all cuts.
    """

    score: Array
    position: Array


class _Scoring(NamedTuple):
    """What cuts and a constant are worth, and which cuts are allowed; all if `limit` is None."""

    gain: Gain
    limit: Limit | None
    constant: float

    def of_features(self, features: slice) -> _Scoring:
        """The same for some of the features."""
        return self if self.limit is None else self._replace(limit=self.limit.of_features(features))

    def scores(self, outputs: Iterable[Regions]) -> Array:
        """The scores of cuts, from each output's sums over left, right and missing."""
        if self.limit is None:
            return score_of_outputs(self.gain, outputs)
        (only,) = outputs
        left, right, _ = only
        scores = score_of_outputs(self.gain, [only])
        xp = arrays.namespace_of(scores)
        return xp.where(self.limit.allows(left, right), scores, below_all(scores))


Groups = list[tuple[Sums, Sums]]
"""For each output the sums over the samples with a value and over those without, (b, 1)."""


def best_split(table: ArrayTable, integers: Integers, objective: Objective) -> Cut:
    """The largest allowed cut over all features and positions, in the order of `Cut`."""
    constant = best_constant(integers.totals, objective)
    if table.n_samples == 1:  # no cut; and a threshold above its value is no more than a constant
        return constant
    ((_, weight), *_) = integers.totals
    limit = limit_of(objective, weight, table.n_samples)
    scoring = _Scoring(gain_of(objective), limit, constant.score)
    of_blocks, first = [], 0
    for block in table.blocks:
        after = first + len(block.n_cuts)
        own = scoring.of_features(slice(first, after))
        of_blocks.append(_best_of_block(block, integers, own, table.block_bytes))
        first = after
    xp = arrays.namespace_of(of_blocks[0].score)
    found = Best(*(arrays.to_host(xp.concat(field)) for field in zip(*of_blocks, strict=True)))
    feature = int(np.argmax(found.score))  # of equal ones the lowest
    score, position = found.score[feature].item(), int(found.position[feature])
    return constant if constant.score > score else Cut(feature, position, 0, 0, score)


def _best_of_block(block: Block, integers: Integers, scoring: _Scoring, block_bytes: int) -> Best:
    """The best cuts of a block's features."""
    n_features, n_samples = block.order.shape
    missing = _missing_sums(block, integers)
    groups = [
        (_less(Sums(*total), none), none)
        for total, none in zip(integers.totals, missing, strict=True)
    ]
    # A block's places take time and memory when they are first needed.
    if n_features * n_samples * ELEMENT_BYTES <= block_bytes and block.places is not None:
        best = _best_at(block.places, block, integers, scoring, groups)
    else:
        best = _best_of_stretches(block, integers, scoring, groups, block_bytes)
    return best if block.has_all_values else _with_missing_apart(block, best, scoring, groups)


def _missing_sums(block: Block, integers: Integers) -> list[Sums]:
    """For each output the sums over each feature's missing values, (b, 1)."""
    n_features, n_samples = block.order.shape
    xp, device = arrays.namespace_of(block.order), arrays.device_of(block.order)
    if block.has_all_values:
        nothing = xp.zeros((n_features, 1), dtype=xp.int64, device=device)
        return [Sums(nothing, nothing) for _ in integers.outputs]
    first = int(block.n_present.min())
    places = xp.arange(first, n_samples, dtype=xp.int64, device=device)
    is_missing = places >= xp.asarray(block.n_present[:, np.newaxis], device=device)

    def summed(values: Array) -> Array:
        return xp.sum(xp.where(is_missing, values, 0), axis=1, keepdims=True)

    return [
        Sums(*map(summed, _of_samples(own, block.order[:, first:]))) for own in integers.outputs
    ]


def _best_at(
    places: Array, block: Block, integers: Integers, scoring: _Scoring, groups: Groups
) -> Best:
    """The best cuts where cuts are few: only those at the sorted positions `places` (b, m)."""
    xp, order = arrays.namespace_of(places), block.order
    running = (_running_sums(own, order) for own in integers.outputs)
    left = (Sums(*(xp.take_along_axis(part, places, axis=1) for part in own)) for own in running)
    scores = scoring.scores(_regions(left, groups))
    at = xp.argmax(scores, axis=1)
    position = xp.take_along_axis(places, xp.reshape(xp.astype(at, xp.int64), (-1, 1)), axis=1)
    has_cuts = xp.asarray(block.n_cuts > 0, device=arrays.device_of(places))
    score = xp.where(has_cuts, xp.max(scores, axis=1), below_all(scores))
    return Best(score, position[:, 0])


def _best_of_stretches(
    block: Block, integers: Integers, scoring: _Scoring, groups: Groups, block_bytes: int
) -> Best:
    """The best cuts, from as many sorted positions at a time as `block_bytes` allows."""
    xp, (n_features, n_samples) = arrays.namespace_of(block.order), block.order.shape
    before: list[Sums | None] = [None] * len(integers.outputs)
    best: Best | None = None
    bytes_each = n_features * ELEMENT_BYTES * _TIMES_THE_BYTES
    for samples in spans(n_samples - 1, bytes_each, block_bytes):
        left = _sums_left(integers, block.order[:, samples], before)
        scores = scoring.scores(_regions(left, groups))
        if block.cuts is not None:
            scores = xp.where(block.cuts[:, samples], scores, below_all(scores))
        at = xp.astype(xp.argmax(scores, axis=1), xp.int64)
        best = _merged(best, Best(xp.max(scores, axis=1), at + samples.start))
    assert best is not None  # there are two samples or more
    return best


def _sums_left(integers: Integers, order: Array, before: list[Sums | None]) -> Iterator[Sums]:
    """For each output the sums left of the cuts in a stretch of sorted samples, (b, n).

    `before` holds each output's sums over earlier stretches, None if there are none, and is
    updated. Only one output is in memory at a time.
    """
    for output, own in enumerate(integers.outputs):
        left, carry = _running_sums(own, order), before[output]
        if carry is not None:
            left = _added(left, carry)
        before[output] = Sums(*(part[:, -1:] + 0 for part in left))  # a view would keep all of it
        yield left


def _with_missing_apart(block: Block, best: Best, scoring: _Scoring, groups: Groups) -> Best:
    """The best cuts, where the threshold above all values counts as one, too.

    It makes a split, of the values from the missing ones, only where it is better than a constant.
    """
    xp, device = arrays.namespace_of(best.score), arrays.device_of(best.score)
    regions = ((present, _less(present, present), missing) for present, missing in groups)
    apart = score_of_outputs(scoring.gain, regions)[:, 0]
    n_present = xp.asarray(block.n_present, device=device)
    has_both = (n_present > 0) & (n_present < block.order.shape[1])
    is_split = has_both & (apart > scoring.constant)
    return _merged(best, Best(xp.where(is_split, apart, below_all(apart)), n_present - 1))


def _regions(left: Iterable[Sums], groups: Groups) -> Iterator[Regions]:
    """For each output the sums of left, right and missing."""
    for own, (present, missing) in zip(left, groups, strict=True):
        yield own, _less(present, own), missing


def _of_samples(integers: Sums, order: Array) -> Sums:
    """The integers of samples in sorted order, (b, n); Hessians are computed if None."""
    gradient = gathered(integers.gradient, order)
    if integers.hessian is None:
        return Sums(gradient, arrays.namespace_of(gradient).abs(gradient))
    return Sums(gradient, gathered(integers.hessian, order))


def _running_sums(integers: Sums, order: Array) -> Sums:
    own = _of_samples(integers, order)
    xp = arrays.namespace_of(own.gradient)
    return Sums(*(xp.cumulative_sum(part, axis=1) for part in own))


def _added(one: Sums, other: Sums) -> Sums:
    return Sums(one.gradient + other.gradient, one.hessian + other.hessian)


def _less(one: Sums, other: Sums) -> Sums:
    return Sums(one.gradient - other.gradient, one.hessian - other.hessian)


def _merged(best: Best | None, here: Best) -> Best:
    """Each feature's better cut of two stretches; of equal ones that with the lower threshold."""
    if best is None:
        return here
    xp = arrays.namespace_of(here.score)
    wins = here.score > best.score
    return Best(*(xp.where(wins, new, old) for new, old in zip(here, best, strict=True)))


def below_all(scores: Array) -> float | int:
    """Less than every score: agreements are not negative, other scores are floats."""
    return -np.inf if arrays.dtype_name(scores) == "float64" else -1
