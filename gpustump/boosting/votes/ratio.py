"""Newton votes under Poisson and gamma loss of a quantity that is not negative.

A region votes learning_rate * A / (B + lambda), where A is what is observed in it less what is
expected, and B the mean of both: see `engines.reference.ratio_loss`, whose Hessians are
twice as large. Boosting starts from the logarithm of the mean target. Lambda is on the scale of the
sample weights, for Poisson loss times the targets.

Targets are learnt as rates whose mean is between 1/2 and 1: they are divided by a power of two,
whose logarithm is added to the scores of the model. An *exposure* is a factor of the prediction
that is known beforehand: targets are divided by it, too.

The deviance is twice the loss less the least loss that the targets allow [McCullagh and Nelder
1989]. For a target t and a prediction m:

    Poisson    2 * (t * ln(t / m) - t + m)
    gamma      2 * (ln(m / t) + t / m - 1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import vote_of
from gpustump.boosting.votes.newton import NewtonVotes, exact_totals, factors_of
from gpustump.boosting.votes.votes import Change, Taken
from gpustump.data.parameters import QuantityLoss
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.integer_weights import TOP, in_units
from gpustump.learners.step_table import VOTE_UNIT

_LN_2 = 0.6931471805599453
_TERMS = 12
"""So many terms of the series of the logarithm decide all digits."""


_LEAST_TARGET = 2.0**-900
"""The largest target is above this: XLA flushes small numbers to zero."""


def natural_log(x: np.ndarray) -> np.ndarray:
    """ln(x) of positive float64 numbers: the same digits on every machine.

    With x = m * 2**e and m between sqrt(1/2) and sqrt(2), ln(m) = 2 artanh(s), where
    s = (m - 1) / (m + 1), by its series.
    """
    m, e = np.frexp(x)
    is_small = m < math.sqrt(0.5)
    m, e = np.where(is_small, 2.0 * m, m), np.where(is_small, e - 1, e)
    s = (m - 1.0) / (m + 1.0)
    z, series = s * s, np.zeros_like(s)
    for k in range(_TERMS, 0, -1):
        series = (series + 1.0 / (2 * k + 1)) * z
    found: np.ndarray = e * _LN_2 + 2.0 * (s + s * series)
    return found


def _least_losses(targets: np.ndarray, loss: QuantityLoss) -> np.ndarray:
    """For each target the least loss, negated: of Poisson t ln(t) - t, of gamma -ln(t) - 1."""
    if loss == "gamma":
        found: np.ndarray = -natural_log(targets) - 1.0
    else:
        found = targets * natural_log(np.where(targets > 0.0, targets, 1.0)) - targets
    return found


def saturated(targets: Array, weights: Array, loss: QuantityLoss) -> int:
    """Twice the sum of the weights times the least losses, negated, each product rounded.

    Parameters
    ----------
    targets : array (n_samples,) of float64
    weights : array (n_samples,) of float64
        With a sum below 2**52.
    loss : "poisson" or "gamma"
    """
    least = _least_losses(arrays.to_host(targets), loss)
    products: np.ndarray = np.rint(2.0 * arrays.to_host(weights) * least)
    return int(products.astype(np.int64).sum())


def deviance_of_mean(targets: Array, weights: Array, loss: QuantityLoss) -> float:
    """The mean deviance if the mean target is predicted for every sample.

    `targets` and `weights` are (n_samples,) of float64.
    """
    own, by = arrays.to_host(targets), arrays.to_host(weights)
    total = math.fsum(by.tolist())
    mean = max(math.fsum((own * by).tolist()) / total, math.ulp(0.0))
    log = float(natural_log(np.asarray([mean]))[0])
    least = math.fsum((_least_losses(own, loss) * by).tolist()) / total
    return max(0.0, 2.0 * (least + (mean - mean * log if loss == "poisson" else 1.0 + log)))


@dataclass(frozen=True)
class RatioScale:
    """By which power of two targets under Poisson and gamma loss are divided.

    Attributes
    ----------
    shift : int
        Targets are divided by 2**shift.
    is_poisson : bool
        Otherwise the loss is gamma loss.
    """

    shift: int
    is_poisson: bool

    size: ClassVar[float] = 1.0
    """What a score of 1 is in the scores of the model."""

    @classmethod
    def of(cls, targets: Array, weights: Array, *, is_poisson: bool) -> RatioScale:
        """The scale for some targets with positive weights, both (n_samples,) of float64.

        Raises
        ------
        ValueError
            If all targets are 0, or nearly.
        """
        with arrays.computing_on(targets):
            xp = arrays.namespace_of(targets)
            largest = float(xp.max(targets))
            if largest < _LEAST_TARGET:
                found = "0 for every sample" if largest == 0.0 else f"at most {largest!r}"
                raise ValueError(
                    f"y is {found}, so it says nothing of what predictions must be for this loss. "
                    "Multiply y by a constant, or give samples with larger targets."
                )
            of_largest = math.frexp(largest)[1]
            scaled = targets * math.ldexp(1.0, -of_largest)
        total, weight = exact_totals(weights, 1, scaled)
        return cls(of_largest + math.frexp(max(total, 1) / weight)[1], is_poisson)

    @property
    def of_errors(self) -> float:
        """What a deviance of 1 is in the targets' unit."""
        return math.ldexp(1.0, self.shift) if self.is_poisson else 1.0

    @property
    def of_gains(self) -> float:
        """The same of a gain."""
        return self.of_errors

    def scaled(self, targets: Array) -> Array:
        """Targets (n_samples,) of float64 as boosting learns them."""
        with arrays.computing_on(targets):
            return targets * math.ldexp(1.0, -self.shift)

    def votes(self, learnt: np.ndarray) -> np.ndarray:
        """Votes of the learnt model, which the scale does not change."""
        return learnt

    def constant(self, learnt: np.ndarray) -> np.ndarray:
        """Scores from which the learnt model starts, for the targets as they are."""
        units = round(self.shift * _LN_2 / VOTE_UNIT)
        found: np.ndarray = learnt + units * VOTE_UNIT
        return found


@dataclass(frozen=True)
class RatioVotes(NewtonVotes):
    """Newton votes of Poisson or gamma loss.

    Attributes
    ----------
    quantity : "poisson" or "gamma"
    saturated : int
        Twice the least loss that the run's samples allow, negated, in units of the integers.
    """

    quantity: QuantityLoss = "poisson"
    saturated: int = 0

    largest_step, step, n_hessians = math.inf, 2.0, 2

    def on(self, labels: Array, sample_weight: Array) -> Self:
        """The votes of a run on these samples."""
        with arrays.computing_on(labels):
            xp = arrays.namespace_of(labels)
            units = in_units(sample_weight, self.objective().n_copies)
            if not float(xp.sum(units * labels)) < TOP / 2**7:
                raise ValueError(
                    "y, with these weights or exposures, cannot be learnt exactly: of the samples "
                    "that are trained on, the mean of y is more than eight times that of all (of "
                    "the first fit, with warm_start=True). Make weights or exposures more alike."
                )
            return replace(self, saturated=saturated(labels, units, self.quantity))

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The logarithm of the weighted mean target."""
        total, weight = exact_totals(sample_weight, self.objective().n_copies, labels)
        return (vote_of(weight, weight + max(total, 1), 2.0),)  # ln(total / weight)

    def change(self, taken: Taken) -> Change:
        """What the votes do to the samples.

        Raises
        ------
        ValueError
            If the amounts would become too large, which only known votes of other data can do.
        """
        found = super().change(taken)
        sign, which = (1, 0) if self.quantity == "poisson" else (-1, 1)
        moving = [(hessian - sign * gradient) // 2 for ((gradient, hessian),) in taken.sums]
        factors = [own[which] for (own,) in found.step.factors]
        if sum(own * by for own, by in zip(moving, factors, strict=True)) > TOP / 4:
            raise ValueError(
                "these rounds do not fit the targets: they make the mean prediction hundreds of "
                "times as large as the targets are. Start from data like those of the rounds."
            )
        return found

    def factors(self, votes: RegionVotes) -> RegionFactors:
        """The factors of the amounts that move; 1 at the other place."""
        if self.quantity == "poisson":
            return tuple(((factors_of(vote)[0], 1.0),) for (vote,) in votes)
        return tuple(((1.0, factors_of(vote)[1]),) for (vote,) in votes)

    def recorded(self, score: float, weight: int) -> float:
        """Twice the score in units of the sample weights: what a full step takes off the deviance,
        about."""
        return 2 * super().recorded(score, weight)

    def training_error(self, error: int, first_weight: int) -> float:
        """The mean deviance."""
        return (2 * error + self.saturated) / first_weight
