"""Batches of rounds: those that an engine makes in one call stay arrays until they are read.

On a small table a round takes less time than the objects that describe it: the record, its split
and its votes. So a batch keeps the arrays that the engine wrote. Its records are made when they are
asked for, and the model's member is made from the arrays (`member_of`). An ordinary round is a
batch of one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np

from gpustump.boosting.held_out.judging import Parts
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.ratio import RatioScale
from gpustump.boosting.votes.settings import Votes
from gpustump.boosting.votes.splits import SplitVotes
from gpustump.boosting.votes.votes import AnyRound, RegionRound, Round, Vote
from gpustump.engines.batched_rounds import MadeRounds
from gpustump.engines.contract import RegionVotes, Totals
from gpustump.engines.objective import Objective
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump
from gpustump.learners.target_scale import TargetScale
from gpustump.model.bags import Bags
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


@dataclass(frozen=True)
class Recorded:
    """Rounds whose records exist already.

    Attributes
    ----------
    records : tuple of Round or RegionRound
    """

    records: tuple[AnyRound, ...]

    def terms(self, low: int, high: int) -> Terms:
        """The hypotheses and votes of the rounds from `low` up to `high`, that one excluded."""
        own = self.records[low:high]
        return Terms(tuple(r.stump for r in own), tuple(r.vote for r in own))

    def parts(self, low: int, high: int) -> None:
        """None: nothing is known of held-out samples."""


@dataclass(frozen=True, eq=False)
class Ordinary:
    """A round that was made by itself; its record is made when it is asked for.

    Attributes
    ----------
    hypothesis : any kind of stump or split
    vote : Vote
    record : callable
        Makes the record.
    """

    hypothesis: AnyStump | AnySplit
    vote: Vote
    record: Callable[[], AnyRound]

    @functools.cached_property
    def records(self) -> tuple[AnyRound, ...]:
        """What the round did."""
        return (self.record(),)

    def terms(self, low: int, high: int) -> Terms:
        """See `Recorded`."""
        return Terms((self.hypothesis,)[low:high], (self.vote,)[low:high])

    def parts(self, low: int, high: int) -> None:
        """See `Recorded`."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rounds that an engine has made in batches, as the arrays that it wrote.

    Attributes
    ----------
    made : MadeRounds
    kind : MadeSplits or MadeStumps
    n_before : int
        How many rounds the run had before them.
    bound : float
        The product of the normalisers of those.
    """

    made: MadeRounds
    kind: MadeSplits | MadeStumps
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
        """What the votes up to each round count towards `VOTES_LIMIT`, (n_rounds, n_outputs)."""
        sizes: np.ndarray = np.cumsum(self.kind.sizes(self.made), axis=0)  # exact
        return sizes

    @functools.cached_property
    def hypotheses(self) -> Sequence[Any]:
        """The hypothesis of each round."""
        return self.kind.hypotheses(self.made)

    @functools.cached_property
    def records(self) -> Sequence[AnyRound]:
        """What each round did."""
        return self.kind.records(self.made, self.hypotheses, self.n_before, self.products)

    def terms(self, low: int, high: int) -> Terms:
        """See `Recorded`."""
        return Terms(self.hypotheses[low:high], self.kind.votes(self.made)[low:high])

    def parts(self, low: int, high: int) -> Parts | None:
        """The judge's parts after these rounds; None if a judge must compute them itself."""
        right, losses = self.made.right, self.made.losses
        return Parts(right[low:high], losses[low:high]) if losses.shape[1] else None


@dataclass(frozen=True)
class Batch:
    """Some rounds of a run, one after the other.

    Attributes
    ----------
    source : Recorded, Ordinary or Columns
    low, high : int
        Which of its rounds they are.
    """

    source: Recorded | Ordinary | Columns
    low: int
    high: int

    @classmethod
    def of(cls, records: Iterable[AnyRound]) -> Batch:
        """From records."""
        source = Recorded(tuple(records))
        return cls(source, 0, len(source.records))

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


class Rounds(Sequence[AnyRound]):
    """All rounds of a run: the sequence of their records, which are made when one is asked for.

    It equals a tuple of the same records, and is pickled as one.

    Parameters
    ----------
    batches : iterable of Batch
    """

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self._batches = [batch for batch in batches if len(batch)]
        self._n_rounds = sum(map(len, self._batches))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __len__(self) -> int:
        return self._n_rounds

    def __iter__(self) -> Iterator[AnyRound]:
        return itertools.chain.from_iterable(batch.records for batch in self._batches)

    @overload
    def __getitem__(self, place: int) -> AnyRound: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[AnyRound, ...]: ...
    def __getitem__(self, place: int | slice) -> AnyRound | tuple[AnyRound, ...]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Rounds, tuple)):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

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
        return joined([batch.terms for batch in self._batches])


def terms_of(rounds: Sequence[AnyRound]) -> Terms:
    """The hypotheses and votes of a run's rounds, `Rounds` or others."""
    return rounds.terms if isinstance(rounds, Rounds) else Batch.of(rounds).terms


def joined(terms: Sequence[Terms]) -> Terms:
    """Hypotheses and votes of several batches as those of one."""
    hypotheses = tuple(itertools.chain.from_iterable(own.hypotheses for own in terms))
    if not any(isinstance(own.votes, np.ndarray) for own in terms):
        return Terms(hypotheses, tuple(itertools.chain.from_iterable(own.votes for own in terms)))
    votes = [np.asarray(own.votes, dtype=np.float64) for own in terms]
    return Terms(hypotheses, np.concatenate(votes))


def kind_of(votes: Votes, totals: Totals) -> MadeSplits | MadeStumps:
    """What the rounds of a run with these votes are."""
    if isinstance(votes, DiscreteVotes):
        return MadeStumps(totals.first_weight)
    return MadeSplits(votes, totals.first_weight)


@dataclass(frozen=True)
class MadeSplits:
    """Rounds whose regions have votes of their own, from the arrays that an engine wrote.

    Attributes
    ----------
    rule : SplitVotes
    first_weight : int
        As in `Totals`.
    """

    rule: SplitVotes
    first_weight: int

    def hypotheses(self, made: MadeRounds) -> list[AnySplit]:
        """Splits; equal ones are one object."""
        return splits_of(made.features, made.thresholds, made.sides)

    def votes(self, made: MadeRounds) -> np.ndarray:
        """A number for each region and output."""
        return made.votes

    def sizes(self, made: MadeRounds) -> np.ndarray:
        """What the votes of each round count towards `VOTES_LIMIT`, (n_rounds, n_outputs), as in
        `votes.sizes_of`."""
        votes = made.votes
        apart: np.ndarray = np.abs(votes[:, FIRST] - votes[:, SECOND])
        sizes: np.ndarray = np.maximum(np.abs(votes).max(axis=1), apart)
        return sizes

    def records(
        self, made: MadeRounds, hypotheses: Iterable[Any], n_before: int, products: np.ndarray
    ) -> list[RegionRound]:
        """The records that `splits.SplitVotes.record` returns.

        Parameters
        ----------
        made : MadeRounds
        hypotheses : iterable (n_rounds,)
        n_before : int
            How many rounds the run had before them.
        products : ndarray (n_rounds,) of float64
            The product of all normalisers up to each round.
        """
        has_bound = self.rule.bound(1.0) is not None
        rounds = zip(
            hypotheses,
            map(_of_regions, made.votes.tolist()),
            map(self.rule.recorded, made.scores.tolist(), made.weights.tolist()),
            made.normalisers.tolist() if has_bound else [None] * len(made.features),
            (self.rule.training_error(own, self.first_weight) for own in made.error.tolist()),
            map(self.rule.bound, products.tolist()),
            strict=True,
        )
        return [RegionRound(number, *own) for number, own in enumerate(rounds, start=n_before + 1)]


@dataclass(frozen=True)
class MadeStumps:
    """Rounds of discrete votes for one output, from the arrays that an engine wrote.

    Attributes
    ----------
    first_weight : int
        As in `Totals`.
    """

    first_weight: int

    def hypotheses(self, made: MadeRounds) -> list[Stump]:
        """Stumps, with their errors."""
        signs = np.sign(made.votes[:, [FIRST, MISSING], 0]).astype(np.int64)
        places = (made.features.tolist(), made.thresholds.tolist(), *signs.T.tolist())
        return [Stump(*own) for own in zip(*places, self._errors(made), strict=True)]

    def votes(self, made: MadeRounds) -> list[float]:
        """One number for each stump."""
        found: list[float] = np.abs(made.votes[:, FIRST, 0]).tolist()
        return found

    def sizes(self, made: MadeRounds) -> np.ndarray:
        """The votes."""
        sizes: np.ndarray = np.abs(made.votes[:, FIRST])
        return sizes

    def records(
        self, made: MadeRounds, hypotheses: Iterable[Any], n_before: int, products: np.ndarray
    ) -> list[Round]:
        """The records that `discrete.DiscreteVotes.record` returns."""
        pairs = zip(made.scores.tolist(), made.weights.tolist(), strict=True)
        rounds = zip(
            hypotheses,
            self._errors(made),
            (agreement / (2 * weight) for agreement, weight in pairs),
            self.votes(made),
            made.normalisers.tolist(),
            (error / self.first_weight for error in made.error.tolist()),
            products.tolist(),
            strict=True,
        )
        return [Round(number, *own) for number, own in enumerate(rounds, start=n_before + 1)]

    def _errors(self, made: MadeRounds) -> list[float]:
        """Quotients of whole numbers, which are rounded once."""
        pairs = zip(made.scores.tolist(), made.weights.tolist(), strict=True)
        return [(weight - agreement) // 2 / weight for agreement, weight in pairs]


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
            split = known[key] = _set_of(own[0], sides[place]) if of_sets[place] else Split(*own)
        found.append(split)
    return found


def _set_of(feature: int, sides: np.ndarray) -> CategorySplit:
    """The split that sends each number of a category to its region, (n_numbers,) of uint8."""
    left, right = (np.flatnonzero(sides == side).tolist() for side in (FIRST, SECOND))
    return CategorySplit(feature, tuple(left), tuple(right))


def _of_regions(votes: list[list[float]]) -> RegionVotes:
    left, right, missing = votes
    return tuple(left), tuple(right), tuple(missing)


def member_of(
    terms: Terms, constant: Sequence[float], objective: Objective
) -> Member | RegionMember:
    """The member that a run's terms make, with the scores from which the run started."""
    if objective.has_signs:
        return Member(tuple(terms.hypotheses), tuple(map(float, terms.votes)))
    shape = (len(terms.hypotheses), N_REGIONS, len(constant))
    votes = np.asarray(terms.votes, dtype=np.float64).reshape(shape)
    return RegionMember(tuple(terms.hypotheses), votes, np.asarray(constant, dtype=np.float64))


def in_unit_of_target(
    members: Sequence[RegionMember], bags: Bags | None, scale: TargetScale | RatioScale
) -> tuple[tuple[RegionMember, ...], Bags | None]:
    """The members of a quantity's model, and its bags, for the targets as they are."""

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
