"""From the hypotheses and votes of a run to a member of the finished model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gpustump.boosting.votes import Vote
from gpustump.data.parameters import Link
from gpustump.engines.contract import Search
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.model.members import Member, RegionMember

Terms = Sequence[tuple[Any, Vote]]
"""The hypotheses of a run, in the order of the rounds, and what they vote: stumps and intervals one
number each, splits a number for each region and output."""


def member_of(terms: Terms, constant: Sequence[float], search: Search) -> Member | RegionMember:
    """The member that a run's terms make, with the scores from which it started."""
    if search.has_signs:
        return Member(tuple(h for h, _ in terms), tuple(cast(float, vote) for _, vote in terms))
    shape = (len(terms), N_REGIONS, len(constant))
    votes = np.asarray([vote for _, vote in terms], dtype=np.float64).reshape(shape)
    return RegionMember(tuple(h for h, _ in terms), votes, np.asarray(constant, dtype=np.float64))


def link_of(search: Search) -> Link:
    """How the scores of a model become probabilities."""
    return "softmax" if search.votes == "newton" and search.n_outputs > 1 else "logistic"
