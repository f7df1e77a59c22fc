"""Functions that decision stumps learn weakly: public names; see `gpustump.theory`."""

from gpustump.theory.weak_learnability import (
    KINDS,
    IntervalFunction,
    make_intervals,
    random_distribution,
)

__all__ = ["KINDS", "IntervalFunction", "make_intervals", "random_distribution"]
