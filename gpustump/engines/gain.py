"""What a cut gains: the scores, defined operation by operation.

A run adds up two integers for each sample and output: `gradient`, minus the gradient of the loss,
and `hessian`, which is not negative. A cut divides the samples into three regions: left,
right and missing values. The score of a cut follows from the sums over its regions:

    discrete    sum over outputs of |gradient_left - gradient_right| + |gradient_missing|
                the weight that the best signs get right less the weight that they get wrong
                [Freund and Schapire 1997; for several outputs Kegl 2013]
    real        minus the sum over outputs and regions of sqrt(P * N), that is -Z/2, where
                P = (hessian + gradient) / 2 is the weight of the samples with the label +1 and
                N = (hessian - gradient) / 2 that of the others
                [Schapire and Singer 1999, section 4.1]
    newton      sum over outputs and regions of gradient**2 / (hessian + l2): twice the decrease
                of the loss in a Newton step
                [Friedman, Hastie and Tibshirani 2000; Chen and Guestrin 2016]

The discrete score is an integer. The other two are float64 numbers, defined by the order of their
operations. First the sums are converted to float64. Then each region's part is computed: for real
votes the root of a product, for Newton votes a square divided by hessian + l2. Then the parts of
left and right are added, then that of missing, then output after output. No product is added to
anything, so no compiler can contract two operations into one, and every library and device gets the
same bits. Every engine computes these scores, or bounds of them; here they are computed twice: for
arrays of any library, and for the one split of a record.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.libraries import square_root
from gpustump.engines.contract import Cut, RegionSums, constant_cut
from gpustump.engines.objective import Objective


class Sums(NamedTuple):
    """Sums over a region, for one output: int64 arrays that broadcast against each other."""

    gradient: Array
    hessian: Array


Gain = Callable[[Sums, Sums, Sums], Array]
"""Computes one output's part of the score from its sums over left, right and missing."""


def gain_of(objective: Objective) -> Gain:
    """The function that computes one output's part of a score; see `score_of_outputs`."""
    if objective.gain == "discrete":
        return _agreement
    if objective.gain == "real":
        return _minus_half_normaliser
    return functools.partial(_newton_gain, objective.l2)


def score_of_outputs(gain: Gain, outputs: Iterable[tuple[Sums, Sums, Sums]]) -> Array:
    """The score of cuts: each output's part, added in the order of the outputs.

    Parameters
    ----------
    gain : callable
        As `gain_of` returns it.
    outputs : iterable of (Sums, Sums, Sums)
        For each output the sums of left, right and missing.
    """
    return functools.reduce(operator.add, (gain(*regions) for regions in outputs))


def _agreement(left: Sums, right: Sums, missing: Sums) -> Array:
    xp = arrays.namespace_of(left.gradient)
    return xp.abs(left.gradient - right.gradient) + xp.abs(missing.gradient)


def _minus_half_normaliser(left: Sums, right: Sums, missing: Sums) -> Array:
    roots = (_root_of_product(left) + _root_of_product(right)) + _root_of_product(missing)
    return -roots


def _root_of_product(sums: Sums) -> Array:
    positive, negative = weights_of_labels(sums)
    return square_root(positive * negative)


def weights_of_labels(sums: Sums) -> tuple[Array, Array]:
    """P and N of real votes: the weights of the samples labelled +1 and -1, in float64."""
    gradient, hessian = sums
    return as_float((hessian + gradient) >> 1), as_float((hessian - gradient) >> 1)


def _newton_gain(l2: float, left: Sums, right: Sums, missing: Sums) -> Array:
    """The gain of a Newton step; `l2` is lambda in units of the integers."""
    one, two, three = (_newton_part(l2, sums) for sums in (left, right, missing))
    return (one + two) + three


def _newton_part(l2: float, sums: Sums) -> Array:
    xp, gradient = arrays.namespace_of(sums.gradient), as_float(sums.gradient)
    denominator = as_float(sums.hessian) + l2
    # Only an empty region has a Hessian below 1; its gradient is 0.
    return (gradient * gradient) / xp.maximum(denominator, arrays.scalar(1.0, denominator))


def as_float(x: Array) -> Array:
    """Integers as float64."""
    xp = arrays.namespace_of(x)
    return xp.astype(x, xp.float64)


# A round's record needs the score of one split. With arrays, one number takes longer than the whole
# search of a small table. So the same scores follow from Python's own numbers, by the same
# operations in the same order. So are the bits: Python converts, multiplies, divides and adds as
# IEEE 754 defines, and C's square root is correctly rounded.

_Pairs = Sequence[tuple[int, int]]
"""An output's sums over left, right and missing."""


def score_of(sums: RegionSums, objective: Objective) -> float:
    """What a split with these sums is worth, as a float."""
    return float(exact_score_of(sums, objective))


def exact_score_of(sums: RegionSums, objective: Objective) -> float:
    """What a split with these sums is worth, in the search's type: an int for discrete votes."""
    gain = _gain_of_split(objective)
    # Not `sum`, which starts from 0 and would turn -0.0 into 0.0.
    return functools.reduce(operator.add, map(gain, zip(*sums, strict=True)))


def best_constant(totals: Sequence[tuple[int, int]], objective: Objective) -> Cut:
    """The constant, which leaves all samples together, from the sums over them, (n_outputs, 2)."""
    if objective.has_signs:
        return constant_cut(totals[0][0])
    nothing = [(0, 0)] * len(totals)
    return Cut(0, None, 0, 0, exact_score_of([totals, nothing, nothing], objective))


def _gain_of_split(objective: Objective) -> Callable[[Any], float]:
    if objective.gain == "discrete":
        return _agreement_of_split
    if objective.gain == "real":
        return _minus_half_normaliser_of_split
    return functools.partial(_newton_gain_of_split, objective.l2)


def _agreement_of_split(regions: _Pairs) -> int:
    (left, _), (right, _), (missing, _) = regions
    return abs(left - right) + abs(missing)


def _minus_half_normaliser_of_split(regions: _Pairs) -> float:
    left, right, missing = (
        math.sqrt(float((hessian + gradient) >> 1) * float((hessian - gradient) >> 1))
        for gradient, hessian in regions
    )
    return -((left + right) + missing)


def _newton_gain_of_split(l2: float, regions: _Pairs) -> float:
    left, right, missing = (
        float(gradient) * float(gradient) / max(float(hessian) + l2, 1.0)
        for gradient, hessian in regions
    )
    return (left + right) + missing
