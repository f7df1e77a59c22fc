"""What early stopping watches: scores of held-out samples that are the same on every device.

Greater is better, as in scikit-learn, so losses are negative. Each score is the quotient of two
integers, rounded once, or a mean of such quotients:

* accuracy and balanced accuracy are shares of the integer weights (`held_out_shares`);
* the area under the ROC curve counts pairs of samples, with integer weights;
* the losses come from tables that the host makes (`loss_tables`), and their sums are sums of
  integers (`held_out_losses`). So the exponentials and logarithms of an array library are not used.

All but the area under the ROC curve are additive: each group of samples gives integers, these are
added up over the groups, and the score follows from the sums. So samples that are spread over
several machines have the same score as in one place, to the last bit. The groups must share the
unit of their integer weights; nothing else depends on the other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Protocol

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.deviances import NegativeDeviance
from gpustump.boosting.held_out.losses import (
    NegativeExponentialLoss,
    NegativeLogLoss,
    NegativeSquaredError,
    log_losses,
)
from gpustump.boosting.held_out.samples import (
    HeldOut,
    HeldOutClasses,
    HeldOutTargets,
    Watched,
)
from gpustump.boosting.held_out.shares import Accuracy, BalancedAccuracy, ByClass, RocAuc
from gpustump.data.parameters import Link, Scoring

__all__ = [
    "AdditiveScorer",
    "HeldOut",
    "HeldOutClasses",
    "HeldOutTargets",
    "Scorer",
    "Watched",
    "additive_scorer",
    "check_classes",
    "quantity_scorer",
    "scorer",
    "value_of",
]


class AdditiveScorer(Protocol):
    """A score of held-out samples that follows from integers which add up over groups of samples.

    For groups whose integer weights are in one unit, the parts of all samples are the element-wise
    sums of the groups' parts, and so are the totals. A group may be empty.
    """

    is_additive: ClassVar[Literal[True]]

    @property
    def totals(self) -> list[int]:
        """What the parts are divided by: the integer weight, as a whole or of each class."""

    def parts(self, scores: Array) -> list[int]:
        """The integers that depend on the scores; their number is the same for every group."""

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score of all samples, from the sums over their groups."""

    def __call__(self, scores: Array) -> float:
        """The score of these samples alone: the value of their own parts and totals."""


Scorer = AdditiveScorer | RocAuc
"""A function from the scores F of the held-out samples, (n_held_out,) or (n_held_out, K) of
float64, whole multiples of `VOTE_UNIT`, to the score of the model; greater is better."""

Value = Callable[[Sequence[int], Sequence[int]], float]
"""A function from parts and totals to a score; see `AdditiveScorer`."""


def scorer(scoring: Scoring, held_out: Watched | HeldOutTargets, link: Link = "logistic") -> Scorer:
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
    held_out : HeldOut, HeldOutClasses or HeldOutTargets
        One output, or K, or a quantity.
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
    if isinstance(held_out, HeldOutTargets):
        return quantity_scorer(scoring, held_out)
    if scoring != "roc_auc":
        found = additive_scorer(scoring, held_out, link)
        check_classes(scoring, found.totals)
        return found
    _check_link(held_out, link)
    with arrays.computing_on(held_out.weights.values):
        by_class = ByClass.of(held_out)
        check_classes(scoring, by_class.totals)
        return RocAuc.of(held_out, by_class)


def quantity_scorer(
    scoring: Scoring, held_out: HeldOutTargets
) -> NegativeSquaredError | NegativeDeviance:
    """As `scorer`, for the samples of a quantity, which may be one group of several."""
    if scoring == "neg_mean_poisson_deviance":
        return NegativeDeviance(held_out, "poisson")
    if scoring == "neg_mean_gamma_deviance":
        return NegativeDeviance(held_out, "gamma")
    return NegativeSquaredError(held_out)


def additive_scorer(scoring: Scoring, held_out: Watched, link: Link = "logistic") -> AdditiveScorer:
    """As `scorer`, for samples that may be one group of several, and may lack some classes.

    Raises
    ------
    ValueError
        If the score is not additive, or if one output is to have the link "softmax".
    """
    _check_additive(scoring)
    _check_link(held_out, link)
    with arrays.computing_on(held_out.weights.values):
        if scoring == "accuracy":
            return Accuracy.of(held_out)
        if scoring == "balanced_accuracy":
            return BalancedAccuracy(held_out, ByClass.of(held_out))
        if scoring == "neg_exponential_loss":
            return NegativeExponentialLoss.of(held_out)
        return NegativeLogLoss.of(held_out, log_losses(held_out, scoring == "neg_log_loss", link))


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


def _check_link(held_out: Watched, link: Link) -> None:
    if link == "softmax" and len(held_out.positives) == 1:
        raise ValueError(
            "link='softmax' needs one output for each class, but the held-out samples have one "
            "output. Take link='logistic', or give HeldOutClasses."
        )
