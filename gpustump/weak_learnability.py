"""Functions that stumps learn weakly, under a public name; see `gpustump.theory`."""

from gpustump.theory.weak_learnability import (
    KINDS,
    IntervalFunction,
    make_intervals,
    random_distribution,
)

__all__ = ["KINDS", "IntervalFunction", "make_intervals", "random_distribution"]
