"""Samples that stumps learn weakly; see `gpustump.theory.weak_learnability`."""

from gpustump.theory.weak_learnability import (
    KINDS,
    IntervalFunction,
    make_intervals,
    random_distribution,
)

__all__ = ["KINDS", "IntervalFunction", "make_intervals", "random_distribution"]
