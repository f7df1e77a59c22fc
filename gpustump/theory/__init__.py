"""The theory of boosted stumps as functions.

    training_error      bounds on the training error
    round_losses        error, log-loss and exponential loss of a model by round
    margins             margins, and the share of samples below a margin
    growth              in how many ways weak hypotheses can label samples
    generalisation      bounds on the error on new samples
    loss_curve          the weighted loss of a stump as a function of its threshold
    split_scores        the score of a split for other votes, as a function of its threshold
    feature_cuts        the cuts of one feature, for which both are computed
    proportions         how precisely a share counted on samples is known
    weak_learnability   the functions that stumps learn weakly, and samples of them
    arguments           checks that these files share

Each function states its theorem and source.
"""

from gpustump.theory.generalisation import (
    margin_bound,
    vc_bound,
    vc_bound_if_consistent,
    weak_learning_samples,
)
from gpustump.theory.growth import interval_growth, product_growth, stump_growth
from gpustump.theory.loss_curve import Losses, weighted_losses
from gpustump.theory.margins import class_margins, normalised_margins, share_below
from gpustump.theory.round_losses import RoundLosses, losses_by_round
from gpustump.theory.split_scores import SplitScores, split_scores
from gpustump.theory.training_error import bounds_of_rounds, edge_bounds, training_bounds
from gpustump.theory.weak_learnability import (
    IntervalFunction,
    make_intervals,
    random_distribution,
)

__all__ = [
    "IntervalFunction",
    "Losses",
    "RoundLosses",
    "SplitScores",
    "bounds_of_rounds",
    "class_margins",
    "edge_bounds",
    "interval_growth",
    "losses_by_round",
    "make_intervals",
    "margin_bound",
    "normalised_margins",
    "product_growth",
    "random_distribution",
    "share_below",
    "split_scores",
    "stump_growth",
    "training_bounds",
    "vc_bound",
    "vc_bound_if_consistent",
    "weak_learning_samples",
    "weighted_losses",
]
