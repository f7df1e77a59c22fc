"""Judging a model after each round, by the score and the error of held-out samples.

Early stopping asks a judge, and does not know where the samples are. A `LocalJudge` has them in one
place. If they are spread over several places, each place has a `LocalJudge`, which reports lists of
integers: its `totals` once, and its `parts` after each round. The lists of all places are added up
item by item (`added_up`). The `judgement` follows from the sums, the same to the last bit as if all
samples were in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, get_args

import numpy as np

from gpustump.arrays import Array
from gpustump.boosting.held_out.samples import (
    AdditiveScorer,
    HeldOut,
    HeldOutTargets,
    error_of,
    weight_of,
)
from gpustump.boosting.held_out.scores import VALUES, Scorer
from gpustump.data.parameters import QuantityScoring, Scoring
from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.engines.cuda.device import CudaDevice
from gpustump.engines.held_out import device_judge
from gpustump.engines.running_scores import running_scores
from gpustump.learners.hypothesis import Partition


class Judgement(NamedTuple):
    """The score of a model on held-out samples, greater is better, and its error on them.

    The error of a quantity is the mean squared one, or the mean deviance.
    """

    score: float
    error: float


class Parts(NamedTuple):
    """A judge's parts after each of some rounds; see `LocalJudge.parts`.

    Attributes
    ----------
    right : ndarray (n_rounds, n_classes) of int64
        The integer weight that is classified right, by class.
    losses : ndarray (n_rounds, n_sums) of int64
    """

    right: np.ndarray
    losses: np.ndarray


class Judge(Protocol):
    """What early stopping asks for scores and errors."""

    def add(self, hypothesis: Partition, region_votes: np.ndarray) -> None:
        """Add a hypothesis to the model.

        Parameters
        ----------
        hypothesis : Partition
        region_votes : ndarray (n_regions, n_outputs) of float64
            What its regions vote.
        """

    def judged(self) -> Judgement:
        """The score and the error of the model so far on all held-out samples."""


class LocalJudge:
    """A judge with held-out samples of its own: all of them, or one group of several.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
        The whole table, of which no copy is made.
    rows : array (n_held_out,) of int, or None
        The rows of X to watch; None for all.
    held_out : HeldOut or HeldOutTargets
        Their labels or targets, and weights.
    scorer : Scorer
        For these samples.
    start : sequence of float, or array (n_held_out, n_outputs) of float64
        The scores from which boosting starts, one for each output, or for each sample.
    n_jobs : int, optional
        Threads on the CPU.
    keeps_values : bool
        As for `running_scores`.
    device : CudaDevice, optional
        The device that trains, if it may keep these samples, too.
    """

    def __init__(
        self,
        X: Array,
        rows: Array | None,
        held_out: HeldOut | HeldOutTargets,
        scorer: Scorer,
        start: Sequence[float] | Array = (0.0,),
        n_jobs: int | None = None,
        *,
        keeps_values: bool = True,
        device: CudaDevice | None = None,
    ) -> None:
        self._held_out, self._weight = held_out, weight_of(held_out)
        self._scorer = scorer
        self._scores = running_scores(X, start, rows, n_jobs=n_jobs, keeps_values=keeps_values)
        self._on_device = None
        if device is not None:
            samples = self._validation(X, rows, self._scores.copy())
            self._on_device = None if samples is None else device_judge(device, samples, n_jobs)

    def add(self, hypothesis: Partition, region_votes: np.ndarray) -> None:
        """Add a hypothesis to the model."""
        (self._on_device or self._scores).add(hypothesis, region_votes)

    def judged(self) -> Judgement:
        """The score and the error of the model so far on these samples."""
        if self._on_device is not None:
            right, losses = self._on_device.sums()
            (score,), (error,) = self._judged([right], [losses])
            return Judgement(score, error)
        scores = self._now()
        score = self._scorer(scores)
        if isinstance(self._held_out, HeldOutTargets):
            return Judgement(score, -score)
        right = self._held_out.right_weight(scores)
        return Judgement(score, error_of(right, self._weight))

    def validation(self) -> ValidationSamples | None:
        """The samples for engines that make rounds in batches; None if these cannot watch them."""
        place, held_out = self._scores.on_host(), self._held_out
        lacks_kernels = isinstance(held_out, HeldOut) and held_out.sums is None
        return None if place is None or lacks_kernels else self._validation(*place)

    def _validation(self, X: Array, rows: Array | None, scores: Array) -> ValidationSamples | None:
        """The samples for kernels that add up their loss; None if these do not know it."""
        held_out, scorer = self._held_out, self._scorer
        loss = scorer.validation if isinstance(scorer, AdditiveScorer) else None
        if loss is None:
            return None
        if isinstance(held_out, HeldOutTargets):
            nothing = np.zeros(0, dtype=np.int64)
            return ValidationSamples(X, rows, scores, nothing, nothing, 0, loss)
        given = held_out.classes, held_out.weights.values, held_out.n_classes
        return ValidationSamples(X, rows, scores, *given, loss)

    def judged_by(self, parts: Parts) -> tuple[list[float], list[float]]:
        """The scores and the errors after each of some rounds that an engine has judged."""
        right = parts.right.sum(axis=1).tolist()  # weights are below 2**62
        return self._judged(right, parts.losses.tolist())

    def _judged(
        self, right: Sequence[int], losses: Sequence[Sequence[int]]
    ) -> tuple[list[float], list[float]]:
        """The same by the weight that is classified right, and the sums of the losses."""
        scorer = self._additive
        totals = scorer.totals
        scores = [scorer.value(own, totals) for own in losses]
        if isinstance(self._held_out, HeldOutTargets):
            return scores, [-score for score in scores]
        return scores, [error_of(own, self._weight) for own in right]

    @property
    def totals(self) -> list[int]:
        """The weight of these samples, then the score's totals; the same in all rounds."""
        return [self._weight, *self._additive.totals]

    def parts(self) -> list[int]:
        """The weight that is classified right (0 of a quantity), then the score's parts."""
        scores, held_out = self._now(), self._held_out
        right = 0 if isinstance(held_out, HeldOutTargets) else held_out.right_weight(scores)
        return [right, *self._additive.parts(scores)]

    @property
    def _additive(self) -> AdditiveScorer:
        assert isinstance(self._scorer, AdditiveScorer)
        return self._scorer

    def _now(self) -> Array:
        """The scores (n_held_out,), or (n_held_out, n_outputs) for more outputs than one."""
        scores = self._scores.now()
        return scores[:, 0] if scores.shape[1] == 1 else scores


def added_up(groups: Sequence[Sequence[int]]) -> list[int]:
    """The element-wise sums of the parts, or of the totals, of all local judges."""
    return [sum(column) for column in zip(*groups, strict=True)]


def judgement(scoring: Scoring, parts: Sequence[int], totals: Sequence[int]) -> Judgement:
    """The judgement of all samples, from the reports of the local judges.

    Parameters
    ----------
    scoring : str
        An additive score.
    parts, totals : sequence of int
        Added up over all groups. The unit of the integer weights must have been the same.
    """
    (right, *own_parts), (weight, *own_totals) = parts, totals
    score = VALUES[scoring](own_parts, own_totals)
    is_quantity = scoring in get_args(QuantityScoring)
    return Judgement(score, -score if is_quantity else error_of(right, weight))
