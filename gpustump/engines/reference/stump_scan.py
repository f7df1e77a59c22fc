"""The scan for stumps: from sorted features and signed integer weights to the best cut.

For every feature, with its samples in sorted order and the gradients a_i = y_i * q_i, the integer
weights with the signs of their labels:

    score_left[k]  = a_1 + ... + a_k          score_right[k] = a_{k+1} + ... + a_n

The agreement of a stump that votes +1 on the left of cut k and -1 on its right is score_left -
score_right: the weight that it gets right less the weight that it gets wrong. That of the opposite
stump is the negative. So the best stump of a feature maximises |score_left - score_right|
[MATLAB's build_stump; Understanding Machine Learning, section 10.1.1].

The sum of the two is the same at every cut, so their difference, 2 * score_left - (that sum), has
its extremes where score_left has them. The array library computes one cumulative sum per feature
and its two extremes, for all features of a block at once; the host compares the features by a few
integers each. Samples whose value is missing are sorted last and lie on neither side: their region
has the sign of their own sum, whose absolute value is added to the agreement.

A monotone constraint allows only one polarity of a feature's stumps, so only one of its extremes
counts.

All sums are int64, so the order of summation, the blocks and the device do not matter. The compiled
engines must return the same integers as this scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays.libraries import Array
from gpustump.engines.contract import Cut, constant_cut, sign_of
from gpustump.engines.integer_weights import TOP
from gpustump.engines.objective import Objective
from gpustump.engines.reference.integers import Integers, gathered
from gpustump.engines.reference.table import ELEMENT_BYTES, ArrayTable, Block, spans


class Extremes(NamedTuple):
    """Each feature's largest and smallest `score_left` over its cuts.

    Every field is an int64 array (n_features,): the two values, the first sorted position at which
    each occurs, and the sum of a over the samples whose value is present. For features without a
    cut the first four have no meaning.
    """

    high: Array
    high_at: Array
    low: Array
    low_at: Array
    present: Array


_FREE = np.empty(0, dtype=np.int64)
"""No monotone constraints."""


def best_stump(table: ArrayTable, integers: Integers, objective: Objective) -> Cut:
    """The largest allowed cut over all features, positions and polarities, in the order of `Cut`.

    The integers are those of discrete votes for one output.
    """
    gradient, ((total, _),) = integers.outputs[0].gradient, integers.totals
    xp = arrays.namespace_of(gradient)
    of_blocks = []
    for block in table.blocks:
        so_far = ExtremesSoFar(block, gradient, total)
        for samples, score_left in scores_left(block, gradient, table.block_bytes):
            so_far.take(samples, score_left)
        of_blocks.append(xp.stack(so_far.extremes))
    found = Extremes(*arrays.to_host(xp.concat(of_blocks, axis=1)))  # the one large transfer
    each = agreements(found, total, table.n_cuts, objective.directions)
    feature = int(np.argmax(each.max(axis=0)))  # of equal ones the lowest
    return max(cut_of(feature, found, each, total, table), constant_cut(total))


class ExtremesSoFar:
    """The extremes of a block's features over the stretches of sorted positions scanned so far.

    Parameters
    ----------
    block : Block
    gradient : array (n_samples,) of int64
    total : int
        The sum of the gradients.
    """

    def __init__(self, block: Block, gradient: Array, total: int) -> None:
        xp, n_samples = arrays.namespace_of(gradient), block.order.shape[1]
        self._block, self._xp = block, xp
        self._best: list[Array] = []
        self._present = xp.full_like(gradient[:1], total)
        if not block.has_all_values:
            device = arrays.device_of(self._present)
            everywhere = xp.asarray(block.n_present == n_samples, device=device)
            self._present = xp.where(everywhere, self._present, 0)

    def take(self, samples: slice, score_left: Array) -> None:
        """Add a stretch of sorted positions, with its `score_left` (b, n)."""
        here = _extremes_here(score_left, self._block.cuts, samples)
        self._best = _merged(self._best, here) if self._best else here
        if not self._block.has_all_values:
            here_present = _at_last_present(score_left, self._block.n_present, samples)
            self._present = self._present + here_present

    @property
    def extremes(self) -> Extremes:
        """The result, after all stretches."""
        high, high_at, low, low_at = self._best
        present = self._xp.broadcast_to(self._present, high.shape)
        return Extremes(high, high_at, low, low_at, present)


def scores_left(block: Block, gradient: Array, block_bytes: int) -> Iterator[tuple[slice, Array]]:
    """`score_left` (b, n) of a block's features, a stretch of sorted positions at a time.

    The last position is never a cut, as there is no next sample, and is left out.
    """
    xp, (n_features, n_samples) = arrays.namespace_of(gradient), block.order.shape
    carry: Array | None = None
    for samples in spans(n_samples - 1, n_features * ELEMENT_BYTES, block_bytes):
        score_left = xp.cumulative_sum(gathered(gradient, block.order[:, samples]), axis=1)
        score_left = score_left if carry is None else score_left + carry
        carry = score_left[:, -1:]
        yield samples, score_left


def cut_of(feature: int, found: Extremes, each: np.ndarray, total: int, table: ArrayTable) -> Cut:
    """A feature's best cut, given what `agreements` returns; the score is -1 if it has no cut."""
    falling, rising, apart = each[:, feature].tolist()
    _, high_at, _, low_at, present = (int(of_features[feature]) for of_features in found)
    missing, last = sign_of((total - present) or total), int(table.n_present[feature]) - 1
    return max(
        Cut(feature, high_at, 1, missing, falling),
        Cut(feature, low_at, -1, missing, rising),
        Cut(feature, last, sign_of(present), missing, apart),
    )


def agreements(
    found: Extremes, total: int, n_cuts: np.ndarray, directions: np.ndarray = _FREE
) -> np.ndarray:
    """Each feature's largest agreements of three kinds of cuts, (3, n_features) of int64.

    The first is that of stumps with the sign +1 on the left, the second that of stumps with -1
    there. The third is that of the threshold above all values, which separates the present values
    from the missing ones. Each is -1 where there is no such cut, or none that is allowed.
    """
    missing = total - found.present
    high, low = np.where(n_cuts > 0, found.high, 0), np.where(n_cuts > 0, found.low, 0)
    falling, rising = 2 * high - found.present, found.present - 2 * low
    falling = np.where(n_cuts > 0, falling + np.abs(missing), -1)
    rising = np.where(n_cuts > 0, rising + np.abs(missing), -1)
    if len(directions):
        falling = np.where(directions > 0, -1, falling)
        rising = np.where(directions < 0, -1, rising)
    separates = np.sign(found.present) * np.sign(missing) < 0
    apart = np.where(separates, np.abs(found.present) + np.abs(missing), -1)
    return np.stack([falling, rising, apart])


def _extremes_here(score_left: Array, cuts: Array | None, samples: slice) -> list[Array]:
    """Largest and smallest score_left over the cuts of a stretch, with their positions."""
    xp = arrays.namespace_of(score_left)
    high = low = score_left
    if cuts is not None:
        here = cuts[:, samples]
        high = xp.where(here, score_left, -TOP)
        low = xp.where(here, score_left, TOP)
    high_at, low_at = xp.argmax(high, axis=1), xp.argmin(low, axis=1)
    return [
        xp.max(high, axis=1),
        xp.astype(high_at, xp.int64) + samples.start,
        xp.min(low, axis=1),
        xp.astype(low_at, xp.int64) + samples.start,
    ]


def _merged(best: list[Array], here: list[Array]) -> list[Array]:
    """The extremes of two stretches; of equal ones the earlier, which has the lower threshold."""
    xp = arrays.namespace_of(here[0])
    higher, lower = here[0] > best[0], here[2] < best[2]
    wins = [higher, higher, lower, lower]
    return [xp.where(win, new, old) for win, new, old in zip(wins, here, best, strict=True)]


def _at_last_present(score_left: Array, n_present: np.ndarray, samples: slice) -> Array:
    """score_left at each feature's last present sample if this stretch holds it, otherwise 0."""
    xp, device = arrays.namespace_of(score_left), arrays.device_of(score_left)
    at = n_present - 1 - samples.start
    inside = (at >= 0) & (at < score_left.shape[1])
    at = xp.asarray(np.where(inside, at, 0)[:, np.newaxis], device=device)
    reached = xp.take_along_axis(score_left, at, axis=1)[:, 0]
    return xp.where(xp.asarray(inside, device=device), reached, 0)
