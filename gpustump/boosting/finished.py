"""From the hypotheses and votes of a run to a member of the finished model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpustump.boosting.batches import Terms
from gpustump.data.parameters import Link
from gpustump.engines.contract import Search
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.model.members import Member, RegionMember


def member_of(terms: Terms, constant: Sequence[float], search: Search) -> Member | RegionMember:
    """The member that a run's terms make, with the scores from which the run started."""
    if search.has_signs:
        return Member(tuple(terms.hypotheses), tuple(map(float, terms.votes)))
    shape = (len(terms.hypotheses), N_REGIONS, len(constant))
    votes = np.asarray(terms.votes, dtype=np.float64).reshape(shape)
    return RegionMember(tuple(terms.hypotheses), votes, np.asarray(constant, dtype=np.float64))


def link_of(search: Search) -> Link:
    """How the scores of a model become probabilities."""
    return "softmax" if search.loss == "softmax" else "logistic"
