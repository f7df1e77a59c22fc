"""The theory of boosted stumps as functions: bounds, margins, losses, weak learnability.

    bounds              bounds on errors, margins, growth functions
    loss_curve          the weighted loss of a stump as a function of its threshold
    weak_learnability   the class of functions that stumps learn weakly, as a source of samples

The functions of `bounds` are names of this package.
"""

from gpustump.theory.bounds import (
    edge_bounds,
    interval_growth,
    margin_bound,
    normalised_margins,
    share_below,
    stump_growth,
    training_bounds,
    vc_bound,
    vc_bound_if_consistent,
    weak_learning_samples,
)

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
