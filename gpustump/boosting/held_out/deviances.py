"""Poisson and gamma deviance: of held-out samples, and what they need besides the scores.

The deviance is twice the loss less the least loss that the targets allow [McCullagh and Nelder
1989]. For a target t and a prediction m:

    Poisson    2 * (t * ln(t / m) - t + m)
    gamma      2 * (ln(m / t) + t / m - 1)

Array libraries differ in the last digits of exponentials and logarithms. So exp(F) is a product of
entries of tables, which the host makes, and logarithms are computed on the host by additions,
products and quotients only. Weighted terms are rounded to whole numbers before they are added up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.samples import UNIT_BITS, HeldOutTargets, weight_of
from gpustump.boosting.held_out.tables import EXPONENT_LIMIT, exponential_table
from gpustump.boosting.votes.ratio import saturated
from gpustump.engines.ahead import LARGEST_EXPONENT, LARGEST_SCORE, PLACE_BITS, WatchedLoss
from gpustump.learners.step_table import VOTE_UNIT

_SPARE_BITS = 17
"""The sum of the weights is below 2**62, so that of weights over 2**17 is below 2**45."""


@functools.cache
def exponentials() -> np.ndarray:
    """The tables of exp(x): for whole x from -`LARGEST_EXPONENT` to it; then for the binary places
    of x in three groups of 12."""
    _, whole, *parts = exponential_table()
    middle = whole[EXPONENT_LIMIT - LARGEST_EXPONENT : EXPONENT_LIMIT + LARGEST_EXPONENT + 1]
    return np.concatenate([middle, *parts])


@dataclass(frozen=True)
class NegativeDeviance:
    """Minus the mean deviance of held-out samples; an `AdditiveScorer`.

    Scores beyond +-`LARGEST_EXPONENT` count as these numbers in exponentials. A sample's amount is
    bounded so that no sum overflows: it may be 2**18 times the mean of a thousand samples.

    Attributes
    ----------
    held_out : HeldOutTargets
    loss : "poisson" or "gamma"
    """

    held_out: HeldOutTargets
    loss: Literal["poisson", "gamma"]

    is_additive: ClassVar[Literal[True]] = True

    def __call__(self, scores: Array) -> float:
        return self.value(self.parts(scores), self.totals)

    @functools.cached_property
    def totals(self) -> list[int]:
        """The integer weight, and the part of the deviance that no score changes."""
        with arrays.computing_on(self._weights):
            least = saturated(self.held_out.targets, self._weights, self.loss)
        return [weight_of(self.held_out), least]

    @functools.cached_property
    def _weights(self) -> Array:
        """The weights, (n_held_out,) of float64, with a sum below 2**45."""
        values = self.held_out.weights.values
        return arrays.namespace_of(values).astype(values, arrays.namespace_of(values).float64) * (
            2.0**-_SPARE_BITS
        )

    @property
    def _amounts(self) -> tuple[Array, Array]:
        """The amounts that move, for a score of 0, and those that stay."""
        weighted = self._weights * self.held_out.targets
        return (self._weights, weighted) if self.loss == "poisson" else (weighted, self._weights)

    @property
    def _most(self) -> float:
        """The bound of a sample's amounts and products."""
        return math.ldexp(1.0, 61 - self.held_out.n_samples.bit_length())

    @property
    def watched(self) -> WatchedLoss:
        """The loss for engines that make rounds ahead, on the host."""
        moving, fixed = (arrays.to_host(own) for own in self._amounts)
        nodes = np.zeros(0, dtype=np.int64)
        return WatchedLoss(
            self.loss, moving, (nodes, nodes, 0), 0, fixed, exponentials(), self._most
        )

    def parts(self, scores: Array) -> list[int]:
        """The sum of the amounts that move, and that of the other amounts times the scores."""
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            moving, fixed = self._amounts
            most = arrays.scalar(self._most, scores)
            amounts = xp.minimum(moving * self._exponentials(scores), most)
            limit = arrays.scalar(LARGEST_SCORE, scores)
            products = fixed * xp.maximum(xp.minimum(scores, limit), -limit)
            products = xp.maximum(xp.minimum(products, most), -most)
            sums = [xp.sum(xp.astype(xp.round(part), xp.int64)) for part in (amounts, products)]
            amount, product = arrays.integers(xp.stack(sums))
            return [amount, product if self.loss == "poisson" else -product]

    def _exponentials(self, scores: Array) -> Array:
        """exp(F) for Poisson loss, exp(-F) for gamma loss."""
        xp, device = arrays.namespace_of(scores), arrays.device_of(scores)
        table = xp.asarray(exponentials(), device=device)
        limit = LARGEST_EXPONENT << UNIT_BITS
        units = xp.astype(scores / VOTE_UNIT, xp.int64)
        falling = -units if self.loss == "poisson" else units  # the table's entries fall
        places = xp.where(falling < limit, falling, limit)
        places = xp.where(places > -limit, places, -limit) + limit
        found = xp.take(table, places >> UNIT_BITS, axis=0)
        start, mask = 2 * LARGEST_EXPONENT + 1, (1 << PLACE_BITS) - 1
        for number in (1, 2, 3):
            place = (places >> (UNIT_BITS - number * PLACE_BITS)) & mask
            found = found * xp.take(table, start + place, axis=0)
            start += 1 << PLACE_BITS
        return found

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (amount, product), (weight, least) = parts, totals
        return -(((2 * (amount - product) + least) << _SPARE_BITS) / weight)
