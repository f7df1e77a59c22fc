"""The softmax loss of several classes: probabilities, and the integers of Newton votes.

The model gives class l the probability p_l = exp(2 F_l) / sum over m of exp(2 F_m). Let w_l be the
probability given to the wrong side: 1 - p_l for the sample's class, p_l for the others. So
`gradient` is weight * w_l, positive for the sample's class and negative for others; `hessian` is
weight * p_l * (1 - p_l). They are minus half of the gradient, and a quarter of the Hessian's
diagonal [Friedman, Hastie and Tibshirani 2000, section 5].

The probabilities themselves are kept: a step multiplies each by its factor, and then all are
divided by their sum, added up in the order of the classes. So no exponential is computed on a
device. Large votes may make all products of a sample tiny. Such products must not be flushed to
zero, as XLA does with subnormal numbers, since the division by a tiny sum makes them large again.
So each is kept at `LEAST_PRODUCT` or above.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.gain import Sums
from gpustump.engines.integer_weights import FLOOR, LEAST_PRODUCT
from gpustump.engines.reference.integers import Integers, picked_numbers


class SoftmaxLoss:
    """The probabilities of a run; see `integers.Loss`.

    Parameters
    ----------
    labels : array (n_samples,) of int64
        The number of each sample's class.
    units : array (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int
        How many classes there are.
    probabilities : array (n_outputs, n_samples) of float64, optional
        Those from which the run starts; by default they are equal.
    """

    def __init__(
        self, labels: Array, units: Array, n_outputs: int, probabilities: Array | None = None
    ) -> None:
        self._xp = arrays.namespace_of(units)
        self._labels = labels
        self._units = units
        equal = self._xp.full_like(self._units, 1.0 / n_outputs)
        self._probabilities = [
            equal if probabilities is None else probabilities[output, :]
            for output in range(n_outputs)
        ]

    @property
    def weights(self) -> Array:
        """weight * p * (1 - p), (n_samples, n_outputs)."""
        outputs = range(len(self._probabilities))
        return self._xp.stack([self._terms(output)[1] for output in outputs], axis=1)

    def integers(self) -> Integers:
        """Both terms, rounded up, and at least 1."""
        outputs = range(len(self._probabilities))
        return Integers.of([self._rounded(output) for output in outputs])

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Multiply the probabilities, and divide them by their sum."""
        xp = self._xp
        least = arrays.scalar(LEAST_PRODUCT, self._units)
        # All products are stored before the first one is added.
        grown = [
            xp.maximum(own * picked_numbers(of_regions, region), least)
            for own, of_regions in zip(self._probabilities, _by_output(factors), strict=True)
        ]
        total = grown[0]
        for own in grown[1:]:
            total = total + own
        floor = arrays.scalar(FLOOR, total)
        self._probabilities = [xp.maximum(own / total, floor) for own in grown]

    def _rounded(self, output: int) -> Sums:
        xp, one = self._xp, arrays.scalar(1.0, self._units)
        gradient, hessian = (xp.maximum(xp.ceil(x), one) for x in self._terms(output))
        gradient = xp.where(self._labels == output, gradient, -gradient)
        return Sums(xp.astype(gradient, xp.int64), xp.astype(hessian, xp.int64))

    def _terms(self, output: int) -> tuple[Array, Array]:
        """weight * w and weight * p * (1 - p) of an output."""
        own = self._probabilities[output]
        rest = 1.0 - own
        wrong = self._xp.where(self._labels == output, rest, own)
        return self._units * wrong, (self._units * own) * rest


def _by_output(factors: RegionFactors) -> list[tuple[float, ...]]:
    """For each output the factor of each region, which is the same for both labels."""
    by_region = [[positive for _, positive in own] for own in factors]
    return list(zip(*by_region, strict=True))
