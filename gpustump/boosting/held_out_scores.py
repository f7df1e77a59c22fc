"""What early stopping watches: scores of held-out samples that are the same on every device.

Greater is better, as in scikit-learn, so losses are negative. Each score is a ratio of two
integers, or rounded from one once, or a mean of such ratios:

* accuracy and balanced accuracy are shares of the integer weights (`held_out_shares`);
* the area under the ROC curve counts pairs of samples, with integer weights;
* the losses come from tables that the host makes (`loss_tables`), and their sums are sums of
  integers (`held_out_losses`). So the exponentials and logarithms of an array library are not used.
"""

from __future__ import annotations

from collections.abc import Callable

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out_losses import (
    NegativeExponentialLoss,
    NegativeLogLoss,
    log_losses,
)
from gpustump.boosting.held_out_samples import HeldOut, HeldOutClasses, Watched
from gpustump.boosting.held_out_shares import Accuracy, BalancedAccuracy, ByClass, RocAuc
from gpustump.data.parameters import Link, Scoring

__all__ = ["HeldOut", "HeldOutClasses", "Scorer", "Watched", "scorer"]

Scorer = Callable[[Array], float]
"""From the scores F of the held-out samples, float64, whole multiples of `VOTE_UNIT`, (n_held_out,)
or (n_held_out, K), to a score of the model, the greater the better."""


def scorer(scoring: Scoring, held_out: Watched, link: Link = "logistic") -> Scorer:
    """The function that computes a score of the held-out samples.

    Parameters
    ----------
    scoring : str
        * "loss": minus the mean, over samples and outputs, of ln(1 + exp(-y F)). For the softmax,
          minus the mean of ln(sum of exp(F_l)) - F_c, where c is the sample's class.
        * "neg_log_loss": minus the mean of -ln P, where P is the probability of the sample's class:
          for one output 1 / (1 + exp(-2 y F)); for the softmax exp(2 F_c) / (sum of exp(2 F_l));
          for K logistic outputs s_c / (sum of s_l), where s_l = 1 / (1 + exp(-2 F_l)).
        * "neg_exponential_loss": minus the mean, over samples and outputs, of exp(-y F), which is
          capped at exp(600) and exp(-600).
        * "accuracy"; of equal scores the first class counts.
        * "balanced_accuracy": the mean of the recalls of all classes.
        * "roc_auc": the area under the ROC curve; for K outputs the mean of the areas of each class
          against the rest, on the score of its output.

        y is 1 for the sample's class, and -1 for the others.
    held_out : HeldOut or HeldOutClasses
        One output, or K.
    link : str
        How scores become probabilities, "logistic" or "softmax"; one output is logistic.

    Returns
    -------
    callable
        See `Scorer`. The logarithmic losses of one output are off by less than 2**-24, those of K
        outputs by less than K * 2**-24, and n_held_out * 2**-42 for the rounding of weights; the
        exponential loss by less than 2**-49 of itself.

    Raises
    ------
    ValueError
        If "balanced_accuracy" or "roc_auc" is asked for and a class has no held-out samples, or if
        one output is to have the link "softmax".
    """
    if link == "softmax" and len(held_out.positives) == 1:
        raise ValueError(
            "link='softmax' needs one output for each class, but the held-out samples have one "
            "output. Take link='logistic', or give HeldOutClasses."
        )
    with arrays.computing_on(held_out.weights.values):
        if scoring == "loss" or scoring == "neg_log_loss":
            losses = log_losses(held_out, scoring == "neg_log_loss", link)
            return NegativeLogLoss.of(held_out, losses)
        if scoring == "neg_exponential_loss":
            return NegativeExponentialLoss.of(held_out)
        if scoring == "accuracy":
            return Accuracy(held_out)
        by_class = ByClass.of(held_out)
        _check_classes(scoring, by_class)
        if scoring == "balanced_accuracy":
            return BalancedAccuracy(held_out, by_class)
        return RocAuc.of(held_out, by_class)


def _check_classes(scoring: Scoring, by_class: ByClass) -> None:
    absent = by_class.absent()
    if absent:
        raise ValueError(
            f"scoring={scoring!r} needs held-out samples of every class, but class number "
            f"{absent[0]} has none. Hold out samples of it, or take scoring='loss'."
        )
