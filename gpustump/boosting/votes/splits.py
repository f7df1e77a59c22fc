"""Votes of splits, whose regions have votes of their own: what all kinds of them share.

The search finds a split by its score. Its votes follow, on the host, from the exact sums of the two
integers over its regions, whether the split has just been found or comes from an earlier run.

A monotone constraint holds for the votes themselves. The search compares rounded levels of the
regions (`engines.monotone`), so if two votes are equal except for rounding, the wrong one may be
larger. Then left and right both get the vote of the two together, as by pooling of adjacent
violators [Barlow et al. 1972, isotonic regression].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from gpustump.arrays import Array
from gpustump.boosting.votes.votes import Change, RegionRound, RoundNumbers, Taken
from gpustump.data.parameters import Learner, VoteKind
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import (
    PreparedTable,
    RegionSums,
    RegionVotes,
    State,
    Totals,
    split_at,
)
from gpustump.engines.gain import exact_score_of, score_of
from gpustump.engines.monotone import is_allowed
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND
from gpustump.learners.kinds import AnySplit


@dataclass(frozen=True)
class SplitVotes:
    """What all kinds of votes share; a subclass says how votes follow from sums.

    Attributes
    ----------
    learning_rate : float
        Shrinks every vote; above 0.
    n_outputs : int
        1 for two classes.
    monotone : tuple (n_features,) of int, or None
        See `Objective`.
    """

    learning_rate: float = 1.0
    n_outputs: int = 1
    monotone: tuple[int, ...] | None = field(default=None, kw_only=True)

    kind: ClassVar[VoteKind]

    @functools.cached_property
    def _objective(self) -> Objective:
        return Objective.of(self.kind, self.n_outputs, monotone=self.monotone)

    def objective(self, learner: Learner = "stump") -> Objective:
        """What the engine is to look for: splits only.

        Raises
        ------
        ValueError
            If the learner makes intervals.
        """
        if learner != "stump":
            found = f"votes={self.kind!r}" if self.n_outputs == 1 else "multi_class='shared'"
            raise ValueError(
                f"weak_learner={learner!r} is for discrete votes of one class against the rest; "
                f"with {found}, weak_learner must be 'stump'."
            )
        return self._objective

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds in batches."""
        raise NotImplementedError

    @property
    def largest_size(self) -> float:
        """The most that a round of a batch counts towards `VOTES_LIMIT`; see `votes.sizes_of`."""
        raise NotImplementedError

    def on(self, labels: Array, sample_weight: Array) -> Self:
        """The votes of a run on these samples."""
        return self

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The scores from which boosting starts, one for each output."""
        return (0.0,) * self.n_outputs

    def votes_of(self, sums: RegionSums, totals: Totals) -> RegionVotes:
        """The votes of the regions with these sums; all 0 if there is nothing to gain."""
        raise NotImplementedError

    def whole(self) -> Self:
        """These votes at a learning rate of 1, and not regularized."""
        return replace(self, learning_rate=1.0)

    def change(self, taken: Taken) -> Change:
        """What the votes do to scores and weights."""
        raise NotImplementedError

    def is_perfect(self, taken: Taken) -> bool:
        """Whether another round could only find the same again; under most losses never, as they
        can always fall further."""
        return False

    def recorded(self, score: float, weight: int) -> float:
        """A score in the units of a round's record, given the weight of all samples and outputs."""
        raise NotImplementedError

    def bound(self, product: float) -> float | None:
        """The bound on the training error for a product of normalisers; None if there is none."""
        return None

    def training_error(self, error: int, first_weight: int) -> float:
        """The training error of a round's record; the arguments are those of `Totals`."""
        return error / first_weight

    def found(
        self, table: PreparedTable, state: State, candidates: Sequence[AnySplit] = ()
    ) -> Taken | str:
        """The best cut and the votes of its regions, or why there are none."""
        taken = self._best_of(candidates, state) or self.best(table, state)
        if any(vote for own in taken.region_votes for vote in own):
            return taken
        assert taken.cut is not None
        split: Any = None if taken.cut.position is None else taken.hypothesis
        unshrunk = self.whole()._votes_of(split, taken.sums, state)
        return "small vote" if any(vote for own in unshrunk for vote in own) else "no edge"

    def _best_of(self, candidates: Sequence[AnySplit], state: State) -> Taken | None:
        """The best of the splits that are offered, the first of equally good ones; None if none is
        allowed, or if the best one votes 0."""
        if not candidates:
            return None
        totals, objective = state.totals, self.objective()
        pairs = zip(candidates, state.sums_over_each(candidates).tolist(), strict=True)
        allowed = [own for own in pairs if is_allowed(own[0].feature, own[1], totals, objective)]
        if not allowed:
            return None
        split, sums = max(allowed, key=lambda own: exact_score_of(own[1], objective))
        votes = self._votes_of(split, sums, state)
        if not any(vote for own in votes for vote in own):
            return None
        return Taken(split, votes, totals, sums=sums)

    def best(self, table: PreparedTable, state: State) -> Taken:
        """The best cut and the votes of its regions, which may all be 0."""
        cut, totals = state.best_cut(), state.totals
        split = split_at(table, cut)
        sums = state.region_sums(split).tolist()
        votes = self._votes_of(None if cut.position is None else split, sums, state)
        return Taken(split, votes, totals, sums=sums, cut=cut)

    def _votes_of(self, split: AnySplit | None, sums: RegionSums, state: State) -> RegionVotes:
        """The votes of a split's regions with these sums; without a split those of a constant."""
        if split is None:
            return (self.votes_of(together(sums), state.totals)[FIRST],) * N_REGIONS
        return self._of_split(split.feature, sums, state.totals)

    def _of_split(self, feature: int, sums: RegionSums, totals: Totals) -> RegionVotes:
        """The votes of a split's regions, in the order that the feature's constraint asks for."""
        votes, (left, right, _) = self.votes_of(sums, totals), sums
        if self.monotone is None or not (left[0][1] and right[0][1]):
            return votes  # an empty side breaks no constraint
        if self.monotone[feature] * (votes[SECOND][0] - votes[FIRST][0]) < 0.0:
            return self.votes_of(_pooled(sums), totals)
        return votes

    def known(self, hypothesis: Any, vote: Any, state: State) -> Taken:
        """A known split with its known votes, and its sums here."""
        sums = state.region_sums(hypothesis).tolist()
        return Taken(hypothesis, vote, state.totals, sums=sums)

    def gain(self, taken: Taken) -> float:
        """What the split is worth, in units of the integers."""
        return score_of(weighed(taken), self._objective)

    def record(self, split: Any, votes: Any, numbers: RoundNumbers) -> RegionRound:
        """Votes and score, and the bound on the training error."""
        bound = self.bound(numbers.product)
        return RegionRound(
            number=numbers.number,
            stump=split,
            votes=votes,
            score=self.recorded(numbers.gain, numbers.weight),
            normaliser=None if bound is None else numbers.normaliser,
            training_error=self.training_error(numbers.error, numbers.first_weight),
            training_bound=bound,
        )


def together(sums: RegionSums) -> RegionSums:
    """The sums of a constant: all samples in the first region."""
    totals = [
        (sum(own[0] for own in regions), sum(own[1] for own in regions))
        for regions in zip(*sums, strict=True)
    ]
    nothing = [(0, 0)] * len(totals)
    return [totals, nothing, nothing]


def _pooled(sums: RegionSums) -> RegionSums:
    """The sums with those of left and right together on both sides."""
    both = [
        (left[0] + right[0], left[1] + right[1])
        for left, right in zip(sums[FIRST], sums[SECOND], strict=True)
    ]
    return [both, both, sums[MISSING]]


def weighed(taken: Taken) -> RegionSums:
    """The sums that the votes follow from: a constant does not separate missing values."""
    votes = taken.region_votes
    is_constant = taken.hypothesis.thresholds[0] == math.inf and votes[FIRST] == votes[MISSING]
    return together(taken.sums) if is_constant else taken.sums
