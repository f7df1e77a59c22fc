"""The two integers of each sample and output that a round adds up, and what makes them: a loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.gain import Sums


@dataclass(frozen=True)
class Integers:
    """One round's integers.

    Attributes
    ----------
    outputs : sequence of Sums
        For each output the gradient and the Hessian of each sample, (n_samples,) of int64. The
        Hessians are None if they are the absolute values of the gradients.
    totals : sequence of (int, int)
        For each output the sums of its gradients and of its Hessians.
    """

    outputs: Sequence[Sums]
    totals: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, outputs: Sequence[Sums]) -> Integers:
        """From the integers of each output; the totals take one transfer from the device."""
        xp = arrays.namespace_of(outputs[0].gradient)
        found = arrays.integers(xp.stack([xp.sum(part) for part in parts_of(outputs)]))
        return cls(outputs, list(zip(found[::2], found[1::2], strict=True)))


def parts_of(outputs: Sequence[Sums]) -> Iterator[Array]:
    """The gradients of the first output, its Hessians, those of the second output, and so on."""
    for own in outputs:
        yield own.gradient
        yield hessian_of(own)


def sums_in_order(integers: Integers, order: Array, ends: Array) -> np.ndarray:
    """The sums over groups of samples that stand one after the other in an order.

    Each is a difference of two running sums, which is exact, as they are integers.

    Parameters
    ----------
    integers : Integers
    order : array (n_samples,) of int
    ends : array (n_groups,) of int
        Where each group ends; the first one begins at 0.

    Returns
    -------
    ndarray (n_outputs, 2, n_groups) of int64
        The sums of the gradients and of the Hessians.
    """
    xp = arrays.namespace_of(order)
    running = (
        xp.cumulative_sum(xp.take(part, order, axis=0), include_initial=True)
        for part in parts_of(integers.outputs)
    )
    upto = arrays.to_host(xp.stack([xp.take(own, ends, axis=0) for own in running]))
    return np.diff(upto, axis=1, prepend=0).reshape(len(integers.outputs), 2, -1)


def hessian_of(own: Sums) -> Array:
    """The Hessians of an output, (n_samples,)."""
    if own.hessian is not None:
        return own.hessian
    return arrays.namespace_of(own.gradient).abs(own.gradient)


class Loss(Protocol):
    """What a run keeps of its samples beside their scores: weights, odds or probabilities."""

    @property
    def weights(self) -> Array:
        """Float64 (n_samples,), or (n_samples, n_outputs) for more outputs than one."""

    def integers(self) -> Integers:
        """This round's integers."""

    def advance(self, region: Array, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what a `Step` does to their regions, (n_samples,) of int64."""


def gathered(values: Array, order: Array) -> Array:
    """The values of samples in their order, (b, n), each row in its own."""
    xp = arrays.namespace_of(values)
    return xp.reshape(xp.take(values, xp.reshape(order, (-1,)), axis=0), order.shape)


def factor_of(factors: RegionFactors, output: int, region: Array, is_positive: Array) -> Array:
    """The factor of each sample's weight for an output in a step, float64 (n_samples,).

    `region` (n_samples,) of int64 and `is_positive` (n_samples,) of bool tell the samples' regions,
    and whether their labels for this output are +1.
    """
    xp = arrays.namespace_of(region)
    negative, positive = zip(*(own[output] for own in factors), strict=True)
    place = region + xp.astype(is_positive, xp.int64) * len(negative)
    return picked_numbers(negative + positive, place)


def picked_numbers(numbers: Sequence[float], places: Array) -> Array:
    """numbers[place] for each sample's place, float64 (n_samples,)."""
    xp, device = arrays.namespace_of(places), arrays.device_of(places)
    return xp.take(xp.asarray(numbers, dtype=xp.float64, device=device), places, axis=0)
