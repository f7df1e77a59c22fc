"""The held-out samples that early stopping watches: labels and weights, of one output or of K.

Both kinds answer the same questions, so a score is defined once for both. Scores F of samples are
float64, whole multiples of `VOTE_UNIT` with an absolute value of at most `VOTES_LIMIT`. They are
turned into integers, in that unit, before anything is computed from them.

The held-out samples may be split into groups, each in a place of its own; see `scores`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.held_out import HeldOutSums
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT

UNIT_BITS = 36
"""The binary places of a score: `VOTE_UNIT` is 2**-36."""


class Watched(Protocol):
    """What scores need to know of held-out samples; the interface of `HeldOut` and
    `HeldOutClasses`."""

    @property
    def weights(self) -> IntegerWeights:
        """Their integer weights. If the samples are one of several groups, all have one unit.

        All methods here use `weights.values` only, never `weights.total`, which may be the total of
        all groups.
        """

    @property
    def sums(self) -> HeldOutSums | None:
        """Kernels that add up over the samples; None for array operations."""

    @property
    def classes(self) -> Array:
        """The class number of each sample, (n_held_out,) of int64."""

    @property
    def n_classes(self) -> int: ...

    @property
    def positives(self) -> Sequence[int]:
        """For each output, the class that it separates from the rest."""

    def outputs(self, scores: Array) -> Iterator[Array]:
        """The scores of each output, (n_held_out,) of int64, in `VOTE_UNIT`."""

    def margins(self, scores: Array) -> Iterator[Array]:
        """For each output y * F, (n_held_out,) of int64, in `VOTE_UNIT`."""

    def right(self, scores: Array) -> Array:
        """Which samples are classified right, (n_held_out,) of bool."""

    def right_weight(self, scores: Array) -> int:
        """The integer weight that is classified right; it adds up over groups of samples."""

    def error(self, scores: Array) -> float:
        """The share of the weight that is classified wrongly."""


def error_of(right_weight: int, weight: int) -> float:
    """The share of the weight that is classified wrongly.

    Parameters
    ----------
    right_weight : int
        `Watched.right_weight`, added up over all groups of samples.
    weight : int
        `weight_of`, added up as well.
    """
    return (weight - right_weight) / weight


def weight_of(held_out: Watched | HeldOutTargets) -> int:
    """The integer weight of these samples; it adds up over groups of samples."""
    values = held_out.weights.values
    with arrays.computing_on(values):
        return int(arrays.namespace_of(values).sum(values))


@dataclass(frozen=True)
class HeldOut:
    """Labels and weights of the held-out samples of one output, whose scores are (n_held_out,).

    Attributes
    ----------
    y : array (n_held_out,) of float64
        -1.0 or 1.0.
    weights : IntegerWeights
    sums : HeldOutSums, optional
    """

    y: Array
    weights: IntegerWeights
    sums: HeldOutSums | None = field(default=None, kw_only=True)

    @property
    def classes(self) -> Array:
        """1 where y is 1.0, else 0; (n_held_out,) of int64."""
        xp = arrays.namespace_of(self.y)
        return xp.astype(self.y > 0, xp.int64)

    @property
    def n_classes(self) -> int:
        return 2

    @property
    def positives(self) -> Sequence[int]:
        return (1,)

    def outputs(self, scores: Array) -> Iterator[Array]:
        yield _in_units(scores)

    def margins(self, scores: Array) -> Iterator[Array]:
        yield _in_units(self.y * scores)

    def right(self, scores: Array) -> Array:
        return (scores > 0) == (self.y > 0)

    def right_weight(self, scores: Array) -> int:
        """The integer weight that is classified right."""
        return _right_weight(self, scores)

    def error(self, scores: Array) -> float:
        """The share of the weight that is classified wrongly."""
        return _error(self, scores)


@dataclass(frozen=True)
class HeldOutClasses:
    """Labels and weights of the held-out samples of K outputs, whose scores are (n_held_out, K).

    Attributes
    ----------
    classes : array (n_held_out,) of int64
        Class numbers, 0 to K - 1. A class may be absent.
    weights : IntegerWeights
    n_classes : int
        K: each class has one output.
    sums : HeldOutSums, optional
    """

    classes: Array
    weights: IntegerWeights
    n_classes: int
    sums: HeldOutSums | None = field(default=None, kw_only=True)

    @property
    def positives(self) -> Sequence[int]:
        return range(self.n_classes)

    def outputs(self, scores: Array) -> Iterator[Array]:
        for number in self.positives:
            yield _in_units(scores[:, number])

    def margins(self, scores: Array) -> Iterator[Array]:
        """y_l * F_l for each output l; y_l is +1 for the sample's class and -1 for the others."""
        xp = arrays.namespace_of(scores)
        for number, units in zip(self.positives, self.outputs(scores), strict=True):
            yield xp.where(self.classes == number, units, -units)

    def right(self, scores: Array) -> Array:
        """Whether the class with the largest score, the first of equal ones, is the sample's."""
        return arrays.namespace_of(scores).argmax(scores, axis=1) == self.classes

    def right_weight(self, scores: Array) -> int:
        """The integer weight that is classified right."""
        return _right_weight(self, scores)

    def error(self, scores: Array) -> float:
        """The share of the weight that is classified wrongly."""
        return _error(self, scores)


@dataclass(frozen=True)
class HeldOutTargets:
    """Targets and weights of the held-out samples of a quantity.

    Attributes
    ----------
    targets : array (n_held_out,) of float64
        As boosting learns them.
    weights : IntegerWeights
    n_of_all_groups : int, optional
        How many samples all groups have, if these are one of several.
    """

    targets: Array
    weights: IntegerWeights
    n_of_all_groups: int | None = None
    sums: ClassVar[None] = None

    @property
    def n_samples(self) -> int:
        """How many samples all groups have."""
        return self.n_of_all_groups or int(self.targets.shape[0])


def _right_weight(held_out: Watched, scores: Array) -> int:
    if held_out.sums is not None:
        return sum(held_out.sums.right_weights(scores))
    with arrays.computing_on(scores):
        return held_out.weights.weight_of(held_out.right(scores))


def _error(held_out: Watched, scores: Array) -> float:
    return error_of(held_out.right_weight(scores), weight_of(held_out))


def _in_units(scores: Array) -> Array:
    """Scores as integers; exact, as they are whole multiples of the unit below 2**53 of it."""
    xp = arrays.namespace_of(scores)
    return xp.astype(scores / VOTE_UNIT, xp.int64)
