"""How far a step moves the shares of a bin's sums.

The share of a cut in a bin is the part of the bin's positive (or negative) weight that lies left of
the cut. Engines keep shares, or bounds of them, from round to round; this file says by how much a
step can change them.

Under real, Newton and shared votes the weights of all samples change in every round. But samples of
the same label change alike, up to the factors of the regions that they lie in. So a share hardly
changes: from one round to the next by at most

    (sqrt(r) - 1) / (sqrt(r) + 1) = tanh(ln(r) / 4)

where r is the largest factor of that label over the smallest. For a share s becomes
s a / (s a + t b) with t = 1 - s and a / b between 1/r and r, and that moves s most where s / t is
sqrt(b/a).

There is a second bound. Most cuts separate few samples from many, the *majority*, and most bins
hold hardly any of the few. Let P be a bin's new sum for one label, and D its distance from what the
sum would be if all samples were of the majority. If all of the few gain weight relative to the
majority, a share s moves by (1 - s) D/P at most; if all of them lose it, by s D/P; so by D/P in any
case. The smaller of the two bounds holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import OutputFactors, RegionFactors
from gpustump.engines.objective import Objective

ROUNDINGS = 2.0**-40
"""The most that roundings of the weights move a share in a round: each is 2**-52 of a weight."""


class Movement(NamedTuple):
    """What a step does to shares; each is an array (n_outputs, 2), for the labels -1 and +1.

    Attributes
    ----------
    most : ndarray of float64
        The most that a share moves in any bin.
    of_majority : ndarray of float64
        The most that a share moves in a bin whose samples are all of the majority.
    is_one_way : ndarray of bool
        Whether the samples of other regions all gain weight relative to the majority, or all lose
        it. If not, or if that is not known, only the bound `most` holds.
    low, high : ndarray of float64
        The least and the largest factor by which a sum of gradients changes if all samples are
        of the majority; under a softmax, whatever the samples are. Both are 0 if that is not known.
    """

    most: np.ndarray
    of_majority: np.ndarray
    is_one_way: np.ndarray
    low: np.ndarray
    high: np.ndarray


UNKNOWN = Movement(
    np.ones((1, 2)), np.ones((1, 2)), np.zeros((1, 2), dtype=bool), np.zeros((1, 2)),
    np.zeros((1, 2)),
)  # fmt: skip
"""For one output: shares may move by any amount."""


def movement_of(
    factors: RegionFactors, counts: Sequence[int] | None, objective: Objective
) -> Movement:
    """What a step does to shares, computed with Python's numbers, as they are few.

    Parameters
    ----------
    factors : tuple (n_regions,) of tuple (n_outputs,) of (float, float)
        Of samples with the label -1, and with the label +1; see `contract.Step`.
    counts : sequence (n_regions,) of int, or None
        How many samples lie in each region; None if that is not known.
    objective : Objective
    """
    of_softmax, of_odds = objective.loss == "softmax", objective.loss == "logistic"
    is_known = counts is not None and not of_softmax
    taken = [own for r, own in enumerate(factors) if counts is None or counts[r] > 0]
    majority = (
        factors[max(range(len(factors)), key=counts.__getitem__)] if counts is not None else ()
    )
    shares = _of_softmax(taken) if of_softmax else []
    numbers = []
    for output in range(objective.n_outputs):
        for label in (0, 1):
            extremes = (
                shares[output][label] if of_softmax else _extremes(taken, output, label, objective)
            )
            most = _moved(*extremes)
            of_majority, is_one_way = most, False
            low, high = extremes if of_softmax else (0.0, 0.0)
            if is_known:
                own, others = majority[output][label], [each[output][label] for each in taken]
                is_one_way = own in (min(others), max(others))
                low, high = _extremes([majority], output, label, objective)
                of_majority = _moved(low, high) if of_odds else 0.0
            numbers.append((most, of_majority, is_one_way, low, high))
    by_field = np.asarray(numbers, dtype=np.float64).T.reshape(-1, objective.n_outputs, 2)
    return Movement(*by_field)._replace(is_one_way=by_field[2] > 0.0)


def _extremes(
    taken: Sequence[OutputFactors], output: int, label: int, objective: Objective
) -> tuple[float, float]:
    """The least and the largest factor of gradients, in regions with these factors."""
    own = [region[output][label] for region in taken]
    if objective.loss in ("exponential", "poisson", "gamma"):
        return min(own), max(own)
    return min(1.0, *own), max(1.0, *own)  # u / (1 + u) changes by less than u does


def _of_softmax(taken: Sequence[OutputFactors]) -> list[tuple[tuple[float, float], ...]]:
    """The same for each output of a softmax and the labels -1 and +1.

    A probability is multiplied by its factor, and divided by a mean of all of them; the sum of the
    others, which counts for the sample's class, lies between the extremes.
    """
    factors = [[own for own, _ in region] for region in taken]  # equal for both labels
    ends = [(min(own), max(own)) for own in factors]
    of_class = _ratios(ends, ends)
    return [
        (_ratios([(own, own) for own in by_region], ends), of_class)
        for by_region in zip(*factors, strict=True)
    ]


def _ratios(
    factors: Sequence[tuple[float, float]], means: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """The least and the largest factor over a mean, given the range of both in each region."""
    pairs = list(zip(factors, means, strict=True))
    return (
        min(least / most for (least, _), (_, most) in pairs),
        max(most / least if least > 0.0 else math.inf for (_, most), (least, _) in pairs),
    )


def _moved(least: float, most: float) -> float:
    """The most that a share moves if weights are multiplied by numbers between these."""
    if not 0.0 < least <= most < math.inf:
        return 1.0
    return math.tanh((math.log(most) - math.log(least)) / 4) + ROUNDINGS
