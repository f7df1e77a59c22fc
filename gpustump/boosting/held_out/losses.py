"""Mean losses of held-out samples, negated: logarithmic, squared errors, deviances.

A sample's loss comes from a table (`tables`). Sums of losses are sums of integers, so they do
not depend on their order, and each mean is rounded once. The unit of these integers is fixed: it
does not depend on the samples. So the sums over groups of samples add up to the sum over all
samples.

For Poisson and gamma deviance (`votes.ratio`) exp(F) is a product of entries of tables, too; the
logarithms of targets are computed on the host by additions, products and quotients only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.samples import (
    AdditiveScorer,
    HeldOut,
    HeldOutTargets,
    in_units,
    weight_of,
)
from gpustump.boosting.held_out.tables import (
    EXPONENT_LIMIT,
    LOSS_BITS,
    ExponentialTable,
    LogisticTable,
    exponential_table,
)
from gpustump.boosting.votes.quantile import pinball
from gpustump.boosting.votes.ratio import saturated
from gpustump.engines.batched_rounds import (
    LARGEST_EXPONENT,
    LARGEST_SCORE,
    LARGEST_SQUARE,
    LOW_BITS,
    ValidationLoss,
)
from gpustump.learners.step_table import UNIT_BITS

_NO_TABLE = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0
"""In place of the table of logarithmic losses, for other losses."""

_SPARE_BITS = 20
"""The sum of the weights is below 2**62. Losses are below 2**20: a log-loss of K classes is at most
ln(K) and twice the largest difference of two scores, 2**18."""


@dataclass(frozen=True)
class NegativeLogLoss(AdditiveScorer):
    """Minus the mean of a logarithmic loss; a subclass says which.

    The score's error is at most that of `losses` plus n_held_out * 2**-42, as weighted losses are
    rounded. Each weighted loss is rounded by itself, so the sums are the same however the samples
    are grouped.

    Attributes
    ----------
    held_out : HeldOut
    table : LogisticTable
    bits : int
        Scores are integers times 2**-bits in the loss: F or 2 F.
    kernel : str
        The method of `HeldOutSums` that adds up these losses.
    """

    held_out: HeldOut
    table: LogisticTable
    bits: int

    kernel: ClassVar[Literal["logistic", "softmax", "logistic_shares"]]

    def losses(self, scores: Array) -> Iterator[Array]:
        """From the scores to the losses, in arrays (n_held_out,) of int64 and units of 2**-32.

        The loss of a sample is the mean of its entries in these arrays.
        """
        raise NotImplementedError

    @property
    def validation(self) -> ValidationLoss | None:
        """The loss for engines that make rounds in batches; these never have logistic shares."""
        if self.kernel == "logistic_shares":
            return None
        return ValidationLoss(self.kernel, self.weights, self.table.plain, self.bits)

    @functools.cached_property
    def weights(self) -> Array:
        """The weights (n_held_out,) of float64, scaled so that products with losses, in units of
        2**-32, sum to less than 2**62."""
        with arrays.computing_on(self.held_out.weights.values):
            return _as_floats(self.held_out) * 2.0 ** -(_SPARE_BITS + LOSS_BITS)

    def parts(self, scores: Array) -> list[int]:
        """The sum of the weighted losses in each array of `losses`, in units of 2**20."""
        if self.held_out.sums is not None:
            add_up = getattr(self.held_out.sums, self.kernel)
            found: list[int] = add_up(scores, self.weights, self.table.plain, self.bits)
            return found
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            sums = []
            for own in self.losses(scores):
                losses = xp.astype(own, xp.float64)  # below 2**52: exact
                sums.append(xp.sum(xp.astype(xp.round(self.weights * losses), xp.int64)))
            return arrays.integers(xp.stack(sums))

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (total,) = totals
        return -((sum(parts) << _SPARE_BITS) / (len(parts) * total))


@dataclass(frozen=True)
class LogisticLoss(NegativeLogLoss):
    """ln(1 + exp(-x)) for each output, where x is y * F or 2 * y * F. The error is below 2**-24.

    (Interpolation: 2**-25; rounding of the table: some 2**-32.)
    """

    kernel = "logistic"

    def losses(self, scores: Array) -> Iterator[Array]:
        for margins in self.held_out.margins(scores):
            yield self.table.loss(margins, self.bits)


@dataclass(frozen=True)
class SoftmaxLoss(NegativeLogLoss):
    """-ln of exp(x_c) / (the sum of exp(x_l)), for the sample's class c; x is F or 2 F.

    The error is below (K - 1) * 2**-24, most of it from `LogisticTable.log_of_sum`. Never negative.
    """

    kernel = "softmax"

    def losses(self, scores: Array) -> Iterator[Array]:
        log_total = self.table.log_of_sum(self.held_out.outputs(scores), self.bits)
        own = _of_own_class(self.held_out, self.held_out.outputs(scores))
        yield (log_total - own) >> (self.bits - LOSS_BITS)


@dataclass(frozen=True)
class LogisticShareLoss(NegativeLogLoss):
    """-ln of s(2 F_c) / (the sum of s(2 F_l)), where s(x) = 1 / (1 + exp(-x)), for the class c.

    ln s(x) = -ln(1 + exp(-x)) comes from the table. These logarithms are added up as those of the
    softmax are. The error is below K * 2**-24: one table error for the logarithms, K - 1 for their
    sum. Never negative.
    """

    kernel = "logistic_shares"

    def losses(self, scores: Array) -> Iterator[Array]:
        log_total = self.table.log_of_sum(self._logs(scores), LOSS_BITS)
        yield log_total - _of_own_class(self.held_out, self._logs(scores))

    def _logs(self, scores: Array) -> Iterator[Array]:
        """ln s(2 F_l) of each output in units of 2**-32."""
        for units in self.held_out.outputs(scores):
            yield -self.table.loss(units, self.bits)


def log_loss(held_out: HeldOut, twice: bool, link: str) -> NegativeLogLoss:
    """The logistic loss, or with `twice` the log-loss of the model's probabilities."""
    given = held_out, LogisticTable.beside(held_out.classes), UNIT_BITS - twice
    if held_out.n_outputs == 1 or (not twice and link != "softmax"):
        return LogisticLoss(*given)
    return SoftmaxLoss(*given) if link == "softmax" else LogisticShareLoss(*given)


def _of_own_class(held_out: HeldOut, terms: Iterator[Array]) -> Array:
    """From one array (n_held_out,) for each class, for each sample the value of its own class."""
    found = next(terms)
    xp, classes = arrays.namespace_of(found), held_out.classes
    for number, term in enumerate(terms, start=1):
        found = xp.where(classes == number, term, found)
    return found


@dataclass(frozen=True)
class NegativeSquaredError(AdditiveScorer):
    """Minus the mean squared error of a quantity.

    A weighted loss is computed in float64 and rounded to a whole number of units of the weights.
    Such numbers may have 82 bits, so they are added up in two parts. The mean is rounded once; its
    error is below n_held_out * 2**-61 where losses are at most 1.
    """

    held_out: HeldOutTargets

    @property
    def validation(self) -> ValidationLoss:
        """The loss for engines that make rounds in batches, on the host."""
        weights = arrays.to_host(self.held_out.weights.values).astype(np.float64)
        targets = arrays.to_host(self.held_out.targets)
        return ValidationLoss("squared_error", weights, _NO_TABLE, 0, targets)

    def parts(self, scores: Array) -> list[int]:
        """The sums of the upper and of the lower parts of the weighted losses."""
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            residuals = self.held_out.targets - scores
            most = arrays.scalar(LARGEST_SQUARE, residuals)
            losses = xp.minimum(self._losses(residuals), most)
            weighted = losses * _as_floats(self.held_out)
            upper = xp.floor(weighted * 2.0**-LOW_BITS)
            lower = xp.round(weighted - upper * 2.0**LOW_BITS)
            sums = [xp.sum(xp.astype(part, xp.int64)) for part in (upper, lower)]
            return arrays.integers(xp.stack(sums))

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (upper, lower), (total,) = parts, totals
        return -(((upper << LOW_BITS) + lower) / total)

    def _losses(self, residuals: Array) -> Array:
        return residuals * residuals


@dataclass(frozen=True)
class NegativePinball(NegativeSquaredError):  # noqa: N818  # it is no exception
    """Minus the mean pinball loss of a predicted quantile; see `NegativeSquaredError`."""

    @property
    def validation(self) -> ValidationLoss:
        """The loss for engines that make rounds in batches, on the host."""
        return super().validation._replace(kind="quantile", level=self.held_out.level)

    def _losses(self, residuals: Array) -> Array:
        return pinball(residuals, self.held_out.level)


def _as_floats(held_out: HeldOut | HeldOutTargets) -> Array:
    values = held_out.weights.values
    xp = arrays.namespace_of(values)
    return xp.astype(values, xp.float64)


_SPARE_BITS_OF_AMOUNTS = 17
"""The sum of the weights is below 2**62, so that of weights over 2**17 is below 2**45."""


@functools.cache
def exponentials() -> np.ndarray:
    """The tables of exp(x): for whole x from -`LARGEST_EXPONENT` to it; then for the binary places
    of x in three groups of 12."""
    _, whole, *parts = exponential_table()
    middle = whole[EXPONENT_LIMIT - LARGEST_EXPONENT : EXPONENT_LIMIT + LARGEST_EXPONENT + 1]
    return np.concatenate([middle, *parts])


@dataclass(frozen=True)
class NegativeDeviance(AdditiveScorer):
    """Minus the mean deviance of held-out samples.

    Scores beyond +-`LARGEST_EXPONENT` count as these numbers in exponentials. A sample's amount is
    bounded so that no sum overflows: it may be 2**18 times the mean of a thousand samples.

    Attributes
    ----------
    held_out : HeldOutTargets
    loss : "poisson" or "gamma"
    """

    held_out: HeldOutTargets
    loss: Literal["poisson", "gamma"]

    @functools.cached_property
    def totals(self) -> list[int]:
        """The integer weight, and the part of the deviance that no score changes."""
        with arrays.computing_on(self._weights):
            least = saturated(self.held_out.targets, self._weights, self.loss)
        return [weight_of(self.held_out), least]

    @functools.cached_property
    def _weights(self) -> Array:
        """The weights, (n_held_out,) of float64, with a sum below 2**45."""
        return _as_floats(self.held_out) * 2.0**-_SPARE_BITS_OF_AMOUNTS

    @functools.cached_property
    def _table(self) -> ExponentialTable:
        return ExponentialTable.beside(self.held_out.targets)

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
    def validation(self) -> ValidationLoss:
        """The loss for engines that make rounds in batches, on the host."""
        moving, fixed = (arrays.to_host(own) for own in self._amounts)
        return ValidationLoss(self.loss, moving, _NO_TABLE, 0, fixed, exponentials(), self._most)

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
        xp, limit = arrays.namespace_of(scores), LARGEST_EXPONENT << UNIT_BITS
        units = in_units(scores)
        margins = -units if self.loss == "poisson" else units
        margins = xp.where(margins < limit, margins, limit)
        margins = xp.where(margins > -limit, margins, -limit)
        found, _ = self._table.exponentials(margins)  # up to exp(64): all are in band 0
        return found

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score."""
        (amount, product), (weight, least) = parts, totals
        return -(((2 * (amount - product) + least) << _SPARE_BITS_OF_AMOUNTS) / weight)
