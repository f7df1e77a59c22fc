"""AdaBoost's discrete votes: one number for each round, from two Python integers.

A region votes +alpha or -alpha, and alpha follows from the weight that the hypothesis gets right
and the weight that it gets wrong [Freund and Schapire 1997; COS 511, lecture 11].
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpustump.arrays import Array
from gpustump.boosting.votes.exact_numbers import (
    BITS,
    EXACT,
    LARGEST,
    DoubtError,
    Growth,
    certain_power,
    certain_quotient,
    certain_rescale,
    exponential,
    exponentials,
    vote_of,
)
from gpustump.boosting.votes.votes import Change, Round, RoundNumbers, Taken
from gpustump.data.parameters import Learner
from gpustump.engines.batched_rounds import DISCRETE, LOG_DOUBT, VoteRule
from gpustump.engines.contract import (
    PreparedTable,
    State,
    Totals,
    agreement,
    discrete_step,
    hypothesis_at,
)
from gpustump.engines.integer_weights import grown_factor
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import signs
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.step_table import VOTE_UNIT


@dataclass(frozen=True)
class DiscreteVotes:
    """Discrete votes; what it has is described in `splits.SplitVotes`.

    Attributes
    ----------
    learning_rate : float
        Shrinks every vote; above 0.
    monotone : tuple (n_features,) of int, or None
        See `Objective`.
    """

    learning_rate: float = 1.0
    monotone: tuple[int, ...] | None = None

    @property
    def plain(self) -> VoteRule:
        """The rule for engines that make rounds in batches."""
        return VoteRule(DISCRETE, self.learning_rate / (2 * VOTE_UNIT), LOG_DOUBT)

    @property
    def largest_size(self) -> float:
        """With larger votes no round is made in batches."""
        return float(LARGEST)

    def objective(self, learner: Learner = "stump") -> Objective:
        """Stumps or intervals, with signs."""
        return Objective(monotone=self.monotone, learner=learner)

    def on(self, labels: Array, sample_weight: Array) -> DiscreteVotes:
        """The votes of a run on these samples: the same for all."""
        return self

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """Zero: boosting starts from scores of 0."""
        return (0.0,)

    def found(
        self, table: PreparedTable, state: State, candidates: Sequence[AnySplit] = ()
    ) -> Taken | str:
        """The best cut with its vote, or why there is none."""
        cut, totals = state.best_cut(), state.totals
        wrong = totals.wrong(cut.agreement)
        share = (wrong, totals.weight) if wrong else (state.smallest_weight(), 2 * totals.weight)
        vote = vote_of(*share, self.learning_rate)
        if vote == 0.0:
            has_edge = wrong == 0 or vote_of(wrong, totals.weight, 1.0) != 0.0
            return "small vote" if has_edge else "no edge"
        return Taken(hypothesis_at(table, cut, totals), vote, totals, cut.agreement, cut=cut)

    def known(self, hypothesis: Any, vote: Any, state: State) -> Taken:
        """A known hypothesis with its known vote, and its sums here."""
        agreed = agreement(state.region_sums(hypothesis).tolist(), signs(hypothesis))
        return Taken(hypothesis, vote, state.totals, agreed)

    def gain(self, taken: Taken) -> int:
        """The agreement, from which the edge follows."""
        return taken.agreement

    def is_perfect(self, taken: Taken) -> bool:
        """Whether it gets every sample right. Then all weights keep their ratios."""
        return taken.totals.wrong(taken.agreement) == 0

    def change(self, taken: Taken) -> Change:
        """The factors of right and wrong samples, and the normaliser."""
        totals = taken.totals
        factor, rescale_exponent, normaliser = growth_of(
            totals.wrong(taken.agreement), totals, taken.alpha
        )
        assert isinstance(taken.hypothesis, AnyStump)
        step = discrete_step(taken.hypothesis, taken.alpha, factor, rescale_exponent, taken.cut)
        return Change(step, normaliser)

    def record(self, stump: Any, vote: Any, numbers: RoundNumbers) -> Round:
        """Error, edge and vote, and the bound on the training error."""
        return Round(
            number=numbers.number,
            stump=stump,
            error=(numbers.weight - numbers.gain) // 2 / numbers.weight,
            edge=numbers.gain / (2 * numbers.weight),
            vote=vote,
            normaliser=numbers.normaliser,
            training_error=numbers.error / numbers.first_weight,
            training_bound=numbers.product,
        )


def growth_of(wrong: int, totals: Totals, vote: float) -> Growth:
    """What a vote does to the weights: by whole numbers if they decide the rounding.

    The factor is that of the samples that are classified wrong; see `grown_factor` and `Round`.
    """
    right = totals.weight - wrong
    try:
        grown, shrunk = exponentials(vote)
        normaliser = certain_quotient(wrong * grown + right * shrunk, totals.weight << BITS)
        if wrong == 0:  # only a common factor would change
            return Growth(1.0, 0, normaliser)
        odds = grown * grown >> BITS
        rescale_exponent = certain_rescale((right << BITS) + wrong * odds, totals.n_samples)
        return Growth(certain_power(odds, rescale_exponent), rescale_exponent, normaliser)
    except DoubtError:
        return exact_growth_of(wrong, totals, vote)


def exact_growth_of(wrong: int, totals: Totals, vote: float) -> Growth:
    """What `growth_of` returns, computed with 50 digits."""
    odds, normaliser = odds_and_normaliser(wrong, totals.weight, vote)
    factor = grown_factor(odds, totals.weight - wrong, wrong, totals.n_samples)
    return Growth(*factor, normaliser)


def odds_and_normaliser(wrong: int, total: int, vote: float) -> tuple[Decimal, float]:
    """exp(2 * vote), and Z_t, the sum of the new weights before they are normalised.

    See `Round` for Z_t.
    """
    with decimal.localcontext(EXACT):
        growth = exponential(vote)
        normaliser = (wrong * growth + (total - wrong) / growth) / total
        return growth * growth, float(normaliser)
