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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.losses import (
    NegativeDeviance,
    NegativeLogLoss,
    NegativePinball,
    NegativeSquaredError,
    log_loss,
)
from gpustump.boosting.held_out.samples import (
    AdditiveScorer,
    HeldOut,
    HeldOutTargets,
)
from gpustump.data.parameters import Link, Scoring

_PAIR_BITS = 30
"""The weights of one class sum to about 2**30 when pairs are counted, so that their products do not
overflow."""


@dataclass(frozen=True)
class Accuracy(AdditiveScorer):
    """The share of the weight that is classified right; of equal scores the first class wins."""

    held_out: HeldOut

    def parts(self, scores: Array) -> list[int]:
        """The integer weight that is classified right, as the only item."""
        return [self.held_out.right_weight(scores)]

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (right,), (total,) = parts, totals
        return right / total


@dataclass(frozen=True)
class BalancedAccuracy(AdditiveScorer):
    """The mean, over all classes, of the share of the class that is classified right."""

    held_out: HeldOut

    @functools.cached_property
    def totals(self) -> list[int]:
        """For each class its integer weight: 0 if it has no samples here."""
        return self.held_out.weights_by_class()

    def parts(self, scores: Array) -> list[int]:
        """For each class the integer weight of its samples that are classified right."""
        kernels = self.held_out.sums
        if kernels is not None:
            return kernels.right_weights(scores)
        with arrays.computing_on(scores):
            return self.held_out.weights_by_class(self.held_out.right(scores))

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score; no total may be 0."""
        return _mean([right / total for right, total in zip(parts, totals, strict=True)])


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

    Attributes
    ----------
    held_out : HeldOut
    shifts : tuple (n_outputs,) of (int, int)
        How many binary places the weights of the output's class lose, and those of the rest, so
        that both sum to about 2**30 or less.
    """

    held_out: HeldOut
    shifts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, held_out: HeldOut) -> RocAuc:
        """For samples of every class."""
        totals = held_out.weights_by_class()
        bits = np.zeros(len(totals), dtype=np.int64)  # the binary digits set in any weight
        classes, weights = held_out.classes, held_out.weights.values
        np.bitwise_or.at(bits, arrays.to_host(classes), arrays.to_host(weights))
        shifts = []
        for number in held_out.positives:
            of_rest = int(np.bitwise_or.reduce(np.delete(bits, number)))
            own, rest = totals[number], sum(totals) - totals[number]
            shifts.append((_shift(int(bits[number]), own), _shift(of_rest, rest)))
        return cls(held_out, tuple(shifts))

    def __call__(self, scores: Array) -> float:
        with arrays.computing_on(scores):
            own = self.held_out
            outputs = zip(own.positives, own.outputs(scores), self.shifts, strict=True)
            return _mean([self._area(*output) for output in outputs])

    def _area(self, number: int, units: Array, shifts: tuple[int, int]) -> float:
        """The area for one class, from the scores (n_held_out,) of its output."""
        xp = arrays.namespace_of(units)
        order = xp.argsort(units, stable=False)
        scores = xp.take(units, order, axis=0)
        is_own = xp.take(self.held_out.classes, order, axis=0) == number
        weights = xp.take(self.held_out.weights.values, order, axis=0)
        of_rest = xp.where(is_own, xp.zeros_like(weights), _shortened(weights, shifts[1]))
        sums = xp.cumulative_sum(of_rest, include_initial=True)
        rows = xp.nonzero(is_own)[0]
        of_class = _shortened(xp.take(weights, rows, axis=0), shifts[0])
        upper = xp.take(scores, rows, axis=0)
        below, not_above = (  # it is quicker to search for sorted numbers
            xp.take(sums, xp.searchsorted(scores, upper, side=side), axis=0)
            for side in ("left", "right")
        )
        won = int(xp.sum(of_class * (below + not_above)))
        return won / (2 * int(xp.sum(of_class)) * int(sums[-1]))


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
        * "accuracy"; of classes with equal scores the first one is predicted.
        * "balanced_accuracy": the mean of the recalls of all classes.
        * "roc_auc": the area under the ROC curve; for K outputs the mean of the areas of each class
          against the rest, on the score of its output.
        * "neg_mean_squared_error", "neg_mean_pinball_loss", "neg_mean_poisson_deviance",
          "neg_mean_gamma_deviance": of a quantity, as boosting learns it.

        y is 1 for the sample's class, and -1 for the others.
    held_out : HeldOut or HeldOutTargets
    link : str
        How scores become probabilities, "logistic" or "softmax"; one output is logistic.

    Returns
    -------
    Scorer
        A callable. The error of a logarithmic loss is below 2**-24 for one output and below K *
        2**-24 for K outputs, plus n_held_out * 2**-42 for the rounding of weights.
    """
    if isinstance(held_out, HeldOutTargets):
        if scoring == "neg_mean_poisson_deviance":
            return NegativeDeviance(held_out, "poisson")
        if scoring == "neg_mean_gamma_deviance":
            return NegativeDeviance(held_out, "gamma")
        if scoring == "neg_mean_pinball_loss":
            return NegativePinball(held_out)
        return NegativeSquaredError(held_out)
    with arrays.computing_on(held_out.weights.values):
        if scoring == "roc_auc":
            return RocAuc.of(held_out)
        if scoring == "accuracy":
            return Accuracy(held_out)
        if scoring == "balanced_accuracy":
            return BalancedAccuracy(held_out)
        return log_loss(held_out, scoring == "neg_log_loss", link)


VALUES: dict[Scoring, Callable[[Sequence[int], Sequence[int]], float]] = {
    "loss": NegativeLogLoss.value,
    "neg_log_loss": NegativeLogLoss.value,
    "accuracy": Accuracy.value,
    "balanced_accuracy": BalancedAccuracy.value,
    "neg_mean_squared_error": NegativeSquaredError.value,
    "neg_mean_pinball_loss": NegativePinball.value,
    "neg_mean_poisson_deviance": NegativeDeviance.value,
    "neg_mean_gamma_deviance": NegativeDeviance.value,
}
"""For each additive score the function from parts and totals, for callers without samples."""
