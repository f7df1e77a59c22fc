"""Tables from which the losses of held-out samples are computed without an array library's exp.

The exponentials and logarithms of array libraries differ in their last digits, and so would the
round at which a run stops. So the host makes tables, with decimal arithmetic wherever the last
digits could decide an entry. What is computed from the entries is the same on every device: integer
arithmetic for ln(1 + exp(-x)), and IEEE products of float64 numbers for exp(-x).
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import PLACE_BITS
from gpustump.engines.held_out import LossTable
from gpustump.learners.step_table import UNIT_BITS

LOSS_BITS = 32
"""Logarithmic losses of single samples are multiples of 2**-32."""

EXPONENT_LIMIT = 800
"""exp(-x) is capped outside -800 <= x <= 800. Means of it do not change by that: with weights whose
quotient is below 2**62, one sample of -800 makes them larger than every float64 number, and what
samples beyond 800 add is smaller than all of these."""

BAND_BITS = 800
"""exp(-x) is a float64 number times 2**-800, 1 or 2**800, as it may be beyond float64 itself."""

_NODE_BITS = 10
_LAST_NODE = 24 << _NODE_BITS
"""The table has a node at every 2**-10 up to 24, where the loss is below 2**-34. Between nodes the
loss is interpolated, which adds at most 2**-25."""

_DOUBT = 2.0**-14
"""A bound, in units of an entry, on the error of any C library's exponential and logarithm."""


@dataclass(frozen=True)
class LogisticTable:
    """ln(1 + exp(-x)) in integers.

    Attributes
    ----------
    nodes, drops : array (n_nodes,) of int64
        The loss at each node, and how much smaller it is at the next one.
    """

    nodes: Array
    drops: Array

    @classmethod
    def beside(cls, x: Array) -> LogisticTable:
        """The table in the library and on the device of an array."""
        xp, device = arrays.namespace_of(x), arrays.device_of(x)
        return cls(*(xp.asarray(part, device=device) for part in _loss_table()))

    @property
    def plain(self) -> LossTable:
        """The table in the form that the kernels take."""
        return self.nodes, self.drops, _NODE_BITS

    def loss(self, margins: Array, bits: int) -> Array:
        """ln(1 + exp(-x)) in units of 2**-32, with an error below 2**-25 + 2**-31.

        Parameters
        ----------
        margins : array (n,) of int64
            x in units of 2**-bits; at most 2**18.
        bits : int
            At least 32.
        """
        xp = arrays.namespace_of(margins)
        sizes = xp.abs(margins)
        # ln(1 + exp(x)) = x + ln(1 + exp(-x)); the difference is 0 or twice the size.
        return self.added(sizes, bits) + ((sizes - margins) >> (bits - LOSS_BITS + 1))

    def added(self, sizes: Array, bits: int) -> Array:
        """As `loss`, for numbers (n,) that are not negative."""
        xp, step_bits = arrays.namespace_of(sizes), bits - _NODE_BITS
        places = sizes >> step_bits
        places = xp.where(places < _LAST_NODE, places, _LAST_NODE)
        rest = sizes & ((1 << step_bits) - 1)
        fallen = (xp.take(self.drops, places, axis=0) * rest) >> step_bits
        return xp.take(self.nodes, places, axis=0) - fallen

    def log_of_sum(self, terms: Iterator[Array], bits: int) -> Array:
        """ln of the sum of exp(x_l), in the order given, in units of 2**-bits.

        ln(exp(a) + exp(b)) = max(a, b) + ln(1 + exp(-|a - b|)). If a term changes, the result
        changes by no more, so the errors of the K - 1 additions add up to less than (K - 1) *
        (2**-25 + 2**-31). The result is not below any term.

        Parameters
        ----------
        terms : iterator of K arrays (n,) of int64
            Each x_l in units of 2**-bits.
        bits : int
            At least 32.
        """
        total = next(terms)
        xp = arrays.namespace_of(total)
        for term in terms:
            added = self.added(xp.abs(total - term), bits) << (bits - LOSS_BITS)
            total = xp.where(total > term, total, term) + added
        return total


@functools.cache
def _loss_table() -> tuple[np.ndarray, np.ndarray]:
    """The loss ln(1 + exp(-x)) at each node x, rounded to 2**-32, and its drop to the next node."""
    x = np.arange(_LAST_NODE) / 2.0**_NODE_BITS
    units = np.log1p(np.exp(-x)) * 2.0**LOSS_BITS
    nodes = np.zeros(_LAST_NODE + 1, dtype=np.int64)
    nodes[:-1] = np.rint(units)
    with decimal.localcontext(decimal.Context(prec=50, rounding=decimal.ROUND_HALF_EVEN)):
        for i in np.flatnonzero(np.abs(units - np.floor(units) - 0.5) < _DOUBT).tolist():
            loss = (1 + (-Decimal(float(x[i]))).exp()).ln()
            nodes[i] = int((loss * 2**LOSS_BITS).to_integral_value())
    return nodes, np.append(nodes[:-1] - nodes[1:], 0)


@dataclass(frozen=True)
class ExponentialTable:
    """exp(-x) as a product of four float64 numbers and a power of two.

    x is a whole number and three groups of 12 binary places, and each has a table. The entries are
    rounded correctly, and IEEE multiplication is the same on every device, so the product is too:
    exp(-x) with a relative error below 2**-50. Numbers x that differ by one unit, 2**-36, have
    values that differ by far more than that, so the product falls strictly where x rises.

    Attributes
    ----------
    bands : array of int64
        For i = 0, ..., 1600 the number b, -1, 0 or 1, with which exp(800 - i) * 2**(-800 * b) is
        between 2**-401 and 2**401.
    parts : tuple of 4 arrays of float64
        These products; then exp(-i * 2**-12), exp(-i * 2**-24) and exp(-i * 2**-36) for i = 0, ...,
        4095.
    """

    bands: Array
    parts: tuple[Array, ...]

    @classmethod
    def beside(cls, x: Array) -> ExponentialTable:
        """The table in the library and on the device of an array."""
        xp, device = arrays.namespace_of(x), arrays.device_of(x)
        bands, *parts = (xp.asarray(part, device=device) for part in exponential_table())
        return cls(bands, tuple(parts))

    def exponentials(self, margins: Array) -> tuple[Array, Array]:
        """exp(-x) for x (n,) of int64 in units of 2**-36, as two arrays (n,).

        These are float64 numbers and the int64 numbers b of their bands: exp(-x) is the product
        with 2**(800 * b). Beyond -800 and 800 it is exp(800) or exp(-800).
        """
        xp, limit = arrays.namespace_of(margins), EXPONENT_LIMIT << UNIT_BITS
        places = xp.where(margins < limit, margins, limit)
        places = xp.where(places > -limit, places, -limit) + limit
        whole = places >> UNIT_BITS
        found = xp.take(self.parts[0], whole, axis=0)
        for number, part in enumerate(self.parts[1:], start=1):
            place = (places >> (UNIT_BITS - number * PLACE_BITS)) & ((1 << PLACE_BITS) - 1)
            found = found * xp.take(part, place, axis=0)
        return found, xp.take(self.bands, whole, axis=0)


@functools.cache
def exponential_table() -> tuple[np.ndarray, ...]:
    """The arrays of an `ExponentialTable`, bands first."""
    exponents = EXPONENT_LIMIT - np.arange(2 * EXPONENT_LIMIT + 1)
    bands = np.rint(exponents / (BAND_BITS * np.log(2))).astype(np.int64)
    with decimal.localcontext(decimal.Context(prec=40, rounding=decimal.ROUND_HALF_EVEN)):
        whole = [
            Decimal(exponent).exp() * Decimal(2) ** (-BAND_BITS * band)
            for exponent, band in zip(exponents.tolist(), bands.tolist(), strict=True)
        ]
        parts = [
            [(-Decimal(i) / 2 ** (number * PLACE_BITS)).exp() for i in range(1 << PLACE_BITS)]
            for number in (1, 2, 3)
        ]
    return bands, *(np.asarray([float(value) for value in part]) for part in (whole, *parts))
