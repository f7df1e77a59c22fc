"""AdaBoost's discrete votes: one number for each round, from two Python integers.

A region votes +alpha or -alpha, and alpha follows from the weight that the hypothesis gets right
and the weight that it gets wrong [Freund and Schapire 1997; COS 511, lecture 11].
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import (
    BITS,
    EXACT,
    LARGEST,
    DoubtError,
    certain_halvings,
    certain_power,
    certain_quotient,
    exponential,
    exponentials,
    vote_of,
)
from gpustump.boosting.votes.votes import Change, Round, SoFar, Taken
from gpustump.data.parameters import Learner
from gpustump.engines.ahead import DISCRETE, LOG_DOUBT, VoteRule
from gpustump.engines.contract import (
    PreparedTable,
    Search,
    State,
    agreement,
    discrete_step,
    hypothesis_at,
)
from gpustump.engines.integer_weights import grown_factor
from gpustump.learners.hypothesis import signs
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.step_table import VOTE_UNIT


@dataclass(frozen=True)
class DiscreteVotes:
    """Discrete votes; see `boosting.votes.votes.Votes`.

    Attributes
    ----------
    learning_rate : float
        Shrinks every vote; above 0.
    monotone : tuple (n_features,) of int, or None
        See `Search`.
    """

    learning_rate: float = 1.0
    monotone: tuple[int, ...] | None = None

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds ahead."""
        return VoteRule(DISCRETE, self.learning_rate / (2 * VOTE_UNIT), LOG_DOUBT)

    @property
    def largest_size(self) -> float:
        """See `splits.Rule`: with larger votes no round is made ahead."""
        return float(LARGEST)

    def search(self, learner: Learner) -> Search:
        """Stumps or intervals, with signs."""
        return Search(learner, monotone=self.monotone)

    def on(self, labels: Array, sample_weight: Array) -> DiscreteVotes:
        """The votes of a run on these samples: the same for all."""
        return self

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """Zero: boosting starts from scores of 0."""
        return (0.0,)

    def constant_of(self, class_weights: Sequence[int]) -> tuple[float, ...]:
        """The same from the integer weight of each class; with one output of the labels -1, +1."""
        return (0.0,)

    def found(
        self, table: PreparedTable, state: State, offered: Sequence[AnySplit] = ()
    ) -> Taken | str:
        """The best cut with its vote, or why there is none."""
        cut = state.best_cut()
        vote = self.vote(cut.agreement, state)
        if vote == 0.0:
            return self.why_no_vote(cut.agreement, state)
        totals = state.totals
        return Taken(hypothesis_at(table, cut, totals), vote, totals, cut.agreement, cut=cut)

    def known(self, hypothesis: AnyStump, vote: float, state: State) -> Taken:
        """A known hypothesis with its known vote, and its sums here."""
        agreed = agreement(state.region_sums(hypothesis).tolist(), signs(hypothesis))
        return Taken(hypothesis, vote, state.totals, agreed)

    def score(self, taken: Taken) -> float:
        """The edge; see `Round`."""
        return taken.agreement / (2 * taken.totals.weight)

    def is_perfect(self, taken: Taken) -> bool:
        """Whether it gets every sample right. Then all weights keep their ratios."""
        return taken.totals.wrong(taken.agreement) == 0

    def vote(self, agreement: int, state: State) -> float:
        """alpha of a hypothesis with this agreement; 0 if it is not better than chance."""
        totals = state.totals
        wrong = totals.wrong(agreement)
        if wrong:
            return vote_of(wrong, totals.weight, self.learning_rate)
        return vote_of(state.smallest_weight(), 2 * totals.weight, self.learning_rate)

    def why_no_vote(self, agreement: int, state: State) -> str:
        """Why the vote is 0: "no edge", or "small vote" if the vote of an edge rounds to 0."""
        totals = state.totals
        wrong = totals.wrong(agreement)
        has_edge = wrong == 0 or vote_of(wrong, totals.weight, 1.0) != 0.0
        return "small vote" if has_edge else "no edge"

    def change(self, taken: Taken) -> Change:
        """The factors of right and wrong samples, and the normaliser."""
        totals = taken.totals
        sides = Sides(totals.wrong(taken.agreement), totals.weight, totals.n_samples)
        growth = growth_of(sides, taken.alpha)
        assert isinstance(taken.hypothesis, AnyStump)
        step = discrete_step(
            taken.hypothesis, taken.alpha, growth.factor, growth.halvings, taken.cut
        )
        return Change(step, growth.normaliser)

    def record(self, taken: Taken, change: Change, so_far: SoFar) -> Round:
        """Error, edge and vote, and the bound on the training error."""
        totals = taken.totals
        assert isinstance(taken.hypothesis, AnyStump)
        return Round(
            number=so_far.number,
            stump=taken.hypothesis,
            error=totals.wrong(taken.agreement) / totals.weight,
            edge=self.score(taken),
            vote=taken.alpha,
            normaliser=change.normaliser,
            training_error=so_far.totals.training_error,
            training_bound=so_far.bound,
        )


class Sides(NamedTuple):
    """The weight that a hypothesis gets wrong, the total, and the number of samples."""

    wrong: int
    total: int
    n_samples: int


class Growth(NamedTuple):
    """What a vote does to the weights of wrong samples; see `grown_factor` and `Round`."""

    factor: float
    halvings: int
    normaliser: float


def growth_of(sides: Sides, vote: float) -> Growth:
    """What a vote does to the weights: by whole numbers if they decide the rounding."""
    wrong, right = sides.wrong, sides.total - sides.wrong
    try:
        grown, shrunk = exponentials(vote)
        normaliser = certain_quotient(wrong * grown + right * shrunk, sides.total << BITS)
        if wrong == 0:  # only a common factor would change
            return Growth(1.0, 0, normaliser)
        odds = grown * grown >> BITS
        halvings = certain_halvings((right << BITS) + wrong * odds, sides.n_samples)
        return Growth(certain_power(odds, halvings), halvings, normaliser)
    except DoubtError:
        return exact_growth_of(sides, vote)


def exact_growth_of(sides: Sides, vote: float) -> Growth:
    """What `growth_of` returns, computed with 50 digits."""
    wrong, total, n_samples = sides
    odds, normaliser = odds_and_normaliser(wrong, total, vote)
    return Growth(*grown_factor(odds, total - wrong, wrong, n_samples), normaliser)


def odds_and_normaliser(wrong: int, total: int, vote: float) -> tuple[Decimal, float]:
    """exp(2 * vote), and Z_t, the sum of the new weights before they are normalised.

    See `Round` for Z_t.
    """
    with decimal.localcontext(EXACT):
        growth = exponential(vote)
        normaliser = (wrong * growth + (total - wrong) / growth) / total
        return growth * growth, float(normaliser)
