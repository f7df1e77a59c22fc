"""What a run of discrete votes keeps of each sample, and what a round does to it, for kernels."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group


@group
class Samples(NamedTuple):
    """Arrays (n_samples,).

    Attributes
    ----------
    signed : ndarray of float64
        Weights in units of the integers, each with the sign of its label.
    scores : ndarray of float64
    first_weights : ndarray of int64
        The first round's integers, (1,) if all are equal.
    votes : ndarray of int8
        The sign that the last hypothesis gives to each sample.
    """

    signed: Floats
    scores: Floats
    first_weights: Integers
    votes: Annotated[np.ndarray, "int8[::1]"]


@group
class Update(NamedTuple):
    """What a step of discrete votes does to scores and weights.

    Attributes
    ----------
    vote : float
        Times a sample's sign, this is added to its score.
    grown, kept : float
        The factors of the weights of samples that the signs get wrong, and of the others.
    anew : bool
        Whether all integers change, so that all sums over them must be added up anew.
    """

    vote: float
    grown: float
    kept: float
    anew: bool

    @classmethod
    def of(cls, step: Step) -> Update:
        _, vote, grown, kept = step.discrete
        return cls(float(vote), float(grown), float(kept), step.halvings != 0)


FIRST_SUMS = Update(0.0, 1.0, 1.0, True)
"""Changes nothing, but makes the kernels add up all sums."""


@group
class Sums(NamedTuple):
    """Sums over samples, in integers.

    Attributes
    ----------
    signed : int
        Of the weights, each with the sign of its label.
    weight : int
        Of the weights.
    misclassified : int
        Of the first round's weights of the samples that the score gets wrong.
    """

    signed: int
    weight: int
    misclassified: int
