"""Batches of rounds: those that an engine makes in one call stay arrays until they are read.

On a small table a round takes less time than the objects that describe it: the record, its split
and its votes. So a batch keeps the arrays that the engine wrote. Its records are made when they are
asked for, and the model's member is made from the arrays (`member_of`). An ordinary round is a
batch of one.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpustump.boosting.held_out.judging import Parts
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.ratio import RatioScale
from gpustump.boosting.votes.settings import Votes
from gpustump.boosting.votes.votes import AnyRound, RoundNumbers, Vote
from gpustump.engines.batched_rounds import MadeRounds
from gpustump.engines.objective import Objective
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND
from gpustump.learners.kinds import AnySplit
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump
from gpustump.learners.target_scale import TargetScale
from gpustump.model.bags import Bags, averaged
from gpustump.model.members import Member, RegionMember


class Terms(NamedTuple):
    """The hypotheses of some rounds, and what they vote.

    Attributes
    ----------
    hypotheses : sequence (n_rounds,)
        Of any kind.
    votes : sequence (n_rounds,) of Vote, or ndarray (n_rounds, n_regions, n_outputs)
        Stumps and intervals vote one number each, splits a number for each region and output.
    """

    hypotheses: Sequence[Any]
    votes: Sequence[Vote] | np.ndarray


@dataclass(frozen=True, eq=False)
class Ordinary:
    """Rounds that were made one by one; their records are made when they are asked for.

    Attributes
    ----------
    made : Terms
    record : callable
        Makes the records.
    """

    made: Terms
    record: Callable[[], Sequence[AnyRound]]

    @functools.cached_property
    def records(self) -> Sequence[AnyRound]:
        """What each round did."""
        return self.record()

    def terms(self, low: int, high: int) -> Terms:
        """The hypotheses and votes of the rounds from `low` up to `high`, that one excluded."""
        return Terms(self.made.hypotheses[low:high], self.made.votes[low:high])

    def parts(self, low: int, high: int) -> None:
        """None: nothing is known of held-out samples."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rounds that an engine has made in batches, as the arrays that it wrote.

    Attributes
    ----------
    made : MadeRounds
    rule : Votes
        Of the run.
    first_weight : int
        As in `Totals`.
    n_before : int
        How many rounds the run had before them.
    bound : float
        The product of the normalisers of those.
    """

    made: MadeRounds
    rule: Votes
    first_weight: int
    n_before: int
    bound: float = 1.0

    @functools.cached_property
    def products(self) -> np.ndarray:
        """The product of all normalisers up to each round, multiplied one by one."""
        both = np.concatenate([[self.bound], self.made.normalisers])
        with np.errstate(over="ignore"):  # as for Python's numbers: infinity
            products: np.ndarray = np.multiply.accumulate(both)[1:]
        return products

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """What the votes up to each round count towards `VOTES_LIMIT`, (n_rounds, n_outputs), as in
        `votes.sizes_of`."""
        votes = self.made.votes
        own: np.ndarray = np.abs(votes).max(axis=1)
        if not self._are_stumps:
            sides, missing = votes[:, [FIRST, SECOND]], votes[:, [MISSING]]
            own = np.maximum(own, np.abs(sides[:, 0] - sides[:, 1]))
            of_sets = np.isnan(self.made.thresholds)
            apart = np.abs(sides - missing).max(axis=1)
            own[of_sets] = np.maximum(own, apart)[of_sets]
        sizes: np.ndarray = np.cumsum(own, axis=0)  # exact
        return sizes

    @property
    def _are_stumps(self) -> bool:
        """Whether a round makes a stump with one vote, and not a split."""
        return isinstance(self.rule, DiscreteVotes)

    @functools.cached_property
    def hypotheses(self) -> Sequence[Any]:
        """The hypothesis of each round: stumps with their errors, or splits."""
        made = self.made
        if not self._are_stumps:
            return splits_of(made.features, made.thresholds, made.sides)
        signs = np.sign(made.votes[:, [FIRST, MISSING], 0]).astype(np.int64)
        wrong = (made.weights - made.scores) // 2
        errors = map(operator.truediv, wrong.tolist(), made.weights.tolist())  # rounded once
        places = (made.features.tolist(), made.thresholds.tolist(), *signs.T.tolist())
        return [Stump(*own) for own in zip(*places, errors, strict=True)]

    @functools.cached_property
    def votes(self) -> Sequence[float] | np.ndarray:
        """One number for each stump, or one for each region and output of a split."""
        if not self._are_stumps:
            return self.made.votes
        found: list[float] = np.abs(self.made.votes[:, FIRST, 0]).tolist()
        return found

    @functools.cached_property
    def records(self) -> Sequence[AnyRound]:
        """What each round did."""
        made = self.made
        columns = (made.scores, made.weights, made.normalisers, self.products, made.error)
        numbers = enumerate(zip(*(own.tolist() for own in columns), strict=True), self.n_before + 1)
        of_rounds = [RoundNumbers(number, self.first_weight, *own) for number, own in numbers]
        votes: Any = self.votes
        if isinstance(votes, np.ndarray):
            votes = [tuple(map(tuple, own)) for own in votes.tolist()]
        rounds = zip(self.hypotheses, votes, of_rounds, strict=True)
        return [self.rule.record(*own) for own in rounds]

    def terms(self, low: int, high: int) -> Terms:
        """See `Ordinary`."""
        return Terms(self.hypotheses[low:high], self.votes[low:high])

    def parts(self, low: int, high: int) -> Parts | None:
        """The judge's parts after these rounds; None if a judge must compute them itself."""
        right, losses = self.made.right, self.made.losses
        return Parts(right[low:high], losses[low:high]) if losses.shape[1] else None


@dataclass(frozen=True)
class Batch:
    """Some rounds of a run, one after the other.

    Attributes
    ----------
    source : Ordinary or Columns
    low, high : int
        Which of its rounds they are.
    """

    source: Ordinary | Columns
    low: int
    high: int

    @classmethod
    def of(cls, records: Iterable[AnyRound]) -> Batch:
        """From records."""
        own = tuple(records)
        terms = Terms(tuple(r.stump for r in own), tuple(r.vote for r in own))
        return cls(Ordinary(terms, lambda: own), 0, len(own))

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def records(self) -> Sequence[AnyRound]:
        """What each round did."""
        return self.source.records[self.low : self.high]

    @property
    def terms(self) -> Terms:
        """Their hypotheses and votes."""
        return self.source.terms(self.low, self.high)

    @property
    def parts(self) -> Parts | None:
        """The judge's parts after each round; None if a judge must compute them itself."""
        return self.source.parts(self.low, self.high)

    def first(self, n_rounds: int) -> Batch:
        """The first `n_rounds` rounds, or all if there are fewer."""
        return Batch(self.source, self.low, min(self.high, self.low + n_rounds))


class Rounds:
    """All rounds of a run: a collection of their records, which are made when one is asked for.

    It is pickled as these records.

    Parameters
    ----------
    batches : iterable of Batch
    """

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self._batches = [batch for batch in batches if len(batch)]
        self._n_rounds = sum(map(len, self._batches))

    def __len__(self) -> int:
        return self._n_rounds

    def __iter__(self) -> Iterator[AnyRound]:
        return itertools.chain.from_iterable(batch.records for batch in self._batches)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rounds.of, (tuple(self),)

    @classmethod
    def of(cls, records: Iterable[AnyRound]) -> Rounds:
        """From records."""
        return cls([Batch.of(records)])

    def add(self, batch: Batch) -> None:
        """Add more rounds of the run."""
        if len(batch):
            self._batches.append(batch)
            self._n_rounds += len(batch)

    def first(self, n_rounds: int) -> Rounds:
        """The first `n_rounds` rounds."""
        before = itertools.accumulate(map(len, self._batches), initial=0)
        pairs = zip(self._batches, before, strict=False)
        return Rounds(batch.first(max(0, n_rounds - done)) for batch, done in pairs)

    @property
    def terms(self) -> Terms:
        """Their hypotheses and votes."""
        return _joined([batch.terms for batch in self._batches])


def _joined(terms: Sequence[Terms]) -> Terms:
    """Hypotheses and votes of several batches as those of one."""
    hypotheses = tuple(itertools.chain.from_iterable(own.hypotheses for own in terms))
    if not any(isinstance(own.votes, np.ndarray) for own in terms):
        return Terms(hypotheses, tuple(itertools.chain.from_iterable(own.votes for own in terms)))
    votes = [np.asarray(own.votes, dtype=np.float64) for own in terms]
    return Terms(hypotheses, np.concatenate(votes))


def splits_of(features: np.ndarray, thresholds: np.ndarray, sides: np.ndarray) -> list[AnySplit]:
    """A split for each feature and threshold, or set of categories; equal ones are one object.

    The arguments are those of `MadeRounds`.
    """
    known = dict[tuple[int, float | bytes], AnySplit]()
    of_sets = np.isnan(thresholds).tolist()
    found = []
    for place, own in enumerate(zip(features.tolist(), thresholds.tolist(), strict=True)):
        key = (own[0], sides[place].tobytes()) if of_sets[place] else own
        split = known.get(key)
        if split is None:
            if of_sets[place]:
                sets = (np.flatnonzero(sides[place] == side).tolist() for side in (FIRST, SECOND))
                split = CategorySplit(own[0], *map(tuple, sets))
            else:
                split = Split(*own)
            known[key] = split
        found.append(split)
    return found


def member_of(
    terms: Terms, constant: Sequence[float], objective: Objective
) -> Member | RegionMember:
    """The member that a run's terms make, with the scores from which the run started."""
    if objective.has_signs:
        return Member(tuple(terms.hypotheses), tuple(map(float, terms.votes)))
    shape = (len(terms.hypotheses), N_REGIONS, len(constant))
    votes = np.asarray(terms.votes, dtype=np.float64).reshape(shape)
    return RegionMember(tuple(terms.hypotheses), votes, np.asarray(constant, dtype=np.float64))


def members_of(
    trained: Sequence[Sequence[Any]], scale: TargetScale | RatioScale | None
) -> tuple[Any, Bags | None]:
    """The members of a model, the average if there are several, and its bags.

    Parameters
    ----------
    trained : sequence of sequence of Member or RegionMember
        The members of each model.
    scale : TargetScale, RatioScale or None
        That of a quantity, whose model is for the targets as they are.
    """
    members: Any
    members, bags = averaged(trained) if len(trained) > 1 else (trained[0], None)
    if scale is None:
        return members, bags

    def constant(learnt: Sequence[float]) -> tuple[float, ...]:
        return tuple(scale.constant(np.asarray(learnt)).tolist())

    found = tuple(
        RegionMember(own.splits, scale.votes(own.votes), scale.constant(own.constant))
        for own in members
    )
    if bags is None:
        return found, None
    constants = tuple(tuple(map(constant, of_member)) for of_member in bags.constants)
    return found, replace(bags, constants=constants)
