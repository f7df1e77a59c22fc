"""The theory of boosted stumps as functions.

    bounds              on the training error and on the error on new samples; growth functions
    margins             margins, and the share of samples below a margin
    losses              the loss or score of a cut by its threshold, and of a model by round
    weak_learnability   the functions that stumps learn weakly, and samples of them
    arguments           checks that these files share

Each function states its theorem and source. All raise a ValueError or a TypeError, which names the
argument, if one is not as described.
"""

from gpustump.theory.bounds import (
    edge_bounds,
    interval_growth,
    margin_bound,
    product_growth,
    stump_growth,
    training_bounds,
    vc_bound,
    vc_bound_if_consistent,
    weak_learning_samples,
)
from gpustump.theory.losses import (
    Losses,
    RoundLosses,
    SplitScores,
    losses_by_round,
    split_scores,
    weighted_losses,
)
from gpustump.theory.margins import class_margins, normalised_margins, share_below
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
