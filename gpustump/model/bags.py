"""Bags: models of the same classes, trained on different shares of a table, and their average.

The average is one additive model again. Its terms are those of all bags, each with its votes
divided by the number of bags and rounded to the votes' unit. So all that is exact stays exact, and
prediction and explanations treat the average like any other model [Breiman 1996]. The bags take
turns: the first terms of all bags come first, then the second ones, and so on. So the first terms
are an average, too.

`Bags` says which bag each term is from, so the model of each bag can be restored. How far these
models differ shows how much the average depends on which samples it was trained on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpustump.data.readable import shown
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.members import AnyMember, Member, Members, RegionMember


@dataclass(frozen=True)
class Bags:
    """Which bag each term of a model is from, and what the scores of each bag start from.

    Attributes
    ----------
    sizes : tuple of tuple of int
        For each member of the model the number of terms of each bag; two bags or more.
    constants : tuple of tuple of tuple of float
        For each member and bag the constant of each output.

    Raises
    ------
    ValueError
        If the numbers do not fit together.
    """

    sizes: tuple[tuple[int, ...], ...]
    constants: tuple[tuple[tuple[float, ...], ...], ...]

    def __post_init__(self) -> None:
        sizes = tuple(tuple(map(int, own)) for own in self.sizes)
        constants = (
            tuple(tuple(float(value) + 0.0 for value in bag) for bag in own)
            for own in self.constants
        )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "constants", tuple(constants))
        counts = {len(own) for own in (*self.sizes, *self.constants)}
        if len(counts) != 1 or min(counts) < 2 or len(self.sizes) != len(self.constants):
            raise ValueError(
                "bags must give sizes and constants for every member, each for the same two bags "
                f"or more; got sizes for {shown([len(own) for own in self.sizes])} bags and "
                f"constants for {shown([len(own) for own in self.constants])}."
            )

    @property
    def n_bags(self) -> int:
        """How many models were averaged."""
        return len(self.sizes[0])

    def check(self, members: Sequence[AnyMember]) -> None:
        """Check that these bags fit the members of a model.

        Raises
        ------
        ValueError
            If the members have other terms or outputs.
        """
        if len(members) != len(self.sizes):
            raise ValueError(f"bags must be of {len(members)} members; got {len(self.sizes)}.")
        for member, sizes, constants in zip(members, self.sizes, self.constants, strict=True):
            if min(sizes) < 0 or sum(sizes) != len(member):
                raise ValueError(
                    f"the sizes of the bags must add up to {len(member)}, the terms of their "
                    f"member; got {shown(list(sizes))}."
                )
            if {len(own) for own in constants} != {member.n_outputs}:
                raise ValueError(
                    f"the constants of each bag must be {member.n_outputs}, one for each output."
                )

    def truncated(self, n_terms: int) -> Bags:
        """The bags of a model that keeps only the first terms of each member."""
        sizes = (np.bincount(turns(own)[:n_terms], minlength=len(own)) for own in self.sizes)
        return Bags(tuple(tuple(own.tolist()) for own in sizes), self.constants)

    def member_of(self, member: AnyMember, number: int, bag: int) -> AnyMember:
        """A bag's own share of a member: its votes as they were before the average.

        Each vote is within `n_bags` / 2 units of what the bag voted, as the average was rounded.

        Parameters
        ----------
        member : Member or RegionMember
        number : int
            The member's number in the model.
        bag : int
        """
        own = member.picked(np.flatnonzero(turns(self.sizes[number]) == bag))
        votes = np.asarray(own.votes) * self.n_bags
        if isinstance(own, Member):
            return replace(own, votes=tuple(votes.tolist()))
        return replace(own, votes=votes, constant=np.asarray(self.constants[number][bag]))


def turns(sizes: Sequence[int]) -> np.ndarray:
    """The bag of each term, (n_terms,): the bags take turns, and one that has ended drops out."""
    found: np.ndarray = np.repeat(np.arange(len(sizes)), sizes)[order_of_turns(sizes)]
    return found


def order_of_turns(sizes: Sequence[int]) -> np.ndarray:
    """The order that makes the bags take turns, (n_terms,): places in their terms, end to end."""
    bag = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    order: np.ndarray = np.lexsort((bag, place))
    return order


def averaged(bags: Sequence[Sequence[AnyMember]]) -> tuple[Members, Bags]:
    """The average of models with the same outputs.

    Parameters
    ----------
    bags : sequence of sequence of Member or RegionMember
        The members of each model, all of one type.

    Returns
    -------
    tuple of Member or of RegionMember
        The members of the average.
    Bags
    """
    groups = list(zip(*bags, strict=True))
    sizes = tuple(tuple(map(len, group)) for group in groups)
    constants = tuple(tuple(tuple(own.constant.tolist()) for own in group) for group in groups)
    return tuple(map(_averaged, groups)), Bags(sizes, constants)


def _averaged(group: tuple[AnyMember, ...]) -> AnyMember:
    """One member, whose terms are those of all bags in turns."""
    order = order_of_turns([len(own) for own in group])
    terms: list[Any] = list(itertools.chain.from_iterable(own.hypotheses for own in group))
    hypotheses = tuple(terms[term] for term in order.tolist())
    votes = share(np.concatenate([np.asarray(own.votes) for own in group])[order], len(group))
    if isinstance(group[0], Member):
        return Member(hypotheses, tuple(votes.tolist()))
    total = np.sum([own.constant for own in group], axis=0)
    return RegionMember(hypotheses, votes, share(total, len(group)))


def share(votes: np.ndarray, n_bags: int) -> np.ndarray:
    """Votes divided by the number of bags, as the nearest whole multiples of the votes' unit."""
    found: np.ndarray = np.rint(votes / n_bags / VOTE_UNIT) * VOTE_UNIT
    return found
