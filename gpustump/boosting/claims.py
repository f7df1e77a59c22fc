"""The runs that a model holds: for each bag and run the hypotheses, the votes and the constant.

The average of several bags holds each bag's votes divided by the number of bags and rounded
(`model.bags`). So votes that are derived from data are rounded in the same way before they are
compared with a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.boosting.votes import Vote
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.model.bags import share, turns
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.members import Member, RegionMember


@dataclass(frozen=True)
class ClaimedRun:
    """One run as a model holds it.

    Attributes
    ----------
    hypotheses : tuple of stumps or splits of any kind
    votes : tuple of float, or of tuples as `RegionRound.votes`
        As the model holds them: with several bags, divided by their number.
    constant : tuple of float
        The scores from which the run started, one for each output.
    n_bags : int
        1 if the model is no average.
    """

    hypotheses: tuple[AnyStump | AnySplit, ...]
    votes: tuple[Vote, ...]
    constant: tuple[float, ...]
    n_bags: int = 1

    def __len__(self) -> int:
        return len(self.hypotheses)

    def as_held(self, vote: Vote) -> Vote:
        """A vote of the run as the model would hold it."""
        if self.n_bags == 1:
            return vote
        return _plain(share(np.asarray(vote), self.n_bags).tolist())


def claims_of(model: StumpEnsemble) -> list[tuple[ClaimedRun, ...]]:
    """For each bag, or the only training, the runs that the model holds."""
    bags = range(model.n_bags)
    return [
        tuple(_claimed(model, number, bag) for number in range(len(model.members))) for bag in bags
    ]


def _claimed(model: StumpEnsemble, number: int, bag: int) -> ClaimedRun:
    member, bags = model.members[number], model.bags
    if bags is None:
        own, constant = list(range(len(member))), tuple(member.constant.tolist())
    else:
        own = np.flatnonzero(turns(bags.sizes[number]) == bag).tolist()
        constant = bags.constants[number][bag]
    hypotheses, votes = member.hypotheses, _votes_of(member)
    return ClaimedRun(
        tuple(hypotheses[term] for term in own),
        tuple(votes[term] for term in own),
        constant,
        model.n_bags,
    )


def _votes_of(member: Member | RegionMember) -> list[Vote]:
    if isinstance(member, Member):
        return list(member.votes)
    return [_plain(own) for own in member.votes.tolist()]


def _plain(votes: Any) -> Vote:
    """Lists as tuples."""
    if isinstance(votes, float):
        return votes
    first, second, missing = map(tuple, votes)
    return first, second, missing
