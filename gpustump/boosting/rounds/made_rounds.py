"""What rounds that an engine has made ahead are: hypotheses, votes and records, from its arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.boosting.rounds.batches import Kind
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.splits import Rule, SplitVotes
from gpustump.boosting.votes.votes import RegionRound, Round
from gpustump.engines.ahead import MadeRounds
from gpustump.engines.contract import RegionVotes, Totals
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import AnySplit
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

PlainVotes = DiscreteVotes | SplitVotes
"""Votes with a rule for engines that make rounds ahead."""


def kind_of(votes: PlainVotes, totals: Totals) -> Kind:
    """What the rounds of a run with these votes are."""
    if isinstance(votes, DiscreteVotes):
        return MadeStumps(totals.first_weight)
    return MadeSplits(votes.rule, totals.first_weight)


@dataclass(frozen=True)
class MadeSplits:
    """Rounds whose regions have votes of their own; see `batches.Kind`.

    Attributes
    ----------
    rule : Rule
    first_weight : int
        As in `Totals`.
    """

    rule: Rule
    first_weight: int

    def hypotheses(self, made: MadeRounds) -> list[AnySplit]:
        """Splits; equal ones are one object."""
        return splits_of(made.features, made.thresholds, made.sides)

    def votes(self, made: MadeRounds) -> np.ndarray:
        """A number for each region and output."""
        return made.votes

    def sizes(self, made: MadeRounds) -> np.ndarray:
        """The largest absolute vote or, if it is larger, the difference of left and right."""
        votes = made.votes
        apart: np.ndarray = np.abs(votes[:, FIRST] - votes[:, SECOND])
        sizes: np.ndarray = np.maximum(np.abs(votes).max(axis=1), apart)
        return sizes

    def records(
        self, made: MadeRounds, hypotheses: Iterable[Any], n_before: int, products: np.ndarray
    ) -> list[RegionRound]:
        """The records that `split_votes.SplitVotes.record` returns."""
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
    """Rounds of discrete votes for one output; see `batches.Kind`.

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
        """The records that `discrete_votes.DiscreteVotes.record` returns."""
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
    """The split that sends each number of a category to its region, (N_NUMBERS,) of uint8."""
    left, right = (np.flatnonzero(sides == side).tolist() for side in (FIRST, SECOND))
    return CategorySplit(feature, tuple(left), tuple(right))


def _of_regions(votes: list[list[float]]) -> RegionVotes:
    left, right, missing = votes
    return tuple(left), tuple(right), tuple(missing)
