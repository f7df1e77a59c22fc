"""What a split is worth, from Python's own numbers: the scores of `worth`, one at a time.

A round's record needs one score. With arrays, one number takes longer than the whole search of a
small table. The operations and their order are those of `worth`, and so are the bits: Python
converts, multiplies, divides and adds as IEEE 754 defines, and C's square root is correctly
rounded.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from gpustump.engines.contract import RegionSums
from gpustump.engines.objective import Objective

_Pairs = Sequence[tuple[int, int]]
"""An output's sums over left, right and missing."""


def score_of(sums: RegionSums, objective: Objective) -> float:
    """What a split with these sums is worth, as a float."""
    return float(exact_score_of(sums, objective))


def exact_score_of(sums: RegionSums, objective: Objective) -> float:
    """What a split with these sums is worth, in the search's type: an int for discrete votes."""
    worth = _worth_of(objective)
    # Not `sum`, which starts from 0 and would turn -0.0 into 0.0.
    return functools.reduce(operator.add, map(worth, zip(*sums, strict=True)))


def _worth_of(objective: Objective) -> Callable[[Any], float]:
    if objective.gain == "discrete":
        return _agreement
    if objective.gain == "real":
        return _minus_half_normaliser
    return functools.partial(_newton_gain, objective.l2)


def _agreement(regions: _Pairs) -> int:
    (left, _), (right, _), (missing, _) = regions
    return abs(left - right) + abs(missing)


def _minus_half_normaliser(regions: _Pairs) -> float:
    left, right, missing = (
        math.sqrt(float((hessian + gradient) >> 1) * float((hessian - gradient) >> 1))
        for gradient, hessian in regions
    )
    return -((left + right) + missing)


def _newton_gain(l2: float, regions: _Pairs) -> float:
    left, right, missing = (
        float(gradient) * float(gradient) / max(float(hessian) + l2, 1.0)
        for gradient, hessian in regions
    )
    return (left + right) + missing
