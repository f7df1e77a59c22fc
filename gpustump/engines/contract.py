"""What every engine offers, and the one order of ties between cuts.

An engine prepares a table once, and starts runs of boosting on it. The `State` of a run is two
integers for each sample and output, and the scores so far. A round asks the state for the best
`Cut`, decides on the host what the cut's regions vote, and hands a `Step` back, which changes
integers and scores. All numbers that an engine returns to the host are integers, or scores of
cuts, which are defined operation by operation (`gain`). So every engine returns the same ones.

Two boosting runs may share a table, and a table knows nothing of labels. Nothing here knows which
engines there are; `route` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpustump.arrays import Array, is_sparse
from gpustump.engines.objective import Objective
from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.hypothesis import (
    Hypothesis,
    Partition,
    signs,
)
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

CONTRACT = 1
"""The version of the exactness contract. A release that makes another model of the same data with
the same parameters has a higher number, and does not go on from rounds of an earlier one."""


class Sides(NamedTuple):
    """The numbers of the categories that a cut sends left and right, in increasing order."""

    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """A partition of a feature's sorted samples, its signs and its score.

    Cuts compare in the order of the contract, and the better one is larger: `max(cuts)` is the one
    to take. A larger score comes first. Of equal ones a split comes before a constant; then the
    lower feature; on one feature a stump before an interval; then the lower `after`, the lower
    `position`, and the polarity +1.

    Attributes
    ----------
    feature : int
        Index of the feature; 0 for a constant.
    position : int or None
        Sorted position of the last sample on the left of a stump, or inside an interval; None for
        a constant.
    polarity : int
        +1 or -1: the sign of the first region, the left side or the inside. 0 if the search finds
        no signs: then the votes follow from the sums over the regions.
    missing : int
        +1 or -1: the sign of the region of missing values; 0 as above.
    score : int or float
        What the cut is worth. With signs it is their agreement: the weight that they get right less
        the weight that they get wrong, never negative except for `NO_CUT`. Without signs see
        `gain`.
    after : int or None
        Sorted position of the last sample before an interval; None for a stump.
    categories : Sides or None
        For a categorical feature, which has one cut a round; its `position` is 0. See
        `category_search`.
    """

    feature: int
    position: int | None
    polarity: int
    missing: int
    score: float
    after: int | None = None
    categories: Sides | None = None

    @property
    def agreement(self) -> int:
        """The score of a cut with signs."""
        return int(self.score)

    @property
    def rank(self) -> tuple[float, ...]:
        """Numbers that compare as cuts do."""
        is_split = self.position is not None
        place = (-(self.after or 0), -(self.position or 0))
        return (
            self.score, is_split, -self.feature, self.after is None, *place, self.polarity,
        )  # fmt: skip

    def __lt__(self, other: Cut) -> bool:
        return self.rank < other.rank


NO_CUT = Cut(0, None, 1, 1, -1)
"""Less than every other cut."""


def with_signs(cut: Cut, sums: np.ndarray, objective: Objective) -> Cut:
    """A split of discrete votes for one output, with the signs that its regions' sums give.

    A constraint decides the sign of the first region, unless the second one is empty.
    """
    (first, _), (second, weight), (missing, _) = sums[:, 0].tolist()
    total = first + second + missing
    polarity, of_missing = sign_of(first - second), sign_of(missing or total)
    if objective.monotone is not None and weight:
        polarity = -objective.monotone[cut.feature] or polarity
    return replace(cut, polarity=polarity, missing=of_missing)


def constant_cut(signed_weight: int) -> Cut:
    """The constant that votes for the heavier label everywhere."""
    return Cut(0, None, sign_of(signed_weight), sign_of(signed_weight), abs(signed_weight))


def sign_of(value: int) -> int:
    """+1 or -1; zero counts as positive."""
    return 1 if value >= 0 else -1


class Totals(NamedTuple):
    """Sums over all samples of a run, in units of the current integers.

    Attributes
    ----------
    signed : int
        The sum of the gradients of all outputs. For discrete and real votes they are the
        weights, each with its label's sign.
    weight : int
        The sum of the Hessians of all outputs. For discrete and real votes they are the
        weights.
    error : int
        The weight, in the first round's integers, of the samples that the score gets wrong. For a
        quantity the sum of the samples' losses times these weights; see the losses of
        `engines.reference`.
    first_weight : int
        The first round's sum of the integer weights.
    n_samples : int
    """

    signed: int
    weight: int
    error: int
    first_weight: int
    n_samples: int

    def wrong(self, agreement: int) -> int:
        """The weight that a hypothesis of this agreement gets wrong."""
        return (self.weight - agreement) // 2


OutputNumbers = tuple[float, ...]
"""A number for each output."""

RegionVotes = tuple[OutputNumbers, ...]
"""For each region its votes for the outputs."""

OutputFactors = tuple[tuple[float, float], ...]
"""For each output two factors: for samples with the label -1, and for those with the label +1."""

RegionFactors = tuple[OutputFactors, ...]
"""For each region the factors of the outputs; none where a loss needs none."""


@dataclass(frozen=True)
class Step:
    """What a round does to the samples.

    Attributes
    ----------
    hypothesis : Partition
        It tells which region a sample lies in.
    votes : tuple (n_regions,) of tuple (n_outputs,) of float
        What is added to the scores.
    factors : tuple (n_regions,) of tuple (n_outputs,) of (float, float)
        What a weight, odds or a probability is multiplied by; equal for both labels in a softmax.
        Under Poisson and gamma loss, what is multiplied counts as the weight of a label: -1 for
        Poisson, +1 for gamma; the other factor is 1. Empty for squared and quantile loss, whose
        residuals lose the votes.
    rescale_exponent : int
        All factors contain 2**-rescale_exponent, which keeps the sum of the integers in range.
    cut : Cut or None
        The cut of the hypothesis, if `best_cut` has just found it; None if the hypothesis comes
        from elsewhere.
    is_known : bool
        Whether the round repeats a known one. More such steps may follow without a search, so an
        engine may postpone what only a search needs.
    """

    hypothesis: Partition
    votes: RegionVotes
    factors: RegionFactors
    rescale_exponent: int = 0
    cut: Cut | None = None
    is_known: bool = False


def discrete_step(
    hypothesis: Hypothesis, vote: float, grown: float, rescale_exponent: int, cut: Cut | None = None
) -> Step:
    """The step of a discrete vote: samples that it gets right keep their weights.

    All weights are also divided by 2**rescale_exponent; `grown` contains that power of two.
    """
    kept = math.ldexp(1.0, -rescale_exponent)
    by_sign = {1: (vote, (grown, kept)), -1: (-vote, (kept, grown))}
    first, second, missing = (by_sign[sign] for sign in signs(hypothesis))
    votes = ((first[0],), (second[0],), (missing[0],))
    return Step(
        hypothesis, votes, ((first[1],), (second[1],), (missing[1],)), rescale_exponent, cut
    )


class Beginning(NamedTuple):
    """Where a run starts if the scores of samples are known beforehand, for Newton votes.

    Engines take it for classes; runs of pairs (`quadrants`) take it for quantities, too.

    Attributes
    ----------
    scores : array (n_outputs, n_samples) of float64
        Whole multiples of `VOTE_UNIT`.
    numbers : array (n_outputs, n_samples) of float64
        What the loss keeps of each sample: the odds of the wrong label, or the probabilities of all
        classes. For Poisson loss exp(score), for gamma loss exp(-score); for squared loss nothing.
    """

    scores: Array
    numbers: Array


RegionSums = Sequence[Sequence[Sequence[int]]]
"""For each region and output the sums of the gradients and of the Hessians of its samples, as
Python's own numbers, whose products do not overflow: what `tolist` makes of an engine's sums."""


class State(Protocol):
    """One run of boosting on a prepared table: what an engine knows of the samples."""

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""

    @property
    def weights(self) -> Array:
        """Float64 weights (n_samples,), or (n_samples, n_outputs) for more outputs than one.

        The Hessians are these, rounded up.
        """

    def smallest_weight(self) -> int:
        """The smallest Hessian."""

    def best_cut(self) -> Cut:
        """The largest cut of this round's integers, in the order of `Cut`."""

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """The sums over the regions of a hypothesis, found here or elsewhere.

        (n_regions, n_outputs, 2) of int64: the sums of the gradients and of the Hessians.
        """

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses, (n, n_regions, n_outputs, 2)."""

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""


class QuantileState(State, Protocol):
    """A run of the quantile loss."""

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """The quantile of the residuals in each region of a hypothesis; see `engines.quantiles`.

        Without a hypothesis all samples are in the first region.
        """


class PreparedTable(Protocol):
    """A feature table that an engine has prepared: everything that depends on the values alone.

    Attributes
    ----------
    X : array (n_samples_given, n_features)
        The caller's own table.
    n_samples : int
        How many of its rows take part.
    n_features : int
    n_missing : ndarray (n_features,) of int64
        For each feature the number of these rows that have no value.
    """

    @property
    def X(self) -> Array:  # noqa: N802
        ...

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_missing(self) -> np.ndarray: ...

    def threshold(self, feature: int, position: int) -> float:
        """The threshold after a sorted position: not below that value, and below the next one.

        Infinite after the last value that is not missing.
        """


class WrappedTable:
    """A table around that of an engine; see `PreparedTable`.

    Parameters
    ----------
    inner : PreparedTable
    """

    def __init__(self, inner: PreparedTable) -> None:
        self.inner = inner

    @property
    def X(self) -> Array:  # noqa: N802
        return self.inner.X

    @property
    def n_samples(self) -> int:
        return self.inner.n_samples

    @property
    def n_features(self) -> int:
        return self.inner.n_features

    @property
    def n_missing(self) -> np.ndarray:
        return self.inner.n_missing

    def threshold(self, feature: int, position: int) -> float:
        """See `PreparedTable`."""
        return self.inner.threshold(feature, position)


@dataclass(frozen=True)
class Task:
    """What is to be trained, as far as the choice of an engine depends on it.

    Attributes
    ----------
    X : array (n_samples_given, n_features)
    n_samples : int
        How many rows of X take part.
    objective : Objective
    n_rounds : int or None
        The most rounds there will be; None if that is not known.
    categorical : tuple of int
        The features whose values are numbers of categories, in increasing order; other features
        have thresholds. An engine's search finds no cut of a categorical feature, as if all its
        values were missing, but `region_sums` and `advance` of its states know such features.
        `category_table` searches them.
    """

    X: Array
    n_samples: int
    objective: Objective = Objective()  # noqa: RUF009
    n_rounds: int | None = None
    categorical: tuple[int, ...] = ()

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_elements(self) -> int:
        """How many values are searched: of a sparse table those that it lists."""
        if is_sparse(self.X):
            return int(self.X.n_listed)
        return self.n_samples * self.n_features

    @property
    def category_bytes(self) -> int:
        """Bytes of the samples' category numbers, and of an order of the samples by them."""
        return 10 * self.n_samples * len(self.categorical)


@dataclass(frozen=True)
class Resources:
    """What training may use.

    Attributes
    ----------
    n_jobs : int or None
        Threads; None for all that the process may use.
    max_memory : int or None
        Bytes beside X, of the host's memory or of the device's.
    block_bytes : int or None
        Bytes of temporary arrays for the reference scan.
    """

    n_jobs: int | None = None
    max_memory: int | None = None
    block_bytes: int | None = None


class Engine(Protocol):
    """A way to search for the best cut; `route` chooses among them.

    Attributes
    ----------
    name : str
        "reference", "scanned", "sorted", "coded", "sparse" or "cuda".
    summary : str
        What it is, in a few words.
    """

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def refusal(self, task: Task) -> str | None:
        """Why this engine cannot train the task, in words; None if it can."""

    def least_bytes(self, task: Task, resources: Resources) -> int:
        """The fewest bytes beside X with which it can train the task."""

    def prepare(self, task: Task, rows: Array | None, resources: Resources) -> PreparedTable:
        """Prepare a table, or some rows (n_samples,) of it.

        Raises
        ------
        DeviceError
            If a device's memory is too small.
        """

    def start(
        self,
        table: Any,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> State:
        """Begin a run.

        Parameters
        ----------
        table : object
            What `prepare` has returned.
        labels : array (n_samples,)
            -1.0 or 1.0, float64; with more outputs than one the number of the class, int64. For a
            quantity the targets: for squared and quantile loss whole multiples of `VOTE_UNIT` from
            -1 to 1, otherwise numbers whose mean is about 1, not negative, and above 0 for gamma
            loss.
        sample_weight : array (n_samples,) of float64
            Positive.
        objective : Objective
            One that the engine does not refuse.
        beginning : Beginning, optional
            By default all scores start from 0.
        """


@dataclass(frozen=True)
class Trainer:
    """A prepared table, and how the engine that prepared it starts a run.

    Attributes
    ----------
    table : PreparedTable
    start_on : callable
        `Engine.start` of that engine.
    """

    table: PreparedTable
    start_on: Callable[[Any, Array, Array, Objective, Beginning | None], State]

    def start(
        self,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None = None,
    ) -> State:
        """Begin a run; see `Engine.start`."""
        return self.start_on(self.table, labels, sample_weight, objective, beginning)


def hypothesis_at(table: PreparedTable, cut: Cut, totals: Totals) -> AnyStump:
    """The hypothesis that a cut with signs stands for."""
    error = totals.wrong(cut.agreement) / totals.weight
    rest = (cut.polarity, cut.missing, error)
    if cut.categories is not None:
        left, right = cut.categories
        return CategoryStump(cut.feature, left, right, *rest)
    threshold = _threshold(table, cut)
    if cut.after is None:
        return Stump(cut.feature, threshold, *rest)
    return Interval(cut.feature, table.threshold(cut.feature, cut.after), threshold, *rest)


def split_at(table: PreparedTable, cut: Cut) -> AnySplit:
    """The split that a cut without signs stands for; a constant has everything on the left."""
    if cut.categories is not None:
        return CategorySplit(cut.feature, *cut.categories)
    return Split(cut.feature, _threshold(table, cut))


def _threshold(table: PreparedTable, cut: Cut) -> float:
    return math.inf if cut.position is None else table.threshold(cut.feature, cut.position)


def agreement(sums: RegionSums, region_signs: Sequence[int]) -> int:
    """The weight that the signs of the regions get right, less the weight that they get wrong."""
    return sum(sign * own[0][0] for own, sign in zip(sums, region_signs, strict=True))
