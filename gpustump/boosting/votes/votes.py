"""What votes objects take and return, and the records of rounds.

Boosting asks a votes object, which knows nothing of rounds, what a cut is worth, what its regions
vote, and how that changes the weights. All of it is decided on the host from integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gpustump.engines.contract import Cut, RegionSums, RegionVotes, Step, Totals
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories


@dataclass(frozen=True)
class Round:
    """What one round of boosting did.

    Attributes
    ----------
    number : int
        From 1.
    stump : Stump, Interval or CategoryStump
    error : float
        e_t, the stump's weighted error under this round's weights.
    edge : float
        g_t = 1/2 - e_t.
    vote : float
        alpha_t = learning_rate / 2 * ln((1 - e_t) / e_t). A perfect stump, whose formula would be
        infinite, votes as if it got half of the smallest sample weight wrong. This vote is larger
        than that of any imperfect stump, and with equal weights it means e = 1/(2 * n_samples) [the
        smoothing of Schapire and Singer 1999, 4.2].
    normaliser : float
        Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), which is 2 * sqrt(e_t * (1 - e_t)) at
        a learning rate of 1; exp(-alpha_t) for a perfect stump.
    training_error : float
        Share of the sample weight that the ensemble up to this round gets wrong.
    training_bound : float
        Product of the normalisers so far, which the training error cannot exceed (except for the
        rounding of weights, by a factor of at most 1 + 2**-50 in each round).

    Examples
    --------
    >>> from gpustump import boost
    >>> first = next(boost([[0], [1], [2], [3]], [-1, 1, -1, -1]))
    >>> first.number, first.stump.threshold, first.error, first.edge
    (1, 1.5, 0.25, 0.25)
    >>> round(first.vote, 4), round(first.normaliser, 4)
    (0.5493, 0.866)
    >>> first.training_error <= first.training_bound
    True
    """

    number: int
    stump: AnyStump
    error: float
    edge: float
    vote: float
    normaliser: float
    training_error: float
    training_bound: float


@dataclass(frozen=True)
class RegionRound:
    """What a round did whose regions have votes of their own.

    Attributes
    ----------
    number : int
        From 1.
    stump : Split or CategorySplit
    votes : tuple (n_regions,) of tuple (n_outputs,) of float
        The votes of the regions left, right and missing; n_outputs is 1 for two classes.
    score : float
        What the cut is worth. Discrete votes: the share of the weight that the signs get right less
        the share that they get wrong, which is twice the edge. Real votes: -Z/2 before smoothing
        and the learning rate. Newton votes: the sum of gradient**2 / (hessian + lambda), in the
        units of the sample weights; infinite if it is beyond float64, as with very large weights.
    normaliser : float or None
        Z_t, the sum of the new weights before they are normalised [Schapire and Singer 1999]; None
        for Newton votes.
    training_error : float
        Share of the sample weight that the ensemble up to this round gets wrong.
    training_bound : float or None
        Product of the normalisers so far, which the training error cannot exceed (except for the
        rounding of weights). With K > 2 outputs K/2 times the product: a sample whose class does
        not have the largest score adds 2 to the sum of its K exponential losses or more. None for
        Newton votes.

    Examples
    --------
    >>> from gpustump import boost
    >>> first = next(boost([[0], [1], [2], [3]], [-1, 1, -1, -1], votes="real"))
    >>> first.stump
    Split(feature=0, threshold=1.5)
    >>> left, right, missing = first.votes
    >>> round(left[0], 4), round(right[0], 4)
    (0.0, -0.8047)
    >>> round(first.normaliser, 4), first.training_error
    (0.7236, 0.25)
    """

    number: int
    stump: AnySplit
    votes: RegionVotes
    score: float
    normaliser: float | None
    training_error: float
    training_bound: float | None

    @property
    def vote(self) -> RegionVotes:
        """The same as `votes`: what `Boosting.resume` takes."""
        return self.votes


AnyRound = Round | RegionRound

Vote = float | RegionVotes
"""One number, whose signs are the hypothesis's own, or a number for each region and output."""


class Taken(NamedTuple):
    """A hypothesis that a round takes into the model.

    Attributes
    ----------
    hypothesis : any kind of stump or split
    vote : Vote
    totals : Totals
        Of the integers under which it was found.
    agreement : int
        Of a hypothesis with signs: the weight that it gets right less the weight that it gets
        wrong.
    sums : RegionSums
        Of a split: the sums over its regions.
    cut : Cut or None
        The cut, if the state has just found it; None if the hypothesis was known before.
    """

    hypothesis: AnyStump | AnySplit
    vote: Vote
    totals: Totals
    agreement: int = 0
    sums: RegionSums = ()
    cut: Cut | None = None

    @property
    def alpha(self) -> float:
        """The vote of a hypothesis with signs."""
        assert isinstance(self.vote, float)
        return self.vote

    @property
    def region_votes(self) -> RegionVotes:
        """The votes of a split's regions."""
        assert isinstance(self.vote, tuple)
        return self.vote


class Change(NamedTuple):
    """What a round does to the samples, and the sum of their new weights before normalising."""

    step: Step
    normaliser: float


class RoundNumbers(NamedTuple):
    """The numbers from which a round's record follows.

    Attributes
    ----------
    number : int
        The round's number.
    first_weight : int
        As in `Totals`.
    gain : int or float
        What the cut was worth: the agreement of discrete votes of one output, or the gain.
    weight : int
        The sum of the Hessians before the round; see `Totals`.
    normaliser : float
    product : float
        Of all normalisers up to this round.
    error : int
        As in `Totals`, after the round.
    """

    number: int
    first_weight: int
    gain: float
    weight: int
    normaliser: float
    product: float
    error: int


def sizes_of(hypothesis: Any, vote: Vote) -> tuple[float, ...]:
    """What votes count towards `VOTES_LIMIT`, for each output.

    The largest absolute vote or, if it is larger, a difference that step functions add up: left and
    right; with categories also left and missing, and right and missing, as missing values lie
    between categories.
    """
    if not isinstance(vote, tuple):
        return (abs(vote),)
    pairs = [(FIRST, SECOND)]
    if isinstance(hypothesis, OfCategories):
        pairs += [(FIRST, MISSING), (SECOND, MISSING)]
    return tuple(
        max(*map(abs, own), *(abs(own[one] - own[other]) for one, other in pairs))
        for own in zip(*vote, strict=True)
    )
