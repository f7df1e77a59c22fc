"""From the hypotheses and votes of a run to a member of the finished model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpustump.boosting.rounds.batches import Terms
from gpustump.boosting.votes.ratio import RatioScale
from gpustump.data.parameters import Link
from gpustump.engines.contract import Search
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.target_scale import TargetScale
from gpustump.model.bags import Bags
from gpustump.model.members import Member, RegionMember


def member_of(terms: Terms, constant: Sequence[float], search: Search) -> Member | RegionMember:
    """The member that a run's terms make, with the scores from which the run started."""
    if search.has_signs:
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


def link_of(search: Search) -> Link:
    """What the scores of a model mean."""
    if search.quantity is not None:
        return "identity" if search.quantity == "squared" else "log"
    return "softmax" if search.loss == "softmax" else "logistic"
