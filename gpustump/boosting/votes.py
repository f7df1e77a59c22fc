"""What a round's regions vote: the interface between boosting and a loss, and a round's record.

Boosting asks a votes object, which knows nothing of rounds: what is a cut worth, what do its
regions vote, what does that do to the weights. All of it is decided on the host from integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gpustump.engines.contract import Cut, State, Step, Totals
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump


@dataclass(frozen=True)
class Round:
    """What one round of boosting did.

    Attributes
    ----------
    number : int
        From 1.
    stump : Stump or Interval
    error : float
        e_t, the stump's weighted error under this round's weights.
    edge : float
        g_t = 1/2 - e_t.
    vote : float
        alpha_t = learning_rate / 2 * ln((1 - e_t) / e_t). A perfect stump, whose formula would be
        infinite, votes as if it got half of the smallest sample weight wrong. That is more than any
        imperfect stump can have, and with equal weights e = 1/(2 * n_samples) [the smoothing of
        Schapire and Singer 1999, 4.2].
    normaliser : float
        Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), which is 2 * sqrt(e_t * (1 - e_t)) at
        a learning rate of 1; exp(-alpha_t) for a perfect stump.
    training_error : float
        Share of the sample weight that the ensemble up to this round gets wrong.
    training_bound : float
        Product of the normalisers so far, which the training error cannot exceed (but for the
        rounding of weights, a factor of 1 + 2**-50 or less a round).
    """

    number: int
    stump: Stump | Interval
    error: float
    edge: float
    vote: float
    normaliser: float
    training_error: float
    training_bound: float


class Taken(NamedTuple):
    """A hypothesis that a round takes into the model.

    Attributes
    ----------
    hypothesis : Stump or Interval
    vote : float
    agreement : int
        The weight that it gets right less the weight that it gets wrong.
    totals : Totals
        Of the weights under which it was found.
    cut : Cut or None
        Where the state has just found it; None if it comes from elsewhere.
    """

    hypothesis: Stump | Interval
    vote: float
    agreement: int
    totals: Totals
    cut: Cut | None


class Change(NamedTuple):
    """What a round does to the samples, and the sum of their new weights before normalising."""

    step: Step
    normaliser: float


class SoFar(NamedTuple):
    """A run up to a round, that round included: its number, the product of the normalisers, and the
    totals behind it."""

    number: int
    bound: float
    totals: Totals


class Votes(Protocol):
    """What a cut is worth and what follows from it; `DiscreteVotes` are the first of their kind."""

    def vote(self, agreement: int, state: State) -> float:
        """The vote of a hypothesis with this agreement; 0 if the run has to end."""

    def why_no_vote(self, agreement: int, state: State) -> str:
        """Why such a vote is 0, as a `stop_reason`."""

    def change(self, taken: Taken) -> Change:
        """What a hypothesis and its vote do to scores and weights."""

    def record(self, taken: Taken, change: Change, so_far: SoFar) -> Round:
        """What the round did."""
