"""The held-out samples that early stopping watches: labels and weights, of one output or of K.

Scores F of samples are float64, whole multiples of `VOTE_UNIT` with an absolute value of at most
`VOTES_LIMIT`. They are turned into integers, in that unit, before anything is computed from them.

The held-out samples may be split into groups, each in a place of its own; see `scores`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import ValidationLoss
from gpustump.engines.held_out import held_out_sums
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT

if TYPE_CHECKING:
    from gpustump.engines.cpu.predict.held_out_sums import HeldOutSums


def error_of(right_weight: int, weight: int) -> float:
    """The share of the weight that is classified wrongly.

    Parameters
    ----------
    right_weight : int
        `HeldOut.right_weight`, added up over all groups of samples.
    weight : int
        `weight_of`, added up as well.
    """
    return (weight - right_weight) / weight


def weight_of(held_out: HeldOut | HeldOutTargets) -> int:
    """The integer weight of these samples; it adds up over groups of samples."""
    values = held_out.weights.values
    with arrays.computing_on(values):
        return int(arrays.namespace_of(values).sum(values))


@dataclass(frozen=True)
class HeldOut:
    """Class numbers and weights of the held-out samples.

    Scores are (n_held_out,) for one output, and otherwise (n_held_out, n_outputs).

    Attributes
    ----------
    classes : array (n_held_out,) of int64
        With one output 1 for the class that it separates from the rest, which is 0; with more
        outputs their numbers. A class may be absent.
    weights : IntegerWeights
        If the samples are one of several groups, all have one unit. Methods here use
        `weights.values` only, never `weights.total`, which may be the total of all groups.
    n_outputs : int
        1, or the number of classes.
    loads_sums : callable, optional
        Returns kernels that add up over the samples, or None as long as there are none.
    """

    classes: Array
    weights: IntegerWeights
    n_outputs: int = 1
    loads_sums: Callable[[], HeldOutSums | None] = lambda: None
    _found: list[HeldOutSums] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        classes: Array,
        weights: IntegerWeights,
        positive: int,
        n_outputs: int,
        n_jobs: int | None,
    ) -> HeldOut:
        """From the numbers of classes; one output separates the class `positive` from the rest."""
        if n_outputs == 1:
            xp = arrays.namespace_of(classes)
            classes = xp.astype(classes == positive, xp.int64)
        given = classes, weights.values, max(2, n_outputs), n_jobs
        return cls(classes, weights, n_outputs, functools.partial(held_out_sums, *given))

    @property
    def sums(self) -> HeldOutSums | None:
        """Kernels that add up over the samples, as soon as they are loaded; else None."""
        if not self._found:
            found = self.loads_sums()
            self._found.extend([] if found is None else [found])
        return self._found[0] if self._found else None

    @property
    def n_classes(self) -> int:
        return max(2, self.n_outputs)

    @property
    def positives(self) -> Sequence[int]:
        """For each output, the class that it separates from the rest."""
        return (1,) if self.n_outputs == 1 else range(self.n_outputs)

    def outputs(self, scores: Array) -> Iterator[Array]:
        """The scores of each output, (n_held_out,) of int64, in `VOTE_UNIT`."""
        if self.n_outputs == 1:
            yield in_units(scores)
        else:
            for number in self.positives:
                yield in_units(scores[:, number])

    def margins(self, scores: Array) -> Iterator[Array]:
        """y_l * F_l for each output l; y_l is +1 for the sample's class and -1 for the others."""
        xp = arrays.namespace_of(scores)
        for number, units in zip(self.positives, self.outputs(scores), strict=True):
            yield xp.where(self.classes == number, units, -units)

    def weights_by_class(self, selected: Array | None = None) -> list[int]:
        """The integer weight of each class, of all samples or of some, (n_held_out,) of bool."""
        values = self.weights.values
        with arrays.computing_on(values):
            xp = arrays.namespace_of(values)
            nothing = xp.zeros_like(values)
            own = values if selected is None else xp.where(selected, values, nothing)
            classes = range(self.n_classes)
            sums = [xp.sum(xp.where(self.classes == number, own, nothing)) for number in classes]
            return arrays.integers(xp.stack(sums))

    def right(self, scores: Array) -> Array:
        """Which samples are classified right, (n_held_out,) of bool; of equal scores the first
        class wins."""
        if self.n_outputs == 1:
            return (scores > 0) == (self.classes == 1)
        return arrays.namespace_of(scores).argmax(scores, axis=1) == self.classes

    def right_weight(self, scores: Array) -> int:
        """The integer weight that is classified right; it adds up over groups of samples."""
        if self.sums is not None:
            return sum(self.sums.right_weights(scores))
        with arrays.computing_on(scores):
            return self.weights.weight_of(self.right(scores))

    def error(self, scores: Array) -> float:
        """The share of the weight that is classified wrongly."""
        return error_of(self.right_weight(scores), weight_of(self))


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
    level : float
        For the pinball loss: which quantile is predicted.
    """

    targets: Array
    weights: IntegerWeights
    n_of_all_groups: int | None = None
    level: float = 0.5

    @property
    def n_samples(self) -> int:
        """How many samples all groups have."""
        return self.n_of_all_groups or int(self.targets.shape[0])


@dataclass(frozen=True)
class AdditiveScorer:
    """A score of held-out samples that follows from integers which add up over groups of samples.

    For groups whose integer weights are in one unit, the parts of all samples are the element-wise
    sums of the groups' parts, and so are the totals. A group may be empty.

    Attributes
    ----------
    held_out : HeldOut or HeldOutTargets
    """

    held_out: HeldOut | HeldOutTargets

    @functools.cached_property
    def totals(self) -> list[int]:
        """What the parts are divided by: the integer weight, here that of all samples."""
        return [weight_of(self.held_out)]

    @property
    def validation(self) -> ValidationLoss | None:
        """The loss for engines that make rounds in batches; None if they do not know it."""
        return None

    def parts(self, scores: Array) -> list[int]:
        """The integers that depend on the scores; their number is the same for every group."""
        raise NotImplementedError

    @staticmethod
    def value(parts: Sequence[int], totals: Sequence[int]) -> float:
        """The score of all samples, from the sums over their groups; greater is better."""
        raise NotImplementedError

    def __call__(self, scores: Array) -> float:
        """The score of these samples alone, from the scores F, (n_held_out,) or (n_held_out, K) of
        float64, whole multiples of `VOTE_UNIT`."""
        return self.value(self.parts(scores), self.totals)


def in_units(scores: Array) -> Array:
    """Scores as integers; exact, as they are whole multiples of the unit below 2**53 of it."""
    xp = arrays.namespace_of(scores)
    return xp.astype(scores / VOTE_UNIT, xp.int64)
