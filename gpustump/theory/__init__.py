"""The theory of boosted stumps as functions.

    training_error      bounds on the training error
    margins             margins, and the share of samples below a margin
    growth              in how many ways weak hypotheses can label samples
    generalisation      bounds on the error on new samples
    loss_curve          the weighted loss of a stump as a function of its threshold
    proportions         how well a share is known that was counted on samples
    weak_learnability   the functions that stumps learn weakly, and samples of them
    arguments           checks that these files share

The functions of the first four files are names of this package. Each states its theorem and source.
"""

from gpustump.theory.generalisation import (
    margin_bound,
    vc_bound,
    vc_bound_if_consistent,
    weak_learning_samples,
)
from gpustump.theory.growth import interval_growth, stump_growth
from gpustump.theory.margins import normalised_margins, share_below
from gpustump.theory.training_error import edge_bounds, training_bounds

__all__ = [
    "edge_bounds",
    "interval_growth",
    "margin_bound",
    "normalised_margins",
    "share_below",
    "stump_growth",
    "training_bounds",
    "vc_bound",
    "vc_bound_if_consistent",
    "weak_learning_samples",
]
