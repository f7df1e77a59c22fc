"""What early stopping watches: scores of held-out samples that are the same on every device.

Greater is better, as in scikit-learn, so losses are negative. Each score is the quotient of two
integers, rounded once, or a mean of such quotients:

* accuracy and balanced accuracy are shares of the integer weights;
* the area under the ROC curve counts pairs of samples, with integer weights;
* the losses come from tables that the host makes (`tables`), and their sums are sums of
  integers (`losses`). So the exponentials and logarithms of an array library are not used.

All but the area under the ROC curve are additive: each group of samples gives integers, these are
added up over the groups, and the score follows from the sums. So samples that are spread over
several machines have the same score as in one place, to the last bit. The groups must share the
unit of their integer weights; nothing else depends on the other groups.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.losses import (
    NegativeDeviance,
    NegativeExponentialLoss,
    NegativeLogLoss,
    NegativeSquaredError,
    log_loss,
)
from gpustump.boosting.held_out.samples import (
    AdditiveScorer,
    HeldOut,
    HeldOutTargets,
    weight_of,
)
from gpustump.boosting.held_out.tables import ExponentialTable
from gpustump.data.parameters import Link, Scoring
from gpustump.engines.integer_weights import IntegerWeights

_PAIR_BITS = 30
"""The weights of one class sum to about 2**30 when pairs are counted, so that their products do not
overflow."""


@dataclass(frozen=True)
class Accuracy(AdditiveScorer):
    """The share of the weight that is classified right; of equal scores the first class wins.

    Attributes
    ----------
    held_out : HeldOut
    """

    held_out: HeldOut

    @functools.cached_property
    def totals(self) -> list[int]:
        """The integer weight, as the only item."""
        return [weight_of(self.held_out)]

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
    def of(cls, held_out: HeldOut) -> ByClass:
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
class BalancedAccuracy(AdditiveScorer):
    """The mean, over all classes, of the share of the class that is classified right."""

    held_out: HeldOut
    by_class: ByClass

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

    held_out: HeldOut
    samples: _Samples
    outputs: tuple[_OneAgainstRest, ...]

    @classmethod
    def of(cls, held_out: HeldOut, by_class: ByClass) -> RocAuc:
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


Scorer = AdditiveScorer | RocAuc
"""A function from the scores of the held-out samples to the score of the model."""

Value = Callable[[Sequence[int], Sequence[int]], float]
"""A function from parts and totals to a score; see `AdditiveScorer`."""


def scorer(scoring: Scoring, held_out: HeldOut | HeldOutTargets, link: Link = "logistic") -> Scorer:
    """The function that computes a score of the held-out samples.

    Parameters
    ----------
    scoring : str
        * "loss": minus the mean, over samples and outputs, of ln(1 + exp(-y F)). For the softmax,
          minus the mean of ln(sum of exp(F_l)) - F_c, where c is the sample's class.
        * "neg_log_loss": minus the mean of -ln P, where P is the probability of the sample's class:
          for one output 1 / (1 + exp(-2 y F)); for the softmax exp(2 F_c) / (sum of exp(2 F_l));
          for K logistic outputs s_c / (sum of s_l), where s_l = 1 / (1 + exp(-2 F_l)).
        * "neg_exponential_loss": minus the mean, over samples and outputs, of exp(-y F); infinite
          where it is beyond float64.
        * "accuracy"; of classes with equal scores the first one is predicted.
        * "balanced_accuracy": the mean of the recalls of all classes.
        * "roc_auc": the area under the ROC curve; for K outputs the mean of the areas of each class
          against the rest, on the score of its output.
        * "neg_mean_squared_error", "neg_mean_poisson_deviance", "neg_mean_gamma_deviance": of a
          quantity, as boosting learns it.

        y is 1 for the sample's class, and -1 for the others.
    held_out : HeldOut or HeldOutTargets
    link : str
        How scores become probabilities, "logistic" or "softmax"; one output is logistic.

    Returns
    -------
    Scorer
        A callable. The error of a logarithmic loss is below 2**-24 for one output and below K *
        2**-24 for K outputs, plus n_held_out * 2**-42 for the rounding of weights. The relative
        error of the exponential loss is below 2**-49.

    Raises
    ------
    ValueError
        If "balanced_accuracy" or "roc_auc" is asked for and a class has no held-out samples, or if
        one output is to have the link "softmax".
    """
    if isinstance(held_out, HeldOutTargets) or scoring != "roc_auc":
        found = additive_scorer(scoring, held_out, link)
        check_classes(scoring, found.totals)
        return found
    _check_link(held_out, link)
    with arrays.computing_on(held_out.weights.values):
        by_class = ByClass.of(held_out)
        check_classes(scoring, by_class.totals)
        return RocAuc.of(held_out, by_class)


def additive_scorer(
    scoring: Scoring, held_out: HeldOut | HeldOutTargets, link: Link = "logistic"
) -> AdditiveScorer:
    """As `scorer`, for samples that may be one group of several, and may lack some classes.

    Raises
    ------
    ValueError
        If the score is not additive, or if one output is to have the link "softmax".
    """
    if isinstance(held_out, HeldOutTargets):
        if scoring == "neg_mean_poisson_deviance":
            return NegativeDeviance(held_out, "poisson")
        if scoring == "neg_mean_gamma_deviance":
            return NegativeDeviance(held_out, "gamma")
        return NegativeSquaredError(held_out)
    _check_additive(scoring)
    _check_link(held_out, link)
    with arrays.computing_on(held_out.weights.values):
        if scoring == "accuracy":
            return Accuracy(held_out)
        if scoring == "balanced_accuracy":
            return BalancedAccuracy(held_out, ByClass.of(held_out))
        if scoring == "neg_exponential_loss":
            return NegativeExponentialLoss(held_out, ExponentialTable.beside(held_out.classes))
        return log_loss(held_out, scoring == "neg_log_loss", link)


_VALUES: dict[Scoring, Value] = {
    "loss": NegativeLogLoss.value,
    "neg_log_loss": NegativeLogLoss.value,
    "neg_exponential_loss": NegativeExponentialLoss.value,
    "accuracy": Accuracy.value,
    "balanced_accuracy": BalancedAccuracy.value,
    "neg_mean_squared_error": NegativeSquaredError.value,
    "neg_mean_poisson_deviance": NegativeDeviance.value,
    "neg_mean_gamma_deviance": NegativeDeviance.value,
}


def value_of(scoring: Scoring) -> Value:
    """How a score follows from parts and totals, for callers with sums but without samples.

    Raises
    ------
    ValueError
        If the score is not additive.
    """
    _check_additive(scoring)
    return _VALUES[scoring]


def check_classes(scoring: Scoring, totals: Sequence[int]) -> None:
    """Raise a ValueError if the score needs samples of every class, and a class has none.

    Parameters
    ----------
    scoring : str
    totals : sequence of int
        The totals of the score, added up over all groups; for "roc_auc" the weight of each class.
    """
    if scoring not in ("balanced_accuracy", "roc_auc") or all(totals):
        return
    raise ValueError(
        f"scoring={scoring!r} needs held-out samples of every class, but class number "
        f"{list(totals).index(0)} has none. Hold out samples of it, or take scoring='loss'."
    )


def _check_additive(scoring: Scoring) -> None:
    if scoring not in _VALUES:
        raise ValueError(
            f"scoring={scoring!r} does not add up over groups of held-out samples, because it "
            "compares pairs of samples, which may be in two groups. Take scoring='loss'."
        )


def _check_link(held_out: HeldOut, link: Link) -> None:
    if link == "softmax" and held_out.n_outputs == 1:
        raise ValueError(
            "link='softmax' needs one output for each class, but the held-out samples have one "
            "output. Take link='logistic', or give n_outputs."
        )
