"""Shares of the weight of held-out samples: accuracy, balanced accuracy, area under the ROC curve.

Each share is a ratio of two integers, rounded once; means of shares are taken on the host. The
integers of the accuracies add up over groups of samples; those of the ROC curve do not.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.samples import Watched, weight_of
from gpustump.engines.integer_weights import IntegerWeights

_PAIR_BITS = 30
"""The weights of one class sum to about 2**30 when pairs are counted, so that their products do not
overflow."""


@dataclass(frozen=True)
class Accuracy:
    """The share of the weight that is classified right; of equal scores the first class wins.

    An `AdditiveScorer`.

    Attributes
    ----------
    held_out : HeldOut or HeldOutClasses
    total : int
        The sum of their integer weights.
    """

    held_out: Watched
    total: int

    is_additive: ClassVar[Literal[True]] = True

    @classmethod
    def of(cls, held_out: Watched) -> Accuracy:
        return cls(held_out, weight_of(held_out))

    def __call__(self, scores: Array) -> float:
        return self.value(self.parts(scores), self.totals)

    @property
    def totals(self) -> list[int]:
        """The integer weight, as the only item."""
        return [self.total]

    def parts(self, scores: Array) -> list[int]:
        """The integer weight that is classified right, as the only item."""
        return [self.held_out.right_weight(scores)]

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (right,), (total,) = parts, totals
        return right / total


@dataclass(frozen=True)
class ByClass:
    """The held-out samples in the order of their classes.

    Attributes
    ----------
    order : array (n_held_out,) of int64
        The numbers of the samples, class by class.
    weights : array (n_held_out,) of int64
        Their integer weights in this order.
    ends : tuple of int
        Where each class ends in this order.
    totals : tuple of int
        The integer weight of each class.
    """

    order: Array
    weights: Array
    ends: tuple[int, ...]
    totals: tuple[int, ...]

    @classmethod
    def of(cls, held_out: Watched) -> ByClass:
        classes, values = held_out.classes, held_out.weights.values
        xp, device = arrays.namespace_of(values), arrays.device_of(values)
        on_host = arrays.to_host(classes)
        order = xp.asarray(np.argsort(on_host, kind="stable"), device=device)
        ends = np.cumsum(np.bincount(on_host, minlength=held_out.n_classes)).tolist()
        weights = xp.take(values, order, axis=0)
        return cls(order, weights, tuple(ends), tuple(_sums_of_slices(weights, ends)))

    def slices(self) -> list[slice]:
        """For each class, its samples in `order`."""
        return [slice(*pair) for pair in zip((0, *self.ends), self.ends, strict=False)]


def _sums_of_slices(values: Array, ends: Sequence[int]) -> list[int]:
    """The sums of consecutive slices of integers (n,), given where each slice ends."""
    xp = arrays.namespace_of(values)
    sums = xp.cumulative_sum(values, include_initial=True)  # the sum of all is below 2**62
    at = xp.asarray((0, *ends), device=arrays.device_of(values))
    return [int(part) for part in np.diff(arrays.to_host(xp.take(sums, at, axis=0)))]


@dataclass(frozen=True)
class BalancedAccuracy:
    """The mean, over all classes, of the share of the class that is classified right.

    An `AdditiveScorer`.
    """

    held_out: Watched
    by_class: ByClass

    is_additive: ClassVar[Literal[True]] = True

    def __call__(self, scores: Array) -> float:
        return self.value(self.parts(scores), self.totals)

    @property
    def totals(self) -> list[int]:
        """For each class its integer weight: 0 if it has no samples here."""
        return list(self.by_class.totals)

    def parts(self, scores: Array) -> list[int]:
        """For each class the integer weight of its samples that are classified right."""
        kernels = self.held_out.sums
        return self._sums(scores) if kernels is None else kernels.right_weights(scores)

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score; no total may be 0."""
        return _mean([right / total for right, total in zip(parts, totals, strict=True)])

    def _sums(self, scores: Array) -> list[int]:
        """`parts` by array operations."""
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            is_right = xp.take(self.held_out.right(scores), self.by_class.order, axis=0)
            weights = self.by_class.weights
            right = xp.where(is_right, weights, xp.zeros_like(weights))
            return _sums_of_slices(right, self.by_class.ends)


@dataclass(frozen=True)
class RocAuc:
    """The mean, over the outputs, of the area under the ROC curve of the class against the rest.

    One area is the share of pairs, a sample of the class and one of the rest, in which the first
    has the larger score. A pair with equal scores counts half. For K outputs the mean is what
    scikit-learn's `roc_auc_score` calls multi_class="ovr", average="macro", applied to the scores
    of the outputs, whatever the link.

    Whole weights are counted exactly if those of the class sum to less than 2**30, and those of the
    rest, too. Other weights are rounded until they do.

    It is not additive: the two samples of a pair may be in two groups, and neither group knows
    which of them has the larger score.
    """

    held_out: Watched
    samples: _Samples
    outputs: tuple[_OneAgainstRest, ...]

    is_additive: ClassVar[Literal[False]] = False

    @classmethod
    def of(cls, held_out: Watched, by_class: ByClass) -> RocAuc:
        bits = _bits_of_classes(by_class)
        outputs = (_OneAgainstRest.of(number, by_class, bits) for number in held_out.positives)
        samples = _Samples(held_out.classes, held_out.weights.values)
        return cls(held_out, samples, tuple(outputs))

    def __call__(self, scores: Array) -> float:
        with arrays.computing_on(scores):
            columns = zip(self.outputs, self.held_out.outputs(scores), strict=True)
            return _mean([output.area(units, self.samples) for output, units in columns])


class _Samples(NamedTuple):
    """Classes and integer weights of all held-out samples, each (n_held_out,) of int64."""

    classes: Array
    weights: Array


@dataclass(frozen=True)
class _OneAgainstRest:
    """The samples of one class, and how to round the weights of the rest.

    Attributes
    ----------
    number : int
        The class.
    rows : array (n_of_class,) of int64
        Its samples.
    weights : IntegerWeights
        Of these samples, with a sum of about 2**30 or less.
    shift : int
        How many binary places the weights of the rest lose, so that they sum to about 2**30 or
        less.
    """

    number: int
    rows: Array
    weights: IntegerWeights
    shift: int

    @classmethod
    def of(cls, number: int, by_class: ByClass, bits: Sequence[int]) -> _OneAgainstRest:
        own, total = by_class.slices()[number], by_class.totals[number]
        short = _shortened(by_class.weights[own], _shift(bits[number], total))
        of_rest = functools.reduce(operator.or_, (*bits[:number], *bits[number + 1 :]))
        return cls(
            number,
            by_class.order[own],
            IntegerWeights(short, int(arrays.namespace_of(short).sum(short))),
            _shift(of_rest, sum(by_class.totals) - total),
        )

    def area(self, units: Array, samples: _Samples) -> float:
        """The area under the ROC curve, for the scores (n_held_out,) of all samples."""
        xp = arrays.namespace_of(units)
        rest = xp.nonzero(samples.classes != self.number)[0]
        lower, lower_weights = _in_order(units, rest, xp.take(samples.weights, rest, axis=0))
        upper, upper_weights = _in_order(units, self.rows, self.weights.values)
        sums = xp.cumulative_sum(_shortened(lower_weights, self.shift), include_initial=True)
        below, not_above = (  # it is quicker to search for sorted numbers
            xp.take(sums, xp.searchsorted(lower, upper, side=side), axis=0)
            for side in ("left", "right")
        )
        won = int(xp.sum(upper_weights * (below + not_above)))
        return won / (2 * self.weights.total * int(sums[-1]))


def _in_order(units: Array, rows: Array, weights: Array) -> tuple[Array, Array]:
    """The sorted scores of some of all samples, and their weights in the same order."""
    xp = arrays.namespace_of(units)
    scores = xp.take(units, rows, axis=0)
    order = xp.argsort(scores, stable=False)
    return xp.take(scores, order, axis=0), xp.take(weights, order, axis=0)


def _bits_of_classes(by_class: ByClass) -> list[int]:
    """For each class the binary digits that are set in any of its weights."""
    values = arrays.to_host(by_class.weights)
    return [int(np.bitwise_or.reduce(values[own])) for own in by_class.slices()]


def _shift(bits: int, total: int) -> int:
    """How many binary places weights must lose; at least the zeros at the end of all of them.

    (Whole weights are kept times a power of two.)
    """
    return max((bits & -bits).bit_length() - 1, total.bit_length() - _PAIR_BITS)


def _shortened(values: Array, shift: int) -> Array:
    """Weights (n,) of int64 without their last binary places, rounded."""
    return (values + ((1 << shift) >> 1)) >> shift


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
